"""A distillation, from the sessions to proposed skills, as jobs that can be killed anywhere.

The coordinator is a job that stays on the machine of the sessions. It cuts sessions into tasks, has
each read (by jobs of the kind `analyse`, or by counting, here), joins what was found (by code, and
by jobs of the kind `merge`), and puts what is agreed on before the gate. It holds a table of its
jobs and a bounded number of them at a time, and money for each before it is queued, so it can be
killed anywhere: the next attempt goes on from the tables, and only requests in flight are made
again. Without an engine the same code has its jobs done by threads of this process.
"""

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from tacit.agent import budget
from tacit.base.clock import until_tomorrow
from tacit.base.job import Job, JobFamily, JobResult, cancelled, family, job_id
from tacit.base.settings import load_settings
from tacit.changes.change import SKILL_FILE, acting_as, new_change_id
from tacit.changes.inbox import Inbox
from tacit.learn.distil import consensus
from tacit.learn.distil.analyst import (
    AnalystAnswer,
    CountingAnalyst,
    Judged,
    inquiry_about,
    judge_answer,
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
from tacit.learn.distil.distilled_skill import MORE, SkillWriter, Written, plan_skills
from tacit.learn.distil.lessons import Lesson, LessonQuote, claim_of
from tacit.learn.distil.support import KnownLesson, Lessons, Side, open_lessons
from tacit.learn.inquiry import Inquiry, answer_job, most_cost, read_answer, reply_of
from tacit.learn.runs import lasting_runs
from tacit.learn.segments import Segment, segment_trace, segments
from tacit.learn.signals import step_names
from tacit.traces.command_purposes import purpose
from tacit.traces.store import Store
from tacit.traces.trace import Trace

DISTIL_KIND = "distil"
WINDOW = 200
"""Jobs of a run that are on their way at a time."""
_AT_A_TIME = 25
"""Answers that are taken in before more is queued, and requests queued before that."""
_LOOK = 0.2
"""Seconds between looks at what is over."""
_SILENCE = 30.0
"""Seconds without an answer after which it is asked whether the day's budget is used up."""
_TRIES, _PATIENCE = 3, 5.0
_AT_HAND = 8
"""Sessions that are kept in memory."""


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
    """Lessons that nothing in their session shows, that came from a tool's output, or that name
    somebody's own folder."""
    conflicts: tuple[OpenConflict, ...] = ()
    stopped: str = ""


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

    def results(self, kind: str, keys: Collection[str], most: int) -> dict[str, JobResult]:
        begun = ((key, self._begun.get((kind, key))) for key in keys)
        over = ((key, one.result()) for key, one in begun if one is not None and one.done())
        return dict(islice(over, most))

    def withdraw(self, kind: str, keys: Collection[str]) -> None:
        for key in keys:
            if (one := self._begun.pop((kind, key), None)) is not None:
                one.cancel()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _until_over(self, job: Job) -> JobResult:
        done = self._run(job)
        while done.later and job.attempt < _TRIES:
            time.sleep(min(done.later, _PATIENCE))
            job = replace(job, attempt=job.attempt + 1)
            done = self._run(job)
        return done


class Stopped(Exception):
    """The run is to make way: the user stopped it, or the day's money is spent."""

    def __init__(self, why: str, later: float = 0.0) -> None:
        super().__init__(why)
        self.later = later
        """Seconds after which it goes on; 0 where somebody has to say so."""


def run_distil(job: Job) -> JobResult:
    """Go on with the run that `job.payload` names. The job of the kind `distil`."""
    run, jobs = str(job.payload["run"]), family()
    assert jobs is not None, "the engine offers it"
    if result_of(run) is not None:  # another job of the same run, from before a kill, finished it
        return JobResult("nothing", "it is over")
    try:
        result = go_on(run, jobs)
    except Stopped as stopped:
        outcome = "goes on" if stopped.later else "stopped"
        return JobResult(outcome, str(stopped), later=stopped.later)
    changes = tuple(w.verdict.change for w in result.skills if w.verdict and not w.verdict.refused)
    return JobResult("proposed" if changes else "nothing", result.stopped, changes)


def begin(options: DistilOptions) -> str:
    """The run for these options: one that is not over, or a new one."""
    with open_lessons() as lessons:
        return lessons.begin_run(new_change_id(), options)


def stop(run: str) -> None:
    """Have a run make way: nothing more is queued, and what was not begun is withdrawn."""
    with open_lessons() as lessons:
        lessons.set_run(run, "stopped")


def progress(run: str) -> DistilProgress:
    """How far a run is."""
    with open_lessons() as lessons:
        row, counts = lessons.run(run), lessons.counts(run)
    told = msgspec.json.decode(row["result"])

    def jobs(kind: str, *states: str) -> int:
        return sum(counts.get((kind, state), 0) for state in ("done", "refused", *states))

    return DistilProgress(
        row["state"],
        told.get("sessions", 0),
        told.get("units", 0),
        jobs(ANALYSE),
        jobs(MERGE, "queued"),
        jobs(MERGE),
        row["spent"],
    )


def result_of(run: str) -> DistilResult | None:
    """What came of a run; None while it is not over."""
    with open_lessons() as lessons:
        row = lessons.run(run)
    over = row["state"] == "done"
    return msgspec.json.decode(row["result"], type=DistilResult) if over else None


def go_on(run: str, jobs: JobFamily, *, tell: Tell | None = None) -> DistilResult:
    """Do what is left of a run. Raises `Stopped` where it is to make way."""
    with open_lessons() as lessons:
        options = msgspec.json.decode(lessons.run(run)["options"], type=DistilOptions)
        with open_sessions(options) as store, acting_as("distiller"):
            return _Run(run, options, store, lessons, jobs, tell).finish()


_OF_ONE_PERSON = re.compile(r"[/\\](?:Users|home)[/\\]\w")
"""A folder in somebody's home: others have none such."""
_Asked = tuple[str, dict[str, Any], Inquiry]
"""A request that is to be made: its key, what is kept to understand its answer by, the question."""
_Take = Callable[[dict[str, Any], str, str], Callable[[], object]]
"""Understands an answer: what was kept with the request, the words, and the model that said them.
Gives what writes it down; thinking within that would keep everybody else from writing."""


class _Run:
    """One attempt at a run."""

    def __init__(
        self,
        run: str,
        options: DistilOptions,
        store: Store,
        lessons: Lessons,
        jobs: JobFamily,
        tell: Tell | None,
    ) -> None:
        self.id = run
        self.options = options
        self.store = store
        self.lessons = lessons
        self.jobs = jobs
        self._tell = tell or (lambda progress: None)
        self._trace: Callable[[str], Trace] = lru_cache(_AT_HAND)(store.whole)
        self._index = consensus.LessonIndex(lessons)
        self._tasks: dict[str, Segment] = {}
        self._dropped = 0
        self._stopped = ""
        self._heard = time.monotonic()

    def finish(self) -> DistilResult:
        on_way = self._requeue()
        _sync_answers(self.lessons)
        reading = read_tasks(self.store, self.lessons, self.options, self._tell)
        self._tasks = {task.id: task for task in reading.tasks}
        done = self.lessons.counts(self.id).get((ANALYSE, "done"), 0)
        units = {"sessions": len(reading.sessions), "units": len(reading.unread) + done}
        self.lessons.set_run(self.id, "read", units)
        if self.options.model:
            asked = self._about_tasks(reading, {t for d in on_way.values() for t in d["tasks"]})
            self._have_done(ANALYSE, asked, self._judge, on_way)
            self._merge(reading)
        else:
            self._count(reading)
        self._follow(reading)
        return self._write(reading)

    # By counting.

    def _count(self, reading: Reading) -> None:
        by_session: dict[str, list[Segment]] = {}
        for (task,) in reading.unread:
            by_session.setdefault(task.session, []).append(task)
        done = 0
        for session, tasks in by_session.items():
            self._check()
            analyst = CountingAnalyst(self.store.whole(session))
            found = [(task, analyst.lessons(task)) for task in tasks]
            with self.lessons.writing():
                self._take_in(found, COUNTING)
            done += len(tasks)
            self._tell(DistilProgress("read", len(by_session), len(reading.unread), done))

    def _take_in(self, found: Sequence[Judged], method: str) -> None:
        """Keep what was found in tasks. Within `writing`."""
        for task, lessons in found:
            self.lessons.begin_task(task.id, method)
            for lesson in lessons:
                if _OF_ONE_PERSON.search(lesson.text):
                    self._dropped += 1
                    continue
                name = self._index.find(lesson)
                if not name:
                    name = self.lessons.keep(lesson)
                    self._index.add(name, lesson)
                self.lessons.add_support(name, task, lesson)

    # By a model.

    def _requeue(self) -> dict[str, Any]:
        """What a killed attempt had on the way, which is done while this one finds its place."""
        children = self.lessons.children(self.id, ANALYSE)
        on_way = {key: data for key, state, data in children if state == "queued"}
        for key, data in on_way.items():
            self.jobs.queue(ANALYSE, key, data["payload"])
        return on_way

    def _have_done(
        self, kind: str, asked: Iterator[_Asked], take: _Take, on_way: dict[str, Any]
    ) -> None:
        """Have everything asked, and take in the answers; a bounded number is on the way."""
        one, more = next(asked, None), False
        while on_way or one is not None:
            # With answers left over, others are faster than this, and need more at hand.
            room = left = min(_AT_A_TIME * (4 if more else 1), WINDOW - len(on_way))
            while one is not None and left and self._queue(kind, one, on_way):
                self._check(kind, on_way)
                one, left = next(asked, None), left - 1
            if one is not None and not on_way:  # no more comes back of what was held
                self._stopped = "the most that it may cost is reached (--max-cost)"
                return
            more = self._collect(kind, on_way, take)
            if not more and on_way and room == left:
                self._wait(kind, on_way)

    def _about_tasks(self, reading: Reading, under_way: Collection[str]) -> Iterator[_Asked]:
        """What is asked of analysts about the tasks that were not read."""
        for unit in reading.unread:
            if not any(task.id in under_way for task in unit):
                parts = [(self._trace(task.session), task) for task in unit]
                key = f"{self.id} {unit[0].id} {''.join(task.digest for task in unit)[:32]}"
                tasks = {"tasks": [task.id for task in unit]}
                yield key, tasks, inquiry_about(parts, self.options.model)

    def _queue(self, kind: str, one: _Asked, on_way: dict[str, Any]) -> bool:
        """Hold what a request may cost, and queue it; False where the rest is held by others."""
        key, data, asked = one
        held, most = most_cost(asked, self.options.model), self.options.max_cost
        taken = self.lessons.run(self.id)["spent"] + self.lessons.held(self.id) if most else 0.0
        if most and taken + held > most:
            return False
        data = data | {"payload": msgspec.to_builtins(asked)}
        self.lessons.hold(self.id, kind, key, data, held)
        self.jobs.queue(kind, key, data["payload"])
        on_way[key] = data
        return True

    def _collect(self, kind: str, on_way: dict[str, Any], take: _Take) -> bool:
        """Take in some of the answers that came, each with its cost in one step; whether there are
        more. Not all at once, so that meanwhile the queue does not run dry."""
        over = self.jobs.results(kind, tuple(on_way), _AT_A_TIME)
        for key, result in over.items():
            reply, data = reply_of(result), on_way.pop(key)
            state, asked, keep = "refused", 0, None
            if not reply.refused:
                state, asked = "done", 1
                keep = take(data, reply.text, reply.model or self.options.model)
            elif kind == ANALYSE:
                self._stopped = self._stopped or f"not all could be read: {reply.refused}"
            with self.lessons.writing():
                if keep is not None:
                    keep()
                self.lessons.release(self.id, kind, key, state, reply.cost or 0.0, asked)
        if over:
            self._heard = time.monotonic()
            self.jobs.withdraw(kind, tuple(over))
            self._tell(progress(self.id))
        return len(over) == _AT_A_TIME

    def _judge(self, data: dict[str, Any], text: str, model: str) -> Callable[[], object]:
        answer = read_answer(text, AnalystAnswer)
        tasks = [self._tasks[name] for name in data["tasks"] if name in self._tasks]
        found: list[Judged] = [(task, ()) for task in tasks]
        if answer is not None and len(tasks) == len(data["tasks"]):
            parts = [(self._trace(task.session), task) for task in tasks]
            found, dropped = judge_answer(answer, parts)
            self._dropped += dropped
            if len(parts) == 1:
                found = [(_refined(*parts[0], answer.cuts), found[0][1])]
        return lambda: self._take_in(found, model)

    def _merge(self, reading: Reading) -> None:
        """Have lessons that may belong together looked at, level by level, each pair once."""
        self.lessons.set_run(self.id, "merge")
        seen: set[tuple[str, str]] = set()
        for level in range(consensus.LEVELS):
            known = {one.id: one for one in self._known(reading)}
            batches = consensus.merge_batches(self._index, known, seen)
            if not batches or self._stopped:
                return
            for batch in batches:
                seen |= {(a, b) for a in batch for b in batch if a < b}
            asked = self._about_batches(level, batches, known)
            self._have_done(MERGE, asked, self._take_merge, {})

    def _about_batches(
        self, level: int, batches: Sequence[Sequence[str]], known: dict[str, KnownLesson]
    ) -> Iterator[_Asked]:
        rejected = [one for one in self.lessons.all() if one.state == "rejected"]
        children = self.lessons.children(self.id, MERGE)
        done = {key for key, state, _ in children if state in ("done", "refused")}
        for batch in batches:
            key = job_id(self.id, f"{level} {' '.join(batch)}")
            if key not in done:
                shown = [known[name] for name in batch]
                asked = consensus.merge_inquiry(shown, rejected, self.options.model)
                yield key, {"batch": list(batch)}, asked

    def _take_merge(self, data: dict[str, Any], text: str, model: str) -> Callable[[], object]:
        answer = read_answer(text, consensus.MergerAnswer) or consensus.MergerAnswer()
        batch = data["batch"]
        return lambda: consensus.carry_out_merge(self.lessons, self._index, batch, answer)

    def _wait(self, kind: str, on_way: dict[str, Any]) -> None:
        self._check(kind, on_way)
        if time.monotonic() - self._heard > _SILENCE:
            learn = load_settings().settings.learn
            if budget.is_spent(learn):
                raise Stopped(budget.refusal_today(learn), later=until_tomorrow())
            self._heard = time.monotonic()
        time.sleep(_LOOK)

    def _check(self, kind: str = "", on_way: Collection[str] = ()) -> None:
        """Make way where the user stopped the run."""
        if cancelled() or self.lessons.run(self.id)["state"] == "stopped":
            self.jobs.withdraw(kind, tuple(on_way))
            with self.lessons.writing():
                for key in on_way:
                    self.lessons.release(self.id, kind, key, "withdrawn", 0.0, 0)
            raise Stopped("stopped by you")

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
            shown = list(followed(self._trace(task.session), task, own)) if own else ()
            with self.lessons.writing():
                for name, side, quote in shown:
                    self.lessons.add_support(name, task, Lesson(text="", quotes=(quote,)), side)

    def _write(self, reading: Reading) -> DistilResult:
        self.lessons.set_run(self.id, "write")
        consensus.find_conflicts(self.lessons, self._index, self._known(reading))
        agreed = consensus.agree(self.lessons, reading.sessions, least=self.options.least)
        conditions = consensus.conditions(self.lessons)
        writer = SkillWriter(self.lessons, self.id, self._trace, conditions)
        gone = [*agreed.negative, *(o for o in agreed.overruled if o.state == "written")]
        plans = plan_skills(self.lessons, agreed.written, reading.clusters, self.options, gone)
        done = [writer.write(plan, gone) for plan in plans]
        row, known = self.lessons.run(self.id), {one.id: one for one in self.lessons.all()}
        open_ones = ((found, known[found.one], known[found.other]) for found in agreed.open)
        result = DistilResult(
            sessions=len(reading.sessions),
            tasks=len(reading.tasks),
            read=reading.new,
            requests=row["requests"],
            spent=row["spent"],
            skills=tuple(one for one in done if one.verdict is not None),
            few=len(agreed.few),
            overruled=len(agreed.overruled),
            rejected=len(agreed.rejected),
            dropped=self._dropped,
            conflicts=tuple(
                OpenConflict(
                    f"{one.id[:6]}-{other.id[:6]}", found.why,
                    one.text, one.support.sessions, other.text, other.support.sessions,
                )
                for found, one, other in open_ones
            ),
            stopped=self._stopped,
        )  # fmt: skip
        self.lessons.set_run(self.id, "done", result)
        return result


def _refined(trace: Trace, task: Segment, cuts: Collection[int]) -> Segment:
    """A task in which a reader may have seen several: it ended as the last of them did."""
    cuts = [cut for cut in cuts if task.first < cut <= task.last]
    parts = [s for s in segments(trace, cuts) if task.start <= s.start < task.stop] if cuts else ()
    return replace(task, outcome=parts[-1].outcome) if parts else task


def followed(
    trace: Trace, task: Segment, lessons: Sequence[KnownLesson]
) -> Iterator[tuple[str, Side, LessonQuote]]:
    """Which lessons a task followed, and whether what they say to run was fine or failed."""
    here = {id(call) for call in segment_trace(trace, task).each_call()}
    place = step_names(trace)
    runs = [run for run in lasting_runs(trace) if id(run.call) in here]
    for one in lessons:
        wanted = {purpose(form) for form in claim_of(one).forms} - {""}
        own = [run for run in runs if run.purpose in wanted]
        worked = [run for run in own if run.outcome.state == "worked"]
        if shown := worked or [run for run in own if run.outcome.failed]:
            quote = LessonQuote(place[id(shown[-1].call)], shown[-1].form)
            yield one.id, "followed" if worked else "against", quote


def _sync_answers(lessons: Lessons) -> None:
    """Learn what became of proposals: a rejected one's new lines are not proposed again, and a
    line that a person took out of a skill stays out."""
    states = {proposal.id: proposal.state for proposal in Inbox().all(1000)}
    texts: dict[str, str] = {}
    for one in lessons.all():
        if one.state != "written" or not one.change:
            continue
        state, folder = states.get(one.change, "accepted"), os.path.join(one.root, one.skill)
        if state == "accepted" and folder not in texts:
            texts[folder] = "".join(_texts(folder))
        taken_out = state == "accepted" and texts[folder] and f"- {one.line}" not in texts[folder]
        if taken_out or state == "rejected":
            lessons.mark((one.id,), "rejected")


def _texts(folder: str) -> Iterator[str]:
    for name in (SKILL_FILE, MORE):
        with suppress(OSError), open(os.path.join(folder, name), "rb") as file:
            yield file.read().decode("utf-8", "replace")
