"""How far a text tries to steer a later agent: signs found, weighed by context, and summed.

A sign alone is often honest: guides quote attacks, installers are piped into shells. So the grade
is the sum within one passage, where each sign counts once. A sign that is quoted, or that stands
in a sentence that warns of it, counts in part; one that was disguised or hidden counts more.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from tacit.changes.scan import hosts
from tacit.changes.scan.report import Part
from tacit.changes.scan.signs import Sign, anchor_words, signs
from tacit.changes.scan.views import View, views

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


def grade(text: str) -> Grade:
    """The grade of `text`; no parts when there is no sign at all."""
    best = Grade(0.0, ())
    plain: set[tuple[str, int]] = set()
    for view in views(text):
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
        for start, end in _windows(near) if sign.words else _unspaced(view.text):
            for count, match in enumerate(sign.pattern.finditer(view.text, start, end)):
                if count == MAX_MATCHES:
                    break
                found.append((sign, match))
    if not found:
        return []
    context = _Context(view.text)
    return [hit for sign, match in found for hit in _weigh(view, sign, match, context)]


_WORD = re.compile(r"[a-z0-9_]+")
_BEFORE, _AFTER = 260, 420
_CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff\u1100-\u11ff\uac00-\ud7af]")


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


def _unspaced(text: str) -> Iterator[tuple[int, int]]:
    """The whole text, if it has letters of languages that do not part words."""
    if not text.isascii() and _CJK.search(text):
        yield 0, len(text)


def _weigh(view: View, sign: Sign, match: re.Match[str], context: "_Context") -> list[_Hit]:
    """The points of one match where it stands; none for what is harmless after all."""
    points, why = sign.points, sign.why
    if sign.name == "piped-download":
        url = next((text for name, text in match.groupdict().items() if text), "")
        if hosts.is_known(url):
            return []
        if hosts.is_bare(url):
            points, why = 6.0, "runs a script unseen from a bare address or without encryption"
    start, end = match.span()
    start += len(match[0]) - len(match[0].lstrip())
    hidden = context.is_hidden(start)
    if not hidden and not view.how:
        if sign.spoken and context.is_quoted(start, end):
            points *= QUOTED
        if context.is_warned(start, end):
            points *= WARNED
    line = view.line_at(start)
    hits = [_Hit(start, Part(line, sign.name, round(points, 2), why))]
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


# Words by which a sentence warns of what it names, rather than asking for it.
_WARNING = re.compile(
    r"\b(?:attack|attacks|attacker|attackers|malicious|suspicious|red flags?"
    r"|refuse|reject|detect|detects|detection|prevent|prevents|block|blocks|flag|flags|vulnerab\w{0,8}"
    r"|exploit\w{0,4}|injection|injections|jailbreak\w{0,5}|threat|threats|indicators?|warning|unsafe"
    r"|dangerous|harmful|adversarial|red.?team\w{0,4}|sanitiz\w{0,4}|look for|watch for|e\.g\.|such as"
    r"|for example|like \"|phrases?|payloads?|bad practice|anti-?pattern|not acceptable|exfiltration"
    r"|disposable|throwaway|sandboxed|container|containers|compromise\w{0,2}|audit\w{0,3}|scan for|risk"
    r"|risks|risky|untrusted|defen[cs]e|guardrails?|test cases?)\b"
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
    r"|<[a-z]{1,10}[^<>\n]{0,200}(?:display:\s?none|font-size:\s?0|visibility:\s?hidden|opacity:\s?0"
    r"|color:\s?(?:white|#fff(?:fff)?|transparent))\b[^<>\n]{0,200}>[^<]{0,2000}",
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


class _Context:
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
