"""A trial as it runs: pairs of runs in random order, looked at after each round, until it is clear.

A round has every task once on both sides; the order of tasks and of sides is drawn by the trial's
id and the round, so that it is the same when a trial goes on. Each run is on record as soon as it
has ended. It stops for a clear answer, at the limits, and where one run after the other is void.
"""

import hashlib
import os
import random
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from tacit.base.display import amount, counted, dollars
from tacit.base.errors import NotFound
from tacit.changes.change import File
from tacit.changes.gate import Gate
from tacit.learn.review.review_batch import model_price
from tacit.learn.trial.arms import SIDES, Arms, Side, others_of, sessions_as_skill
from tacit.learn.trial.candidate import Candidate, version_files
from tacit.learn.trial.interval import pairs_planned
from tacit.learn.trial.judge import Judge
from tacit.learn.trial.trial_records import (
    IN_USE,
    RecordedRun,
    TrialAbout,
    TrialRecord,
    TrialRecords,
)
from tacit.learn.trial.trial_report import Answer, answer_of, in_all, verdict_of
from tacit.learn.trial.trial_run import (
    Ran,
    Runner,
    RunResult,
    changes_in,
    clean_folder,
)
from tacit.learn.trial.trial_tasks import EVALS_FOLDER, Task, TaskSet, evals_of
from tacit.learn.trial.verifier import Verifier
from tacit.skills.library import Library
from tacit.traces.store import Store

_MOST_VOID = 3
"""Void runs in a row that end a trial: no more will come of it now."""


class TrialLimits(msgspec.Struct, frozen=True):
    """How far a trial may go, from where it is."""

    runs: int = 60
    """Runs in all."""
    money: float = 0.0
    """Dollars; 0 is no limit."""


class TrialPlan(msgspec.Struct, frozen=True):
    """What is to be run."""

    about: TrialAbout
    arms: Arms
    tasks: tuple[Task, ...]


class Trial:
    """One trial, with what it runs by."""

    def __init__(
        self,
        plan: TrialPlan,
        records: TrialRecords,
        runner: Runner,
        verifier: Verifier,
        judge: Judge | None = None,
    ) -> None:
        self._plan = plan
        self._records = records
        self._runner = runner
        self._verifier = verifier
        self._judge = judge
        self.record: TrialRecord = records.begin(plan.about)
        self.stopped = ""
        """Why it stopped, once it has."""
        self._known: dict[tuple[int, str, Side], RecordedRun] = {}
        self._made: list[RecordedRun] = []
        self._spent = 0.0

    def answer(self) -> Answer:
        """What the runs so far say."""
        return answer_of(self.record, self._records.runs(self.record.id))

    def run(self, limits: TrialLimits) -> Iterator[RecordedRun]:
        """Run on, and give each run as it has ended."""
        began = self._records.runs(self.record.id)
        self._known = {(run.round, run.task, run.side): run for run in began}
        self._made, self._spent, self.stopped = [], 0.0, ""
        number = 0
        while not self._is_clear() and not self._is_over(limits):
            for task in self._order(number):
                yield from self._pair(number, task, limits)
                if self.stopped:
                    return
            number += 1

    def _pair(self, number: int, task: Task, limits: TrialLimits) -> Iterator[RecordedRun]:
        """What is left to do of a task on both sides; a judge has the last word."""
        keys = [(number, task.id, side) for side in self._sides(number, task)]
        left = [key for key in keys if not self._is_settled(key)]
        if left and self._is_over(limits, len(left)):
            return
        for key in left:
            while not self._is_settled(key) and not self._is_over(limits):
                run = self._tried(task, key)
                self._made.append(run)
                yield run
        self._judge_pair(task, [self._known[key] for key in keys if key in self._known])

    def _is_settled(self, key: tuple[int, str, Side]) -> bool:
        return key in self._known and self._known[key].settled

    def _is_over(self, limits: TrialLimits, wanted: int = 1) -> bool:
        """Whether the limits leave no room for as many runs as are `wanted`."""
        made, last = len(self._made), self._made[-_MOST_VOID:]
        likely = wanted * self._spent / made if made else 0.0
        if made + wanted > limits.runs:
            self.stopped = f"{counted(made, 'run')} made, of at most {limits.runs}"
        elif limits.money and self._spent + likely > limits.money:
            self.stopped = f"more runs would go beyond the {dollars(limits.money)} it was given"
        elif len(last) == _MOST_VOID and all(run.result.state == "void" for run in last):
            self.stopped = f"no run comes to an end: {last[-1].result.ran.void}"
        return bool(self.stopped)

    def _is_clear(self) -> bool:
        if verdict_of(self.record, self._known.values()).finding() != "unclear":
            self.stopped = "the answer is clear"
        return bool(self.stopped)

    def _order(self, number: int) -> list[Task]:
        tasks = sorted(self._plan.tasks, key=lambda task: task.id)
        random.Random(f"{self.record.id}:{number}").shuffle(tasks)  # noqa: S311
        return tasks

    def _sides(self, number: int, task: Task) -> list[Side]:
        sides = list(SIDES)
        random.Random(f"{self.record.id}:{number}:{task.id}").shuffle(sides)  # noqa: S311
        return sides

    def _tried(self, task: Task, key: tuple[int, str, Side]) -> RecordedRun:
        """One run, which is kept; both sides of a pair have one seed."""
        number, _, side = key
        said = f"{self.record.id}:{number}:{task.id}"
        seed = int(hashlib.sha256(said.encode()).hexdigest()[:7], 16)
        before = self._known.get(key)
        tried = before.tried + 1 if before is not None else 1
        run = RecordedRun(number, task.id, side, tried, self._one(task, side, seed))
        self._keep(run)
        self._spent += run.result.cost or 0.0
        return run

    def _keep(self, run: RecordedRun) -> None:
        self._records.add(self.record.id, run)
        self._known[run.round, run.task, run.side] = run

    def _one(self, task: Task, side: Side, seed: int) -> RunResult:
        with clean_folder(task) as (work, above):
            skills = os.path.join(above, "skills")
            self._plan.arms.lay_out(side, skills)
            ran: Ran = self._runner.run(task, work, skills, seed)
            if ran.void:
                return RunResult(state="void", ran=ran)
            made = changes_in(task, work) if task.expectations else ""
            shutil.rmtree(skills)
            return RunResult(
                state="done",
                ran=ran,
                read=self._plan.about.skill in ran.skills,
                graded=self._verifier.verify(task, work, ran.answer),
                made=made,
                for_judge=bool(task.expectations),
            )

    def _judge_pair(self, task: Task, pair: Sequence[RecordedRun]) -> None:
        """Have a judge say what code cannot, of a pair that has no word of his yet."""
        open_ = [run for run in pair if run.result.state == "done" and run.result.score is None]
        if self._judge is None or len(pair) != 2 or not open_:
            return
        if any(run.result.state == "void" for run in pair):
            return
        # Which of the two is shown first says nothing: both orders are asked for.
        judgement = self._judge.compare(task, *(run.result for run in pair))
        half = judgement.cost / 2 if judgement.cost is not None else None
        self._spent += judgement.cost or 0.0
        for run, said in zip(pair, judgement.given, strict=True):
            judged = msgspec.structs.replace(run.result, judged=said, judge_cost=half)
            self._keep(msgspec.structs.replace(run, result=judged))


