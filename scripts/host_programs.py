"""The programs of the real agents: fetched into a cache once a version, and run headless.

npm's agents want a current Node, which npm itself can bring; agents from PyPI get a virtual
environment each. A folder that is complete carries a stamp, so an install that was interrupted is
done again and one that is there is not. A run has a home of its own, sees loopback only, and is
bounded in time.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template

import msgspec

from host_agents import Agent
from tacit.base.errors import NotFound, TacitError
from tacit.testing import Terms

NODE = "24"
TERMS = Terms(output=128_000)
"""What the agents' scripted model allows: Hermes asks for answers of 65,536 tokens."""
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


_QUIET = {
    "CI": "1",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "TERM": "dumb",
    "LANG": "C.UTF-8",
    "NODE_USE_ENV_PROXY": "1",  # Node's own fetch passes over the proxy variables without it
}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent runs: its own home, the project, and the server it takes for its model."""

    home: Path
    project: Path
    url: str
    path: tuple[Path, ...] = ()
    """Folders to put first on PATH: the agent's interpreter, commands that its hooks call."""


class Run(msgspec.Struct, frozen=True):
    """How a run ended. `code` is None when its time was up and it was killed."""

    code: int | None
    seconds: float
    stdout: str
    stderr: str

    @property
    def ended_well(self) -> bool:
        return self.code == 0


def prepare(agent: Agent, place: Place) -> None:
    """Write the agent's configuration into its home, and make the project folder."""
    place.project.mkdir(parents=True, exist_ok=True)
    (place.home / "tmp").mkdir(parents=True, exist_ok=True)
    for name, text in agent.files.items():
        file = place.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_fill(text, place), encoding="utf-8")


def environment(agent: Agent, place: Place) -> dict[str, str]:
    """Every variable that the agent gets. None of the user's own is among them, but the PATH.

    The model server is named as the proxy for everything that is not on loopback: it refuses to
    forward, and has on record who wanted to go where.
    """
    proxies = dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"), place.url
    )
    folders = [str(folder) for folder in place.path]
    return {
        **_QUIET,
        **proxies,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
        "HOME": str(place.home),
        "PWD": str(place.project),
        "TMPDIR": str(place.home / "tmp"),
        "PATH": os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)]),
        **{name: _fill(value, place) for name, value in agent.environment.items()},
    }


def run(
    agent: Agent,
    program: Path,
    place: Place,
    prompt: str,
    *,
    resume: bool = False,
    timeout: float = 120.0,
) -> Run:
    """One prompt, to its end. When the time is up, the agent and all it started are killed."""
    started = time.monotonic()
    with running(agent, program, place, prompt, resume=resume) as process:
        try:
            code: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        seconds = time.monotonic() - started
    return Run(code, seconds, *(_text(place.home / "tmp" / name) for name in _OUTPUT))


_OUTPUT = ("stdout", "stderr")


@contextmanager
def running(
    agent: Agent, program: Path, place: Place, prompt: str, *, resume: bool = False
) -> "Iterator[subprocess.Popen[bytes]]":
    """The agent at work on one prompt; at the end of the block it is killed with all it started."""
    words = agent.resume if resume else agent.command
    argv = [str(program), *(_fill(word, place, prompt) for word in words)]
    output, errors = (place.home / "tmp" / name for name in _OUTPUT)
    # Into files: an agent's background children may hold a pipe open long after its end.
    with output.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(
            argv,
            cwd=place.project,
            env=environment(agent, place),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                _kill_group(process)


def transcripts(agent: Agent, home: Path) -> list[Path]:
    """The files in which the agent kept its sessions, those that are not empty."""
    found = [file for pattern in agent.transcripts for file in home.glob(pattern)]
    return sorted(file for file in found if file.stat().st_size)


def _fill(text: str, place: Place, prompt: str = "") -> str:
    return Template(text).safe_substitute(
        url=place.url, home=place.home, project=place.project, prompt=prompt
    )


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")
