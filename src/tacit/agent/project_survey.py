"""A look through a project: files of keys, files that other programs obey, and git repositories.

What other agents, editors, shells and build servers obey is in one table: the agents' part stands
in their own records (`traces/hosts`), the rest here. The look goes to any depth. What a folder held
is remembered for as long as the folder did not change, so that the next look costs little.
"""

import os
import re
import stat
import subprocess
import sys
import time
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from tacit.base.errors import TacitError
from tacit.base.git_program import run_git
from tacit.base.paths import is_inside
from tacit.base.patterns import late_pattern
from tacit.traces.host_folders import host_folders

# Of agents without a record of their own, of shells, and of interpreters and debuggers that run a
# file of the folder that they are started in; at any depth.
_OBEYED = (
    ".adal", ".agent", "AGENT.md", ".agents", ".aiassistant", ".aider.conf.yml", ".amazonq", ".amp",
    ".antigravity", ".augment", ".augment-guidelines", ".claude-plugin", ".cline", ".clinerules",
    ".codebuddy", "CODEBUDDY.md", ".commandcode", "conductor.json", ".continue", ".continuerules",
    ".cortex", ".crush", ".crush.json", "crush.json", "CRUSH.md", ".devin", ".factory",
    "firebender.json", ".goose", ".goosehints", ".grok", "GROK.md", ".iflow", "IFLOW.md", ".junie",
    ".kilo", ".kilocode", ".kilocodemodes", ".kimi", ".kiro", ".kode", ".lingma", ".mux",
    ".neovate", ".openclaw", ".pochi", ".qoder", ".qodo", ".roo", ".roomodes", ".roorules",
    ".rovodev", ".ruler", ".rules", ".rulesync", ".tabnine", ".trae", ".vibe", ".voidrules",
    "WARP.md", ".windsurf", ".windsurfrules", ".zencoder", ".github/chatmodes",
    ".envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases",
    ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", "fish/config.fish",
    "fish/conf.d", "fish/functions", "fish/completions", ".cshrc", ".tcshrc", ".login", ".logout",
    ".kshrc", ".mkshrc", ".shrc", ".inputrc", ".xonshrc", ".screenrc", ".psqlrc", ".sqliterc",
    "nushell/config.nu", "nushell/env.nu", "nushell/autoload", "powershell/profile.ps1",
    "powershell/Microsoft.PowerShell_profile.ps1", ".exrc", ".vimrc", ".nvimrc", ".nvim.lua",
    ".lazy.lua", ".dir-locals.el",
    ".vim/coc-settings.json", ".helix", ".gitconfig", ".autoenv", ".autoenv.zsh", ".Rprofile",
    ".irbrc", ".pryrc", ".ghci", ".iex.exs", ".ocamlinit", ".octaverc", ".pdbrc", ".gdbinit",
    ".lldbinit",
)  # fmt: skip
# Obeyed at the top of a project alone: editors, build servers, what runs at a commit or as soon as
# one enters the folder, and the settings of repositories that are not git's, which name programs;
# in a home, what runs as one logs in.
_AT_TOP = (
    ".vscode", ".idea", ".zed", ".fleet", "*.code-workspace", ".devcontainer", ".devcontainer.json",
    ".github/workflows", ".github/actions", ".gitlab-ci.yml", ".gitlab/ci", ".circleci",
    ".travis.yml", ".drone.yml", ".woodpecker", ".woodpecker.yml", ".woodpecker.yaml",
    ".buildkite", "Jenkinsfile", "azure-pipelines.y*ml", ".azure-pipelines",
    "bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml", ".gitea", ".forgejo", ".semaphore",
    ".cirrus.yml", "cloudbuild.y*ml", "buildspec.y*ml", ".builds", ".build.yml", ".harness",
    ".teamcity", ".tekton", "bitrise.yml", "codemagic.yaml", ".pre-commit-config.y*ml", "prek.toml",
    "hk.pkl", "lefthook*.*", ".lefthook*", ".config/lefthook.yml", "mise*.toml", ".mise*",
    "mise/config.toml",
    ".config/mise", ".config/mise.toml", "flake.nix", "shell.nix", "devenv.nix", "devenv.yaml",
    "devbox.json", ".gitpod.yml", ".gitpod", ".idx", ".codesandbox", ".hg/hgrc",
    ".hg/hgrc-not-shared", ".jj/repo/config.toml", ".sl/config", ".config/autostart",
    ".config/systemd", ".config/environment.d", ".config/git", ".config/nvim", ".ssh", ".emacs",
    ".emacs.d", ".tmux.conf", ".pam_environment", ".xprofile", ".xsessionrc", ".xinitrc",
    "Library/LaunchAgents", ".docker/config.json", ".claude.json", ".local/bin", ".vim",
)  # fmt: skip
# Folders that hold nobody's own work.
PASSED_OVER = frozenset({
    ".git", ".hg", ".jj", "node_modules", "__pycache__", ".venv", "venv", ".mypy_cache", ".tox",
})  # fmt: skip
# A bare repository, or a git directory under any name: git takes it for one where it stands.
_LAYOUTS = ({"HEAD", "objects", "refs"}, {"HEAD", "commondir"})
_LAYOUT_PARTS = {"HEAD", "objects", "refs", "commondir", "config", "config.worktree", "hooks"}
_SETTLED = 100_000_000
"""Nanoseconds after which a further change of a folder must show in its time."""
_MOST_REMEMBERED = 500_000
_LONGEST_PATH = 3_600
"""Bytes; the system takes 4,095, with the name of a file and what the sandbox puts before it."""


