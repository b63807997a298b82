"""The prefix of a conversation never changes once it was sent."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from talking import of, say, write_skill

from tacit.agent import agent_events
from tacit.testing import ModelServer, Request, ToolUse, Turns, reply

# Where each format keeps what is said, in order; everything else is the head.
_SAID = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "gemini": "contents",
}


def _parts(request: Request) -> tuple[list[bytes], bytes]:
    """The messages, each as its own bytes, and the bytes of the rest: system, tools, options."""
    whole: dict[str, Any] = json.loads(request.body)
    said = whole.pop(_SAID[request.wire])
    return [json.dumps(m, ensure_ascii=False).encode() for m in said], json.dumps(whole).encode()


def _check(requests: list[Request]) -> None:
    for before, after in pairwise(requests):
        old, head = _parts(before)
        new, same_head = _parts(after)
        assert head == same_head, f"request {after.number} has another head"
        assert new[: len(old)] == old, f"request {after.number} changes what was said"
        assert len(new) > len(old)
        # On the wire, too: up to the end of the last old message not one byte differs.
        until = next(
            n for n, (a, b) in enumerate(zip(before.body, after.body, strict=False)) if a != b
        )
        assert before.body[until : until + 1] == b"]", before.body[until - 40 : until + 40]


def test_thirty_turns_with_slash_calls_news_and_a_resume(open_session, home, wire) -> None:
    """Each of 30 and more requests begins with the bytes of the one before, also after a resume."""
    skills = home / ".agents" / "skills"
    write_skill(skills, "deploy", "# Deploy\n\nTo $ARGUMENTS.")
    write_skill(skills, "review", "# Review")
    script = []
    for number in range(34):
        listing = ToolUse("list_files", {"path": "."})
        loading = ToolUse("run_skill", {"name": "review", "arguments": f"nr {number}"})
        script.append([reply("Let me look.", listing), f"answer {number}", loading][number % 3])
    with ModelServer(Turns(script, then="the end")) as server:
        session = open_session(server, wire)
        say(session, "first", "/deploy staging")
        while len(server.requests) < 15:
            say(session, f"message {len(server.requests)}")
        write_skill(skills, "learned", "# Learned half-way")
        say(session, "what now?", "/learned it")
        session.close()
        session = open_session(server, wire, resuming=session.conversation.session)
        while len(server.requests) < 32:
            say(session, f"message {len(server.requests)}", "/deploy again")
    assert len(server.requests) >= 32
    _check(server.requests)
    told = [t for t in server.requests[-1].user_texts if "learned: Does learned." in t]
    assert len(told) == 1
    assert told[0].startswith("<note>")
    assert told[0].endswith("</note>\n\nwhat now?")


def test_a_new_skill_is_announced_once_and_only_if_the_model_may_call_it(
    open_session, home
) -> None:
    """News stands before the next message, once, and leaves out what is for users only."""
    skills = home / ".agents" / "skills"
    with ModelServer(["a", "b", "c"]) as server:
        session = open_session(server)
        say(session, "one")
        write_skill(skills, "fresh", "# Fresh")
        write_skill(skills, "hidden", "# H", head="disable-model-invocation: true\n")
        say(session, "two", "three")
    texts = server.requests[-1].user_texts
    assert texts[0] == "one"
    assert "- fresh: Does fresh." in texts[1]
    assert "hidden" not in texts[1]
    assert texts[2] == "three"


def test_news_are_the_same_bytes_for_slash_and_message(open_session, home, wire) -> None:
    """With news to tell, `/name rest` still gives what the model's own call gives."""
    skills = home / ".agents" / "skills"
    bodies = []
    for by_slash in (True, False):
        for folder in list(skills.glob("*")) if skills.exists() else []:
            (folder / "SKILL.md").unlink()
            folder.rmdir()
        use = ToolUse("run_skill", {"name": "late", "arguments": "now"}, "skill_1")
        with ModelServer(["hello", "done"] if by_slash else ["hello", use, "done"]) as server:
            session = open_session(server, wire)
            say(session, "hello")
            write_skill(skills, "late", "# Late")
            say(session, "/late now" if by_slash else "now")
        bodies.append(server.requests[-1].body)
    assert b"<note>" in bodies[0]
    assert bodies[0] == bodies[1]


def test_a_changed_active_skill_is_announced_once(open_session, home) -> None:
    """When an active skill changes on disk, the next message says so, and only that one."""
    skills = home / ".agents" / "skills"
    write_skill(skills, "deploy", "# Old")
    with ModelServer(["a", "b", "c"]) as server:
        session = open_session(server)
        say(session, "/deploy")
        write_skill(skills, "deploy", "# New")
        say(session, "two", "three")
    texts = server.requests[-1].user_texts
    assert '"deploy" was changed' in texts[1]
    assert texts[2] == "three"


def test_killed_in_the_middle_and_resumed_the_prefix_holds(open_session, home, project) -> None:
    """kill -9 while the model is stalled; the resumed conversation begins with the same bytes."""
    skills = home / ".agents" / "skills"
    write_skill(skills, "deploy", "# Deploy")
    from tacit.testing import Stall

    answers = iter(["one", "two", reply("never", fault=Stall(3600))])
    with ModelServer(lambda request: next(answers, "after the kill")) as server:
        config = home / ".config" / "tacit"
        config.mkdir(parents=True)
        (config / "config.toml").write_text(
            f'[agent]\nmodel = "openai:mock"\nbase_url = "{server.url}/v1"\n'
        )
        child = subprocess.Popen([sys.executable, "-c", _CHILD], cwd=project)
        server.wait(3, timeout=120)
        child.kill()
        child.wait()
        session = open_session(server, resuming=_only_session(home))
        told = say(session, "are you there?")
    assert of(agent_events.End, told)[0].text == "after the kill"
    assert session.conversation.active.keys() == {"deploy"}
    _check(server.requests[:3])
    _check([server.requests[2], server.requests[3]])
    assert list(server.requests[-1].user_texts) == [
        "to staging",
        "two",
        "three",
        "are you there?",
    ]


_CHILD = """
import asyncio
from tacit.agent.agent_session import Session
from tacit.base import settings

async def main():
    session = Session(settings.load_settings().settings)
    for message in ("/deploy to staging", "two", "three"):
        async for event in session.say(message):
            pass

asyncio.run(main())
"""


def _only_session(home: Path) -> str:
    (path,) = (home / ".local" / "share" / "tacit" / "sessions").glob("*.jsonl")
    return path.stem
