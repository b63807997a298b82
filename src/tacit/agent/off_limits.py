"""What is off limits to the agent and its commands, to read or to change.

Hidden are folders and files of keys and credentials, Tacit's own data and other programs' sockets.
Guarded, that is read-only inside a writable project, are the folders of skills and of facts, which
belong to the gate, and whatever git and similar programs would later run by themselves. The tools
for files refuse these paths; `sandbox.py` enforces them for commands.
"""

import os
import pwd
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec

from tacit.agent.project_survey import (
    GIT_PARTS,
    PASSED_OVER,
    Survey,
    git_folders,
    is_obeyed,
    is_of_repository,
    is_secret_file,
    named_files,
    repository_folders,
    survey,
)
from tacit.base import paths
from tacit.base.errors import Refused
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
    ".config/rclone", ".vault-token", ".config/sops", ".databrickscfg", ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens", ".huggingface", ".config/containers", ".config/doctl",
    ".config/heroku", ".config/op", ".config/hcloud", ".config/stripe", ".config/flyctl", ".fly",
    ".config/configstore", ".config/wrangler", ".wrangler", ".snowflake", ".dbt", ".kaggle",
    ".oci", ".boto", ".s3cfg", ".gem/credentials", ".m2/settings.xml", ".m2/settings-security.xml",
    ".gradle/gradle.properties", ".nuget/NuGet", ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/age", ".age", ".config/Bitwarden CLI", ".config/Slack", ".config/discord",
    ".electrum", ".bitcoin", ".ethereum", ".config/filezilla", ".config/evolution",
    "Library/Keychains",
    "Library/Cookies", "Library/Application Support/Google", ".bash_history", ".zsh_history",
    ".python_history", ".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history",
    ".rediscli_history", ".dbshell", ".irb_history", ".lesshst", ".viminfo",
    ".local/share/fish", ".local/state/bash", ".local/share/nvim/shada", ".zsh_sessions",
    ".local/share/uv/credentials", ".stack/upload", ".pulumi/credentials.json",
    ".config/pnpm/auth.ini", ".railway/config.json", ".foundry/keystores", ".orbstack/ssh",
    ".lmstudio/conversations",
    ".claude/history.jsonl", ".codex/history.jsonl", ".openhands/conversations", ".cursor/projects",
)  # fmt: skip


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


_OTHERS = (".githooks", ".husky", ".tacit", MEMORY_FOLDER)
# Readable by root, and nobody's business.
_SYSTEM = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/krb5.keytab", "/etc/wireguard",
    "/etc/NetworkManager/system-connections", "/etc/letsencrypt", "/etc/kubernetes", "/etc/rancher",
    "/etc/openvpn", "/etc/ppp", "/etc/netplan", "/etc/ipsec.secrets", "/etc/mysql/debian.cnf",
)  # fmt: skip
_MOST_MOUNTS = 2_500
"""Paths that can be hidden or guarded; the sandbox takes no more, and less would be a hole."""
_LISTENING = 0x10000
"""The flag of a listening socket in /proc/net/unix."""


class CommandLimits(msgspec.Struct, frozen=True):
    """What one command may use up, with all that it starts; 0 is no limit."""

    memory: int = 0
    """Megabytes."""
    disk: int = 0
    """Megabytes that it may write."""
    processes: int = 0


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
    show: tuple[str, ...] = ()
    """More that it may see of folders that are hidden otherwise."""
    skills: tuple[str, ...] = ()
    """More folders of skills, as the user's settings name them."""
    allow_write: tuple[str, ...] = ()
    """Files of the project that other programs obey and that it may write all the same."""
    limits: CommandLimits = CommandLimits()


class Guards(msgspec.Struct, frozen=True):
    """What stays as it is in a project, by its real place; only what lies in the project."""

    found: Survey
    """What the look through the project found."""
    names: list[str]
    """What is firm by the names that lead to it, be they links."""
    firm: list[str]
    """There or not: the skills, facts and settings of ours, and what git would run."""
    loose: list[str]
    """There, at any depth: what others obey, and the git directories below the top."""
    hidden: list[str]
    """What a command must not see, in the project and elsewhere."""


def look_through(rules: CommandRules) -> Guards:
    """What is off limits to a command now. Raises `Refused` where that cannot be held to."""
    found = survey(rules.project, rules.working_folders)
    if rules.project in found.closed:
        raise Refused(
            f"{rules.project} cannot be looked through for what commands must not see: its"
            " permissions do not let you in",
            f"give yourself the right: chmod u+rwx {shlex.quote(rules.project)}",
        )
    firm = guarded(rules, found.repositories)
    loose = [p for p in (*found.obeyed, *_own_program()) if not _is_allowed(p, rules)]
    for place in found.repositories:
        loose += [place] if not os.path.isdir(place) else []
        loose += [f"{folder}/{part}" for folder in repository_folders(place) for part in GIT_PARTS]
    real = dict.fromkeys(os.path.realpath(path) for path in loose if os.path.lexists(path))
    kept = [p for p in real if is_inside(p, rules.project) and os.path.exists(p)]
    kept = outermost(path for path in kept if not any(is_inside(path, guard) for guard in firm))
    covered = hidden(rules, (*(() if rules.show_secrets else found.keys), *found.closed))
    if len(kept) + len(covered) > _MOST_MOUNTS:
        raise Refused(
            f"there are {len(kept) + len(covered):,} files to keep from commands in"
            f" {rules.project}, more than the sandbox can hold",
            "start in a folder below, or set agent.show_secrets",
        )
    return Guards(found, _firm_names(rules), firm, kept, covered)


