"""`tacit mcp`, asked by the official client in both eras of the protocol."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import hypothesis
import hypothesis.strategies as st
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from tacit.base import config_file, trust
from tacit.changes.gate import Gate
from tacit.learn.skill_runs import runs_of
from tacit.skills.library import Library
from tacit.testing.sample_sessions import called, made, ran, used
from tacit.traces.skill_uses import open_use_tables, reports_of
from tacit.traces.store import Store
from tacit.traces.tool_calls import kind_of, skills_loaded
from tacit.ui.mcp.client_tools import CLIENT_TOOLS, Desk, call_tool
from tacit.ui.mcp.library_server import INSTRUCTIONS, http_app, make_server

PROGRAM = str(Path(sys.executable).with_name("tacit"))
ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])
SKILL = "---\nname: ship-it\ndescription: Ship a release of the shop.\n---\n\n1. Run `make ship`.\n"


@pytest.fixture
def project(home: Path) -> Path:
    folder = home / "work"
    (folder / ".git").mkdir(exist_ok=True)
    skill = home / ".agents" / "skills" / "ship-it"
    (skill / "references").mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    (skill / "references" / "notes.md").write_text("Tag first.\n")
    (skill / "logo.bin").write_bytes(b"\xff\x00")
    hidden = home / ".agents" / "skills" / "by-hand"
    hidden.mkdir()
    (hidden / "SKILL.md").write_text(
        "---\nname: by-hand\ndescription: Only for the user.\n"
        "disable-model-invocation: true\n---\n\nx\n"
    )
    return folder


def ask(project: Path, talk: Callable[[Client], Awaitable[Any]], mode: str = "auto") -> Any:
    async def connected() -> Any:
        info = types.Implementation(name="probe", version="1")
        raised: MCPError | None = None
        async with Client(make_server(str(project)), mode=mode, client_info=info) as client:  # type: ignore[arg-type]
            try:
                return await talk(client)
            except MCPError as error:  # outside, it would be one of a group
                raised = error
        raise raised

    return anyio.run(connected)


def call(project: Path, tool: str, mode: str = "auto", **arguments: Any) -> types.CallToolResult:
    return ask(project, lambda client: client.call_tool(tool, arguments), mode)


def text_of(result: types.CallToolResult) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


class Anything(types.Result):
    model_config = ConfigDict(extra="allow")


def request(project: Path, method: str, mode: str = "auto", **params: Any) -> dict[str, Any]:
    """An answer of the extension, raw."""

    class Ask(types.Request[dict[str, Any], Any]):
        pass

    async def talk(client: Client) -> dict[str, Any]:
        asked = Ask(method=method, params=params)
        return (await client.session.send_request(asked, Anything)).model_dump(by_alias=True)

    return ask(project, talk, mode)


@ERAS
def test_what_a_client_is_told_first(project: Path, mode: str) -> None:
    """Instructions of a few lines, tools with annotations and schemas, the extension."""

    async def talk(client: Client) -> Any:
        return client.instructions, client.server_capabilities, await client.list_tools()

    instructions, capabilities, listed = ask(project, talk, mode)
    assert instructions == INSTRUCTIONS
    assert len(INSTRUCTIONS) < 600
    told = {"io.modelcontextprotocol/skills": {"directoryRead": True}}
    assert capabilities.extensions == (None if mode == "legacy" else told)  # none had any then
    assert capabilities.resources is not None
    tools = {tool.name: tool for tool in listed.tools}
    assert set(tools) == {tool.name for tool in CLIENT_TOOLS}
    for tool in CLIENT_TOOLS:
        shown = tools[tool.name]
        assert shown.annotations.read_only_hint is not tool.writes
        assert shown.input_schema["type"] == shown.output_schema["type"] == "object"
        assert set(shown.input_schema["properties"]) == set(tool.arguments.__struct_fields__)


@ERAS
def test_a_skill_is_found_and_read(project: Path, mode: str) -> None:
    found = call(project, "search_skills", mode, query="ship a release")
    assert found.structured_content["skills"][0]["name"] == "ship-it"
    assert found.structured_content["skills"][0]["uri"] == "skill://ship-it/SKILL.md"
    assert "ship-it" in text_of(found)
    whole = call(project, "read_skill", mode, name="ship-it")
    assert "make ship" in text_of(whole)
    assert "references/notes.md" in text_of(whole)
    notes = call(project, "read_skill", mode, name="ship-it", path="references/notes.md")
    assert notes.structured_content["text"] == "Tag first.\n"


def test_the_same_answers_as_the_command_line(project: Path, tacit: Any) -> None:
    """Both faces call the same search."""
    found = call(project, "search_skills", query="ship a release").structured_content["skills"]
    shown = [hit["skill"]["name"] for hit in tacit.json("search", "ship a release")["results"]]
    assert [s["name"] for s in found] == [name for name in shown if name != "by-hand"]


@pytest.mark.parametrize(
    "path", ["../by-hand/SKILL.md", "/etc/passwd", "link.md", "missing.md", "references"]
)
def test_nothing_outside_a_skill_is_read(project: Path, home: Path, path: str) -> None:
    """Not by dots, not by an absolute path, not by a link in the skill."""
    secret = home / "secret.txt"
    secret.write_text("hidden words")
    (home / ".agents" / "skills" / "ship-it" / "link.md").symlink_to(secret)
    result = call(project, "read_skill", name="ship-it", path=path)
    assert result.is_error
    assert "hidden words" not in text_of(result)
    with pytest.raises(MCPError):
        ask(project, lambda client: client.read_resource(f"skill://ship-it/{path}"))


def test_a_long_skill_is_read_in_parts(project: Path, home: Path) -> None:
    lines = "".join(f"{n}. Step {n} of many.\n" for n in range(4000))
    (home / ".agents" / "skills" / "ship-it" / "SKILL.md").write_text(SKILL + lines)
    read, offset = "", 0
    for _ in range(10):
        part = call(project, "read_skill", name="ship-it", offset=offset).structured_content
        assert len(part["text"]) <= 30_000
        read += part["text"]
        offset = part["more_from"]
        if not offset:
            break
    assert lines in read


def test_what_the_user_keeps_for_themselves_is_not_served(project: Path, home: Path) -> None:
    """A skill for the user only, and those of a project that is not trusted."""
    foreign = project / ".agents" / "skills" / "foreign"
    foreign.mkdir(parents=True)
    (foreign / "SKILL.md").write_text("---\nname: foreign\ndescription: Ship.\n---\n\nObey.\n")
    names = [
        s["name"] for s in call(project, "search_skills", query="ship").structured_content["skills"]
    ]
    assert "foreign" not in names
    assert call(project, "read_skill", name="foreign").is_error
    assert "Obey" not in text_of(call(project, "read_skill", name="foreign"))
    assert call(project, "read_skill", name="by-hand").is_error
    listed = request(project, "skills/list")["skills"]
    assert "skill://ship-it/SKILL.md" in [skill["uri"] for skill in listed]
    assert not {"foreign", "by-hand"} & {skill["frontmatter"]["name"] for skill in listed}
    trust.add(str(project))
    assert not call(project, "read_skill", name="foreign").is_error


def test_a_proposal_waits_and_an_edit_too(project: Path, home: Path) -> None:
    made_ = call(
        project,
        "propose_skill",
        name="stock-take",
        description="Count the stock. Use at the end of a month.",
        content="1. Run `make stock`.",
        reason="it was found out by trying",
    )
    assert not made_.is_error
    assert made_.structured_content["outcome"] == "proposed"
    edit = {"old": "make ship", "new": "make ship-all", "reason": "ship alone is gone"}
    edited = call(project, "propose_edit", name="ship-it", **edit)
    assert edited.structured_content["outcome"] == "proposed"
    waiting = Gate().inbox.waiting()
    assert {p.change.skill for p in waiting} == {"stock-take", "ship-it"}
    assert all(p.change.actor == "agent" for p in waiting)
    assert "proposed by probe over MCP" in waiting[0].change.reason
    assert "make ship`" in (home / ".agents/skills/ship-it/SKILL.md").read_text()


def test_where_the_user_allows_it_a_proposal_lands(project: Path) -> None:
    config_file.set_values({"mcp.land": "true"})
    given = {"description": "Count the stock at the end of a month.", "content": "1. `make stock`"}
    landed = call(project, "propose_skill", name="stock-take", reason="tried", **given)
    assert landed.structured_content["outcome"] == "applied"
    assert Library(project).find("stock-take") is not None
    edit = {"old": "make ship", "new": "make all", "reason": "so"}
    own = call(project, "propose_edit", name="ship-it", **edit)
    assert own.structured_content["outcome"] == "proposed"  # the user wrote that one


def test_a_refusal_says_what_to_do(project: Path) -> None:
    secret = "Use the key " + "ghp_" + "x8Kd02mQzVb7Lr4TnYw9HsPc3FjGa1EuRi5o"
    refused = call(
        project, "propose_skill", name="keys", description="Keys.", content=secret, reason="x"
    )
    assert refused.is_error
    assert refused.structured_content["outcome"] == "refused"
    again = call(
        project, "propose_skill", name="ship-it", description="d.", content="y", reason="x"
    )
    assert again.structured_content["outcome"] == "refused"


def test_facts_are_noted_and_recalled(project: Path) -> None:
    fact = {"name": "package-manager", "fact": "The project uses pnpm.", "kind": "project"}
    noted = call(project, "remember", **fact)
    assert noted.structured_content["outcome"] == "proposed"
    assert call(project, "recall", query="package manager").structured_content["facts"] == []
    config_file.set_values({"memory.use": "false"})
    assert call(project, "recall", query="x").is_error


def test_an_outcome_is_kept(project: Path, tacit: Any) -> None:
    said = {"worked": False, "step": "1", "detail": "make: no rule to make target 'ship'"}
    assert not call(project, "report_outcome", skill="ship-it", **said).is_error
    with open_use_tables() as connection:
        (report,) = reports_of(connection, "ship-it")
    assert (report.worked, report.client) == (False, "probe")
    assert report.said == "1: make: no rule to make target 'ship'"
    assert call(project, "report_outcome", skill="nothing", worked=True).is_error
    (event,) = [e for e in tacit.json("history", "ship-it")["events"] if e["what"] == "reported"]
    assert event["detail"] == "it failed: 1: make: no rule to make target 'ship'"


@pytest.mark.parametrize("prefix", ["mcp__tacit__", "tacit_", "tacit-", "mcp_tacit_", ""])
def test_what_a_host_recorded_of_it_counts(prefix: str) -> None:
    """A skill read over MCP was used, one of its files was not; a reported failure is a step."""
    kind = kind_of(f"{prefix}read_skill")
    assert list(skills_loaded(kind, {"name": "ship-it"})) == ["ship-it"]
    assert list(skills_loaded(kind, {"name": "ship-it", "path": "references/notes.md"})) == []
    report = {"skill": "ship-it", "worked": False, "step": "1"}
    trace = made(["Ship.", used("ship-it"), called(f"{prefix}report_outcome", report)])
    (run,) = runs_of(trace)
    assert [step.error for step in run.steps if step.failed] == ["1"]


@pytest.fixture
def sessions(project: Path, home: Path) -> Path:
    """A session of this project, and a newer one of another."""
    other = home / "other"
    (other / ".git").mkdir(parents=True)
    work = [ran(f"make part-{n}") for n in range(21)]
    with Store.open() as store:
        for number, folder in enumerate((project, other)):
            said = f"Build number {number}."
            store.write(made([said, *work], session=f"s-{number}", project=str(folder)))
    return project


def test_a_review_is_handed_over_of_this_project_alone(sessions: Path) -> None:
    assert call(sessions, "learn_session", session="s-1").is_error
    with Store.open() as store:
        other = store.find("s-1").head.project
    assert not call(Path(other), "learn_session", hand_over=True).is_error
    assert call(sessions, "handoff_next").structured_content["id"] == ""
    queued = call(sessions, "learn_session", hand_over=True).structured_content
    assert queued == {"session": "claude-code:s-0", "waits_for": "you"} | queued
    taken = call(sessions, "handoff_next").structured_content
    assert "Build number 0." in taken["prompt"]
    nothing = json.dumps({"why": "Nothing is worth keeping."})
    assert call(Path(other), "handoff_answer", id=taken["id"], answer=nothing).is_error
    done = call(sessions, "handoff_answer", id=taken["id"], answer=nothing)
    assert not done.is_error
    assert call(sessions, "handoff_answer", id=taken["id"], answer=nothing).is_error


def test_a_session_is_queued_for_the_background(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[bool] = []
    monkeypatch.setattr("tacit.work.presence.wake", lambda: woken.append(True))
    from tacit.learn.ledger import Ledger

    for _ in range(2):  # asked twice, it is done once
        assert not call(sessions, "learn_session").is_error
    with Store.open() as store:
        jobs = Ledger(store.connection).open_jobs()
    assert [job.session.rpartition(":")[2] for job in jobs] == ["s-0"]
    assert woken


@ERAS
def test_the_extension_describes_each_skill(project: Path, mode: str) -> None:
    """Every file with its digest and size; read back they are the same bytes."""
    listed = request(project, "skills/list", mode)
    assert listed["resultType"] == "complete"
    assert listed["cacheScope"] == "private"
    skill = next(s for s in listed["skills"] if s["frontmatter"]["name"] == "ship-it")
    assert skill["frontmatter"]["description"] == "Ship a release of the shop."
    got = request(project, "skills/get", mode, uri="skill://ship-it/SKILL.md")["skill"]
    assert got == skill
    assert len(skill["resources"]) == 3
    for resource in skill["resources"]:
        read = ask(project, lambda c, u=resource["uri"]: c.read_resource(u), mode).contents[0]
        data = (
            read.text.encode()
            if isinstance(read, types.TextResourceContents)
            else __import__("base64").b64decode(read.blob)
        )
        assert resource["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert resource["size"] == len(data)
    folder = request(project, "resources/directory/read", mode, uri="skill://ship-it/")
    assert [r["name"] for r in folder["resources"]] == ["SKILL.md", "logo.bin", "references"]
    for uri in ("skill://nothing/SKILL.md", "file:///etc/passwd", "skill://ship-it/notes.md"):
        with pytest.raises(MCPError) as raised:
            request(project, "skills/get", mode, uri=uri)
        assert raised.value.code == -32602


def test_prompts_are_the_skills_that_a_user_starts(project: Path) -> None:
    async def talk(client: Client) -> Any:
        return await client.list_prompts(), await client.get_prompt("by-hand", {"arguments": "now"})

    listed, got = ask(project, talk)
    assert {"ship-it", "by-hand"} <= {prompt.name for prompt in listed.prompts}
    assert "Arguments: now" in got.messages[0].content.text


def test_lists_come_in_pages(project: Path, home: Path) -> None:
    for number in range(130):
        folder = home / ".agents" / "skills" / f"made-{number:03}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(
            f"---\nname: {folder.name}\ndescription: Made.\n---\n\nx\n"
        )
    first = request(project, "skills/list")
    rest = request(project, "skills/list", cursor=first["nextCursor"])
    names = [s["frontmatter"]["name"] for s in (*first["skills"], *rest["skills"])]
    assert len(names) == len(set(names)) > 130
    assert "nextCursor" not in rest
    for cursor in ("x", "-1", "100000"):
        with pytest.raises(MCPError):
            request(project, "skills/list", cursor=cursor)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@hypothesis.settings(max_examples=60)
@hypothesis.given(
    st.sampled_from([tool for tool in CLIENT_TOOLS if tool.name != "learn_session"]), st.data()
)
def test_no_arguments_break_a_tool(tool: Any, data: st.DataObject) -> None:
    """Whatever a client sends, it gets an answer that names the trouble."""
    names = st.sampled_from([*tool.arguments.__struct_fields__, "more"])
    given = data.draw(st.dictionaries(names, anything, max_size=6))
    answer = call_tool(tool.name, given, Desk("."))
    assert answer.text


def test_over_http_only_with_the_token(project: Path) -> None:
    """No token, a wrong one, another host's name or a page's origin: nothing is answered."""
    app = http_app(str(project), "right")
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    good = {"Authorization": "Bearer right", "Accept": "application/json, text/event-stream"}
    wrong = [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        (good | {"Host": "evil.example:80"}, 421),
        (good | {"Origin": "http://evil.example"}, 403),
        (good, 400),  # let in, and then told that it begins without the handshake
    ]

    async def talk() -> None:
        transport = httpx2.ASGITransport(app=app, client=("nowhere", 1))
        base = "http://127.0.0.1:8765"
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url=base) as client,
        ):
            for headers, status in wrong:
                assert (await client.post("/mcp", json=body, headers=headers)).status_code == status

    anyio.run(talk)


def test_the_program_answers_on_standard_output_alone(project: Path) -> None:
    """Nothing but the protocol is printed, and it goes when the client does."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "probe", "version": "1"}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(
        [PROGRAM, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=project,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write("".join(json.dumps(line) + "\n" for line in lines))
        running.stdin.flush()
        answers = [json.loads(running.stdout.readline()) for _ in range(2)]
        rest, said = running.communicate(timeout=60)
    assert (running.returncode, rest, said) == (0, "", "")
    assert [answer["id"] for answer in answers] == [1, 2]
    assert answers[0]["result"]["serverInfo"]["name"] == "tacit"
