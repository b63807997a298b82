"""The import of the client library, as far as it is used.

pydantic-ai and the providers' libraries import all of themselves when one part is asked for:
agents, graphs, tools, the types of every request of every service. That is a second or two, of
which a conversation uses half. Here their packages are loaded so that a name brings the module that
it stands in, and what nobody asks for is never run. A release that cannot be loaded so is imported
as it wants to be. Which class speaks to a model is decided in `models.py`.
"""

import contextlib
import gc
import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache, wraps
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any, TypeVar

T = TypeVar("T")

_PARTED = frozenset(("pydantic_ai", "pydantic_ai.agent", "pydantic_ai.capabilities", "openai"))
_PARTED_BELOW = ("openai.types", "anthropic.types", "anthropic.resources")
_CALLED = frozenset(("pydantic_ai._griffe",))
"""Modules of functions that a conversation hardly calls: run at the first call."""
_SEARCHES = ("pydantic_ai.models.openai", "_web_search_requests")
_RESPONSE = "openai.types.responses.response"
_VERSIONS = {"pydantic_ai": "pydantic_ai_slim"}
"""Packages that say their version in each request, with the name under which it is installed."""
_ROOTS = {name.partition(".")[0] for name in (*_PARTED, *_PARTED_BELOW)}
# What a package takes from its own modules: `from .module import name, other as name` and the like.
_TAKEN = re.compile(r"^from ([\w.]+) import (?:\(([^()]*)\)|([^(\n\\*]+))$", re.MULTILINE)
_COMMENT = re.compile(r"#.*")
_whole = threading.RLock()


def load() -> None:
    """Import what every request needs. To be called before anything of pydantic-ai is imported."""
    if "pydantic_ai" not in sys.modules:
        sparingly(lambda: importlib.import_module("pydantic_ai.direct"))


def sparingly(make: Callable[[], T]) -> T:
    """What `make` gives, with what it imports of the client library loaded by parts.

    Where that fails, whatever was loaded is forgotten, and `make` is called again without.
    """
    finder, before, collected = _Finder(), set(sys.modules), gc.isenabled()
    sys.meta_path.insert(0, finder)
    gc.disable()  # a tenth of an import is the search for garbage, and there is none
    try:
        with _late_methods():
            made = make()
        _spare_response()
        return made
    except (ImportError, AttributeError):
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in _ROOTS:
                del sys.modules[name]
    finally:
        sys.meta_path.remove(finder)
        if len(sys.modules) > len(before):
            gc.freeze()
        if collected:
            gc.enable()
    return make()


@contextlib.contextmanager
def _late_methods() -> Iterator[None]:
    """For a `with` block, methods of dataclasses are compiled when they are called, which most are
    never: a fifth of the import. Python 3.13 compiles those of a class at once."""
    import dataclasses

    known: Any = dataclasses
    create: Any = getattr(known, "_create_fn", None)
    if create is None or create.__module__ == __name__:  # of another thread, or around this
        yield
        return

    def late(name: str, *text: Any, **given: Any) -> Any:
        if name == "__init__":  # others ask for its signature
            return create(name, *text, **given)
        made = cache(lambda: create(name, *text, **given))

        def method(*values: Any) -> Any:
            return made()(*values)

        method.__name__ = name
        return method

    known._create_fn = late
    try:
        yield
    finally:
        known._create_fn = create


def _spare_response() -> None:
    """Have the searches of an answer counted without the types of OpenAI's other way to ask, which
    alone has some: these are a tenth of an import, and while they were not run no answer is one."""
    module: Any = sys.modules.get(_SEARCHES[0])
    count = getattr(module, _SEARCHES[1], None)
    if count is None or hasattr(count, "__wrapped__"):
        return

    @wraps(count)
    def searches(answer: Any) -> Any:
        return count(answer) if _RESPONSE in sys.modules else 0

    setattr(module, _SEARCHES[1], searches)


class _Finder:
    """Finds the packages that are loaded by parts, and the modules that are run at a call."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _PARTED | _CALLED and not name.startswith(_PARTED_BELOW):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or (spec.submodule_search_locations is None) != (name in _CALLED):
            return None
        if type(spec.loader) is not SourceFileLoader:  # compiled, or in an archive
            return None
        spec.loader = (_Functions if name in _CALLED else _Parts)(name, spec.loader.path)
        return spec


class _Parts(SourceFileLoader):
    """Loads a package by the names that are asked of it, and wholly at one that it makes itself."""

    _taken: dict[str, tuple[str, str]] | None = None

    def exec_module(self, module: ModuleType) -> None:
        def found(name: str) -> Any:
            return self._part(module, name)

        module.__getattr__ = found  # type: ignore[method-assign]

    def _part(self, module: ModuleType, name: str) -> Any:
        if self._taken is None:
            self._taken = self._read_names()
        source, own = self._taken.get(name, (".", name))
        value: Any
        try:
            if name == "__version__" and module.__name__ in _VERSIONS:
                from importlib.metadata import version as version_of

                value = version_of(_VERSIONS[module.__name__])
            elif source.strip("."):
                value = getattr(importlib.import_module(source, module.__name__), own)
            else:
                value = importlib.import_module(source + own, module.__name__)
        except (ModuleNotFoundError, AttributeError):
            return self._all(module, name)
        setattr(module, name, value)
        return value

    def _all(self, module: ModuleType, name: str) -> Any:
        """Run the package as it stands."""
        with _whole:
            if vars(module).pop("__getattr__", None) is not None:
                super().exec_module(module)
        return getattr(module, name)

    def _read_names(self) -> dict[str, tuple[str, str]]:
        """Where each name of the package comes from, and what it is called there."""
        text = _COMMENT.sub("", self.get_data(self.path).decode())
        found = {}
        for source, several, one in _TAKEN.findall(text):
            inside = source.startswith(".") or source.partition(".")[0] in _ROOTS
            for part in (several or one).split(",") if inside else ():
                if words := part.split():  # `name`, or `own as name`
                    found[words[-1]] = (source, words[0])
        return found


class _Functions(_Parts):
    """Loads a module of functions when one of them is called."""

    def exec_module(self, module: ModuleType) -> None:
        def found(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)

            def late(*given: Any, **named: Any) -> Any:
                return self._all(module, name)(*given, **named)

            return late

        module.__getattr__ = found  # type: ignore[method-assign]
