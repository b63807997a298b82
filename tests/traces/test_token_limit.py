"""Cutting a trajectory down: what stays, what goes, and what is said of it."""

import pytest

from tacit.testing.sample_sessions import made, ran
from tacit.traces.token_limit import LAST, TooLarge, fit_tokens, tokens_of
from tacit.traces.trace import Given
from tacit.traces.trajectory import Notes, Trajectory, trajectory_of


def long(turns: int = 20) -> Trajectory:
    first = ["Build it.", "I do.", ran("make", "ok")]
    rest = [[f"Step {n}.", ran(f"do {n}", "y" * 400), f"Did {n}."] for n in range(turns)]
    return trajectory_of(made(first, *rest), Notes(given=Given("You are an agent.")))


def size(trajectory: Trajectory) -> int:
    return sum(tokens_of(entry) for entry in trajectory.entries)


def test_what_fits_stays_as_it_is() -> None:
    whole = long(2)
    assert fit_tokens(whole, 100_000) == (whole, None)


@pytest.mark.parametrize("limit", [700, 1000, 1500])
def test_the_first_of_each_kind_and_the_last_stay(limit: int) -> None:
    """Of the middle whole steps go, from its beginning on, and one step says which."""
    whole = long()
    cut, stands_for = fit_tokens(whole, limit)
    assert size(cut) <= limit
    assert stands_for is not None
    first, last = stands_for.steps
    assert cut.entries[: first - 1] == whole.entries[: first - 1]
    assert {e.source for e in cut.entries[: first - 1]} == {"system", "user", "agent"}
    assert any(e.calls for e in cut.entries[: first - 1])
    assert cut.entries[first:] == whole.entries[last:]
    assert len(cut.entries[first:]) >= LAST
    assert stands_for.tokens == sum(map(tokens_of, whole.entries[first - 1 : last]))
    assert stands_for.turns == (whole.entries[first - 1].turn, whole.entries[last - 1].turn)
    instead = cut.entries[first - 1]
    assert (instead.source, instead.told, instead.stands_for) == ("system", "summary", stands_for)
    assert f"Steps {first} to {last}" in instead.text


def test_a_summary_is_asked_for_once_and_fits() -> None:
    """The model is shown the steps that go, and what it writes is cut to the room there is."""
    asked: list[str] = []

    def summarise(trajectory: Trajectory, text: str, tokens: int) -> tuple[str, str]:
        asked.append(text)
        return "w " * 10_000, "mock:model"

    cut, stands_for = fit_tokens(long(), 1000, summarise)
    assert size(cut) <= 1000
    assert stands_for is not None
    assert stands_for.by == "mock:model"
    (text,) = asked
    assert "user: Step 0." in text
    assert 'call Bash {"command":"do 0"}' in text
    assert "Build it." not in text


def test_too_little_room_is_said() -> None:
    """Nothing that must stay is cut in silence: the reason has both figures."""
    with pytest.raises(TooLarge, match=r"are [\d,]+ tokens, more than the 150 allowed"):
        fit_tokens(long(), 150)
