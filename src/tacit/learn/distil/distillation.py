"""A distillation, from the sessions to proposed skills, as jobs that can be killed anywhere.

The coordinator is a job that stays on the machine of the sessions. It cuts sessions into tasks, has
each read (by jobs of the kind `analyse`, or by counting, here), joins what was found (by code, and
by jobs of the kind `merge`), and puts what is agreed on before the gate. It holds a table of its
jobs and a bounded number of them at a time, and money for each before it is queued, so it can be
killed anywhere: the next attempt goes on from the tables, and only requests in flight are made
again. Without an engine the same code has its jobs done by threads of this process.
"""

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import msgspec

from tacit.agent import budget
from tacit.base import paths
from tacit.base.clock import until_tomorrow
from tacit.base.job import Job, JobFamily, JobResult, cancelled, family, job_id
from tacit.base.settings import load_settings
from tacit.changes.change import acting_as, new_change_id
from tacit.changes.inbox import Inbox
from tacit.learn.distil import consensus
from tacit.learn.distil.analyst import (
    CountingAnalyst,
    Judged,
    inquiry_about,
    judge_answer,
    read_answer,
)
from tacit.learn.distil.distil_plan import (
    ANALYSE,
    COUNTING,
    MERGE,
    DistilOptions,
    DistilProgress,
    Reading,
    Tell,
    open_sessions,
    read_tasks,
)
from tacit.learn.distil.distilled_skill import SkillWriter, Written, plan_skills
from tacit.learn.distil.inquiry import Inquiry, answer_job, most_cost, reply_of
from tacit.learn.distil.lessons import Lesson, LessonQuote, claim_of
from tacit.learn.distil.segments import Segment, segment_trace, segments
from tacit.learn.distil.support import Conflict, KnownLesson, Lessons, open_lessons
from tacit.learn.rates import lasting_runs
from tacit.learn.signals import step_names
from tacit.traces.command_purposes import purpose
from tacit.traces.store import Store
from tacit.traces.trace import Trace

DISTIL_KIND = "distil"
WINDOW = 200
"""Jobs of a run that are on their way at a time."""
_AT_A_TIME = 25
"""Answers that are taken in before more is queued."""
_LOOK = 0.2
"""Seconds between looks at what is over."""
_SILENCE = 30.0
"""Seconds without an answer after which it is asked whether the day's budget is used up."""
_SHIFT = 60.0
"""Seconds after which the coordinator makes way for its next attempt."""


class OpenConflict(msgspec.Struct, frozen=True):
    """A contradiction for a person: both sides with their counts."""

    name: str
    why: str
    one: str
    one_sessions: int
    other: str
    other_sessions: int


class DistilResult(msgspec.Struct, frozen=True):
    """What came of a run."""

    sessions: int = 0
    tasks: int = 0
    read: int = 0
    requests: int = 0
    spent: float = 0.0
    skills: tuple[Written, ...] = ()
    few: int = 0
    """Lessons below the threshold, kept for later."""
    overruled: int = 0
    rejected: int = 0
    dropped: int = 0
    """Lessons that nothing in their session shows, or that came from a tool's output."""
    conflicts: tuple[OpenConflict, ...] = ()
    stopped: str = ""


# The coordinator.


class Threads:
    """Has jobs done by threads of this process, where there is no engine."""

    def __init__(self, run: Callable[[Job], JobResult] = answer_job, at_once: int = 8) -> None:
        self._run = run
        self._pool = ThreadPoolExecutor(at_once)
        self._begun: dict[tuple[str, str], Future[JobResult]] = {}

    def queue(self, kind: str, key: str, payload: dict[str, Any]) -> None:
        if (kind, key) not in self._begun:
            job = Job(job_id(kind, key), kind, key, payload)
            self._begun[kind, key] = self._pool.submit(self._until_over, job)

    def results(self, kind: str, keys: Collection[str]) -> dict[str, JobResult]:
        found = {key: self._begun.get((kind, key)) for key in keys}
        return {key: one.result() for key, one in found.items() if one is not None and one.done()}

    def withdraw(self, kind: str, keys: Collection[str]) -> None:
        for key in keys:
            if (one := self._begun.pop((kind, key), None)) is not None:
                one.cancel()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _until_over(self, job: Job) -> JobResult:
        done = self._run(job)
        if done.later and job.attempt < _TRIES:
            time.sleep(min(done.later, _PATIENCE))
            again = msgspec.structs.replace(job, attempt=job.attempt + 1)
            return self._until_over(again)
        return done


