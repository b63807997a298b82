"""`tacit trial`: does a skill help? Tasks run with and without it, and an answer with an interval.

Owns the command, the question before money is spent, the progress and the words of the answer. The
trial itself is `learn/trial`'s.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from tacit.base import paths
from tacit.base.atomic_files import write_atomic
from tacit.base.display import counted, dollars, one_line, plain, shorten
from tacit.base.errors import NotFound, Refused, Usage
from tacit.base.paths import with_tilde
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.ui.cli import output, user_gate
from tacit.ui.cli.command import Group, group
from tacit.ui.cli.user_shell import complete_skill

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tacit.changes.change import Verdict
    from tacit.changes.gate import Gate
    from tacit.learn.trial.candidate import Candidate
    from tacit.learn.trial.interval import Interval
    from tacit.learn.trial.task_drafts import Draft
    from tacit.learn.trial.trial import Trial, TrialEstimate, TrialPlan
    from tacit.learn.trial.trial_effects import TrialEffect
    from tacit.learn.trial.trial_records import RecordedRun, TrialRecords
    from tacit.learn.trial.trial_report import Answer
    from tacit.learn.trial.trial_run import Runner

_COLOURS = {"helps": "green", "harms": "red", "no difference": "yellow", "unclear": None}
INTERRUPTED = 130
_WIDEST = 10.0
"""A change of more than ten times says only that there are too few pairs."""
_MANY_TOKENS = 1_000_000
"""Of a model without a known price, tokens above which it is asked first."""


class TrialGroup(Group):
    """`tacit trial SKILL` is short for `tacit trial run SKILL`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next((word for word in args if not word.startswith("-")), "")
        if first and first not in self.commands:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@group(
    "trial",
    "learn",
    "Find out whether a skill helps, by runs with and without it.",
    "tacit trial init db-migration          draft tasks from the sessions it was learned from",
    "tacit trial db-migration --dry-run     what it would run, and what that may cost",
    "tacit trial db-migration --runs 40",
    "tacit trial db-migration --against 3f2a91c0    an earlier version",
    "tacit trial show db-migration          the answer so far",
    note="The same command goes on with a trial that was stopped. docs/trials.md says more.",
    cls=TrialGroup,
)
@click.pass_context
def trial_command(ctx: click.Context, as_json: bool) -> int:
    """Find out whether a skill helps, by runs of the same tasks with and without it.

    Without a command, the trials so far are listed.
    """
    return 0 if ctx.invoked_subcommand else write_trials(as_json)


