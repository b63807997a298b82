"""Due times: against a reference that walks every minute, on real zones."""

import os
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cron_reference import Fields, walked
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base.errors import Usage
from tacit.work.due_times import Cron, Days, Interval, Once, check_cron, due_after, next_times

ZONES = ("Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kolkata")
# Clocks go forward and back in these nights: by an hour, by half an hour, at midnight, never.
NIGHTS = {
    "Europe/Paris": (datetime(2026, 3, 29), datetime(2026, 10, 25)),
    "America/New_York": (datetime(2026, 3, 8), datetime(2026, 11, 1)),
    "Australia/Lord_Howe": (datetime(2026, 10, 4), datetime(2026, 4, 5)),
    "Africa/Cairo": (datetime(2026, 4, 24), datetime(2026, 10, 30)),
    "Asia/Kolkata": (datetime(2026, 3, 29), datetime(2026, 10, 25)),
}
PARIS = ZoneInfo("Europe/Paris")
LONG = bool(os.environ.get("TACIT_TEST_LONG"))
"""Whole years and many of them, instead of samples."""


def some(low: int, high: int, most: int = 3) -> st.SearchStrategy[frozenset[int] | None]:
    return st.none() | st.frozensets(st.integers(low, high), min_size=1, max_size=most)


FIELDS = st.builds(Fields, some(0, 59), some(0, 23), some(1, 28), some(1, 12, 8), some(0, 6))


def by_us(fields: Fields, zone: str, start: datetime, end: datetime) -> list[datetime]:
    found = []
    for at in due_after(Cron((fields.text,)), ZoneInfo(zone), start):
        if at > end:
            break
        found.append(at)
    return found


@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=200 if LONG else 5, deadline=None)
@given(fields=FIELDS, night=st.integers(0, 1), early=st.integers(0, 1500))
def test_nights_of_daylight_saving(zone: str, fields: Fields, night: int, early: int) -> None:
    """Around each change of the clocks, the due times are those of the reference."""
    start = (NIGHTS[zone][night] - timedelta(minutes=early)).replace(tzinfo=UTC)
    end = start + timedelta(days=2, hours=3)
    fields = Fields(fields.minutes, fields.hours, None, None, fields.weekdays)
    assert by_us(fields, zone, start, end) == list(walked(fields, ZoneInfo(zone), start, end))


@pytest.mark.parametrize("zone", ZONES)
@settings(max_examples=20 if LONG else 1, deadline=None)
@given(fields=FIELDS, days=st.integers(0, 300))
def test_long_spans(zone: str, fields: Fields, days: int) -> None:
    """Over months, the due times are those of the reference."""
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=0 if LONG else days)
    end = start + timedelta(days=365 if LONG else 8)
    assert by_us(fields, zone, start, end) == list(walked(fields, ZoneInfo(zone), start, end))


