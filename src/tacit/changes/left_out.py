"""Doubtful lines of a skill's body that wait by themselves, while the rest of a change lands.

Owns what goes with a line that is left out, the words that stand in its place, and the change that
puts it back. Nothing stands without what it hangs on: the steps under an item go with it, a section
with its heading, a list with the line that introduces it, what begins with "otherwise" with what
came before it, the rest of some code with a line of it; nor does what stands beside a marked line
and is hardly shown itself. Lines that stood in the skill before stay, also in the place of those
that were to replace them. Where it is not plain what belongs together, or too much is in doubt,
nothing is left out and the change waits whole. What is left is judged again like any other text.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from tacit.base.display import counted
from tacit.changes.change import SKILL_FILE, Change, Edit, File, Refusal
from tacit.skills import frontmatter

if TYPE_CHECKING:
    from tacit.changes.effect import Effect
    from tacit.changes.gate_steps import Judgement

MARKER = "(left out: the work behind this skill does not show it)"
"""Stands in the place of what was left out. It is true whatever is answered, and holds no word of
what was left out."""
MOST_MARKED, MOST_OF = 3, 2
"""Of so many new lines one at most is marked, and one left out: what is doubtful all over waits
whole, and so does what little would be left of."""
ROUNDS = 3
"""How often what is left is judged again, where that brings up more."""
SAID_OR_DONE = 0.5
"""The part of the words beside a marked line that must have been said or done, or they go too."""

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_ANY_FENCE = re.compile(r"[ \t>]*(?:```|~~~)")
_ITEM = re.compile(r"([ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+)\S")
_UNDERLINE = re.compile(r"[ \t]*(?:=+|-{2,})[ \t]*$")
_COMMENT = re.compile(r"<!--|-->")
_REFERS_BACK = re.compile(
    r"[\W\d_]*(?:but|else|except|however|if not|instead|it|nor|not|only then|otherwise|that|these"
    r"|they|this|those|unless)\b",
    re.IGNORECASE,
)
_BELOW_A_COLON = ("code", "table", "quote", "item", "text")
_BOLD = re.compile(r"(\*\*|__)(?!\1).+\1[:.]?\s*$")
_BOLD_LEVEL = 7
_EMPHASIS = "*_`\"') \t\r"


class Apart(msgspec.Struct, frozen=True):
    """What was left out of a change: the change that puts it back, why it waits, how much it is."""

    change: Change
    why: Refusal
    number: int


def waits_note(lines: Change) -> str:
    """What a person is told of lines that wait in the inbox."""
    edits = [one for one in lines.operations if isinstance(one, Edit)]
    new = (Counter(one.new.split("\n")) - Counter(one.old.split("\n")) for one in edits)
    number = sum(bool(line.strip()) for some in new for line in some.elements())
    wait = "1 line waits" if number == 1 else f"{number} lines wait"
    return f"{wait} for your yes: tacit inbox {lines.id[-8:]}"


def set_apart(
    effect: "Effect",
    judgement: "Judgement",
    judge: "Callable[[Effect], Judgement]",
    scanner: Any,
) -> "tuple[Effect, Judgement] | None":
    """The effect without the lines that a person has to look at, and the judgement on that.

    None where something else keeps the change from landing, or it has to wait whole.
    """
    new, old = effect.new.get(SKILL_FILE), effect.old.get(SKILL_FILE)
    if new is None or len(effect.actions) != 1 or effect.rules.noun != "skill":
        return None
    if not judgement.asks:
        return None
    try:
        text, before = new.data.decode(), old.data.decode() if old is not None else ""
    except UnicodeDecodeError:
        return None
    hardly, head = _hardly_shown(text, scanner), _head_lines(text)
    marks: list[Refusal] = []
    cut, part, found = None, effect, judgement
    for _ in range(ROUNDS):
        if found.refusal is not None or found.decision != "allow" or not found.asks:
            break
        if not all(ask.file == SKILL_FILE and not ask.whole for ask in found.asks):
            return None
        # What the head sums up is judged anew without the lines that do not stay.
        marks += [_as_written(ask, cut) for ask in found.asks if ask.line > head]
        cut = leave_out(before, text, {mark.line for mark in marks}, hardly) if marks else None
        if cut is None:
            return None
        part = _with_text(effect, cut.text)
        found = judge(part)
    if cut is None or found.refusal is not None or found.decision != "allow" or found.asks:
        return None
    apart = _apart(effect.change, cut, text, marks)
    return part, msgspec.structs.replace(found, apart=apart)


def _as_written(ask: Refusal, cut: "Cut | None") -> Refusal:
    """A mark with its line in the text as it was written; 0 where it is none of that."""
    if cut is None:
        return ask
    line = cut.lines[ask.line - 1] if 0 < ask.line <= len(cut.lines) else 0
    reason = ask.reason.replace(f"line {ask.line}:", f"line {line}:", 1)
    return msgspec.structs.replace(ask, line=line, reason=reason)


def _apart(change: Change, cut: "Cut", text: str, marks: list[Refusal]) -> Apart:
    lines = counted(cut.number, "line")
    put_back = msgspec.structs.replace(
        change,
        id=lines_id(change.id),
        operations=edits_between(cut.text, text, SKILL_FILE),
        reason=f"put back {lines} left out of {change.id[-8:]}: {change.reason}",
        base="",
        overrides=(),
        group="",
    )
    why = msgspec.structs.replace(marks[0], also=tuple(marks[1:]))
    return Apart(put_back, why, cut.number)


def _with_text(effect: "Effect", text: str) -> "Effect":
    from tacit.changes.skill_state import parse_skill_files

    action = effect.actions[0]
    new = {**effect.new, SKILL_FILE: File(text.encode(), effect.new[SKILL_FILE].kind)}
    return msgspec.structs.replace(
        effect,
        new=new,
        after=parse_skill_files(new, action.now.skill, effect.rules.names),
        actions=(msgspec.structs.replace(action, files=new),),
    )


def _hardly_shown(text: str, scanner: Any) -> set[int]:
    """The numbers of the lines that say something of which the session has less than half; none
    where no session is known."""
    if getattr(scanner, "support", None) is None:
        return set()
    from tacit.changes.provenance.phrases import phrases

    told = ((one, scanner.weighed(one)) for one in phrases({SKILL_FILE: text.encode()}))
    return {
        one.line
        for one, words in told
        if words and scanner.support(one, words).known < SAID_OR_DONE
    }


class Cut(NamedTuple):
    """A text without the lines that are left out."""

    text: str
    lines: tuple[int, ...]
    """For each of its lines the number of the same line in the text as it was written, or 0."""
    number: int
    """How many lines with words in them are left out."""


class _Block(NamedTuple):
    """A paragraph, an item with its continuation lines, a heading, a table, a quote, some code."""

    kind: Literal["heading", "code", "table", "quote", "item", "text"]
    first: int
    end: int
    indent: int
    level: int = 0
    """Of a heading, how deep it is."""


def lines_id(change: str) -> str:
    """The id of the change that puts back what was left out of `change`: the same each time."""
    return f"{change[:-8]}{hashlib.sha256(change.encode()).hexdigest()[:8]}"


def leave_out(
    old: str, new: str, marked: Collection[int], hardly: Collection[int] = ()
) -> Cut | None:
    """`new`, which is to replace `old`, without the lines with these numbers, all that hangs on
    them, and what stands beside them in `hardly`; None where it has to wait whole."""
    lines = new.split("\n")
    above = _head_lines(new)
    body = lines[above:]
    if "\r" in new.replace("\r\n", "") or any(number <= above for number in marked):
        return None
    wanted = _Body(old.split("\n")[_head_lines(old) :] if old else [], body)
    numbers, doubtful = ({n - above - 1 for n in some} for some in (marked, hardly))
    return wanted.cut(lines[:above], numbers, doubtful)


def _head_lines(text: str) -> int:
    """How many lines stand above the body."""
    return frontmatter.split(text.replace("\r\n", "\n")).body_line - 1


def edits_between(old: str, new: str, path: str) -> tuple[Edit, ...]:
    """Edits that turn the text `old` into `new`, hunk by hunk, each of what stands there once."""
    now, then = old.split("\n"), new.split("\n")
    found: list[Edit] = []
    # From the end, so that what stands above a hunk is still as it was.
    for tag, start, end, there, there_end in reversed(_opcodes(now, then)):
        if tag == "equal":
            continue
        first, last, after = start, end, then[there:there_end]
        # With Windows line ends, an edit has them too: without one it would get them a second time.
        ends = "\r" if "\r\n" in _join(now) else ""
        while (
            last == first
            or _join(now).count(_join(now[first:last])) != 1
            or ends not in _join(now[first:last])
        ):
            if first > 0:
                first, after = first - 1, [now[first - 1], *after]
            else:
                after, last = [*after, now[last]], last + 1
        found.append(Edit(_join(now[first:last]), _join(after), path))
        now[first:last] = after
    return tuple(found)


def _join(lines: Sequence[str]) -> str:
    return "\n".join(lines)


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


class _Body:
    """The lines of a body, and what hangs together in it."""

    def __init__(self, old: list[str], lines: list[str]) -> None:
        self._old, self._lines = old, lines
        self._blocks = _blocks(lines)
        self._changes = _opcodes(old, lines)
        self._new = {
            number
            for tag, _, _, first, end in self._changes
            if tag in ("insert", "replace")
            for number in range(first, end)
        }

    def cut(self, head: list[str], marked: set[int], hardly: set[int]) -> Cut | None:
        out = self._all_that_goes(marked | self._beside(marked, hardly))
        if out is None or not marked <= self._new:
            return None
        out &= self._new
        gone = [self._lines[number] for number in out if self._lines[number].strip()]
        words = [n for n in self._new if self._lines[n].strip() and not _is_heading(self._lines[n])]
        if len(gone) * MOST_OF > len(words) or len(marked) * MOST_MARKED > len(words):
            return None
        if any(map(_COMMENT.search, gone)):
            return None
        kept = list(self._kept(out))
        text = [line for line, _ in kept]
        if not self._reads_alike(text, [number for _, number in kept]):
            return None
        first = len(head)
        numbers = [n + first + 1 if n >= 0 else 0 for _, n in kept]
        return Cut(_join([*head, *text]), (*range(1, first + 1), *numbers), len(gone))

    def _beside(self, marked: set[int], hardly: set[int]) -> set[int]:
        """The first lines of the blocks before and after those that are marked, if of `hardly`."""
        blocks = self._blocks or []
        hit = {at for at, b in enumerate(blocks) if marked & set(range(b.first, b.end))}
        near = {at + step for at in hit for step in (-1, 1) if 0 <= at + step < len(blocks)}
        those = (blocks[at] for at in near if blocks[at].kind in ("item", "text", "quote"))
        return {b.first for b in those if hardly & set(range(b.first, b.end))}

    def _all_that_goes(self, marked: set[int]) -> set[int] | None:
        """The numbers of the lines that are left out with those that are marked."""
        if self._blocks is None:
            return None
        out: set[int] = set()
        more = set(marked)
        while more - out:
            out |= more
            taken = {at for at, block in enumerate(self._blocks) if self._is_taken(block, out)}
            more = {n for n in out if not any(b.first <= n < b.end for b in self._blocks)}
            if any(self._lines[n].strip() for n in more):
                return None
            for at in taken:
                for other in {at, *self._goes_with(at)}:
                    more |= set(range(self._blocks[other].first, self._blocks[other].end))
            more |= self._parts(out, taken) | self._replaced(out | more)
        return out

    def _is_taken(self, block: _Block, out: set[int]) -> bool:
        """Whether a whole block goes, rather than some rows or the last lines of it."""
        inside = {"code": (block.first + 1, block.end - 1), "table": (block.first + 2, block.end)}
        first, end = inside.get(block.kind, (block.first, block.first))
        return any(n in out and not first <= n < end for n in range(block.first, block.end))

    def _parts(self, out: set[int], taken: set[int]) -> set[int]:
        """Of code, what follows a line that is left out: it may hang on that."""
        more: set[int] = set()
        for at, block in enumerate(self._blocks or ()):
            hit = [n for n in range(block.first, block.end) if n in out]
            if hit and at not in taken and block.kind == "code":
                more |= set(range(hit[0], block.end - 1))
        return more

    def _replaced(self, out: set[int]) -> set[int]:
        """Where one of several lines that replace others goes, the others come back: all of it."""
        hunks = (range(c[3], c[4]) for c in self._changes if c[0] == "replace")
        return {n for hunk in hunks if out & set(hunk) for n in hunk}

    def _goes_with(self, at: int) -> Iterator[int]:
        """The blocks that mean something else, or nothing, without the one at `at`."""
        assert self._blocks is not None
        blocks, block = self._blocks, self._blocks[at]
        rest = range(at + 1, len(blocks))
        if at and self._goes_on(blocks[at - 1]):
            yield at - 1
        if at and self._refers_back(block) and blocks[at - 1].kind != "heading":
            yield at - 1
        below = at + 1
        for other in rest:
            if block.kind == "heading":
                inside = blocks[other].kind != "heading" or blocks[other].level > block.level
            else:
                inside = block.kind == "item" and blocks[other].indent > block.indent
            if not inside:
                break
            yield other
            below = other + 1
        if below == len(blocks):
            return
        if self._refers_back(blocks[below]) or self._goes_on(blocks[below - 1]):
            yield below
        if block.kind in ("item", "text", "quote"):
            yield from self._introduced(block, below)

    def _introduced(self, block: _Block, at: int) -> Iterator[int]:
        """What `block` leads up to, if the block at `at` is that."""
        assert self._blocks is not None
        blocks, first = self._blocks, self._blocks[at]
        colon = self._lines[block.end - 1].rstrip(_EMPHASIS).endswith((":", "："))
        shown = first.kind in ("code", "table") or (first.kind == "item" and block.kind != "item")
        if not (colon or shown) or (first.indent < block.indent and first.kind == "item"):
            return
        yield at
        for other in range(at + 1, len(blocks)):
            if first.kind == "item":
                goes_on = blocks[other].kind == "item" or blocks[other].indent > first.indent
                goes_on = goes_on and blocks[other].indent >= first.indent
            else:
                kinds = ("code", "table") if first.kind in ("code", "table") else _BELOW_A_COLON
                goes_on = blocks[other].kind in kinds
            if not goes_on:
                return
            yield other

    def _goes_on(self, block: _Block) -> bool:
        """Whether its sentence is not over."""
        is_prose = block.kind in ("item", "text", "quote")
        return is_prose and self._lines[block.end - 1].rstrip(_EMPHASIS).endswith((",", "，", "、"))

    def _refers_back(self, block: _Block) -> bool:
        is_prose = block.kind in ("item", "text", "quote")
        return is_prose and _REFERS_BACK.match(self._lines[block.first]) is not None

    def _kept(self, out: set[int]) -> Iterator[tuple[str, int]]:
        """The lines that stay, each with its number or -1, and the words in place of the others."""
        for tag, first, end, there, there_end in self._changes:
            hunk = range(there, there_end)
            if tag == "replace" and out & set(hunk):
                yield from ((line, -1) for line in self._old[first:end])
            elif tag != "delete":
                yield from self._with_markers(hunk, out)

    def _with_markers(self, hunk: range, out: set[int]) -> Iterator[tuple[str, int]]:
        blank: list[int] = []
        left_out = False
        for number in hunk:
            if not self._lines[number].strip():
                blank.append(number)
                continue
            if number in out and left_out:
                blank.clear()
                continue
            yield from ((self._lines[n], n) for n in blank)
            blank.clear()
            left_out = number in out
            yield (self._marker(number), -1) if left_out else (self._lines[number], number)
        yield from ((self._lines[n], n) for n in blank)

    def _marker(self, number: int) -> str:
        """The words for what was left out, in the form of the line that they stand for."""
        line = self._lines[number]
        block = next(b for b in self._blocks or () if b.first <= number < b.end)
        space = line[: len(line) - len(line.lstrip())]
        form = "> {}" if block.kind == "quote" else "{}"
        if number != block.first:
            form = {"table": "| {} |", "code": "# {}"}.get(block.kind, form)
        elif block.kind == "item" and number == block.first and (item := _ITEM.match(line)):
            space = item[1]
        return space + form.format(MARKER) + ("\r" if line.endswith("\r") else "")

    def _reads_alike(self, text: list[str], numbers: list[int]) -> bool:
        """Whether what is code is code still, and what is none is none."""
        blocks = _blocks(text)
        if blocks is None or self._blocks is None:
            return False
        was, now = _code(self._blocks), _code(blocks)
        return all((at in now) == (n in was) for at, n in enumerate(numbers) if n >= 0)


def _code(blocks: list[_Block]) -> set[int]:
    return {n for b in blocks if b.kind == "code" for n in range(b.first, b.end)}


def _is_heading(line: str) -> bool:
    return line.lstrip().startswith("#")


def _blocks(lines: Sequence[str]) -> list[_Block] | None:
    """The blocks of a text in order; None where it is not plain what is code."""
    found: list[_Block] = []
    at = 0
    while at < len(lines):
        block = _block(lines, at) if lines[at].strip() else None
        if block is not None and block.end == 0:
            return None
        if block is not None:
            found.append(block)
        at = block.end if block is not None else at + 1
    return found


def _block(lines: Sequence[str], at: int) -> _Block:
    """The block that begins at a line with something in it; with the end 0, where it has none."""
    line = lines[at].expandtabs(4)
    text = line.lstrip()
    indent = len(line) - len(text)
    if fence := _FENCE.match(line):
        return _Block("code", at, _fence_end(lines, at, fence[1]), indent)
    if _ANY_FENCE.match(line):
        return _Block("quote", at, 0, indent)
    if text.startswith("#"):
        return _Block("heading", at, at + 1, indent, len(text) - len(text.lstrip("#")))
    end = at + 1
    for kind, sign in (("table", "|"), ("quote", ">")):
        if text.startswith(sign):
            while end < len(lines) and lines[end].lstrip().startswith(sign):
                end += 1
            return _Block(kind, at, end, indent)  # type: ignore[arg-type]
    while end < len(lines) and not _begins(lines[end]):
        if _UNDERLINE.match(lines[end]):
            return _Block("heading", at, end + 1, indent, 1 if "=" in lines[end] else 2)
        end += 1
    if end == at + 1 and _BOLD.match(text):
        return _Block("heading", at, end, indent, _BOLD_LEVEL)
    return _Block("item" if _ITEM.match(lines[at]) else "text", at, end, indent)


def _begins(line: str) -> bool:
    """Whether a line begins a block of its own, or parts two."""
    text = line.lstrip()
    return not text or text[0] in "#|>" or bool(_ANY_FENCE.match(line) or _ITEM.match(line))


def _fence_end(lines: Sequence[str], at: int, fence: str) -> int:
    """Where the code that begins at `at` is over; 0 where that is not plain."""
    for number in range(at + 1, len(lines)):
        if _ANY_FENCE.match(lines[number]):
            close = lines[number].strip()
            plain = close == fence[0] * len(close) and len(close) >= len(fence)
            return number + 1 if plain else 0
    return 0
