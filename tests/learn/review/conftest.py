"""A session in the store, and a scripted reviewer."""

import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")
sys.path.insert(0, str(Path(__file__).parent))

from reviews import run_inside, store

from tacit.agent import model_client
from tacit.base import config_file, trust
from tacit.learn.background import child_process
from tacit.testing import ModelServer
from tacit.testing.sample_sessions import made, ran
from tacit.traces.trace import Trace


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reviews run in this process, which takes a tenth of the time."""
    monkeypatch.setattr(child_process, "run", run_inside)
    monkeypatch.setattr(model_client, "_FIRST", 0.01)
    # Each new client reads a file of certificates, and none of them is needed on loopback.
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)


@pytest.fixture
def project(home: Path) -> Path:
    """A trusted project, which is the working directory."""
    folder = home / "work"
    (folder / ".git").mkdir()
    trust.add(str(folder))
    return folder


@pytest.fixture
def session(project: Path) -> Trace:
    """A session in the store: a build that failed, was mended, and was put right by the user."""
    trace = made(
        [
            "Build the package.",
            ran("cat README.md", "# demo\nBuild with `python3 build.py`."),
            ran("python3 build.py", "Traceback\nKeyError: 'VERSION'", failed=True),
            ran("VERSION=1.2.3 python3 build.py", "built dist/app-1.2.3.txt"),
            "Built.",
        ],
        [
            "No, do not invent a version: always read it from the VERSION file.",
            ran("read -r VERSION < VERSION; export VERSION; python3 build.py", "built app-2.0.0"),
            "Rebuilt.",
        ],
        project=str(project),
    )
    store(trace)
    return trace


@pytest.fixture
def serve() -> Iterator[Callable[..., ModelServer]]:
    """A scripted model that the settings name; it is closed at the end."""
    servers: list[ModelServer] = []

    def start(script: Any, **settings: Any) -> ModelServer:
        server = ModelServer(script, strict=False).start()
        servers.append(server)
        values = {"agent.model": "openai:mock", "agent.base_url": f"{server.url}/v1"}
        values |= {"learn.approval": "auto", "agent.retries": 1}
        values |= {key.replace("__", "."): value for key, value in settings.items()}
        config_file.set_values(values)
        return server

    yield start
    for server in servers:
        server.close()
        assert not server.refusals
