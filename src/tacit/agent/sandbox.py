"""Commands run in a sandbox: bubblewrap on Linux, Seatbelt on macOS, else not at all.

Inside, the whole disk can be read but for folders of secrets; only the project and a temporary
folder can be written, and in the project neither skill folders (the gate's) nor what git would
run later (hooks, config). There is no network unless it is allowed. A command cannot outlive its
time, nor its tree of processes the command.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Protocol

import msgspec

from tacit.base import paths
from tacit.base.errors import Refused
from tacit.traces.hosts.places import PLACES

# What a command has no business reading, below the user's home.
SECRET_PLACES = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".kube",
    ".docker", ".netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials",
    ".config/git/credentials", ".password-store", ".local/share/keyrings", ".mozilla",
    ".config/google-chrome", ".config/chromium", ".cargo/credentials", ".cargo/credentials.toml",
    ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json", ".local/share/opencode/auth.json", ".copilot/config.json",
    ".hermes/.env", "Library/Keychains", "Library/Cookies", ".bash_history", ".zsh_history",
)  # fmt: skip
# What would run outside later if it were written inside.
_GUARDED = (".git/hooks", ".git/config", ".git/info", ".githooks", ".husky", ".tacit")
_KEEP = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "HOME",
    "VIRTUAL_ENV",
)


class Rules(msgspec.Struct, frozen=True):
    """What one command may do."""

    project: str
    temporary: str
    """A folder of this session's own; the command sees it as /tmp."""
    writable: tuple[str, ...] = ()
    """More folders that may be written, e.g. a staged skill."""
    read_only_project: bool = False
    network: bool = False
    hidden: tuple[str, ...] = ()
    """More paths to hide."""


class Sandbox(Protocol):
    """Turns a shell command into a program call that holds it in."""

    name: str

    def call(self, command: str, rules: Rules) -> list[str]:
        """The arguments to run `command` with. Raises nothing; starts nothing."""
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

    def __init__(self, program: str = "bwrap") -> None:
        self._program = program

    def call(self, command: str, rules: Rules) -> list[str]:
        words = [
            self._program, "--unshare-all", "--die-with-parent", "--new-session",
            "--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
            "--tmpfs", "/run", "--bind", rules.temporary, "/tmp",  # noqa: S108
        ]  # fmt: skip
        if rules.network:
            words += [
                "--share-net",
                "--ro-bind-try",
                "/run/systemd/resolve",
                "/run/systemd/resolve",
            ]
        bind = "--ro-bind" if rules.read_only_project else "--bind"
        words += [bind, rules.project, rules.project]
        for path in rules.writable:
            words += ["--bind", path, path]
        for path in guarded(rules):
            words += ["--ro-bind", path, path]
        for path in hidden(rules):
            words += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
        return [*words, "--chdir", rules.project, "--", "/bin/sh", "-c", command]


class Seatbelt:
    """A profile for macOS's `sandbox-exec`."""

    name = "seatbelt"

    def __init__(self, program: str = "sandbox-exec") -> None:
        self._program = program

    def call(self, command: str, rules: Rules) -> list[str]:
        return [self._program, "-p", self.profile(rules), "/bin/sh", "-c", command]

    def profile(self, rules: Rules) -> str:
        """Later rules win over earlier ones."""
        own = () if rules.read_only_project else (rules.project,)
        writable = [os.path.realpath(p) for p in (*own, rules.temporary, *rules.writable)]
        lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
        lines += [f"(allow file-write* (subpath {_quoted(path)}))" for path in writable]
        lines.append(
            '(allow file-write* (literal "/dev/null") (literal "/dev/tty") (subpath "/dev/fd"))'
        )
        lines += [f"(deny file-write* (subpath {_quoted(path)}))" for path in guarded(rules)]
        lines += [f"(deny file-read* file-write* (subpath {_quoted(p)}))" for p in hidden(rules)]
        if not rules.network:
            lines.append("(deny network*)")
        return "\n".join(lines)


class NoSandbox:
    """No walls; only where the user's settings say so."""

    name = "none"

    def call(self, command: str, rules: Rules) -> list[str]:
        return ["/bin/sh", "-c", command]


def guarded(rules: Rules) -> list[str]:
    """Paths in writable folders that stay read-only: skill folders, and what git runs by itself."""
    places = [folder for place in PLACES for folder in place.project]
    found = []
    for inside in (*_GUARDED, *places):
        path = os.path.join(rules.project, inside)
        if os.path.lexists(path) and not os.path.islink(path) and path not in rules.writable:
            found.append(path)
    return found


def hidden(rules: Rules) -> list[str]:
    """Paths that a command must not see, by their real place; only what exists."""
    home = paths.user_home()
    own = paths.folders()
    wanted = [os.path.join(home, place) for place in SECRET_PLACES]
    wanted += [own.data, own.config, *rules.hidden]
    wanted += _project_secrets(rules.project)
    real = {os.path.realpath(path) for path in wanted if os.path.exists(path)}
    kept = {os.path.realpath(p) for p in (rules.project, rules.temporary, *rules.writable)}
    # A folder that holds what must be writable cannot be hidden whole.
    return sorted(p for p in real if not any(k == p or k.startswith(p + os.sep) for k in kept))


def _project_secrets(project: str) -> list[str]:
    from tacit.agent.masking import is_secret_file

    try:
        entries = list(os.scandir(project))
    except OSError:
        return []
    files = (entry for entry in entries if entry.is_file(follow_symlinks=False))
    return [entry.path for entry in files if is_secret_file(entry.name)]


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that a command gets: no keys, tokens or sockets."""
    given = os.environ if given is None else given
    kept = {name: given[name] for name in _KEEP if name in given}
    return kept | {"TERM": "dumb", "NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0", "TMPDIR": "/tmp"}  # noqa: S108


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
