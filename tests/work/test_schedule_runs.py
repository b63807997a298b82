"""Planning, with a clock that a test moves: each due time once, whatever happens in between."""

import os
import random
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from cron_reference import Fields, walked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schedule_factory import Engine, Killed, binding, loose

from tacit.base import database
from tacit.base.errors import Damaged
from tacit.work import schedule_runs
from tacit.work.schedule_runs import GRACE, ScheduleRun, advance, plan, run_id

LONG = bool(os.environ.get("TACIT_TEST_LONG"))
"""Whole years, instead of weeks."""
SEED = os.environ.get("TACIT_TEST_SEED", "")
START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
YEAR = {
    "Europe/Paris": Fields(frozenset({30}), frozenset({2, 9}), None, None, None),
    "America/New_York": Fields(frozenset({0, 45}), frozenset({1}), None, None, frozenset({0, 6})),
    "Australia/Lord_Howe": Fields(frozenset({15}), frozenset({1, 2}), None, None, frozenset({0})),
    "Africa/Cairo": Fields(frozenset({0}), frozenset({0, 23}), None, None, frozenset({1, 5})),
    "Asia/Kolkata": Fields(frozenset({5}), None, frozenset({1, 26}), frozenset({3, 11}), None),
}
# Where only a part of the year is walked, clocks are changed in it.
PART = {"Europe/Paris": 80, "America/New_York": 300, "Australia/Lord_Howe": 270,
        "Africa/Cairo": 110, "Asia/Kolkata": 80}  # fmt: skip


def ids(name: str, dues: list[datetime]) -> list[str]:
    return [run_id(name, due) for due in dues]


@pytest.mark.parametrize("zone", YEAR)
def test_a_year_with_sleep_restarts_and_kills(zone: str) -> None:
    """With catch-up all, cron fires exactly the due times of the reference, each once, in order.

    The machine sleeps, the worker is stopped for days and is killed in the middle of planning, all
    at random.
    """
    fields = YEAR[zone]
    start = START + timedelta(days=0 if LONG else PART[zone])
    end = start + timedelta(days=365 if LONG else 12)
    bound = binding(fields.text, start, zone, catch_up="all", overlap="queue")
    schedule = loose("weather-1a2b3c4d", bound)
    chance = random.Random(f"{zone} {SEED}")
    engine, now = Engine(), start
    done: list[str] = []
    kills = 0
    while now < end:
        # A tick, a nap, a night, a week: never so long that more is missed than is made up for.
        now = min(now + timedelta(minutes=chance.choice((1, 60, 420, 420, 1440, 3000))), end)
        engine.kill_in = chance.choice((0, 0, 1, 2))
        try:
            plan(now, [schedule], engine.send)
        except Killed:
            kills += 1
            continue  # another worker starts, whenever it does
        done += engine.work(now, chance.choice((0, 1, 5, 1000)))
    for _ in range(1000):
        engine.kill_in = 0
        if not plan(end, [schedule], engine.send).sent and not engine.queue:
            break
        done += engine.work(end)
    expected = list(walked(fields, ZoneInfo(zone), start, end))
    assert expected
    assert done == ids(schedule.name, expected)
    assert kills


@pytest.mark.parametrize("catch_up", ["latest", "none", "all"])
def test_what_was_missed(catch_up: str) -> None:
    """After an hour off, an every-10-minutes schedule is made up for by its rule, and told of."""
    bound = binding("*/10 * * * *", START, catch_up=catch_up)
    schedule, engine = loose("a-1a2b3c4d", bound), Engine()
    back = START + timedelta(minutes=55)
    planned = plan(back, [schedule], engine.send)
    done = engine.work(back)
    for _ in range(9):
        plan(back, [schedule], engine.send)
        done += engine.work(back)
    dues = [START + timedelta(minutes=n) for n in (10, 20, 30, 40, 50)]
    wanted = {"latest": dues[-1:], "none": [], "all": dues}[catch_up]
    assert done == ids(schedule.name, wanted)
    (told,) = planned.news
    assert (
        "was due 5 times from Thu 01 Jan 2026 00:10 UTC to Thu 01 Jan 2026 00:50 UTC" in told.text
    )
    then = {"latest": "run once now", "none": "not run", "all": "5 runs are made up for"}
    assert then[catch_up] in told.text
    states = Counter(row.state for row in schedule_runs.run_history(schedule.name))
    assert states == Counter({"done": len(wanted), "missed": 5 - len(wanted)}) - Counter()
    assert plan(back, [schedule], engine.send).news == ()


def test_one_that_is_on_time_is_no_news() -> None:
    """A run within the grace is on time: nobody is told, and its row says so."""
    schedule, engine = loose("a-1a2b3c4d", binding("*/10 * * * *", START)), Engine()
    planned = plan(START + timedelta(minutes=10) + GRACE, [schedule], engine.send)
    assert planned.news == ()
    assert planned.sent == (run_id(schedule.name, START + timedelta(minutes=10)),)
    assert planned.next == START + timedelta(minutes=20)
    assert schedule_runs.run_history(schedule.name)[0].why == "due"


