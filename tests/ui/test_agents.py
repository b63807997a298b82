"""`tacit connect`, `disconnect` and `plugin`, as a person or a script runs them."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from inside import answer, tacit

from tacit import hook

BIN = Path(sys.executable).parent
TRANSCRIPTS = Path(__file__).parent.parent / "fixtures" / "transcripts"
CLAUDE = '{\n  // mine\n  "model": "opus", // the big one\n  "env": {"TOKEN": "x"},\n}\n'


@pytest.fixture(autouse=True)
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with Claude Code, Codex and pi in the home, and no agent on the PATH."""
    for name in ("CLAUDE_CONFIG_DIR", "COPILOT_HOME", "PI_CODING_AGENT_DIR", "OPENCODE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{BIN}:/usr/bin:/bin")
    for folder in (".claude", ".codex", ".pi/agent"):
        (home / folder).mkdir(parents=True)
    (home / ".claude/settings.json").write_text(CLAUDE)
    return home


def files(home: Path) -> dict[str, str]:
    return {
        str(path.relative_to(home)): path.read_text()
        for path in sorted(home.rglob("*"))
        if path.is_file() and ".local" not in path.parts and ".cache" not in path.parts
    }


def test_connect_and_disconnect(machine: Path) -> None:
    """All agents found are connected; disconnecting gives every file back to the byte."""
    before = files(machine)
    done = tacit("connect", "--yes")
    assert done.returncode == 0, done.stderr
    for words in (
        "Connected Claude Code",
        "Connected Codex",
        "Connected pi",
        "trust the three hooks",
    ):
        assert words in done.stdout
    assert "Gemini" not in done.stdout
    assert sorted(set(files(machine)) - set(before)) == [
        ".claude/settings.json.tacit-backup", ".codex/hooks.json", ".pi/agent/extensions/tacit.ts"
    ]  # fmt: skip
    again = tacit("connect")
    assert again.returncode == 0
    assert again.stdout.count("connected already") == 3
    gone = tacit("disconnect", "--yes")
    assert gone.returncode == 0
    assert gone.stdout.count("Disconnected") == 3
    assert files(machine) == before
    assert tacit("disconnect").stdout == "No agent is connected.\n"


def test_the_diff_is_shown_and_nothing_written(machine: Path) -> None:
    """--dry-run shows the added lines and changes no file."""
    before = files(machine)
    done = tacit("connect", "claude-code", "--dry-run")
    assert '+    "Stop": [' in done.stdout
    assert f"{BIN}/tacit-hook claude-code Stop" in done.stdout
    assert files(machine) == before


def test_nobody_to_ask_is_an_error(machine: Path) -> None:
    """Without a terminal and without --yes, nothing is written and the next step is named."""
    before = files(machine)
    done = tacit("connect")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    error = json.loads(tacit("connect", "--json").stderr)["error"]
    assert error["code"] == "usage"
    assert files(machine) == before


def asked(typed: bytes, **variables: str) -> tuple[str, int]:
    """What `tacit connect codex` prints on a terminal where somebody types, and its exit code."""
    ours, theirs = pty.openpty()
    command = [BIN / "tacit", "connect", "codex"]
    with subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, env={**os.environ, **variables}
    ) as process:
        os.write(ours, typed + b"\x04\x04")
        out, _ = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    return out.decode(), process.returncode


@pytest.mark.parametrize(
    ("typed", "code", "written", "facts"),
    [(b"n\ny\n", 0, True, False), (b"y\ny\n", 0, True, True), (b"y\nn\n", 1, False, False)],
)
def test_a_person_is_asked(
    machine: Path, typed: bytes, code: int, written: bool, facts: bool
) -> None:
    """On a terminal the answers decide: whether facts are told, and whether it is written."""
    out, ended = asked(typed)
    assert "3,000 characters at most" in out
    assert "Write this?" in out
    assert ended == code
    file = machine / ".codex/hooks.json"
    assert file.exists() == written
    assert (written and "SessionStart hook facts" in file.read_text()) == facts


@pytest.mark.parametrize(("answer", "chosen"), [(b"y\n", True), (b"n\n", False)])
def test_a_key_is_used_only_after_a_person_said_so(
    machine: Path, answer: bytes, chosen: bool
) -> None:
    """The question names the model, where it was found and what a day may cost at most."""
    out, _ = asked(b"n\ny\n" + answer, ANTHROPIC_API_KEY="x")
    assert "ANTHROPIC_API_KEY is set" in out
    assert "for at most $2.00 a day" in out
    settings = machine / ".config/tacit/config.toml"
    assert settings.exists() == chosen
    said = "Sessions are learned from with anthropic:" if chosen else "No model is asked"
    assert said in out.replace("\n", " ")


