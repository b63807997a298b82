"""The digest of a session, read in place of the transcript, and the session page by page.

What stands out by counting comes first; then what happened, in order: the user's words whole,
calls with their arguments, failures with the lines that matter, the rest cut or left out to fit a
budget; the head says with which step each page begins, where the rest can be read. Each piece
begins with a mark that carries a word found nowhere in the session and ends at the next mark, so
nothing inside can close a fence or open another; what a tool printed is closed by a mark as well.
"""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from tacit.base.display import one_line, shorten, shorten_middle, shorten_start
from tacit.base.secrets import clean
from tacit.learn.findings import Finding, Signal, session_signals
from tacit.traces import observations
from tacit.traces.trace import (
    REFUSED,
    Activation,
    Compaction,
    Step,
    Subagent,
    Text,
    Told,
    ToolCall,
    Trace,
)

Origin = Literal["user", "agent", "call", "output", "note"]
"""`user`: their words. `agent`: what it said. `call`: what it did. `output`: what a tool printed,
which nobody vouches for. `note`: ours."""

PASTE = 6000
"""A message of the user's longer than this holds something pasted, and is cut in the middle."""


class Lengths(msgspec.Struct, frozen=True):
    """How many characters are shown of each thing."""

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
            yield Block(
                "user", f"{turn.number}", "", shorten_middle(clean(turn.prompt.strip()), most)
            )
        for number, step in enumerate(turn.steps, 1):
            yield from _step(step, f"{turn.number}.{number}", lengths)


def _step(step: Step, name: str, lengths: Lengths) -> Iterator[Block]:
    match step:
        case Text(text=text) if text.strip():
            yield Block("agent", name, "", shorten_middle(clean(text.strip()), lengths.text))
        case ToolCall():
            yield from _call(step, name, lengths)
        case Activation(name=skill):
            yield Block("note", name, "", f"the skill {_short(skill)} was loaded")
        case Compaction():
            yield Block("note", name, "", "the host replaced the history so far by a summary")
        case Told(text=text, by="agent" | "plan" as by):
            title = "told its helper" if by == "agent" else "plan that the user accepted"
            yield Block("agent", name, title, shorten_middle(clean(text.strip()), lengths.text))
        case Told(text=text, by=by):
            shown = first_and_last(clean(text), lengths.fine)
            yield Block("output", name, f"{by}, put beside a prompt", shown)
        case Subagent(task=task):
            yield Block(
                "agent", name, "hands over", shorten_middle(clean(task.strip()), lengths.text)
            )


def _call(call: ToolCall, name: str, lengths: Lengths) -> Iterator[Block]:
    given = call.arguments
    command = observations.command_of(call) if call.kind == "shell" else ""
    body = (
        shorten_middle(clean(command.strip()), lengths.arguments)
        if command
        else arguments_excerpt(given, lengths.arguments, lengths.value)
    )
    yield Block("call", name, shorten(one_line(call.name), 60), body, call.failed)
    if call.error == REFUSED:
        yield Block("note", name, "", "the user refused this call")
    if call.reply:
        said = shorten_middle(clean(call.reply), PASTE)
        yield Block("user", name, "in refusing" if call.error == REFUSED else "in answer", said)
    if call.error == REFUSED:
        return  # what else stands there is the host's text for it
    if not call.finished:
        yield Block("note", name, "", "no result was recorded")
        return
    text = call.result if call.result.strip() else call.error
    if not text.strip():
        if call.failed:
            yield Block("output", name, "failed, said nothing", "", True)
        return
    text = clean(text)
    shown = (
        failure_excerpt(text, lengths.failed) if call.failed else first_and_last(text, lengths.fine)
    )
    if lengths is LONG and not call.failed:
        shown = shorten_middle(text.strip(), lengths.fine)
    size = f", {len(text):,} characters" if len(shown) < len(text.strip()) else ""
    state = "failed" if call.failed else "fine"
    yield Block("output", name, f"{state}{size}", shown, call.failed)


