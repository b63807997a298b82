"""Why a line stands in a skill: the sessions that support it, the steps and words there, who
disagrees.

Of a distilled line the tables of `support` know it. Of a line that a review wrote, the history
knows the change and its session, and the step is the one in which most of its words stand, among
what the user said and the agent did. Also makes `references/evidence.md`, counts without a word of
any session, for a skill that is shared.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial

import msgspec

from tacit.base.display import counted, one_line, shorten
from tacit.base.errors import TacitError
from tacit.changes.change import SKILL_FILE
from tacit.changes.gate import Gate
from tacit.changes.provenance.deeds import Said, sources
from tacit.changes.provenance.phrases import distinct_stems
from tacit.changes.provenance.witness import Body
from tacit.learn.distil.support import Conflict, KnownLesson, Lessons, Support
from tacit.skills import frontmatter
from tacit.traces.trace import Trace


class Witnessed(msgspec.Struct, frozen=True):
    """One place in a session that speaks for a line, or against it."""

    session: str
    side: str = "for"
    outcome: str = ""
    step: str = ""
    words: str = ""
    first: bool = False
    """Whether the task first went wrong there."""


class Opposed(msgspec.Struct, frozen=True):
    """A lesson that contradicts a line."""

    text: str
    sessions: int
    why: str
    settled: str


class LineReason(msgspec.Struct, frozen=True):
    """Why one line stands in a skill."""

    number: int
    """The line of SKILL.md."""
    text: str
    support: Support = Support()
    places: tuple[Witnessed, ...] = ()
    against: tuple[Opposed, ...] = ()
    change: str = ""
    """The change that brought it."""
    by: str = ""
    """Who made that change."""


FindTrace = Callable[[str], Trace | None]
LineOrigin = tuple[str, str, tuple[str, ...]]
"""The change that brought a line, who made it, and its sessions."""


def skill_reasons(
    gate: Gate, skill: str, root: str, lessons: Lessons, find_trace: FindTrace, line: int = 0
) -> list[LineReason]:
    """Why each line of a skill stands there, or one of them; lines without evidence are left out.

    A line that only a person wrote has none.
    """
    text = gate.state_of(skill, root).contents.files[SKILL_FILE].data.decode("utf-8", "replace")
    name, origins = os.path.basename(skill), _origins(gate, skill, root)
    return text_reasons(text, name, lessons, find_trace, line, origins)


def text_reasons(
    text: str,
    name: str,
    lessons: Lessons,
    find_trace: FindTrace,
    line: int = 0,
    origins: Mapping[str, LineOrigin] | None = None,
) -> list[LineReason]:
    """The same for a SKILL.md that may not have landed yet."""
    every = {one.id: one for one in lessons.all()}
    known = {f"- {one.line}": one for one in every.values() if one.skill == name and one.line}
    conflicts = lessons.conflicts()
    deeds = cache(partial(_deeds, find_trace))
    head = len(text.splitlines()) - len(frontmatter.split(text).body.splitlines())
    found = []
    for number, raw in enumerate(text.splitlines(), 1):
        if number <= head or line not in (0, number):
            continue
        if (one := known.get(raw.strip())) is not None:
            against = tuple(_opposed(one, every, conflicts))
            places = tuple(
                Witnessed(row.session, row.side, row.outcome, quote.step, quote.text, quote.first)
                for row in lessons.rows(one.id)
                for quote in row.quotes
            )
            by = (one.change, "distiller")
            found.append(LineReason(number, one.line, one.support, places, against, *by))
        elif raw.strip() in (origins or {}) and not raw.startswith((" ", "#")):
            change, actor, sessions = (origins or {})[raw.strip()]
            shown = sessions[:_MOST_SESSIONS]
            places = tuple(_place_of(raw, session, *deeds(session)) for session in shown)
            support = Support(sessions=len(sessions))
            found.append(LineReason(number, raw.strip(), support, places, (), change, actor))
    return found


def _opposed(
    one: KnownLesson, every: Mapping[str, KnownLesson], conflicts: Iterable[Conflict]
) -> Iterator[Opposed]:
    for found in conflicts:
        if one.id in (found.one, found.other):
            other = every.get(found.other if found.one == one.id else found.one)
            if other is not None:
                yield Opposed(other.text, other.support.sessions, found.why, found.settled)


_LEAST = 12
_MOST_SESSIONS = 8
_NEAR = 0.3
"""The part of a line's words that must stand in a step for it to be named."""


def _origins(gate: Gate, skill: str, root: str) -> dict[str, LineOrigin]:
    """For each line that a session taught, where it first came from."""
    history = gate.open_place(root).history
    found: dict[str, LineOrigin] = {}
    for version in history.log(skill):  # the newest first: an older one that has the line wins
        record, file = version.record, history.files(version).get(SKILL_FILE)
        sessions = tuple(dict.fromkeys(filter(None, (record.session, *record.evidence))))
        for line in file.data.decode("utf-8", "replace").splitlines() if file else ():
            if len(line.strip()) > _LEAST:
                found[line.strip()] = (record.change, record.actor, sessions)
    return {line: origin for line, origin in found.items() if origin[2]}


def _deeds(find_trace: FindTrace, session: str) -> tuple[tuple[Said, ...], Body]:
    """What was said and done in a session; nothing where it is not stored any more."""
    done: tuple[Said, ...] = ()
    with suppress(TacitError):
        trace = find_trace(session)
        done = sources(trace).done if trace is not None else ()
    return done, Body(done)


def _place_of(line: str, session: str, done: Iterable[Said], body: Body) -> Witnessed:
    """The step in which most of a line stands, among what was said and done, and its words."""
    match = body.best(distinct_stems(line))
    if match.share < _NEAR:
        return Witnessed(session)
    words = next((said.text for said in done if said.step == match.step), "")
    return Witnessed(session, step=match.step, words=shorten(one_line(words), 160))


def evidence_file(lessons: Lessons, skill: str, root: str) -> bytes:
    """The evidence of a skill for others: counts for each line, and no word of any session."""
    own = lessons.of_skill(skill, root)
    head = "# Evidence\n\nHow many sessions support each line; no session is quoted.\n\n"
    lines = (f"- {one.line}\n  {counts_in_words(one.support)}\n" for one in own)
    return (head + "".join(lines)).encode() if own else b""


def counts_in_words(support: Support) -> str:
    """`5 sessions (4 worked, 1 failed) of 2 projects, 2 models; followed and failed in 1`."""
    ends = {"worked": support.worked, "failed": support.failed}
    shown = ", ".join(f"{n} {word}" for word, n in ends.items() if n)
    wide = {"projects": support.projects, "models": support.models, "people": support.people}
    many = ", ".join(f"{n} {noun}" for noun, n in wide.items() if n > 1)
    said = {
        "the user said so in": support.said,
        "followed and failed in": support.against,
        "followed and fine in": support.followed,
    }
    first = counted(support.sessions, "session")
    first += (f" ({shown})" if shown else "") + (f" of {many}" if many else "")
    return "; ".join([first, *(f"{words} {n}" for words, n in said.items() if n)])
