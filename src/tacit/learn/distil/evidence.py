"""Why a line stands in a skill: the sessions that support it, the steps and words there, who
disagrees.

Of a distilled line the tables of `support` know it. Of a line that a review wrote, the history
knows the change and its session, and the step is the one in which most of its words stand, among
what the user said and the agent did. Also makes `references/evidence.md`, counts without a word of
any session, for a skill that is shared.
"""

import os
from collections.abc import Callable, Iterator, Mapping

import msgspec

from tacit.base.display import counted, one_line, shorten
from tacit.changes.change import SKILL_FILE, File
from tacit.changes.gate import Gate
from tacit.changes.provenance.deeds import Body, sources
from tacit.changes.provenance.phrases import distinct_stems
from tacit.learn.distil.support import KnownLesson, Lessons, Support
from tacit.skills import frontmatter
from tacit.traces.trace import Trace


class Witnessed(msgspec.Struct, frozen=True):
    """One place in a session that speaks for a line, or against it."""

    session: str
    side: str = "for"
    outcome: str = ""
    step: str = ""
    words: str = ""


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
    known = {one.line: one for one in lessons.of_skill(name) if one.line}
    found = []
    body = len(text.splitlines()) - len(frontmatter.split(text).body.splitlines())
    for number, raw in enumerate(text.splitlines(), 1):
        if number <= body:
            continue
        said = raw.strip().removeprefix("- ").strip()
        if line and number != line:
            continue
        if said in known and raw.lstrip().startswith("- "):
            found.append(_distilled(lessons, known[said], number))
        elif reviewed := _reviewed(raw, number, origins or {}, find_trace):
            found.append(reviewed)
    return found


def _distilled(lessons: Lessons, one: KnownLesson, number: int) -> LineReason:
    places = tuple(
        Witnessed(row.session, row.side, row.outcome, quote.step, quote.text)
        for row in lessons.rows(one.id)
        for quote in row.quotes
    )
    others = {other.id: other for other in lessons.all()}
    against = []
    for conflict in lessons.conflicts():
        if one.id in (conflict.one, conflict.other):
            other = others.get(conflict.other if conflict.one == one.id else conflict.one)
            if other is not None:
                sessions = other.support.sessions
                against.append(Opposed(other.text, sessions, conflict.why, conflict.settled))
    return LineReason(
        number, one.line, others[one.id].support, places, tuple(against), one.change, "distiller"
    )


def _origins(gate: Gate, skill: str, root: str) -> dict[str, LineOrigin]:
    """For each line, where it first came from."""
    history = gate.open_place(root).history
    found: dict[str, LineOrigin] = {}
    for version in history.log(skill):  # the newest first: an older one that has the line wins
        record = version.record
        sessions = tuple(dict.fromkeys(filter(None, (record.session, *record.evidence))))
        for line in _lines(history.files(version)):
            found[line] = (record.change, record.actor, sessions)
    return found


def _lines(files: dict[str, File]) -> Iterator[str]:
    data = files[SKILL_FILE].data if SKILL_FILE in files else b""
    for line in data.decode("utf-8", "replace").splitlines():
        if len(line.strip()) > _LEAST and not line.startswith(("---", "name:", "metadata:")):
            yield line.strip()


_LEAST = 12
_MOST_SESSIONS = 8
_NEAR = 0.3
"""The part of a line's words that must stand in a step for it to be named."""


def _reviewed(
    raw: str,
    number: int,
    origins: Mapping[str, LineOrigin],
    find_trace: FindTrace,
) -> LineReason | None:
    change, actor, sessions = origins.get(raw.strip(), ("", "", ()))
    if not sessions or raw.startswith((" ", "#")):
        return None
    places = []
    for session in sessions[:_MOST_SESSIONS]:
        trace = find_trace(session)
        step, words = _step_of(raw, trace) if trace is not None else ("", "")
        places.append(Witnessed(session, step=step, words=words))
    support = Support(sessions=len(sessions))
    return LineReason(number, raw.strip(), support, tuple(places), (), change, actor)


def _step_of(line: str, trace: Trace) -> tuple[str, str]:
    """The step in which most of a line stands, among what was said and done, and its words."""
    done = sources(trace).done
    match = Body(done).best(distinct_stems(line))
    if match.share < _NEAR:
        return "", ""
    words = next((said.text for said in done if said.step == match.step), "")
    return match.step, shorten(one_line(words), 160)


def evidence_file(lessons: Lessons, skill: str) -> bytes:
    """The evidence of a skill for others: counts for each line, and no word of any session."""
    lines = ["# Evidence", "", "How many sessions support each line; no session is quoted.", ""]
    for one in lessons.of_skill(skill):
        if one.state == "written" and one.line:
            lines += [f"- {one.line}", f"  {counts_in_words(one.support)}"]
    return ("\n".join(lines) + "\n").encode() if len(lines) > 4 else b""


def counts_in_words(support: Support) -> str:
    """`5 sessions (4 worked, 1 failed) of 2 projects, 2 models; followed and failed in 1`."""
    parts = [counted(support.sessions, "session")]
    ends = [f"{n} {word}" for n, word in ((support.worked, "worked"), (support.failed, "failed"))
            if n]  # fmt: skip
    if ends:
        parts[0] += f" ({', '.join(ends)})"
    more = [
        counted(n, noun)
        for n, noun in (
            (support.projects, "project"),
            (support.models, "model"),
        )
        if n > 1
    ]
    if support.people > 1:
        more.append(f"{support.people} people")
    if more:
        parts[0] += f" of {', '.join(more)}"
    if support.said:
        parts.append(f"the user said so in {support.said}")
    if support.against:
        parts.append(f"followed and failed in {support.against}")
    if support.followed:
        parts.append(f"followed and fine in {support.followed}")
    return "; ".join(parts)
