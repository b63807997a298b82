"""A session with the scripted server for a model, in each wire format."""

import ctypes
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")
sys.path.insert(0, str(Path(__file__).parent))

from boxes import Box
from talking import WIRES

from tacit.agent import model_client
from tacit.agent.agent_session import Session
from tacit.base import settings
from tacit.testing import ModelServer


@pytest.fixture(params=WIRES)
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def _no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chat that ends starts no worker in the background, as if it ran below one."""
    monkeypatch.setenv("TACIT_WORKER", "1")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between tries are short."""
    monkeypatch.setattr(model_client, "_FIRST", 0.01)


@pytest.fixture
def project(home: Path) -> Path:
    """A trusted project, which is the working directory."""
    from tacit.base import trust

    folder = home / "work"
    (folder / ".git").mkdir()
    trust.add(str(folder))
    return folder


@pytest.fixture
def open_session(project: Path) -> Iterator[Any]:
    """Sessions with a server; all are closed at the end."""
    opened: list[Session] = []

    def make(
        server: ModelServer,
        wire: str = "openai-chat",
        flags: dict[str, Any] | None = None,
        **how: Any,
    ) -> Session:
        provider, path = WIRES[wire]
        chosen = {"agent.model": f"{provider}:mock", "agent.base_url": server.url + path}
        loaded = settings.load_settings(
            flags=chosen | {f"agent.{k}": v for k, v in (flags or {}).items()}
        )
        opened.append(Session(loaded.settings, **how))
        return opened[-1]

    yield make
    for session in opened:
        session.close()


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that is not under /tmp: there it would be out of sight without any wall."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        monkeypatch.setenv("HOME", folder)
        (Path(folder) / "work").mkdir()
        yield Path(folder)


@pytest.fixture
def as_anybody() -> Iterator[None]:
    """Root meets permissions as anybody does: it keeps the right, and does not use it."""
    libc = ctypes.CDLL(None, use_errno=True)
    head, held = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    if os.geteuid() != 0 or sys.platform != "linux":
        yield
        return
    libc.capget(head, held)
    effective, *others = struct.unpack("6I", held.raw)
    libc.capset(head, struct.pack("6I", effective & ~0b1110, *others))
    yield
    libc.capset(head, held)


@pytest.fixture
def box(far: Path) -> Box:
    subprocess.run(["git", "init", "-q", str(far / "work")], check=True)
    return Box(far, far / "work")