_TRIES, _PATIENCE = 3, 5.0


class Stopped(Exception):
    """The run is to make way: the user stopped it, or its shift is over."""

    def __init__(self, why: str, later: float = 0.0) -> None:
        super().__init__(why)
        self.later = later
        """Seconds after which it goes on; 0 where somebody has to say so."""


def run_distil(job: Job) -> JobResult:
    """Go on with the run that `job.payload` names. The job of the kind `distil`."""
    run, threads = str(job.payload["run"]), None
    jobs = family()
    if jobs is None:
        jobs = threads = Threads()
    try:
        result = go_on(run, jobs, shift=_SHIFT)
    except Stopped as stopped:
        return JobResult(
            "goes on" if stopped.later else "stopped", str(stopped), later=stopped.later
        )
    finally:
        if threads is not None:
            threads.close()
    changes = tuple(w.verdict.change for w in result.skills if w.verdict and not w.verdict.refused)
    return JobResult("proposed" if changes else "nothing", result.stopped, changes)


def begin(options: DistilOptions) -> str:
    """The run for these options: one that is not over, or a new one."""
    with open_lessons() as lessons:
        run = lessons.unfinished_run(options) or new_change_id()
        lessons.begin_run(run, options)
        lessons.set_run(run, "read")
        return run


def stop(run: str) -> None:
    """Have a run make way: nothing more is queued, and what was not begun is withdrawn."""
    with open_lessons() as lessons:
        row = lessons.run(run)
        if row is not None and row["state"] != "done":
            lessons.set_run(run, "stopped")


def progress(run: str) -> DistilProgress:
    """How far a run is."""
    with open_lessons() as lessons:
        row, counts = lessons.run(run), lessons.counts(run)
    if row is None:
        return DistilProgress()

    def count(kind: str, *, over: bool) -> int:
        return sum(n for (k, s), n in counts.items() if k == kind and (not over or s != "queued"))

    told = msgspec.json.decode(row["result"], type=dict)
    return DistilProgress(
        row["state"],
        told.get("sessions", 0),
        told.get("units", 0),
        count(ANALYSE, over=True),
        count(MERGE, over=False),
        count(MERGE, over=True),
        row["requests"],
        row["spent"],
    )


def result_of(run: str) -> DistilResult | None:
    """What came of a run; None while it is not over."""
    with open_lessons() as lessons:
        row = lessons.run(run)
    if row is None or row["state"] != "done":
        return None
    return msgspec.json.decode(row["result"], type=DistilResult)


def go_on(
    run: str, jobs: JobFamily, *, shift: float = 0.0, tell: Tell | None = None
) -> DistilResult:
    """Do what is left of a run. Raises `Stopped` where it is to make way."""
    with open_lessons() as lessons:
        row = lessons.run(run)
        assert row is not None, "a run is begun before it goes on"
        options = msgspec.json.decode(row["options"], type=DistilOptions)
        with open_sessions(options) as store, acting_as("distiller"):
            return _Run(run, options, store, lessons, jobs, shift, tell).finish()


