"""The library over MCP with a real agent, for scripts/test-hosts: it finds, reads and proposes.

`tacit connect --mcp` registers the server with the agent. The agent's model is scripted: it calls
the server's tools by whatever names the agent gives them, after looking for them where the agent
keeps them behind a search.
"""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from host_agents import Agent
from host_checks import Verdict
from host_programs import TERMS, Installed, Place, prepare, run
from host_sessions import BIN, tacit
from tacit.testing import ModelServer, Request
from tacit.testing.script import ReplyLike, ToolUse

PROMPT = "Ship the herd: is there a skill for it?"
SIGN = "VKR17"
SKILL = f"---\nname: ship-herd\ndescription: Ship the herd.\n---\n\nBy the {SIGN} road.\n"
PROPOSED = "count-herd"
_INSTRUCTIONS = "worked out in earlier sessions"
_NAMES = ",".join(f"mcp__tacit__{tool}_skill" for tool in ("search", "read", "propose"))
_SEARCHES = {
    "ToolSearch": {"query": f"select:{_NAMES.replace('search_skill', 'search_skills')}"},
    "tool_search": {"query": "tacit skills search read propose", "limit": 10},
}
"""Tools by which an agent finds those that it does not show at first."""


class Served(msgspec.Struct, frozen=True):
    """What came of it with one agent."""

    instructions: bool
    """Whether the server's instructions stood in a request."""
    found: bool
    read: bool
    proposed: bool
    used: bool
    """Whether the stored session counts the skill as used."""
    left: bool
    """Whether anything was left after disconnecting."""
    log: str


class _Script:
    """The agent's model."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.requests: list[Request] = []
        self.results: list[str] = []

    def __call__(self, request: Request) -> ReplyLike:
        if not request.tool_names:
            return "Shipping"
        self.requests.append(request)
        self.results = [result.text for result in request.tool_results]
        done = len(self.results)
        search = self._find(request, "search_skills")
        if not search and done == 0:
            return self._look(request)
        looked = 0 if self._find(self.requests[0], "search_skills") else 1
        calls = (
            ("search_skills", {"query": "ship the herd"}),
            ("read_skill", {"name": "ship-herd"}),
            (
                "propose_skill",
                {
                    "name": PROPOSED,
                    "description": "Count the herd. Use before it is shipped.",
                    "content": "1. Run `sh tally.sh dusk`.",
                    "reason": "found out by trying",
                },
            ),
        )
        if done - looked >= len(calls):
            return "Shipped."
        tool, arguments = calls[done - looked]
        return ToolUse(self._find(request, tool) or f"mcp__tacit__{tool}", arguments)

    def _find(self, request: Request, tool: str) -> str:
        return next((name for name in sorted(request.tool_names) if name.endswith(tool)), "")

    def _look(self, request: Request) -> ReplyLike:
        tool = next((name for name in _SEARCHES if name in request.tool_names), "")
        return ToolUse(tool, _SEARCHES[tool]) if tool else "There is no such tool."


def serve_library(agent: Agent, installed: Installed, base: Path, timeout: float) -> Served:
    """Have a real agent use the library over MCP."""
    script, home = _Script(agent), base / f"mcp-{agent.name}"
    allowed = (word.replace("Bash Read", "Bash Read mcp__tacit") for word in agent.command)
    agent = msgspec.structs.replace(agent, command=tuple(allowed))
    with ModelServer(script, strict=False, terms=TERMS) as server:
        project = home / "project"
        paths = (*installed.path, BIN)
        place = Place(home=home, project=project, url=server.url, path=paths)
        prepare(agent, place)
        os.makedirs(project / ".git", exist_ok=True)
        skill = home / ".agents" / "skills" / "ship-herd"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL)
        tacit(agent, place, "connect", agent.name, "--mcp", "--yes")
        done = run(agent, installed.program, place, PROMPT, timeout=timeout)
        tacit(agent, place, "import", agent.host.name)
        sessions = msgspec.json.decode(tacit(agent, place, "sessions", "--json"))["sessions"]
        waiting = msgspec.json.decode(tacit(agent, place, "inbox", "--json"))["proposals"]
        tacit(agent, place, "disconnect", agent.name, "--yes")
        status = msgspec.json.decode(tacit(agent, place, "connect", "--status", "--json"))
    row = next(row for row in status["agents"] if row["host"] == agent.host.name)
    return Served(
        instructions=any(request.mentions(_INSTRUCTIONS) for request in script.requests),
        found=any("ship-herd" in text for text in script.results),
        read=any(SIGN in text for text in script.results),
        proposed=any(proposal["change"]["skill"] == PROPOSED for proposal in waiting),
        used=any("ship-herd" in session["skills"] for session in sessions),
        left=row["mcp"],
        log=f"{sorted(script.requests[0].tool_names) if script.requests else []} "
        f"{script.results} {done.log if hasattr(done, 'log') else ''}"[-900:],
    )


def _yes(good: bool, why: str = "") -> Verdict:
    return Verdict(good, "yes" if good else "no", "" if good else why)


MCP: tuple[tuple[str, Callable[[Served], Verdict]], ...] = (
    ("instructions", lambda s: Verdict(None, "yes" if s.instructions else "no")),
    ("found", lambda s: _yes(s.found, s.log)),
    ("read", lambda s: _yes(s.read, s.log)),
    ("proposed", lambda s: _yes(s.proposed, s.log)),
    ("use counted", lambda s: _yes(s.used, s.log)),
    ("nothing left", lambda s: _yes(not s.left)),
)
