"""A hand-over with a real agent, for scripts/test-hosts: it takes a review and answers it.

The agent's model is scripted: it runs in the agent's own shell what the bundled skill says, and
answers under the id that the agent was shown. A session is in the store; nothing but the agent
asks a model.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from host_agents import Agent
from host_checks import Verdict
from host_programs import TERMS, Installed, Place, environment, prepare, run
from host_sessions import BIN, tacit
from tacit.testing import ModelServer, Request
from tacit.testing.script import ReplyLike

_PROMPT = "Learn from my last sessions."
_GUIDE = "learn-from-sessions"
NAME = "package-builds"
SKILL = f"""---
name: {NAME}
description: How packages are built here. Use before building one.
---

1. `read -r VERSION < VERSION; export VERSION; python3 build.py`
2. Never invent a version.
"""
SESSION = """
import os
from tacit.testing.sample_sessions import made, ran
from tacit.traces.store import Store
built = ran("read -r VERSION < VERSION; export VERSION; python3 build.py", "built app-2.0.0")
failed = ran("python3 build.py", "KeyError: 'VERSION'", failed=True)
prompt = "No, do not invent a version: always read it from the VERSION file."
with Store.open() as store:
    trace = made(["Build it.", failed], [prompt, built], project=os.getcwd(), session="built-0001")
    store.write(trace)
"""


class HandedOver(msgspec.Struct, frozen=True):
    """What came of the hand-over to one agent."""

    offered: bool
    """Whether the bundled skill stood in the agent's first request."""
    read: int
    """Characters of the review that reached the model."""
    told: str
    """What the agent was told of its answer."""
    waiting: list[str]
    """Skills in the inbox."""
    requests: int
    ended_well: bool


class _Script:
    """The agent's model."""

    def __init__(self, agent: Agent) -> None:
        self._shell = agent.shell
        self._name = agent.name
        self.requests: list[Request] = []
        self.read = 0
        self.told = ""

    def __call__(self, request: Request) -> ReplyLike:
        if self._shell.name not in request.tool_names:
            return "Learning"
        self.requests.append(request)
        shown = " ".join(result.text for result in request.tool_results)
        program = BIN / "tacit"
        if len(self.requests) == 1:
            return self._shell.use(f"{program} learn built-0001 --handoff; {program} handoff next")
        if len(self.requests) == 2:
            self.read = len(shown)
            found = re.findall(r"tacit handoff answer ([0-9a-f]{8})", shown)
            write = {"path": f"{NAME}/SKILL.md", "content": SKILL}
            given = json.dumps({"why": "Kept how it is built.", "write_file": [write]})
            given = given.replace("`", r"\u0060")  # Gemini CLI runs no command with a backtick
            answer = f"handoff answer {found[-1] if found else 'none'} --by {self._name}"
            return self._shell.use(f"{program} {answer} <<'ANSWER'\n{given}\nANSWER")
        self.told = shown
        return "One skill waits for you: tacit inbox."


def hand_over(agent: Agent, installed: Installed, base: Path, timeout: float) -> HandedOver:
    """Have a real agent do a review."""
    script, home = _Script(agent), base / f"handoff-{agent.name}"
    with ModelServer(script, strict=False, terms=TERMS) as server:
        project = home / "project"
        place = Place(home=home, project=project, url=server.url, path=installed.path)
        prepare(agent, place)
        os.makedirs(project / ".git", exist_ok=True)
        subprocess.run(
            [sys.executable, "-c", SESSION], cwd=project, env=environment(agent, place), check=True
        )
        tacit(agent, place, "connect", agent.name, "--yes")
        done = run(agent, installed.program, place, _PROMPT, timeout=timeout)
        first = script.requests[0].body if script.requests else b""
        inbox = msgspec.json.decode(tacit(agent, place, "inbox", "--json"))["proposals"]
    return HandedOver(
        _GUIDE.encode() in first,
        script.read,
        script.told,
        [proposal["change"]["skill"] for proposal in inbox],
        len(script.requests),
        done.ended_well,
    )


def _judged(found: HandedOver) -> Verdict:
    good = found.waiting == [NAME] and "waits in the inbox" in found.told
    why = "" if good else f"the agent was told: {found.told[-200:]}"
    return Verdict(good, ", ".join(found.waiting) or "nothing", why)


HANDOFF: tuple[tuple[str, Callable[[HandedOver], Verdict]], ...] = (
    ("ended", lambda found: Verdict(found.ended_well, "yes" if found.ended_well else "no")),
    ("skill offered", lambda found: Verdict(None, "yes" if found.offered else "no")),
    ("characters read", lambda found: Verdict(found.read > 1000, f"{found.read:,}")),
    ("waits", _judged),
    ("requests", lambda found: Verdict(None, str(found.requests))),
)
