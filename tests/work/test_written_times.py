"""What people write for a time, and what it is taken for."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base.errors import Usage
from tacit.work.due_times import Cron, Days, Interval, Once, exact_time, local_zone, moment, zone
from tacit.work.written_times import understand

NOW = datetime(2026, 11, 15, 11, 30, tzinfo=UTC)  # a Sunday; 12:30 in Paris
HERE = "Europe/Paris"
PIECES = re.findall(
    r"\S+",
    "every 2 9:00 am at on monday tomorrow in hours 每 天 点 下午 3 周 一 和 後 month the 1st"
    " between and from * / + : - last of 分钟 半 next week day minutes noon 12-25 , 号"
    " 二 五 十 零 两 nine half past quarter",
)


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("every weekday 9:00", ["0 9 * * 1-5"]),
        ("Every Weekday at 9am.", ["0 9 * * 1-5"]),
        ("9am on weekdays", ["0 9 * * 1-5"]),
        ("every 2 hours", ["0 */2 * * *"]),
        ("hourly", ["0 * * * *"]),
        ("every hour at :15", ["15 * * * *"]),
        ("every minute", ["* * * * *"]),
        ("every 10 seconds", ["*/10 * * * * *"]),
        ("daily at 9", ["0 9 * * *"]),
        ("at noon every day", ["0 12 * * *"]),
        ("every day at 9:00 and 17:30", ["0 9 * * *", "30 17 * * *"]),
        ("every monday and friday at 17:30", ["30 17 * * 1,5"]),
        ("every mon, wed, fri 9am and 5pm", ["0 9,17 * * 1,3,5"]),
        ("mondays at 9", ["0 9 * * 1"]),
        ("every weekend at 10am", ["0 10 * * 6,0"]),
        ("every month on the 1st at 9:00", ["0 9 1 * *"]),
        ("on the 1st of every month at 8:00", ["0 8 1 * *"]),
        ("every month on the last day at 18:00", ["0 18 L * *"]),
        ("first monday of every month at 9:00", ["0 9 * * 1#1"]),
        ("every 3 months on the 15th at 9:00", ["0 9 15 */3 *"]),
        ("every year on 1 march at 10:00", ["0 10 1 3 *"]),
        ("every hour from 9 to 17", ["0 9-17 * * *"]),
        (
            "every 15 minutes between 9:00 and 17:00 on weekdays",
            ["*/15 9-16 * * 1-5", "0 17 * * 1-5"],
        ),
        ("0 9 * * 1-5", ["0 9 * * 1-5"]),
        ("cron 30 9 * * mon-fri", ["30 9 * * mon-fri"]),
        ("*/5 * * * * *", ["*/5 * * * * *"]),
        ("@daily", ["0 0 * * *"]),
        ("每天 9 點", ["0 9 * * *"]),
        ("每 30 分鐘", ["*/30 * * * *"]),
        ("每隔2小时", ["0 */2 * * *"]),
        ("每小時", ["0 * * * *"]),
        ("每分钟", ["* * * * *"]),
        ("每周一、三、五 下午3點", ["0 15 * * 1,3,5"]),
        ("每週一至週五 9點", ["0 9 * * 1-5"]),
        ("每个工作日早上8点半", ["30 8 * * 1-5"]),
        ("每月1号9点", ["0 9 1 * *"]),
        ("每月最后一天 18:00", ["0 18 L * *"]),
        ("每年12月25日 9点", ["0 9 25 12 *"]),
        ("每天9点和17点", ["0 9,17 * * *"]),
        ("每天上午九點十五分", ["15 9 * * *"]),
        ("每晚10点", ["0 22 * * *"]),
        ("週末上午10點", ["0 10 * * 6,0"]),
    ],
)
def test_recurrences(text: str, expressions: list[str]) -> None:
    """A recurrence in words or as cron means these expressions."""
    assert understand(text, NOW, HERE).timing == Cron(tuple(expressions))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("+5m", "2026-11-15 12:35"),
        ("+90m", "2026-11-15 14:00"),
        ("+1h30m", "2026-11-15 14:00"),
        ("+2d", "2026-11-17 12:30"),
        ("in 5 minutes", "2026-11-15 12:35"),
        ("in an hour", "2026-11-15 13:30"),
        ("in 2 hours and 30 minutes", "2026-11-15 15:00"),
        ("half an hour from now", "2026-11-15 13:00"),
        ("in a month", "2026-12-15 12:30"),
        ("23:15", "2026-11-15 23:15"),
        ("9:00", "2026-11-16 09:00"),
        ("12:30", "2026-11-16 12:30"),
        ("at 8", "2026-11-16 08:00"),
        ("tomorrow 9am", "2026-11-16 09:00"),
        ("tomorrow at noon", "2026-11-16 12:00"),
        ("tomorrow at nine", "2026-11-16 09:00"),
        ("tomorrow at half past nine", "2026-11-16 09:30"),
        ("tomorrow, quarter past 8", "2026-11-16 08:15"),
        ("nine pm", "2026-11-15 21:00"),
        ("eleven o'clock tomorrow", "2026-11-16 11:00"),
        ("the day after tomorrow at 6:30", "2026-11-17 06:30"),
        ("in 3 days at 9am", "2026-11-18 09:00"),
        ("tonight at 8", "2026-11-15 20:00"),
        ("friday 3pm", "2026-11-20 15:00"),
        ("sunday 3pm", "2026-11-15 15:00"),
        ("sunday 9am", "2026-11-22 09:00"),
        ("next sunday at 3pm", "2026-11-22 15:00"),
        ("2026-12-24 18:00", "2026-12-24 18:00"),
        ("2026-12-24T18:00:00+09:00", "2026-12-24 10:00"),
        ("2026-12-24T18:00:00Z", "2026-12-24 19:00"),
        ("25 december at 8am", "2026-12-25 08:00"),
        ("march 1st 8:00", "2027-03-01 08:00"),
        ("December 24th, 2026 6:00 PM", "2026-12-24 18:00"),
        ("25.12.2026 09:00", "2026-12-25 09:00"),
        ("9:00 America/New_York", "2026-11-15 15:00"),
        ("明天下午3点", "2026-11-16 15:00"),
        ("後天早上8點半", "2026-11-17 08:30"),
        ("大后天晚上8点", "2026-11-18 20:00"),
        ("今晚八点", "2026-11-15 20:00"),
        ("下周一上午9点", "2026-11-16 09:00"),
        ("5分钟后", "2026-11-15 12:35"),
        ("半小時後", "2026-11-15 13:00"),
        ("兩小時後", "2026-11-15 14:30"),
        ("三天后", "2026-11-18 12:30"),
        ("12月25日 9点", "2026-12-25 09:00"),
        ("2026年12月25日9点30分", "2026-12-25 09:30"),
        ("１５：００", "2026-11-15 15:00"),
    ],
)
def test_single_moments(text: str, at: str) -> None:
    """A single moment means this time in Paris; a time of day that is past means tomorrow."""
    timing = understand(text, NOW, HERE).timing
    assert isinstance(timing, Once)
    assert f"{timing.at.astimezone(ZoneInfo(HERE)):%Y-%m-%d %H:%M}" == at


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no time was given"),
        ("every day", "no time of day"),
        ("每天", "no time of day"),
        ("tomorrow", "no time of day"),
        ("2026-12-24", "no time of day"),
        ("next week", "no time of day"),
        ("every week at 9:00", "on which day"),
        ("every month at 9:00", "on which day"),
        ("every morning", "not understood"),
        ("soon", "no exact time"),
        ("later today", "no exact time"),
        ("whenever you like", "no exact time"),
        ("every blue moon", "not understood"),
        ("christmas", "not understood"),
        ("18h", "a time or a span"),
        ("10/11/2026 9:00", "can be two days"),
        ("晚上12点", "can be two days"),
        ("每天二五十点", "no number"),
        ("25:00", "not a time of day"),
        ("13pm", "not a time of day"),
        ("every 0 minutes", "never"),
        ("today 9:00", "in the past: Sun 15 Nov 2026 09:00 Europe/Paris"),
        ("2020-01-01 09:00", "in the past"),
        ("2020-01-01T09:00:00Z", "in the past"),
        ("2026-02-30 09:00", "no day"),
        ("0 9 * *", "wrong number of fields"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("9:00 Mars/Olympus", "no time zone"),
        ("+999999999d", "too far away"),
        ("x" * 500, "too long"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    """Nothing is assumed: what is incomplete, past, ambiguous or wrong is refused in words."""
    with pytest.raises(Usage) as caught:
        understand(text, NOW, HERE)
    assert said in caught.value.message
    assert caught.value.hint


def test_odd_steps_count_from_now() -> None:
    """A step that does not divide the day is counted from the moment it was asked for."""
    assert understand("every 45 minutes", NOW, HERE).timing == Interval(2700, NOW)
    found = understand("every other day at 7pm", NOW, HERE)
    assert isinstance(found.timing, Days)
    assert [at.day for at in found.next] == [15, 17, 19]
    assert understand("每三天 9点", NOW, HERE).shown()[0].startswith("Mon 16 Nov 2026 09:00")


def test_it_is_said_back_exactly() -> None:
    """What was understood is shown with day, date, time, zone and offset."""
    found = understand("every weekday 9:00", NOW, HERE)
    assert found.says == "at 09:00 on Monday through Friday (0 9 * * 1-5) Europe/Paris"
    assert found.shown() == [
        "Mon 16 Nov 2026 09:00 Europe/Paris (UTC+01:00)",
        "Tue 17 Nov 2026 09:00 Europe/Paris (UTC+01:00)",
        "Wed 18 Nov 2026 09:00 Europe/Paris (UTC+01:00)",
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.text(max_size=40)
    | st.tuples(st.sampled_from(["", " "]), st.lists(st.sampled_from(PIECES), max_size=8)).map(
        lambda said: said[0].join(said[1])
    )
)
def test_any_text_is_a_time_or_refused(text: str) -> None:
    """Whatever is written, the answer is a time that is still to come, or words; never a fault."""
    try:
        found = understand(text, NOW, HERE)
    except Usage:
        return
    assert found.next
    assert all(at > NOW for at in found.next)
    assert found.shown()


def test_runs_that_come_too_fast_are_warned_of() -> None:
    assert "86,400 runs a day" in understand("every second", NOW, HERE).warning
    assert understand("every minute", NOW, HERE).warning == ""
    assert understand("tomorrow 9am", NOW, HERE).warning == ""


def test_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong zone is refused with a near one; the machine's own is found."""
    for name, near in (("Europe/Pariss", "Europe/Paris"), ("paris", "Europe/Paris")):
        with pytest.raises(Usage, match="there is no time zone") as caught:
            zone(name)
        assert near in caught.value.hint
    for name in ("", "../etc/passwd", "/etc/passwd", "Europe", "a\0b"):
        with pytest.raises(Usage):
            zone(name)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert local_zone() == "Asia/Tokyo"
    assert local_zone("Europe/Paris") == "Europe/Paris"
    monkeypatch.setenv("TZ", "Nowhere/Land")
    assert zone(local_zone())


@settings(max_examples=40, deadline=None)
@given(
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 1, 1)),
    st.sampled_from(["Europe/Paris", "Africa/Cairo", "Australia/Lord_Howe", "America/St_Johns"]),
)
def test_a_wall_time_is_the_first_moment_that_shows_it(wall: datetime, name: str) -> None:
    """At the moment, clocks show that time or a later one; just before, an earlier one."""
    place, wall = zone(name), wall.replace(microsecond=0)
    at = moment(wall, place)
    assert at.astimezone(place).replace(tzinfo=None) >= wall
    before = (at - timedelta(seconds=1)).astimezone(place).replace(tzinfo=None)
    assert before < wall
    assert exact_time(at, place)
