"""The digest of a session: what a reviewer reads in place of the transcript.

What stands out comes first, by counting; then what happened, in order: the user's words whole,
calls with their arguments, failures with the lines that matter, the rest cut or left out to fit a
budget. Every piece says where it came from (see `digest_blocks.py`), and what was left out says on
which page it can be read (`pages.py`).
"""

from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from tacit.base.terminal import one_line
from tacit.learn.counting import Finding
from tacit.learn.digest_blocks import SHORT, Block, Fence, blocks
from tacit.learn.pages import Pages, pages
from tacit.learn.signals import Signal, signals
from tacit.learn.telling import clean
from tacit.traces import derived
from tacit.traces.trace import Trace

LEAST, MOST = 3_000, 24_000
"""Between these the budget grows with the session."""
SHARE = 8
"""A digest may have one part in this many of the session's characters."""
_GAP = 60
"""What the line costs that says that something was left out."""


class Digest(msgspec.Struct, frozen=True):
    """What a reviewer is shown of a session."""

    text: str
    word: str
    """What the marks of this session carry."""
    pages: int
    shown: int
    """Blocks that are in it, and in all."""
    all: int
    characters: int
    """Of the session itself."""


def digest(trace: Trace, *, budget: int = 0, findings: Iterable[Finding] = ()) -> Digest:
    """The digest of `trace`. The budget, in characters, is by default a part of its size.

    The user's words are whole, so a session in which they alone pass the budget passes it too.
    """
    size = size_of(trace)
    budget = budget or min(MOST, max(LEAST, size // SHARE))
    fence = Fence(trace)
    book = pages(trace)
    found = signals(trace, findings)
    head = _head(trace, fence, found, book)
    every = list(blocks(trace, SHORT))
    room = budget - len(head)
    chosen = _choose(every, found, fence, room)
    body = _tell(every, chosen, fence, book)
    return Digest(
        "\n".join([*head.splitlines(), *body]),
        fence.word,
        len(book),
        len(chosen),
        len(every),
        size,
    )


def size_of(trace: Trace) -> int:
    """The characters of a session: what was said, called and printed."""
    total = 0
    for turn in trace.turns:
        total += len(turn.prompt) + sum(len(text) for text in turn.texts)
        for call in turn.calls:
            total += len(call.result) + len(msgspec.json.encode(call.arguments, enc_hook=str))
    return total


def _head(trace: Trace, fence: Fence, found: list[Signal], book: Pages) -> str:
    counts = derived.counts(trace)
    head = trace.head
    about = [f"host {_short(head.host)}", f"model {_short(head.model) or 'unknown'}"]
    if head.ended:
        about.append(f"ended {head.ended:%Y-%m-%d}")
    about.append(
        f"{counts.prompts} messages, {counts.calls} calls, {counts.failures} failed, "
        f"{len(book)} pages"
    )
    lines = [
        f"# Session {one_line(trace.id)[:200]}",
        "; ".join(about),
        f"Marks of this session carry the word {fence.word}.",
    ]
    if trace.skills:
        lines.append(f"Skills used: {', '.join(_short(name) for name in trace.skills[:20])}")
    if found:
        lines += ["", "## Stands out, by counting"]
        lines += [f"- {_place(signal)}{clean(signal.text)}" for signal in found]
    return "\n".join([*lines, "", "## What happened"])


def _short(text: str) -> str:
    return one_line(text)[:80]


def _place(signal: Signal) -> str:
    if not signal.steps:
        return ""
    return f"{' -> '.join(signal.steps)}: "


def _choose(every: list[Block], found: list[Signal], fence: Fence, room: int) -> set[int]:
    """Which blocks are told: all of the user's, then by worth while there is room."""
    telling = {step for signal in found for step in signal.steps}
    chosen = {at for at, block in enumerate(every) if block.origin == "user"}
    room -= sum(len(fence.around(every[at])) + 1 for at in chosen)
    last = len(every) - 1
    centres = [at for at, block in enumerate(every) if block.step in telling] or [last]
    order = sorted(
        (at for at in range(len(every)) if at not in chosen),
        key=lambda at: (-_worth(every[at], telling, at == last), _far(at, centres)),
    )
    gaps = 0
    for at in order:
        cost = len(fence.around(every[at])) + 1
        # A block in the middle of what is left out may make two gaps of one.
        if cost + _GAP <= room - gaps:
            chosen.add(at)
            room -= cost
            gaps = min(gaps + _GAP // 8, 8 * _GAP)
    return chosen


def _far(at: int, centres: list[int]) -> int:
    """How far a block is from the nearest that stands out."""
    near = bisect_left(centres, at)
    return min(abs(at - centre) for centre in centres[max(0, near - 1) : near + 1])


def _worth(block: Block, telling: set[str], is_last: bool) -> int:
    """How much a block tells; the same step's call and output go together."""
    near = 40 if block.step in telling else 0
    if block.origin == "call":
        return 50 + near + (20 if block.failed else 0)
    if block.origin == "output":
        return (60 if block.failed else 10) + near
    if block.origin == "agent":
        return 65 if is_last else 30
    return 45 + near


def _tell(every: list[Block], chosen: set[int], fence: Fence, book: Pages) -> list[str]:
    lines: list[str] = []
    left: list[Block] = []
    for at, block in enumerate(every):
        if at not in chosen:
            left.append(block)
            continue
        lines += _gap(left, book)
        left = []
        lines.append(fence.around(block))
    return [*lines, *_gap(left, book)]


def _gap(left: list[Block], book: Pages) -> list[str]:
    """One line for a run of calls that are left out; an output alone goes without a word."""
    calls = [block for block in left if block.origin in ("call", "agent")]
    if not calls:
        return []
    first, last = calls[0].step, calls[-1].step
    run = first if first == last else f"{first} to {last}"
    return [f"({run} left out: page {book.page_of(first)})"]
