"""Backups hold all of it, are checked, and can be put back, here and elsewhere."""

import os
import shutil
import tarfile
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.base import paths, trust
from tacit.base.errors import Damaged, NotFound, Refused
from tacit.changes.change import Create, Edit, make_change
from tacit.changes.change_checks import check_changes
from tacit.changes.gate import Gate
from tacit.changes.place import Place, all_places, project_place, user_place
from tacit.traces.store import Store
from tacit.work import backup
from tacit.work.intake import open_store, sources, take_in
from tacit.work.presence import worker_lock

TRANSCRIPTS = Path(__file__).parent.parent / "fixtures" / "transcripts"


def md(name: str, body: str = "1. Do it.\n") -> bytes:
    return f"---\nname: {name}\ndescription: What {name} is for and when.\n---\n\n{body}".encode()


def made(place: Place, name: str, body: str = "1. Do it.\n") -> None:
    files = {"SKILL.md": md(name, body), "references/more.md": b"more\n"}
    verdict = Gate([place]).propose(make_change(name, Create(files), actor="user"))
    assert verdict.applied, verdict


@pytest.fixture
def used(home: Path) -> Path:
    """A home with skills of the user's and of a trusted project, settings and sessions."""
    (home / "work" / ".git").mkdir()
    trust.add(str(home / "work"))
    made(user_place(), "notes")
    made(project_place(), "release", "1. Tag it and push the tag.\n")
    (Path(user_place().root) / "notes" / "link").symlink_to("/nowhere")
    Path(paths.folders().config).mkdir(parents=True)
    Path(paths.folders().config_file).write_text('[agent]\nmodel = "openai:x"\n')
    shutil.copytree(TRANSCRIPTS / "claude" / "home", home, dirs_exist_ok=True)
    from tacit.base.setting_sections import TraceSettings

    with open_store(TraceSettings()) as store:
        take_in(store, sources())
    return home


def state() -> dict[str, Any]:
    with Store.open() as store:
        sessions = store.counts()
    found: dict[str, Any] = {"sessions": sessions, "trusted": trust.trusted()}
    for place, name in ((user_place(), "notes"), (project_place(), "release")):
        opened = Gate([place]).open_place()
        found[name] = Path(place.root, name, "SKILL.md").read_bytes()
        found[f"{name} log"] = [version.record.change for version in opened.history.log(name)]
    found["config"] = Path(paths.folders().config_file).read_text()
    return found


def test_put_back_after_the_loss_of_all(used: Path, tmp_path: Path) -> None:
    """Everything is as it was when it was saved, and what stood there is put aside."""
    before = state()
    file = str(tmp_path / "saved.tar.gz")
    contents = backup.make_backup(file)
    assert os.stat(file).st_mode & 0o777 == 0o600
    assert len(contents.sums) == len(backup.check_backup(file).sums)
    edit = Edit("Do it", "Leave it")
    assert Gate([user_place()]).propose(make_change("notes", edit, actor="user")).applied
    shutil.rmtree(Path(paths.folders().data) / "history")
    Path(paths.folders().config_file).unlink()
    _, aside = backup.restore_backup(file)
    assert state() == before
    assert os.readlink(Path(user_place().root, "notes", "link")) == "/nowhere"
    (before_it,) = [a for a in aside if a.startswith(user_place().root)]
    assert b"Leave it" in Path(before_it, "notes/SKILL.md").read_bytes()
    assert check_changes(Gate(all_places())) == []
    assert Gate([user_place()]).propose(make_change("notes", edit, actor="user")).applied


def test_in_another_home(used: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """History follows the skills of the user to a home with another name."""
    file = str(tmp_path / "saved.tar.gz")
    backup.make_backup(file)
    (tmp_path / "new" / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "new"))
    monkeypatch.chdir(tmp_path / "new" / "work")
    backup.restore_backup(file)
    opened = Gate([user_place()]).open_place()
    assert [version.record.kind for version in opened.history.log("notes")] == ["create"]
    assert Path(user_place().root, "notes", "SKILL.md").exists()


