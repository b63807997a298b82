"""Fetching the real agents into a cache folder, once a version.

npm's agents want a current Node, which npm itself can bring; agents from PyPI get a virtual
environment each. A folder that is complete carries a stamp, so an install that was broken off is
done again and one that is there is not.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec

from tacit.base.errors import NotFound, TacitError
from tacit.testing.agents import Agent

NODE = "24"
_STAMP = ".tacit-installed"


class InstallFailed(TacitError):
    """npm or pip could not install an agent."""


class Installed(msgspec.Struct, frozen=True):
    """An agent's program, its version, and the folders that come first on PATH for it."""

    program: Path
    version: str
    path: tuple[Path, ...] = ()


def default_cache() -> Path:
    """Where agents are kept: TACIT_HOSTS_CACHE, or a folder in the user's cache."""
    named = os.environ.get("TACIT_HOSTS_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "tacit-test-hosts"


def install(agent: Agent, cache: Path, *, version: str = "", timeout: float = 600) -> Installed:
    """The agent at `version` (default: the one it was tried with), fetched if it is not there.

    The version may be "latest": the newest at the time of fetching; `forget` fetches anew.
    """
    version = version or agent.version
    folder = _folder(agent, cache, version)
    make = _install_npm if agent.registry == "npm" else _install_pypi
    return make(agent, folder, version, timeout)


def is_there(agent: Agent, cache: Path, *, version: str = "") -> bool:
    """Whether `install` would have nothing to fetch."""
    return (_folder(agent, cache, version or agent.version) / _STAMP).exists()


def forget(agent: Agent, cache: Path, *, version: str = "") -> None:
    """Have the next `install` look again, as for the version "latest"."""
    (_folder(agent, cache, version or agent.version) / _STAMP).unlink(missing_ok=True)


def _folder(agent: Agent, cache: Path, version: str) -> Path:
    return cache / f"{agent.name}-{version}"


def _install_npm(agent: Agent, folder: Path, version: str, timeout: float) -> Installed:
    node = _node(folder.parent, timeout)
    modules = folder / "node_modules"
    program = modules / ".bin" / agent.program
    _once(folder, program, _npm(folder, f"{agent.package}@{version}"), (node,), timeout)
    about = msgspec.json.decode((modules / agent.package / "package.json").read_bytes())
    return Installed(program, about["version"], (node,))


def _install_pypi(agent: Agent, folder: Path, version: str, timeout: float) -> Installed:
    program, python = folder / "bin" / agent.program, folder / "bin" / "python"
    if not python.exists():
        _run([sys.executable, "-m", "venv", str(folder)], (), timeout)
    wanted = agent.package if version == "latest" else f"{agent.package}=={version}"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _once(folder, program, [*pip, "--upgrade", wanted], (), timeout)
    ask = f"import importlib.metadata as m; print(m.version({agent.package!r}))"
    return Installed(program, _run([str(python), "-c", ask], (), timeout).strip())


def _node(cache: Path, timeout: float) -> Path:
    """The folder of a Node that all the agents run on."""
    folder = cache / f"node-{NODE}"
    program = folder / "node_modules" / "node" / "bin" / "node"
    _once(folder, program, _npm(folder, f"node@{NODE}"), (), timeout)
    return program.parent


def _npm(folder: Path, what: str) -> list[str]:
    npm = shutil.which("npm")
    if npm is None:
        raise NotFound("npm is not on the PATH", "install Node and npm, of any version")
    return [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", what]


def _once(
    folder: Path, program: Path, command: list[str], path: tuple[Path, ...], timeout: float
) -> None:
    stamp = folder / _STAMP
    if stamp.exists() and program.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    _run(command, path, timeout)
    if not program.exists():
        raise InstallFailed(
            f"{' '.join(command)} ended well, but there is no {program}",
            f"delete {folder} and try again",
        )
    stamp.touch()


def _run(command: list[str], path: tuple[Path, ...], timeout: float) -> str:
    folders = [*(str(folder) for folder in path), os.environ.get("PATH", os.defpath)]
    variables = {**os.environ, "PATH": os.pathsep.join(folders)}
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            env=variables,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InstallFailed(
            f"{shown} took more than {timeout:g} s", "check the network and try again"
        ) from error
    if done.returncode:
        raise InstallFailed(f"{shown} failed: {_last_words(done.stderr or done.stdout)}")
    return done.stdout


def _last_words(text: str) -> str:
    """What npm and pip say of the cause: their error lines, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() and "log of this run" not in line]
    return "; ".join((errors or lines)[-3:])
