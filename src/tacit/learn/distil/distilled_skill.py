"""Lessons as a skill: which skill they belong in, its lines, and the change that is proposed.

A skill is about a class of work: the tasks of one kind where they taught enough, else the whole of
a project. It has at most 80 lines; the rest stands in `references/`. One that is there gets edits,
line by line: new lessons are added, those that failed or were overruled are taken out, and what
a person wrote stays. The skill itself carries counts only. Each line is kept beside its lesson, so
that `tacit why` knows what supports it.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date

import msgspec
from msgspec.structs import replace

from tacit.base.display import counted, one_line, shorten
from tacit.base.errors import TacitError
from tacit.base.paths import existing_folder
from tacit.changes.change import SKILL_FILE, Change, Create, Rewrite, Verdict, bytes_of
from tacit.changes.neighbours import LibraryNeighbours
from tacit.changes.provenance.deeds import sources
from tacit.changes.provenance.witness import Witness
from tacit.changes.skill_state import SkillState
from tacit.learn.background.background_gate import background_gate, places_for
from tacit.learn.background.staging import change_id
from tacit.learn.clusters import Cluster, common_words
from tacit.learn.distil.distil_plan import DistilOptions
from tacit.learn.distil.lessons import BEFORE, CHECK, INSTEAD, RULE, WISHED, shape
from tacit.learn.distil.support import KnownLesson, Lessons, SupportRow
from tacit.learn.rates import usual_form
from tacit.learn.review.learned_skill import metadata_of, unfit_name, with_metadata
from tacit.learn.segments import Segment, segment_trace
from tacit.skills import frontmatter
from tacit.skills.library import Library
from tacit.skills.skill import LEARNED_SOURCE, suggest_name
from tacit.traces.trace import Trace

MOST_LINES = 80
"""Lines of a SKILL.md."""
MORE = "references/more.md"
EVIDENCE = "references/evidence.md"
_OWN_SKILL, _OWN_SESSIONS = 4, 3
"""Lessons and sessions from which tasks of one kind get a skill of their own."""
_MOSTLY = 0.6
_WITNESSES, _MOST_WITNESSES = 2, 60
"""Tasks that the words of a skill are held against: of one lesson, and of all."""


class SkillPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that is to be written, or edited."""

    name: str
    project: str
    topic: str
    """The class of work, in words."""
    where: str = ""
    """The project, as it is called."""
    lessons: tuple[KnownLesson, ...] = ()

    @property
    def place(self) -> str:
        return f" in {self.where}" if self.where else ""

    @property
    def title(self) -> str:
        return f"{self.topic[:1].upper()}{self.topic[1:]}{self.place}"


Rows = Mapping[str, Sequence[SupportRow]]
"""What supports each lesson."""


class Written(msgspec.Struct, frozen=True):
    """A skill that was put before the gate, and its answer."""

    skill: str
    lines: int
    """Lessons in it."""
    added: int
    removed: int
    verdict: Verdict | None
    """None where nothing is new."""
    text: str = ""
    """SKILL.md, as it would be."""


def plan_skills(
    lessons: Lessons,
    agreed: Sequence[KnownLesson],
    clusters: Sequence[Cluster],
    options: DistilOptions,
    gone: Sequence[KnownLesson] = (),
) -> list[SkillPlan]:
    """Which lessons go into which skill; also the skills that only lose some."""
    kind_of = {member.id: at for at, found in enumerate(clusters) for member in found.members}
    rows = {one.id: lessons.rows(one.id, "for") for one in agreed}
    groups: dict[tuple[str, int], list[KnownLesson]] = {}
    for one in agreed:
        project = _mostly(row.project for row in rows[one.id])
        mostly = _mostly(str(kind_of.get(row.task, -1)) for row in rows[one.id])
        home = (options.within, -1) if options.into else (project, int(mostly or -1))
        groups.setdefault(home, []).append(one)
    for home in [home for home in groups if home[1] >= 0]:
        if len(groups[home]) < _OWN_SKILL or len(clusters[home[1]].sessions) < _OWN_SESSIONS:
            groups.setdefault((home[0], -1), []).extend(groups.pop(home))
    if len(groups) > 1 and len(groups.get(("", -1), ())) < _OWN_SKILL:
        # A few lines of several projects make no skill: they go where most of their sessions are.
        for one in groups.pop(("", -1), []):
            seen = Counter(row.project for row in rows[one.id])
            groups[min(groups, key=lambda home: (-seen[home[0]], home[1], home[0]))].append(one)
    plans = []
    for (project, kind), own in sorted(groups.items()):
        behind = {row.task for one in own for row in rows[one.id]}
        tasks = [task for found in clusters for task in found.members if task.id in behind]
        words = _topic_words(project, own, rows, clusters[kind] if kind >= 0 else None, tasks)
        plans.append(_plan(project, own, words, options.into))
    for name in sorted({one.skill for one in gone} - {plan.name for plan in plans}):
        left = [row for one in gone if one.skill == name for row in lessons.rows(one.id)]
        project = _mostly(row.project for row in left)
        plans.append(SkillPlan(name=name, project=project, topic=name))
    # Folders of one name that are not there any more have one skill, the user's.
    merged: dict[tuple[str, str], SkillPlan] = {}
    for plan in plans:
        place = (plan.name, existing_folder(plan.project))
        every = (*plan.lessons, *(merged[place].lessons if place in merged else ()))
        ordered = sorted(every, key=lambda one: (-one.support.sessions, one.id))
        merged[place] = replace(plan, lessons=tuple(ordered))
    return list(merged.values())


