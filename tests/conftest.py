"""What every test stands on: a home of its own, and no key or setting of the machine's."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# A shell that starts the tests in the background has them ignore Ctrl-C, and all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_KEYS = ("_API_KEY", "_TOKEN", "_BASE_URL", "_SECRET")


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder; the working directory is an empty folder in it."""
    folder = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("TACIT_", "XDG_", "GIT_")) or name.endswith(_KEYS):
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CODEX_HOME", "HERMES_HOME", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv("TERM", "xterm-256color")
    work = folder / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return folder


@pytest.fixture(autouse=True)
def nobody_listens() -> Iterator[None]:
    """What a test has listening to events in this process ends with it."""
    yield
    for name in ("tacit.work.glue", "tacit.work.linking", "tacit.learn.noticing"):
        ends = getattr(sys.modules.get(name), "_listening", [])
        while ends:
            ends.pop()()
