"""How far a text tries to steer a later agent: signs found, weighed by context, and summed.

A sign alone is often honest: guides quote attacks, installers are piped into shells. So the grade
is the sum within one passage, where each sign counts once. A sign that is quoted, or that stands
in a sentence that warns of it, counts in part; one that was disguised or hidden in a comment counts
more. The signs are in `signs.toml` and `blends.toml`, each compiled when it is first looked for.
Texts are folded, as everywhere in the scan.
"""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from tacit.base.patterns import late_pattern
from tacit.changes.scan import reach
from tacit.changes.scan.disguise import View, fold
from tacit.changes.scan.scan_report import Part

_GAP = r"[\s*_>#\"'`,;()-]{1,6}"
# Some words of one sentence: a full stop inside a name (`.env`) is none, nor is a wrapped line,
# but an empty line, a heading, an item of a list, a table and a fence begin something new.
_SOME = r"(?:[^.!?\n]|\.(?=\w)|\n(?![ \t]{0,8}(?:\n|```|[#|*-]|[0-9]{1,2}\.))){0,90}?"


class Sign(NamedTuple):
    """One row of the table."""

    name: str
    points: float
    words: frozenset[str]
    pattern: re.Pattern[str]
    why: str
    spoken: bool
    """Whether it counts less where it stands in quotation marks."""


class Blend(NamedTuple):
    """One row of `blends.toml`: notions that make a sign when they meet."""

    name: str
    points: float
    words: frozenset[str]
    notions: tuple[re.Pattern[str], ...]
    why: str
    spoken: bool
    lines: bool


@cache
def signs() -> tuple[Sign, ...]:
    """Every row of `signs.toml`, in the order of the file."""
    table = _table("signs.toml")
    groups = {f"{{{name}}}": text for name, text in table["group"].items()}
    return tuple(
        Sign(
            row["name"],
            float(row["points"]),
            frozenset(row["words"].split()),
            late_pattern(
                "|".join(_expand(text, groups, i) for i, text in enumerate(row["patterns"])), re.M
            ),
            row["why"],
            row["spoken"],
        )
        for row in table["sign"]
    )


@cache
def blends() -> tuple[Blend, ...]:
    """Every row of `blends.toml`, in the order of the file."""
    table = _table("blends.toml")
    notions = {
        name: late_pattern(_expand(text, {}, 0), re.M) for name, text in table["notion"].items()
    }
    return tuple(
        Blend(
            row["name"],
            float(row["points"]),
            frozenset(row["words"].split()),
            tuple(notions[name] for name in row["all"]),
            row["why"],
            row["spoken"],
            row.get("within") == "lines",
        )
        for row in table["blend"]
    )


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


@cache
def anchor_words() -> frozenset[str]:
    """Every word near which some sign may stand."""
    words = [*(sign.words for sign in signs()), *(blend.words for blend in blends())]
    return frozenset().union(*words)


# Escapes and sets of characters stay as they are; `~/` is a folder, not a gap.
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|~/|[ ~]")


def _expand(pattern: str, groups: dict[str, str], index: int) -> str:
    for name, text in groups.items():
        pattern = pattern.replace(name, text)
    # The text was folded, so letters of other alphabets are folded in the pattern too.
    pattern = "".join(c if c.isascii() else fold(c) for c in pattern)
    # Each pattern of a row may name its URL; names must differ within one expression.
    pattern = pattern.replace("(?P<url>", f"(?P<url{index}>")
    return _TOKEN.sub(lambda token: {" ": _GAP, "~": _SOME}.get(token[0], token[0]), pattern)


# Words by which a sentence warns of what it names, rather than asking for it.
_WARNING = re.compile(
    r"\b(?:attack|attacks|attacker|attackers|malicious|suspicious|red flags?|refuse|reject|detect"
    r"|detects|detection|prevent|prevents|vulnerab\w{0,8}|exploit\w{0,4}|injection|injections"
    r"|jailbreak\w{0,5}|threat|threats|indicators?|warning|unsafe|dangerous|harmful|adversarial"
    r"|red.?team\w{0,4}|sanitiz\w{0,4}|look for|watch for|e\.g\.|such as|for example|phrases?"
    r"|payloads?|bad practice|anti-?pattern|not acceptable|exfiltration|disposable|throwaway"
    r"|sandboxed|container|containers|compromise\w{0,2}|scan for|risk|risks|risky|untrusted"
    r"|defen[cs]e|guardrails?|test cases?)\b"
)
# A ban, right before what it bans. Farther off it may be part of the attack: "do not tell".
_BAN = re.compile(
    r"\b(?:never|avoid|do not|don't|must not|cannot|refuse to|not to)\b[^.;:,!?\n]{0,24}$"
)
# `key: "value"` is a value, not a quotation.
_VALUE = re.compile(r"[\s{,\[-]{0,40}[\"']?[\w -]{1,40}[\"']?\s{0,3}[:=]\s{0,3}[\"']")
_FENCE = re.compile(r"^[ \t>]{0,8}(?:```|~~~)", re.M)
_HIDDEN = re.compile(
    r"^\[[^\]\n]{0,60}\]: ?(?:#|<#?>|https?://\S{1,200}) [(\"'][^\n]{0,2000}"
    r"|\[\]\([^\s)]{1,200}\s[\"'][^\"'\n]{0,600}"
    r"|<[a-z]{1,10}[^<>\n]{0,200}(?:\bhidden\b(?!:)|display:\s?none|font-size:\s?0"
    r"|visibility:\s?hidden|opacity:\s?0|color:\s?(?:white|#fff(?:fff)?|transparent))\b[^<>\n]{0,200}>[^<]{0,2000}",
    re.M,
)
_PAIRS = (('"', '"'), ("`", "`"), ("“", "”"), ("«", "»"))
_QUOTES = '"`“”«»'