def _mostly(names: Iterable[str]) -> str:
    """The name that most have; empty where none is ahead."""
    found = Counter(names)
    name, count = found.most_common(1)[0] if found else ("", 0)
    return name if count > _MOSTLY * found.total() else ""


_WORD = re.compile(r"[^\W\d_]{3,20}")


def _plan(project: str, own: Sequence[KnownLesson], common: Sequence[str], into: str) -> SkillPlan:
    """A plan with a name and a topic, of the words that its tasks have in `common`, if any."""
    base = os.path.basename(project.rstrip("/"))
    where = base if re.fullmatch(r"[\w.+-]{1,40}", base) else ""
    words = [word for word in common if _WORD.fullmatch(word)][:3]
    plain = re.sub(r"\d{4,}", "", where)  # a day or a number names nothing
    parts = ((at, *words[:2]) if words else (at or "shared", "ways") for at in (where, plain))
    names = (suggest_name("-".join(filter(None, part))) for part in parts)
    name = next((name for name in names if not unfit_name(name)), "shared-ways")
    return SkillPlan(
        name=into or _mostly(one.skill for one in own if one.skill) or name,
        project=project,
        topic=" ".join(words) or ("everyday work" if where else "everyday work in all projects"),
        where=where,
        lessons=tuple(own),
    )


def _topic_words(
    project: str,
    own: Sequence[KnownLesson],
    rows: Rows,
    kind: Cluster | None,
    behind: Sequence[Segment],
) -> Sequence[str]:
    """Words for tasks of one kind, or for what lessons without a project are about; none for the
    everyday work of one or of several."""
    if kind is not None:
        return kind.words
    if project or len({task.project for task in behind}) > 1:
        return ()
    words = [word for word in common_words(behind) if _WORD.fullmatch(word)]
    return words or list(dict.fromkeys(_WORD.findall(" ".join(_shown_things(own, rows)))))


def _shown_things(own: Iterable[KnownLesson], rows: Rows) -> list[str]:
    """What lessons are about, where the words of a session name it: a model may say anything."""
    named = {}
    for one in own:
        quotes = (quote.text for row in rows[one.id] for quote in row.quotes)
        if one.about and any(one.about.casefold() in text.casefold() for text in quotes):
            named[shorten(one.about, 40)] = one
    return list(named)


# The lines.

_SECTIONS = {
    WISHED: "How the user wants it",
    BEFORE: "In this order",
    "do": "What to do",
    INSTEAD: "What fails, and what works",
    "avoid": "What to avoid",
    CHECK: "Checking the work",
    RULE: "Good to know",
    "know": "Good to know",
}
"""The headings, in their order, by the shape of a lesson or else its kind."""


def _heading(one: KnownLesson) -> str:
    return f"## {_SECTIONS[shape(one) or one.kind]}"


def line_of(one: KnownLesson, rows: Sequence[SupportRow], condition: str = "") -> str:
    """A lesson as it stands in a skill."""
    text = one.text
    if shape(one) == CHECK:
        forms = [quote.text for row in rows for quote in row.quotes[:1]]
        text = f"{CHECK}`{usual_form(one.about, forms)}`."
    when = one.when or condition
    return one_line(f"{when[:1].upper()}{when[1:]}: {text}" if when else text)


def _begun(plan: SkillPlan, rows: Rows) -> str:
    """A SKILL.md without a line: all that is not a lesson of some session."""
    # What fails or was refused is told below, with how: here it would read as advice.
    advised = (one for one in plan.lessons if one.kind == "do" and shape(one) != INSTEAD)
    things = ", ".join(_shown_things(advised, rows)[:5])
    described = shorten(
        f"What earlier sessions{plan.place} taught about {plan.topic}"
        f"{f': {things}' if things else ''}."
        f" Use for {plan.topic}{plan.place}, before beginning and before calling it done.",
        900,
    )
    described = one_line(described).replace("'", "''")
    return f"---\nname: {plan.name}\ndescription: '{described}'\n---\n\n# {plan.title}\n"


