"""The parent's side of a repair: it briefs the improver, runs its commands, judges its work.

The improver works on a copy in the child. What speaks against its work goes back to it as the next
message; what could not be verified is kept and said. What passes is put before the gate and
announced.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping

import msgspec

from tacit.agent import tool_aliases
from tacit.agent.tool import MOST_TEXT, Failed, Result
from tacit.base.display import one_line, shorten, shorten_middle
from tacit.base.setting_sections import Settings
from tacit.changes.change import Change, File, Verdict
from tacit.changes.gate import Gate
from tacit.learn import announcements, notices
from tacit.learn.background.background_gate import apply_to_own_skill
from tacit.learn.background.broker import Judged, RefusedChange, StagedBroker, describe_end, refuse
from tacit.learn.background.staging import EditedSkill, StagedWork, Staging, difference_text
from tacit.learn.background.task import RunReport
from tacit.learn.background.toolset import RUN_COMMAND
from tacit.learn.improve import verification
from tacit.learn.improve.repair_triggers import FailedUse
from tacit.learn.improve.repairs import Attempt, Failure, RepairOutcome, Repairs, step_command
from tacit.learn.improve.verification import CheckedSkill, KnownTools, check_repair
from tacit.learn.notices import Notice
from tacit.learn.skill_runs import RunStep, SkillRun

MOST_OF_RUN = 60_000
"""Characters of the run."""
_MOST_FILE = 20_000
_MOST_FILES = 60_000
_ROUNDS = 30
"""How often refusals go back to the improver, whose turns are limited besides."""
_AROUND = 6
"""Steps before and after a failure that are told in full."""


def brief(
    name: str,
    files: Mapping[str, File],
    run: SkillRun,
    failures: Iterable[Failure],
    earlier: Iterable[Attempt],
    tools: KnownTools,
) -> str:
    """The first message of a repair."""
    failed = tuple(failures)
    parts = [
        f"# The skill `{name}`\n\n{_files(files)}",
        f"# What failed\n\n{_failures(failed)}",
        f"# The run, step by step\n\n{_steps(run, {f.step.number for f in failed})}",
        f"# Earlier repairs of this skill\n\n{_earlier(earlier)}",
        f"# Tools that exist\n\n{_tools(tools)}",
    ]
    return "\n\n".join(parts)


def _files(files: Mapping[str, File]) -> str:
    left = _MOST_FILES
    parts = []
    for path in sorted(files, key=lambda path: (path != "SKILL.md", path)):
        file = files[path]
        runs = ", can be run" if file.kind == "program" else ""
        try:
            text = file.data.decode("utf-8")
        except UnicodeDecodeError:
            parts.append(f"## {path} ({len(file.data):,} bytes, not text{runs})")
            continue
        shown = shorten_middle(text, min(_MOST_FILE, left)) if left > 0 else "(read it)"
        left -= len(shown)
        parts.append(f"## {path}{runs}\n\n{fenced(shown)}")
    return "\n\n".join(parts)


def _failures(failures: tuple[Failure, ...]) -> str:
    rows = []
    for failure in failures:
        step = failure.step
        cost = f"got over after {failure.cost} calls" if failure.cost else "never got over"
        said = shorten_middle(step.said, 300, inline=True)
        rows.append(f"- step {step.number}, {step.tool}: {said} ({cost})")
    return "\n".join(rows) or "(nothing that was counted; judge for yourself)"


def _steps(run: SkillRun, failed: set[int]) -> str:
    """Those around the failures in full, the others by a line, as far as there is room."""
    near = {number + d for number in failed for d in range(-_AROUND, _AROUND + 1)}
    left = MOST_OF_RUN
    parts = []
    for step in run.steps:
        full = not failed or step.number in near
        text = _step(step, full=full and left > 2_000)
        left -= len(text)
        if left < 0 and step.number not in failed:
            continue
        parts.append(text)
    return "\n\n".join(parts) or "(no step was recorded)"


def _step(step: RunStep, *, full: bool) -> str:
    state = "FAILED" if step.failed else "ok" if step.finished else "no result"
    arguments = json.dumps(step.arguments, ensure_ascii=False, default=str)
    head = f"## step {step.number}: {step.tool} ({state})\n\n{shorten_middle(arguments, 1_500)}"
    if not full:
        return head
    why = f"\n\nerror: {step.error}" if step.error and step.error not in step.result else ""
    return f"{head}{why}\n\n{fenced(step.result)}" if step.result else f"{head}{why}"


def _earlier(earlier: Iterable[Attempt]) -> str:
    rows = []
    for attempt in earlier:
        if attempt.outcome in ("begun", "put off"):
            continue
        note = f": {attempt.note}" if attempt.note else ""
        diff = f"\n{fenced(shorten_middle(attempt.tried, 3_000))}" if attempt.tried else ""
        warning = "\nDo not do this again." if attempt.outcome == "rolled back" else ""
        rows.append(f"- {attempt.at:%Y-%m-%d}, {attempt.outcome}{note}{diff}{warning}")
    return "\n".join(rows[:5]) or "None."


def _tools(tools: KnownTools) -> str:
    names = ", ".join(sorted(tools.names)) or "none was used"
    if not tools.complete:
        return f"Seen in this session of {tools.host}: {names}. There may be more."
    others = tool_aliases.alias_table(set(tools.names))
    return f"{names}\n\nOther names, and what exists here instead:\n\n{others}"


def fenced(text: str) -> str:
    """`text` between fences longer than any in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"


