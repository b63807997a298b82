"""Taking secrets out before anything is stored: every text in a struct, at any depth.

A value that is known for a secret by the words beside it (`password: …`) is taken out wherever
else it stands in the same session, though nothing tells there. The values are known only while a
session is being written, and kept nowhere.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from math import inf
from typing import Any, TypeVar

import msgspec

from tacit.traces.trace import Step, Turn

Redact = Callable[..., tuple[str, Mapping[str, int]]]
"""A text without its secrets, and how many were taken out, by rule."""
Rules = Callable[[dict[str, str]], Redact]
"""The redaction that writes each value that it takes out, and its rule, into what it is given."""

S = TypeVar("S", bound=msgspec.Struct)

VERSION = 9
"""Of the rules that come with Tacit. Raise it when they grow: sessions that were stored under fewer
are then redacted again."""
MAX_KNOWN = 64
"""So many values are looked for in the rest of a session; more are no person's passwords."""
_LONG = 10_000
"""Bytes of a turn that holds signs of some secret nearly always: its steps are looked at."""
_SHORT = 100
"""Characters of a text that is remembered for having no secret in it."""


def rules(redact: Redact | None = None) -> Rules:
    """The rules that come with Tacit; or `redact`, which tells no values."""
    return _own_rules if redact is None else lambda _: redact


def _own_rules(values: dict[str, str]) -> Redact:
    from tacit.base import secrets  # who only reads sessions needs none

    return partial(secrets.redact, values=values)


def _own_signs() -> Callable[[bytes], bool]:
    from tacit.base import secrets

    return secrets.may_hold


class Known:
    """A redaction for one session, which remembers the values that it took out."""

    def __init__(self, rules: Rules) -> None:
        self._found: dict[str, str] = {}
        self._redact = rules(self._found)
        self._may_hold = _own_signs() if rules is _own_rules else None
        self._values: dict[str, str] = {}
        self._harmless: set[str] = set()
        self.last_found_in = 0
        """The last turn with a new value: those before it have not been searched for it."""

    def __call__(self, text: str) -> tuple[str, Mapping[str, int]]:
        """`text` without secrets, nor the values that are known so far."""
        if text in self._harmless:  # the name of a tool, of a folder: said again and again
            return self._strike(text)
        made, counts = self._redact(text)
        if counts:
            self._remember_found()
        elif len(text) <= _SHORT and made == text:
            self._harmless.add(text)
        made, more = self._strike(made)
        return made, sum_counts(counts, more) if more else counts

    def may_change(self, part: msgspec.Struct, most: float = inf) -> bool:
        """Whether anything could be taken out of the texts in `part`: one look at all of them, if
        they are no longer than `most`."""
        if self._may_hold is None or self._values:
            return True
        data = msgspec.json.encode(part)
        return len(data) > most or self._may_hold(data)

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
    if isinstance(redact, Known) and isinstance(value, Turn) and value.steps:
        if not redact.may_change(value, _LONG):
            return value, counts
        # Most steps hold nothing.
        rest, counts = redacted(msgspec.structs.replace(value, steps=()), redact, keep)
        steps = tuple([_redacted_step(step, redact, counts) for step in value.steps])
        return msgspec.structs.replace(rest, steps=steps), counts
    if isinstance(redact, Known) and not redact.may_change(value):
        return value, counts
    plain = _plain(value)
    made = {
        name: redacted_data(part, redact, counts) if name not in keep and part else part
        for name, part in plain.items()
    }
    return value if made == plain else msgspec.convert(made, type(value)), counts


def _redacted_step(step: Step, known: Known, counts: dict[str, int]) -> Step:
    if not known.may_change(step):
        return step
    plain = _plain(step)
    made = redacted_data(plain, known, counts)
    return step if made == plain else msgspec.convert(made, type(step))


def _plain(value: msgspec.Struct) -> Any:
    return msgspec.to_builtins(value, builtin_types=(datetime,))  # no secret is a moment


def redacted_data(data: Any, redact: Redact, counts: dict[str, int] | None = None) -> Any:
    """Plain data with all its texts redacted, at any depth; `counts` is added to."""

    def clean(text: str) -> str:
        if len(text) < 6:  # no secret is that short
            return text
        made, found = redact(text)
        if counts is not None:
            for rule, times in found.items():
                counts[rule] = counts.get(rule, 0) + times
        return made

    def entry(key: str, part: Any) -> Any:
        # `{"password": "…"}`: the name tells what the value alone does not, and the value what it
        # does not where it stands first in its line.
        if isinstance(part, str) and key not in _SAID and len(part) < 400 and not part.isspace():
            prefix = f"{key}="
            made = clean(prefix + part)
            part = made[len(prefix) :] if made.startswith(prefix) else part
        return walk(part)

    def walk(part: Any) -> Any:
        if isinstance(part, str):
            return clean(part)
        if isinstance(part, dict):
            return {named(str(key)): entry(str(key), inner) for key, inner in part.items()}
        if isinstance(part, _LISTS):
            return type(part)([walk(inner) for inner in part])
        return part

    def named(key: str) -> str:
        # No secret is a name.
        return key if len(key) < 20 and key.isidentifier() else clean(key)

    return walk(data)


_SAID = {
    "arguments", "by", "command", "content", "cwd", "description", "error", "file_path", "host",
    "id", "input", "kind", "message", "model", "name", "output", "path", "pattern", "prompt",
    "query", "reply", "result", "session", "skill", "source", "stderr", "stdout", "summary",
    "text", "title", "tool", "turn", "type",
}  # fmt: skip
"""Names of what was said, run or printed: they tell nothing of it."""
_LISTS = (list, tuple)  # `list | tuple` would be made anew each time
