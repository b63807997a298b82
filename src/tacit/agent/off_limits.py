"""What is off limits to the agent and its commands, to read or to change.

Hidden are folders and files of keys and credentials, Tacit's own data and other programs' sockets.
Guarded, that is read-only inside a writable project, are the folders of skills and of facts, which
belong to the gate, and whatever git and similar programs would later run by themselves. The tools
for files refuse these paths; `sandbox.py` enforces them for commands.
"""

import os
import pwd
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import lru_cache
from itertools import islice

import msgspec

from tacit.base import paths
from tacit.base.paths import is_inside
from tacit.skills.fact import MEMORY_FOLDER
from tacit.traces.host_folders import host_folders

# Below a home: what neither a tool nor a command has any business reading; the agents' own files
# of keys come on top.
SECRET_PLACES = (
    ".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".kube",
    ".docker", ".netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials",
    ".config/git/credentials", ".password-store", ".local/share/keyrings", ".mozilla",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".thunderbird",
    ".cargo/credentials", ".cargo/credentials.toml", ".terraform.d",
    ".config/rclone", ".vault-token",
    "Library/Keychains",
    "Library/Cookies", "Library/Application Support/Google", ".bash_history", ".zsh_history",
    ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
)  # fmt: skip
_NAMES = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore",
    "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass",
    ".htpasswd", ".npmrc", ".pypirc", "credentials", "credentials.json", "credentials.toml",
    "credentials.y*ml", "secrets.json", "secrets.toml", "secrets.y*ml", "service-account*.json",
    "*.tfvars", "*.tfstate", ".git-credentials", "auth.json", "oauth_creds.json", "kubeconfig",
    ".vault-token", "*.ppk", "*.asc.key",
)  # fmt: skip
# Made to be shown.
_HARMLESS = re.compile(
    r"(?i)(^|[._-])(example|sample|template|tmpl|dist|defaults?|test|ci)$|\.pub$"
    r"|\.(example|sample|template)\.[a-z]+$"
)


def is_secret_file(name: str) -> bool:
    """Whether a file of this name is likely to hold secrets."""
    base = os.path.basename(name).lower()
    if _HARMLESS.search(base):
        return False
    return any(fnmatch(base, pattern) for pattern in _NAMES)


def is_secret_path(path: str, home: str) -> bool:
    """Whether `path` is such a file, or lies in a folder of secrets; links are followed."""
    real = os.path.realpath(path)
    if any(is_inside(real, place) for place in _real_secrets(home, _moved())):
        return True
    return is_secret_file(real) or is_secret_file(path)


def _secrets_of(home: str) -> tuple[str, ...]:
    """What is secret for the user whose home is `home`, also where a variable moved it."""
    own = [path for host in host_folders() for path in host.secret_files(home)]
    return (*(os.path.join(home, place) for place in SECRET_PLACES), *own)


def _moved() -> tuple[str, ...]:
    """What the variables say that `_secrets_of` hangs on."""
    return tuple(file.moved() for host in host_folders() for file in host.secrets)


@lru_cache(maxsize=16)
def _real_secrets(home: str, moved: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(os.path.realpath(place) for place in _secrets_of(home))


# What would run outside later if it were written inside.
_GIT = (
    "hooks", "config", "config.worktree", "info", "modules", "worktrees", "commondir", "gitdir",
)  # fmt: skip
_OTHERS = (".githooks", ".husky", ".tacit", MEMORY_FOLDER)
# Readable by root, and nobody's business.
_SYSTEM = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/krb5.keytab", "/etc/wireguard",
    "/etc/NetworkManager/system-connections",
)  # fmt: skip
# Folders of a project that hold nobody's own work.
_PASSED_OVER = {
    ".git", ".hg", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache", ".tox",
}  # fmt: skip
_MOST_LOOKED_AT = 20_000
_MOST_HIDDEN = 500
_LISTENING = 0x10000
"""The flag of a listening socket in /proc/net/unix."""


