"""Which skills something on a clock refers to. Unreadable, it raises."""

from tacit.skills.scheduled import skills_in_use


def scheduled_names() -> frozenset[str]:
    """The names of all skills that a schedule refers to. Raises what the schedules raise."""
    return frozenset(skills_in_use(strict=True))
