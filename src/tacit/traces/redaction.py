"""Taking secrets out before anything is stored: every text in a struct, at any depth.

A value that is known for a secret by the words beside it (`password: …`) is taken out wherever
else it stands in the same session, though nothing tells there. The values are known only while a
session is being written, and kept nowhere.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tacit.traces.trace import Turn

if TYPE_CHECKING:
    from tacit.base.secrets import Signs

Redact = Callable[..., tuple[str, Mapping[str, int]]]
"""A text without its secrets, and how many were taken out, by rule."""
Rules = Callable[[dict[str, str]], Redact]
"""The redaction that writes each value that it takes out, and its rule, into what it is given."""

S = TypeVar("S", bound=msgspec.Struct)

VERSION = 7
"""Of the rules that come with Tacit. Raise it when they grow: sessions that were stored under fewer
are then redacted again."""
MAX_KNOWN = 64
"""So many values are looked for in the rest of a session; more are no person's passwords."""
_LONG = 10_000
"""Characters of a turn that holds signs of some secret nearly always: its steps are looked at."""
_SHORT = 100
"""Characters of a text that is remembered for having no secret in it."""


def rules(redact: Redact | None = None) -> Rules:
    """The rules that come with Tacit; or `redact`, which tells no values."""
    return _own_rules if redact is None else lambda _: redact


def _own_rules(values: dict[str, str]) -> Redact:
    from tacit.base import secrets  # who only reads sessions needs none

    return partial(secrets.redact, values=values)


class Known:
    """A redaction for one session, which remembers the values that it took out."""

    def __init__(self, rules: Rules) -> None:
        self._found: dict[str, str] = {}
        self._redact = rules(self._found)
        self._own = rules is _own_rules
        self._values: dict[str, str] = {}
        self._harmless: set[str] = set()
        self.last_found_in = 0
        """The last turn with a new value: those before it have not been searched for it."""

    def __call__(self, text: str) -> tuple[str, Mapping[str, int]]:
        """`text` without secrets, nor the values that are known so far."""
        return self._without(text, self._redact)

    def _without(self, text: str, redact: Redact) -> tuple[str, Mapping[str, int]]:
        if text in self._harmless:  # the name of a tool, of a folder: said again and again
            return self._strike(text)
        made, counts = redact(text)
        if counts:
            self._remember_found()
        elif len(text) <= _SHORT and made == text:
            self._harmless.add(text)
        made, more = self._strike(made)
        return made, sum_counts(counts, more) if more else counts

    def for_part(self, part: object, among: "Signs | None" = None) -> "_ForPart | None":
        """The redaction of the texts in `part`; None where nothing could be taken out of them.

        One look at all of them tells by what any of them may hold a secret; `among` is what one
        at more than this has told.
        """
        from tacit.base import secrets

        text = "".join(_add_texts(part, [])) if self._own else ""
        if not self._own or (among is None and len(text) > _LONG and isinstance(part, Turn)):
            return _ForPart(self, None, self._redact)
        signs = secrets.signs_in(text, among)
        if signs is None and not self._values:
            return None
        signs = signs or secrets.NO_SIGNS
        return _ForPart(self, signs, partial(self._redact, among=signs))

    def redacted_turn(self, turn: Turn) -> tuple[Turn, dict[str, int]]:
        """`turn` without secrets, whatever the order in which it tells and repeats them."""
        before = len(self._values)
        made, counts = redacted(turn, self)
        if len(self._values) == before:
            return made, counts
        self.last_found_in = turn.number
        made, more = self.struck(made)
        return made, sum_counts(counts, more)

    def learn(self, turns: Iterable[Turn]) -> None:
        """Know the values of turns that were stored before."""
        for turn in turns:
            redacted(turn, self)

    def struck(self, value: S) -> tuple[S, dict[str, int]]:
        """`value`, redacted before, without the values that are known now."""
        return redacted(value, self._strike)

    def _remember_found(self) -> None:
        if not self._found:
            return
        for value, rule in dict(self._found).items():
            if len(self._values) >= MAX_KNOWN or value in self._values or not _is_odd(value):
                continue
            if not self._redact(value)[1]:  # else it is found without help wherever it stands
                self._values[value] = rule
        self._found.clear()
        # The longest first: a value may hold another.
        self._values = dict(sorted(self._values.items(), key=lambda known: -len(known[0])))

    def _strike(self, text: str) -> tuple[str, dict[str, int]]:
        counts: dict[str, int] = {}
        if not self._values:
            return text, counts
        for value, rule in self._values.items():
            if value in text:
                counts[rule] = counts.get(rule, 0) + text.count(value)
                text = text.replace(value, f"[redacted: {rule}]")
        return text, counts