@trial_command.verb(
    "run",
    "tacit trial run db-migration --runs 40 --max-cost 2",
    "tacit trial run db-migration --tasks ./tasks --agent claude",
    "tacit trial run db-migration --among           beside the rest of the library",
    "tacit trial run db-migration --against sessions",
)
@click.argument("skill", shell_complete=complete_skill)
@click.option(
    "--tasks",
    multiple=True,
    type=click.Path(file_okay=False),
    help="A folder of tasks; repeatable.",
)
@click.option("--against", default="", help="An earlier version, or 'sessions'; else nothing.")
@click.option("--among", is_flag=True, help="Both sides also have the rest of the library.")
@click.option("--agent", default="", help="An agent's own program, e.g. claude; else ours.")
@click.option("--model", default="", help="provider:model, instead of the setting.")
@click.option("--judge", default="", help="The model that judges what code cannot check.")
@click.option("--runs", type=click.IntRange(2), default=60, help="Most runs, both sides together.")
@click.option(
    "--max-cost", type=click.FloatRange(0), default=0.0, help="Most dollars; 0 is no limit."
)
@click.option(
    "--seen", is_flag=True, help="Also tasks from sessions that the skill was written from."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be run, and what it may cost.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def run_command(skill: str, as_json: bool, **options: Any) -> int:
    """Run the tasks of SKILL with and without it, until the answer is clear.

    SKILL is a skill, or a change of one that waits in the inbox. Its tasks are in evals/evals.json
    of its folder, or in the folders that --tasks names. Each run gets a clean copy of the task's
    files in the sandbox, and exactly the skills under trial. It stops early where the answer is
    clear; called again, it goes on.
    """
    from tacit.learn.trial.trial_records import open_trials

    settings = load_settings().settings
    prepared = _Prepared(skill, settings, options)
    with open_trials() as records:
        guess = prepared.estimate(records, options["runs"])
        prepared.look_at_checks(records)
        if options["dry_run"]:
            return _write_plan(prepared, guess, as_json)
        if not as_json:
            prepared.write_left_out()
        within = 0 < options["max_cost"] <= settings.learn.confirm_above
        _confirm_cost(guess, settings, options["yes"] or within, as_json)
        trial = prepared.trial(records)
        code = _run_on(trial, options, as_json)
        answer = trial.answer()
        effect = prepared.settle(answer)
        path = _write_benchmark(trial, records, prepared.plan)
    if as_json:
        output.write_json(
            {
                "answer": answer,
                "stopped": trial.stopped,
                "benchmark": path,
                "effect": effect,
                "doubts": prepared.doubts,
            }
        )
    else:
        write_answer(answer)
        if effect.text:
            click.echo(plain(effect.text))
        output.write_hint(f"stopped: {trial.stopped or 'by you'}")
        output.write_hint(f"benchmark: {with_tilde(path)}")
    return code


class _Prepared:
    """A trial that could begin."""

    def __init__(self, skill: str, settings: Settings, options: dict[str, Any]) -> None:
        from tacit.agent.sandbox import find_sandbox
        from tacit.learn.trial.candidate import find_candidate
        from tacit.learn.trial.trial import TrialWish, plan_trial
        from tacit.learn.trial.trial_tasks import TaskSet, tasks_in
        from tacit.learn.trial.verifier import Verifier

        self._settings, self._options = settings, options
        self.doubts: list[str] = []
        gate, library = user_gate.open_gate(everywhere=True)
        self._gate = gate
        self.candidate: Candidate = find_candidate(gate, library, skill)
        self.runner: Runner = _runner(settings, options["agent"], options["model"])
        box = find_sandbox(allow_none=settings.agent.sandbox == "none")
        self.verifier = Verifier(box, settings.agent)
        found = [tasks_in(folder) for folder in options["tasks"]]
        given = TaskSet(
            tuple(task for part in found for task in part.tasks),
            tuple(left for part in found for left in part.left),
        )
        wish = TrialWish(
            tasks=given,
            against=options["against"],
            among=options["among"],
            seen=options["seen"],
            judge=options["judge"],
            agent=self.runner.title,
        )
        self.plan: TrialPlan
        self.plan, self.left = plan_trial(self.candidate, library, gate, wish)

    def estimate(self, records: "TrialRecords", runs: int) -> "TrialEstimate":
        from tacit.learn.trial.trial import estimate_trial

        model = self.runner.title.partition(" ")[2]
        return estimate_trial(records, self.plan.about, model, runs)

    def look_at_checks(self, records: "TrialRecords") -> None:
        """Find tasks whose checks say nothing, before the first run."""
        from tacit.learn.trial.trial import doubts_of

        if not records.runs(self.plan.about.id):
            self.doubts = doubts_of(self.plan.tasks, self.verifier)

    def trial(self, records: "TrialRecords") -> "Trial":
        from tacit.learn.trial.judge import Judge
        from tacit.learn.trial.trial import Trial

        judge = Judge(self._settings, self._options["judge"]) if self._options["judge"] else None
        return Trial(self.plan, records, self.runner, self.verifier, judge)

    def settle(self, answer: "Answer") -> "TrialEffect":
        """Do what follows from the answer; of a comparison with a version, nothing does."""
        from tacit.learn.trial.trial_effects import TrialEffect, settle_standing

        if not self.plan.about.settles:
            return TrialEffect("nothing")
        how = f"in {counted(answer.pairs, 'pair')}, {answer.agent}"
        return settle_standing(
            self._gate, self.candidate, answer.finding, answer.verdict, how, self._settings
        )

    def write_left_out(self) -> None:
        for why in self.left:
            click.echo(click.style(f"left out: {plain(one_line(why))}", dim=True), err=True)
        write_doubts(self.doubts, err=True)


def _runner(settings: Settings, agent: str, model: str) -> "Runner":
    from tacit.learn.trial.trial_run import OwnAgent

    if agent:
        from tacit.learn.trial.host_trial import HostAgent

        return HostAgent(settings, agent, model)
    return OwnAgent(settings, model)


def _confirm_cost(guess: "TrialEstimate", settings: Settings, yes: bool, as_json: bool) -> None:
    """Say what it is likely to cost, and, where that is much, ask. Raises `Abort` at a no."""
    limit = settings.learn.confirm_above
    much = guess.tokens > _MANY_TOKENS if guess.cost is None else guess.cost > limit
    if not as_json:
        click.echo(f"{guess.shown()}.", err=not sys.stdout.isatty())
    hint = f"go on all the same: --yes; or fewer runs: --runs {max(guess.runs // 2, 2)}"
    output.confirm("Go on?", not much or yes, Usage(guess.shown(), hint), err=True)


def _write_plan(prepared: _Prepared, guess: "TrialEstimate", as_json: bool) -> int:
    from tacit.learn.trial.trial_report import compared

    plan = prepared.plan
    if as_json:
        tasks = [{"id": task.id, "prompt": task.prompt} for task in plan.tasks]
        known = {"trial": plan.about.id, "about": plan.about, "tasks": tasks}
        known |= {"left_out": prepared.left, "doubts": prepared.doubts, "estimate": guess}
        return output.write_json(known)
    rows = [(task.id, one_line(task.prompt)) for task in plan.tasks]
    click.echo(output.table(("task", "prompt"), rows))
    prepared.write_left_out()
    about = plan.about
    sides = compared(about.skill, about.against, about.among)
    click.echo(f"\n{plain(sides)}, by {plain(about.agent)}")
    click.echo(f"{guess.shown()}. No agent was run.")
    output.write_hint(
        f"a difference of 20 points is likely to be found within {guess.planned} runs"
    )
    return 0


def _run_on(trial: "Trial", options: dict[str, Any], as_json: bool) -> int:
    """Run, and show each run; the exit code."""
    from tacit.learn.trial.trial import TrialLimits

    limits = TrialLimits(options["runs"], options["max_cost"])
    try:
        for number, run in enumerate(trial.run(limits), 1):
            if not as_json:
                click.echo(_run_line(number, limits.runs, run), err=True)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _run_line(number: int, most: int, run: "RecordedRun") -> str:
    result = run.result
    words = {1.0: "success", 0.0: "failed", None: "ran"}  # a judge has its pair next
    state = words.get(result.score) or f"{result.score:.0%}"
    state = "void" if result.state == "void" else state
    tone = {"success": "green", "failed": "red", "void": "yellow"}.get(state)
    read = ", read" if result.read else ""
    why = f": {shorten(one_line(result.ran.void), 80)}" if result.ran.void else ""
    about = f"{run.task}, {run.side}{read}, {result.ran.seconds:.0f} s"
    return (
        plain(f"{number:>4}/{most}  ")
        + click.style(f"{state:<8}", fg=tone)
        + plain(f"{about}{why}")
    )


def _write_benchmark(trial: "Trial", records: "TrialRecords", plan: "TrialPlan") -> str:
    """Write benchmark.json beside the data of the trial; its path."""
    import msgspec

    from tacit.learn.trial.trial_report import benchmark

    found = benchmark(trial.record, records.runs(trial.record.id), plan.tasks)
    path = os.path.join(paths.folders().data, "trials", trial.record.id, "benchmark.json")
    write_atomic(path, msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return path


def write_answer(answer: "Answer") -> None:
    """The answer for people."""
    from tacit.learn.trial.interval import points

    click.echo()
    word = click.style(plain(answer.skill), bold=True)
    click.echo(f"{word}: {click.style(answer.says(), fg=_COLOURS[answer.finding])}")
    other = "with the other" if answer.against else "without"
    sides = f"{answer.with_skill:.0%} with, {answer.without:.0%} {other}"
    rows = {
        "compared": f"{answer.compared()}; {answer.agent}",
        "success": f"{sides}; {points(answer.success)} in {counted(answer.pairs, 'pair')}"
        if answer.pairs
        else "",
        "tokens": _changes(answer.tokens),
        "time": _changes(answer.seconds),
        "calls": _changes(answer.calls),
        "read": _read_words(answer),
        "void": ", ".join(f"{n} {side}" for side, n in answer.void.items() if n),
        "cost": dollars(answer.cost) if answer.cost is not None else "no price is known",
    }
    if answer.others is not None:
        suffer = ": it disturbs them" if answer.others.finding() == "harms" else ""
        rows["beside"] = f"{points(answer.others)} for the tasks of other skills{suffer}"
    if answer.agreement is not None:
        paid = f"; {dollars(answer.judge_cost)} of the cost" if answer.judge_cost else ""
        rows["judge"] = f"agreed with itself in {answer.agreement:.0%}{paid}"
    if answer.attempt > 1:
        rows["attempt"] = f"{answer.attempt}; the verdict is at {answer.level:.1%}"
    output.write_rows(rows.items(), 9)
    write_doubts(answer.doubts)
    if answer.tasks:
        table = [
            (row.task, str(row.pairs), f"{row.with_skill:.0%}", f"{row.without:.0%}", str(row.read))
            for row in answer.tasks
        ]
        click.echo()
        click.echo(output.table(("task", "pairs", "with", "without", "read"), table))
    last = [found[-1] for found in answer.sessions.values() if found and found[-1]]
    if last:
        output.write_hint(
            f"a run: tacit session {last[0]}   all of them: tacit trial show {answer.trial} --json"
        )


def write_doubts(doubts: "Iterable[str]", *, err: bool = False) -> None:
    """Warn of checks that say nothing."""
    for why in doubts:
        click.echo(click.style(f"doubtful: {plain(one_line(why))}", fg="yellow"), err=err)


def _changes(interval: "Interval") -> str:
    from tacit.learn.trial.interval import as_change

    mean, low, high = (as_change(v) for v in (interval.mean, interval.low, interval.high))
    if not interval.count or high > _WIDEST:
        return f"{mean:+.0%} (too few pairs for an interval)" if interval.count else ""
    return f"{mean:+.0%} ({low:+.0%} to {high:+.0%})"


def _read_words(answer: "Answer") -> str:
    """Whether it was read at all, told apart from its having been read to no effect."""
    from tacit.learn.trial.interval import points

    if not answer.pairs:
        return ""
    text = f"in {answer.read} of {answer.pairs}"
    if not answer.read:
        return (
            f"{text}: it was never read, so this says nothing of its text, only of its description"
        )
    if answer.read == answer.pairs:
        return text
    return f"{text}; where it was read {points(answer.when_read)}"


@trial_command.verb(
    "init", "tacit trial init db-migration", "tacit trial init db-migration --session 4f2a91c0"
)
@click.argument("skill", shell_complete=complete_skill)
@click.option("--session", "sessions", multiple=True, help="Draft from this session instead.")
@click.option("--into", default="", help="A folder for --tasks, instead of the skill's own.")
def init_command(skill: str, sessions: tuple[str, ...], into: str, as_json: bool) -> int:
    """Draft tasks for SKILL into its evals/evals.json, from the sessions it was learned from.

    A draft has the prompt, the files that were read, and the check that passed. It is marked with
    its session: of those that the skill was written from, no verdict is made unless --seen says
    so. With --session, tasks come from other sessions, which do count. A skill that waits in the
    inbox has no folder yet: its tasks go --into another.
    """
    from tacit.learn.trial.candidate import find_candidate
    from tacit.learn.trial.task_drafts import drafts_from
    from tacit.learn.trial.trial_tasks import EVALS
    from tacit.traces.store import Store

    gate, library = user_gate.open_gate()
    candidate = find_candidate(gate, library, skill)
    with Store.open() as store:
        chosen = [store.find(name).id for name in sessions] or list(candidate.sessions)
        drafts = drafts_from(store, chosen)
    if into:
        return _write_drafts(into, candidate.name, drafts)
    if candidate.proposal is not None:
        name = candidate.name
        hint = f"tacit trial init {name} --into tasks; tacit trial {name} --tasks tasks"
        raise Refused(f"'{name}' waits in the inbox, so it has no folder for tasks", hint)
    verdict, made = _add_drafts(gate, candidate, drafts)
    if verdict is None:
        why = (
            "no session that it was learned from holds a task"
            if not sessions
            else "no new task is in them"
        )
        raise NotFound(
            f"{why} that could be drafted", f"write tasks by hand into {EVALS}; see docs/trials.md"
        )
    drafted = f"Drafted {counted(made, 'task')} into {EVALS} of {candidate.name}"
    if made and made < len(drafts):
        drafted += f", of {len(drafts)}: the others are there already, or do not pass the checks"
    done = f"{drafted}; look them over: tacit edit {candidate.name} --file {EVALS}"
    return user_gate.write_verdict(verdict, done, as_json)


def _write_drafts(folder: str, skill: str, drafts: "list[Draft]") -> int:
    """Write drafts into a folder of the user's; the exit code."""
    from tacit.learn.trial.trial_tasks import EVALS, with_evals

    path = os.path.join(folder, EVALS)
    old = None
    if os.path.isfile(path):
        with open(path, "rb") as known:
            old = known.read()
    data, made = with_evals(old, skill, [draft.entry for draft in drafts])
    for file in (file for draft in drafts for file in draft.files):
        write_atomic(os.path.join(folder, file.path), file.data)
    write_atomic(path, data)
    click.echo(f"Drafted {counted(len(made), 'task')} into {plain(path)}")
    return 0


def _add_drafts(
    gate: "Gate", candidate: "Candidate", drafts: "list[Draft]"
) -> "tuple[Verdict | None, int]":
    """Put drafts into the skill's folder, and how many are there then.

    Where one of them does not pass the gate, each is tried by itself: a session's words may name
    what a learned skill must not. None where nothing is new.
    """
    from tacit.changes.change import WriteFile
    from tacit.learn.trial.trial_tasks import EVALS, with_evals

    known = dict(gate.state_of(candidate.skill, candidate.root).contents.files)
    old = known.get(EVALS)
    entries = [draft.entry for draft in drafts]
    data, made = with_evals(old.data if old else None, candidate.name, entries)
    if not made:
        return None, 0
    files = [file for draft in drafts for file in draft.files if file.path not in known]
    added = (*files, WriteFile(EVALS, data))
    where = (candidate.root, candidate.skill)
    verdict = user_gate.propose(gate, *where, *added, reason="tasks for trials")
    if not verdict.refused or len(drafts) < 2:
        return verdict, 0 if verdict.refused else len(made)
    each = [_add_drafts(gate, candidate, [draft]) for draft in drafts]
    landed = [one for one, count in each if one is not None and count]
    return (landed[-1] if landed else verdict), sum(count for _, count in each)


@trial_command.verb("observe", "tacit trial observe db-migration")
@click.argument("skill", shell_complete=complete_skill)
def observe_command(skill: str, as_json: bool) -> int:
    """Compare tasks of daily use in which SKILL was used with like tasks without it.

    That is an observation: the agent chose when to read the skill. With learn.holdback, sessions
    that were offered it are compared with those that were not, by lot: a trial.
    """
    from tacit.learn.trial.daily_use import daily_use
    from tacit.learn.trial.interval import points
    from tacit.skills.library import library_here
    from tacit.traces.store import Store

    entry = library_here().find(skill)
    with Store.open() as store:
        store.take_in_own()
        known = (entry.name, entry.description) if entry is not None else (skill,)
        found = daily_use(store, *known)
    if as_json:
        return output.write_json(found)
    click.echo(f"{click.style(plain(skill), bold=True)}: used in {counted(found.used, 'task')}")
    for label, part in (("observed", found.observed), ("by lot", found.by_lot)):
        if part is None:
            continue
        shares = f"{part.with_skill:.0%} with, {part.without:.0%} without"
        text = f"{shares}; {points(part.success)} in {counted(part.success.count, 'comparison')}"
        if not part.success.count:
            text = "no like tasks on both sides of which it is known how they ended"
        output.write_rows([(label, text), ("", ", ".join(part.kinds))], 9)
    output.write_hint("an observation, not a trial: the agent chose when to read the skill")
    return 0


@trial_command.verb("show", "tacit trial show", "tacit trial show db-migration --json")
@click.argument("trial", required=False, default="")
def show_command(trial: str, as_json: bool) -> int:
    """Show the answer of a trial, by its id or its skill; without one, list the trials."""
    if not trial:
        return write_trials(as_json)
    from tacit.learn.trial.trial_records import open_trials
    from tacit.learn.trial.trial_report import answer_of

    with open_trials() as records:
        record = records.find(trial)
        runs = records.runs(record.id)
    answer = answer_of(record, runs)
    if as_json:
        return output.write_json({"answer": answer, "about": record.about, "runs": runs})
    write_answer(answer)
    return 0


def write_trials(as_json: bool) -> int:
    """List every trial with its answer so far; the exit code."""
    from tacit.learn.trial.trial_records import open_trials
    from tacit.learn.trial.trial_report import answer_of

    with open_trials() as records:
        found = [(one, answer_of(one, records.runs(one.id))) for one in records.trials()]
    if as_json:
        return output.write_json({"trials": [answer for _, answer in found]})
    if not found:
        click.echo("Nothing was tried yet: tacit trial SKILL")
        return 0
    rows = [
        (record.id, f"{record.at.astimezone():%Y-%m-%d %H:%M}", one_line(answer.compared()),
         str(answer.pairs), answer.says())
        for record, answer in found
    ]  # fmt: skip
    click.echo(output.table(("trial", "begun", "compared", "pairs", "answer"), rows, ("begun",)))
    return 0
