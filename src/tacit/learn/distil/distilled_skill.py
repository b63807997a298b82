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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date

import msgspec

from tacit.base.display import counted, one_line, shorten
from tacit.base.paths import existing_folder
from tacit.changes.change import SKILL_FILE, Change, Create, File, Rewrite, Verdict, bytes_of
from tacit.changes.gate import Gate
from tacit.changes.neighbours import LibraryNeighbours
from tacit.changes.provenance.deeds import sources
from tacit.changes.provenance.witness import Witness
from tacit.learn.background.background_gate import background_gate, places_for
from tacit.learn.background.staging import change_id
from tacit.learn.distil.analyst import ASKED
from tacit.learn.distil.clusters import Cluster
from tacit.learn.distil.segments import Segment, segment_trace
from tacit.learn.distil.support import KnownLesson, Lessons, SupportRow
from tacit.learn.rates import usual_form
from tacit.learn.review.learned_skill import metadata_of, unfit_name, with_metadata
from tacit.skills import frontmatter
from tacit.skills.library import Library
from tacit.skills.skill import LEARNED_SOURCE, suggest_name
from tacit.traces.trace import Trace

MOST_LINES = 80
"""Lines of a SKILL.md."""
_MORE = "references/more.md"
EVIDENCE = "references/evidence.md"
_OWN_SKILL, _OWN_SESSIONS = 4, 3
"""Lessons and sessions from which tasks of one kind get a skill of their own."""
_MOSTLY = 0.6
_WITNESSES = 2
"""Tasks a lesson that the words of a skill are held against."""
_MOST_WITNESSES = 60


class SkillPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that is to be written, or edited."""

    name: str
    project: str
    title: str
    topic: str
    """The class of work, in words."""
    lessons: tuple[KnownLesson, ...]


class Written(msgspec.Struct, frozen=True):
    """A skill that was put before the gate, and its answer."""

    skill: str
    lines: int
    """Lessons in it."""
    added: int
    removed: int
    verdict: Verdict | None
    """None in a rehearsal."""
    text: str = ""


FindTrace = Callable[[str], Trace | None]
"""The session of an id; None where it is not there any more."""


def plan_skills(
    lessons: Lessons, agreed: Sequence[KnownLesson], clusters: Sequence[Cluster], into: str = ""
) -> list[SkillPlan]:
    """Which lessons go into which skill."""
    kind_of = {member.id: at for at, found in enumerate(clusters) for member in found.members}
    groups: dict[tuple[str, int], list[KnownLesson]] = {}
    for one in agreed:
        rows = [row for row in lessons.rows(one.id) if row.side == "for"]
        project = _mostly(row.project for row in rows)
        kind = _mostly(str(kind_of.get(row.task, -1)) for row in rows)
        home = (project, int(kind or -1)) if not into else ("", -1)
        groups.setdefault(home, []).append(one)
    for home in [home for home in groups if home[1] >= 0]:
        if len(groups[home]) < _OWN_SKILL or len(clusters[home[1]].sessions) < _OWN_SESSIONS:
            groups.setdefault((home[0], -1), []).extend(groups.pop(home))
    if len(groups) > 1 and len(groups.get(("", -1), ())) < _OWN_SKILL:
        # A few lines of several projects make no skill: they go where most of their sessions are.
        for one in groups.pop(("", -1), []):
            seen = Counter(row.project for row in lessons.rows(one.id) if row.side == "for")
            homes = sorted(groups, key=lambda home: (-seen[home[0]], home[1], home[0]))
            groups[homes[0]].append(one)
    return [_plan(home, own, clusters, into) for home, own in sorted(groups.items())]


def _mostly(names: Iterable[str]) -> str:
    """The name that most have; empty where none is ahead."""
    found = Counter(names)
    name, count = found.most_common(1)[0] if found else ("", 0)
    return name if count > _MOSTLY * found.total() else ""


def _plan(
    home: tuple[str, int], own: Sequence[KnownLesson], clusters: Sequence[Cluster], into: str
) -> SkillPlan:
    project, kind = home
    base = os.path.basename(project.rstrip("/"))
    where = base if re.fullmatch(r"[\w.+-]{1,40}", base) else ""
    words = _plain_words(clusters[kind] if kind >= 0 else (clusters[0] if clusters else None))
    words = words or _words_of(own) or ["shared"]
    topic = " ".join(words) if kind >= 0 or not where else "everyday work"
    before = _mostly(one.skill for one in own if one.skill)
    name = into or before or suggest_name("-".join(filter(None, (where, *words[:2]))))
    if not (into or before) and kind < 0:
        name = suggest_name(f"{where}-ways" if where else f"{'-'.join(words[:2])}-work")
    if not (into or before) and unfit_name(name):
        name = suggest_name(f"{where or 'shared'}-ways")
    title = f"{topic[:1].upper()}{topic[1:]}" + (f" in {where}" if where else "")
    ordered = sorted(own, key=lambda one: (-one.support.sessions, one.id))
    return SkillPlan(name=name, project=project, title=title, topic=topic, lessons=tuple(ordered))


def _words_of(own: Sequence[KnownLesson]) -> list[str]:
    """Words for what lessons are about, where the requests had none in common."""
    found = re.findall(r"[^\W\d_]{3,20}", " ".join(one.about for one in own))
    return list(dict.fromkeys(found))[:3]


def _plain_words(cluster: Cluster | None) -> list[str]:
    found = cluster.words if cluster else ()
    return [word for word in found if re.fullmatch(r"[^\W\d_]{3,20}", word)][:3]


# The lines.

_SECTIONS = (
    "How the user wants it",
    "In this order",
    "What to do",
    "What fails, and what works",
    "What to avoid",
    "Checking the work",
    "Good to know",
)


def section_of(one: KnownLesson) -> str:
    """The heading that a lesson stands under."""
    text = one.text
    if text.endswith("(the user's words)") or one.about.startswith(ASKED):
        return _SECTIONS[0]
    if text.startswith("Before `"):
        return _SECTIONS[1]
    if " fails as it is called; run " in text:
        return _SECTIONS[3]
    if text.startswith("Check the work with "):
        return _SECTIONS[5]
    return {"do": _SECTIONS[2], "avoid": _SECTIONS[4], "know": _SECTIONS[6]}[one.kind]


def line_of(one: KnownLesson, rows: Sequence[SupportRow], condition: str = "") -> str:
    """A lesson as it stands in a skill."""
    text = one.text
    if section_of(one) == _SECTIONS[5]:
        forms = [quote.text for row in rows for quote in row.quotes[:1] if row.side == "for"]
        text = f"Check the work with `{usual_form(one.about, forms)}`."
    when = one.when or condition
    return f"{when[:1].upper()}{when[1:]}: {text}" if when else text


def lines_of(
    lessons: Lessons, chosen: Sequence[KnownLesson], conditions: Mapping[str, str]
) -> dict[str, str]:
    """The line of each lesson, by its id."""
    return {
        one.id: one_line(line_of(one, lessons.rows(one.id), conditions.get(one.id, "")))
        for one in chosen
    }


def _body(plan: SkillPlan, lines: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The lines below the head, and those that found no room."""
    by_section: dict[str, list[str]] = {}
    left = MOST_LINES - _AROUND
    more: list[str] = []
    for one in plan.lessons:
        section = section_of(one)
        cost = 1 if section in by_section else 4
        if left >= cost + 2:
            left -= cost
            by_section.setdefault(section, []).append(f"- {lines[one.id]}")
        else:
            more.append(f"- {lines[one.id]}")
    body = [f"# {plan.title}"]
    for section in _SECTIONS:
        if section in by_section:
            body += ["", f"## {section}", "", *by_section[section]]
    if more:
        body += ["", f"More, seen less often: `{_MORE}`."]
    return body, more


_AROUND = 20
"""Lines of a head, a title and a pointer, at most."""


def _description(plan: SkillPlan) -> str:
    # What fails or was refused is told below, with how: here it would read as advice.
    advised = [o for o in plan.lessons if o.kind == "do" and section_of(o) != _SECTIONS[3]]
    named = [one.about for one in advised if one.about and not one.about.startswith(ASKED)]
    things = ", ".join(list(dict.fromkeys(shorten(name, 40) for name in named))[:5])
    about = f": {things}" if things else ""
    place = plan.title.partition(" in ")[2]
    where = f" in {place}" if place else ""
    return shorten(
        f"What earlier sessions{where} taught about {plan.topic}{about}."
        f" Use for {plan.topic}{where}, before beginning and before calling it done.",
        900,
    )


_COUNTS = (
    "source", "learned", "revised", "method", "sessions", "projects", "people", "models",
    "worked", "failed", "support",
)  # fmt: skip


def _counts(
    lessons: Lessons, plan: SkillPlan, old: Mapping[str, str], today: date
) -> dict[str, str]:
    """What a skill says of its origin: counts, and no session."""
    rows = [row for one in plan.lessons for row in lessons.rows(one.id) if row.side == "for"]
    ends: dict[str, set[str]] = {}
    for row in rows:
        ends.setdefault(row.outcome, set()).add(row.session)
    failed = ends.get("failed", set())
    day = today.isoformat()
    found = {"source": LEARNED_SOURCE, "learned": old.get("learned", day), "method": "distilled"}
    if old.get("learned", day) != day:
        found["revised"] = day
    counts = {
        "sessions": len({row.session for row in rows}),
        "projects": len({row.project for row in rows if row.project}),
        "people": len({row.person for row in rows if row.person}),
        "models": len({row.model for row in rows if row.model}),
        "worked": len(ends.get("worked", set()) - failed),
        "failed": len(failed),
    }
    found |= {name: str(count) for name, count in counts.items() if count}
    return found | {"support": " ".join(str(one.support.sessions) for one in plan.lessons)}


