"""How far a text tries to steer a later agent: signs found, weighed by context, and summed.

A sign alone is often honest: guides quote attacks, installers are piped into shells. So the grade
is the sum within one passage, where each sign counts once. A sign that is quoted, or that stands
in a sentence that warns of it, counts in part; one that was disguised or hidden counts more.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tacit.changes.scan import hosts
from tacit.changes.scan.context import Context
from tacit.changes.scan.report import Part
from tacit.changes.scan.signs import Blend, Sign, anchor_words, blends, signs
from tacit.changes.scan.views import View

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
    context = Context(view.text)
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


def _weigh(view: View, sign: Sign, match: re.Match[str], context: Context) -> list[_Hit]:
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
    return _place(view, sign._replace(why=why), (start, end), context, points)


def _place(
    view: View, sign: Sign | Blend, span: tuple[int, int], context: Context, points: float
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
