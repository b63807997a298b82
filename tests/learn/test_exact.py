"""Fisher's exact test against counting by hand."""

from itertools import combinations
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.learn.exact import chance


def test_known_values() -> None:
    """The lady tasting tea, and the ends."""
    assert isclose(chance(3, 4, 1, 4), 17 / 70)
    assert isclose(chance(4, 4, 0, 4), 1 / 70)
    assert chance(0, 4, 4, 4) == 1.0
    assert chance(0, 0, 1, 1) == chance(1, 1, 0, 0) == 1.0


@given(st.integers(1, 5), st.integers(1, 5), st.data())
def test_by_counting(total: int, before: int, data: st.DataObject) -> None:
    """It is the share of all ways to deal the failures out that are as bad or worse."""
    failed = data.draw(st.integers(0, total))
    failed_before = data.draw(st.integers(0, before))
    everyone = [1] * (failed + failed_before) + [0] * (total + before - failed - failed_before)
    dealt = [sum(everyone[i] for i in some) for some in combinations(range(len(everyone)), total)]
    wanted = sum(count >= failed for count in dealt) / len(dealt)
    assert chance(failed, total, failed_before, before) == pytest.approx(wanted)
