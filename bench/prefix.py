"""How much of each request is what the one before sent: Tacit, Qwen Code and Hermes, in one run.

    python bench/prefix.py [--messages 8]

The same conversation for each: every message is a new process or a resumed session, the model
calls the shell once and answers, and half-way a skill appears. A provider caches by prefix, in the
order tools, system prompt, messages; counted are the bytes of each request up to the first that
differs from the request before. The other two are run only where their programs are there already,
in the folder that TACIT_HOSTS_CACHE names.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from host_agents import Agent
from host_programs import Place, default_cache, install, is_there, prepare, run
from tacit.testing import ModelServer, Request, ToolUse, toolless

_SKILL = (
    "---\nname: {name}\ndescription: How to {name} this project.\n---\n\n# {name}\n\nCarefully.\n"
)
_SAID = ("messages", "input", "contents")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=8)
    count = parser.parse_args().messages
    rows = [
        ("Tacit", _measure(lambda server, home: _tacit(server, home, count), ToolUse("list_files")))
    ]
    from host_agents import AGENTS

    found = AGENTS.values() if isinstance(AGENTS, dict) else AGENTS
    for agent in (agent for agent in found if agent.name in ("qwen-code", "hermes")):
        if not is_there(agent, default_cache()):
            print(f"{agent.title}: not installed in {default_cache()}", file=sys.stderr)
            continue
        use = agent.shell.use("echo hello")
        rows.append((agent.title, _measure(lambda s, h, a=agent: _other(a, s, h, count), use)))
    own = rows[0][1]
    print(
        f"{'agent':<12} {'requests':>8} {'bytes':>10} {'reused':>8} {'sent anew':>10} {'ratio':>7}"
    )
    for name, (requests, total, same) in rows:
        anew = total - same
        ratio = anew / max(own[1] - own[2], 1)
        share = same / total if total else 0
        print(f"{name:<12} {requests:>8} {total:>10,} {share:>8.1%} {anew:>10,} {ratio:>7.1f}")
    return 0


def _measure(talk: Callable[[ModelServer, Path], None], use: ToolUse) -> tuple[int, int, int]:
    """Requests after the first, their bytes, and how many of these the one before had too."""

    def script(request: Request) -> Any:
        last = request.messages[-1] if request.messages else None
        answered = last is not None and bool(last.tool_results)
        return "Done." if toolless(request) or answered else use

    with tempfile.TemporaryDirectory() as folder, ModelServer(script) as server:
        talk(server, Path(folder))
    sent = [_ordered(request) for request in server.requests if not toolless(request)]
    same = sum(_common(before, after) for before, after in pairwise(sent))
    return len(sent) - 1, sum(len(request) for request in sent[1:]), same


def _ordered(request: Request) -> bytes:
    """The body as a provider reads it: tools, system prompt, then what was said."""
    whole: dict[str, Any] = json.loads(request.body)
    said = next(whole[key] for key in _SAID if key in whole)
    head = [whole.get("tools"), whole.get("system"), whole.get("instructions")]
    return json.dumps([head, *said], ensure_ascii=False).encode()


def _common(before: bytes, after: bytes) -> int:
    pairs = zip(before, after, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))


def _tacit(server: ModelServer, home: Path, count: int) -> None:
    os.environ |= {"HOME": str(home), "TACIT_HOME": str(home / "tacit")}
    project = home / "project"
    (project / ".git").mkdir(parents=True)
    _write_skill(home / ".agents/skills", "test")
    from tacit.agent.agent_session import Session
    from tacit.base import settings

    flags = {"agent.model": "openai:mock", "agent.base_url": f"{server.url}/v1"}
    chosen = settings.load_settings(str(project), flags).settings
    resuming = ""

    async def say(session: Session, message: str) -> None:
        async for _ in session.say(message):
            pass

    for number in range(count):
        if number == count // 2:
            _write_skill(home / ".agents/skills", "release")
        session = Session(chosen, cwd=str(project), resuming=resuming)
        asyncio.run(say(session, f"Message {number}: have a look."))
        resuming = session.conversation.session
        session.close()


def _other(agent: Agent, server: ModelServer, home: Path, count: int) -> None:
    installed = install(agent, default_cache())
    place = Place(home=home, project=home / "project", url=server.url, path=installed.path)
    prepare(agent, place)
    _write_skill(home / agent.home_skills, "test")
    for number in range(count):
        if number == count // 2:
            _write_skill(home / agent.home_skills, "release")
        done = run(
            agent, installed.program, place, f"Message {number}: have a look.", resume=number > 0
        )
        if not done.ended_well:
            print(f"{agent.title}: {done.code}: {done.stderr[-300:]}", file=sys.stderr)


def _write_skill(folder: Path, name: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(_SKILL.format(name=name))


if __name__ == "__main__":
    raise SystemExit(main())
