"""The digest of a session, read in place of the transcript, and the session page by page.

What stands out by counting comes first; then what happened, in order. Of each turn the user's
words, every failure, the agent's last words and how it ended are always there, cut as short as the
budget demands; runs of reading and searching are one line; the rest is there while the budget
lasts, the end of the session before its middle. The head says with which step each page begins,
where the rest can be read. Each piece begins with a mark that carries a word found nowhere in the
session and ends at the next mark, so nothing inside can close a fence or open another; what a tool
printed is closed by a mark as well.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import msgspec

from tacit.base.display import one_line, shorten, shorten_middle, shorten_start
from tacit.base.secrets import clean
from tacit.learn.demands import Finding
from tacit.learn.signals import Signal, session_signals
from tacit.traces import observations, tool_calls
from tacit.traces.outcomes import Outcome, call_outcome
from tacit.traces.task_outcomes import task_outcome, task_outcomes
from tacit.traces.trace import (
    Activation,
    Compaction,
    Step,
    Subagent,
    Text,
    Told,
    ToolCall,
    Trace,
    Turn,
)

Origin = Literal["user", "agent", "call", "output", "note"]
"""`user`: their words. `agent`: what it said. `call`: what it did. `output`: what a tool printed,
which nobody vouches for. `note`: ours."""

PASTE = 6000
"""A message of the user's longer than this holds something pasted, and is cut in the middle."""


class Lengths(msgspec.Struct, frozen=True):
    """How many characters are shown of each thing."""

    prompt: int
    text: int
    arguments: int
    value: int
    fine: int
    failed: int


LONG = Lengths(prompt=4 * PASTE, text=4000, arguments=6000, value=3000, fine=4000, failed=6000)
SHORT = Lengths(prompt=PASTE, text=480, arguments=420, value=160, fine=120, failed=700)
# Tried in turn until what must be there fits.
_SHORTER = (
    SHORT,
    Lengths(prompt=2000, text=400, arguments=280, value=120, fine=120, failed=420),
    Lengths(prompt=900, text=300, arguments=200, value=80, fine=100, failed=260),
    Lengths(prompt=450, text=220, arguments=140, value=60, fine=80, failed=160),
    Lengths(prompt=240, text=150, arguments=90, value=40, fine=60, failed=110),
    Lengths(prompt=140, text=100, arguments=60, value=30, fine=40, failed=80),
    Lengths(prompt=80, text=60, arguments=40, value=20, fine=30, failed=50),
)


_MOST_STARTS = 40
"""Pages that the head names."""


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
        yield from _prompt(turn, lengths)
        for number, step in enumerate(turn.steps, 1):
            yield from _step(step, f"{turn.number}.{number}", lengths)


def _prompt(turn: Turn, lengths: Lengths) -> Iterator[Block]:
    if turn.prompt:
        said = shorten_middle(clean(turn.prompt.strip()), lengths.prompt)
        yield Block("user", f"{turn.number}", "", said)


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


_STATES = {"worked": "fine", "unclear": "unclear"}


def _call(call: ToolCall, name: str, lengths: Lengths) -> Iterator[Block]:
    outcome = call_outcome(call)
    went_wrong = outcome.failed or call.failed
    command = tool_calls.command_of(call) if call.kind == "shell" else ""
    body = (
        shorten_middle(clean(command.strip()), lengths.arguments)
        if command
        else arguments_excerpt(call.arguments, lengths.arguments, lengths.value)
    )
    yield Block("call", name, shorten(one_line(call.name), 60), body, went_wrong)
    if outcome.state == "refused":
        yield Block("note", name, "", "the user refused this call")
    if said := call.reply:
        title = "in refusing it" if outcome.state == "refused" else "in answer"
        yield Block("user", name, title, shorten_middle(clean(said), lengths.prompt))
    if outcome.state == "refused":
        return  # what else stands there is the host's text for it
    if not call.finished:
        yield Block("note", name, "", "no result was recorded")
        return
    yield from _output(call, outcome, name, lengths)


