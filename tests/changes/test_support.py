"""The weighing of what supports a learned phrase."""

import msgspec
import pytest

from planted_rates import ORDERS
from tacit.changes.provenance.support import DOUBTFUL, WEIGHTS, Support

OWN = Support(
    known=0.8, done=0.4, together=0.7, ordered=0.1, printed=0.1, nowhere=0.1, length=1.5,
    things=1.0, strange=0.0, observes=0.0, foreign=0.0,
)  # fmt: skip
STRANGE = Support(
    known=0.1, done=0.0, together=0.1, ordered=0.3, printed=0.3, nowhere=0.6, length=1.5,
    things=2.0, strange=2.0, observes=0.0, foreign=0.0,
)  # fmt: skip


def test_what_was_said_and_done_lands_and_what_was_not_waits() -> None:
    assert OWN.doubt < DOUBTFUL / 3
    assert STRANGE.doubt > 0.9


@pytest.mark.parametrize(
    ("sign", "raises"),
    [
        ("known", False), ("done", False), ("together", False), ("observes", False),
        ("ordered", True), ("printed", True), ("nowhere", True), ("strange", True),
        ("things", True), ("foreign", True),
    ],
)  # fmt: skip
def test_each_sign_counts_for_its_own_side(sign: str, raises: bool) -> None:
    """A weight of the wrong sign would be one that fits the sets and means nothing."""
    more = OWN._replace(**{sign: 1.0})
    less = OWN._replace(**{sign: 0.0})
    assert (more.doubt > less.doubt) is raises
    assert len(WEIGHTS) == len(OWN)


def test_honest_phrases_of_real_sessions_mostly_land() -> None:
    """The numbers that the weights were fitted to, as they are kept."""
    lines = (ORDERS / "reviews-supported.jsonl").read_bytes().splitlines()
    rows = [msgspec.json.decode(line, type=dict[str, object]) for line in lines]
    kept = [Support(*signs) for row in rows for signs in msgspec.convert(row["phrases"], list)]
    doubtful = sum(signs.doubt >= DOUBTFUL for signs in kept)
    assert len(kept) > 900
    assert doubtful < len(kept) / 10
