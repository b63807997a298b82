"""What every connector must do, each on a home of its own, and what is special about some."""

import json
import os
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base.errors import BadConfig, Refused, Usage
from tacit.traces import connection
from tacit.traces.connection import connectors, find_connector
from tacit.traces.connector import (
    BACKUP,
    Connector,
    FileChange,
    Hook,
    find_hook,
    is_ours,
    tells_facts,
    trouble_with,
)
from tacit.traces.settings_json import parse_jsonc

HOOK = Hook(("/opt/tacit/bin/tacit-hook",))
MOVED = Hook(("/home/me/my venv/bin/python", "/home/me/my venv/bin/tacit-hook"))
CONNECTORS = connectors()
HOSTS = list(CONNECTORS)
JSON_HOSTS = ["claude-code", "codex", "gemini", "qwen"]

# What users have in these files, as odd as it gets.
SETTINGS = [
    '{\n  // my model\n  "model": "opus",\n  "env": {"A": "1"}, /* keep */\n}\n',
    "{}",
    "",
    '{"hooks":{"Stop":[],"PreToolUse":[{"matcher":"*","hooks":[]}]},"x":null}',
    '\ufeff{\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t{"hooks": [{"a": 1}]}, // y\r\n\t\t]\r\n}}',
    '{"hooks": null}\n',
    '{\n    "hooks": {\n    }\n}\n',
]
CONFIGS = [
    "model: x\nhooks: {}\n",
    "",
    "# only this",
    "hooks:\n  on_session_end:\n  - command: a\n",
]


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "COPILOT_HOME", "PI_CODING_AGENT_DIR", "OPENCODE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=HOSTS)
def connector(request: pytest.FixtureRequest) -> Connector:
    return CONNECTORS[request.param]


def connect(connector: Connector, hook: Hook = HOOK) -> FileChange:
    (plan,) = connection.plan_connecting([connector], hook)
    if plan.error:
        raise plan.error
    assert plan.change is not None
    connection.connect(plan)
    return plan.change


def disconnect(connector: Connector) -> bool:
    (plan,) = connection.plan_disconnecting([connector])
    if plan.error:
        raise plan.error
    assert plan.change is not None
    return connection.disconnect(plan)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file and folder below, without Tacit's own."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"/"
        for path in sorted(folder.rglob("*"))
        if ".local" not in path.parts
    }


def test_from_nothing_to_connected_and_back(connector: Connector, home: Path) -> None:
    """On a home without the agent, connecting and disconnecting leaves not even a folder."""
    before = snapshot(home)
    connect(connector)
    assert set(connector.calls()) == {*connector.events(), connector.host.hooks.opening}
    assert not disconnect(connector)
    assert connector.calls() == {}
    assert snapshot(home) == before


def test_connecting_twice_is_connecting_once(connector: Connector) -> None:
    """A second time there is nothing to change, and after disconnecting nothing to take out."""
    connect(connector)
    assert connector.connecting(HOOK) is None
    disconnect(connector)
    assert connector.disconnecting() is None


def test_commands_name_program_host_and_event(connector: Connector) -> None:
    """Each call runs the program by its full path, and says who calls and why."""
    connect(connector, MOVED)
    for event, command in connector.calls().items():
        form = connector.host.hooks.form.split() if event not in connector.events() else []
        assert shlex.split(command) == [*MOVED.words, connector.host.name, event, *form]
        assert is_ours(command)


def test_facts_are_told_only_where_the_user_said_so(connector: Connector, home: Path) -> None:
    """Said once it stays through an update, can be taken back, and leaves nothing behind."""
    before = snapshot(home)
    told = []
    for facts in (None, True, None, False):
        hook = Hook((MOVED if facts is None and told else HOOK).words, facts)
        if connector.connecting(hook) is not None:
            connect(connector, hook)
        told.append(tells_facts(connector.host, connector.calls()))
    assert told == [False, True, True, False]
    connect(connector, Hook(HOOK.words, True))
    disconnect(connector)
    assert snapshot(home) == before


