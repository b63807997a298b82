"""The interval of trials: what it says of few pairs and many, and how often it errs."""

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.learn.trial.interval import (
    ERROR,
    Interval,
    _fortune,
    as_change,
    error_of,
    interval_of,
    pairs_needed,
    pairs_planned,
    pairs_to_tell,
    relative,
)


def test_nothing_is_known_without_a_pair() -> None:
    assert interval_of([]) == Interval(0.0, -1.0, 1.0, 0)
    assert interval_of([]).finding() == "unclear"
    assert not interval_of([]).harmless


def test_few_pairs_say_nothing_however_clear_they_look() -> None:
    """Five of five would be 3 in 100 by chance alone; and one may look five times."""
    assert interval_of([1] * 5).finding() == "unclear"
    assert interval_of([1] * 12).finding() == "helps"
    assert interval_of([-1] * 12).finding() == "harms"


def test_pairs_that_are_alike_show_that_there_is_no_difference() -> None:
    assert interval_of([0] * 10).finding() == "unclear"
    found = interval_of([0] * 40)
    assert found.finding() == "no difference"
    assert found.harmless


@given(st.lists(st.floats(-1, 1), max_size=40))
def test_the_interval_holds_the_mean_and_turns_round_with_it(seen: list[float]) -> None:
    found, mirrored = interval_of(seen), interval_of([-value for value in seen])
    assert -1 <= found.low <= found.mean + 1e-6
    assert found.mean - 1e-6 <= found.high <= 1
    assert math.isclose(found.low, -mirrored.high, abs_tol=1e-6)


def test_candidates_of_one_skill_share_one_chance_of_error() -> None:
    assert math.isclose(error_of(1), ERROR / 2)
    assert sum(error_of(n) for n in range(1, 10_000)) < ERROR


def test_amounts_are_compared_so_that_twice_and_half_are_as_far() -> None:
    assert relative(2, 1) == -relative(1, 2)
    assert relative(0, 0) == 0
    assert math.isclose(as_change(relative(300, 100)), 2.0)
    assert math.isclose(as_change(relative(100, 200)), -0.5)


def test_what_is_needed_falls_with_the_difference() -> None:
    assert pairs_needed(0.35, 0.15) > pairs_needed(0.6, 0.1) > pairs_needed(1, 0) > 5
    assert pairs_needed(0.1, 0.2) == 0
    assert pairs_to_tell([1, 1, 1, 1]) < pairs_to_tell([1, -1, 0, 1])


def is_better(counts: Counter[float], error: float = ERROR / 2) -> bool:
    """Whether the interval lies above 0: the one question, without the search for its ends."""
    return _fortune(counts, 0.0) >= -math.log(error)


def promoted(
    rng: random.Random, without: float, with_skill: float, pairs: int, attempt: int
) -> bool:
    """Whether a candidate is found to help, looking after each pair."""
    seen = Counter[float]()
    for _ in range(pairs):
        difference = (rng.random() < with_skill) - (rng.random() < without)
        seen[difference] += 1
        if difference > 0 and is_better(seen, error_of(attempt)):
            return True
    return False


@given(st.lists(st.sampled_from([-1, 0, 1, 0.5]), max_size=30))
def test_the_one_question_has_the_intervals_answer(seen: list[float]) -> None:
    low = interval_of(seen).low
    assert abs(low) < 1e-6 or is_better(Counter(seen)) == (low > 0)


def test_without_an_effect_hardly_any_candidate_is_promoted() -> None:
    """Looked at after each pair, and over five candidates: at most 5 in 100 skills.

    `bench/trial_rates.py` simulates thousands, beside the rules of others.
    """
    rng = random.Random(20)
    skills = [any(promoted(rng, 0.5, 0.5, 60, n) for n in range(1, 6)) for _ in range(200)]
    assert sum(skills) <= 10


@pytest.mark.parametrize("attempt", [1, 3])
def test_a_difference_of_20_points_is_found_in_four_of_five(attempt: int) -> None:
    """Within the pairs that are stated for a candidate, where chance has its widest room."""
    rng, pairs = random.Random(21), pairs_planned(attempt)
    assert sum(promoted(rng, 0.4, 0.6, pairs, attempt) for _ in range(200)) >= 160