class Survey(NamedTuple):
    """What a look found, by absolute path; links are not followed."""

    keys: list[str]
    """Files that are likely to hold secrets, and sockets."""
    obeyed: list[str]
    """Files and folders that other programs obey."""
    repositories: list[str]
    """`.git`, be it a folder, a file or a link, and folders that are laid out like one."""
    closed: list[str]
    """Folders that we may not look into, and those whose path is too long to: a command could open
    them, or go there step by step."""


class _Folder(NamedTuple):
    """What one folder held when it was looked at."""

    below: tuple[str, ...]
    keys: tuple[str, ...]
    obeyed: tuple[str, ...]
    repositories: tuple[str, ...]
    closed: bool = False


_remembered: dict[str, tuple[tuple[int, int, int], _Folder]] = {}
"""By path: the folder's time and number, and what it held."""


def survey(project: str, tops: tuple[str, ...] = ()) -> Survey:
    """Look through `project`; `tops` are more folders in which what counts at the top counts."""
    found = Survey([], [], [], [])
    waiting = [(project, False)]
    if len(_remembered) > _MOST_REMEMBERED:
        _remembered.clear()
    while waiting:
        here, others_work = waiting.pop()
        held = _look(here, others_work)
        found.keys.extend(f"{here}/{name}" for name in held.keys)
        found.obeyed.extend(f"{here}/{name}" for name in held.obeyed)
        found.repositories.extend(f"{here}/{name}" if name else here for name in held.repositories)
        found.closed.extend([here] if held.closed else [])
        waiting += [(f"{here}/{name}", others_work or name in PASSED_OVER) for name in held.below]
    for top in dict.fromkeys((project, *tops)):
        found.obeyed.extend(f"{top}/{name}" for name in _obeyed_at_top(top))
    return found


def _look(folder: str, others_work: bool) -> _Folder:
    nothing = _Folder((), (), (), ())
    closed = nothing._replace(closed=True)
    try:
        if len(os.fsencode(folder)) > _LONGEST_PATH:
            return closed
        status = os.stat(f"{folder}/.")  # which needs the right to go there
        stamp = (status.st_ctime_ns, status.st_ino, status.st_dev)
        known = _remembered.get(folder)
        if known is not None and known[0] == stamp:
            return known[1]
        looked_at = time.time_ns()
        entries = list(os.scandir(folder))
    except PermissionError:
        return closed
    except OSError:
        return nothing
    held = _sorted_out(os.path.basename(folder), entries, others_work)
    if looked_at - status.st_ctime_ns > _SETTLED:
        _remembered[folder] = stamp, held
    return held


def _sorted_out(folder: str, entries: "list[os.DirEntry[str]]", others_work: bool) -> _Folder:
    names = [entry.name for entry in entries]
    below = tuple(e.name for e in entries if e.is_dir(follow_symlinks=False) and e.name != ".git")
    sockets = tuple(entry.name for entry in entries if _is_socket(entry))
    repositories = [".git"] if ".git" in names else []
    if any(layout <= set(names) for layout in _LAYOUTS):
        repositories.append("")
    if others_work:
        keys = (*filter(_is_env_file, names), *sockets)
        return _Folder(below, keys, (), tuple(repositories))
    whole, after = _table()
    obeyed = [n for n in names if _folded(n) in whole or (_folded(folder), _folded(n)) in after]
    folders = set(below)
    secrets = (name for name in names if name not in folders and is_secret_file(name))
    return _Folder(below, (*secrets, *sockets), tuple(obeyed), tuple(repositories))