def test_while_changes_are_made(used: Path, tmp_path: Path) -> None:
    """A backup that is made while skills change holds each skill with the history that fits it."""
    stop = threading.Event()

    def change() -> None:
        gate, number = Gate([user_place()]), 0
        while not stop.is_set():
            number += 1
            old = "Do it." if number == 1 else f"Do it {number - 1} times."
            edit = Edit(old, f"Do it {number} times.")
            assert gate.propose(make_change("notes", edit, actor="user")).applied

    thread = threading.Thread(target=change)
    thread.start()
    try:
        files = [str(tmp_path / f"{n}.tar.gz") for n in range(3)]
        for file in files:
            backup.make_backup(file)
    finally:
        stop.set()
        thread.join()
    backup.restore_backup(files[-1])
    gate = Gate([user_place()])
    now = gate.state_of("notes")
    assert now.head is not None
    assert now.head.record.kind == "edit"  # and not by hand: the folder is what its history says
    assert check_changes(gate) == []


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_a_damaged_backup_is_not_put_back(at: float, used: Path, tmp_path: Path) -> None:
    """It is noticed before anything is touched."""
    file = tmp_path / "saved.tar.gz"
    backup.make_backup(str(file))
    before = state()
    data = bytearray(file.read_bytes())
    data[int(len(data) * at)] ^= 0xFF
    file.write_bytes(data)
    with pytest.raises(Damaged):
        backup.restore_backup(str(file))
    file.write_bytes(data[: int(len(data) * at)])
    with pytest.raises(Damaged):
        backup.restore_backup(str(file))
    with pytest.raises(NotFound):
        backup.restore_backup(str(tmp_path / "none"))
    assert state() == before


def test_paths_that_lead_out_are_refused(used: Path, tmp_path: Path) -> None:
    """A file that was made up cannot write elsewhere."""
    file = tmp_path / "evil.tar.gz"
    backup.make_backup(str(tmp_path / "good.tar.gz"))
    with tarfile.open(tmp_path / "good.tar.gz") as good, tarfile.open(file, "w:gz") as evil:
        for member in good:
            evil.addfile(member, good.extractfile(member) if member.isfile() else None)
        link = tarfile.TarInfo("config/../../out")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc"
        evil.addfile(link)
    with pytest.raises(Damaged, match="holds the path"):
        backup.restore_backup(str(file))


def test_a_link_through_a_link_is_refused(used: Path, tmp_path: Path) -> None:
    """A made-up file whose second link goes through its first writes nothing outside."""
    file = tmp_path / "evil.tar.gz"
    out = tmp_path / "out"
    out.mkdir()
    backup.make_backup(str(tmp_path / "good.tar.gz"))
    with tarfile.open(tmp_path / "good.tar.gz") as good, tarfile.open(file, "w:gz") as evil:
        for member in good:
            evil.addfile(member, good.extractfile(member) if member.isfile() else None)
        for name, target in (("config/x", str(out)), ("config/x/profile", "/tmp/evil")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            evil.addfile(link)
    with pytest.raises(Damaged, match="through a link"):
        backup.restore_backup(str(file))
    assert not list(out.iterdir())


def test_only_folders_of_skills_and_facts_are_put_back(used: Path, tmp_path: Path) -> None:
    """A made-up list cannot have any other folder of the home replaced."""
    (used / "bin").mkdir()
    (used / "bin" / "tool").write_text("mine")
    place = backup.SavedPlace("~/bin", "user", "", "skills")
    file = tmp_path / "evil.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        writer = backup._Writer(tar)
        writer.data("places/0/files/tool", b"theirs")
        contents = backup.Contents(0.0, False, (place,), dict(writer.sums))
        writer.data(backup.LIST, msgspec.json.encode(contents))
    with pytest.raises(Refused, match="~/bin"):
        backup.restore_backup(str(file))
    assert (used / "bin" / "tool").read_text() == "mine"


def test_not_while_a_worker_runs(
    used: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker would write into what was put aside."""
    file = str(tmp_path / "saved.tar.gz")
    backup.make_backup(file)
    monkeypatch.setattr(backup, "worker_lock", lambda: worker_lock(wait=0.0))
    with worker_lock(), pytest.raises(Refused, match="worker"):
        backup.restore_backup(file)


def test_daily_ones_are_small_and_kept_for_a_week(used: Path) -> None:
    """One a day, the last seven; sessions and history are not in them."""
    for day in range(10):
        backup.make_daily(1_800_000_000 + day * 86400)
        backup.make_daily(1_800_000_100 + day * 86400)
    names = sorted(os.listdir(backup.backups_folder()))
    assert len(names) == 7
    file = os.path.join(backup.backups_folder(), names[-1])
    contents = backup.check_backup(file)
    assert contents.small
    assert not [name for name in contents.sums if "history" in name]
    assert "data/tacit.db" in contents.sums
    with backup.latest_database() as kept:
        assert kept
    with pytest.raises(Refused, match="daily"):
        backup.restore_backup(file)


def test_what_is_the_users_own_in_a_project_that_is_not_trusted_is_saved(home: Path) -> None:
    """From whatever folder the backup is made."""
    clone = home / "clone"
    (clone / ".git").mkdir(parents=True)
    made(project_place(str(clone)), "release")
    assert str(clone / ".agents/skills") in [place.root for place in backup._places()]
