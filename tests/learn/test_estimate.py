"""An estimate is counted from what will be sent, priced, and says what it stands on."""

import pytest

from tacit.agent import spending
from tacit.agent.events import Usage
from tacit.learn.estimate import Habits, estimate, habits_so_far, price


def test_counted_from_what_is_sent() -> None:
    """Each request sends digest and instructions again, and what was said since."""
    habits = Habits(requests=2.0, output=100.0, results=0.0)
    found = estimate([4000, 8000], "openai:none", instructions=2000, habits=habits)
    assert found.requests == 4
    assert found.input_tokens == 2 * (6000 + 10_000) // 4 + 2 * 2 * 50
    assert found.output_tokens == 2 * 2 * 100
    assert found.cost is None
    assert "no price is known for openai:none" in found.shown()
    assert "without experience yet" in found.shown()


def test_priced_by_the_model() -> None:
    """A model on the price list has a cost; the larger one costs more."""
    small = estimate([10_000], "openai:gpt-5-mini", habits=Habits())
    large = estimate([10_000], "openai:gpt-5.1", habits=Habits())
    assert small.cost
    assert large.cost
    assert 0 < small.cost < large.cost
    assert f"${small.cost:.4f}" in small.shown()
    assert price("google-gla:gemini-2.5-flash", 1000, 10) == price(
        "google:gemini-2.5-flash", 1000, 10
    )
    assert price("", 1, 1) is None


def test_experience_counts_once_there_is_enough() -> None:
    """Two earlier reviews are too few; from three on their averages are used, and it is said."""
    for key in ("a", "b"):
        spending.record("review", key, Usage(1000, 50, 0, None, "m"))
    assert habits_so_far() == Habits()
    for _ in range(4):
        spending.record("review", "c", Usage(1000, 80, 0, None, "m"))
    found = habits_so_far()
    assert found.reviews == 3
    assert found.requests == pytest.approx(2.0)
    assert found.output == pytest.approx((50 + 50 + 4 * 80) / 6)
    assert "from 3 earlier reviews" in estimate([100], "x:y").shown()


def test_nothing_to_do_costs_nothing() -> None:
    """No sessions, no tokens."""
    assert estimate([], "openai:gpt-5-mini", habits=Habits()).tokens == 0
