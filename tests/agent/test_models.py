"""Which model is meant, and going on with another one in the same conversation."""

import io
import json
import urllib.error
import urllib.request
from email.message import Message
from typing import Any

import pytest
from talking import WIRES, of, say, write_skill

from tacit.agent import agent_events, models
from tacit.agent.models import ModelChoice, named, resolve
from tacit.base.errors import BadConfig
from tacit.base.setting_sections import AgentSettings
from tacit.testing import ModelServer, Request, Status, ToolUse, Turns, reply

HERE = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("name", "url", "found"),
    [
        ("anthropic:claude-x", "", "anthropic:claude-x"),
        ("claude-x", "", "anthropic:claude-x"),
        ("gemini-x", "", "google:gemini-x"),
        ("gpt-x", "", "openai:gpt-x"),
        ("groq:llama", "", "groq:llama"),
        ("qwen3:8b", HERE, "openai:qwen3:8b"),
        ("qwen3", HERE, "openai:qwen3"),
        ("claude-x", HERE, "openai:claude-x"),
        ("anthropic:claude-x", HERE, "anthropic:claude-x"),
        ("ollama:qwen3:8b", HERE, "ollama:qwen3:8b"),
    ],
)
def test_a_name_in_the_settings(name: str, url: str, found: str) -> None:
    """Without a provider the name tells; at one's own address a tag is a part of the name."""
    choice = resolve(AgentSettings(name, base_url=url))
    assert choice is not None
    assert (choice.name, choice.base_url) == (found, url)


@pytest.mark.parametrize(
    ("settings", "background"),
    [
        (AgentSettings("claude-sonnet-4-5"), "anthropic:claude-haiku-4-5"),
        (AgentSettings("gemini-x"), "google:gemini-2.5-flash"),
        (AgentSettings("google-gla:gemini-x"), "google:gemini-2.5-flash"),
        (AgentSettings("openai-responses:gpt-x"), "openai:gpt-5-mini"),
        (AgentSettings("cohere:command"), "cohere:command"),
        (AgentSettings("qwen3:8b", base_url=HERE), "openai:qwen3:8b"),
        (AgentSettings("claude-x", base_url=HERE), "openai:claude-x"),
        (AgentSettings("anthropic:claude-x", base_url=HERE), "anthropic:claude-x"),
    ],
)
def test_the_background_reads_a_name_as_the_chat_does(
    settings: AgentSettings, background: str
) -> None:
    """The provider and the address are the same; only the size of the model may differ."""
    chat, behind = resolve(settings), resolve(settings, background=True)
    assert chat is not None
    assert behind is not None
    assert behind.name == background
    assert (behind.provider, behind.base_url) == (chat.provider, chat.base_url)


@pytest.mark.parametrize("name", ["qwen3:8b", ""])
def test_a_model_of_a_server_on_this_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a name that no provider has, or with none, the server that offers it is meant."""
    with ModelServer([], models=("qwen3:8b",)) as server:
        url = f"{server.url}/v1"
        monkeypatch.setattr(models, "LOCAL", (("Ollama", HERE), ("vLLM", url)))
        for background in (False, True):
            choice = resolve(AgentSettings(name), background=background)
            if background and not name:  # nobody said that it may be used unasked
                assert choice is None
                continue
            assert choice is not None
            assert (choice.name, choice.base_url) == ("openai:qwen3:8b", url)
        assert named("qwen3:8b").base_url == url
        assert named("groq:llama").base_url == ""


def test_every_wire_format_of_the_table_has_a_client() -> None:
    """What a row says is spoken at an address of one's own can be built."""
    for name in [n for row in models.PROVIDERS if row.wire for n in (row.name, *row.aliases)]:
        assert models.build(ModelChoice(f"{name}:x", HERE)).model_name == "x"


@pytest.mark.parametrize(
    ("text", "name", "url"),
    [
        ("openai:other", "openai:other", HERE),
        ("openai-responses:other", "openai-responses:other", HERE),
        ("other", "openai:other", HERE),
        ("anthropic:claude-x", "anthropic:claude-x", ""),
        ("groq:llama", "groq:llama", ""),
        ("openai:gpt-x  https://api.example/v1", "openai:gpt-x", "https://api.example/v1"),
        ("qwen3:8b http://127.0.0.1:1/v1", "openai:qwen3:8b", "http://127.0.0.1:1/v1"),
    ],
)
def test_another_provider_is_not_at_the_address_of_this_one(text: str, name: str, url: str) -> None:
    """An address is kept for what speaks the same way; one that is given goes before."""
    choice = named(text, ModelChoice("openai:mine", HERE))
    assert (choice.name, choice.base_url) == (name, url)


def test_beside_a_provider_without_an_address() -> None:
    """A bare name is that provider's, unless its beginning says whose it is."""
    beside = ModelChoice("mistral:large")
    assert named("small", beside) == ModelChoice("mistral:small", "", named("x", beside).why)
    assert named("claude-x", beside).name == "anthropic:claude-x"
    back = named("openai:mine", beside, ModelChoice("openai:mine", HERE))
    assert back.base_url == HERE


