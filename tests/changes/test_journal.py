"""The journal: what was interrupted is finished or taken back; what moved on is noticed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.changes import change_checks, journal
from tacit.changes.change import Archive, Edit, MergeInto, Rename
from tacit.changes.containment import open_root
from tacit.changes.gate import Gate
from tacit.changes.journal import Journal, JournalEntry, Move
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.place import Place


class Stop(BaseException):
    """Ends a change in the middle as a kill would: nothing catches it to clean up."""


def interrupt(kit: Any, monkeypatch: pytest.MonkeyPatch, *change: Any) -> None:
    """Make a change whose folders move, and stop before its refs do."""

    def stop(*_: Any) -> None:
        raise Stop

    monkeypatch.setattr(type(kit.history.refs), "move", stop)
    monkeypatch.setattr(journal, "_revert", lambda *_: None)
    with pytest.raises(Stop):
        kit.propose(*change)
    monkeypatch.undo()


def test_finished_when_the_folder_had_moved(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change whose folder is in place gets its history the next time anybody looks."""
    kit.create("notes")
    interrupt(kit, monkeypatch, "notes", Edit("step by step", "at once"))
    assert kit.kinds("notes") == ["create"]
    codes = [found.code for found in change_checks.check_changes(kit.gate)]
    assert codes == ["interrupted-change"]
    assert kit.propose("notes", Edit("at once", "later")).applied
    assert kit.kinds("notes") == ["create", "edit", "edit"]
    assert [f.what for f in change_checks.check_changes(kit.gate)] == []


