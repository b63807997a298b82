"""What `tacit doctor` asks of schedules: can each be read, and is something there to fire them."""

import os

from tacit.base.errors import TacitError
from tacit.base.health import Check, Finding
from tacit.skills.scheduled import folder
from tacit.work import where, worker


def unattended() -> str:
    """Why schedules do not fire by themselves, with the command that helps; empty where they do."""
    if not os.path.isdir(folder()):
        return ""
    from tacit.work.schedules import shelf

    active = [s for s in shelf.listing()[0] if not s.binding.paused]
    if not active:
        return ""
    if not where.has_engine():
        return "nothing here can fire schedules: pip install 'tacit[work]'"
    found = worker.present()
    if found is not None and found.stays:
        return ""
    return (
        "no daemon runs, so schedules fire only when something else starts a worker;"
        " keep one running: tacit daemon install"
    )


def check_schedules() -> list[Finding]:
    """Every schedule can be read, runs what is there, and something is there to fire them."""
    if not os.path.isdir(folder()):
        return []
    from tacit.work.schedules import shelf

    good, bad = shelf.listing()
    findings = [Finding("schedule", broken.why, broken.hint or "mend it") for broken in bad]
    for schedule in good:
        if not os.path.isdir(schedule.binding.project):
            what = (
                f"the schedule '{schedule.name}' works in {schedule.binding.project}, which is gone"
            )
            fix = f"bind another folder: tacit schedule edit {schedule.name} --in DIR"
            findings.append(Finding("schedule", what, fix))
            continue
        findings += _skills(schedule.name, schedule.binding.skills, schedule.binding.project)
    if why := unattended():
        what, _, fix = why.partition(";")
        findings.append(
            Finding("schedule", f"there are schedules, but {what}", fix.strip() or what)
        )
    return findings


def _skills(name: str, skills: tuple[str, ...], project: str) -> list[Finding]:
    from tacit.skills.library import Library

    if not skills:
        return []
    try:
        library = Library(project)
    except TacitError:
        return []  # said by its own check
    return [
        Finding(
            "schedule",
            f"the schedule '{name}' runs the skill '{skill}', which is not there",
            f"bring it back: tacit restore {skill}; or: tacit schedule edit {name} --skill OTHER",
        )
        for skill in skills
        if library.find(skill) is None
    ]


CHECKS: tuple[Check, ...] = (check_schedules,)
