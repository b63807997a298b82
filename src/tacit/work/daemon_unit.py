"""The daemon as a service of the system: a systemd user unit, or a launchd agent on macOS.

Writes the unit, puts it where it belongs, and tells the service manager. The daemon itself is
`tacit daemon`. Keys for models come to it from `daemon.env`, since a service manager knows
nothing of the variables of a shell.
"""

import os
import plistlib
import re
import stat
import subprocess
import sys
from typing import Literal

import msgspec

from tacit.base import paths
from tacit.base.atomic_files import write_atomic
from tacit.base.errors import BadConfig, Refused, Unwritable

ServiceManager = Literal["systemd", "launchd"]
LABEL = "dev.tacit.daemon"
_KEPT = ("TACIT_HOME", "TACIT_DATABASE_URL", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")


class Unit(msgspec.Struct, frozen=True):
    """A file for the service manager, and the commands that make it count and not count."""

    manager: ServiceManager = msgspec.field(name="starter")
    path: str
    text: str
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]


def unit(manager: ServiceManager | None = None) -> Unit:
    """The unit for this user and this system."""
    manager = manager or ("launchd" if sys.platform == "darwin" else "systemd")
    command = [sys.executable, "-P", "-m", "tacit", "daemon"]
    kept = {name: os.environ[name] for name in _KEPT if os.environ.get(name)}
    home = paths.user_home()
    if manager == "launchd":
        path = os.path.join(home, "Library", "LaunchAgents", f"{LABEL}.plist")
        domain = f"gui/{os.getuid()}"
        return Unit(
            manager,
            path,
            _plist(command, kept),
            (("launchctl", "bootstrap", domain, path),),
            (("launchctl", "bootout", f"{domain}/{LABEL}"),),
        )
    config = os.environ.get("XDG_CONFIG_HOME", "").strip() or os.path.join(home, ".config")
    path = os.path.join(config, "systemd", "user", "tacit.service")
    user = ("systemctl", "--user")
    return Unit(
        manager,
        path,
        _service(command, kept),
        ((*user, "daemon-reload"), (*user, "enable", "--now", "tacit.service")),
        ((*user, "disable", "--now", "tacit.service"), (*user, "daemon-reload")),
    )


def install(made: Unit) -> str:
    """Write the unit and start it; empty, or why the service manager did not take note of it."""
    write_atomic(made.path, made.text.encode(), mode=0o600)
    return _ask(made.start)


def uninstall(made: Unit) -> str:
    """Stop it and take its file away; empty, or what the service manager said."""
    if not os.path.exists(made.path):
        return ""
    said = _ask(made.stop)
    try:
        os.unlink(made.path)
    except OSError as error:
        raise Unwritable(f"cannot remove {made.path}: {error.strerror}") from error
    return said


def environment_file() -> str:
    return os.path.join(paths.folders().config, "daemon.env")


def read_environment(path: str = "") -> dict[str, str]:
    """The variables in `daemon.env`, `NAME=value` a line. Raises `BadConfig` and `Refused`."""
    path = path or environment_file()
    try:
        with open(path, encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise Refused(f"{path} can be read by others", f"chmod 600 {path}")
            lines = file.read().splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise BadConfig(f"cannot read {path}: {error}", "mend it, or take it away") from error
    found = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise BadConfig(f"line {number} of {path} is not NAME=value", "mend that line")
        value = match[2].strip()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        found[match[1]] = value[1:-1] if quoted else value
    return found


def _service(command: list[str], kept: dict[str, str]) -> str:
    lines = [
        "[Unit]",
        "Description=Tacit: learns skills from the sessions of your agents",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(_quoted(part) for part in command)}",
        *(f"Environment={_quoted(f'{name}={value}', of='%')}" for name, value in kept.items()),
        "Restart=on-failure",
        "RestartSec=30",
        "Nice=10",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    ]
    return "\n".join(lines)


def _quoted(text: str, of: str = "%$") -> str:
    """`text` as systemd reads it back: quoted, with what it would expand doubled."""
    for sign in of:
        text = text.replace(sign, sign * 2)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _plist(command: list[str], kept: dict[str, str]) -> str:
    described = {
        "Label": LABEL,
        "ProgramArguments": command,
        "EnvironmentVariables": kept,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ProcessType": "Background",
        "Nice": 10,
    }
    return plistlib.dumps(described, sort_keys=False).decode()


def _ask(commands: tuple[tuple[str, ...], ...]) -> str:
    for command in commands:
        if not (program := paths.find_program(command[0])):
            return f"there is no {command[0]} here"
        words = [program, *command[1:]]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if done.returncode:
            said = (done.stderr or done.stdout).strip() or f"it ended with {done.returncode}"
            return f"{' '.join(command)}: {said.splitlines()[-1]}"
    return ""
