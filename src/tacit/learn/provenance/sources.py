"""The two sides of a session: what the user said and the agent did, and what tools printed.

What the agent said counts for neither: it may be its own thought or an echo of what it read. Nor
does a skill that was loaded: it is the user's, and what repeats it is the gate's business.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from tacit.traces.trace import ToolCall, Trace

_MOST = 200_000
"""Characters of one text that are looked at; the beginning and the end of a longer one."""
_MOST_PRINTED = 4_000_000
_RUN = 8
_COPIED = 0.5
"""Part of a written text that must stand in earlier output for it to count as copied."""


class Said(msgspec.Struct, frozen=True):
    """A text and the step of the session that it stands in."""

    step: str
    text: str


class Sources(msgspec.Struct, frozen=True):
    """What a skill's words are held against."""

    done: tuple[Said, ...] = ()
    """The user's words, and what the agent's calls were given."""
    printed: tuple[Said, ...] = ()
    """What tools gave back."""


def sources(*traces: Trace) -> Sources:
    """The two sides of some sessions."""
    done: list[Said] = []
    printed: list[Said] = []
    room = _MOST_PRINTED
    for trace in traces:
        for turn in trace.turns:
            if turn.prompt:
                done.append(Said(f"{turn.number}", _bounded(turn.prompt)))
            for number, step in enumerate(turn.steps, 1):
                if not isinstance(step, ToolCall):
                    continue
                name = f"{turn.number}.{number}"
                # One text a call: what it did is all that it was given, together.
                done.append(Said(name, "\n".join(_given(step, printed))))
                if step.kind == "ask":  # the answer is the user's
                    done.append(Said(name, _bounded(step.result)))
                elif step.kind != "skill" and step.result.strip() and room > 0:
                    printed.append(Said(name, _bounded(step.result)))
                    room -= len(printed[-1].text)
    return Sources(tuple(done), tuple(printed))


def _given(call: ToolCall, printed: list[Said]) -> Iterator[str]:
    """The texts that a call was given; not those that were copied from what a tool printed."""
    for text in _strings(call.arguments):
        if call.kind in ("write", "edit") and len(text.split()) > _RUN and _is_copy(text, printed):
            continue
        yield _bounded(text)


def _is_copy(text: str, printed: list[Said]) -> bool:
    runs = _runs(text)
    known = set().union(*(_runs(said.text) for said in printed[-50:])) if printed else set()
    return bool(runs) and len(runs & known) / len(runs) >= _COPIED


def _runs(text: str) -> set[str]:
    words = text.casefold().split()[:20_000]
    return {" ".join(words[at : at + _RUN]) for at in range(max(1, len(words) - _RUN + 1))}


def _strings(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < 6 and isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner, depth + 1)
    elif depth < 6 and isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner, depth + 1)


def _bounded(text: str) -> str:
    if len(text) <= _MOST:
        return text
    return text[: _MOST // 2] + "\n" + text[-_MOST // 2 :]