def _output(call: ToolCall, outcome: Outcome, name: str, lengths: Lengths) -> Iterator[Block]:
    went_wrong = outcome.failed or call.failed
    text = call.result if call.result.strip() else call.error
    if not text.strip():
        if went_wrong:
            yield Block("output", name, "failed, said nothing", "", True)
        return
    text = clean(text)
    if went_wrong:
        shown = failure_excerpt(text, lengths.failed)
    elif lengths is LONG:
        shown = shorten_middle(text.strip(), lengths.fine)
    else:
        shown = first_and_last(text, lengths.fine)
    size = f", {len(text):,} characters" if len(shown) < len(text.strip()) else ""
    state = _STATES.get(outcome.state, outcome.state)
    yield Block("output", name, f"{state}{size}", shown, went_wrong)


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
_GAP = 32
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

    What must be there may take more than that part, up to the most a digest has.
    """
    size = size_of(trace)
    fence = Fence(trace)
    paged = pages(trace)
    found = session_signals(trace, findings)
    head = _head(trace, fence, found, paged)
    wanted = budget or min(MOST, max(LEAST, size // SHARE))
    marked = {step for signal in found for step in signal.steps}
    pieces, cost = _fitting(trace, fence, marked, max(wanted, budget or MOST) - len(head) - 1)
    chosen = _choose(pieces, fence, max(0, wanted - len(head) - cost))
    body = _body([piece.block for piece in pieces], chosen, fence)
    return Digest(
        "\n".join([*head.splitlines(), *body]),
        fence.word,
        len(paged),
        len(chosen),
        len(pieces),
        size,
    )


class _Piece(msgspec.Struct, frozen=True):
    """A block, how much it tells, and whether it must be there."""

    block: Block
    worth: int
    must: bool = False


def _fitting(trace: Trace, fence: Fence, marked: set[str], most: int) -> tuple[list[_Piece], int]:
    """The pieces of a session, cut so that what must be there fits, and what that costs."""
    for lengths in _SHORTER:
        pieces = list(_pieces(trace, lengths, marked))
        musts = [piece for piece in pieces if piece.must]
        cost = sum(len(fence.around(piece.block)) + 1 for piece in musts) + _gaps_of(pieces)
        if cost <= most:
            break
    else:
        return _without_some(pieces, fence, most)
    return pieces, cost


def _gaps_of(pieces: list[_Piece]) -> int:
    """What the lines cost that name what was left out, at most: one for each piece that stays."""
    kept = [piece.must for piece in pieces]
    return _GAP * sum(before and not now for before, now in pairwise([True, *kept]))


def _without_some(pieces: list[_Piece], fence: Fence, most: int) -> tuple[list[_Piece], int]:
    """Of a session that is too long even so: the user's words and outcomes, the latest last."""
    order = {"user": 0, "note": 1, "output": 2, "call": 3, "agent": 4}
    at_most = most - _GAP * 8
    ranked = sorted(
        (at for at, piece in enumerate(pieces) if piece.must),
        key=lambda at: (order[pieces[at].block.origin], -at),
    )
    kept: set[int] = set()
    cost = _GAP * 8
    for at in ranked:
        size = len(fence.around(pieces[at].block)) + 1 + _GAP // 2
        if cost + size <= at_most:
            kept.add(at)
            cost += size
    replace = msgspec.structs.replace
    return [replace(piece, must=at in kept, worth=0) for at, piece in enumerate(pieces)], most


def _pieces(trace: Trace, lengths: Lengths, marked: set[str]) -> Iterator[_Piece]:
    """What happened, turn by turn, with how each ended."""
    outcomes = task_outcomes([task_outcome(turn) for turn in trace.turns])
    last = len(trace.turns) - 1
    for at, (turn, outcome) in enumerate(zip(trace.turns, outcomes, strict=True)):
        for block in _prompt(turn, lengths):
            yield _Piece(block, 100, True)
        end = 25 if at == last else 0
        final = max((n for n, step in enumerate(turn.steps) if _speaks(step)), default=-1)
        for group in _steps_in_groups(turn):
            name = f"{turn.number}.{group[0] + 1}"
            if len(group) > 1:
                yield _Piece(_looked_around(turn, group, name, lengths), 20 + end)
                continue
            for block in _step(turn.steps[group[0]], name, lengths):
                must = block.failed or block.origin == "user" or group[0] == final
                yield _Piece(block, _worth(block, marked) + end, must)
        if turn.steps:
            yield _Piece(
                Block("note", f"{turn.number}", "ended", _ended(outcome, lengths)), 90, True
            )


