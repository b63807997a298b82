"""Whatever runs first, and whatever the user's umask is, what Tacit keeps is the user's alone."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ui"))

from inside import tacit

from tacit import hook
from tacit.base import paths
from tacit.work import presence

ABOUT = ("-d", "Shows a thing of the project. Use when the thing is asked for.", "--body", "Do it.")
TRANSCRIPTS = Path(__file__).parents[1] / "fixtures/transcripts/claude/home"
TRANSCRIPT = str(next(TRANSCRIPTS.rglob("*.jsonl")))
ROADS: dict[str, list[tuple[str, ...]]] = {
    "skills": [("new", "thing", *ABOUT), ("search", "thing"), ("archive", "thing")],
    "facts": [("memory", "add", "pm", "The project uses tabs."), ("memory",)],
    "sessions": [("import", TRANSCRIPT), ("learn", "--no-model")],
    "settings": [("config", "set", "search.limit", "5"), ("trust",)],
    "backups": [
        ("schedule", "add", "every day at 9", "say hi", "--name", "hi"),
        ("backup", "b.tar.gz"),
        ("restore-backup", "b.tar.gz", "--yes"),
    ],
    "the hook": [],
    "the log": [],
}


@pytest.fixture
def _open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.usefixtures("_open_umask")
def test_what_tacit_keeps_is_the_users_alone(
    home: Path, monkeypatch: pytest.MonkeyPatch, road: str
) -> None:
    """With an umask of 0, no file and no folder of its own can be read or written by others, while
    skills and facts go by the umask."""
    monkeypatch.setenv("TACIT_WORKER", "1")
    own = paths.folders()
    if road == "the hook":
        assert hook.record(own.data, b"tacit-event 1\n\n", b"{}")
    if road == "the log":
        presence.log("something")
    for words in ROADS[road]:
        assert tacit(*words).returncode in (0, 6), words
    tops = [top for top in (own.data, own.cache, own.config) if os.path.isdir(top)]
    found = [path for top in tops for path in (Path(top), *Path(top).rglob("*"))]
    assert found
    others = [f"{p.stat().st_mode:o} {p}" for p in found if p.stat().st_mode & 0o077]
    assert others == []
    users = [*home.glob(".agents/*/*/*.md"), *home.glob("work/.agents/*/*/*.md")]
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in users)
