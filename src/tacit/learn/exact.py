"""Fisher's exact test: whether one share is larger than another by more than chance."""

from fractions import Fraction
from math import comb


def chance(failed: int, total: int, failed_before: int, total_before: int) -> float:
    """How likely it is, if nothing had changed, that as many of `total` fail or more.

    1.0 where there is nothing to compare.
    """
    if not total or not total_before:
        return 1.0
    of_all, all_failed = total + total_before, failed + failed_before
    most = min(all_failed, total)
    ways = sum(
        comb(all_failed, count) * comb(of_all - all_failed, total - count)
        for count in range(failed, most + 1)
    )
    return float(Fraction(ways, comb(of_all, total)))
