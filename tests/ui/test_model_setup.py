"""`tacit setup`: finding, testing and keeping a model."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tacit.agent import models
from tacit.base import settings
from tacit.testing import ModelServer, Page
from tacit.ui.cli import model_setup
from tacit.ui.cli.app import run

pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")


@pytest.fixture(autouse=True)
def nothing_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server and no agent program of the machine's own is found."""
    monkeypatch.setattr(models, "LOCAL", ())
    monkeypatch.setenv("PATH", f"/usr/bin{os.pathsep}/bin")


@pytest.fixture
def config(home: Path) -> Path:
    return home / ".config" / "tacit" / "config.toml"


def test_a_model_that_answers_is_kept(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is shown, the choice is written, and the rest of the file stays."""
    config.parent.mkdir(parents=True)
    config.write_text("# mine\n[search]\nlimit = 3\n")
    with ModelServer("ready") as server:
        url = f"{server.url}/v1"
        assert run(["setup", "--base-url", url, "--model", "mock-model"]) == 0
        assert len(server.requests) == 1
        assert server.requests[0].tools == ()
    told = capsys.readouterr().out
    assert "openai:mock-model answered in" in told
    assert "ready" in told
    text = config.read_text()
    assert text.startswith("# mine\n[search]\nlimit = 3\n")
    chosen = settings.load_settings().settings.agent
    assert (chosen.model, chosen.base_url) == ("openai:mock-model", url)


def test_the_server_is_asked_what_it_offers(config: Path) -> None:
    """With an address alone, the first model that is served there is taken."""
    with ModelServer("ready", models=("big-one", "small-one")) as server:
        assert run(["setup", "--base-url", f"{server.url}/v1"]) == 0
    assert settings.load_settings().settings.agent.model == "openai:big-one"


def test_a_failure_writes_nothing(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that fails is not kept; what is wrong and what to do is said."""
    with ModelServer("never", models=("other",), strict=False) as server:
        code = run(["setup", "--base-url", f"{server.url}/v1", "--model", "wrong"])
    assert code == model_setup.MODEL_FAILED
    told = capsys.readouterr().err
    assert "does not exist" in told
    assert "offers: other" in told
    assert not config.exists()


def test_a_server_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing listening is said with the address."""
    assert (
        run(["setup", "--base-url", "http://127.0.0.1:9/v1", "--model", "x"])
        == model_setup.MODEL_FAILED
    )
    assert "is the server running? http://127.0.0.1:9/v1" in capsys.readouterr().err


def test_a_missing_key_is_named(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the provider's key no request is made, and the variable to set is named."""
    assert run(["setup", "--model", "anthropic:claude-sonnet-4-5"]) == model_setup.MODEL_FAILED
    told = capsys.readouterr().err
    assert "ANTHROPIC_API_KEY is not set" in told
    assert "export ANTHROPIC_API_KEY=" in told
    assert not config.exists()


def test_check_writes_nothing(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--check tests what is set, reports in JSON, and leaves the file alone."""
    config.parent.mkdir(parents=True)
    with ModelServer("ready") as server:
        text = f'[agent]\nmodel = "openai:mock-model"\nbase_url = "{server.url}/v1"\n'
        config.write_text(text)
        assert run(["setup", "--check", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["works"], report["answer"], report["written"]) == (True, "ready", "")
    assert config.read_text() == text


def test_no_secret_is_written(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A key in the environment is used, and appears neither in the file nor on the screen."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with ModelServer("ready") as server:
        assert run(["setup", "--base-url", f"{server.url}/v1", "--model", "openai:mock-model"]) == 0
    told = capsys.readouterr()
    assert "very-secret" not in config.read_text() + told.out + told.err


def test_a_model_named_alone_leaves_the_old_address(config: Path) -> None:
    """A provider's model does not inherit the address of another server."""
    config.parent.mkdir(parents=True)
    config.write_text('[agent]\nmodel = "openai:x"\nbase_url = "http://127.0.0.1:9/v1"\n')
    os.environ["OPENAI_API_KEY"] = "k"
    try:
        with ModelServer("ready") as server:
            os.environ["OPENAI_BASE_URL"] = f"{server.url}/v1"
            assert run(["setup", "--model", "openai-chat:mock-model"]) == 0
    finally:
        del os.environ["OPENAI_API_KEY"]
        os.environ.pop("OPENAI_BASE_URL", None)
    assert config.read_text() == '[agent]\nmodel = "openai-chat:mock-model"\n'


def test_what_overrules_is_said(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A variable that overrules what was written is named."""
    monkeypatch.setenv("TACIT_AGENT_MODEL", "openai:other")
    with ModelServer("ready") as server:
        assert run(["setup", "--base-url", f"{server.url}/v1", "--model", "mock-model"]) == 0
    assert "overruled here by TACIT_AGENT_MODEL" in capsys.readouterr().err


def test_nobody_to_ask_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Without flags and without a terminal, it says which flags to give."""
    assert run(["setup"]) == 2
    assert "--model" in capsys.readouterr().err


def test_asking_lists_what_was_found(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A local server is found and offered; Enter takes the first."""
    with ModelServer("ready") as server:
        monkeypatch.setattr(models, "LOCAL", (("Ollama", f"{server.url}/v1"),))
        monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
        monkeypatch.setattr(click.termui, "visible_prompt_func", lambda text: "")
        assert run(["setup"]) == 0
    told = capsys.readouterr().out
    assert "1  openai:mock-model at http://127.0.0.1:" in told
    assert "(Ollama)" in told
    assert settings.load_settings().settings.agent.model == "openai:mock-model"


@pytest.mark.parametrize(
    "url", ["localhost:8080", "ftp://host/v1", "http://", "http://h:no/v1", "x"]
)
def test_a_bad_address_is_named(config: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no address is said to be none, with and without a model."""
    assert run(["setup", "--base-url", url]) != 0
    assert f"'{url}' is not an http address" in capsys.readouterr().err
    assert run(["setup", "--base-url", url, "--model", "x"]) != 0
    assert f"'{url}' is not an http address" in capsys.readouterr().err
    assert not config.exists()


@pytest.mark.parametrize("code", [200, 502])
def test_a_web_page_is_said_to_be_one(
    config: Path, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """An address at which no model listens answers with a page, whose title is shown."""
    with ModelServer(Page(code, "Sign in to WiFi")) as server:
        base = f"{server.url}/v1"
        assert run(["setup", "--base-url", base, "--model", "x"]) == model_setup.MODEL_FAILED
    told = capsys.readouterr().err
    assert "Sign in to WiFi" in told
    assert "<" not in told
    assert ("web page" in told) == (code == 200)
    assert not config.exists()


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts an agent program on the PATH that answers as the real one did, or prints a text."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    printed = Path(__file__).parents[1] / "fixtures" / "programs"

    def put(word: str, *, logged_in: bool = True, says: str = "") -> None:
        file = tmp_path / word
        answer = f"echo '{says}' >&2; exit 1" if says else f"exec cat {printed / word}.out"
        status = f"case $2 in status) exit {int(not logged_in)};; esac"
        file.write_text(f"#!/bin/sh\n{status}\ncat >/dev/null\n{answer}\n")
        file.chmod(0o755)

    return put


def test_a_program_is_kept_for_learning(
    program: Callable[..., None], config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is tried, written as the model that learns, and it is said what a review takes; the chat,
    which needs tools, is left as it is. `--check` finds it again."""
    program("claude")
    assert run(["setup", "--model", "cli:claude"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "cli:claude answered in" in told
    assert "A review is one request" in told
    assert "from the limits of the Claude plan" in told
    assert "It calls no tools, so it reviews sessions and does nothing else" in told
    assert "Sessions are learned from with cli:claude, for at most $2.00 a day" in told
    kept = settings.load_settings().settings
    assert (kept.learn.model, kept.agent.model) == ("cli:claude", "")
    before = config.read_text()
    assert run(["setup", "--check"]) == 0
    assert "cli:claude answered in" in capsys.readouterr().out
    assert config.read_text() == before


def test_a_program_that_is_logged_out_is_not_kept(
    program: Callable[..., None], config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong is said in its words, with what to type."""
    program("codex", says="Not logged in")
    assert run(["setup", "--model", "cli:codex"]) == model_setup.MODEL_FAILED
    told = capsys.readouterr().err
    assert "codex is not logged in: Not logged in" in told
    assert "log in: codex login" in told
    assert not config.exists()


def test_programs_are_offered_but_for_the_doubtful(
    program: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of those installed, the one that is logged in; not the one that is not; and of Gemini's it is
    said why it has to be named by hand, which is said again when it is."""
    program("claude")
    program("codex", logged_in=False)
    program("gemini")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "prompt", lambda *_, **__: 1)
    assert run(["setup"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "1 cli:claude (Claude Code is logged in" in told
    assert "cli:codex" not in told
    assert "cli:gemini is not offered: Google's terms" in told
    assert settings.load_settings().settings.learn.model == "cli:claude"
    assert run(["setup", "--model", "cli:gemini"]) == 0
    assert "Google's terms" in capsys.readouterr().err
    assert settings.load_settings().settings.learn.model == "cli:gemini"


def test_learn_says_which_program_could(
    program: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a model the line names it, and it is not asked: nothing is spent unasked."""
    program("claude", says="it was asked")
    loaded = settings.load_settings().settings
    hint = model_setup.program_hint(loaded)
    assert hint == "Claude Code can learn with its own login: tacit setup --model cli:claude"
    none = settings.load_settings(flags={"learn.model": "none"}).settings
    assert model_setup.program_hint(none) == ""
    from tacit.ui.cli import reviews

    model, why = reviews.reviewer_model(loaded)
    assert model == ""
    assert why == f"no model was chosen for learning; {hint}"
