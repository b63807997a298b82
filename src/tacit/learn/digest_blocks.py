"""A session as blocks: who said or did each thing, in the order in which it happened.

Owns how one step is told, short or at length, and the fence. Each piece that came from a session
begins with a mark that carries a word found nowhere in it, and ends at the next mark, so nothing
inside can close a fence or open another. What a tool printed is closed by a mark as well.
`digest.py` chooses among the blocks, `pages.py` shows them all.
"""

import hashlib
from collections.abc import Iterator
from typing import Literal

import msgspec

from tacit.base.terminal import one_line
from tacit.learn.telling import arguments, clean, cut, edges, failing
from tacit.traces import derived
from tacit.traces.trace import (
    REFUSED,
    Activation,
    Compaction,
    Step,
    Subagent,
    Text,
    ToolCall,
    Trace,
)

Origin = Literal["user", "agent", "call", "output", "note"]
"""`user`: their words. `agent`: what it said. `call`: what it did. `output`: what a tool printed,
which nobody vouches for. `note`: ours."""

PASTE = 6000
"""A message of the user's longer than this holds something pasted, and is cut in the middle."""


class Lengths(msgspec.Struct, frozen=True):
    """How much of each thing is told."""

    text: int
    arguments: int
    value: int
    fine: int
    failed: int


SHORT = Lengths(text=320, arguments=420, value=160, fine=120, failed=700)
LONG = Lengths(text=4000, arguments=6000, value=3000, fine=4000, failed=6000)


class Block(msgspec.Struct, frozen=True):
    """One thing that happened. `step` is its number: `3` a prompt, `3.2` the second step."""

    origin: Origin
    step: str
    title: str
    body: str
    failed: bool = False


class Fence:
    """The marks around what came from a session."""

    def __init__(self, trace: Trace) -> None:
        data = msgspec.json.encode(trace, enc_hook=str)
        text = data.decode("utf-8", "replace")
        number = 0
        while True:
            seed = data + number.to_bytes(4, "big")
            self.word = "k" + hashlib.blake2b(seed, digest_size=3).hexdigest()
            if self.word not in text:
                break
            number += 1

    def around(self, block: Block) -> str:
        """`block` behind its mark; an output between two."""
        title = f" {block.title}" if block.title else ""
        opening = f"<{self.word} {block.origin} {block.step}{title}>"
        if block.origin == "output":
            return f"{opening}\n{block.body}\n</{self.word}>"
        return f"{opening} {block.body}"


def blocks(trace: Trace, lengths: Lengths = SHORT) -> Iterator[Block]:
    """Everything that happened, in order."""
    for turn in trace.turns:
        if turn.prompt:
            most = PASTE if lengths is SHORT else 4 * PASTE
            yield Block("user", f"{turn.number}", "", cut(clean(turn.prompt.strip()), most))
        for number, step in enumerate(turn.steps, 1):
            yield from _step(step, f"{turn.number}.{number}", lengths)


def _step(step: Step, name: str, lengths: Lengths) -> Iterator[Block]:
    match step:
        case Text(text=text) if text.strip():
            yield Block("agent", name, "", cut(clean(text.strip()), lengths.text))
        case ToolCall():
            yield from _call(step, name, lengths)
        case Activation(name=skill):
            yield Block("note", name, "", f"the skill {one_line(skill)[:80]} was loaded")
        case Compaction():
            yield Block("note", name, "", "the host replaced the history so far by a summary")
        case Subagent(task=task):
            yield Block("agent", name, "hands over", cut(clean(task.strip()), lengths.text))


def _call(call: ToolCall, name: str, lengths: Lengths) -> Iterator[Block]:
    given = call.arguments
    command = derived.command_of(call) if call.kind == "shell" else ""
    body = (
        cut(clean(command.strip()), lengths.arguments)
        if command
        else arguments(given, lengths.arguments, lengths.value)
    )
    yield Block("call", name, one_line(call.name)[:60], body, call.failed)
    if call.error == REFUSED:
        yield Block("note", name, "", "the user refused this call")
    if not call.finished:
        yield Block("note", name, "", "no result was recorded")
        return
    text = call.result if call.result.strip() else call.error
    if not text.strip():
        if call.failed:
            yield Block("output", name, "failed, said nothing", "", True)
        return
    text = clean(text)
    shown = failing(text, lengths.failed) if call.failed else edges(text, lengths.fine)
    if lengths is LONG and not call.failed:
        shown = cut(text.strip(), lengths.fine)
    size = f", {len(text):,} characters" if len(shown) < len(text.strip()) else ""
    state = "failed" if call.failed else "fine"
    yield Block("output", name, f"{state}{size}", shown, call.failed)