_COUNTS = (
    "source", "learned", "revised", "method", "sessions", "projects", "people", "models",
    "worked", "failed", "support",
)  # fmt: skip


def _counts(plan: SkillPlan, rows: Sequence[SupportRow], old: Mapping[str, str]) -> dict[str, str]:
    """What a skill says of its origin: counts, and no session."""
    day = date.today().isoformat()
    found = {"source": LEARNED_SOURCE, "learned": old.get("learned", day), "method": "distilled"}
    if found["learned"] != day:
        found["revised"] = day
    failed = {row.session for row in rows if row.outcome == "failed"}
    each = {
        "sessions": {row.session for row in rows},
        "projects": {row.project for row in rows} - {""},
        "people": {row.person for row in rows} - {""},
        "models": {row.model for row in rows} - {""},
        "worked": {row.session for row in rows if row.outcome == "worked"} - failed,
        "failed": failed,
    }
    found |= {name: str(len(own)) for name, own in each.items() if own}
    return found | {"support": " ".join(str(one.support.sessions) for one in plan.lessons)}


def files_with(
    plan: SkillPlan,
    lines: Mapping[str, str],
    gone: Collection[str],
    now: Mapping[str, bytes],
    counts: dict[str, str],
) -> dict[str, bytes]:
    """The files of a skill as it is `now`, with these lines and without those of `gone`."""
    texts = {path: data.decode("utf-8", "replace") for path, data in now.items()}
    parts = frontmatter.split(texts[SKILL_FILE].replace("\r\n", "\n"))
    out = {f"- {line}" for line in gone}
    body = [line for line in parts.body.rstrip("\n").split("\n") if line.strip() not in out]
    more = [line for line in texts.get(MORE, "").splitlines() if line.strip() not in out]
    known = {line.strip() for line in (*body, *more)}
    for one in plan.lessons:
        line = f"- {lines[one.id]}"
        if line in known:
            continue
        if len(body) + _AROUND < MOST_LINES:
            _insert(body, _heading(one), line)
        else:
            more = [*(more or [f"# {plan.title}: more", ""]), line]
    _drop_empty_sections(body)
    if more and not any(MORE in line for line in body):
        body += ["", f"More, seen less often: `{MORE}`."]
    head = with_metadata(parts.head or "", counts, _COUNTS) or parts.head or ""
    made = {SKILL_FILE: f"---\n{head}\n---\n" + "\n".join(body) + "\n"}
    made |= {MORE: "\n".join(more) + "\n"} if more else {}
    return {**now, **{path: text.encode() for path, text in made.items()}}


_AROUND = 20
"""Lines of a head, a new section and a pointer, at most."""


def _insert(body: list[str], heading: str, line: str) -> None:
    """Put a line at the end of its section; where there is none, it is made before the sections
    that come after it."""
    order = [f"## {section}" for section in _SECTIONS.values()]
    if heading in body:
        at = body.index(heading) + 1
        while at < len(body) and not body[at].startswith("#"):
            at += 1
        while not body[at - 1].strip():
            at -= 1
        body.insert(at, line)
        return
    later = order[order.index(heading) :]
    at = next((at for at, other in enumerate(body) if other in later), len(body))
    body[at:at] = [heading, "", line, ""] if at < len(body) else ["", heading, "", line]


def _drop_empty_sections(body: list[str]) -> None:
    """Take out the headings whose last line is gone."""
    for section in _SECTIONS.values():
        if (heading := f"## {section}") in body:
            at = body.index(heading)
            rest = next((line for line in body[at + 1 :] if line.strip()), "#")
            if rest.startswith("#"):
                del body[at : at + 2]


# Through the gate.


