"""Taking secrets out before anything is stored: every text in a struct, at any depth."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

Redact = Callable[[str], tuple[str, Mapping[str, int]]]
"""A text without its secrets, and how many were taken out, by rule."""

S = TypeVar("S", bound=msgspec.Struct)


def standard() -> Redact:
    """The rules that come with Tacit."""
    from tacit.base.secrets import redact

    return redact


def redacted(
    value: S, redact: Redact, keep: frozenset[str] = frozenset()
) -> tuple[S, dict[str, int]]:
    """`value` with all its texts redacted but those of the fields in `keep`."""
    counts: dict[str, int] = {}

    def clean(text: str) -> str:
        if len(text) < 6:  # no secret is that short
            return text
        made, found = redact(text)
        for rule, times in found.items():
            counts[rule] = counts.get(rule, 0) + times
        return made

    def entry(key: str, part: Any) -> Any:
        # `{"password": "…"}`: the name tells what the value alone does not.
        if isinstance(part, str) and len(part) < 400 and not part.isspace():
            prefix = f"{key}="
            made = clean(prefix + part)
            if made.startswith(prefix):
                return made[len(prefix) :]
        return walk(part)

    def walk(part: Any) -> Any:
        if isinstance(part, str):
            return clean(part)
        if isinstance(part, dict):
            return {clean(str(key)): entry(str(key), inner) for key, inner in part.items()}
        if isinstance(part, list | tuple):
            return [walk(inner) for inner in part]
        return part

    plain = msgspec.to_builtins(value)
    made = {name: part if name in keep else walk(part) for name, part in plain.items()}
    return msgspec.convert(made, type(value)), counts