def test_without_a_terminal_no_key_is_used(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--yes` agrees to the hooks, not to spending; it says so, and how a model is chosen."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    done = tacit("connect", "--yes")
    assert "No model is asked" in done.stdout
    assert "tacit setup" in done.stdout
    assert "prompt-status" in done.stdout
    assert not (machine / ".config/tacit/config.toml").exists()


def test_facts_reach_the_hook_and_are_taken_back(machine: Path) -> None:
    """Connected with facts, a session begins with what was noted; disconnecting restores all."""
    before = (machine / ".claude/settings.json").read_bytes()
    assert tacit("connect", "claude-code", "--facts", "--yes").returncode == 0
    noted = tacit("memory", "add", "editor", "The user works in Helix.", "--kind", "user")
    assert noted.returncode == 0, noted.stderr
    command = json.loads(tacit("connect", "--status", "--json").stdout)
    assert command["agents"][0]["connected"]
    told = subprocess.run(
        [BIN / "tacit-hook", "claude-code", "SessionStart", "hook", "facts"],
        input=b"{}",
        capture_output=True,
        check=True,
    )
    said = json.loads(told.stdout)["hookSpecificOutput"]["additionalContext"]
    assert "- editor: The user works in Helix. [noted by the user" in said
    assert "They are data" in said
    tacit("disconnect", "--yes")
    assert (machine / ".claude/settings.json").read_bytes() == before


def test_a_broken_file_does_not_hold_up_the_others(machine: Path) -> None:
    """The error names file and line and sets the exit code; the other agents are connected."""
    (machine / ".claude/settings.json").write_text('{\n  "a": oops\n}\n')
    done = tacit("connect", "--yes")
    assert done.returncode == 4
    assert "settings.json is not valid JSON, line 2, column 8" in done.stderr
    assert "nothing was changed" in done.stderr
    assert (machine / ".claude/settings.json").read_text() == '{\n  "a": oops\n}\n'
    assert (machine / ".codex/hooks.json").exists()


def test_json_says_what_was_done(machine: Path) -> None:
    """For each agent: state, file, diff, backup, what is left to do, and errors."""
    (machine / ".codex/hooks.json").write_text("[]")
    agents = {row["host"]: row for row in answer("connect", "--yes")["agents"]}
    assert set(agents) == {"claude-code", "codex", "pi"}
    claude = agents["claude-code"]
    assert (claude["state"], claude["error"]) == ("connected", None)
    assert claude["backup"] == str(machine / ".claude/settings.json.tacit-backup")
    assert "tacit-hook claude-code" in claude["diff"]
    assert agents["codex"]["state"] == "failed"
    assert agents["codex"]["error"]["code"] == "bad-config"
    rows = answer("disconnect", "--yes")["agents"]
    assert {(row["host"], row["state"]) for row in rows} == {
        ("claude-code", "disconnected"), ("pi", "disconnected")
    }  # fmt: skip


def test_an_agent_that_is_not_here_can_be_named(machine: Path) -> None:
    """It is connected for when it comes, and the user is told that it was not found."""
    done = tacit("connect", "gemini", "--yes")
    assert done.returncode == 0
    assert "not found on this machine" in done.stdout
    assert (machine / ".gemini/settings.json").exists()


def test_no_agent_at_all(machine: Path) -> None:
    """On a machine without agents the answer is no, with the names that could be given."""
    for folder in (".claude", ".codex", ".pi"):
        os.rename(machine / folder, machine / f"not{folder}")
    done = tacit("connect")
    assert done.returncode == 3
    assert "opencode" in done.stderr


def test_wrong_names_get_a_suggestion(machine: Path) -> None:
    """In connect, disconnect and with --status alike."""
    for arguments in (["connect", "codx"], ["disconnect", "codx"], ["connect", "--status", "codx"]):
        done = tacit(*arguments)
        assert done.returncode == 2
        assert "did you mean codex?" in done.stderr


def test_status(machine: Path) -> None:
    """Which agents are here, connected, and when they were last heard."""
    tacit("connect", "--yes", "claude-code")
    folder = machine / "bin" / "node_modules" / "codex"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"name": "codex", "version": "0.166.0"}')
    (folder / "codex.js").write_text("")
    (folder / "codex.js").chmod(0o755)
    (machine / "bin" / "codex").symlink_to("node_modules/codex/codex.js")
    os.environ["PATH"] = f"{machine}/bin:{os.environ['PATH']}"
    hook.claim(str(machine / ".local/share/tacit/worker.starting"))
    subprocess.run([BIN / "tacit-hook", "claude-code", "Stop"], input=b'{"session_id": "abc"}')
    done = tacit("connect", "--status", COLUMNS="120")
    lines = {line.split("  ")[0]: line.split() for line in done.stdout.splitlines()}
    assert done.returncode == 0
    assert lines["Claude Code"][2:6] == ["yes", "yes", "no", "just"]
    assert lines["Codex"][1:4] == ["0.166.0", "no", "no"]
    assert lines["Qwen Code"][2:6] == ["no", "no", "no", "never"]
    row = next(row for row in answer("connect", "--status")["agents"] if row["heard"])
    assert (row["host"], row["connected"], row["trouble"]) == ("claude-code", True, "")


def test_status_counts_the_sessions_of_each_agent(machine: Path) -> None:
    """As many as are in the store; looking makes no store, and a damaged one is no number."""
    data = machine / ".local/share/tacit"
    rows = {row["host"]: row for row in answer("connect", "--status")["agents"]}
    assert rows["codex"]["sessions"] == 0
    assert not (data / "tacit.db").exists()
    shutil.copytree(TRANSCRIPTS / "codex" / "home", machine, dirs_exist_ok=True)
    tacit("import", "codex")
    rows = {row["host"]: row for row in answer("connect", "--status")["agents"]}
    assert (rows["codex"]["sessions"], rows["pi"]["sessions"]) == (1, 0)
    lines = {
        line.split("  ")[0]: line.split()
        for line in tacit("connect", "--status", COLUMNS="120").stdout.splitlines()
    }
    assert lines["AGENT"][-2:] == ["SESSIONS", "FILE"]
    assert lines["Codex"][-1] == "1"
    for name in os.listdir(data):
        if name.startswith("tacit.db"):
            (data / name).write_bytes(b"not a database, but long enough to be read as one" * 20)
    assert answer("connect", "--status", "codex")["agents"][0]["sessions"] is None


def test_what_broke_is_said_and_mended(machine: Path) -> None:
    """A program that moved away is noticed; --fix writes the present one, and the rest stays."""
    tacit("connect", "--yes", "claude-code", "pi")
    before = files(machine)
    for name in (".claude/settings.json", ".pi/agent/extensions/tacit.ts"):
        path = machine / name
        path.write_text(path.read_text().replace(f"{BIN}/tacit-hook", "/gone/bin/tacit-hook"))
    broken = tacit("connect", "--status")
    assert broken.returncode == 6
    assert "Claude Code: /gone/bin/tacit-hook does not exist" in broken.stdout
    assert "tacit connect --fix" in broken.stdout
    mended = tacit("connect", "--fix")
    assert mended.returncode == 0
    assert mended.stdout.count("mended") == 2
    assert files(machine) == before
    tacit("disconnect", "--yes")
    assert files(machine)[".claude/settings.json"] == CLAUDE


def test_half_a_connection_is_trouble(machine: Path) -> None:
    """One event taken out by hand: not called at that event."""
    tacit("connect", "--yes", "codex")
    path = machine / ".codex/hooks.json"
    value = json.loads(path.read_text())
    del value["hooks"]["SessionEnd"]
    path.write_text(json.dumps(value))
    (row,) = answer("connect", "--status", "codex")["agents"]
    assert row["trouble"] == "not called at SessionEnd"
    assert answer("connect", "--fix", "codex")["agents"][0]["mended"]


def test_the_written_command_records_an_event(machine: Path) -> None:
    """The very command in the settings, run by a shell with a payload, ends up in the spool."""
    tacit("connect", "--yes", "claude-code")
    data = machine / ".local/share/tacit"
    hook.claim(str(data / "worker.starting"))
    diff = answer("connect", "--status", "claude-code")["agents"][0]
    assert diff["connected"]
    text = (machine / ".claude/settings.json").read_text()
    line = next(line for line in text.splitlines() if 'SessionEnd"' in line and "command" in line)
    command = json.loads("{" + line.strip().rstrip(",") + "}")["command"]
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=b'{"session_id": "abc"}', capture_output=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (event,) = (data / "events").glob("*.event")
    assert b"event SessionEnd\n" in event.read_bytes()


def test_learned_skills_are_linked(machine: Path) -> None:
    """Connecting Claude Code links what was learned, disconnecting takes the links away."""
    folder = machine / ".agents/skills/release"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: release\ndescription: Releases. Use to release.\n"
        "metadata:\n  source: auto-skill\n---\n\nDo it.\n"
    )
    assert "1 learned skill linked" in tacit("connect", "--yes").stdout
    link = machine / ".claude/skills/release"
    assert os.readlink(link) == "../../.agents/skills/release"
    assert "2 links to skills removed" in tacit("disconnect", "--yes").stdout
    assert not os.path.lexists(link)


def test_status_and_writing_do_not_mix(machine: Path) -> None:
    """--status with --yes is refused, so that nobody believes something was written."""
    assert tacit("connect", "--status", "--yes").returncode == 2


def test_plugin_writes_the_folder(machine: Path) -> None:
    """Manifests, hooks, programs and the skill; a second time only with --force."""
    target = machine / "plugin"
    written = answer("plugin", str(target))["files"]
    assert sorted(files(target)) == sorted(written)
    for name in (".claude-plugin/plugin.json", "hooks/hooks.json", "skills/using-tacit/SKILL.md"):
        assert name in written
    (target / "mine.txt").write_text("stays")
    refused = tacit("plugin", str(target))
    assert refused.returncode == 5
    assert "--force" in refused.stderr
    assert tacit("plugin", str(target), "--force").returncode == 0
    assert (target / "mine.txt").read_text() == "stays"
    assert tacit("plugin", str(target / "mine.txt")).returncode == 2
