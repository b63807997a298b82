"""The parent's side of a repair: it runs commands, checks what was made, and asks the gate.

The improver works on a copy in the closed room; here its work is judged. What speaks against it
goes back to the improver as the next message, so that it can mend it; what could not be verified
is kept and said.
"""

import os
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from tacit.agent.tools.tool import MOST_TEXT, Failed, Result
from tacit.base.sections import Settings
from tacit.base.terminal import one_line
from tacit.changes.change import Change, Verdict
from tacit.changes.files import File
from tacit.changes.gate import Gate
from tacit.learn import notices, noticing
from tacit.learn.background.staging import Copied, Edited, Staging, change_id
from tacit.learn.background.task import Ran
from tacit.learn.improve import edits, trying
from tacit.learn.improve.checking import Checked, Tools, check
from tacit.learn.improve.failing import command_of
from tacit.learn.improve.own import apply_own
from tacit.learn.improve.repairs import Outcome, Repairs
from tacit.learn.improve.tools import RUN
from tacit.learn.improve.triggers import Case
from tacit.learn.notices import Notice
from tacit.learn.usage import shortened


class Repaired(msgspec.Struct, frozen=True):
    """What came of a repair."""

    outcome: Outcome
    skill: str
    reason: str
    """In words: what was done, or why nothing was."""
    change: str = ""
    """The change that landed, or the proposal that waits."""
    verified: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    """What could not be verified."""
    diff: str = ""
    ran: Ran | None = None
    later: bool = False
    """Whether it is worth another try: there was no model, or no money."""