def new_files(
    lessons: Lessons, plan: SkillPlan, lines: Mapping[str, str], today: date
) -> dict[str, bytes]:
    """The files of a new skill."""
    body, more = _body(plan, lines)
    head = f"name: {plan.name}\ndescription: {_yaml(_description(plan))}"
    marked = with_metadata(head, _counts(lessons, plan, {}, today), _COUNTS) or head
    files = {SKILL_FILE: f"---\n{marked}\n---\n\n" + "\n".join(body) + "\n"}
    return {path: text.encode() for path, text in (files | _more_file(plan, more)).items()}


def _more_file(plan: SkillPlan, more: Sequence[str]) -> dict[str, str]:
    return {_MORE: "\n".join([f"# {plan.title}: more", "", *more]) + "\n"} if more else {}


def _yaml(text: str) -> str:
    return "'" + one_line(text).replace("'", "''") + "'"


def edited_files(
    lessons: Lessons,
    plan: SkillPlan,
    lines: Mapping[str, str],
    gone: Iterable[str],
    now: Mapping[str, File],
    today: date,
) -> dict[str, bytes]:
    """The files of a skill that is there, with new lines and without those of `gone`."""
    text = now[SKILL_FILE].data.decode("utf-8", "replace").replace("\r\n", "\n")
    parts = frontmatter.split(text)
    out = {f"- {line}" for line in gone}
    more = now[_MORE].data.decode("utf-8", "replace").splitlines() if _MORE in now else []
    body = [line for line in parts.body.rstrip("\n").split("\n") if line.strip() not in out]
    more = [line for line in more if line.strip() not in out]
    known = {line.strip() for line in (*body, *more)}
    fresh: list[str] = []
    for one in plan.lessons:
        line = f"- {lines[one.id]}"
        if line in known:
            continue
        if len(body) + _AROUND < MOST_LINES:
            _insert(body, section_of(one), line)
        else:
            fresh.append(line)
    if fresh and not any(_MORE in line for line in body):
        body += ["", f"More, seen less often: `{_MORE}`."]
    counts = _counts(lessons, plan, metadata_of(dict(now)), today)
    head = with_metadata(parts.head or "", counts, _COUNTS) or parts.head or ""
    files = bytes_of(now) | {SKILL_FILE: f"---\n{head}\n---\n".encode() + "\n".join(body).encode()}
    files[SKILL_FILE] += b"\n"
    if fresh or (_MORE in now and more):
        begun = more or [f"# {plan.title}: more", ""]
        files[_MORE] = ("\n".join([*begun, *fresh]) + "\n").encode()
    return files


def _insert(body: list[str], section: str, line: str) -> None:
    """Put a line at the end of its section, which is made where there is none."""
    heading = f"## {section}"
    if heading not in body:
        body += ["", heading, "", line]
        return
    at = body.index(heading) + 1
    while at < len(body) and not body[at].startswith("#"):
        at += 1
    while not body[at - 1].strip():
        at -= 1
    body.insert(at, line)


# Through the gate.