class _Run:
    """One attempt at a run."""

    def __init__(
        self,
        run: str,
        options: DistilOptions,
        store: Store,
        lessons: Lessons,
        jobs: JobFamily,
        shift: float,
        tell: Tell | None,
    ) -> None:
        self.id = run
        self.options = options
        self.store = store
        self.lessons = lessons
        self.jobs = jobs
        self._tell = tell
        self._until = time.monotonic() + shift if shift else float("inf")
        self._index = consensus.open_index(lessons)
        self._traces: dict[str, Trace] = {}
        self._dropped = 0
        self._stopped = ""
        self._heard = time.monotonic()
        self._tasks: dict[str, Segment] = {}

    def finish(self) -> DistilResult:
        _sync_answers(self.lessons)
        reading = read_tasks(self.store, self.lessons, self.options, self._tell)
        self._tasks = {task.id: task for task in reading.tasks}
        self._told(reading)
        if self.options.model:
            self._have_read(reading)
            self._merge(reading)
        else:
            self._count(reading)
        self._follow(reading)
        return self._write(reading)

    def _told(self, reading: Reading) -> None:
        done = sum(n for (k, s), n in self.lessons.counts(self.id).items() if k == ANALYSE)
        units = {"sessions": len(reading.sessions), "units": len(reading.unread) + done}
        self.lessons.set_run(self.id, "read", units)

    # By counting.

    def _count(self, reading: Reading) -> None:
        by_session: dict[str, list[Segment]] = {}
        for (task,) in reading.unread:
            by_session.setdefault(task.session, []).append(task)
        for number, (session, tasks) in enumerate(by_session.items(), 1):
            self._check()
            analyst = CountingAnalyst(self.store.whole(session))
            with self.lessons.writing():
                for task in tasks:
                    found = tuple(analyst.lessons(task))
                    self._take_in(Judged(task, found), COUNTING)
            if self._tell:
                self._tell(DistilProgress("read", len(by_session), len(by_session), number))

    def _take_in(self, judged: Judged, method: str) -> None:
        """Keep what was found in a task. Within `writing`."""
        self.lessons.begin_task(judged.task.id, method)
        for found in judged.lessons:
            name = self._index.find(found)
            if not name:
                name = self.lessons.keep(found)
                self._index.add(name, found)
            self.lessons.add_support(name, judged.task, found)

    # By a model.

    def _have_read(self, reading: Reading) -> None:
        """Have every task read that was not; a bounded number of jobs is on the way."""
        waiting = iter(reading.unread)
        on_way = {c.key: c.data for c in self.lessons.children(self.id, ANALYSE, "queued")}
        under_way = {task for data in on_way.values() for task in data["tasks"]}
        for key, data in on_way.items():
            self.jobs.queue(ANALYSE, key, data["payload"])
        ended = False
        while True:
            more = self._collect(ANALYSE, on_way, self._judge)
            while len(on_way) < WINDOW and not ended:
                self._check(ANALYSE, on_way)
                unit = next((u for u in waiting if not under_way & {t.id for t in u}), None)
                if unit is None or not self._queue_unit(unit, on_way):
                    ended = True
            if not on_way:
                return
            self._wait(ANALYSE, on_way, at_once=more)

    def _queue_unit(self, unit: Sequence[Segment], on_way: dict[str, Any]) -> bool:
        """Hold what a request may cost, and queue it; False where the money is used up."""
        asked = inquiry_about([(self._trace(t.session), t) for t in unit], self.options.model)
        digests = "".join(task.digest for task in unit)
        key = f"{self.id} {unit[0].id} {digests[:32]}"
        data = {"tasks": [task.id for task in unit], "payload": msgspec.to_builtins(asked)}
        return self._queue(ANALYSE, key, data, asked, on_way)

    def _queue(
        self, kind: str, key: str, data: dict[str, Any], asked: Inquiry, on_way: dict[str, Any]
    ) -> bool:
        held = most_cost(asked, self.options.model)
        if self.options.max_cost:
            row = self.lessons.run(self.id)
            taken = (row["spent"] if row else 0.0) + self.lessons.held(self.id)
            if taken + held > self.options.max_cost:
                self._stopped = "the most that it may cost is reached (--max-cost)"
                return False
        self.lessons.hold(self.id, kind, key, data, held)
        self.jobs.queue(kind, key, data["payload"])
        on_way[key] = data
        return True

    def _collect(
        self, kind: str, on_way: dict[str, Any], take: Callable[[dict[str, Any], str, str], None]
    ) -> bool:
        """Take in some of the answers that came, each with its cost in one step; whether there are
        more. Not all at once, so that meanwhile the queue does not run dry."""
        found = self.jobs.results(kind, tuple(on_way))
        over = dict(islice(found.items(), _AT_A_TIME))
        for key, result in over.items():
            reply = reply_of(result)
            data = on_way.pop(key)
            with self.lessons.writing():
                if not reply.refused:
                    take(data, reply.text, reply.model or self.options.model)
                elif kind == ANALYSE:
                    self._stopped = self._stopped or f"not all could be read: {reply.refused}"
                state = "refused" if reply.refused else "done"
                asked = 0 if reply.refused else 1
                self.lessons.release(self.id, kind, key, state, reply.cost or 0.0, asked)
        if over:
            self._heard = time.monotonic()
            self.jobs.withdraw(kind, tuple(over))
            if self._tell:
                self._tell(progress(self.id))
        return len(found) > len(over)

    def _judge(self, data: dict[str, Any], text: str, model: str) -> None:
        answer = read_answer(text)
        tasks = [self._tasks[name] for name in data["tasks"] if name in self._tasks]
        if answer is None or len(tasks) != len(data["tasks"]):
            for task in tasks:
                self.lessons.begin_task(task.id, model)
            return
        parts = [(self._trace(task.session), task) for task in tasks]
        for judged in judge_answer(answer, parts):
            self._dropped += len(judged.dropped)
            own = judged
            if len(parts) == 1 and (cuts := _within(answer.cuts, judged.task)):
                own = msgspec.structs.replace(judged, task=self._refined(judged.task, cuts))
            self._take_in(own, model)

    def _refined(self, task: Segment, cuts: Collection[int]) -> Segment:
        """A task in which a reader saw several: it ended as the last of them did."""
        trace = self._trace(task.session)
        parts = [s for s in segments(trace, cuts) if task.start <= s.start < task.stop]
        last = parts[-1] if parts else task
        return msgspec.structs.replace(task, outcome=last.outcome)

    def _merge(self, reading: Reading) -> None:
        """Have lessons that may belong together looked at, level by level, each pair once."""
        self.lessons.set_run(self.id, "merge")
        seen: set[tuple[str, str]] = set()
        for level in range(consensus.LEVELS):
            known = self._known(reading)
            batches = consensus.merge_batches(self._index, known, seen)
            if not batches or self._stopped:
                return
            for batch in batches:
                seen |= {(a, b) for a in batch for b in batch if a < b}
            self._merge_level(level, batches, {one.id: one for one in known})

    def _merge_level(
        self, level: int, batches: Sequence[Sequence[str]], known: dict[str, KnownLesson]
    ) -> None:
        rejected = [one for one in self.lessons.all() if one.state == "rejected"]
        done = {c.key for c in self.lessons.children(self.id, MERGE) if c.state != "queued"}
        on_way: dict[str, Any] = {}
        waiting = iter(batches)
        ended = False
        while True:
            more = self._collect(MERGE, on_way, self._take_merge)
            while len(on_way) < WINDOW and not ended:
                if (batch := next(waiting, None)) is None:
                    ended = True
                    break
                asked = consensus.merge_inquiry(
                    [known[name] for name in batch], rejected, self.options.model
                )
                key = job_id(self.id, f"{level} {' '.join(batch)}")
                data = {"batch": list(batch), "payload": msgspec.to_builtins(asked)}
                if key not in done and not self._queue(MERGE, key, data, asked, on_way):
                    ended = True
            if not on_way:
                return
            self._wait(MERGE, on_way, at_once=more)

    def _take_merge(self, data: dict[str, Any], text: str, model: str) -> None:
        if (answer := consensus.read_merge(text)) is not None:
            consensus.carry_out_merge(self.lessons, self._index, data["batch"], answer)

    def _wait(self, kind: str, on_way: dict[str, Any], *, at_once: bool) -> None:
        self._check(kind, on_way)
        if time.monotonic() - self._heard > _SILENCE:
            learn = load_settings().settings.learn
            if budget.is_spent(learn):
                raise Stopped(budget.refusal_today(learn), later=until_tomorrow())
            self._heard = time.monotonic()
        if not at_once:
            time.sleep(_LOOK)

    def _check(self, kind: str = "", on_way: Collection[str] = ()) -> None:
        """Make way where the user stopped the run, or this attempt took long enough."""
        row = self.lessons.run(self.id)
        if cancelled() or (row is not None and row["state"] == "stopped"):
            self.jobs.withdraw(kind, tuple(on_way))
            for key in on_way:
                with self.lessons.writing():
                    self.lessons.release(self.id, kind, key, "withdrawn", 0.0, 0)
            raise Stopped("stopped by you")
        if time.monotonic() > self._until:
            raise Stopped("it goes on", later=0.01)

    # Then.

    def _known(self, reading: Reading) -> list[KnownLesson]:
        known = self.lessons.all(reading.sessions)
        return [one for one in known if one.support.sessions and one.id in self._index.claims]

    def _follow(self, reading: Reading) -> None:
        """What became of lines that stood in a skill which a session had loaded."""
        written: dict[str, list[KnownLesson]] = {}
        for one in self.lessons.all():
            if one.state == "written" and one.kind == "do":
                written.setdefault(one.skill, []).append(one)
        for task in reading.tasks:
            own = [one for skill in task.skills for one in written.get(skill, ())]
            if own:
                trace = self._trace(task.session)
                with self.lessons.writing():
                    for name, side, quote in followed(trace, task, own):
                        found = Lesson(text="", quotes=(quote,))
                        self.lessons.add_support(name, task, found, side)

    def _write(self, reading: Reading) -> DistilResult:
        self.lessons.set_run(self.id, "write")
        consensus.find_conflicts(self.lessons, self._index, self._known(reading))
        agreed = consensus.agree(self.lessons, reading.sessions, least=self.options.least)
        conditions = consensus.conditions(self.lessons)
        writer = SkillWriter(self.lessons, self.id, self._find_trace, conditions)
        gone = [*agreed.negative, *(o for o in agreed.overruled if o.state == "written")]
        plans = plan_skills(self.lessons, agreed.written, reading.clusters, self.options.into)
        done = [writer.write(plan, [o for o in gone if o.skill == plan.name]) for plan in plans]
        row = self.lessons.run(self.id)
        result = DistilResult(
            sessions=len(reading.sessions),
            tasks=len(reading.tasks),
            read=sum(len(unit) for unit in reading.unread),
            requests=row["requests"] if row else 0,
            spent=row["spent"] if row else 0.0,
            skills=tuple(one for one in done if one.verdict is not None),
            few=len(agreed.few),
            overruled=len(agreed.overruled),
            rejected=len(agreed.rejected),
            dropped=self._dropped,
            conflicts=tuple(open_conflicts(self.lessons, agreed.open)),
            stopped=self._stopped,
        )
        self.lessons.set_run(self.id, "done", result)
        self.lessons.forget_run(self.id)
        return result

    def _trace(self, session: str) -> Trace:
        """A session; the last few are kept at hand."""
        if session not in self._traces:
            while len(self._traces) >= _AT_HAND:
                del self._traces[next(iter(self._traces))]
            self._traces[session] = self.store.whole(session)
        return self._traces[session]

    def _find_trace(self, session: str) -> Trace | None:
        try:
            return self._trace(session)
        except Exception:  # it was forgotten meanwhile
            return None