class Broker:
    """What the improver cannot do inside: run commands, and put its work before the gate."""

    def __init__(
        self,
        gate: Gate,
        staging: Staging,
        copied: Copied,
        case: Case,
        settings: Settings,
        tools: Tools,
        repairs: Repairs,
    ) -> None:
        self.case = case
        self.tools = tools
        self.name = case.skill.rpartition("/")[2]
        self.bench = trying.open_bench(case.run.project, case.entry.folder, self.name)
        self._gate = gate
        self._staging = staging
        self._copied = copied
        self._settings = settings
        self._repairs = repairs
        self._until = time.monotonic() + settings.improve.seconds
        self._verdict: Verdict | None = None
        self._checked = Checked()
        self._tried: tuple[trying.Tried, ...] = ()
        self._said_so = False
        self._doubted: set[str] = set()
        self._diff = ""
        self._refusal = ""

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        command = arguments.get("command")
        if name != RUN or not isinstance(command, str) or self.bench is None:
            raise Failed(f"nothing here does '{name}'")
        left = self._until - time.monotonic()
        if left <= 1:
            raise Failed("there is no time left for a command")
        files = self._files()
        done = self.bench.run(command, files, min(trying.SECONDS, left))
        text = shortened(done.output.rstrip("\n"), MOST_TEXT)
        if done.timed_out:
            return Result(f"{text}\n[stopped: it took too long]".lstrip(), failed=True)
        if done.exit_code:
            return Result(f"{text}\n[exit code {done.exit_code}]".lstrip(), failed=True)
        return Result(text or "[done, no output]")

    def finished(self, text: str) -> str | None:
        if spoilt := self._staging.spoilt():
            return self._turn_down(spoilt[0].refusal.reason)
        edited = self._edited()
        if edited is None:
            return None
        self._diff = edits.told(edited.old, edited.new)
        if found := self._repairs.harmful(self.case.skill, self.case.entry.root, self._diff):
            told = f"this was tried on {found.at:%Y-%m-%d} and taken back: {found.note}"
            return self._turn_down(f"{told}. Mend it in another way, or change nothing.")
        project = self.case.run.project
        self._checked = check(edited.old, edited.new, self.tools, project, self.bench)
        # A doubt is told once: what looks like a tool may be the name of something else.
        doubts = [doubt for doubt in self._checked.doubts if doubt not in self._doubted]
        self._doubted.update(doubts)
        if against := (*self._checked.problems, *doubts):
            return self._turn_down("\n".join(f"- {found}" for found in against))
        if told := self._try_again(edited):
            return self._turn_down(told)
        change = self._change(edited, text)
        verdict = self._gate.propose(change)
        if verdict.refused:
            return self._turn_down(verdict.explain())
        self._verdict = apply_own(self._gate, change, verdict, self._settings)
        announce(change, self._verdict)
        return None

    def result(self, ran: Ran) -> Repaired:
        """What came of it."""
        name = self.case.entry.name
        if self._verdict is not None:
            outcome: Outcome = "repaired" if self._verdict.applied else "proposed"
            said = one_line(ran.text)[:300] or "repaired"
            return Repaired(
                outcome,
                name,
                said,
                self._verdict.change,
                (*self._checked.holds, *self._commands(good=True)),
                (*self._checked.open, *self._checked.doubts, *self._commands(good=False)),
                self._diff,
                ran,
            )
        if ran.reason in ("refused", "budget", "error"):
            return Repaired("put off", name, ran.error, ran=ran, later=ran.reason != "refused")
        if self._refusal:
            said = f"what the improver made was turned down: {one_line(self._refusal)[:300]}"
            return Repaired("refused", name, said, diff=self._diff, ran=ran)
        if ran.is_done:
            return Repaired("nothing", name, one_line(ran.text)[:300], ran=ran)
        why = ran.error or f"the limit on {ran.reason} was reached"
        return Repaired("failed", name, why, ran=ran)

    def _files(self) -> Mapping[str, File]:
        edited = self._edited()
        return edited.new if edited is not None else self._copied.files

    def _edited(self) -> Edited | None:
        return next((e for e in self._staging.changed() if e.name == self.name), None)

    def _turn_down(self, why: str) -> str:
        self._refusal = why
        return f"Your changes were not taken over:\n{why}\nMend this, then answer again."

    def _try_again(self, edited: Edited) -> str:
        """Run what failed before and after; what speaks against the repair, said only once."""
        commands = [c for f in self.case.failures if (c := command_of(f.step))]
        if self.bench is None or not commands:
            return ""
        self._tried = self.bench.compare(commands, edited.old, edited.new)
        broken = [tried for tried in self._tried if tried.state == "fails now"]
        still = [t for t in self._tried if t.state == "still fails" and _is_named(t, edited)]
        if broken:
            return _tell(broken[0], "worked before your changes and fails with them")
        if still and not self._said_so:
            self._said_so = True
            return _tell(still[0], "still fails, and the skill still says to run it")
        return ""

    def _commands(self, *, good: bool) -> tuple[str, ...]:
        """What running the failed commands again has shown."""
        fixed = [
            f"`{tried.command[:80]}` failed before and works now"
            for tried in self._tried
            if tried.state == "fixed"
        ]
        if good:
            return tuple(fixed)
        said = [f"`{t.command[:80]}` {t.state}" for t in self._tried if t.state != "fixed"]
        failed = [command_of(f.step) for f in self.case.failures]
        if self.bench is None and any(failed):
            said.append(
                "the failed commands, which were not run again: nothing here would keep them in"
            )
        if any(not command for command in failed):
            said.append("calls of other tools than the shell, which were not made again")
        return tuple(said)

    def _change(self, edited: Edited, text: str) -> Change:
        run = self.case.run
        said = " ".join(text.split())[:400]
        return Change(
            id=change_id(self._staging.job, self.case.skill),
            skill=self.case.skill,
            operations=edits.operations(edited.old, edited.new),
            actor="improver",
            reason=said or f"improve {self.case.entry.name}",
            evidence=(run.session,),
            session=run.session,
            root=self.case.entry.root,
            base=edited.base,
        )


def announce(change: Change, verdict: Verdict) -> None:
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
    noticing.about(change, verdict)


def _is_named(tried: trying.Tried, edited: Edited) -> bool:
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


def _tell(tried: trying.Tried, what: str) -> str:
    return f"the command `{tried.command}` {what}:\n{tried.said or '(no output)'}"
