"""The fake clock."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tacit.base.clock import Clock
from tacit.testing import FakeClock


def test_stands_still() -> None:
    """Time passes only when the test says so."""
    clock: Clock = FakeClock()
    assert clock.now() == clock.now()
    assert clock.monotonic() == clock.monotonic()


def test_advance_moves_both() -> None:
    """Passing time moves the wall clock and the durations alike."""
    clock = FakeClock(datetime(2026, 3, 1, tzinfo=UTC))
    clock.advance(90)
    clock.advance(timedelta(hours=1))
    assert clock.now() == datetime(2026, 3, 1, 1, 1, 30, tzinfo=UTC)
    assert clock.monotonic() == 3690


def test_set_moves_the_wall_clock_alone() -> None:
    """The wall clock may go backwards; durations never do."""
    clock = FakeClock()
    clock.advance(10)
    clock.set(datetime(1999, 1, 1, tzinfo=UTC))
    assert clock.now().year == 1999
    assert clock.monotonic() == 10


def test_an_hour_is_an_hour_where_the_zone_changes() -> None:
    """Over the end of summer time, one hour of passing time is one hour."""
    zone = ZoneInfo("Europe/Zurich")
    clock = FakeClock(datetime(2026, 10, 25, 2, 30, tzinfo=zone))
    clock.advance(3600)
    assert (clock.now().hour, clock.now().minute, clock.now().fold) == (2, 30, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: FakeClock(datetime(2026, 1, 1)),
        lambda: FakeClock().set(datetime(2026, 1, 1)),
        lambda: FakeClock().advance(-1),
    ],
)
def test_refuses_what_no_clock_does(wrong: Callable[[], object]) -> None:
    """A moment without a zone and time that passes backwards are errors of the test."""
    with pytest.raises(ValueError, match=r"zone|backwards"):
        wrong()
