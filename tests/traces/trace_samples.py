"""The real sessions of the tested agents, and what stands in each of them, as the fixtures say."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from tacit.testing.host_contract import Expected

FOLDER = Path(__file__).parents[1] / "fixtures" / "transcripts"
PROMPTS = (
    "Build the package of this project.",
    "No, do not invent a version: always read it from the VERSION file.",
)


class Sample(NamedTuple):
    """A folder among the fixtures, and what its expected.json says of it."""

    folder: str
    file: str
    """The session's file, or the database, below home."""
    session: str
    model: str
    kinds: tuple[str, ...]
    ended: tuple[str, ...]
    """What its hooks said had ended, in order."""

    def hook_calls(self) -> list[dict[str, Any]]:
        """What its hooks really got."""
        text = (FOLDER / self.folder / "hook_calls.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


def _samples() -> dict[str, Sample]:
    found = {}
    for file in sorted(FOLDER.glob("*/expected.json")):
        said = json.loads(file.read_text())
        kinds, ended = tuple(said["kinds"]), tuple(said["ended"])
        found[said["host"]] = Sample(
            file.parent.name, said["file"], said["session"], said["model"], kinds, ended
        )
    return found


REAL = _samples()
"""By host. The folders are the table: a host is added by adding its folder."""
LINES = tuple(host for host, sample in REAL.items() if sample.file.endswith(".jsonl"))


def file_of(host: str) -> Path:
    """The real session file, or database, of `host`."""
    return FOLDER / REAL[host].folder / "home" / REAL[host].file


def copy_of(host: str, folder: Path) -> Path:
    """A copy of it that may be written."""
    return Path(shutil.copyfile(file_of(host), folder / file_of(host).name))


def expected(host: str) -> Expected:
    """What every reading of that session must give."""
    return Expected(
        session=REAL[host].session,
        project="/home/dev/demo",
        prompts=PROMPTS,
        kinds=REAL[host].kinds,
        failures=1,
        texts=6,
        output_tokens=120,
        model=REAL[host].model,
        error="KeyError: 'VERSION'",
    )
