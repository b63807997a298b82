"""The library's part of `tacit doctor`."""

import os
from pathlib import Path

import pytest

from tacit.skills import index
from tacit.skills.library import Library
from tacit.skills.library_checks import LIBRARY_CHECKS, check_index, check_links, check_search


@pytest.fixture
def library(user_skills: Path, put) -> Library:
    """A library with one skill, both of its indexes built."""
    put(user_skills / "one", description="Zebras.")
    made = Library()
    made.search("zebras")
    return made


def test_all_is_well(library: Library) -> None:
    """A fresh library, and one that was used, have nothing wrong."""
    assert [finding for check in LIBRARY_CHECKS for finding in check()] == []


def test_looking_changes_nothing(home: Path, user_skills: Path) -> None:
    """No folder of the user's and no index is made by a check, at most the hosts' own cache."""
    for check in LIBRARY_CHECKS:
        check()
    assert {p.name for p in home.iterdir()} - {".cache"} == {".agents", "work"}
    assert not [path for path in home.glob(".cache/**/*") if path.suffix == ".idx"]


def test_a_damaged_index(library: Library, user_skills: Path) -> None:
    """It is found, named, deleted; twice is the same as once; then all is well and right."""
    file = Path(index.index_file(str(user_skills), library.cache))
    file.write_bytes(file.read_bytes()[:-3])
    (found,) = check_index()
    assert str(file) in found.what
    assert found.repair is not None
    assert file.exists()
    found.repair()
    found.repair()
    assert not file.exists()
    assert check_index() == []
    assert Library().find("one") is not None


def test_a_folder_called_like_an_index(library: Library) -> None:
    """Mending takes it away as well."""
    folder = Path(library.cache) / "index" / "0.idx"
    (folder / "x").mkdir(parents=True)
    (found,) = check_index()
    assert found.repair is not None
    found.repair()
    assert not folder.exists()


@pytest.mark.parametrize("damage", ["manifest", "meta.json", "*.store", "*.term"])
def test_a_damaged_search_index(library: Library, damage: str) -> None:
    """Whichever file it is; mending throws the index away, the next search makes it again."""
    (file,) = (Path(library.cache) / "search").glob(damage)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.unlink()
    file.write_bytes(data)
    (found,) = check_search()
    assert found.repair is not None
    found.repair()
    found.repair()
    assert check_search() == []
    assert [hit.entry.name for hit in Library().search("zebras")] == ["one"]


def test_links_to_nothing(library: Library, user_skills: Path) -> None:
    """They are the user's: named, and not removed for them."""
    (user_skills / "gone").symlink_to("nowhere")
    (found,) = check_links()
    assert str(user_skills / "gone") in found.what
    assert found.repair is None
    assert os.path.islink(user_skills / "gone")


def test_a_folder_in_the_settings_that_is_not_there(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The setting is named."""
    monkeypatch.setenv("TACIT_SKILLS_PATHS", str(tmp_path / "nowhere"))
    (found,) = check_links()
    assert str(tmp_path / "nowhere") in found.what


def test_a_broken_setting_is_another_checks_business(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing raises here."""
    monkeypatch.setenv("TACIT_SEARCH_LIMIT", "x")
    assert check_links() == []
