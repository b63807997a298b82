"""Commands run in a sandbox: bubblewrap on Linux, Seatbelt on macOS, else not at all.

Inside, the disk can be read but for what `walls.py` hides; only the project and a temporary folder
can be written, and in the project not what is guarded. There is no network unless it is allowed.
A command cannot outlive its time, nor its tree of processes the command: `running.py`.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Protocol

from tacit.agent.walls import Rules, guarded, hidden, pinned
from tacit.base.errors import Refused
from tacit.base.paths import is_inside

__all__ = ["Bubblewrap", "NoSandbox", "Rules", "Sandbox", "Seatbelt", "environment", "find"]

_KEEP = (
    "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL", "HOME", "VIRTUAL_ENV",
)  # fmt: skip
_TMP = "/tmp"  # noqa: S108 - inside, it is a folder of the session's own
# The kernel's own. Root is their owner and needs no capability to write them.
_SWITCHES = tuple(
    f"/proc/{name}"
    for name in (
        "sys",
        "sysrq-trigger",
        "irq",
        "bus",
        "fs",
        "acpi",
        "scsi",
        "mtrr",
        "latency_stats",
    )
)
# Processes of one command, where the system counts them by namespace.
_SHELL = ("/bin/sh", "-c", 'ulimit -u 4096 2>/dev/null; exec /bin/sh -c "$0"')


class Sandbox(Protocol):
    """Turns a shell command into a program call that holds it in."""

    name: str
    is_namespace: bool
    """Whether its processes end with the first of them, and it tells which that is."""

    def call(self, command: str, rules: Rules, told: int) -> list[str]:
        """The arguments to run `command` with. Raises nothing; starts nothing.

        A namespace writes JSON with `child-pid`, its first process, to the descriptor `told`.
        """
        ...


def find(allow_none: bool = False) -> Sandbox:
    """The sandbox of this machine. Raises `Refused` where there is none, unless that is allowed."""
    if sys.platform == "linux" and (program := shutil.which("bwrap")):
        return Bubblewrap(program)
    if sys.platform == "darwin" and (program := shutil.which("sandbox-exec")):
        return Seatbelt(program)
    if allow_none:
        return NoSandbox()
    what = "bubblewrap (apt install bubblewrap)" if sys.platform == "linux" else "a sandbox"
    raise Refused(
        f"commands run only in a sandbox, and there is none here: {what} is missing",
        'install it, or set agent.sandbox = "none" to run commands bare',
    )


class Bubblewrap:
    """Namespaces of its own, by the `bwrap` program."""

    name = "bubblewrap"
    is_namespace = True

    def __init__(self, program: str = "bwrap") -> None:
        self._program = program

    def call(self, command: str, rules: Rules, told: int) -> list[str]:
        words = [
            self._program, "--info-fd", str(told), "--unshare-all", "--die-with-parent",
            "--new-session", "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev",
            "--proc", "/proc", "--tmpfs", "/run", "--bind", rules.temporary, _TMP,
        ]  # fmt: skip
        for switches in _SWITCHES:
            if os.path.exists(switches):
                words += ["--ro-bind", switches, switches]
        if rules.network:
            resolver = "/run/systemd/resolve"
            words += ["--share-net", "--ro-bind-try", resolver, resolver]
        bind = "--ro-bind" if rules.read_only_project else "--bind"
        words += [bind, rules.project, rules.project]
        for path in rules.writable:
            words += ["--bind", path, path]
        if not rules.read_only_project:
            words += _guards(rules)
        shown = (rules.project, *rules.writable)
        for path in hidden(rules):
            if is_inside(path, _TMP) and not any(is_inside(path, s) for s in shown):
                continue  # not there inside: /tmp is another folder
            if is_inside(path, "/run"):
                continue
            words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
        return [*words, "--chdir", rules.project, "--", *_SHELL, command]


def _guards(rules: Rules) -> list[str]:
    """Mounts over what stays as it is. A mount cannot be renamed away, nor the folders above it."""
    words: list[str] = []
    done: set[str] = set()
    for path in guarded(rules):
        for above in pinned(path, rules.project):
            if os.path.isdir(above) and above not in done:
                words += ["--bind", above, above]
                done.add(above)
        if os.path.exists(path):
            words += ["--ro-bind", path, path]
    return words


class Seatbelt:
    """A profile for macOS's `sandbox-exec`."""

    name = "seatbelt"
    is_namespace = False

    def __init__(self, program: str = "sandbox-exec") -> None:
        self._program = program

    def call(self, command: str, rules: Rules, told: int) -> list[str]:
        return [self._program, "-p", self.profile(rules), "/bin/sh", "-c", command]

    def profile(self, rules: Rules) -> str:
        """Later rules win over earlier ones."""
        own = () if rules.read_only_project else (rules.project,)
        writable = [os.path.realpath(p) for p in (*own, rules.temporary, *rules.writable)]
        lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
        lines += [f"(allow file-write* (subpath {_quoted(path)}))" for path in writable]
        devices = ("null", "zero", "tty", "dtracehelper")
        literals = " ".join(f'(literal "/dev/{name}")' for name in devices)
        lines.append(f'(allow file-write* {literals} (subpath "/dev/fd"))')
        for path in guarded(rules):
            lines.append(f"(deny file-write* (subpath {_quoted(path)}))")
            # Renaming a folder above would put a new one in its place.
            lines += [
                f"(deny file-write-unlink (literal {_quoted(above)}))"
                for above in pinned(path, rules.project)
            ]
        lines += [f"(deny file-read* file-write* (subpath {_quoted(p)}))" for p in hidden(rules)]
        # What asks a program outside to act in its place.
        lines.append("(deny appleevent-send)")
        outside = ("/usr/bin/open", "/usr/bin/osascript", "/bin/launchctl")
        lines += [f"(deny process-exec (literal {_quoted(path)}))" for path in outside]
        if not rules.network:
            lines.append("(deny network*)")
        return "\n".join(lines)


class NoSandbox:
    """No walls; only where the user's settings say so."""

    name = "none"
    is_namespace = False

    def call(self, command: str, rules: Rules, told: int) -> list[str]:
        return ["/bin/sh", "-c", command]


def environment(sandbox: Sandbox, rules: Rules, given: Mapping[str, str]) -> dict[str, str]:
    """The variables that a command gets: no keys, tokens or sockets."""
    temporary = _TMP if sandbox.name == "bubblewrap" else rules.temporary
    kept = {name: given[name] for name in _KEEP if name in given}
    return kept | {
        "TERM": "dumb",
        "NO_COLOR": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "TMPDIR": temporary,
        "XDG_CACHE_HOME": os.path.join(temporary, ".cache"),
    }


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
