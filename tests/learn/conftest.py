"""A project, its settings with a scripted model, and tasks for the child process."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tacit.agent.budget import Limits
from tacit.base import settings, trust
from tacit.base.setting_sections import Settings
from tacit.learn.background.staging import Staging
from tacit.learn.background.task import Task


@pytest.fixture
def project(home: Path) -> Path:
    """A trusted project, which is the working directory."""
    folder = home / "work"
    (folder / ".git").mkdir()
    trust.add(str(folder))
    return folder


@pytest.fixture
def chosen() -> Callable[..., Settings]:
    """Settings with the model at an address, and others by their keys."""

    def make(url: str = "http://127.0.0.1:9", **more: Any) -> Settings:
        flags = {"agent.model": "openai:mock", "agent.base_url": f"{url}/v1", "agent.retries": 0}
        given = {key.replace("__", "."): value for key, value in more.items()}
        return settings.load_settings(flags=flags | given).settings

    return make


@pytest.fixture
def make_task(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Task]:
    """Tasks with a toolset of `hostile.py`."""
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))

    def make(toolset: str, *, job: str = "job-1", **more: Any) -> Task:
        limits = more.pop("limits", Limits(turns=8, seconds=300, retries=0))
        return Task(
            job=job,
            kind="review",
            actor="reviewer",
            session="session-1",
            project=str(project),
            staging=Staging.open(job).path,
            instructions="Be good.",
            message="Begin.",
            toolset=f"hostile:{toolset}",
            limits=limits,
            **more,
        )

    return make