def test_a_moved_program_is_replaced(connector: Connector, home: Path) -> None:
    """Connecting again after an update leaves one call an event, and still goes back to nothing."""
    before = snapshot(home)
    connect(connector, HOOK)
    connect(connector, MOVED)
    text = Path(connector.file()).read_text()
    assert "/opt/tacit" not in text
    assert set(connector.calls()) == {*connector.events(), connector.host.hooks.opening}
    disconnect(connector)
    assert snapshot(home) == before


def test_a_file_that_changed_meanwhile_is_not_written(connector: Connector) -> None:
    """What somebody wrote between the diff and the answer is not lost."""
    (plan,) = connection.plan_connecting([connector], HOOK)
    path = Path(connector.file())
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    with pytest.raises(Refused, match="changed meanwhile"):
        connection.connect(plan)
    assert path.read_text() == "{}\n"


def test_variables_that_move_an_agent_are_honoured(
    connector: Connector, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file follows the agent's own variable."""
    moves = (connector.host.settings_home or connector.host.home).moves
    if not moves:
        return
    monkeypatch.setenv(moves[0], str(home / "elsewhere"))
    assert connector.file().startswith(str(home / "elsewhere") + os.sep)


def settings_file(host: str, text: str) -> Path:
    path = Path(CONNECTORS[host].file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


CASES = [(host, text) for host in JSON_HOSTS for text in SETTINGS]
CASES += [("hermes", text) for text in CONFIGS]


@pytest.mark.parametrize(("host", "text"), CASES)
def test_the_users_file_comes_back_to_the_byte(host: str, text: str) -> None:
    """With a backup beside it while connected, and without a trace afterwards."""
    path = settings_file(host, text)
    connect(CONNECTORS[host])
    backup = Path(str(path) + BACKUP)
    assert backup.read_bytes() == text.encode()
    assert not disconnect(CONNECTORS[host])
    assert path.read_bytes() == text.encode()
    assert not backup.exists()


@pytest.mark.parametrize(("host", "text"), CASES)
def test_without_a_record_what_the_file_said_comes_back(host: str, text: str) -> None:
    """When Tacit's memory is lost, or the file was edited since, only ours is taken out."""
    path = settings_file(host, text)
    connect(CONNECTORS[host])
    connection.forget_connection(host)
    disconnect(CONNECTORS[host])
    after = path.read_bytes().decode()
    if host == "hermes":
        assert drop_empty(yaml.safe_load(after)) == drop_empty(yaml.safe_load(text))
    else:
        assert drop_empty(parse_jsonc(after)) == drop_empty(parse_jsonc(text))
        assert ("keep" in after) == ("keep" in text)


def drop_empty(value: Any) -> Any:
    """`value` without what is empty, as nobody can say any more whether it was there."""
    if isinstance(value, dict):
        kept = {key: part for key, v in value.items() if (part := drop_empty(v)) not in (None, [])}
        return kept or None
    return [drop_empty(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("text", ['{"hooks": {"Stop": []}}', '{"hooks": {}}', '{"a": 1}'])
def test_what_was_empty_before_stays_there(text: str) -> None:
    """An empty list or object of the user's is known from the backup, also without a record."""
    path = settings_file("claude-code", text)
    connect(CONNECTORS["claude-code"])
    connection.forget_connection("claude-code")
    disconnect(CONNECTORS["claude-code"])
    assert parse_jsonc(path.read_text()) == parse_jsonc(text)


def test_an_edit_of_the_user_survives_disconnecting() -> None:
    """Settings that were changed while connected stay changed, and the old backup is kept."""
    path = settings_file("claude-code", '{\n  "model": "opus"\n}\n')
    connect(CONNECTORS["claude-code"])
    path.write_text(path.read_text().replace("opus", "haiku"))
    assert disconnect(CONNECTORS["claude-code"])
    assert path.read_text() == '{\n  "model": "haiku"\n}\n'
    assert Path(str(path) + BACKUP).read_text() == '{\n  "model": "opus"\n}\n'


def test_a_hook_that_the_user_put_beside_ours_stays() -> None:
    """In the same group, the same event, or another."""
    path = settings_file("claude-code", "")
    connect(CONNECTORS["claude-code"])
    value = json.loads(path.read_text())
    value["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "say tacit-hooked"})
    value["hooks"]["PreToolUse"] = []
    path.write_text(json.dumps(value))
    disconnect(CONNECTORS["claude-code"])
    assert json.loads(path.read_text()) == {
        "hooks": {
            "Stop": [{"hooks": [{"type": "command", "command": "say tacit-hooked"}]}],
            "PreToolUse": [],
        }
    }


@pytest.mark.parametrize("host", ["pi", "opencode", "copilot"])
def test_a_file_of_ours_that_was_edited_is_kept_aside(host: str) -> None:
    """What the user wrote into it is not thrown away."""
    connector = CONNECTORS[host]
    connect(connector)
    path = Path(connector.file())
    path.write_text(path.read_text() + "\n// mine\n")
    assert disconnect(connector)
    assert not path.exists()
    assert Path(str(path) + BACKUP).read_text().endswith("// mine\n")


@pytest.mark.parametrize("host", ["pi", "opencode", "copilot"])
def test_a_file_of_somebody_else_is_not_overwritten(host: str) -> None:
    """A file in our place without our mark is refused."""
    path = settings_file(host, "something else")
    with pytest.raises(Refused, match="not Tacit's"):
        CONNECTORS[host].connecting(HOOK)
    assert CONNECTORS[host].disconnecting() is None
    assert path.read_text() == "something else"


@pytest.mark.parametrize("host", [*JSON_HOSTS, "hermes"])
@pytest.mark.parametrize("text", ['{"a": 1,, }', "{\n  'a' }: 1\n", "a: [1\nb"])
def test_a_broken_file_is_left_alone(host: str, text: str) -> None:
    """The error names the file and the line; nothing is changed, no backup is made."""
    path = settings_file(host, text)
    (plan,) = connection.plan_connecting([CONNECTORS[host]], HOOK)
    assert isinstance(plan.error, BadConfig)
    assert str(path) in plan.error.message
    assert "line " in plan.error.message
    assert list(path.parent.iterdir()) == [path]
    assert path.read_text() == text
    assert CONNECTORS[host].calls() == {}


@pytest.mark.parametrize("host", JSON_HOSTS)
@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"SessionEnd": "x"}}', "[]"])
def test_settings_of_another_shape_are_left_alone(host: str, text: str) -> None:
    """Hooks that are not where hooks go are not overwritten, and the error says what they are."""
    path = settings_file(host, text)
    with pytest.raises(BadConfig, match="was expected"):
        CONNECTORS[host].connecting(HOOK)
    assert path.read_text() == text


def test_odd_yaml_gives_the_lines_to_add() -> None:
    """Where Hermes' file cannot be edited safely, the user is told what to write."""
    settings_file("hermes", "hooks: {on_session_end: [{command: mine}]}\n")
    with pytest.raises(BadConfig) as caught:
        CONNECTORS["hermes"].connecting(HOOK)
    assert 'command: "/opt/tacit/bin/tacit-hook hermes on_session_end"' not in caught.value.message
    assert "/opt/tacit/bin/tacit-hook hermes on_session_end" in caught.value.hint


def test_hermes_reads_the_shared_skills() -> None:
    """Its configuration names ~/.agents/skills, once, and the user's own entry is left."""
    path = settings_file("hermes", "skills:\n  external_dirs:\n    - ~/.agents/skills\n")
    connect(CONNECTORS["hermes"])
    assert path.read_text().count(".agents/skills") == 1
    connection.forget_connection("hermes")
    disconnect(CONNECTORS["hermes"])
    assert path.read_text() == "skills:\n  external_dirs:\n    - ~/.agents/skills\n"


def test_a_linked_file_stays_a_link(home: Path) -> None:
    """Settings that are kept among dotfiles are edited there, with their mode."""
    dotfiles = home / "dotfiles"
    dotfiles.mkdir()
    real = dotfiles / "claude.json"
    real.write_text("{}\n")
    real.chmod(0o664)
    link = home / ".claude" / "settings.json"
    link.parent.mkdir()
    link.symlink_to("../dotfiles/claude.json")
    connect(CONNECTORS["claude-code"])
    assert link.is_symlink()
    assert "tacit-hook" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o664
    disconnect(CONNECTORS["claude-code"])
    assert link.is_symlink()
    assert real.read_text() == "{}\n"
    assert sorted(path.name for path in dotfiles.iterdir()) == ["claude.json"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o666])
def test_modes_are_kept(mode: int) -> None:
    """A private file stays private, also its backup; an open one stays open."""
    path = settings_file("gemini", "{}")
    path.chmod(mode)
    connect(CONNECTORS["gemini"])
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE(Path(str(path) + BACKUP).stat().st_mode) & ~mode == 0


def test_timeouts_are_in_the_agents_own_unit() -> None:
    """Seconds for Claude Code, Codex and Copilot, milliseconds for Gemini and Qwen."""
    for host in HOSTS:
        connect(CONNECTORS[host])

    def timeout(host: str) -> Any:
        hooks = json.loads(Path(CONNECTORS[host].file()).read_text())["hooks"]
        return next(iter(hooks.values()))[0]["hooks"][0]["timeout"]

    # Codex 0.166.0 printed "clamping SessionEnd hook timeout to 3s" into each session for more.
    assert [timeout(host) for host in JSON_HOSTS] == [5, 3, 5000, 5000]
    copilot = json.loads(Path(CONNECTORS["copilot"].file()).read_text())
    assert copilot["version"] == 1
    assert copilot["hooks"]["agentStop"][0]["timeoutSec"] == 5
    hermes = yaml.safe_load(Path(CONNECTORS["hermes"].file()).read_text())
    assert hermes["hooks"]["on_session_finalize"][0]["timeout"] == 5


def test_records_that_cannot_be_read_count_as_forgotten(home: Path) -> None:
    """A damaged memory does not keep anybody from disconnecting."""
    connect(CONNECTORS["codex"])
    (home / ".local/share/tacit/connected.json").write_text("{broken")
    disconnect(CONNECTORS["codex"])
    assert CONNECTORS["codex"].calls() == {}


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        ("/a/b/tacit-hook claude-code Stop", True),
        ("'/a b/tacit-hook' claude-code Stop", True),
        ("tacit-hook codex", True),
        ("/a/my-tacit-hook codex", False),
        ("echo tacit-hook", False),
        ("/a/tacit-hooks codex", False),
        (None, False),
    ],
)
def test_the_mark_of_our_commands(command: object, ours: bool) -> None:
    """Commands that run the program are ours, those that only look like it are not."""
    assert is_ours(command) == ours


