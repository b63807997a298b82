"""Which skills something on a clock refers to: Tacit's own schedules, and whoever says so here.

One that fails to answer keeps everything: then nobody knows what a schedule needs.
"""

from collections.abc import Callable, Iterable

from tacit.skills.scheduled import skills_in_use

Names = Callable[[], Iterable[str]]

_askers: list[Names] = []


def tell_by(names: Names) -> None:
    """From now on ask `names` for the skills that schedules refer to. Twice is once."""
    if names not in _askers:
        _askers.append(names)


def scheduled_names() -> frozenset[str]:
    """The names of all skills that a schedule refers to. Raises what the schedules raise."""
    told = (name for names in _askers for name in names())
    return frozenset((*skills_in_use(strict=True), *told))