def _comments(text: str) -> list[tuple[int, int]]:
    """HTML comments; one that is never closed hides the rest of the text."""
    spans = []
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start + 4)
        end = len(text) if end < 0 else end + 3
        spans.append((start, end))
        start = text.find("<!--", end)
    return spans


class PassageContext:
    """What stands around a match: quotes, warnings, comments."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences = [match.start() for match in _FENCE.finditer(text)]
        spans = sorted([*_comments(text), *(match.span() for match in _HIDDEN.finditer(text))])
        self._hidden_starts = [span[0] for span in spans]
        self._hidden_ends = [span[1] for span in spans]

    def is_hidden(self, at: int) -> bool:
        index = bisect_right(self._hidden_starts, at) - 1
        return index >= 0 and at < self._hidden_ends[index]

    def _line(self, start: int, end: int) -> tuple[int, int]:
        first = self._text.rfind("\n", max(0, start - 600), start) + 1 or max(0, start - 600)
        last = self._text.find("\n", end, end + 600)
        return first, last if last >= 0 else min(len(self._text), end + 600)

    def is_quoted(self, start: int, end: int) -> bool:
        """Within quotes or backticks on its line, in a quotation, a table, or a fenced block."""
        first, last = self._line(start, end)
        line = self._text[first:last]
        if line.lstrip()[:1] in (">", "|") or bisect_right(self._fences, start) % 2 == 1:
            return True
        before, after = self._text[first:start], self._text[end:last]
        match = self._text[start:end]
        if match[:1] in _QUOTES:
            before, match = before + match[0], match[1:]
        if match[-1:] in _QUOTES:
            match, after = match[:-1], match[-1] + after
        if _VALUE.match(line) and before.count('"') + before.count("'") <= 3:
            return False
        return any(
            before.rfind(opening) > before.rfind(closing) and closing in after
            if opening != closing
            else before.count(opening) % 2 == 1 and closing in after and closing not in match
            for opening, closing in _PAIRS
        )

    def is_warned(self, start: int, end: int) -> bool:
        """Whether its line, the line above or the heading of the list warns of such things."""
        first, last = self._line(start, end)
        above = self._text.rfind("\n", max(0, first - 300), max(0, first - 1)) + 1
        around = self._text[max(above, first - 300) : start] + " " + self._text[end:last]
        return bool(_WARNING.search(around) or _BAN.search(self._text, max(0, start - 60), start))


PASSAGE = 1_600
"""Characters within which signs belong together: about twenty lines."""
QUOTED, WARNED = 0.4, 0.4
HIDDEN_POINTS, DISGUISED_POINTS = 2.5, 3.0
MAX_MATCHES = 40


class Grade(NamedTuple):
    """The worst passage: its points, and the parts of the sum, in the order of lines."""

    points: float
    parts: tuple[Part, ...]

    @property
    def line(self) -> int:
        return self.parts[0].line if self.parts else 1


class _Hit(NamedTuple):
    at: int
    part: Part


def grade(readings: list[View]) -> Grade:
    """The grade of a text in its `readings` by `views`; no parts when there is no sign at all."""
    best = Grade(0.0, ())
    plain: set[tuple[str, int]] = set()
    for view in readings:
        hits = _hits(view)
        if view.how:
            # Only what the disguise hid is new; the rest of the same text was seen plain.
            hits = [hit for hit in hits if (hit.part.sign, hit.part.line) not in plain]
            if hits:
                why = f"it is disguised ({view.how})"
                hits.append(
                    _Hit(hits[0].at, Part(hits[0].part.line, "disguised", DISGUISED_POINTS, why))
                )
        else:
            plain = {(hit.part.sign, hit.part.line) for hit in hits}
        best = max(
            best, _worst(sorted(hits, key=lambda hit: hit.at)), key=lambda found: found.points
        )
    return best


def _hits(view: View) -> list[_Hit]:
    anchors = anchor_words()
    places: dict[str, list[int]] = {}
    for match in _WORD.finditer(view.text):
        if match[0] in anchors:
            places.setdefault(match[0], []).append(match.start())
    found: list[tuple[Sign, re.Match[str]]] = []
    for sign in signs():
        near = sorted(at for word in sign.words if word in places for at in places[word])
        for start, end in _windows(near) if sign.words else _foreign(view.text):
            for count, match in enumerate(sign.pattern.finditer(view.text, start, end)):
                if count == MAX_MATCHES:
                    break
                found.append((sign, match))
    blended = [hit for blend in blends() for hit in _blended(view.text, blend, places)]
    if not found and not blended:
        return []
    context = PassageContext(view.text)
    hits = [hit for sign, match in found for hit in _weigh(view, sign, match, context)]
    for blend, start, end in blended:
        hits.extend(_place(view, blend, (start, end), context, blend.points))
    return hits


def _blended(
    text: str, blend: Blend, places: dict[str, list[int]]
) -> Iterator[tuple[Blend, int, int]]:
    """Where every notion of `blend` meets in one sentence or a few lines."""
    done = -1
    count = 0
    for at in sorted(at for word in blend.words if word in places for at in places[word]):
        if at < done:  # the same sentence again
            continue
        start, end = _lines(text, at) if blend.lines else _sentence(text, at)
        done = end
        matches = [notion.search(text, start, end) for notion in blend.notions]
        if all(matches):
            spans = [match.span() for match in matches if match]
            yield blend, min(span[0] for span in spans), max(span[1] for span in spans)
            count += 1
            if count == MAX_MATCHES:
                return


_END = re.compile(r"[.!?][\"'`*)]{0,3}(?=\s)|\n[ \t]{0,8}(?=\n|[#|>*-]|[0-9]{1,2}\.|```)")


def _sentence(text: str, at: int) -> tuple[int, int]:
    """The sentence, item or cell around `at`, of at most some 600 characters."""
    first = max(0, at - 300)
    start = first
    for match in _END.finditer(text, first, at):
        start = match.end()
    end = _END.search(text, at, at + 300)
    return start, end.start() + 1 if end else min(len(text), at + 300)


def _lines(text: str, at: int) -> tuple[int, int]:
    """The lines around `at`: three before and four after, cut where an empty line stands."""
    before = text[max(0, at - 240) : at].rpartition("\n\n")[2]
    after = text[at : at + 320].partition("\n\n")[0]
    return at - len(before), at + len(after)


_WORD = re.compile(r"[a-z0-9_]+")
_BEFORE, _AFTER = 260, 420
_FOREIGN = re.compile("[\u0400-\u04ff\u1100-\u11ff\u3040-\u30ff\u4e00-\u9fff]")


def _windows(places: list[int]) -> Iterator[tuple[int, int]]:
    """Stretches around `places`, those that touch made one: where a sign can be at all."""
    start = end = -1
    for at in places:
        if end >= 0 and at - _BEFORE <= end:
            end = at + _AFTER
            continue
        if end >= 0:
            yield start, end
        start, end = max(0, at - _BEFORE), at + _AFTER
    if end >= 0:
        yield start, end


def _foreign(text: str) -> Iterator[tuple[int, int]]:
    """The whole text, if it has letters for which there are signs without Latin words."""
    if not text.isascii() and _FOREIGN.search(text):
        yield 0, len(text)


def _weigh(view: View, sign: Sign, match: re.Match[str], context: PassageContext) -> list[_Hit]:
    """The points of one match where it stands; none for what is harmless after all."""
    points, why = sign.points, sign.why
    if sign.name == "piped-download":
        url = next((text for name, text in match.groupdict().items() if text), "")
        if reach.is_known_installer(url):
            return []
        if reach.is_bare_address(url):
            points, why = 6.0, "runs a script unseen from a bare address or without encryption"
    start, end = match.span()
    start += len(match[0]) - len(match[0].lstrip())
    return _place(view, sign._replace(why=why), (start, end), context, points)


def _place(
    view: View, sign: Sign | Blend, span: tuple[int, int], context: PassageContext, points: float
) -> list[_Hit]:
    """The sign's points by what stands around it: less if quoted or warned of, more if hidden."""
    start, end = span
    hidden = context.is_hidden(start)
    if not hidden and not view.how:
        if sign.spoken and context.is_quoted(start, end):
            points *= QUOTED
        if context.is_warned(start, end):
            points *= WARNED
    line = view.line_at(start)
    hits = [_Hit(start, Part(line, sign.name, round(points, 2), sign.why))]
    if hidden:
        reason = "it stands where a reader does not see it: a comment or hidden markup"
        hits.append(_Hit(start, Part(line, "out-of-sight", HIDDEN_POINTS, reason)))
    return hits


def _worst(hits: list[_Hit]) -> Grade:
    """The passage with the most points, each sign counted once at its highest."""
    best = Grade(0.0, ())
    for first in range(len(hits)):
        chosen: dict[str, Part] = {}
        for hit in hits[first:]:
            if hit.at - hits[first].at > PASSAGE:
                break
            known = chosen.get(hit.part.sign)
            if known is None or hit.part.points > known.points:
                chosen[hit.part.sign] = hit.part
        points = round(sum(part.points for part in chosen.values()), 2)
        if points > best.points:
            best = Grade(points, tuple(sorted(chosen.values(), key=lambda part: part.line)))
    return best