def usable_tasks(
    tasks: Sequence[Task], *, seen: bool, judged: bool, sessions: Sequence[str]
) -> tuple[list[Task], list[str]]:
    """Those that can speak for a verdict, and why each of the others cannot.

    `seen`: also those that were drafted from the `sessions` that the skill was written from.
    """
    kept, left = [], []
    for task in tasks:
        own = [s for s in task.learned_from if s in sessions]
        if own and not seen:
            left.append(f"{task.id}: the skill was written from the same session; --seen takes it")
        elif not task.by_code and not judged:
            left.append(f"{task.id}: only a judge can say whether it was done; name one: --judge")
        else:
            kept.append(task if judged else msgspec.structs.replace(task, expectations=()))
    return kept, left


def doubts_of(tasks: Iterable[Task], verifier: Verifier) -> list[str]:
    """The tasks whose checks say nothing, as far as that is seen before any run, and why."""
    every = ((task, _doubt(task, verifier)) for task in tasks if task.by_code)
    return [f"{task.id}: {why}" for task, why in every if why]


def _doubt(task: Task, verifier: Verifier) -> str:
    with clean_folder(task) as (work, _):
        found = verifier.verify(task, work, "")
    if all(check.passed for check in found):
        return "its checks pass before anything is done"
    if bad := next((check for check in found if check.not_run), None):
        return f"its check cannot be run here: {bad.text} ({bad.evidence})"
    if not task.solution:
        return ""
    with clean_folder(task) as (work, _):
        verifier.solve(task, work)
        found = verifier.verify(task, work, "")
    bad = next((check for check in found if not check.passed), None)
    return f"its own solution does not pass: {bad.text} ({bad.evidence})" if bad else ""


def version_of(files: Mapping[str, File]) -> str:
    """What tells one version of a skill from another, its tasks aside."""
    shown = {path: file.data for path, file in files.items() if not path.startswith(EVALS_FOLDER)}
    return hashlib.sha256(msgspec.msgpack.encode(shown, order="sorted")).hexdigest()[:16]


