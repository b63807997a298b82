"""What the system's starter is given to run the daemon."""

import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.base.errors import BadConfig, Refused
from tacit.work import daemon_unit


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A home with everything in its name that a starter could take for something else."""
    name = str(tmp_path / 'a b%h$HOME"c\\d')
    monkeypatch.setenv("TACIT_HOME", name)
    return name


def test_the_systemd_unit_says_what_is_run(odd: str) -> None:
    """The interpreter that runs now, the daemon, and what moves the data; restarted if it fails."""
    unit = daemon_unit.unit("systemd")
    assert unit.path.endswith("/.config/systemd/user/tacit.service")
    lines = unit.text.splitlines()
    assert f'ExecStart="{sys.executable}" "-P" "-m" "tacit" "daemon"' in lines
    doubled = odd.replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')
    assert f'Environment="TACIT_HOME={doubled}"' in lines
    assert "Restart=on-failure" in lines
    assert unit.start[-1] == ("systemctl", "--user", "enable", "--now", "tacit.service")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_understands_the_unit(odd: str, tmp_path: Path) -> None:
    """`systemd-analyze verify` has nothing to say about it."""
    file = tmp_path / "tacit.service"
    file.write_text(daemon_unit.unit("systemd").text)
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert "tacit.service" not in done.stderr + done.stdout


def test_the_launchd_agent_says_what_is_run(odd: str) -> None:
    """The same for macOS, as a property list that reads back."""
    unit = daemon_unit.unit("launchd")
    assert unit.path.endswith("/Library/LaunchAgents/dev.tacit.daemon.plist")
    read = plistlib.loads(unit.text.encode())
    assert read["ProgramArguments"] == [sys.executable, "-P", "-m", "tacit", "daemon"]
    assert read["EnvironmentVariables"] == {"TACIT_HOME": odd}
    assert read["KeepAlive"] == {"SuccessfulExit": False}


def test_installing_writes_asks_and_is_taken_back(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The starter is called as it should be; what it refuses is said, and the file stays."""
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    program = bin_ / "systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{bin_}:/usr/bin:/bin")
    unit = daemon_unit.unit("systemd")
    assert daemon_unit.install(unit) == ""
    assert Path(unit.path).read_text() == unit.text
    assert Path(unit.path).stat().st_mode & 0o077 == 0
    assert daemon_unit.uninstall(unit) == ""
    assert daemon_unit.uninstall(unit) == ""
    assert not Path(unit.path).exists()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[1] == "--user enable --now tacit.service"
    assert calls[2] == "--user disable --now tacit.service"
    program.write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2; exit 1\n")
    assert "Failed to connect to bus" in daemon_unit.install(unit)


def test_keys_come_from_a_private_file(home: Path) -> None:
    """NAME=value lines; a file that others can read, or that is no such file, is refused."""
    assert daemon_unit.read_environment() == {}
    file = Path(daemon_unit.environment_file())
    file.parent.mkdir(parents=True)
    file.write_text("# keys\nOPENAI_API_KEY=abc=def\nexport B='two words'\n\n")
    file.chmod(0o644)
    with pytest.raises(Refused, match="can be read by others"):
        daemon_unit.read_environment()
    file.chmod(0o600)
    assert daemon_unit.read_environment() == {"OPENAI_API_KEY": "abc=def", "B": "two words"}
    file.write_text("what is this\n")
    with pytest.raises(BadConfig, match="line 1"):
        daemon_unit.read_environment()