def _is_socket(entry: "os.DirEntry[str]") -> bool:
    """Whether some program may listen there; the kernel's list lacks those with a relative name."""
    if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False):
        return False
    return not entry.is_symlink() and stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)


def _table() -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """What is obeyed at any depth: single names, and pairs of a folder and a name in it."""
    return _split((*_OBEYED, *(name for host in host_folders() for name in host.obeys)))


@lru_cache(maxsize=8)
def _split(names: tuple[str, ...]) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    split = [os.path.split(_folded(name)) for name in names]
    return (
        frozenset(name for above, name in split if not above),
        frozenset((os.path.basename(above), name) for above, name in split if above),
    )


def _folded(name: str) -> str:
    """`name` as the disk knows it: where case says nothing, `claude.md` is obeyed as well."""
    return name if sys.platform == "linux" else name.casefold()


def _obeyed_at_top(top: str) -> list[str]:
    try:
        names = os.listdir(top)
    except OSError:
        return []
    plain = [name for name in _AT_TOP if "*" not in name and os.path.lexists(f"{top}/{name}")]
    return plain + [name for name in names if _fits_pattern(name)]


def _fits_pattern(name: str) -> bool:
    return any("*" in each and fnmatchcase(name, each) for each in _AT_TOP)


def is_obeyed(relative: str) -> bool:
    """Whether other programs obey the file at this path below a project, there or not."""
    parts = _folded(relative).split(os.sep)
    whole, after = _table()
    if any(part in whole for part in parts) or _fits_pattern(parts[0]):
        return True
    if any(pair in after for pair in pairwise(parts)):
        return True
    path = "/".join(parts)
    return any(is_inside(path, _folded(name)) for name in _AT_TOP)


# Names of files of keys.
_NAMES = (
    ".env", ".env.*", "*.env", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore",
    "*.kdbx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", "_netrc", ".pgpass",
    ".htpasswd", ".npmrc", ".pypirc", "credentials", "credentials.json", "credentials.toml",
    "credentials.y*ml", "secrets.json", "secrets.toml", "secrets.y*ml", "service-account*.json",
    "*.tfvars", "*.tfstate", ".git-credentials", "auth.json", "oauth_creds.json", "kubeconfig",
    ".vault-token", "*.ppk", "*.asc.key", ".databrickscfg",
)  # fmt: skip
# Made to be shown; and certificates that everybody has.
_HARMLESS = late_pattern(
    r"(?i)(^|[._-])(example|sample|template|tmpl|dist|defaults?|test|ci)$|\.pub$"
    r"|\.(example|sample|template)\.[a-z]+$|^(cacert|ca-bundle|ca-certificates|roots)\.pem$"
)


@lru_cache(maxsize=100_000)
def is_secret_file(name: str) -> bool:
    """Whether a file of this name is likely to hold secrets."""
    base = os.path.basename(name).lower()
    if _HARMLESS.search(base):
        return False
    return any(fnmatchcase(base, pattern) for pattern in _NAMES)


def _is_env_file(name: str) -> bool:
    lower = name.lower()
    return lower == ".env" or (lower.startswith(".env.") and not _HARMLESS.search(lower))


# In a git directory: what would run outside later if it were written inside.
GIT_PARTS = (
    "hooks", "config", "config.worktree", "info", "modules", "worktrees", "commondir", "gitdir",
)  # fmt: skip
_GITDIR = late_pattern(r"\s*gitdir:\s*(.+?)\s*\Z", re.DOTALL)
# What the settings of a repository may say that a command made; anything may name a program else.
_HARMLESS_SETTINGS = late_pattern(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode"
    r"|symlinks|autocrlf|eol|abbrev|quotepath|sparsecheckout|sparsecheckoutcone)"
    r"|extensions\.(objectformat|refstorage)|user\.(name|email)|init\.defaultbranch"
    r"|commit\.gpgsign|tag\.gpgsign|gc\.auto|pull\.(rebase|ff)|push\.default|color\..*"
    r"|remote\..*\.(url|pushurl|fetch|tagopt|prune)|branch\..*\.(remote|merge|rebase|description)"
)
_HARMLESS_ADDRESS = late_pattern(r"(?i)(https?|ssh|git|file)://[^-]|[\w.@~-]*:[^:]|\.{0,2}/|[\w.]")


def is_of_repository(path: str, project: str) -> bool:
    """Whether `path` is, or would be, a part of a folder that git takes for a repository."""
    while is_inside(path := path.rstrip(os.sep), project) and path != project:
        path, part = os.path.split(path)
        if part in _LAYOUT_PARTS and os.path.isdir(path):
            names = {*os.listdir(path), part}
            if any(layout <= names for layout in _LAYOUTS):
                return True
    return False