class TrialWish(msgspec.Struct, frozen=True, kw_only=True):
    """What a person asks of a trial."""

    tasks: TaskSet = TaskSet()
    """More tasks than the skill brings itself."""
    against: str = ""
    """A version, or `sessions`; empty for nothing."""
    among: bool = False
    seen: bool = False
    """Also tasks from the sessions that the skill was written from."""
    judge: str = ""
    agent: str = ""


AGAINST_SESSIONS = "sessions"
"""The word for the sessions themselves, in place of a version."""


def plan_trial(
    candidate: Candidate, library: Library, gate: Gate, wish: TrialWish
) -> tuple[TrialPlan, list[str]]:
    """What is run for `wish`, and what is left out and why. Raises `NotFound` and `Usage`."""
    found = [evals_of(candidate.files, candidate.name), wish.tasks]
    others = others_of(library.entries, candidate.name) if wish.among else {}
    if wish.among:
        found += [
            evals_of(gate.state_of(e.relative_folder, e.root).contents.files, e.name)
            for e in library.active()
            if e.name != candidate.name and e.scope != "bundled"
        ]
    tasks, left = usable_tasks(
        [task for part in found for task in part.tasks],
        seen=wish.seen,
        judged=bool(wish.judge),
        sessions=candidate.sessions,
    )
    left = [f"{one.id}: {one.why}" for part in found for one in part.left] + left
    if not tasks:
        why = "; ".join(left) or f"draft some: tacit trial init {candidate.name}"
        raise NotFound(f"there is no task to try '{candidate.name}' with", why)
    label, old = _other_side(candidate, gate, wish.against)
    about = TrialAbout(
        skill=candidate.name,
        digest=candidate.digest,
        version=version_of(candidate.files),
        against=label,
        among=wish.among,
        agent=wish.agent,
        judge=wish.judge,
        tasks=tuple(sorted(task.digest for task in tasks)),
        foreign=tuple(task.id for task in tasks if task.owner not in ("", candidate.name)),
    )
    arms = Arms(candidate.name, {"with": candidate.files, "without": old}, others)
    return TrialPlan(about, arms, tuple(tasks)), left


def _other_side(candidate: Candidate, gate: Gate, against: str) -> tuple[str, dict[str, File]]:
    """What the other side has in the skill's place, and what it is called."""
    if against == AGAINST_SESSIONS:
        with Store.open() as store:
            return against, sessions_as_skill(candidate.files, store, candidate.sessions)
    if against:
        history = gate.open_place(candidate.root).history
        version, files = version_files(history, candidate.skill, against)
        return f"version {version}", files
    # A change of a skill that is in use is compared with that skill.
    return (IN_USE, candidate.old) if candidate.old else ("", {})


class TrialEstimate(msgspec.Struct, frozen=True):
    """What runs are likely to take."""

    runs: int
    tokens: int
    cost: float | None
    """None where no price is known."""
    known: int
    """Earlier runs that this rests on."""
    planned: int = 0
    """Runs in all within which a difference of 20 points is likely to be found."""

    def shown(self) -> str:
        """In words."""
        basis = (
            f"from {counted(self.known, 'earlier run')}" if self.known else "without experience yet"
        )
        tokens = f"{amount(self.tokens)} tokens"
        price = (
            f"{dollars(self.cost)}, {tokens}"
            if self.cost is not None
            else f"{tokens}; no price is known"
        )
        return f"at most {counted(self.runs, 'run')}: about {price} ({basis})"


_RUN_TOKENS = (20_000, 1_500)
"""Tokens sent and answered that a run is thought to take before any was made."""
_JUDGE_TOKENS = (4_000, 50)
"""The same for a judge: two requests a pair, so one a run."""


def estimate_trial(
    records: TrialRecords, about: TrialAbout, model: str, runs: int
) -> TrialEstimate:
    """What so many runs are likely to take, by those of the same agent, best of this skill."""
    alike = (about.agent, about.judge)
    every = [one for one in records.trials() if (one.about.agent, one.about.judge) == alike][:20]
    made = [(one.about.skill, run) for one in every for run in records.runs(one.id)]
    done = [(skill, run.result) for skill, run in made if run.result.state == "done"]
    known = [result for skill, result in done if skill == about.skill] or [r for _, r in done]
    planned = 2 * pairs_planned(records.attempt_of(about))
    if not known:
        asked = [(model, *_RUN_TOKENS)] + [(about.judge, *_JUDGE_TOKENS)] * bool(about.judge)
        cost = in_all(model_price(*each) for each in asked)
        tokens = sum(sent + answered for _, sent, answered in asked)
        cost = cost * runs if cost is not None else None
        return TrialEstimate(runs, tokens * runs, cost, 0, planned)
    cost = in_all(result.cost for result in known)
    tokens = sum(result.ran.tokens for result in known) * runs // len(known)
    cost = cost / len(known) * runs if cost is not None else None
    return TrialEstimate(runs, tokens, cost, len(known), planned)