# Lines that say what went wrong, in the words that programs use for it.
_MATTERS = re.compile(
    r"\b(?:error|errors|exception|traceback|fatal|panic|failed|failure|fail|denied|refused|invalid"
    r"|undefined|unknown|unrecognized|unexpected|missing|not found|no such|cannot|could not|can't"
    r"|unable|must|required|expected|deprecated|warning|usage|hint|did you mean|abort(?:ed)?"
    r"|timed out|timeout|conflict|exit (?:code|status))\b|^E\s{2,}|[A-Z]\w+(?:Error|Exception)\b",
    re.IGNORECASE,
)
_NOISE = re.compile(r'^\s*(?:at |File "|\d+%|[#=\-*.\s]{3,}$|\|?\s*\^+~*\s*$)')


def first_and_last(text: str, most: int) -> str:
    """Of an output that is fine: all of a short one, else its first and its last line."""
    text = text.strip()
    if len(text) <= most:
        return text
    lines = [line for line in text.splitlines() if line.strip()]
    first, last = lines[0].rstrip(), lines[-1].strip()
    half = most // 2
    head = shorten(first, half)
    if len(lines) == 1:
        return f"{head}\n[{len(text):,} characters]"
    return f"{head}\n[{len(lines):,} lines]\n{shorten_start(last, half)}"


def failure_excerpt(text: str, most: int) -> str:
    """Of an output that failed: the lines that say why, and the last ones, in their order."""
    text = text.strip()
    if len(text) <= most:
        return text
    lines = text.splitlines()
    scores = [_score(line, at, len(lines)) for at, line in enumerate(lines)]
    chosen: set[int] = set()
    budget_left = most
    for at in sorted(range(len(lines)), key=lambda at: (-scores[at], -at)):
        size = min(len(lines[at]), 240) + 1
        if scores[at] <= 0 or size > budget_left:
            continue
        chosen.add(at)
        budget_left -= size
    return "\n".join(_with_gaps(lines, sorted(chosen)))


def _score(line: str, at: int, count: int) -> int:
    if not line.strip() or _NOISE.match(line):
        return 0
    score = 4 if _MATTERS.search(line) else 0
    if at >= count - 3:
        score += 3
    return score + (at < 1)


def _with_gaps(lines: list[str], chosen: list[int]) -> list[str]:
    out: list[str] = []
    before = -1
    for at in chosen:
        if at > before + 1:
            out.append(f"[{at - before - 1} lines]")
        out.append(shorten(lines[at].rstrip(), 240))
        before = at
    if before < len(lines) - 1:
        out.append(f"[{len(lines) - 1 - before} lines]")
    return out


def arguments_excerpt(given: dict[str, Any], most: int, each: int) -> str:
    """A call's arguments as JSON on one line; long values cut, and the whole if that is long."""
    shown = {key: _shortened(value, each) for key, value in given.items()}
    return shorten_middle(
        clean(msgspec.json.encode(shown, enc_hook=str).decode()), most, inline=True
    )


def _shortened(value: Any, most: int) -> Any:
    if isinstance(value, str):
        return shorten_middle(value, most, inline=True)
    if isinstance(value, dict):
        return {str(key): _shortened(inner, most) for key, inner in list(value.items())[:20]}
    if isinstance(value, list | tuple):
        return [_shortened(inner, most) for inner in value[:20]]
    return value


PAGE = 8000
"""Characters of a page, about."""


class Pages(msgspec.Struct, frozen=True):
    """A session cut into pages. `starts` has the first step of each."""

    texts: tuple[str, ...]
    starts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def page_of(self, step: str) -> int:
        """The number of the page, from 1, on which `step` begins."""
        wanted = _order(step)
        found = 1
        for number, start in enumerate(self.starts, 1):
            if _order(start) > wanted:
                break
            found = number
        return found


def pages(trace: Trace, size: int = PAGE) -> Pages:
    """`trace` in pages of about `size` characters. The same trace gives the same pages."""
    fence = Fence(trace)
    texts: list[list[str]] = [[]]
    starts: list[str] = []
    used = 0
    for block in blocks(trace, LONG):
        for part in _parts(block, size):
            shown = fence.around(part)
            if texts[-1] and used + len(shown) > size:
                texts.append([])
                used = 0
            if not texts[-1]:
                starts.append(part.step)
            texts[-1].append(shown)
            used += len(shown) + 1
    if not texts[0]:
        return Pages((), ())
    return Pages(tuple("\n".join(page) for page in texts), tuple(starts))


