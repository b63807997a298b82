"""What `tacit doctor` asks of the lowest layer."""

import os
import time
from pathlib import Path

import pytest

from tacit.base import database, doctor, paths, trust
from tacit.base.doctor import check_config, check_folders, check_leftovers, check_trust
from tacit.base.errors import Damaged


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


def test_a_list_of_trust_that_was_cut(home: Path) -> None:
    """What is left of a path must not trust the folder above; it is found and taken out."""
    for name in ("one", "two"):
        (home / name / "sub").mkdir(parents=True)
        trust.add(str(home / name / "sub"))
    file = Path(trust.trust_file())
    whole = file.read_bytes()
    file.write_bytes(whole[: -len("/sub\n")])
    assert trust.trusted() == [str(home / "one" / "sub")]
    assert not trust.is_trusted(str(home / "two"))
    (found,) = check_trust()
    assert found.repair is not None
    found.repair()
    assert check_trust() == []
    assert trust.trusted() == [str(home / "one" / "sub")]
    for damage in (b"\0" * 40, b"\xff\xfe", b"no path\n"):
        file.write_bytes(whole + damage)
        assert len(trust.trusted()) == 2
        (found,) = check_trust()
        found.repair()
        assert check_trust() == []


def test_a_check_that_fails_is_a_finding() -> None:
    """The others look all the same, and the advice is never to run what runs."""

    def broken() -> list[doctor.Finding]:
        raise ValueError("odd")

    def damaged() -> list[doctor.Finding]:
        raise Damaged("the thing is damaged", "run: tacit doctor --fix")

    def refused() -> list[doctor.Finding]:
        raise PermissionError(13, "Permission denied", "/x")

    found = doctor.run_checks([broken, damaged, refused, lambda: [doctor.Finding("a", "b", "c")]])
    assert [row.code for row in found] == ["check", "damaged", "unwritable", "a"]
    assert not any("tacit doctor" in row.fix for row in found)


def test_a_database_that_was_lost_is_noticed(home: Path) -> None:
    """Emptied, deleted, or made anew by whoever came next."""
    assert doctor.database_trouble() == ""
    database.connect().close()
    assert doctor.database_trouble() == ""
    path = Path(database.default_path())
    path.write_bytes(b"")
    assert "began anew" in doctor.database_trouble()
    path.unlink()
    assert "is gone" in doctor.database_trouble()
    database.connect().close()
    assert "began anew" in doctor.database_trouble()
    path.write_bytes(b"\xff" * 5000)
    assert "damaged" in doctor.database_trouble()