class Repaired(msgspec.Struct, frozen=True):
    """The result of a repair."""

    outcome: RepairOutcome
    skill: str
    reason: str
    """In words: what was done, or why nothing was."""
    change: str = ""
    """The change that landed, or the proposal that waits."""
    verified: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    """What could not be verified."""
    diff: str = ""
    ran: RunReport | None = None


class RepairWork:
    """One repair: what the parent does for the improver, how its work is judged, and the result."""

    def __init__(
        self,
        gate: Gate,
        use: FailedUse,
        settings: Settings,
        tools: KnownTools,
        repairs: Repairs,
        job: str,
    ) -> None:
        self.use = use
        self.tools = tools
        self.name = use.skill.rpartition("/")[2]
        self.bench = verification.open_bench(use.run.project, use.entry.folder, self.name)
        self._gate = gate
        self._job = job
        self._settings = settings
        self._repairs = repairs
        self._until = time.monotonic() + settings.improve.seconds
        self._verdict: Verdict | None = None
        self._checked = CheckedSkill()
        self._tried: tuple[verification.TriedCommand, ...] = ()
        self._told_still_fails = False
        self._told_doubts: set[str] = set()
        self._diff = ""

    def broker(self, staging: Staging) -> StagedBroker:
        """Stage the skill; the broker over it."""
        copied = staging.copy_in(self._gate, self.use.skill, self.use.entry.root)

        def run_command(command: str) -> Result:
            edited = self._edited(staging.work())
            return self._run(command, edited.new if edited is not None else copied.files)

        services = {RUN_COMMAND: run_command} if self.bench is not None else {}
        return StagedBroker(staging, self.judge, services, rounds=_ROUNDS)

    def _run(self, command: str, files: Mapping[str, File]) -> Result:
        assert self.bench is not None
        left = self._until - time.monotonic()
        if left <= 1:
            raise Failed("there is no time left for a command")
        done = self.bench.run(command, files, min(verification.COMMAND_SECONDS, left))
        text = shorten_middle(done.output.rstrip("\n"), MOST_TEXT, tail=0.5)
        if done.timed_out:
            return Result(f"{text}\n[stopped: it took too long]".lstrip(), failed=True)
        if done.exit_code:
            return Result(f"{text}\n[exit code {done.exit_code}]".lstrip(), failed=True)
        return Result(text or "[done, no output]")

    def judge(self, work: StagedWork, text: str) -> Judged:
        """Check the repaired skill and put it before the gate."""
        edited = self._edited(work)
        if work.spoilt or edited is None:
            return Judged()
        self._diff = difference_text(edited.old, edited.new)
        if against := self._against(edited):
            return refuse(self.name, *against)
        run = self.use.run
        reason = shorten(" ".join(text.split()), 400) or f"improve {self.use.entry.name}"
        change = edited.change(
            self._job, "improver", reason, evidence=(run.session,), session=run.session
        )
        verdict = self._gate.propose(change)
        if verdict.refused and verdict.refusal is not None:
            return Judged(refused=(RefusedChange(self.name, verdict.refusal),))
        self._verdict = apply_to_own_skill(self._gate, change, verdict, self._settings)
        announce_repair(change, self._verdict)
        return Judged((change,))

    def _against(self, edited: EditedSkill) -> list[str]:
        """What speaks against the repair before the gate is asked."""
        if found := self._repairs.harmful(self.use.skill, self.use.entry.root, self._diff):
            tried = f"this was tried on {found.at:%Y-%m-%d} and taken back: {found.note}"
            return [f"{tried}. Mend it in another way, or change nothing."]
        project = self.use.run.project
        self._checked = check_repair(edited.old, edited.new, self.tools, project, self.bench)
        # A doubt is told once: what looks like a tool may be the name of something else.
        doubts = [doubt for doubt in self._checked.doubts if doubt not in self._told_doubts]
        self._told_doubts.update(doubts)
        if against := [*self._checked.problems, *doubts]:
            return against
        failing = self._try_again(edited)
        return [failing] if failing else []

    def result(self, report: RunReport, refused: Iterable[RefusedChange]) -> Repaired:
        """What the repair led to."""
        name = self.use.entry.name
        said = shorten(one_line(report.text), 300)
        if self._verdict is not None:
            lines = f"; {self._verdict.notes[0]}" if self._verdict.apart else ""
            return Repaired(
                "repaired" if self._verdict.applied else "proposed",
                name,
                (said or "repaired") + lines,
                self._verdict.change,
                (*self._checked.holds, *self._commands(good=True)),
                (*self._checked.open, *self._checked.doubts, *self._commands(good=False)),
                self._diff,
                report,
            )
        if report.reason in ("refused", "budget", "error"):
            return Repaired("put off", name, report.error, ran=report)
        if against := "; ".join(found.refusal.reason for found in refused):
            why = f"what the improver made was turned down: {shorten(one_line(against), 300)}"
            return Repaired("refused", name, why, diff=self._diff, ran=report)
        if report.is_done:
            return Repaired("nothing", name, said, ran=report)
        return Repaired("failed", name, describe_end(report), ran=report)

    def _edited(self, work: StagedWork) -> EditedSkill | None:
        return next((edited for edited in work.edited if edited.name == self.name), None)

    def _try_again(self, edited: EditedSkill) -> str:
        """Run what failed before and after; what speaks against the repair, said only once."""
        commands = [c for f in self.use.failures if (c := step_command(f.step))]
        if self.bench is None or not commands:
            return ""
        self._tried = self.bench.compare(commands, edited.old, edited.new)
        broken = [tried for tried in self._tried if tried.state == "fails now"]
        still = [t for t in self._tried if t.state == "still fails" and _is_named(t, edited)]
        if broken:
            return _failing(broken[0], "worked before your changes and fails with them")
        if still and not self._told_still_fails:
            self._told_still_fails = True
            return _failing(still[0], "still fails, and the skill still says to run it")
        return ""

    def _commands(self, *, good: bool) -> tuple[str, ...]:
        """What running the failed commands again has shown."""
        fixed = [
            f"`{shorten(tried.command, 80)}` failed before and works now"
            for tried in self._tried
            if tried.state == "fixed"
        ]
        if good:
            return tuple(fixed)
        said = [f"`{shorten(t.command, 80)}` {t.state}" for t in self._tried if t.state != "fixed"]
        failed = [step_command(f.step) for f in self.use.failures]
        if self.bench is None and any(failed):
            said.append(
                "the failed commands, which were not run again: nothing here would keep them in"
            )
        if any(not command for command in failed):
            said.append("calls of other tools than the shell, which were not made again")
        return tuple(said)


def announce_repair(change: Change, verdict: Verdict) -> None:
    """Tell the user. What they let happen by a setting is news too."""
    if verdict.applied and verdict.change != change.id:
        notices.announce(
            Notice(
                kind="repaired",
                skill=change.skill,
                change=verdict.change,
                root=change.root,
                session=change.session,
                why=change.reason,
            )
        )
        return
    announcements.announce_change(change, verdict)


def _is_named(tried: verification.TriedCommand, edited: EditedSkill) -> bool:
    """Whether the skill still tells the agent to run it: by the command, or a script in it."""
    text = "\n".join(
        file.data.decode("utf-8", "replace")
        for path, file in edited.new.items()
        if path.endswith(".md")
    )
    words = [word for word in tried.command.split() if "/" in word]
    return tried.command.strip() in text or any(
        os.path.basename(word) in text for word in words if os.path.basename(word)
    )


def _failing(tried: verification.TriedCommand, what: str) -> str:
    return f"the command `{tried.command}` {what}:\n{tried.output or '(no output)'}"
