"""An estimate is counted from what will be sent, priced, and says what it stands on."""

import pytest

from tacit.agent import budget
from tacit.agent.agent_events import Usage
from tacit.learn.review.review_batch import (
    ReviewAverages,
    estimate_cost,
    model_price,
    review_averages,
)


def test_counted_from_what_is_sent() -> None:
    """Each request sends digest and instructions again, and what was said since."""
    habits = ReviewAverages(requests=2.0, output=100.0, results=0.0)
    found = estimate_cost([4000, 8000], "openai:none", instructions=2000, habits=habits)
    assert found.requests == 4
    assert found.input_tokens == 2 * (6000 + 10_000) // 4 + 2 * 2 * 50
    assert found.output_tokens == 2 * 2 * 100
    assert found.cost is None
    assert "no price is known for openai:none" in found.shown()
    assert "without experience yet" in found.shown()


def test_priced_by_the_model() -> None:
    """A model on the price list has a cost; the larger one costs more."""
    small = estimate_cost([10_000], "openai:gpt-5-mini", habits=ReviewAverages())
    large = estimate_cost([10_000], "openai:gpt-5.1", habits=ReviewAverages())
    assert small.cost
    assert large.cost
    assert 0 < small.cost < large.cost
    assert f"${small.cost:.4f}" in small.shown()
    assert model_price("google-gla:gemini-2.5-flash", 1000, 10) == model_price(
        "google:gemini-2.5-flash", 1000, 10
    )
    assert model_price("", 1, 1) is None


def test_experience_counts_once_there_is_enough() -> None:
    """Two earlier reviews are too few; from three on their averages are used, and it is said."""
    for key in ("a", "b"):
        budget.record_spending("review", key, Usage(1000, 50, 0, None, "m"))
    assert review_averages() == ReviewAverages()
    for _ in range(4):
        budget.record_spending("review", "c", Usage(1000, 80, 0, None, "m"))
    found = review_averages()
    assert found.reviews == 3
    assert found.requests == pytest.approx(2.0)
    assert found.output == pytest.approx((50 + 50 + 4 * 80) / 6)
    assert "from 3 earlier reviews" in estimate_cost([100], "x:y").shown()


def test_nothing_to_do_costs_nothing() -> None:
    """No sessions, no tokens."""
    assert estimate_cost([], "openai:gpt-5-mini", habits=ReviewAverages()).tokens == 0