def test_a_name_that_the_server_offers_is_meant() -> None:
    """`mistral:7b` on one's own server is that model, not the provider of that name."""
    with ModelServer([], models=("mistral:7b",)) as server:
        url = f"{server.url}/v1"
        choice = named("mistral:7b", ModelChoice("openai:mine", url))
        assert (choice.name, choice.base_url) == ("openai:mistral:7b", url)
        assert named("groq:llama", ModelChoice("openai:mine", url)).base_url == ""


def _said(request: Request) -> list[Any]:
    key = {"gemini": "contents", "openai-responses": "input"}.get(request.wire, "messages")
    return list(json.loads(request.body)[key])


def test_one_conversation_through_every_wire_format(open_session, home) -> None:
    """Each provider in turn gets all that was said and done with the others before it."""
    write_skill(home / ".agents" / "skills", "deploy", "# Deploy the thing")
    script = []
    for number in range(5):
        script += [reply("Looking.", ToolUse("list_files", {}, f"c{number}")), f"Answer {number}."]
    with ModelServer(script) as server:
        session = open_session(server, "anthropic")
        say(session, "/deploy it")
        wires = ["gemini", "openai-chat", "openai-responses", "anthropic"]
        for wire in wires:
            provider, path = WIRES[wire]
            session.use_model(f"{provider}:other {server.url}{path}")
            told = say(session, f"now by {wire}")
            assert told[-1].reason == "done", told
    last = [request for request in server.requests if request.turn][-1]
    assert [request.wire for request in server.requests[1::2]] == ["anthropic", *wires]
    assert last.model == "other"
    assert [text for text in last.user_texts if "now by" in text] == [f"now by {w}" for w in wires]
    assert last.mentions("# Deploy the thing")
    for number in range(4):
        assert last.mentions(f"Answer {number}.")
    assert len(last.tool_results) == 6


def test_the_same_provider_gets_the_same_bytes(open_session, wire) -> None:
    """With another model of the provider, all that was said is sent again byte for byte."""
    call = reply("Looking.", ToolUse("list_files", {}))
    with ModelServer([call, "one", "two"]) as server:
        session = open_session(server, wire)
        say(session, "first")
        session.use_model(f"{WIRES[wire][0]}:bigger")
        say(session, "second")
        session.close()
        before, after = server.requests[1:]
        assert (before.model, after.model) == ("mock", "bigger")
        assert _said(after)[: len(_said(before))] == _said(before)
        assert (before.system, before.tools) == (after.system, after.tools)


def test_a_switch_is_kept_in_the_session_and_hinders_no_resume(open_session) -> None:
    """The file says from where on another model answered; resuming sends it all again."""
    with ModelServer(["one", "two", "three"]) as server:
        session = open_session(server)
        say(session, "first")
        session.use_model("bigger")
        say(session, "second")
        session.close()
        session = open_session(server, resuming=session.conversation.session)
        say(session, "third")
    assert server.requests[-1].user_texts == ("first", "second", "third")
    assert [r.model for r in server.requests] == ["mock", "bigger", "mock"]


def test_a_model_that_cannot_be_changes_nothing(open_session) -> None:
    """An unknown provider is refused by name, and the next message goes to the one before."""
    with ModelServer(["one", "two"]) as server:
        session = open_session(server)
        say(session, "first")
        with pytest.raises(BadConfig) as raised:
            session.use_model("nosuch:thing")
        assert "nosuch:thing" in raised.value.message
        say(session, "second")
    assert [request.model for request in server.requests] == ["mock", "mock"]


def test_a_fallback_of_the_same_kind_is_on_the_same_server(open_session) -> None:
    """A second model of one's own server is asked there, and the answer is its answer."""

    def script(request: Request) -> Any:
        return Status(500) if request.model == "mock" else "from the second"

    with ModelServer(script) as server:
        told = say(open_session(server, flags={"retries": 0, "fallback": ("spare",)}), "go")
    assert told[-1].text == "from the second"
    assert [request.model for request in server.requests] == ["mock", "spare"]


def test_a_fallback_that_cannot_be_had_is_told_of(open_session) -> None:
    """A fallback without its key stops nothing while it is not needed."""
    with ModelServer(Turns(["fine"])) as server:
        told = say(open_session(server, flags={"fallback": ("anthropic:claude-x",)}), "go")
    assert told[-1].reason == "done"
    assert "without the fallback anthropic:claude-x" in of(agent_events.Notice, told)[0].text


def test_a_server_that_has_no_list_is_left_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is an answer with a connection too: it is closed, not left to the collector."""
    left = io.BytesIO(b"no such page")

    def refused(request: urllib.request.Request, timeout: float) -> None:
        raise urllib.error.HTTPError(request.full_url, 404, "Not Found", Message(), left)

    monkeypatch.setattr(urllib.request, "urlopen", refused)
    assert models.models_of("http://127.0.0.1:9/v1") == []
    assert left.closed
