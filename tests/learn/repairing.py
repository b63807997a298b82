"""What the tests of repair share: a learned skill that fails, chats with it, and jobs."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tacit.agent import agent_events
from tacit.agent.agent_session import Session
from tacit.base import settings
from tacit.base.job import Job, JobResult
from tacit.changes.change import Create, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import project_place
from tacit.learn.improve import repair_job, repair_triggers
from tacit.testing import ModelServer, Rules, ToolUse, Turns, marked
from tacit.traces.store import Store
from tacit.work.intake import sources, take_in

SKILL = """---
name: check-notes
description: Checks the notes of a project. Use when notes are to be checked.
metadata:
  source: auto-skill
---

# Check notes

Use the `Bash` tool to run `scripts/check.sh` on the notes.
Then say how many there are.
"""
MENDED = "Use `run_command` to run `sh scripts/count.sh` in the skill's folder on the notes."
COUNT = '#!/bin/sh\nset -eu\nwc -l < "$1"\n'

LOAD = ToolUse("run_skill", {"name": "check-notes"})
IMPROVER = marked("# What failed")


def make_skill(project: Path, *, source: str = "auto-skill") -> Path:
    """The skill in the project, through the gate; its folder."""
    text = (
        SKILL.replace("auto-skill", source)
        if source
        else SKILL.replace("metadata:\n  source: auto-skill\n", "")
    )
    place = project_place(str(project))
    change = make_change(
        "check-notes", Create({"SKILL.md": text.encode()}), actor="user", root=place.root
    )
    verdict = Gate([place]).propose(change)
    assert verdict.applied, verdict.explain()
    (project / "notes.txt").write_text("one\ntwo\n")
    return Path(place.root) / "check-notes"


def fails(folder: Path) -> Turns:
    """A chat in which the script is missing."""
    command = f"sh {folder}/scripts/check.sh notes.txt"
    return Turns([LOAD, ToolUse("Bash", {"command": command}), "That did not work."])


def works(folder: Path) -> Turns:
    """A chat that does as the mended skill says."""
    command = f"sh {folder}/scripts/count.sh notes.txt"
    return Turns([LOAD, ToolUse("run_command", {"command": command}), "There are 2."])


def mends() -> Turns:
    """An improver that finds the fault."""
    old = "Use the `Bash` tool to run `scripts/check.sh` on the notes."
    return Turns(
        [
            ToolUse("read_file", {}),
            ToolUse("write_file", {"path": "scripts/count.sh", "content": COUNT}),
            ToolUse("edit_file", {"path": "SKILL.md", "old": old, "new": MENDED}),
            ToolUse("run_command", {"command": "sh $SKILL_DIR/scripts/count.sh notes.txt"}),
            "The script was missing and the tool has another name; both are mended.",
        ]
    )


def server(improver: Any, *chats: tuple[str, Any]) -> ModelServer:
    """A model that answers the improver, and chats by what the user says."""
    rules = [(IMPROVER, improver), *((marked(word), script) for word, script in chats)]
    return ModelServer(Rules(*rules))


def chat(message: str) -> tuple[str, list[agent_events.AnyEvent]]:
    """Say something in a new session, then take it into the store; its id, and what happened."""
    session = Session(settings.load_settings().settings, yes=True)

    async def run() -> list[agent_events.AnyEvent]:
        return [event async for event in session.say(message)]

    told = asyncio.run(run())
    session.close()
    store = Store.open()
    take_in(store, sources("tacit"))
    store.close()
    return f"tacit:{session.context.session}", told


def failed_steps(told: list[agent_events.AnyEvent]) -> list[bool]:
    """Whether each call failed, the one that loads the skill left out."""
    found = [event for event in told if isinstance(event, agent_events.Return)]
    return [event.failed for event in found if event.name != "run_skill"]


def due(session: str) -> tuple[repair_triggers.DueRepair, ...]:
    store = Store.open()
    try:
        return repair_triggers.due_repairs(store, session, settings.load_settings().settings)
    finally:
        store.close()


def do(wanted: repair_triggers.DueRepair, number: str = "") -> JobResult:
    """Do one job that is due."""
    return repair_job.run_improve(
        Job(number or f"improve-{abs(hash(wanted.key))}", "improve", wanted.key, wanted.payload)
    )


def python(code: str, **variables: str) -> "subprocess.Popen[bytes]":
    """Code in a process of its own, with this folder on its path."""
    here = os.path.dirname(__file__)
    return subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": here} | variables
    )
