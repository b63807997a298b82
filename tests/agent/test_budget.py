"""What the background takes is counted, and the day's budget holds, also for several at once."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.agent import budget
from tacit.agent.agent_events import Usage
from tacit.agent.budget import (
    Limits,
    Spent,
    held,
    record_spending,
    refusal_today,
    reserve,
    settle,
)
from tacit.base import database
from tacit.base.setting_sections import LearnSettings

NOON = datetime(2026, 11, 15, 12, 0).astimezone()
FOREVER = datetime(2000, 1, 1, tzinfo=UTC)
LOOK = Limits(money=0.5, tokens=200_000, seconds=120)


def take(cost: float | None, *, tokens: int = 100, at: datetime = NOON, **more) -> str:
    usage = Usage(tokens, 0, more.pop("cached", 0), cost, more.pop("model", "openai:small"))
    return record_spending(**{"kind": "review", "key": "s1", "now": at} | more, usage=usage)


def test_sums_by_kind_model_day_and_entry() -> None:
    """Every request is in the sums of its kind, its model and its day, with tokens and seconds."""
    yesterday = NOON - timedelta(days=1)
    take(0.25, seconds=2.0, cached=40)
    take(0.5, kind="improve", key="s2", model="openai:large", at=yesterday)
    assert budget.today(now=NOON) == Spent(1, 0, 100, 0, 40, 0.25, 2.0)
    since = budget.days_ago(1, now=NOON)
    assert budget.since(since).money == 0.75
    assert {k: s.money for k, s in budget.totals("kind", since).items()} == {
        "improve": 0.5, "review": 0.25,
    }  # fmt: skip
    assert set(budget.totals("model", since)) == {"openai:large", "openai:small"}
    assert list(budget.totals("day", since)) == ["2026-11-14", "2026-11-15"]
    newest, oldest = budget.spendings(since)
    assert (newest.key, oldest.key, newest.at) == ("s1", "s2", NOON)
    assert [entry.key for entry in budget.spendings(since, kind="improve")] == ["s2"]
    whole = budget.sum_spent(budget.totals("kind", since).values())
    assert whole == budget.since(since)


def test_a_day_begins_at_the_users_midnight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute before local midnight is yesterday, in any zone, and after a change of clocks."""
    import time

    for zone in ("America/New_York", "Asia/Kolkata", "UTC"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        now = datetime(2026, 11, 2, 9, 0).astimezone()  # the day after New York's clocks went back
        begin = budget.days_ago(0, now=now)
        assert (begin.hour, begin.minute, begin.day) == (0, 0, 2)
        assert budget.days_ago(1, now=now).hour == 0
        take(1.0, at=begin - timedelta(minutes=1), key=zone)
        take(0.125, at=begin, key=zone)
        assert budget.today(now=now).money == 0.125, zone
        assert budget.totals("day", begin).keys() == {"2026-11-02"}
        database_file = Path(database.default_path())
        for path in database_file.parent.glob("tacit.db*"):
            path.unlink()
    monkeypatch.undo()
    time.tzset()


def test_what_has_no_price_is_counted_and_said() -> None:
    """Requests without a known price are no dollars and no secret."""
    take(None)
    assert budget.today(now=NOON).shown() == "1 request without a price"
    take(0.25)
    take(float("nan"))
    take(-1.0)
    found = budget.today(now=NOON)
    assert (found.requests, found.unpriced, found.money) == (4, 3, 0.25)
    assert found.shown() == "$0.25 and 3 requests without a price"
    assert budget.refusal_today(LearnSettings(daily_money=0.2), now=NOON)
    assert not budget.refusal_today(LearnSettings(daily_money=0.4), now=NOON)


def test_used_up_by_money_or_by_tokens() -> None:
    """The reason names the budget and what was taken; 0 is no limit; a new day begins anew."""
    take(2.0, tokens=5000)
    by_money = budget.refusal_today(LearnSettings(daily_money=2.0), now=NOON)
    assert by_money.startswith("the budget of $2.00 a day is used up ($2.00 spent today)")
    by_tokens = budget.refusal_today(LearnSettings(daily_money=0, daily_tokens=5000), now=NOON)
    assert by_tokens.startswith("the 5,000 tokens a day are used up (5,000 taken today)")
    assert reserve(LearnSettings(daily_money=2.0), LOOK, now=NOON).refusal == by_money
    assert budget.refusal_today(LearnSettings(daily_money=0, daily_tokens=0), now=NOON) == ""
    assert budget.refusal_today(LearnSettings(daily_money=2.0), now=NOON + timedelta(days=1)) == ""


def test_granted_is_what_is_left() -> None:
    """The second of two at once gets the rest, the third nothing, until the first settles."""
    learn = LearnSettings(daily_money=0.8, daily_tokens=300_000)
    first = reserve(learn, LOOK, now=NOON)
    assert first.limits == LOOK
    second = reserve(learn, LOOK, now=NOON)
    assert second.limits.money == pytest.approx(0.3)
    assert second.limits.tokens == 100_000
    third = reserve(learn, LOOK, now=NOON)
    assert "$0.80 held by work that is going on" in third.refusal
    take(0.1, tokens=1000, reserved=first)
    assert reserve(learn, LOOK, now=NOON).refusal  # spent and held are still all of it
    settle(first)
    settle(first)
    assert reserve(learn, LOOK, now=NOON).limits.money == pytest.approx(0.4)


def test_too_little_to_be_of_use_is_not_begun() -> None:
    """Less than a quarter of a look is left: none begins. A small budget can be used whole."""
    take(1.9)
    assert budget.refusal_today(LearnSettings(daily_money=2.0, money=0.5), now=NOON)
    assert not budget.refusal_today(LearnSettings(daily_money=2.0, money=0.4), now=NOON)
    assert reserve(LearnSettings(daily_money=2.0), LOOK, now=NOON).refusal
    tomorrow = NOON + timedelta(days=1)
    small = reserve(LearnSettings(daily_money=0.05), LOOK, now=tomorrow)
    assert small.limits.money == 0.05


def test_without_a_limit_of_its_own_work_gets_the_rest_of_the_day() -> None:
    """No limit asked for is the rest of the budget; no budget is the limit that was asked for."""
    rest = reserve(LearnSettings(daily_money=0.8), Limits(), now=NOON)
    assert (rest.limits.money, rest.limits.tokens) == (0.8, 0)
    settle(rest)
    free = reserve(LearnSettings(daily_money=0), LOOK, now=NOON)
    assert free.limits == LOOK


def test_a_killed_process_holds_nothing_for_long() -> None:
    """A reservation that nobody settled lapses after the time that its work may take."""
    learn = LearnSettings(daily_money=0.5)
    assert not reserve(learn, LOOK, now=NOON).refusal
    assert reserve(learn, LOOK, now=NOON + timedelta(seconds=120)).refusal
    assert not reserve(learn, LOOK, now=NOON + timedelta(seconds=181)).refusal


HOLDER = """
import sys
from tacit.agent.budget import Limits, reserve
from tacit.base.setting_sections import LearnSettings
print(reserve(LearnSettings(daily_money=0.5), Limits(money=0.5, seconds=3600)).id, flush=True)
sys.stdin.readline()
"""


def test_what_a_killed_process_held_is_free_at_once() -> None:
    """Held while the process lives, and not a moment longer, though its work had an hour."""
    learn = LearnSettings(daily_money=0.5)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline().strip()
    assert held().money == 0.5
    assert reserve(learn, LOOK).refusal
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # gone, though nobody has asked yet
    assert held().money == 0
    assert refusal_today(learn) == ""
    assert not reserve(learn, LOOK).refusal
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_a_later_process_of_the_same_number_is_another() -> None:
    """A holder is known by its start as well, and one that cannot be seen from here is left."""
    here = budget._process(os.getpid())
    assert not budget._is_gone(here)
    assert not budget._is_gone("")
    namespace, pid, started = here.split()
    assert budget._is_gone(f"{namespace} {pid} {int(started) - 1}")
    assert not budget._is_gone(f"pid:[1] {pid} 1")


WORKER = """
import sys
from tacit.agent.agent_events import Usage
from tacit.agent.budget import Limits
from tacit.agent.budget import record_spending as record, reserve, settle
from tacit.base.setting_sections import LearnSettings
print("ready", flush=True)
sys.stdin.readline()
for _ in range(20):
    held = reserve(LearnSettings(daily_money=1.0), Limits(money=0.25, seconds=60))
    if held.refusal:
        break
    taken = 0.0
    while taken < held.limits.money:  # as the meter does: looked at after each request
        record("review", "s", Usage(9, 9, 0, 0.0625, "m"), reserved=held)
        taken += 0.0625
    settle(held)
"""


def test_several_processes_pass_the_budget_by_a_request_each_at_most() -> None:
    """Three at once spend the budget, and together no more than one request each beyond it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    several = [subprocess.Popen([sys.executable, "-c", WORKER], **pipes) for _ in range(3)]
    assert [one.stdout.readline() for one in several] == ["ready\n"] * 3
    for one in several:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in several:
        one.communicate(timeout=120)
    assert [one.returncode for one in several] == [0, 0, 0]
    # The last to go is refused for what was spent, not for what others hold.
    assert 1.0 <= budget.since(FOREVER).money <= 1.0 + 3 * 0.0625


actions = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "record", "settle"]),
        st.integers(0, 3),
        st.integers(0, 8),
    ),
    max_size=30,
)


@settings(max_examples=12, deadline=None)
@given(actions)
def test_against_a_simple_account(home: Path, steps) -> None:
    """Whatever the order: what is granted, with what was spent and is held, stays in the budget."""
    for path in Path(database.default_path()).parent.glob("tacit.db*"):
        path.unlink()
    learn = LearnSettings(daily_money=8.0)
    spent, held = 0.0, {}
    for what, which, much in steps:
        if what == "reserve" and which not in held:
            made = reserve(learn, Limits(money=float(much)), now=NOON)
            left = 8.0 - spent - sum(rest for _, rest in held.values())
            assert bool(made.refusal) == (left < min(much or 8, 8) / 4 or left <= 0)
            if not made.refusal:
                assert made.limits.money == (min(much, left) if much else left)
                held[which] = (made, made.limits.money)
        elif what == "record" and which in held:
            made, rest = held[which]
            take(float(much), reserved=made)
            spent += much
            held[which] = (made, max(rest - much, 0.0))
        elif what == "settle" and which in held:
            settle(held.pop(which)[0])
    assert budget.today(now=NOON).money == spent


def test_a_broken_database_raises_nothing_and_allows_nothing() -> None:
    """With a damaged tacit.db, recording says why it failed, and no more may be spent."""
    path = Path(database.default_path())
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database, by any means" * 99)
    assert "damaged" in take(0.1)
    assert "it cannot be read what was spent today" in budget.refusal_today(LearnSettings())
    assert "damaged" in reserve(LearnSettings(), LOOK).refusal
    settle(budget.Reservation("x"))
