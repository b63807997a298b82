"""The git program, called in one way only: a fixed configuration and a clean environment.

A repository may have been made by somebody else, and its settings can name programs: a monitor of
files, hooks, filters, a pager, the far side of a fetch. Here they are switched off for every call,
the settings of the user and of the system are not read, nothing is fetched, and a folder that
merely looks like a bare repository is none. Nothing else in Tacit starts git; a test sees to that.
"""

import os
from typing import TYPE_CHECKING

from tacit.base import paths
from tacit.base.errors import TacitError

if TYPE_CHECKING:
    import subprocess

_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.attributesFile": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "core.alternateRefsCommand": "false",
    "core.autocrlf": "false",
    "credential.helper": "",
    "diff.external": "",
    "gc.auto": "0",
    "gpg.program": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "uploadpack.packObjectsHook": "",
}
_PATIENCE = 10.0
_KEPT = ("HOME", "USERPROFILE", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")


def run_git(
    *arguments: str, cwd: str = "", repository: str = "", seconds: float | None = None
) -> "subprocess.CompletedProcess[bytes]":
    """Run git in `cwd`, or on the git directory `repository`, and return how it ended.

    Raises `TacitError` where there is no git, or it takes too long: in a repository of somebody
    else's a pipe may stand in the place of a file, and git would wait for ever.
    """
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    chosen = [f"--git-dir={repository}"] if repository else []
    import subprocess

    patience = seconds or (None if repository else _PATIENCE)
    try:
        return subprocess.run(
            [_program(), "--no-pager", *settings, *chosen, *arguments],
            cwd=cwd or None,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=patience,
            umask=0o077,  # it writes nothing but our own histories
        )
    except subprocess.TimeoutExpired:
        raise TacitError(
            f"git did not answer in {cwd or os.getcwd()} for {patience:g} s",
            "try it there: git status",
        ) from None


def git_environment() -> dict[str, str]:
    """All that git sees of the environment: no settings of the user's, no repository of theirs."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ} | {
        "PATH": paths.search_path(),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }


def _program() -> str:
    if found := paths.find_program("git"):
        return found
    raise TacitError("the git program is missing", "install git")