class SkillWriter:
    """Puts planned skills before the gate, as the distiller."""

    def __init__(
        self,
        lessons: Lessons,
        run: str,
        read_trace: Callable[[str], Trace],
        conditions: Mapping[str, str],
    ) -> None:
        self._lessons = lessons
        self._run = run
        self._read = read_trace
        self._conditions = conditions

    def write(self, plan: SkillPlan, gone: Sequence[KnownLesson] = ()) -> Written:
        """Propose a plan. Where a skill covers it already, that one is edited instead."""
        written = self._propose(plan, gone)
        refusal = written.verdict.refusal if written.verdict and written.verdict.refused else None
        if refusal and refusal.alternatives:
            again = self._propose(replace(plan, name=refusal.alternatives[0]), gone)
            written = again if again.verdict and not again.verdict.refused else written
        return written

    def _propose(self, plan: SkillPlan, gone: Sequence[KnownLesson]) -> Written:
        project = existing_folder(plan.project)
        gate = background_gate("distiller", places_for(project))
        root, folder = gate.open_place().place.root, plan.name
        entry = Library(project or root).find(plan.name)
        if entry is not None and os.path.realpath(entry.root) in gate.open_places:
            root, folder = entry.root, entry.relative_folder
        gone = [one for one in gone if (one.skill, one.root) == (plan.name, root)]
        # Also the lines that stand in the skill and that this run did not speak of.
        known = {one.id for one in (*plan.lessons, *gone)}
        rest = tuple(o for o in self._lessons.of_skill(plan.name, root) if o.id not in known)
        agreed, plan = plan.lessons, replace(plan, lessons=(*plan.lessons, *rest))
        rows = {one.id: self._lessons.rows(one.id, "for") for one in plan.lessons}
        lines = {one.id: one.line for one in rest} | {
            one.id: line_of(one, rows[one.id], self._conditions.get(one.id, "")) for one in agreed
        }
        now = gate.state_of(folder, root)
        change, before = self._change(now, root, plan, gone, lines, rows)
        added = sum(f"- {line}" not in before for line in lines.values())
        removed = sum(f"- {one.line}" in before for one in gone)
        written = Written(plan.name, len(lines), added, removed, None, skill_text_of(change))
        if not added and not removed:
            return written  # counts that grew are no news by themselves
        gate = background_gate(
            "distiller",
            places_for(project),
            neighbours=LibraryNeighbours(project or None),
            scanner=self._witness(plan, rows, now),  # reads sessions: only for what is proposed
        )
        waiting = gate.inbox.waiting(change.root)
        verdict = gate.propose(change)
        for old in waiting:
            same = (old.change.actor, old.change.skill) == (change.actor, change.skill)
            if same and verdict.outcome == "proposed" and old.id != verdict.change:
                gate.inbox.remove(old.id)
        if not verdict.refused:
            # What stands there already is not up to this proposal's answer.
            there = {one.id for one in plan.lessons if one.state == "written"}
            new = {n: ln for n, ln in lines.items() if n not in there or f"- {ln}" not in before}
            self._lessons.write(new, plan.name, change.root, verdict.change)
            self._lessons.mark((one.id for one in gone), "removed")
        return replace(written, verdict=verdict)

    def _change(
        self,
        now: SkillState,
        root: str,
        plan: SkillPlan,
        gone: Sequence[KnownLesson],
        lines: Mapping[str, str],
        rows: Rows,
    ) -> tuple[Change, set[str]]:
        """The change of a skill as it is `now`, and the lines before it."""
        base = now.head.id if now.is_live and now.head is not None else ""
        files = dict(now.contents.files) if base else {}
        known = bytes_of(files) or {SKILL_FILE: _begun(plan, rows).encode()}
        each = [row for own in rows.values() for row in own]
        counts = _counts(plan, each, metadata_of(files))
        old = [one.line for one in plan.lessons if one.line != lines[one.id]]
        made = files_with(plan, lines, [*(one.line for one in gone), *old], known, counts)
        sessions = list(dict.fromkeys(row.session for row in each))
        reason = f"distilled: {counted(len(lines), 'line')}"
        reason += f" from {counted(len(sessions), 'session')}"
        reason += f"; {counted(len(gone), 'line')} taken out, which failed" if gone else ""
        change = Change(
            id=change_id(self._run, os.path.join(root, plan.name)),
            skill=now.skill,
            operations=(Rewrite(made) if base else Create(made),),
            actor="distiller",
            reason=reason,
            evidence=tuple(sessions[:_MOST_WITNESSES]),
            root=root,
            base=base,
        )
        texts = (file.data.decode("utf-8", "replace") for file in files.values())
        return change, {line.strip() for text in texts for line in text.splitlines()}

    def _witness(self, plan: SkillPlan, rows: Rows, now: SkillState) -> Witness:
        """What the words of a skill are held against: what stood in it, and a few of the tasks
        behind each line, first the one whose words were kept for it."""
        names: dict[str, None] = {}
        for one in plan.lessons:
            own = sorted(rows[one.id], key=lambda row: row.text != one.text)
            names |= dict.fromkeys(row.task for row in own[:_WITNESSES])
        chosen = list(names)[:_MOST_WITNESSES]
        parts = []
        tasks = self._lessons.tasks({name.rpartition("#")[0] for name in chosen})
        for task in (task for task in tasks if task.id in chosen):
            with suppress(TacitError):  # it was forgotten meanwhile
                parts.append(segment_trace(self._read(task.session), task))
        witness = Witness(sources(*parts))
        witness.allow({SKILL_FILE: _begun(plan, rows).encode()})
        witness.allow(bytes_of(now.contents.files) if now.is_live else {})
        return witness


def skill_text_of(change: Change) -> str:
    """The SKILL.md that a change of the distiller would make; of a fact there is none."""
    files = (one.files for one in change.operations if isinstance(one, Create | Rewrite))
    return next((each.get(SKILL_FILE, b"").decode("utf-8", "replace") for each in files), "")