_AT_HAND = 8


def _within(cuts: Collection[int], task: Segment) -> list[int]:
    return [cut for cut in cuts if task.first < cut <= task.last]


def followed(
    trace: Trace, task: Segment, lessons: Sequence[KnownLesson]
) -> Iterator[tuple[str, Any, LessonQuote]]:
    """Which lessons a task followed, and whether what they say to run was fine or failed."""
    here = {id(call) for call in segment_trace(trace, task).each_call()}
    place = step_names(trace)
    runs = [run for run in lasting_runs(trace) if id(run.call) in here]
    for one in lessons:
        forms = claim_of(one.lesson()).forms
        wanted = {purpose(form) for form in forms} - {""}
        worked = [r for r in runs if r.purpose in wanted and r.outcome.state == "worked"]
        failed = [r for r in runs if r.purpose in wanted and r.outcome.failed]
        if worked or failed:
            last = (worked or failed)[-1]
            side = "followed" if worked else "against"
            yield one.id, side, LessonQuote(place[id(last.call)], last.form, "call")


def open_conflicts(lessons: Lessons, found: Sequence[Conflict]) -> Iterator[OpenConflict]:
    """Contradictions with the words and counts of both sides."""
    known = {one.id: one for one in lessons.all()}
    for conflict in found:
        one, other = known.get(conflict.one), known.get(conflict.other)
        if one is not None and other is not None:
            yield OpenConflict(
                f"{conflict.one[:6]}-{conflict.other[:6]}",
                conflict.why,
                one.text,
                one.support.sessions,
                other.text,
                other.support.sessions,
            )


def _sync_answers(lessons: Lessons) -> None:
    """Learn what became of proposals: a rejected one's new lines are not proposed again, and a
    line that a person took out of a skill stays out."""
    proposals = {p.id: p for p in Inbox(os.path.join(paths.folders().data, "tacit.db")).all(1000)}
    by_change: dict[str, list[KnownLesson]] = {}
    for one in lessons.all():
        if one.state == "written" and one.change:
            by_change.setdefault(one.change, []).append(one)
    for change, own in by_change.items():
        state = proposals[change].state if change in proposals else "accepted"
        if state == "rejected":
            lessons.mark((one.id for one in own), "rejected")
        elif state == "accepted":
            path = os.path.join(own[0].root, own[0].skill)
            text = "\n".join(_texts(path))
            if text:
                lessons.mark((o.id for o in own if f"- {o.line}" not in text), "rejected")


def _texts(folder: str) -> Iterator[str]:
    for name in ("SKILL.md", "references/more.md"):
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                yield file.read()
        except OSError:
            continue