def _parts(block: Block, size: int) -> list[Block]:
    """A block that is longer than a page in several, each between marks of its own."""
    if len(block.body) <= size:
        return [block]
    bodies = [block.body[at : at + size] for at in range(0, len(block.body), size)]
    replace = msgspec.structs.replace
    return [
        replace(
            block, body=body, title=f"{block.title}, part {number} of {len(bodies)}".strip(", ")
        )
        for number, body in enumerate(bodies, 1)
    ]


def _order(step: str) -> tuple[int, int]:
    turn, _, number = step.partition(".")
    return int(turn), int(number or 0)


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
    paged = pages(trace)
    found = session_signals(trace, findings)
    head = _head(trace, fence, found, paged)
    every = list(blocks(trace, SHORT))
    budget_left = budget - len(head)
    chosen = _choose(every, found, fence, budget_left)
    body = _body(every, chosen, fence)
    return Digest(
        "\n".join([*head.splitlines(), *body]),
        fence.word,
        len(paged),
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


def _head(trace: Trace, fence: Fence, found: list[Signal], paged: Pages) -> str:
    counts = observations.counts(trace)
    head = trace.head
    about = [f"host {_short(head.host)}", f"model {_short(head.model) or 'unknown'}"]
    if head.ended:
        about.append(f"ended {head.ended:%Y-%m-%d}")
    about.append(f"{counts.prompts} messages, {counts.calls} calls, {counts.failures} failed")
    lines = [
        f"# Session {shorten(one_line(trace.id), 200)}",
        "; ".join(about),
        f"Marks of this session carry the word {fence.word}.",
        f"Pages by their first step: {', '.join(paged.starts)}",
    ]
    if trace.skills:
        lines.append(f"Skills used: {', '.join(_short(name) for name in trace.skills[:20])}")
    if found:
        lines += ["", "## Stands out, by counting"]
        lines += [f"- {_place(signal)}{clean(signal.text)}" for signal in found]
    return "\n".join([*lines, "", "## What happened"])


def _short(text: str) -> str:
    return shorten(one_line(text), 80)


def _place(signal: Signal) -> str:
    if not signal.steps:
        return ""
    return f"{' -> '.join(signal.steps)}: "


def _choose(every: list[Block], found: list[Signal], fence: Fence, budget_left: int) -> set[int]:
    """Which blocks are shown: all of the user's, then the most telling while the budget lasts."""
    marked = {step for signal in found for step in signal.steps}
    chosen = {at for at, block in enumerate(every) if block.origin == "user"}
    budget_left -= sum(len(fence.around(every[at])) + 1 for at in chosen)
    last = len(every) - 1
    centres = [at for at, block in enumerate(every) if block.step in marked] or [last]
    order = sorted(
        (at for at in range(len(every)) if at not in chosen),
        key=lambda at: (-_worth(every[at], marked, at == last), _distance(at, centres)),
    )
    gaps = 0
    for at in order:
        cost = len(fence.around(every[at])) + 1
        # A block in the middle of what is left out may make two gaps of one.
        if cost + _GAP <= budget_left - gaps:
            chosen.add(at)
            budget_left -= cost
            gaps = min(gaps + _GAP // 8, 8 * _GAP)
    return chosen


def _distance(at: int, centres: list[int]) -> int:
    """How many blocks away the nearest one is that stands out."""
    near = bisect_left(centres, at)
    return min(abs(at - centre) for centre in centres[max(0, near - 1) : near + 1])


def _worth(block: Block, marked: set[str], is_last: bool) -> int:
    """How much a block tells; the call and the output of one step go together."""
    near = 40 if block.step in marked else 0
    if block.origin == "call":
        return 50 + near + (20 if block.failed else 0)
    if block.origin == "output":
        return (60 if block.failed else 10) + near
    if block.origin == "agent":
        return 65 if is_last else 30
    return 45 + near


def _body(every: list[Block], chosen: set[int], fence: Fence) -> list[str]:
    lines: list[str] = []
    left: list[Block] = []
    for at, block in enumerate(every):
        if at not in chosen:
            left.append(block)
            continue
        lines += _gap(left)
        left = []
        lines.append(fence.around(block))
    return [*lines, *_gap(left)]


def _gap(left: list[Block]) -> list[str]:
    """One line for a run of calls that are left out; words and outputs go without one."""
    steps = [block.step for block in left if block.origin == "call"]
    if not steps:
        return []
    return [
        f"({steps[0]} left out)" if len(steps) == 1 else f"({steps[0]} to {steps[-1]} left out)"
    ]