class SkillWriter:
    """Puts planned skills before the gate, as the distiller."""

    def __init__(
        self, lessons: Lessons, run: str, find_trace: FindTrace, conditions: Mapping[str, str]
    ) -> None:
        self._lessons = lessons
        self._run = run
        self._find = find_trace
        self._conditions = conditions

    def write(
        self, plan: SkillPlan, gone: Sequence[KnownLesson] = (), *, rehearse: bool = False
    ) -> Written:
        """Propose a plan. Where a skill covers it already, that one is edited instead."""
        written = self._propose(plan, gone, rehearse)
        refusal = written.verdict.refusal if written.verdict else None
        if (
            refusal is not None
            and refusal.alternatives
            and written.verdict
            and (written.verdict.refused)
        ):
            other = msgspec.structs.replace(plan, name=refusal.alternatives[0])
            again = self._propose(other, gone, rehearse)
            written = again if again.verdict and not again.verdict.refused else written
        return written

    def _propose(self, plan: SkillPlan, gone: Sequence[KnownLesson], rehearse: bool) -> Written:
        project = existing_folder(plan.project)
        gate = background_gate(
            "distiller",
            places_for(project),
            neighbours=LibraryNeighbours(project or None),
            scanner=self._witness(plan),
        )
        lines = lines_of(self._lessons, plan.lessons, self._conditions)
        change, before, after = self._change(gate, plan, gone, lines, project)
        added = sum(f"- {line}" not in before for line in lines.values())
        removed = sum(f"- {one.line}" in before for one in gone)
        text = after.decode("utf-8", "replace")
        count = len(lines)
        if change is None or rehearse:
            return Written(plan.name, count, added, removed, None, text)
        waiting = [
            p for p in gate.inbox.waiting(change.root)
            if (p.change.actor, p.change.skill) == (change.actor, change.skill)
        ]  # fmt: skip
        verdict = gate.propose(change)
        for proposal in waiting:
            if verdict.outcome == "proposed" and proposal.id != verdict.change:
                gate.inbox.remove(proposal.id)
        if not verdict.refused:
            self._lessons.write(lines, plan.name, change.root, verdict.change)
            self._lessons.mark((one.id for one in gone), "removed")
        return Written(plan.name, count, added, removed, verdict, text)

    def _change(
        self,
        gate: Gate,
        plan: SkillPlan,
        gone: Sequence[KnownLesson],
        lines: Mapping[str, str],
        project: str,
    ) -> tuple[Change | None, set[str], bytes]:
        """The change, None where nothing is new; the lines before it; and SKILL.md after it."""
        entry = Library(project or gate.open_place().place.root).find(plan.name)
        root = entry.root if entry else gate.open_place().place.root
        folder = entry.relative_folder if entry else plan.name
        now = gate.state_of(folder, root) if _is_open(gate, root) else gate.state_of(plan.name)
        today = date.today()
        operation: Create | Rewrite
        before: set[str] = set()
        if now.is_live and now.head is not None:
            files = now.contents.files
            old = bytes_of(files)
            before = {
                line.strip()
                for data in old.values()
                for line in data.decode("utf-8", "replace").splitlines()
            }
            made = edited_files(
                self._lessons, plan, lines, (one.line for one in gone), files, today
            )
            operation = Rewrite(made)
            if _same_lines(old, made):
                return None, before, made[SKILL_FILE]
        else:
            made = new_files(self._lessons, plan, lines, today)
            operation = Create(made)
        sessions = self._sessions(plan)
        reason = (
            f"distilled: {counted(len(lines), 'line')} from {counted(len(sessions), 'session')}"
            + (f"; {counted(len(gone), 'line')} taken out, which failed" if gone else "")
        )
        change = Change(
            id=change_id(self._run, plan.name),
            skill=folder,
            operations=(operation,),
            actor="distiller",
            reason=reason,
            evidence=tuple(sessions[:_MOST_WITNESSES]),
            root=root if _is_open(gate, root) else gate.open_place().place.root,
            base=now.head.id if now.is_live and now.head else "",
        )
        return change, before, made[SKILL_FILE]

    def _sessions(self, plan: SkillPlan) -> list[str]:
        rows = (row for one in plan.lessons for row in self._lessons.rows(one.id))
        return list(dict.fromkeys(row.session for row in rows if row.side == "for"))

    def _witness(self, plan: SkillPlan) -> Witness:
        """What the words of a skill are held against: a few of the tasks behind each line."""
        tasks: dict[str, None] = {}
        for one in plan.lessons:
            rows = [row for row in self._lessons.rows(one.id) if row.side == "for"]
            # First the task whose words were kept for the line.
            rows.sort(key=lambda row: row.text != one.text)
            tasks |= dict.fromkeys(row.task for row in rows[:_WITNESSES])
        return Witness(sources(*self._parts(list(tasks)[:_MOST_WITNESSES])))

    def _parts(self, tasks: Sequence[str]) -> Iterator[Trace]:
        known = {task.id: task for task in self._tasks(tasks)}
        for name in tasks:
            task = known.get(name)
            trace = self._find(task.session) if task else None
            if task is not None and trace is not None:
                yield segment_trace(trace, task)

    def _tasks(self, tasks: Sequence[str]) -> Iterator[Segment]:
        return self._lessons.tasks({name.rpartition("#")[0] for name in tasks})


def _is_open(gate: Gate, root: str) -> bool:
    return os.path.realpath(root) in gate.open_places


def _same_lines(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> bool:
    """Whether two versions differ in their heads alone: counts that grew are no news by
    themselves."""

    def body(files: Mapping[str, bytes]) -> dict[str, str]:
        texts = {path: data.decode("utf-8", "replace") for path, data in files.items()}
        return texts | {SKILL_FILE: frontmatter.split(texts.get(SKILL_FILE, "")).body.strip()}

    return body(old) == body(new)