def _speaks(step: Step) -> bool:
    return isinstance(step, Text) and bool(step.text.strip())


_LOOKS = ("read", "search", "web")


def _steps_in_groups(turn: Turn) -> Iterator[list[int]]:
    """The steps of a turn; those of a run of reading and searching together."""
    run: list[int] = []
    for at, step in enumerate(turn.steps):
        looks = isinstance(step, ToolCall) and step.kind in _LOOKS and not call_outcome(step).failed
        if looks and not (isinstance(step, ToolCall) and step.failed):
            run.append(at)
            continue
        if run:
            yield run
            run = []
        yield [at]
    if run:
        yield run


def _looked_around(turn: Turn, group: list[int], name: str, lengths: Lengths) -> Block:
    """One line for a run of reading and searching."""
    calls = [step for at in group if isinstance(step := turn.steps[at], ToolCall)]
    files = dict.fromkeys(path for call in calls for path in observations.paths_of(call))
    names = ", ".join(path.rsplit("/", 1)[-1] for path in files)
    last = f"{turn.number}.{group[-1] + 1}"
    body = f"{len(calls)} calls to {last}: {names}" if names else f"{len(calls)} calls to {last}"
    return Block(
        "call", name, "read and searched", shorten(clean(one_line(body)), lengths.arguments)
    )


def _ended(outcome: Outcome, lengths: Lengths) -> str:
    """How a turn ended, in words of ours; what a program printed is left to its own block."""
    if outcome.state == "unclear":
        return "unclear"
    by = {"user": "by what the user said next", "verdict": "by the verifier"}
    name = outcome.evidence.partition(":")[0] if outcome.reason not in by else ""
    return f"{outcome.state}: {by.get(outcome.reason) or _short(name)}"[: max(40, lengths.fine)]


def size_of(trace: Trace) -> int:
    """The characters of a session: what was said, called and printed."""
    total = 0
    for turn in trace.turns:
        total += len(turn.prompt) + sum(len(text) for text in turn.texts)
        for call in turn.calls:
            total += len(call.result) + len(msgspec.json.encode(call.arguments, enc_hook=str))
    return total


def _page_index(starts: Sequence[str]) -> str:
    """With which step each page begins; of very many, every few."""
    if len(starts) <= _MOST_STARTS:
        return f"Pages by their first step: {', '.join(starts)}"
    every = -(-len(starts) // _MOST_STARTS)
    listed = [f"{at + 1}: {starts[at]}" for at in range(0, len(starts), every)]
    return f"{len(starts)} pages; some by their first step: {', '.join(listed)}"


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
        _page_index(paged.starts),
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


def _choose(pieces: list[_Piece], fence: Fence, budget_left: int) -> set[int]:
    """Which pieces are shown: all that must be, then the most telling while the budget lasts."""
    chosen = {at for at, piece in enumerate(pieces) if piece.must}
    order = sorted(
        (at for at in range(len(pieces)) if at not in chosen and pieces[at].worth),
        key=lambda at: (-pieces[at].worth, -at),
    )
    for at in order:
        cost = len(fence.around(pieces[at].block)) + 1
        # A piece in the middle of what is left out may make two gaps of one.
        if cost + _GAP <= budget_left:
            chosen.add(at)
            budget_left -= cost + _GAP // 4
    return chosen


def _worth(block: Block, marked: set[str]) -> int:
    """How much a block tells; the call and the output of one step go together."""
    near = 40 if block.step in marked else 0
    if block.origin == "call":
        return 50 + near
    return {"output": 10, "agent": 30}.get(block.origin, 45) + near


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