class CommandRules(msgspec.Struct, frozen=True):
    """What one command may do. Paths are real ones."""

    project: str
    temporary: str
    """A folder of this session's own; the command sees it as /tmp."""
    writable: tuple[str, ...] = ()
    """More folders that may be written, e.g. a staged skill."""
    read_only_project: bool = False
    network: bool = False
    show_secrets: bool = False
    """Whether files of keys in the project can be read."""
    working_folders: tuple[str, ...] = ()
    """Folders of the project whose skill folders count too: those down to where the user is."""
    hide: tuple[str, ...] = ()
    """More that it must not see."""


def guarded(rules: CommandRules) -> list[str]:
    """Paths in the project that stay as they are, by their real place, there or not."""
    names = [f".git/{name}" for name in _GIT] + list(_OTHERS)
    wanted = [os.path.join(rules.project, name) for name in names]
    for base in dict.fromkeys((rules.project, *rules.working_folders)):
        wanted += [os.path.join(base, name) for host in host_folders() for name in host.project]
    real = dict.fromkeys(os.path.realpath(path) for path in wanted)
    open_to = {os.path.realpath(path) for path in rules.writable}
    return [path for path in real if is_inside(path, rules.project) and path not in open_to]


def is_guarded(path: str, rules: CommandRules) -> bool:
    """Whether the real `path` is, or lies in, what stays as it is; without regard to case."""
    folded = path.casefold()
    return any(is_inside(folded, guard.casefold()) for guard in guarded(rules))


def parents_of(path: str, project: str) -> list[str]:
    """The folders between `project` and `path`: renamed, one could be replaced by a new one."""
    found = []
    here = os.path.dirname(path)
    while here != project and is_inside(here, project):
        found.append(here)
        here = os.path.dirname(here)
    return found[::-1]


def hidden(rules: CommandRules) -> list[str]:
    """Paths that a command must not see, by their real place; only what exists."""
    own = paths.folders()
    wanted = [path for home in _homes() for path in _secrets_of(home)]
    wanted += [own.data, own.config, own.cache, *_SYSTEM, *_sockets(), *rules.hide]
    if not rules.show_secrets:
        wanted += _secrets_in(rules.project)
    real = {os.path.realpath(path) for path in wanted if os.path.exists(path)}
    kept = [os.path.realpath(p) for p in (rules.project, rules.temporary, *rules.writable)]
    # A folder that holds what must be seen cannot be hidden whole.
    seen = {path for path in real if not any(is_inside(k, path) for k in kept)}
    return sorted(path for path in seen if not any(is_inside(path, o) for o in seen - {path}))


def _homes() -> set[str]:
    """The user's home; for root, everybody's, because nothing else keeps root out."""
    homes = {paths.user_home()}
    try:
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
        if os.geteuid() == 0:
            homes |= {entry.pw_dir for entry in pwd.getpwall() if entry.pw_dir.count(os.sep) > 0}
    except (KeyError, OSError):
        pass
    return {home for home in homes if os.path.isdir(home) and home != os.sep}


def _sockets() -> list[str]:
    """Where programs listen on this machine. A read-only disk does not keep anyone from calling."""
    found = []
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
            rows = file.read().splitlines()[1:]
    except OSError:
        return []
    for row in rows:
        words = row.split(None, 7)
        if len(words) == 8 and words[7].startswith(os.sep) and int(words[3], 16) & _LISTENING:
            found.append(words[7])
    return found[:_MOST_HIDDEN]


def _secrets_in(project: str) -> list[str]:
    """Files of keys in the project, as deep as a look of reasonable length goes."""
    names = filter(is_secret_file, walk_files(project, _MOST_LOOKED_AT))
    return [os.path.join(project, name) for name in islice(names, _MOST_HIDDEN)]


def walk_files(root: str, most: int) -> Iterator[str]:
    """The files below `root`, relative to it, until `most` were seen; see `_PASSED_OVER`."""
    seen = 0
    for here, folders, names in os.walk(root):
        folders[:] = sorted(folder for folder in folders if folder not in _PASSED_OVER)
        below = here[len(root) :].lstrip(os.sep)
        yield from (os.path.join(below, name) for name in sorted(names))
        seen += len(names)
        if seen > most:
            return
