"""The parent's side of a background agent: an assignment, services for the child, and a judge.

Reviewer, improver and curator are one and the same here. Each says what is to be done
(`Assignment`), which tools the child has, what the parent does for it, and how its staged edits are
judged. `run_agent` stages, runs the child process and clears up. When the agent says that it is
done, its edits are judged, and what is refused goes back to it while rounds remain. The child
process itself is `child_process`, the staged files are `staging`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from tacit.agent.budget import Limits
from tacit.agent.tool import Failed, Result
from tacit.base.clock import until_tomorrow
from tacit.base.errors import TacitError
from tacit.base.setting_sections import CurateSettings, ImproveSettings, LearnSettings, Settings
from tacit.changes.change import Actor, Change, Refusal
from tacit.changes.containment import Escape
from tacit.learn.background import child_process
from tacit.learn.background.staging import StagedWork, Staging
from tacit.learn.background.task import RunReport, Task

ROUNDS = 3
"""How often refusals go back to the agent."""
LIMITS = ("turns", "seconds", "tokens", "money")
"""The reasons by which a limit of the agent's own ends its run."""


class RefusedChange(msgspec.Struct, frozen=True):
    """A staged skill that is not taken as it is, and why."""

    skill: str
    refusal: Refusal

    def explain(self) -> str:
        why = self.refusal
        text = f"{self.skill}: {why.reason}"
        if why.hint:
            text += f"; {why.hint}"
        if why.alternatives:
            text += f" (edit instead: {', '.join(why.alternatives)})"
        return text


class Judged(msgspec.Struct, frozen=True):
    """What a judge made of the staged edits."""

    ready: tuple[Change, ...] = ()
    refused: tuple[RefusedChange, ...] = ()


def refuse(skill: str, *reasons: str) -> Judged:
    """A judge's own reasons against a skill, where it is not the gate that refuses."""
    return Judged(
        refused=tuple(RefusedChange(skill, Refusal("standard", "judge", why)) for why in reasons)
    )


Judge: TypeAlias = Callable[[StagedWork, str], Judged]
"""Judges what is staged; the text is what the agent said last. May put changes before the gate."""
Services: TypeAlias = Mapping[str, Callable[..., str | Result]]
"""What the parent does for the child, by name. A service raises `Failed` with what is wrong."""


class StagedBroker:
    """The broker of every background agent, called in the thread of `child_process.run`."""

    def __init__(
        self, staging: Staging, judge: Judge, services: Services, *, rounds: int = ROUNDS
    ) -> None:
        self._staging = staging
        self._judge = judge
        self._services = services
        self._left = rounds
        self.finished_once = False
        self.ready: tuple[Change, ...] = ()
        """What was in order when the agent was last done."""
        self.refused: tuple[RefusedChange, ...] = ()
        self.unfinished: tuple[Change, ...] = ()
        """What an agent that was stopped at a limit had made besides, and would pass."""

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        function = self._services.get(name)
        if function is None:
            raise Failed(f"nothing here is called '{name}'")
        try:
            served = function(**arguments)
        except TypeError as error:  # the arguments do not fit
            raise Failed(f"{name}: {error}") from None
        except TacitError as error:
            raise Failed(error.explain()) from None
        except Escape as escape:
            raise Failed(f"{escape.refusal.reason}; {escape.refusal.hint}") from None
        return Result(served) if isinstance(served, str) else served

    def cut_off(self, text: str) -> None:
        """The agent was stopped at a limit: see what it had made. `text` is the reason for it."""
        judged, refused = self._look(text)
        known = {change.skill for change in self.ready}
        self.unfinished = tuple(change for change in judged.ready if change.skill not in known)
        self.refused = refused

    def finished(self, text: str) -> str | None:
        self.finished_once = True
        judged, refused = self._look(text)
        # Done twice with the same is an answer: the agent leaves what is refused.
        again = _wants(judged.ready, refused) == _wants(self.ready, self.refused)
        self.ready, self.refused = judged.ready, refused
        self._left -= 1
        return (
            self._refusal_text(refused, judged)
            if refused and not again and self._left >= 0
            else None
        )

    def _refusal_text(self, refused: Iterable[RefusedChange], judged: Judged) -> str:
        return refusal_text(refused, judged.ready, _END_AGAIN)

    def _look(self, text: str) -> tuple[Judged, tuple[RefusedChange, ...]]:
        work = self._staging.work()
        judged = self._judge(work, text)
        spoilt = tuple(RefusedChange(found.name, found.refusal) for found in work.spoilt)
        return judged, (*spoilt, *judged.refused)


def _wants(ready: Iterable[Change], refused: Iterable[RefusedChange]) -> tuple[object, ...]:
    return (*((change.skill, change.operations) for change in ready), *refused)


_END_AGAIN = "Mend what is refused, or leave it: what stays refused is dropped. Then end again."


def refusal_text(refused: Iterable[RefusedChange], ready: Iterable[Change], then: str) -> str:
    """What an agent is told whose work is refused in part; `then` is what it does next."""
    lines = ["Not all of this can be kept. Refused:"]
    lines += [f"- {found.explain()}" for found in refused]
    if names := ", ".join(change.skill for change in ready):
        lines.append(f"In order as it is, leave it: {names}.")
    lines.append(then)
    return "\n".join(lines)


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent is to do; `Task` has what the fields mean."""

    job: str
    kind: str
    actor: Actor
    session: str = ""
    project: str = ""
    instructions: str
    message: Callable[[Staging], str]
    """Makes the first message, once the broker has staged its copies."""
    toolset: str
    data: dict[str, Any] = {}
    limits: Limits


def run_agent(
    assignment: Assignment,
    settings: Settings,
    make_broker: Callable[[Staging], StagedBroker],
    *,
    data: str | None = None,
    keep_unfinished: bool = False,
) -> tuple[RunReport, StagedBroker]:
    """Have the assignment done in a child process. What was staged is gone afterwards.

    `keep_unfinished`: of an agent that a limit of its own stopped, the broker keeps what is whole.
    """
    staging = Staging.open(assignment.job, data=data)
    try:
        broker = make_broker(staging)
        values = msgspec.structs.asdict(assignment)
        task = Task(**values | {"message": assignment.message(staging), "staging": staging.path})
        report = child_process.run(task, broker, settings)
        if keep_unfinished and report.reason in LIMITS:
            broker.cut_off(f"stopped before it was done: {describe_end(report)}")
        return report, broker
    finally:
        staging.discard()


def limits_from(
    section: LearnSettings | ImproveSettings | CurateSettings, settings: Settings, *, turns: int = 0
) -> Limits:
    """The limits of a section of the settings; what it does not name is as for a review."""
    return Limits(
        turns or section.turns,
        section.seconds,
        getattr(section, "tokens", settings.learn.tokens),
        getattr(section, "money", settings.learn.money),
        settings.agent.retries,
    )


def describe_end(report: RunReport) -> str:
    """How a run ended, where that was not by itself; else empty."""
    if report.reason == "done":
        return ""
    if report.reason in LIMITS and not report.day:
        requests = "1 request" if report.turns == 1 else f"{report.turns} requests"
        return f"the limit on {report.reason} was reached after {requests}"
    return report.error or f"it ended by: {report.reason}"


def retry_after(report: RunReport) -> float:
    """Seconds after which a run that gave nothing is worth another try; 0 for never."""
    if report.day == "rest":
        return until_tomorrow()
    if report.reason == "budget":
        return 3600.0
    # No answer in all that time: the model stalled, or the machine did.
    stalled = report.reason == "seconds" and not report.turns
    return 600.0 if stalled or report.reason in ("error", "killed") else 0.0
