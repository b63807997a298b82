"""Running a real agent once, headless: a home of its own, loopback only, bounded in time."""

import os
import signal
import subprocess
import time
from pathlib import Path
from string import Template

import msgspec

from tacit.testing.agents import Agent

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
    words = agent.resume if resume else agent.command
    argv = [str(program), *(_fill(word, place, prompt) for word in words)]
    output, errors = place.home / "tmp" / "stdout", place.home / "tmp" / "stderr"
    started = time.monotonic()
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
            code: int | None = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            seconds = time.monotonic() - started
            if code is None:
                _kill_group(process)
    return Run(code, seconds, _text(output), _text(errors))


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
