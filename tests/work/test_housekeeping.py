"""Once a day the worker packs histories, drops old sessions and makes a backup."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit.base import paths
from tacit.base.setting_sections import Settings, TraceSettings
from tacit.changes import journal
from tacit.changes.change import Create, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import user_place
from tacit.traces.store import Store
from tacit.traces.trace import Head, Trace, Turn
from tacit.work import backup, worker
from tacit.work.housekeeping import keep_house
from tacit.work.presence import log_file


@pytest.fixture
def used(home: Path) -> Path:
    files = {"SKILL.md": b"---\nname: notes\ndescription: What it is for.\n---\n\n1. Go.\n"}
    made = Gate([user_place()]).propose(make_change("notes", Create(files), actor="user"))
    assert made.applied
    return home


def packs() -> list[Path]:
    return list(Path(paths.folders().data, "history").glob("*.git/objects/pack/*.pack"))


def test_once_a_day(used: Path) -> None:
    """A second round on the same day does nothing; one after a clock that was set back does."""
    assert keep_house(Settings, now=1_800_000_000)
    assert not keep_house(Settings, now=1_800_003_600)
    assert keep_house(Settings, now=1_800_090_000)
    assert keep_house(Settings, now=1_700_000_000)
    assert os.listdir(backup.backups_folder())


def test_nothing_to_keep(home: Path) -> None:
    """Where Tacit was never used nothing is made."""
    assert not keep_house(Settings)
    assert not Path(paths.folders().data).exists()


def test_histories_with_many_objects_are_packed(
    used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few stay as they are."""
    keep_house(Settings, now=1_800_000_000)
    assert packs() == []
    monkeypatch.setattr(journal, "_MANY", 1)
    monkeypatch.setattr("tacit.changes.git_store.Objects.count_loose", lambda self: 3)
    keep_house(Settings, now=1_800_100_000)
    assert len(packs()) == 1
    history = Gate([user_place()]).open_place().history
    assert [version.record.kind for version in history.log("notes")] == ["create"]


def test_old_sessions_go(used: Path) -> None:
    """By the setting, and by no other hand than the worker's."""
    old = datetime.now(UTC) - timedelta(days=40)
    head = Head(host="codex", session="s1", project="/p", source="", started=old, ended=old)
    with Store.open() as store:
        store.write(Trace(head, ()))
    keep_house(lambda: Settings(traces=TraceSettings(keep_days=60)), now=1_800_000_000)
    with Store.open() as store:
        assert sum(store.counts().values()) == 1
    keep_house(lambda: Settings(traces=TraceSettings(keep_days=30)), now=1_800_100_000)
    with Store.open() as store:
        assert sum(store.counts().values()) == 0


def test_one_step_that_fails_keeps_no_other_from_it(
    used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is logged, and the worker goes on."""

    def broken(data: str) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tacit.changes.journal.pack_histories", broken)
    assert keep_house(Settings, now=1_800_000_000)
    assert "histories are not packed" in Path(log_file()).read_text()
    assert os.listdir(backup.backups_folder())


def test_the_worker_does_it(used: Path) -> None:
    """A worker that has nothing to do keeps house before it goes."""
    worker.work(quiet=0.0, idle=0.0)
    assert os.listdir(backup.backups_folder())


def test_sessions_stored_under_fewer_rules_are_redacted_again(used: Path) -> None:
    """A day's round takes out of stored sessions what the rules of today know; not if it is off."""
    turn = Turn(0, "the password is Vw9-kelp!Rq2")
    with Store.open(redact=lambda text: (text, {})) as store:
        store.write(Trace(Head("test", "s"), (turn,)))
    keep_house(lambda: Settings(traces=TraceSettings(redact=False)), now=1_800_000_000)
    with Store.open() as store:
        assert "kelp" in repr(store.trace("test:s"))
    keep_house(Settings, now=1_800_100_000)
    with Store.open() as store:
        assert store.trace("test:s").turns[0].prompt == "the password is [redacted: password]"
