"""A repair that is killed at a step and done again, each in a home of its own.

Run as a program with a folder; prints, as JSON, what became of each. The improver's conversation is
left out (the child process's own tests kill that): what it would write is put on its staged.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from repairing import COUNT, MENDED, SKILL, make_skill
from traces_of_skills import call, session

from tacit.base import database, trust
from tacit.base.job import Job
from tacit.changes.gate import Gate
from tacit.changes.place import project_place
from tacit.learn import notices
from tacit.learn.background import child_process
from tacit.learn.background.staging import Staging
from tacit.learn.background.task import RunReport, Task
from tacit.learn.background.toolset import StagedSkills
from tacit.learn.improve import probation, repair_broker, repair_job, verification
from tacit.learn.improve.repairs import Repairs
from tacit.learn.trial.interval import interval_of
from tacit.traces.store import Store

# Where the process is killed: the owner of a function, its name, and whether before or after it.
POINTS: dict[str, tuple[Any, str, str]] = {
    "begun": (Repairs, "begin", "after"),
    "staged": (Staging, "copy_in", "after"),
    "before the gate": (Gate, "propose", "before"),
    "after the gate": (Gate, "propose", "after"),
    "told": (repair_broker, "announce_repair", "after"),
    "cleared": (Staging, "discard", "after"),
    "remembered": (Repairs, "finish", "after"),
}
BACK: dict[str, tuple[Any, str, str]] = {
    "before the undo": (Gate, "undo", "before"),
    "after the undo": (Gate, "undo", "after"),
    "noted": (probation, "_write", "after"),
    "back told": (probation, "_announce", "after"),
}


def converse(task: Task, broker: Any, settings: Any) -> RunReport:
    """What the improver would do, without a model."""
    staged = StagedSkills(task.staging)
    staged.write("check-notes", "scripts/count.sh", COUNT.encode())
    old = "Use the `Bash` tool to run `scripts/check.sh` on the notes."
    text = staged.read("check-notes").decode().replace(old, MENDED.replace("`run_command`", "it"))
    staged.write("check-notes", "SKILL.md", text.encode())
    told = broker.finished("Mended.")
    return RunReport(reason="done" if told is None else "turns", text=told or "Mended.")


def killed_at(point: tuple[Any, str, str], work: Callable[[], Any]) -> int:
    """Do `work` in a child that is killed there; the signal that ended it."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    owner, name, when = point
    real = getattr(owner, name)

    def deadly(*given: Any, **more: Any) -> Any:
        if when == "after":
            real(*given, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, deadly)
    try:
        work()
    finally:
        os._exit(0)


def state(folder: Path) -> dict[str, Any]:
    """How the skill stands, and what is known of it."""
    gate = Gate([project_place()])
    versions = list(gate.open_place().history.log("check-notes"))
    gate.state_of("check-notes")
    with database.opened() as connection:
        attempts = Repairs(connection).of("check-notes", project_place().root)
    staging = Path(os.environ["HOME"], ".local/share/tacit/staging")
    return {
        "text": (folder / "SKILL.md").read_text(),
        "script": (folder / "scripts" / "count.sh").exists(),
        "versions": [v.record.actor for v in versions],
        "hand": sum(v.record.kind == "hand" for v in gate.open_place().history.log("check-notes")),
        "attempts": [attempt.outcome for attempt in attempts],
        "notices": [notice.kind for notice in notices.pending("chat")],
        "staging": [name for name in os.listdir(staging) if not name.startswith(".")],
    }


def fresh(home: Path) -> Path:
    """A home with the skill in a project, and a session in which it failed."""
    project = home / "work"
    (project / ".git").mkdir(parents=True)
    os.environ["HOME"] = str(home)
    os.chdir(project)
    trust.add(str(project))
    folder = make_skill(project)
    store = Store.open()
    failed = call("Bash", "sh scripts/check.sh notes.txt", "sh: 0: cannot open scripts/check.sh")
    store.write(session("check-notes", failed, project=str(project)))
    store.close()
    return folder


WANTED = {"session": "claude-code:s1", "turn": 1, "skill": "check-notes"}


def one_repair(home: Path, point: tuple[Any, str, str]) -> dict[str, Any]:
    folder = fresh(home)
    job_ = Job("improve-1", "improve", "key", WANTED)
    ended = killed_at(point, lambda: repair_job.run_improve(job_))
    between = (folder / "SKILL.md").read_text()
    done = repair_job.run_improve(job_)
    whole = between in (SKILL, (folder / "SKILL.md").read_text())
    return state(folder) | {"signal": ended, "whole": whole, "outcome": done.outcome}


def one_rollback(home: Path, point: tuple[Any, str, str]) -> dict[str, Any]:
    folder = fresh(home)
    done = repair_job.run_improve(Job("improve-1", "improve", "key", WANTED))
    watched = probation.Probation(
        done.changes[0],
        "check-notes",
        project_place().root,
        probation.UseCount(5, 20, 0),
        probation.UseCount(5, 20, 19),
        interval_of([-1] * 19),
        "worse",
    )
    probation.current_probation = lambda *given: watched
    payload = {"probation": watched.change, "skill": watched.skill, "root": watched.root}
    job_ = Job("improve-2", "improve", "key2", payload)
    real = {name: (owner, name, getattr(owner, name)) for owner, name, _ in BACK.values()}
    ended = killed_at(point, lambda: repair_job.run_improve(job_))
    between = (folder / "SKILL.md").read_text()
    assert all(getattr(owner, name) is was for owner, name, was in real.values())
    whole = between == SKILL or MENDED.split("`")[2] in between
    outcome = repair_job.run_improve(job_).outcome
    return state(folder) | {"signal": ended, "whole": whole, "outcome": outcome}


def main(top: Path) -> None:
    child_process.run = converse
    verification.find_sandbox = lambda: None  # commands are run again elsewhere
    look = probation.current_probation
    found = {}
    for number, (name, point) in enumerate(POINTS.items()):
        found[name] = one_repair(top / f"repair{number}", point)
    for number, (name, point) in enumerate(BACK.items()):
        found[name] = one_rollback(top / f"back{number}", point)
        probation.current_probation = look
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
