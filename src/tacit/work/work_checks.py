"""What `tacit doctor` checks of work: the queue is whole, and schedules can be read and fire.

Also says why schedules do not fire by themselves, which the commands for schedules show.
"""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tacit.base import database
from tacit.base.doctor import Check, Finding
from tacit.base.errors import BadConfig, Damaged, TacitError
from tacit.skills.library import SCHEDULE_FILE, scheduled_folder
from tacit.work import job_queue, jobs_db
from tacit.work.presence import present

if TYPE_CHECKING:
    from tacit.changes.change import File


def check_jobs() -> list[Finding]:
    """jobs.db is whole, or the server that stands for it answers."""
    try:
        place = jobs_db.address()
    except BadConfig as error:
        return [Finding("jobs", error.message, error.hint)]
    if place.path and not os.path.exists(place.path):
        return []
    try:
        damage = jobs_db.inspect(place)
    except Damaged as error:
        damage = error.message
    except TacitError as error:
        return [Finding("jobs", error.message, error.hint)]
    if not damage:
        return []
    aside = f"{place.path}.damaged-{int(time.time())}"
    fix = (
        f"put it aside as {os.path.basename(aside)} and begin a new one; jobs that were not over"
        " are queued again, the list of those that were is lost"
    )
    what = damage if place.path in damage else f"{place.path} is damaged: {damage}"
    return [Finding("jobs", what, fix, _begin_anew(place, aside))]


def check_waiting() -> list[Finding]:
    """There is something here that does the jobs that wait."""
    waiting = 0 if jobs_db.has_engine() else len(job_queue.waiting_jobs())
    if not waiting:
        return []
    jobs = "1 job waits" if waiting == 1 else f"{waiting} jobs wait"
    what = f"{jobs}, and nothing is installed that does them"
    return [Finding("jobs", what, "install what does them: pip install 'tacit[work]'")]


JOB_CHECKS: tuple[Check, ...] = (check_jobs, check_waiting)


def _begin_anew(place: jobs_db.Address, aside: str) -> Callable[[], None]:
    def repair() -> None:
        database.move_aside(place.path, aside)

    return repair


def unattended() -> str:
    """Why schedules do not fire by themselves, with the command that helps; empty where they do."""
    if not os.path.isdir(scheduled_folder()):
        return ""
    from tacit.work import schedule_store

    active = [s for s in schedule_store.listing()[0] if not s.binding.paused]
    if not active:
        return ""
    if not jobs_db.has_engine():
        return "nothing here can fire schedules; install what does: pip install 'tacit[work]'"
    found = present()
    if found is not None and found.permanent:
        return ""
    return (
        "no daemon runs, so schedules fire only when something else starts a worker;"
        " keep one running: tacit daemon install"
    )


def check_schedules() -> list[Finding]:
    """Every schedule can be read, runs what is there, and something is there to fire them."""
    if not os.path.isdir(scheduled_folder()):
        return []
    from tacit.work import schedule_store

    good, bad = schedule_store.listing()
    findings = [_unreadable(broken.name, broken.why) for broken in bad]
    for schedule in good:
        if not os.path.isdir(schedule.binding.project):
            what = (
                f"the schedule '{schedule.name}' works in {schedule.binding.project}, which is gone"
            )
            fix = f"bind another folder: tacit schedule edit {schedule.name} --in DIR"
            findings.append(Finding("schedule", what, fix))
            continue
        findings += _missing_skills(
            schedule.name, schedule.binding.skills, schedule.binding.project
        )
    if why := unattended():
        what, _, fix = why.partition("; ")
        findings.append(Finding("schedule", f"there are schedules, but {what}", fix))
    return findings


def _unreadable(name: str, why: str) -> Finding:
    """A schedule that cannot be read, with the way back to its last version that could."""
    from tacit.changes.change import SKILL_FILE
    from tacit.changes.change_checks import bring_back
    from tacit.work import schedule_store

    def whole(files: "dict[str, File]") -> bool:
        try:
            schedule_store.decode_binding(files[SCHEDULE_FILE].data, name)
        except (KeyError, TacitError):
            return False
        return SKILL_FILE in files

    gate = schedule_store.open_gate()
    repair = bring_back(gate, gate.open_place(), name, whole)
    if repair is None:
        folder = os.path.join(scheduled_folder(), name)
        fix = f"delete {folder} and add it again (tacit schedule add): no other version is known"
        return Finding("schedule", why, fix)
    return Finding("schedule", why, "bring back its last version that can be read", repair)


def _missing_skills(name: str, skills: tuple[str, ...], project: str) -> list[Finding]:
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


SCHEDULE_CHECKS: tuple[Check, ...] = (check_schedules,)
