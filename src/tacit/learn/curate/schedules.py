"""Which skills something on a clock refers to. Whoever keeps schedules says so here.

The schedules lie a layer above; they are asked through this one seam. One that fails to answer
keeps everything: then nobody knows what a schedule needs.
"""

from collections.abc import Callable, Iterable

Names = Callable[[], Iterable[str]]

_askers: list[Names] = []


def tell_by(names: Names) -> None:
    """From now on ask `names` for the skills that schedules refer to. Twice is once."""
    if names not in _askers:
        _askers.append(names)


def scheduled_names() -> frozenset[str]:
    """The names of all skills that a schedule refers to. Raises what the schedules raise."""
    return frozenset(name for names in _askers for name in names())