def guarded(rules: CommandRules, repositories: Iterable[str] = ()) -> list[str]:
    """Paths in the project that stay as they are whatever is allowed, by their real place, there or
    not; `repositories` are those below the top."""
    named = (path for place in repositories for path in named_files(place))
    real = dict.fromkeys(os.path.realpath(path) for path in (*_firm_names(rules), *named))
    open_to = {os.path.realpath(path) for path in rules.writable}
    return [path for path in real if is_inside(path, rules.project) and path not in open_to]


def _firm_names(rules: CommandRules) -> list[str]:
    wanted = [os.path.join(rules.project, name) for name in (*_OTHERS, ".git")]
    own = [folder for folder in git_folders(rules.project) if is_inside(folder, rules.project)]
    if os.path.isdir(wanted[-1]) or not os.path.lexists(wanted[-1]):
        wanted.pop()  # its parts are guarded, so that commits can be made
    for folder in own or [os.path.join(rules.project, ".git")]:
        wanted += [os.path.join(folder, name) for name in GIT_PARTS]
    wanted += named_files(os.path.join(rules.project, ".git"))
    wanted += _own_folders()
    home = paths.user_home()  # who works there has the folders of all projects in the project
    wanted += [folder for host in host_folders() for folder in host.user_folders(home)]
    wanted += [folder for folder in rules.skills if os.path.realpath(folder) != rules.project]
    for base in dict.fromkeys((rules.project, *rules.working_folders)):
        wanted += [os.path.join(base, name) for host in host_folders() for name in host.project]
    return wanted


def _own_folders() -> list[str]:
    """Tacit's own, which may lie in the project: sessions, trust, what waits, settings. Only the
    user makes settings; the others come to be while Tacit works."""
    own = paths.folders()
    return [own.config, *(path for path in (own.data, own.cache) if os.path.isdir(path))]


def _own_program() -> list[str]:
    """What Tacit itself is made of, which may be installed in the project: it runs outside."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [os.path.realpath(path) for path in (package, sys.prefix)]


def is_own_path(path: str, project: str) -> bool:
    """Whether the real `path` lies in a folder of Tacit's own that lies in the project."""
    own = (os.path.realpath(folder) for folder in _own_folders())
    return any(is_inside(path, folder) and is_inside(folder, project) for folder in own)


def is_guarded(path: str, rules: CommandRules) -> bool:
    """Whether the real `path` is, or lies in, what stays as it is; without regard to case."""
    if is_of_repository(path, rules.project):
        return True
    folded = path.casefold()
    above = (os.path.join(folder, ".git") for folder in parents_of(path, rules.project))
    return any(is_inside(folded, guard.casefold()) for guard in guarded(rules, above))


def is_obeyed_path(path: str, rules: CommandRules) -> bool:
    """Whether other programs obey the file at the real `path`, and the user did not allow it."""
    tops = (rules.project, *rules.working_folders)
    names = [path, *(link for top in tops for link in _links_to(path, top))]
    below = (os.path.relpath(name, top) for name in names for top in tops if is_inside(name, top))
    ours = any(is_inside(path, part) for part in _own_program())
    return (ours or any(map(is_obeyed, below))) and not _is_allowed(path, rules)


def _links_to(path: str, folder: str) -> list[str]:
    """The links in `folder` by which the real `path` is found."""
    try:
        links = [entry.path for entry in os.scandir(folder) if entry.is_symlink()]
    except OSError:
        return []
    return [link for link in links if is_inside(path, os.path.realpath(link))]


def _is_allowed(path: str, rules: CommandRules) -> bool:
    wanted = (os.path.join(rules.project, allowed) for allowed in rules.allow_write)
    return any(is_inside(path, os.path.normpath(each)) for each in wanted)


def parents_of(path: str, project: str) -> list[str]:
    """The folders between `project` and `path`: renamed, one could be replaced by a new one."""
    found = []
    here = os.path.dirname(path)
    while here != project and is_inside(here, project):
        found.append(here)
        here = os.path.dirname(here)
    return found[::-1]


def hidden(rules: CommandRules, keys: Sequence[str] | None = None) -> list[str]:
    """Paths that a command must not see, by their real place; only what exists.

    `keys` are the project's files of keys and what cannot be looked into, where somebody has looked
    already.
    """
    own = paths.folders()
    wanted = [path for home in _homes() for path in _secrets_of(home)]
    wanted += [own.data, own.config, own.cache, *_SYSTEM, *_sockets()]
    if keys is None:
        keys = [] if rules.show_secrets else survey(rules.project).keys
    real = {os.path.realpath(path) for path in (*wanted, *keys) if os.path.exists(path)}
    kept = [os.path.realpath(p) for p in (rules.project, rules.temporary, *rules.writable)]
    # A folder that holds what must be seen cannot be hidden whole.
    seen = {path for path in real if not any(is_inside(k, path) for k in kept)}
    return outermost(seen)


def outermost(found: Iterable[str]) -> list[str]:
    """Those of `found` that lie in no other, sorted."""
    kept: list[str] = []
    for path in sorted(found, key=lambda path: path.rstrip(os.sep) + os.sep):
        if not kept or not is_inside(path, kept[-1]):
            kept.append(path)
    return kept


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
    return found


def walk_files(root: str, most: int) -> Iterator[str]:
    """The files below `root`, relative to it, until `most` were seen; see `PASSED_OVER`."""
    seen = 0
    for here, folders, names in paths.walk_folders(root):
        folders[:] = sorted(folder for folder in folders if folder not in PASSED_OVER)
        below = here[len(root) :].lstrip(os.sep)
        yield from (os.path.join(below, name) for name in sorted(names))
        seen += len(names)
        if seen > most:
            return
