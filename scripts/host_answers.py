"""The agents' own programs as models, for scripts/test-hosts: one review through each of them.

The person's home has hooks and instructions, which are none of a review's business. A session is in
the store, `tacit setup` and `tacit learn` are typed, and the program asks a scripted
model. Its hooks do nothing but leave a mark that they fired.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from host_agents import Agent
from host_checks import Verdict
from host_handoff import NAME, SESSION, SKILL
from host_programs import Installed, Place, environment, prepare, transcripts
from host_sessions import BIN, connected_file, tacit
from tacit.agent.host_program import host_programs
from tacit.testing import ModelServer, Request
from tacit.testing.script import ReplyLike

_SIGN = "GNT17"
_INSTRUCTIONS = {
    "claude-code": ".claude/CLAUDE.md",
    "codex": ".codex/AGENTS.md",
    "gemini-cli": ".gemini/GEMINI.md",
    "qwen-code": ".qwen/QWEN.md",
    "copilot-cli": ".copilot/copilot-instructions.md",
    "opencode": ".config/opencode/AGENTS.md",
    "pi": ".pi/agent/AGENTS.md",
}
"""Where each keeps what its user always tells it."""
_MODELS = {"claude-code": "claude-sonnet-4-5", "codex": "mock-model", "pi": "mock/mock-model"}
_MODELS |= {"opencode": "mock/mock-model", "gemini-cli": "gemini-2.5-flash"}
_WRAPPED = {
    "codex": """\
import os, sys
given = {'model_provider': 'mock', 'model_providers.mock.name': 'mock',
         'model_providers.mock.base_url': URL, 'model_providers.mock.env_key': 'MOCK_KEY',
         'model_providers.mock.wire_api': 'responses'}
words = [word for key, value in given.items() for word in ('-c', f'{key}="{value}"')]
os.execv(PROGRAM, [PROGRAM, *words, *sys.argv[1:]])
""",
    "opencode": """\
import json, os, sys
settings = json.loads(os.environ.get('OPENCODE_CONFIG_CONTENT', '{}'))
settings['provider'] = {'mock': {'npm': '@ai-sdk/openai-compatible',
    'options': {'baseURL': URL, 'apiKey': 'test'}, 'models': {'mock-model': {'name': 'mock'}}}}
os.environ['OPENCODE_CONFIG_CONTENT'] = json.dumps(settings)
os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
""",
}
"""These two leave the user's settings out, and with them the provider: it is handed to them."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one review through a program."""

    requests: int
    """Of the review alone, without the trial of `tacit setup`."""
    bytes: int
    tools: tuple[str, ...]
    saw_instructions: bool
    fired: bool
    """Whether a hook of the user's ran."""
    waiting: list[str]
    """Skills in the inbox."""
    left: int
    """Sessions of the program's own that lie in the user's home."""
    learned_from: int
    """Requests about them when Tacit learns from all sessions again."""
    log: str


def answers(agent: Agent) -> bool:
    """Whether the agent's program can be a model."""
    return any(found.host.name == agent.host.name for found in host_programs())


def review(agent: Agent, installed: Installed, base: Path) -> Answered:
    """Have the agent's program answer one review."""
    home = base / f"answers-{agent.name}"
    with ModelServer(_reply, strict=False) as server:
        place = Place(home=home, project=home / "project", url=server.url, path=installed.path)
        place = msgspec.structs.replace(place, path=(_programs(agent, installed, place), BIN))
        prepare(agent, place)
        _plant(agent, place)
        os.makedirs(place.project / ".git")
        program = agent.host.program
        assert program is not None
        model = ":".join(filter(None, ("cli", program.word, _MODELS.get(agent.name, ""))))
        tacit(agent, place, "connect", agent.host.name, "--yes")
        fired = _mark_hooks(agent, place)
        env = environment(agent, place)
        subprocess.run([sys.executable, "-c", SESSION], cwd=place.project, env=env, check=True)
        tacit(agent, place, "setup", "--model", model)
        tried = len(server.requests)
        said = tacit(agent, place, "learn", "built-0001")
        asked = server.requests[tried:]
        left = len(transcripts(agent, home))
        waiting = _waiting(agent, place)
        return Answered(
            requests=len(asked),
            bytes=max((len(request.body) for request in asked), default=0),
            tools=tuple(sorted({name for request in asked for name in request.tool_names})),
            saw_instructions=any(request.mentions(_SIGN) for request in asked),
            fired=fired.exists(),
            waiting=waiting,
            left=left,
            learned_from=_looked_at(agent, place, server),
            log=said,
        )