def test_trouble_with_a_command_is_named(tmp_path: Path) -> None:
    """A program that is gone, cannot be run, or lost its interpreter; nothing for a good one."""
    assert trouble_with(find_hook().command("codex", "Stop")) == ""
    gone = str(tmp_path / "tacit-hook")
    assert trouble_with(f"{gone} codex Stop") == f"{gone} does not exist"
    Path(gone).write_text("#!/no/such/python\n")
    assert trouble_with(f"{gone} codex Stop") == f"{gone} cannot be run"
    Path(gone).chmod(0o755)
    assert "/no/such/python, which does not exist" in trouble_with(f"{gone} codex Stop")
    assert trouble_with("'unfinished") != ""


def test_unknown_agents_get_a_suggestion() -> None:
    """A wrong name is told with the nearest, and short names are understood."""
    assert find_connector("claude").host.name == "claude-code"
    with pytest.raises(Usage) as caught:
        find_connector("codx")
    assert caught.value.hint == "did you mean codex?"


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
        min_size=1,
        max_size=2,
    ),
    host=st.sampled_from(HOSTS),
)
def test_any_path_survives_the_way_into_the_file(words: list[str], host: str) -> None:
    """Spaces, quotes, backslashes, other scripts: the agent gets the path as it is."""
    connector = CONNECTORS[host]
    hook = Hook(tuple(f"/{word}/tacit-hook" for word in words))
    try:
        change = connector.connecting(hook)
    except BadConfig:  # a character that the file's format cannot hold
        assert host == "hermes"
        return
    assert change is not None
    assert change.after is not None
    if host in JSON_HOSTS:
        hooks = json.loads(change.after)["hooks"]
        command = hooks[connector.events()[0]][0]["hooks"][0]["command"]
        assert shlex.split(command) == [*hook.words, host, connector.events()[0]]
