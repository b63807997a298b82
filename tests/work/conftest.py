"""Workers of the tests' own, and what they leave."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.learn.ledger import DecidedJob, open_ledger
from waiting import LONG

DRIVER = Path(__file__).parent / "job_driver.py"


class Workers:
    """Starts workers over one folder of notes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []

    def start(
        self, *points: str, driver: Path = DRIVER, **environment: str
    ) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen(
            [sys.executable, str(driver), str(self.folder), *points],
            env={**os.environ, **environment},
        )
        self._started.append(worker)
        return worker

    def run(self, *points: str, driver: Path = DRIVER, **environment: str) -> int:
        return self.start(*points, driver=driver, **environment).wait(LONG)

    def lines(self, name: str) -> int:
        """How often something was noted."""
        path = self.folder / name
        return len(path.read_text().splitlines()) if path.exists() else 0

    def changes(self) -> list[str]:
        return sorted(path.name.split(".")[0] for path in self.folder.glob("*.change-*"))

    def end(self) -> None:
        for worker in self._started:
            worker.kill()
            worker.wait()


@pytest.fixture
def workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Workers":
    """Workers of this test alone; nothing starts one by itself."""
    monkeypatch.setenv("TACIT_WORKER", "1")
    made = Workers(tmp_path)
    yield made
    made.end()


def ask(kind: str, key: str, payload: dict[str, Any] | None = None) -> None:
    """Have a job decided on, as `learn/` does."""
    with open_ledger() as ledger:
        ledger.add_jobs([DecidedJob(kind, key, payload or {})])


def open_jobs() -> list[DecidedJob]:
    """The jobs that are on record as not over."""
    with open_ledger() as ledger:
        return ledger.open_jobs()


sys.path.insert(0, str(Path(__file__).parent))