def _reply(request: Request) -> ReplyLike:
    if not request.mentions("write_file"):
        return "READY"
    write = {"path": f"{NAME}/SKILL.md", "content": SKILL}
    return json.dumps({"why": "Kept how it is built.", "write_file": [write]})


def _programs(agent: Agent, installed: Installed, place: Place) -> Path:
    """A folder with the program on it, and what else its interpreter needs."""
    folder = place.home / "bin"
    folder.mkdir(parents=True)
    text = _WRAPPED.get(agent.name, "import os, sys\nos.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])\n")
    values = f"PROGRAM, URL = {str(installed.program)!r}, {f'{place.url}/v1'!r}\n"
    path = os.pathsep.join(str(one) for one in installed.path)
    values += f"import os\nos.environ['PATH'] = {path!r} + os.pathsep + os.environ['PATH']\n"
    file = folder / agent.program
    file.write_text(f"#!{sys.executable} -SE\n{values}{text}", encoding="utf-8")
    file.chmod(0o755)
    return folder


def _plant(agent: Agent, place: Place) -> None:
    """Instructions of the user's own, which are none of a review's business."""
    file = place.home / _INSTRUCTIONS[agent.name]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"Always say {_SIGN}.\n", encoding="utf-8")


def _mark_hooks(agent: Agent, place: Place) -> Path:
    """Have the hooks that connecting wrote leave a mark instead; the mark."""
    mark, program = place.home / "fired", place.home / "bin" / "fired"
    program.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(mark))}\n", encoding="utf-8")
    program.chmod(0o755)
    file = connected_file(agent, place)
    text = file.read_text(encoding="utf-8")
    ours = str(BIN / "tacit-hook")
    assert ours in text, f"{file} does not name {ours}"
    file.write_text(text.replace(ours, str(program)), encoding="utf-8")
    return mark


def _waiting(agent: Agent, place: Place) -> list[str]:
    found: dict[str, Any] = msgspec.json.decode(tacit(agent, place, "inbox", "--json"))
    return [proposal["change"]["skill"] for proposal in found["proposals"]]


def _looked_at(agent: Agent, place: Place, server: ModelServer) -> int:
    """Learn from all sessions that lie there; the requests besides the one about our session."""
    tacit(agent, place, "import")
    known = len(server.requests)
    tacit(agent, place, "learn", "--again", "--yes")
    return len(server.requests) - known - 1


def _judged(good: bool, shown: str, why: str) -> Verdict:
    return Verdict(good, shown, "" if good else why)


def _one(found: Answered) -> Verdict:
    return _judged(found.requests == 1, str(found.requests), f"it said: {found.log[-300:]}")


def _quiet(found: Answered) -> Verdict:
    return _judged(not found.fired, "yes" if found.fired else "none", "a hook of the user's ran")


def _lands(found: Answered) -> Verdict:
    shown = ", ".join(found.waiting) or "nothing"
    return _judged(found.waiting == [NAME], shown, f"it said: {found.log[-300:]}")


def _unlearned(found: Answered) -> Verdict:
    more = found.learned_from
    return _judged(not more, "yes" if more else "never", f"{more:+} requests about such sessions")


def _left(found: Answered) -> Verdict:
    return Verdict(None, "yes, marked" if found.left else "none")


ANSWERS: tuple[tuple[str, Callable[[Answered], Verdict]], ...] = (
    ("requests", _one),
    ("bytes", lambda found: Verdict(None, f"{found.bytes:,}")),
    ("tools", lambda found: Verdict(None, ", ".join(found.tools) or "none")),
    ("hooks fired", _quiet),
    ("instructions", lambda found: Verdict(None, "read" if found.saw_instructions else "none")),
    ("waits", _lands),
    ("session left", _left),
    ("learned from", _unlearned),
)
