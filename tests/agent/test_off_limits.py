"""The lists behind the sandboxes, and the sandbox of macOS, as text."""

import asyncio
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.agent import sandbox
from tacit.agent.off_limits import CommandRules, guarded, hidden, is_secret_path, look_through
from tacit.agent.project_survey import is_secret_file
from tacit.agent.sandbox import NoSandbox, Seatbelt, command_environment, run_sandboxed
from tacit.base.errors import Refused
from tacit.base.paths import is_inside


@pytest.fixture
def rules(home: Path) -> CommandRules:
    (home / "t").mkdir()
    (home / ".ssh").mkdir()
    return CommandRules(str(home / "work"), str(home / "t"))


def test_without_a_sandbox_commands_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where bubblewrap is missing, the refusal names it and the way out; a setting lifts it."""
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(Refused, match=r"bubblewrap|sandbox") as refused:
        sandbox.find_sandbox()
    assert 'agent.sandbox = "none"' in refused.value.hint
    assert isinstance(sandbox.find_sandbox(allow_none=True), NoSandbox)


def test_the_profile_for_macos(rules: CommandRules) -> None:
    """Writes are denied, then allowed in the project, then denied where guarded; in that order."""
    lines = Seatbelt().profile(rules, look_through(rules)).splitlines()
    allow = lines.index(f'(allow file-write* (subpath "{rules.project}"))')
    assert lines.index("(deny file-write*)") < allow
    for name in (".git/hooks", ".agents/skills", ".agents/memory", ".claude/skills", ".tacit"):
        assert lines.index(f'(deny file-write* (subpath "{rules.project}/{name}"))') > allow
    assert lines.index(f'(deny file-write-unlink (literal "{rules.project}/.git"))') > allow
    ssh = str(Path(rules.project).parent / ".ssh")
    assert f'(deny file-read* file-write* (subpath "{ssh}"))' in lines
    assert lines[-1] == "(deny network*)"
    open_ = CommandRules(rules.project, rules.temporary, network=True)
    assert "(deny network*)" not in Seatbelt().profile(open_, look_through(open_))


@settings(max_examples=25, deadline=None)
@given(st.text(min_size=1, max_size=40).filter(lambda name: "/" not in name and "\x00" not in name))
def test_no_name_of_a_folder_gets_out_of_its_quotes(name: str) -> None:
    """Every string in the profile ends where it should, whatever the project is called."""
    rules = CommandRules(f"/project/{name}", "/t")
    profile = Seatbelt().profile(rules, look_through(rules))
    depth, inside, at = 0, False, 0
    while at < len(profile):
        sign = profile[at]
        if inside:
            at += sign == "\\"
            inside = sign != '"'
        elif sign == '"':
            inside = True
        else:
            depth += (sign == "(") - (sign == ")")
            assert depth >= 0
        at += 1
    assert not inside
    assert depth == 0


def test_skill_folders_of_folders_in_between_are_guarded(rules: CommandRules) -> None:
    """Started deeper in the project, the skill folders on the way down are guarded too."""
    below = f"{rules.project}/packages/app"
    found = guarded(CommandRules(rules.project, rules.temporary, working_folders=(below,)))
    assert f"{below}/.agents/skills" in found


def test_what_must_be_writable_is_not_hidden(home: Path, rules: CommandRules) -> None:
    """A staged skill inside Tacit's own data can be written: its folder is not hidden whole."""
    staged = home / ".local" / "share" / "tacit" / "stage" / "s"
    staged.mkdir(parents=True)
    found = hidden(CommandRules(rules.project, rules.temporary, (str(staged),)))
    assert not [path for path in found if str(staged).startswith(path)]
    assert str(home / ".local" / "share" / "tacit") in hidden(rules)


def test_without_walls_a_child_that_keeps_the_pipe_does_not_hold_us(rules: CommandRules) -> None:
    """Run bare, a command ends when its shell ends, and its group is killed."""
    made = run_sandboxed("sleep 65.5 & echo out", NoSandbox(), rules, 20)
    done = asyncio.run(made)
    assert done.output == "out\n"
    assert done.seconds < 5


def test_variables_name_the_right_temporary_folder(rules: CommandRules) -> None:
    """TMPDIR is the session's folder by the name that it has inside."""
    assert command_environment(sandbox.Bubblewrap(), rules, {})["TMPDIR"] == "/tmp"
    assert command_environment(NoSandbox(), rules, {"X_KEY": "k"})["TMPDIR"] == rules.temporary
    assert "X_KEY" not in command_environment(NoSandbox(), rules, {"X_KEY": "k"})


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        (".env", True),
        (".ENV", True),
        (".env.production", True),
        ("prod.env", True),
        (".env.example", False),
        ("server.key", True),
        ("id_ed25519", True),
        ("id_ed25519.pub", False),
        ("secrets.yaml", True),
        ("secrets.py", False),
        ("environment.py", False),
        ("keyboard.md", False),
    ],
)
def test_names_of_secrets(name: str, secret: bool) -> None:
    """Which files are taken to hold keys."""
    assert is_secret_file(name) is secret


def test_sockets_are_read_only_on_linux() -> None:
    """Elsewhere there is no list of sockets, and nothing fails."""
    from tacit.agent.off_limits import _sockets

    assert isinstance(_sockets(), list)
    assert sys.platform != "linux" or all(path.startswith("/") for path in _sockets())


@pytest.mark.parametrize(
    ("variable", "file"),
    [
        ("CODEX_HOME", "auth.json"),
        ("CLAUDE_CONFIG_DIR", ".credentials.json"),
        ("CLAUDE_CONFIG_DIR", ".claude.json"),
        ("COPILOT_HOME", "config.json"),
        ("HERMES_HOME", ".env"),
        ("PI_CODING_AGENT_DIR", "auth.json"),
        ("XDG_DATA_HOME", "opencode/auth.json"),
        ("XDG_CONFIG_HOME", "github-copilot/hosts.json"),
    ],
)
def test_keys_of_an_agent_are_hidden_where_its_home_was_moved(
    variable: str, file: str, home: Path, rules: CommandRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that moves an agent's home does not move its keys out of the mask."""
    path = home / "elsewhere" / file
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert not any(is_inside(str(path), place) for place in hidden(rules))
    monkeypatch.setenv(variable, str(home / "elsewhere"))
    assert any(is_inside(str(path), place) for place in hidden(rules))
    assert is_secret_path(str(path), str(home))


def test_keys_of_every_agent_are_hidden_where_they_lie(home: Path, rules: CommandRules) -> None:
    """The files that hold the agents' keys, by the agents' own records."""
    for name in (
        ".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json",
        ".qwen/oauth_creds.json", ".local/share/opencode/auth.json", ".copilot/config.json",
        ".hermes/.env", ".pi/agent/auth.json", ".config/github-copilot",
    ):  # fmt: skip
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
        assert str(home / name) in hidden(rules), name
        assert is_secret_path(str(home / name), str(home))
