"""Regular expressions that are compiled when they are first used.

Compiling is most of what it costs to import a module full of expressions, and one command needs
few of those in the modules that it loads.
"""

import re
from typing import Any, AnyStr, cast

_PUBLIC = tuple(name for name in dir(re.Pattern) if not name.startswith("_"))


class _Pattern:
    """Has what a compiled expression has. Without `__getattr__`, which would slow each use."""


class _LatePattern(_Pattern):
    """Becomes a `_Pattern` when anything of it is asked for."""

    def __init__(self, source: Any, flags: int) -> None:
        self._given = (source, flags)

    def __getattr__(self, name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(name)
        compiled = re.compile(*self._given)
        for known in _PUBLIC:
            setattr(self, known, getattr(compiled, known))
        self.__class__ = _Pattern  # type: ignore[assignment]
        return getattr(compiled, name)


def late_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, but later. An error in `source` shows at the first use.

    The `re` of a match is the compiled expression, so compare their `pattern`, not the two.
    """
    return cast(re.Pattern[AnyStr], _LatePattern(source, flags))
