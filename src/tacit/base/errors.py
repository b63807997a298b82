"""The errors a person can see, each with its exit code.

A message names the thing and the cause; `hint` is the next command to type or thing to do.
A refusal by the gate is a value, not one of these.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # `tacit list` waits for this module, and `collections` costs it 2 ms
    from collections.abc import Iterable


def did_you_mean(name: str, known: "Iterable[str]", otherwise: str, most: int = 3) -> str:
    """A hint with the known names that are nearest to `name`; where none is near, `otherwise`."""
    near = near_names(name, known, most)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def near_names(name: str, known: "Iterable[str]", most: int = 3) -> list[str]:
    """The known names that begin like `name` or have a word that does, then those spelled alike."""
    import difflib  # late: it is needed for mistakes only

    names, wanted = sorted(set(known)), name.casefold()
    begun = [n for n in names if len(wanted) > 1 and n.casefold().startswith(wanted)]
    begun += [n for n in names if len(wanted) > 2 and f"-{wanted}" in n.casefold()]
    return list(dict.fromkeys([*begun, *difflib.get_close_matches(name, names, most)]))[:most]


class TacitError(Exception):
    """Something the user can act on. Shown as one message, never as a traceback."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def explain(self) -> str:
        """The message and what to do about it, on one line."""
        return f"{self.message}; {self.hint}" if self.hint else self.message

    @property
    def code(self) -> str:
        """A stable word for scripts, e.g. `not-found`."""
        name = type(self).__name__
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


class Usage(TacitError):
    """The call itself is wrong: an unknown command, option or value."""

    exit_code = 2


class NotFound(TacitError):
    """The named skill, session or file does not exist."""

    exit_code = 3


class BadConfig(TacitError):
    """A configuration file or a TACIT_ variable cannot be used."""

    exit_code = 4


class Refused(TacitError):
    """The rules say no: trust, the gate's verdict, a missing permission."""

    exit_code = 5


class Damaged(TacitError):
    """Stored data is broken; `tacit doctor` repairs it."""

    exit_code = 6


class MissingExtra(TacitError):
    """An optional dependency is not installed."""

    exit_code = 7

    def __init__(self, extra: str, what: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}'", f"pip install 'tacit[{extra}]'")


class Busy(TacitError):
    """Another process holds a lock for too long."""

    exit_code = 8


class Unwritable(TacitError):
    """The system refused a read or a write: permissions, a full disk, a read-only mount."""

    exit_code = 9


class Newer(TacitError):
    """Stored data was written by a newer version of Tacit."""

    exit_code = 10