def test_doctor_mends_an_interrupted_change(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What doctor finds it can mend, and then finds nothing."""
    kit.create("one")
    kit.create("two")
    interrupt(kit, monkeypatch, "one", MergeInto("two", (Edit("step by step", "x"),)))
    (found,) = change_checks.check_changes(kit.gate)
    found.repair()
    assert [f.what for f in change_checks.check_changes(kit.gate)] == []
    assert kit.kinds("one") == ["create", "archive"]
    assert kit.kinds("two") == ["create", "edit"]


def test_hand_edit_after_the_kill_is_kept(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who edits between the kill and the recovery loses nothing."""
    kit.create("notes")
    interrupt(kit, monkeypatch, "notes", Edit("step by step", "at once"))
    path = kit.root / "notes" / "SKILL.md"
    path.write_text(path.read_text() + "by hand\n")
    kit.opened.recover()
    assert kit.text("notes").endswith("at once.\nby hand\n")
    assert kit.gate.state_of("notes").head.record.kind == "hand"


def test_lost_objects_after_a_power_failure(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the commit of a finished change did not reach the disk, its folder still counts."""
    kit.create("notes")
    before = {p for p in Path(kit.history.folder, "objects").rglob("*") if p.is_file()}
    interrupt(kit, monkeypatch, "notes", Edit("step by step", "at once"))
    for path in Path(kit.history.folder, "objects").rglob("*"):
        if path.is_file() and path not in before:
            path.unlink()
    assert kit.opened.recover() == []
    assert "at once" in kit.text("notes")
    assert [f.what for f in change_checks.check_changes(kit.gate)] == []
    assert kit.propose("notes", Edit("at once", "later")).applied
    assert kit.kinds("notes") == ["create", "hand", "edit"]


def _killed_between_the_moves(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rename of notes to memo that ended after the first of its two moves."""
    original, calls = journal.rename_to_free, []

    def second_fails(*args: Any) -> None:
        calls.append(args)
        if len(calls) == 2:
            raise Stop
        original(*args)

    monkeypatch.setattr(journal, "_revert", lambda *_: None)
    monkeypatch.setattr(journal, "rename_to_free", second_fails)
    with pytest.raises(Stop):
        kit.propose("notes", Rename("memo"))
    monkeypatch.undo()


def test_half_a_rename_is_finished(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill between the two moves of a rename leaves one skill, not none and not two."""
    kit.create("notes")
    _killed_between_the_moves(kit, monkeypatch)
    assert kit.names() == []
    kit.opened.recover()
    assert kit.names() == ["memo"]
    assert kit.kinds("memo")[-1] == "rename"


def test_half_a_rename_whose_target_was_taken_is_reverted(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it cannot be finished any more, what was moved goes back."""
    kit.create("notes")
    _killed_between_the_moves(kit, monkeypatch)
    kit.by_hand("memo", "somebody else's\n")
    kit.opened.recover()
    assert kit.names() == ["memo", "notes"]
    assert kit.text("memo").endswith("somebody else's\n")
    assert kit.kinds("notes") == ["create"]
    assert [f.what for f in change_checks.check_changes(kit.gate)] == []


@pytest.mark.parametrize("operation", [Edit("step by step", "x"), Rename("memo"), Archive()])
def test_without_the_system_call(operation: Any, kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system cannot exchange two names, plain renames do the same."""
    monkeypatch.setattr(journal, "_system_call", lambda: None)
    kit.create("notes", scripts__run=b"ls\n")
    assert kit.propose("notes", operation).applied
    assert [f.what for f in change_checks.check_changes(kit.gate)] == []
    (kit.root / "a").mkdir()
    (kit.root / "b").mkdir()
    with open_root(kit.place) as root, pytest.raises(FileExistsError):
        journal.rename_to_free(root.fd, "a", root.fd, "b")


def test_broken_entry_is_put_aside(kit: Any) -> None:
    """An entry that makes no sense stops nobody: it is put aside, and what was on the stage, which
    may be the only copy of something, is kept for a person to look at."""
    kit.create("notes")
    folder = Path(kit.opened.journal.folder)
    entry = folder / "20260101-000000000-00000000.json"
    entry.write_text("{")
    (kit.root / ".tacit-stage" / "x" / "0").mkdir(parents=True)
    (found,) = change_checks.check_changes(kit.gate)
    assert found.code == "broken-journal"
    assert kit.propose("notes", Edit("step by step", "x")).applied
    assert not entry.exists()
    (kept,) = change_checks.check_changes(kit.gate)
    (aside,) = kit.root.glob(".tacit-stage-kept-*")
    assert kept.code == "kept-stage"
    assert str(aside) in kept.what
    assert (aside / "x" / "0").is_dir()
    shutil.rmtree(aside)
    entry.write_text("{")
    (found,) = change_checks.check_changes(kit.gate)
    found.repair()
    assert [f.what for f in change_checks.check_changes(kit.gate)] == []


def test_leftovers_are_found_and_removed(kit: Any) -> None:
    """What a kill left on the stage or half written is found, and removed by the next change."""
    kit.create("notes")
    (kit.root / ".tacit-stage" / "x" / "0").mkdir(parents=True)
    (Path(kit.history.folder) / "tmp" / "half").write_bytes(b"x")
    codes = {found.code for found in change_checks.check_changes(kit.gate)}
    assert codes == {"left-on-stage", "left-temporary"}
    assert kit.propose("notes", Edit("step by step", "x")).applied
    assert [f.what for f in change_checks.check_changes(kit.gate)] == []


def test_entries_survive_json(tmp_path: Path) -> None:
    """An entry is read back as it was written, and finishing twice is finishing once."""
    journal = Journal(str(tmp_path / "journal"))
    move = Move("swap", "a", "b", 7, "0" * 40)
    entry = JournalEntry("20260101-000000000-00000000", "/root", "notes", (move,), ())
    assert journal.entries() == []
    journal.write(entry)
    assert journal.entries() == [entry]
    journal.finish(entry)
    journal.finish(entry)
    assert journal.entries() == []


def test_recovery_of_a_place_that_is_gone(make_kit: Callable[..., Any]) -> None:
    """Recovering a place that was never made does not make it."""
    kit = make_kit(place=None)
    assert kit.opened.recover() == []
    assert not kit.root.exists()
    assert Place(str(kit.root)).real == str(kit.root)


HERE = Path(__file__).parent
# Every n-th call. TACIT_TEST_KILLS=1 tries them all (about 1,300 points, some minutes).
EVERY = os.environ.get("TACIT_TEST_KILLS", "6")
SCENARIOS = (
    "create-first", "learn", "lines", "edit", "edit-turns", "rename", "archive", "restore", "merge",
    "delete", "pin", "undo", "fact-create", "fact-replace", "fact-forget",
)  # fmt: skip


def some(*chosen: str) -> tuple[str, ...]:
    """These scenarios; all of them where every call is tried. scripts/test-faults does the rest."""
    return SCENARIOS if "TACIT_TEST_KILLS" in os.environ else chosen


@pytest.fixture
def fast_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: hundreds of kills force thousands of writes."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK):
        folder = Path(tempfile.mkdtemp(prefix="tacit-kill-", dir=memory))
        yield folder
        shutil.rmtree(folder, ignore_errors=True)
    else:
        yield tmp_path


def drive(program: str, scenario: str, folder: Path, *more: str) -> Any:
    """What a driver counted; it fails by itself where something is torn."""
    done = subprocess.run(
        [sys.executable, str(HERE / program), scenario, str(folder / "run"), *more],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "scenario", some("create-first", "learn", "lines", "edit-turns", "rename", "merge")
)
def test_kill_at_every_step(scenario: str, fast_folder: Path) -> None:
    """Killed before any call that touches the disk, a change is there whole or not at all,
    its history agrees, doctor finds nothing, and making it again makes it once."""
    counted = drive("kill_driver.py", scenario, fast_folder, EVERY)
    assert counted["points"] >= counted["calls"] // int(EVERY) - 3
    assert counted["points"] >= 8
    assert counted["old"] > 0
    assert counted["new"] > 0


@pytest.mark.parametrize("scenario", ["edit-turns", "rename"])
def test_swept_after_a_kill(scenario: str, fast_folder: Path) -> None:
    """The same where `git clean -fdx` removes the stage between the kill and the recovery."""
    counted = drive("kill_driver.py", scenario, fast_folder, EVERY, "swept")
    assert counted["old"] > 0
    assert counted["new"] > 0


@pytest.mark.parametrize("scenario", some("create-first", "edit", "fact-replace", "undo"))
def test_a_fault_at_every_call(scenario: str, fast_folder: Path) -> None:
    """Whichever call of the system fails, what is reported is there, now and after the next change,
    which works, and doctor finds nothing."""
    counted = drive("errno_driver.py", scenario, fast_folder, str(int(EVERY) * 2 - 1), "once")
    assert counted["landed"] > 0
    assert counted["failed"] > 0
    assert counted["unsure"] == 0  # a passing fault can always be taken back


@pytest.mark.parametrize("scenario", ["edit-turns", "learn"])
def test_a_disk_that_dies(scenario: str, fast_folder: Path) -> None:
    """When every call from one on fails, a report is true or says that it is not known, and all is
    well as soon as the disk works again."""
    counted = drive("errno_driver.py", scenario, fast_folder, str(int(EVERY) * 2 - 1), "on")
    assert min(counted["landed"], counted["failed"], counted["unsure"]) > 0


def test_fifty_processes_lose_nothing(tmp_path: Path) -> None:
    """Fifty processes each make a skill and add a line to one that they share: all of it lands."""
    done = subprocess.run(
        [sys.executable, str(HERE / "writers_driver.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == [0] * 50, done.stderr[-3000:]
    skills = tmp_path / "skills"
    text = (skills / "shared" / "SKILL.md").read_text()
    assert {f"line {n}" for n in range(50)} <= set(text.splitlines())
    assert all((skills / f"own-{n}" / "SKILL.md").exists() for n in range(50))
    gate = Gate([Place(str(skills))], neighbours=NoNeighbours(), data=str(tmp_path / "data"))
    history = gate.open_place().history
    log = list(history.log("shared"))
    assert [version.record.kind for version in log] == ["edit"] * 50 + ["create"]
    assert {version.record.reason for version in log[:-1]} == {f"writer {n}" for n in range(50)}
    assert len(history.skills()) == 51
    assert change_checks.check_changes(gate) == []


def test_killed_at_random(fast_folder: Path) -> None:
    """What was said to have landed is there, once, whenever the process is killed."""
    seed = "7"
    done = subprocess.run(
        [sys.executable, str(HERE / "random_kill_driver.py"), str(fast_folder / "run"), "12", seed],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout)["points"] == 12
