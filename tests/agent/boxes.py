"""A box: a project, a folder for the session, and commands run between them in bubblewrap."""

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

from tacit.agent import sandbox
from tacit.agent.sandbox import Bubblewrap, CommandOutcome, CommandRules


def works() -> str:
    """Why bubblewrap cannot be used here; empty when it can."""
    program = shutil.which("bwrap")
    if program is None:
        return "bubblewrap is not installed"
    words = [program, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    done = subprocess.run(words, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"bubblewrap does not work here: {done.stderr.strip()}"


WHY = works()


class Box:
    """A project, a folder for the session, and commands run between them."""

    def __init__(self, home: Path, project: Path) -> None:
        self.home = home
        self.project = project
        self.temporary = home / "session-files"
        self.temporary.mkdir(exist_ok=True)

    def rules(self, **more: object) -> CommandRules:
        return CommandRules(
            os.path.realpath(self.project), os.path.realpath(self.temporary), **more
        )

    def run(self, command: str, *, seconds: float = 20.0, **more: object) -> CommandOutcome:
        made = sandbox.run_sandboxed(command, Bubblewrap(), self.rules(**more), seconds)
        return asyncio.run(made)