class _ForPart:
    """The redaction of one session for a part of it."""

    def __init__(self, known: Known, signs: "Signs | None", redact: Redact) -> None:
        self._known, self._signs, self._redact = known, signs, redact

    def __call__(self, text: str) -> tuple[str, Mapping[str, int]]:
        return self._known._without(text, self._redact)

    def for_part(self, part: object) -> "_ForPart | None":
        """The redaction for a part of this one."""
        return self._known.for_part(part, self._signs)


def _add_texts(data: object, texts: list[str]) -> list[str]:
    """`texts`, with all those in `data`, a line each, behind the name that it has."""
    if isinstance(data, str):
        texts += (data, "\n")
    elif isinstance(data, _LISTS):
        for part in data:
            _add_texts(part, texts)
    elif isinstance(data, _NAMED):
        named = data if isinstance(data, dict) else msgspec.structs.asdict(data)
        for name, part in named.items():
            if isinstance(part, str):
                texts += (str(name), "=", part, "\n")
            else:
                texts += (str(name), "\n")  # also of nothing: a name may be a secret
                if part:
                    _add_texts(part, texts)
    return texts


# `list | tuple` would be made anew each time.
_LISTS, _NAMED = (list, tuple), (dict, msgspec.Struct)


def _is_odd(value: str) -> bool:
    """Whether a value would hardly stand anywhere by chance: no word, no number, no path."""
    from tacit.base.placeholders import is_path

    if not 8 <= len(value) <= 512 or value.startswith("~") or "://" in value or is_path(value):
        return False
    small = any(c.islower() for c in value)
    large = any(c.isupper() for c in value)
    digit = any(c.isdigit() for c in value)
    sign = any(not c.isalnum() for c in value)
    # Small letters and signs alone are words, and what the marks themselves are made of.
    return (digit and (small or large)) or (small and large and sign)


def sum_counts(*counts: Mapping[str, int]) -> dict[str, int]:
    """The sum of several counts, by rule."""
    found: dict[str, int] = {}
    for part in counts:
        for rule, times in part.items():
            found[rule] = found.get(rule, 0) + times
    return found


def redacted(
    value: S, redact: Redact, keep: frozenset[str] = frozenset()
) -> tuple[S, dict[str, int]]:
    """`value` with all its texts redacted but those of the fields in `keep`."""
    counts: dict[str, int] = {}
    for_value = redact.for_part(value) if isinstance(redact, Known) else redact
    if for_value is None:
        return value, counts
    plain = msgspec.to_builtins(value, builtin_types=(datetime,))  # no secret is a moment
    made = {
        name: redacted_data(part, for_value, counts) if name not in keep and part else part
        for name, part in plain.items()
    }
    return value if made == plain else msgspec.convert(made, type(value)), counts


def redacted_data(data: Any, redact: Redact, counts: dict[str, int] | None = None) -> Any:
    """Plain data with all its texts redacted, at any depth; `counts` is added to."""

    def clean(text: str, redact: Redact) -> str:
        if len(text) < 6:  # no secret is that short
            return text
        made, found = redact(text)
        if counts is not None:
            for rule, times in found.items():
                counts[rule] = counts.get(rule, 0) + times
        return made

    def entry(key: str, part: Any, redact: Redact) -> Any:
        # `{"password": "…"}`: the name tells what the value alone does not.
        if isinstance(part, str) and len(part) < 400 and not part.isspace():
            prefix = f"{key}="
            made = clean(prefix + part, redact)
            if made.startswith(prefix):
                return made[len(prefix) :]
        return walk(part, redact)

    def walk(part: Any, redact: Redact) -> Any:
        if isinstance(part, str):
            return clean(part, redact)
        if isinstance(part, dict):
            return {
                named(str(key), redact): entry(str(key), inner, redact)
                for key, inner in part.items()
            }
        if isinstance(part, list | tuple):
            return type(part)([in_list(inner, redact) for inner in part])
        return part

    def in_list(part: Any, redact: Redact) -> Any:
        for_part = redact.for_part(part) if isinstance(redact, Known | _ForPart) else redact
        return part if for_part is None else walk(part, for_part)

    def named(key: str, redact: Redact) -> str:
        # No secret is a name.
        return key if len(key) < 20 and key.isidentifier() else clean(key, redact)

    return walk(data, redact)