@pytest.mark.parametrize("overlap", ["skip", "queue"])
def test_no_overlap(overlap: str) -> None:
    """While a run goes on, the next one is skipped or waits its turn; it never runs beside it."""
    schedule, engine = loose("a-1a2b3c4d", binding("* * * * *", START, overlap=overlap)), Engine()
    first, second, third = (START + MINUTE * n for n in (1, 2, 3))
    assert plan(first, [schedule], engine.send).sent
    assert not plan(second, [schedule], engine.send).sent
    if overlap == "skip":
        (skipped,) = (row for row in schedule_runs.run_history() if row.state == "skipped")
        assert skipped.due == second
        assert "00:01 UTC was still going" in skipped.reason
    engine.work(second)
    sent = plan(third, [schedule], engine.send).sent
    assert sent == (run_id(schedule.name, third if overlap == "skip" else second),)


def test_one_shots_that_were_missed_are_not_dropped() -> None:
    """One that was due while the machine was off is run late; with catch-up none it is noted."""
    for catch_up, sent in (("latest", 1), ("none", 0)):
        schedule = loose(f"{catch_up}-1a2b3c4d", binding("+5m", START, catch_up=catch_up))
        planned = plan(START + timedelta(days=3), [schedule], Engine().send)
        assert len(planned.sent) == sent
        assert "while nothing was there to run it" in planned.news[0].text
        (row,) = schedule_runs.run_history(schedule.name)
        assert row.state == ("sent" if sent else "missed")


def test_every_second_for_weeks_is_cut_short() -> None:
    """What `all` makes up for has an end, and the count of what was missed is no endless walk."""
    schedule = loose("a-1a2b3c4d", binding("* * * * * *", START, catch_up="all"))
    planned = plan(START + timedelta(days=20), [schedule], Engine().send)
    assert "100 runs are made up for" in planned.news[0].text
    assert len(schedule_runs.run_history(schedule.name, most=1000)) == 100


def test_a_small_step_back_fires_nothing_twice() -> None:
    """A clock that is corrected by a minute plans nothing again."""
    schedule, engine = loose("a-1a2b3c4d", binding("*/10 * * * *", START)), Engine()
    later = START + timedelta(minutes=30)
    plan(later, [schedule], engine.send)
    engine.work(later)
    for seconds in (60, 30, 0):
        planned = plan(later - timedelta(seconds=seconds), [schedule], engine.send)
        assert (planned.sent, planned.news) == ((), ())
    assert plan(later + timedelta(minutes=10), [schedule], engine.send).sent


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=400)])
def test_a_clock_that_is_set_back_silences_nothing(ahead: timedelta) -> None:
    """What was planned while the clock was ahead does not count: it is planned anew, and said."""
    schedule, engine = loose("a-1a2b3c4d", binding("*/10 * * * *", START)), Engine()
    plan(START + ahead, [schedule], engine.send)
    engine.work(START + ahead)
    planned = plan(START + MINUTE, [schedule], engine.send)
    assert "the clock was set back" in planned.news[0].text
    assert planned.sent == ()
    fired = 0
    for minutes in range(2, 62):
        planned = plan(START + MINUTE * minutes, [schedule], engine.send)
        engine.work(START + MINUTE * minutes)
        assert planned.news == ()
        fired += len(planned.sent)
    assert fired == 6  # also those that had their time under the wrong clock
    assert plan(
        START + ahead + MINUTE * 20, [schedule], engine.send
    ).sent  # and when it comes again


def test_a_schedule_made_under_a_clock_ahead() -> None:
    """A schedule whose own beginning lies ahead of the clock fires as if it were made now."""
    since = START + timedelta(days=3)
    schedule, engine = loose("a-1a2b3c4d", binding("*/10 * * * *", since)), Engine()
    assert plan(START, [schedule], engine.send).news
    assert plan(START + MINUTE * 10, [schedule], engine.send).sent
    engine.work(START + MINUTE * 10)
    assert plan(START + MINUTE * 20, [schedule], engine.send).sent
    once = loose("b-1a2b3c4d", binding("2026-01-01 01:00", START))
    plan(START + timedelta(hours=2), [once], engine.send)
    engine.work(START + timedelta(hours=2))
    for hours in (0, 1, 2, 3):
        planned = plan(START + timedelta(hours=hours), [once], engine.send)
        assert (planned.sent, planned.news) == ((), ())


