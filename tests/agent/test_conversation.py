"""Sessions survive: kill -9 at any moment, cut files, two programs at once."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from talking import say, write_skill

from tacit.agent import agent_events
from tacit.agent.conversation import Conversation, resume
from tacit.agent.session_tools import Kit
from tacit.base.errors import Busy, NotFound
from tacit.testing import ModelServer, ToolUse, Turns, reply
from tacit.traces.assembler import read_trace
from tacit.traces.host import Source
from tacit.traces.host_registry import get
from tacit.traces.hosts.tacit import latest_session, redact_session_files, session_path

SCRIPT = [
    reply(
        "Looking.",
        ToolUse("list_files", {}, "l1"),
        ToolUse("run_skill", {"name": "review"}, "r1"),
    ),
    "First answer.",
    reply(ToolUse("write_file", {"path": "n", "content": "1"}, "w1")),
    "Second answer.",
]


def _check_valid(conversation: Conversation) -> None:
    """Every call is followed by exactly its results, nothing is doubled, active skills are in."""
    waiting: list[str] = []
    seen: set[str] = set()
    texts = []
    for message in conversation.messages:
        if message.kind == "response":
            assert not waiting, "a response while calls are open"
            waiting = [p.tool_call_id for p in message.parts if p.part_kind == "tool-call"]
            assert not seen & set(waiting), "a call twice"
            seen |= set(waiting)
        else:
            returned = [p.tool_call_id for p in message.parts if p.part_kind == "tool-return"]
            assert returned == waiting
            waiting = []
            texts += [str(p.content) for p in message.parts]
    assert not waiting
    for skill in conversation.active.values():
        assert any(text.startswith(f'<skill name="{skill.name}"') for text in texts), skill.name
    prompts = [text for text in texts if text in ("to staging", "two", "three")]
    assert len(prompts) == len(set(prompts))


@pytest.fixture
def recorded(open_session, home: Path) -> Path:
    """The file of a session with slash calls, model calls, answers."""
    for name in ("deploy", "review"):
        write_skill(home / ".agents" / "skills", name, f"# {name}")
    script = iter([SCRIPT[1], *SCRIPT])
    with ModelServer(lambda request: next(script)) as server:
        session = open_session(server, yes=True)
        say(session, "/deploy to staging", "two", "three")
        session.close()
    return Path(session_path(session.conversation.session))


def test_cut_anywhere_a_session_resumes(recorded: Path) -> None:
    """Whatever byte a kill cut the file at, what is resumed is valid, and stays so when written."""
    whole = recorded.read_bytes()
    chance = random.Random(7)
    ends = [n for n, byte in enumerate(whole) if byte == 10]
    cuts = sorted({*ends, *(end + 1 for end in ends), *chance.sample(range(len(whole)), 60)})
    resumed = 0
    for cut in cuts:
        recorded.write_bytes(whole[:cut])
        try:
            conversation = resume(recorded.stem)
        except NotFound:
            assert b'"instructions"' not in whole[:cut].rpartition(b"\n")[0]
            continue
        _check_valid(conversation)
        conversation.add_user("after the cut")
        conversation.close()
        again = resume(recorded.stem)
        _check_valid(again)
        assert again.messages == conversation.messages
        again.close()
        resumed += 1
    assert resumed > 40


def test_the_trace_of_a_cut_session_tells_nothing_twice(recorded: Path) -> None:
    """Events whose message was cut off are dropped with it: a prompt said again is there once."""
    whole = recorded.read_bytes()
    lines = whole.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if json.loads(line).get("text") == "two")
    recorded.write_bytes(b"".join(lines[: at + 1]))  # the event is there, its message is not
    conversation = resume(recorded.stem)
    conversation.add_user("two")
    conversation.close()
    prompts = [
        turn.prompt for turn in read_trace(get("tacit"), Source("tacit", str(recorded))).turns
    ]
    assert prompts == ["to staging", "two"]


def test_what_is_resumed_is_sent_as_it_was(open_session, recorded: Path) -> None:
    """The messages of a resumed session are, to the byte, those that were sent before."""
    with ModelServer(["hello"]) as server:
        session = open_session(server, resuming=recorded.stem[:15])
        assert session.conversation.active.keys() == {"deploy", "review"}
        say(session, "four")
    texts = server.requests[0].user_texts
    assert texts == ("to staging", "two", "three", "four")


_SECRET = "Vw9-kelp!Rq2"
_USED = agent_events.Usage(1, 1)
_CALL = ToolUse("write_file", {"path": "c", "content": f'db: password="{_SECRET}"'}, "w9")


def test_a_secret_is_worked_with_and_not_kept(open_session, home: Path) -> None:
    """The running chat has what the user gave; no line of its file does, and it resumes."""
    with ModelServer([reply(_CALL), f"I used {_SECRET}."]) as server:
        session = open_session(server, yes=True)
        say(session, f"the password is {_SECRET}, write it into c")
        session.close()
        assert _SECRET in server.requests[-1].user_texts[0]
    file = Path(session_path(session.conversation.session))
    assert "kelp" not in file.read_text()
    asked = []
    for _ in range(2):
        with ModelServer(["fine"]) as server:
            session = open_session(server, resuming=file.stem)
            _check_valid(session.conversation)
            say(session, "go on")
            session.close()
            asked.append(server.requests[0].user_texts)
    assert asked[0] == ("the password is [redacted: password], write it into c", "go on")
    assert asked[1][:2] == asked[0], "from the first resume on the prefix is the same"
    assert "kelp" not in file.read_text()


def test_with_redaction_off_the_file_has_all(open_session, home: Path) -> None:
    """`traces.redact = false` holds for our own files too."""
    conversation = Conversation.new("i", project="/p", model="m", redact=False)
    conversation.add_user(f"the password is {_SECRET}")
    conversation.close()
    assert _SECRET in Path(session_path(conversation.session)).read_text()


def test_arguments_stay_json_and_signed_thoughts_stay_whole_or_go(home: Path) -> None:
    """What a provider checks is either as it was or not there."""
    from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

    arguments = json.dumps({"command": f'mysql -p"{_SECRET}" x', "other": "é"})
    clean = '{"command":  "ls"}'
    told, kept = ThinkingPart("plain", signature="s1"), ToolCallPart("a", clean, "c2")
    parts = [
        ThinkingPart(f"the password is {_SECRET}", signature="s2", provider_name="anthropic"),
        told, TextPart("now"), ToolCallPart("a", arguments, "c1"), kept,
    ]  # fmt: skip
    conversation = Conversation.new("i", project="/p", model="m")
    conversation.add_response(ModelResponse(parts=parts), _USED)
    conversation.add_response(ModelResponse(parts=parts[:1]), _USED)
    conversation.close()
    again = resume(conversation.session)
    again.close()
    first, *_, last = [m.parts for m in again.messages if m.kind == "response"]
    assert first[0] == told
    assert json.loads(first[2].args)["command"] == 'mysql -p"[redacted: password]" x'
    assert first[3] == kept
    assert [part.content for part in last] == ["[redacted: thinking]"]


def test_files_of_before_are_redacted_again(home: Path) -> None:
    """A file that was written under fewer rules loses its secrets; one that is open waits."""
    conversation = Conversation.new("i", project="/p", model="m", redact=False)
    conversation.add_user(f"see {_SECRET}")
    conversation.add_user(f"the password is {_SECRET}")
    file = Path(session_path(conversation.session))
    redact_session_files()
    assert _SECRET in file.read_text()
    conversation.close()
    redact_session_files()
    assert "kelp" not in file.read_text()
    before = file.stat().st_mtime_ns
    redact_session_files()
    assert file.stat().st_mtime_ns == before
    assert len(resume(file.stem).messages) == 2


def test_a_session_is_open_once(open_session, recorded: Path) -> None:
    """A second program that resumes an open session is told so, until the first one ends."""
    first = resume(recorded.stem)
    with pytest.raises(Busy, match="open elsewhere"):
        resume(recorded.stem)
    first.close()
    resume(recorded.stem).close()


def test_the_latest_session_is_the_projects_own(open_session, project: Path) -> None:
    """`--continue` finds the last session in which something was said, in this project only."""
    with pytest.raises(NotFound):
        latest_session(str(project))
    with ModelServer(["hi"] * 2) as server:
        session = open_session(server)
        say(session, "hello")
        session.close()
        open_session(server).close()  # nothing was said in it
        scheduled = open_session(server, kit=Kit(purpose="schedule"))
        say(scheduled, "run what is due")
        scheduled.close()
    assert latest_session(str(project)) == session.conversation.session
    with ModelServer(["hi"] * 2) as server:
        later = open_session(server)
        say(later, "hello")
        later.close()
        again = open_session(server, resuming=session.conversation.session)
        say(again, "are you there?")
        again.close()
    assert latest_session(str(project)) == session.conversation.session  # the last one used
    with pytest.raises(NotFound):
        latest_session("/elsewhere")


_CHILD = """
import asyncio, sys
from tacit.agent.agent_session import Session
from tacit.base import settings