def git_folders(project: str) -> list[str]:
    """The git directories of a project, by their real place: its own, and the one it shares.

    In a worktree or a submodule `.git` is a file that names the first; that may name the second.
    """
    return repository_folders(os.path.join(project, ".git"))


def repository_folders(place: str) -> list[str]:
    """The same for a `.git` anywhere, or a folder laid out like one."""
    own = os.path.realpath(place)
    if os.path.isfile(own):
        named = _GITDIR.match(_text(own))
        own = os.path.realpath(os.path.join(os.path.dirname(own), named[1])) if named else ""
    if not own or not os.path.isdir(own):
        return []
    common = _text(os.path.join(own, "commondir")).strip()
    shared = os.path.realpath(os.path.join(own, common)) if common else own
    return list(dict.fromkeys((own, shared)))


# Settings that name programs, or files with more settings.
_NAME_PROGRAMS = late_pattern(
    r"core\.(?!excludesfile|worktree)|(filter|diff|merge|gpg|credential|sequence|pager|interactive"
    r"|trailer|hook|sendemail)\.|remote\..*\.(uploadpack|receivepack|vcs)"
)
_MORE_SETTINGS = late_pattern(r"include(if\..*)?\.path", re.DOTALL)


def named_files(place: str) -> list[str]:
    """What the settings of the repository at `place` (see `repository_folders`) have git run or
    read: hooks at another place, programs of the work tree, more settings. There or not."""
    top = os.path.dirname(place)
    found: list[str] = []
    waiting = [f"{f}/{name}" for f in repository_folders(place) for name in GIT_PARTS[1:3]]
    while waiting and len(found) < _MOST_NAMED:
        file = waiting.pop()
        for key, _, value in (row.partition("\n") for row in _settings(file) or ()):
            if key == "core.hookspath":
                found.append(os.path.join(top, os.path.expanduser(value)))
            elif _MORE_SETTINGS.fullmatch(key):
                more = os.path.join(os.path.dirname(file), os.path.expanduser(value))
                waiting += [more] if more not in found else []
                found.append(more)
            elif _NAME_PROGRAMS.match(key):
                words = (os.path.join(top, word) for word in _SHELL_SIGNS.split(value) if word)
                found += [word for word in words if os.path.isfile(word)]
    return [path for path in map(os.path.realpath, found) if not is_inside(top, path)]


_SHELL_SIGNS = late_pattern(r"[\s\"'!;&|()]+")
_MOST_NAMED = 200


def runs_by_itself(repository: str) -> bool:
    """Whether git would run a program that this new repository brought along."""
    folders = repository_folders(repository)
    if not os.path.isdir(repository) or os.path.islink(repository) or len(folders) != 1:
        return True  # it leads elsewhere
    hooks = os.path.join(repository, "hooks")
    names = os.listdir(hooks) if os.path.isdir(hooks) else []
    if os.path.islink(hooks) or any(not name.endswith(".sample") for name in names):
        return True
    if any(os.path.lexists(f"{repository}/{name}") for name in ("config.worktree", "modules")):
        return True
    return not _is_harmless_config(os.path.join(repository, "config"))


def _is_harmless_config(path: str) -> bool:
    rows = _settings(path)
    return not os.path.lexists(path) or (rows is not None and all(map(_is_harmless_setting, rows)))


def _settings(path: str) -> tuple[str, ...] | None:
    """The settings in a file of git's, a key and a value each; None where they cannot be read."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):  # a pipe would have git wait
        return None
    return _listed(path, (status.st_ctime_ns, status.st_ino, status.st_size))


@lru_cache(maxsize=1_000)
def _listed(path: str, stamp: tuple[int, ...]) -> tuple[str, ...] | None:
    try:
        listed = run_git("config", "--file", path, "--no-includes", "--list", "-z", seconds=5)
    except (OSError, TacitError, subprocess.SubprocessError):
        return None
    rows = os.fsdecode(listed.stdout).split("\0")[:-1]
    return tuple(rows) if listed.returncode == 0 else None


def _is_harmless_setting(row: str) -> bool:
    key, _, value = row.partition("\n")
    if not _HARMLESS_SETTINGS.fullmatch(key):
        return False
    return not key.endswith("url") or ("::" not in value and bool(_HARMLESS_ADDRESS.match(value)))


def _text(path: str) -> str:
    if not os.path.isfile(path):  # a pipe would have us wait
        return ""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(65_536)
    except OSError:
        return ""
