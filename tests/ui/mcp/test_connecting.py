"""`tacit connect --mcp`: every agent is told of the server, and gives it back to the byte."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tacit.traces.settings_json import Unfit, apply_splices
from tacit.traces.settings_toml import add_table, remove_table

FILES = {
    "claude-code": (".claude.json", '{\n  "numStartups": 3,\n  "mcpServers": {}\n}\n'),
    "codex": (".codex/config.toml", 'model = "gpt-5" # mine\n\n[tui]\ntheme = "x"'),
    "gemini-cli": (".gemini/settings.json", '{\n  // mine\n  "theme": "dark"\n}\n'),
    "qwen-code": (".qwen/settings.json", '{"mcpServers": {"other": {"command": "x"}}}'),
    "copilot-cli": (".copilot/mcp-config.json", '{"mcpServers": {}}'),
    "opencode": (".config/opencode/opencode.json", '{"model": "a/b"}\n'),
    "hermes": (".hermes/config.yaml", "# mine\nmodel: x\nmcp_servers:\n  other:\n    url: y\n"),
}


@pytest.fixture(autouse=True)
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "OPENCODE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for path, text in FILES.values():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    return home


def snapshot(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and not {".local", ".cache"} & set(path.parts)
    }


def servers(home: Path, host: str) -> dict[str, Any]:
    """The MCP servers that an agent would read."""
    path = home / FILES[host][0]
    text = path.read_text().replace("// mine", "")
    if host == "codex":
        return dict(tomllib.loads(text)["mcp_servers"])
    if host == "hermes":
        return dict(yaml.safe_load(text)["mcp_servers"])
    return dict(json.loads(text)["mcp" if host == "opencode" else "mcpServers"])


@pytest.mark.parametrize("host", FILES)
@pytest.mark.parametrize("also", ["together", "later"])
def test_connected_and_given_back(machine: Path, tacit: Any, host: str, also: str) -> None:
    before = snapshot(machine)
    if also == "later":
        assert tacit("connect", host, "--yes").returncode == 0
    assert tacit("connect", host, "--mcp", "--yes").returncode == 0
    entry = servers(machine, host)["tacit"]
    command = entry["command"]
    words = [*(command if isinstance(command, list) else [command]), *entry.get("args", [])]
    assert words[-1] == "mcp"
    assert Path(words[0]).name == "tacit"
    assert "other" in servers(machine, host) or "other" not in FILES[host][1]
    (status,) = tacit.json("connect", "--status", host)["agents"]
    assert (status["mcp"], status["connected"]) == (True, True)
    assert "connected already" in tacit("connect", host, "--mcp").stdout
    assert tacit("disconnect", host, "--yes").returncode == 0
    assert snapshot(machine) == before


@pytest.mark.parametrize("host", FILES)
def test_the_server_alone_can_be_taken_out(machine: Path, tacit: Any, host: str) -> None:
    assert tacit("connect", host, "--yes").returncode == 0
    hooked = snapshot(machine)
    assert tacit("connect", host, "--mcp", "--yes").returncode == 0
    assert tacit("connect", host, "--no-mcp", "--yes").returncode == 0
    left = snapshot(machine)
    assert {k: v for k, v in left.items() if not k.endswith("backup")} == {
        k: v for k, v in hooked.items() if not k.endswith("backup")
    }
    (status,) = tacit.json("connect", "--status", host)["agents"]
    assert (status["mcp"], status["connected"]) == (False, True)


def test_a_server_of_the_users_with_that_name_stays(machine: Path, tacit: Any) -> None:
    path = machine / ".copilot/mcp-config.json"
    path.write_text('{"mcpServers": {"tacit": {"command": "/opt/mine"}}}')
    done = tacit("connect", "copilot-cli", "--mcp", "--yes")
    assert done.returncode == 5
    assert "that is not Tacit's" in done.stderr
    assert "/opt/mine" in path.read_text()
    assert tacit("disconnect", "--yes").returncode == 0
    assert "/opt/mine" in path.read_text()


ENTRY = {"mcp_servers": {"tacit": {"command": 'C:\\a "b"', "args": ["mcp"]}}}


@pytest.mark.parametrize(
    "text",
    ["", "a = 1", "a = 1\n", "a = 1\r\n", "[mcp_servers.other]\nurl = 'x'\n", "# only a comment"],
)
def test_a_table_is_added_and_taken_out(text: str) -> None:
    after = apply_splices(text, add_table(text, ENTRY))
    assert tomllib.loads(after)["mcp_servers"]["tacit"] == ENTRY["mcp_servers"]["tacit"]
    grown = after + "\n[later]\nb = 2\n"
    assert tomllib.loads(remove_table(grown, ("mcp_servers", "tacit")))["later"] == {"b": 2}
    assert remove_table(after, ("mcp_servers", "tacit")).rstrip() == text.rstrip()


@pytest.mark.parametrize("text", ["mcp_servers = {}\n", "mcp_servers.tacit.command = 'x'\n"])
def test_a_table_that_would_change_the_meaning_is_refused(text: str) -> None:
    with pytest.raises(Unfit):
        add_table(text, ENTRY)
    with pytest.raises((Unfit, KeyError)):
        remove_table(text, ("mcp_servers", "tacit"))
