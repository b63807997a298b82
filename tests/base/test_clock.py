"""Moments as people write them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.base.clock import ago, parse_since
from tacit.base.errors import Usage

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("30d", timedelta(days=30)),
        ("12h", timedelta(hours=12)),
        ("5min", timedelta(minutes=5)),
        ("2w", timedelta(days=14)),
    ],
)
def test_so_long_ago(text: str, before: timedelta) -> None:
    """A number and a unit mean that long before now."""
    assert parse_since(text, NOW) == NOW - before


def test_dates_and_times() -> None:
    """A date means its beginning in the local zone; a time with a zone means itself."""
    assert parse_since("2026-11-01T10:00:00+02:00", NOW) == datetime(2026, 11, 1, 8, tzinfo=UTC)
    assert parse_since("2026-11-01", NOW).tzinfo is not None


@given(st.text(max_size=30))
def test_anything_else_is_a_usage_error(text: str) -> None:
    """Whatever is typed gives a moment or an error with a hint, nothing else."""
    try:
        assert parse_since(text, NOW).tzinfo is not None
    except Usage as error:
        assert error.hint  # noqa: PT017


def test_ago_is_in_words() -> None:
    """How long ago is said in the largest unit that fits."""
    assert ago(NOW - timedelta(days=3), NOW) == "3 d ago"
    assert ago(NOW - timedelta(seconds=5), NOW) == "just now"
    assert ago(None, NOW) == "?"