async def main():
    session = Session(settings.load_settings().settings, yes=True)
    print("ready", flush=True)
    for message in ("/deploy to staging", "two", "three"):
        async for event in session.say(message):
            pass

asyncio.run(main())
"""


@pytest.mark.parametrize("moment", [2, 4])
def test_killed_at_some_moment_a_session_goes_on(
    open_session, home: Path, project: Path, moment: int
) -> None:
    """kill -9 shortly after a request; resumed, the conversation is valid and goes on."""
    for name in ("deploy", "review"):
        write_skill(home / ".agents" / "skills", name, f"# {name}")
    replies: Any = Turns([SCRIPT[1], SCRIPT[1], *SCRIPT], then="the end")
    with ModelServer(replies) as server:
        config = home / ".config" / "tacit"
        config.mkdir(parents=True)
        (config / "config.toml").write_text(
            f'[agent]\nmodel = "openai:mock"\nbase_url = "{server.url}/v1"\n'
        )
        child = subprocess.Popen(
            [sys.executable, "-c", _CHILD], cwd=project, stdout=subprocess.PIPE
        )
        server.wait(moment, timeout=120)
        time.sleep(random.Random(moment).uniform(0, 0.02))
        child.kill()
        child.communicate()
        (path,) = (home / ".local" / "share" / "tacit" / "sessions").glob("*.jsonl")
        session = open_session(server, resuming=path.stem)
        _check_valid(session.conversation)
        assert "deploy" in session.conversation.active
        told = say(session, "are you there?")
    assert told[-1].reason == "done"
    _check_valid(session.conversation)
    assert os.path.exists(path)