@pytest.mark.parametrize(
    ("expression", "after", "due"),
    [
        # 02:30 is not there: 03:00 instead, which is 01:00 in UTC.
        ("30 2 * * *", "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        # 02:00 to 02:45 are not there: one moment for all four, and for 03:00 itself.
        ("*/15 2,3 29 3 *", "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-29T01:15"]),
        # 02:30 is there twice: the first counts.
        ("30 2 * * *", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        ("0 30 2 * * *", "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        # Every hour is every hour that passes.
        ("0 * * * *", "2026-10-24T23:30", ["2026-10-25T00:00", "2026-10-25T01:00"]),
        ("0 * * * *", "2026-03-29T00:30", ["2026-03-29T01:00", "2026-03-29T02:00"]),
    ],
)
def test_the_rules_by_example(expression: str, after: str, due: list[str]) -> None:
    """In Paris: a missing time fires at the next one, a double one once, every hour is real."""
    start = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = next_times(Cron((expression,)), PARIS, start, len(due))
    assert [f"{at:%Y-%m-%dT%H:%M}" for at in found] == due


def test_half_an_hour_forward() -> None:
    """On Lord Howe Island 02:00 becomes 02:30: what is due at half past is due right then."""
    start = datetime(2026, 10, 3, 15, 29, tzinfo=UTC)
    found = next_times(Cron(("30 * * * *",)), ZoneInfo("Australia/Lord_Howe"), start, 2)
    assert [f"{at:%H:%M}" for at in found] == ["15:30", "16:30"]


def test_a_day_that_never_was() -> None:
    """Samoa left out 30 December 2011: what was due then is due when the 31st begins."""
    apia = ZoneInfo("Pacific/Apia")
    start = datetime(2011, 12, 30, 9, tzinfo=UTC)  # the evening of the 29th there
    found = next_times(Cron(("0 9 * * *",)), apia, start, 2)
    assert found[0] == datetime(2011, 12, 30, 10, tzinfo=UTC)
    assert found[1].astimezone(apia).isoformat() == "2011-12-31T09:00:00+14:00"
    every = next_times(Days(1, date(2011, 12, 1), ("09:00",)), apia, start, 2)
    assert every == found


def test_several_expressions_are_one_timing() -> None:
    """A moment that two expressions name is due once."""
    start = datetime(2026, 1, 5, tzinfo=UTC)
    found = next_times(Cron(("0 9,12 * * *", "0 12,15 * * *")), ZoneInfo("UTC"), start, 4)
    assert [at.hour for at in found] == [9, 12, 15, 9]


@given(
    seconds=st.integers(1, 10_000_000),
    ahead=st.integers(-1_000_000, 1_000_000_000),
)
@settings(max_examples=25, deadline=None)
def test_intervals_are_even(seconds: int, ahead: int) -> None:
    """An interval's due times are whole steps from its start, later than asked for."""
    start = datetime(2026, 1, 5, 9, 30, 7, tzinfo=UTC)
    after = start + timedelta(seconds=ahead)
    first, second = next_times(Interval(seconds, start), PARIS, after, 2)
    assert first > after
    assert first > start
    assert (first - start).total_seconds() % seconds == 0
    assert first - timedelta(seconds=seconds) <= max(after, start)
    assert second - first == timedelta(seconds=seconds)


def test_every_few_days_keeps_its_time_of_day() -> None:
    """Every third day at 02:30 stays at 02:30 through both changes of the clocks."""
    timing = Days(3, date(2026, 3, 26), ("02:30", "14:00"))
    found = next_times(timing, PARIS, datetime(2026, 3, 25, tzinfo=UTC), 6)
    shown = [f"{at.astimezone(PARIS):%d %H:%M}" for at in found]
    assert shown == ["26 02:30", "26 14:00", "29 03:00", "29 14:00", "01 02:30", "01 14:00"]


def test_once_is_once() -> None:
    """A single moment is due until it has come, and never again."""
    at = datetime(2026, 1, 5, tzinfo=UTC)
    assert next_times(Once(at), PARIS, at - timedelta(seconds=1)) == [at]
    assert next_times(Once(at), PARIS, at) == []


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("61 * * * *", "bad minute"),
        ("* 24 * * *", "bad hour"),
        ("* * * *", "wrong number of fields"),
        ("* * * * * * *", "wrong number of fields"),
        ("0 0 31 2 *", "bad day-of-month"),
        ("* * * 13 *", "bad month"),
        ("* * * * monkey", "bad day-of-week"),
        ("*/0 * * * *", "bad minute"),
        ("0 0 * 2 1#5,", "bad day-of-week"),
    ],
)
def test_wrong_cron_is_refused(expression: str, said: str) -> None:
    """What is wrong with an expression is named by its field."""
    with pytest.raises(Usage, match=said) as caught:
        check_cron(expression)
    assert expression in caught.value.message
    assert "minute hour day month weekday" in caught.value.hint


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="0123456789*/,-#LW?@ amondaily", max_size=30))
def test_no_expression_breaks_the_check(expression: str) -> None:
    """Any text is either an expression with a due time, or refused in words."""
    try:
        plain = check_cron(expression)
    except Usage:
        return
    assert next_times(Cron((plain,)), PARIS, datetime(2026, 1, 5, tzinfo=UTC), 1)
