"""What every test stands on: a home of its own, no key or setting of the machine's, and a process
as it was before: nothing that a test leaves in memory is there for the next one."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tacit.base.event_bus import bus

if TYPE_CHECKING:
    from tacit.traces.store import Store

# How long an example takes says more of the machine than of the code; and the home is one for all
# examples of a test.
hypothesis.settings.register_profile(
    "tacit",
    deadline=None,
    suppress_health_check=[
        hypothesis.HealthCheck.too_slow,
        hypothesis.HealthCheck.function_scoped_fixture,
    ],
)
hypothesis.settings.load_profile("tacit")

# A shell that starts the tests in the background has them ignore Ctrl-C, and all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

MEMORY = {
    "tacit.agent.project_survey": {"_remembered": {}},
    "tacit.base.paths": {"_searched": {}},
    "tacit.changes.gate_steps": {"_registered": []},
    "tacit.changes.stage": {"_mask": None},
    "tacit.traces.host_folders": {"_read": {}},
    "tacit.traces.host_registry": {"_registered": {}},
    "tacit.traces.tool_calls": {"_seen": {}},
    "tacit.work.engine": {"_active": set(), "_bells": [], "_turns": {}},
    "tacit.work.reactions": {"_chats": set(), "_next_ask": 0.0, "_stays": False},
    "tacit.work.job_kinds": {"_functions": {}, "_registered": {}},
}
"""What modules remember for as long as the process lives, and what they begin with."""
BY_IMPORT = {"tacit.ui.cli.command": {"registered"}}
"""What is filled by importing modules, and by nothing else: it is the same for every test."""
CERTIFICATE = str(Path(__file__).parent / "fixtures/nobody.pem")
"""No test speaks with anybody else, and to read all certificates of the system takes longer than
most tests."""
_NUMBERS = itertools.count()
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

_KEYS = ("_API_KEY", "_TOKEN", "_BASE_URL", "_SECRET")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how to have the same order and the same random numbers again."""
    seed = config.getoption("randomly_seed", None)
    if seed is not None:
        terminalreporter.write_line(f"in the order of --randomly-seed={seed}")


def pytest_sessionfinish() -> None:
    """What tests of killed processes left in the folder for temporary files goes at once."""
    from tacit.base.atomic_files import drop_abandoned

    drop_abandoned(time.time() + 3600)


@pytest.fixture(autouse=True)
def home(
    process: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """An empty home folder; the working directory is an empty folder in it."""
    # Not by `mktemp`, which looks at all that the tests before made, and takes longer each time.
    folder = tmp_path_factory.getbasetemp() / "h" / f"home{next(_NUMBERS)}"
    folder.mkdir(0o700, parents=True)
    for name in list(os.environ):
        if name.startswith(("TACIT_", "XDG_", "GIT_")) or name.endswith(_KEYS):
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CODEX_HOME", "HERMES_HOME", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("SSL_CERT_FILE", CERTIFICATE)
    work = folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return folder


@pytest.fixture
def store(home: Path) -> "Iterator[Store]":
    """The user's session store, open for as long as the test runs."""
    from tacit.traces.store import Store

    with Store.open() as opened:
        yield opened


@pytest.fixture(autouse=True)
def children(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Of a test that fails, no process goes on: it would be found in the middle of another test."""
    started: list[subprocess.Popen[Any]] = []
    begin = subprocess.Popen.__init__

    def noted(self: "subprocess.Popen[Any]", *given: Any, **named: Any) -> None:
        begin(self, *given, **named)
        started.append(self)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        for child in started:
            child.kill()
            child.wait()
            for pipe in filter(None, (child.stdin, child.stdout, child.stderr)):
                with contextlib.suppress(OSError):
                    pipe.close()


@pytest.fixture
def process() -> Iterator[None]:
    """The process is after a test what it was before: bus, memory, environment, folder, mask."""
    environment, folder, mask = dict(os.environ), os.getcwd(), os.umask(0o022)
    os.umask(mask)
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    with bus.apart():
        yield
    for name, memory in MEMORY.items():
        if name in sys.modules:
            _forget(sys.modules[name], memory)
    os.chdir(folder)
    os.umask(mask)
    if os.environ != environment:
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def memory() -> dict[str, set[str]]:
    """What modules remember: forgotten after each test, or the same for all."""
    return {name: set(names) for name, names in MEMORY.items()} | BY_IMPORT


def _forget(module: Any, memory: dict[str, Any]) -> None:
    for name, first in memory.items():
        setattr(module, name, copy(first))