def test_planning_costs_the_same_for_each_schedule() -> None:
    """Statements grow with the schedules, and not with their square; no transaction holds all."""

    def statements(number: int) -> list[str]:
        said: list[str] = []
        schedules = [loose(f"s{n}-1a2b3c4d", binding("*/10 * * * *", START)) for n in range(number)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(schedule_runs, "open_runs", _traced(schedule_runs.open_runs, said))
            plan(START + MINUTE * 10, schedules, lambda run, payload: False)
        return said

    few, many = statements(50), statements(500)
    assert len(many) <= 10.5 * len(few)
    assert sum(text.startswith("BEGIN") for text in many) >= 500 / schedule_runs._AT_ONCE
    assert max(sum("FROM schedule_cursors" in text for text in said) for said in (few, many)) == 1


def _traced(opened: Any, said: list[str]) -> Any:
    @contextmanager
    def open_traced() -> Any:
        with opened() as connection:
            connection.set_trace_callback(said.append)
            yield connection

    return open_traced


def test_paused_removed_and_back_again() -> None:
    """Nothing fires while a schedule is paused or gone, and nothing is made up for afterwards."""
    bound = binding("*/10 * * * *", START)
    schedule, engine = loose("a-1a2b3c4d", bound), Engine()
    plan(START + MINUTE, [schedule], engine.send)
    plan(START + timedelta(minutes=15), [], engine.send)  # in the trash
    back = START + timedelta(hours=3, minutes=5)
    assert plan(back, [schedule], engine.send).sent == ()
    assert plan(back + MINUTE * 5, [schedule], engine.send).sent
    paused = loose("b-1a2b3c4d", binding("*/10 * * * *", START, paused=True))
    assert plan(back, [paused], engine.send) == type(plan(back, [], engine.send))()


def test_two_planners_at_once() -> None:
    """Two workers that plan the same minute fire it once."""
    schedule, engine = loose("a-1a2b3c4d", binding("* * * * *", START)), Engine()
    for minutes in range(1, 6):
        now = START + MINUTE * minutes
        plan(now, [schedule], engine.send)
        plan(now, [schedule], engine.send)
        engine.work(now)
    assert sorted(engine.taken) == ids(schedule.name, [START + MINUTE * n for n in range(1, 6)])


def test_a_damaged_database_loses_nothing() -> None:
    """Planning says what is wrong; mended, the due times of the meantime are still there."""
    schedule, engine = loose("a-1a2b3c4d", binding("*/10 * * * *", START, catch_up="all")), Engine()
    plan(START + MINUTE, [schedule], engine.send)
    path = database.default_path()
    with open(path, "rb") as file:
        whole = file.read()
    for ending in ("-wal", "-shm"):
        if os.path.exists(path + ending):
            os.unlink(path + ending)
    with open(path, "wb") as file:
        file.write(b"this is no database, and was one" * 200)
    with pytest.raises(Damaged, match="is damaged"):
        plan(START + timedelta(minutes=25), [schedule], engine.send)
    assert not engine.taken
    with open(path, "wb") as file:
        file.write(whole)
    plan(START + timedelta(minutes=25), [schedule], engine.send)
    assert engine.taken == {run_id(schedule.name, START + timedelta(minutes=10))}


def test_the_record_of_old_runs_has_an_end() -> None:
    """Runs that were over long ago are dropped, but the latest ones of each schedule stay."""
    schedule, engine = loose("a-1a2b3c4d", binding("* * * * *", START, catch_up="all")), Engine()
    for minutes in range(1, 31):
        now = START + MINUTE * minutes
        plan(now, [schedule], engine.send)
        engine.work(now)
    assert schedule_runs.forget_old_runs(START + timedelta(days=80)) == 0
    assert schedule_runs.forget_old_runs(START + timedelta(days=100)) == 10
    assert [row.due.minute for row in schedule_runs.run_history(most=100)] == list(
        range(30, 10, -1)
    )


@given(st.lists(st.tuples(st.sampled_from(list(schedule_runs._BEFORE)), st.booleans())))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_run_that_is_over_stays_so(home: Path, moves: list[tuple[Any, bool]]) -> None:
    """Whatever is asked for, by whoever has an old view of it, no run leaves an end."""
    first = ScheduleRun(
        id=run_id("daily", START), schedule="daily", due=START, why="due", state="waiting"
    )
    with schedule_runs.write_runs() as connection:
        connection.execute("DELETE FROM schedule_runs")
        schedule_runs.add_run(connection, first, START)
    now = first
    for state, fresh in moves:
        after = advance(now if fresh else first, state)
        with schedule_runs.open_runs() as connection:
            kept = schedule_runs.run_by_id(connection, first.id)
        assert kept is not None
        assert kept.state == after.state
        assert after.state == (state if now.state in schedule_runs._BEFORE[state] else now.state)
        assert (kept.ended is None) == kept.live
        now = after


def test_a_planner_does_not_take_back_what_has_begun() -> None:
    """The job may begin before it is noted as sent; the note then comes too late."""
    row = ScheduleRun(
        id=run_id("daily", START), schedule="daily", due=START, why="due", state="waiting"
    )
    with schedule_runs.write_runs() as connection:
        schedule_runs.add_run(connection, row, START)
    assert advance(row, "running").state == "running"
    assert advance(row, "sent", only_from="waiting").state == "running"
