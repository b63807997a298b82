"""A model that fails in every way that models fail: the library is whole, the reason readable."""

import os
from pathlib import Path
from typing import Any

import pytest
from reviews import BUILDS, LEARNED, look, put_skill, text_of

from tacit.agent import spending
from tacit.agent.events import Usage as Spent
from tacit.agent.limits import Limits
from tacit.base import paths
from tacit.base.moments import until_tomorrow
from tacit.base.sections import LearnSettings
from tacit.changes.checks import check
from tacit.changes.gate import Gate
from tacit.learn.background import room
from tacit.learn.background.task import Ran
from tacit.learn.review.outcome import outcome
from tacit.testing import Cut, Garbage, Stall, Status, ToolUse, Turns, Usage, reply
from tacit.traces.trace import Trace

NEW = ToolUse(
    "write_file",
    {"path": "package-builds/SKILL.md", "content": text_of("package-builds", BUILDS)},
)
EDIT = ToolUse("edit", {"path": "old-skill/SKILL.md", "old": "Old words.", "new": "New words."})

# What the model does once it has made and edited something, and what the reason says of it.
FAULTS: dict[str, tuple[Any, str, dict[str, Any]]] = {
    "stall in mid-stream": (
        reply("Well, ", "then", fault=Stall(60, 1)), "limit on seconds", {"learn__seconds": 0.5},
    ),
    "429": (Status(429, 0.01), "429", {}),
    "500": (Status(500), "500", {}),
    "401": (Status(401), "401", {}),
    "cut": (reply("Done", ".", fault=Cut(1)), "", {}),
    "garbage": (Garbage(), "", {}),
    "an empty answer": (reply(""), "empty", {}),
    "tools without end": (ToolUse("ls"), "limit on turns was reached after 6", {"learn__turns": 6}),
    "tools that are not there": (
        ToolUse("skill_manage", {"action": "delete"}), "limit on turns", {"learn__turns": 6},
    ),
    "broken arguments": (
        ToolUse("edit", raw='{"path": "old'), "limit on turns", {"learn__turns": 6},
    ),
    "tokens": (
        reply(ToolUse("ls"), usage=Usage(90_000, 20_000)), "limit on tokens",
        {"learn__tokens": 100_000},
    ),
}  # fmt: skip


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize("fault", FAULTS)
def test_a_review_that_fails_changes_nothing(
    fault: str, project: Path, session: Trace, serve: Any
) -> None:
    """Edits were staged; the review ends by a fault; no skill is changed, and it says why."""
    folder = put_skill(project, "old-skill", "Old words.", head=LEARNED)
    before = (folder / "SKILL.md").read_bytes()
    doing, word, settings = FAULTS[fault]
    serve(Turns([reply(NEW, EDIT)], then=doing), **settings)
    done = look(session)
    assert done.outcome == "failed"
    assert "nothing was changed" in done.reason
    assert word in done.reason
    assert len(done.reason) > 30
    assert done.changes == ()
    assert (folder / "SKILL.md").read_bytes() == before
    assert [p.name for p in folder.parent.iterdir() if p.name[0] != "."] == ["old-skill"]
    if fault in ("500", "cut", "tools without end"):  # a look at every object takes a while
        assert check(Gate()) == []
    assert not os.path.exists(os.path.join(paths.folders().data, "staging", "review-1"))


def test_a_stall_is_ended_from_outside(project: Path, session: Trace, serve: Any) -> None:
    """Through the real child: a server that goes silent is left when the time is up."""
    serve(Turns([NEW], then=reply("Well, ", "then", fault=Stall(120, 1))), learn__seconds=2.5)
    done = look(session)
    assert done.outcome == "failed"
    assert "seconds" in done.reason or "time was up" in done.reason
    assert not (project / ".agents").exists()


def test_what_was_left_of_the_day_is_no_fault(project: Path, session: Trace, serve: Any) -> None:
    """A look that the rest of the day's tokens cut off says so, and is put off until tomorrow."""
    assert spending.record("review", "another", Spent(90_000, 0, cost=0.1)) == ""
    large = reply(NEW, usage=Usage(50_000, 20_000))
    serve(Turns([large], then=large), learn__tokens=100_000, learn__daily_tokens=150_000)
    done = look(session)
    assert "the day's budget cut it off after 1 request" in done.reason
    assert "60,000 tokens of 150,000 tokens a day (learn.daily_tokens)" in done.reason
    assert "nothing was changed" in done.reason
    assert abs(done.later - until_tomorrow()) < 5
    assert not (project / ".agents").exists()


def test_a_day_that_is_too_small_is_not_waited_for(session: Trace, serve: Any) -> None:
    """A look that had the whole day's tokens and needs more fails: tomorrow is no better."""
    large = reply(NEW, usage=Usage(50_000, 20_000))
    serve(Turns([large], then=large), learn__tokens=100_000, learn__daily_tokens=60_000)
    done = look(session)
    assert (done.outcome, done.later) == ("failed", 0)
    assert "60,000 tokens of 60,000 tokens a day (learn.daily_tokens), and needs" in done.reason


@pytest.mark.parametrize(
    ("reason", "granted", "learn", "day"),
    [
        ("money", Limits(money=0.2), LearnSettings(daily_money=2.0), "rest"),
        ("money", Limits(money=0.2), LearnSettings(daily_money=0.2), "whole"),
        ("money", Limits(money=0.5), LearnSettings(daily_money=2.0), ""),
        ("tokens", Limits(tokens=100, money=0.2), LearnSettings(daily_tokens=500), ""),
        ("turns", Limits(tokens=50, money=0.2), LearnSettings(daily_tokens=500), ""),
    ],
)
def test_only_the_limit_that_the_day_narrowed_is_the_days(
    reason: Any, granted: Limits, learn: LearnSettings, day: str
) -> None:
    """The task's own limit on one thing is not laid to the budget that narrowed another."""
    ran = room._by_the_day(Ran(reason=reason), Limits(tokens=100, money=0.5), granted, learn)
    assert ran.day == day
    assert ran.reason == ("budget" if day == "rest" else reason)
    ended = outcome(ran, ())
    assert (ended.again > 0) == (day == "rest")
    assert ("the day's budget" in ended.reason) == bool(day)


@pytest.mark.usefixtures("inside")
def test_a_passing_fault_is_tried_again(session: Trace, serve: Any) -> None:
    """A 500 and a cut on the way are made good by another request, and the skill lands."""
    seen: list[int] = []

    def script(request: Any) -> Any:
        if len(request.messages) not in seen:
            seen.append(len(request.messages))
            return Status(500) if len(seen) % 2 else Cut(0)
        return NEW if request.turn == 0 else "Kept."

    serve(script)
    assert look(session).outcome == "created"


@pytest.mark.usefixtures("inside")
def test_a_failed_review_is_worth_another_try(session: Trace, serve: Any) -> None:
    """A server's fault puts the job off; a refusal or a limit does not."""
    serve(Status(503))
    assert look(session).later > 0
    serve(["Nothing to save."])
    assert look(session, job="review-2").later == 0
    serve(Turns([ToolUse("ls")] * 20), learn__turns=2)
    assert look(session, job="review-3").later == 0
