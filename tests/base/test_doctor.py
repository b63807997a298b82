"""What `tacit doctor` asks of the lowest layer."""

import os
import time
from pathlib import Path

import pytest

from tacit.base import database, doctor, paths, trust
from tacit.base.doctor import check_config, check_folders, check_leftovers, check_trust


@pytest.fixture
def data(home: Path) -> Path:
    folder = Path(paths.folders().data)
    folder.mkdir(parents=True, mode=0o700)
    return folder


def test_a_fresh_home_is_healthy() -> None:
    """No folder yet is nothing wrong."""
    assert [finding for check in doctor.BASE_CHECKS for finding in check()] == []


def test_checks_change_nothing(home: Path) -> None:
    """Looking creates no folder and no file."""
    for check in doctor.BASE_CHECKS:
        check()
    assert [entry.name for entry in home.iterdir()] == ["work"]


def test_a_bad_config_is_found(home: Path) -> None:
    """It can only be mended by its owner."""
    file = Path(paths.folders().config_file)
    file.parent.mkdir(parents=True)
    file.write_text("x = [")
    (found,) = check_config()
    assert (found.code, found.repair) == ("config", None)
    assert str(file) in found.what


def test_a_folder_open_to_others_is_closed(data: Path) -> None:
    """Mending takes all rights of others away, and twice is the same as once."""
    data.chmod(0o777)
    (found,) = check_folders()
    assert found.repair is not None
    found.repair()
    found.repair()
    assert data.stat().st_mode & 0o777 == 0o700
    assert check_folders() == []


def test_a_file_in_place_of_a_folder_is_found(home: Path) -> None:
    """Also a link that leads nowhere; neither is touched."""
    own = paths.folders()
    for path in (own.data, own.cache):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(own.data).write_text("")
    Path(own.cache).symlink_to("nowhere")
    assert [(f.code, f.repair) for f in check_folders()] == [("folder", None), ("folder", None)]


def test_old_leftovers_are_deleted_and_new_ones_left(data: Path) -> None:
    """A file that is being written right now is not a leftover; others' files are not ours."""
    old, new = data / ".x.0123456789ab.tmp", data / "deep" / ".y.0123456789ab.tmp"
    other = data / "notes.tmp"
    new.parent.mkdir()
    for path in (old, new, other):
        path.write_text("")
    os.utime(old, (time.time() - 100,) * 2)
    os.utime(other, (time.time() - 100,) * 2)
    (found,) = check_leftovers()
    assert str(old) in found.what
    assert found.repair is not None
    found.repair()
    found.repair()
    assert not old.exists()
    assert new.exists()
    assert other.exists()


def test_trust_in_what_is_gone_is_taken_back(home: Path) -> None:
    """Only that line goes."""
    for name in ("stays", "goes"):
        (home / name).mkdir()
        trust.add(str(home / name))
    (home / "goes").rmdir()
    (found,) = check_trust()
    assert found.repair is not None
    found.repair()
    assert trust.trusted() == [str(home / "stays")]
    assert check_trust() == []


def test_trust_that_now_leads_through_a_link_can_be_mended(home: Path) -> None:
    """Mending helps also where the path above has become a link to elsewhere."""
    (home / "a" / "b").mkdir(parents=True)
    trust.add(str(home / "a" / "b"))
    (home / "a" / "b").rmdir()
    (home / "a").rename(home / "moved")
    (home / "a").symlink_to("moved")
    (found,) = check_trust()
    assert found.repair is not None
    found.repair()
    assert check_trust() == []


def test_a_damaged_database_is_put_aside(home: Path) -> None:
    """A broken tacit.db is found, --fix puts it aside with nothing deleted, and a new one works."""
    connection = database.connect()
    connection.execute("CREATE TABLE t (x TEXT)")
    connection.executemany("INSERT INTO t VALUES (?)", [("a" * 500,)] * 200)
    connection.close()
    assert doctor.check_database() == []
    path = Path(database.default_path())
    data = bytearray(path.read_bytes())
    data[4096:20000] = b"\xff" * (20000 - 4096)
    path.write_bytes(data)
    found = doctor.check_database()
    assert [finding.code for finding in found] == ["database"]
    assert found[0].repair is not None
    found[0].repair()
    assert doctor.check_database() == []
    assert list(path.parent.glob("tacit.db.damaged-*"))
