"""Standings: kept by version, shown by `tacit list`, and used by the catalogue's order."""

import os
from pathlib import Path

import pytest

from tacit.base import paths
from tacit.skills.catalogue import CatalogueOrder, CatalogueRow, make_catalogue
from tacit.skills.library import Library
from tacit.skills.standing import (
    UNTRIED,
    read_standings,
    standing_of,
    standings_in,
    write_standing,
)
from tacit.ui.cli import fast


def skill(home: Path, name: str, text: str = "x") -> None:
    folder = home / ".agents" / "skills" / name
    folder.mkdir(parents=True, exist_ok=True)
    head = f"---\nname: {name}\ndescription: What {name} does.\n---\n\n"
    (folder / "SKILL.md").write_text(f"{head}{text}\n")


def test_the_last_word_on_a_version_counts(home: Path) -> None:
    assert standing_of("notes", "d1") == (UNTRIED, "")
    write_standing("notes", "d1", "no difference", "+0 points")
    write_standing("notes", "d1", "helps", "+30 points\tin 9\npairs")
    write_standing("notes", "d2", "harms", "-30 points")
    assert standing_of("notes", "d1") == ("helps", "+30 points in 9 pairs")
    assert len(read_standings()) == 2


def test_a_broken_file_is_no_standing(home: Path) -> None:
    paths.make_private(paths.folders().data)
    Path(paths.folders().data, "standings").write_bytes(b"half a line\n\xff\xfe")
    assert read_standings() == {}
    Path(paths.folders().data, "standings").write_text("half\na\tb\thelps\tc\n")
    assert read_standings() == {("a", "b"): ("helps", "c")}


def test_a_version_that_was_edited_since_is_untried(home: Path) -> None:
    skill(home, "notes")
    entry = Library().get("notes")
    write_standing("notes", entry.digest, "helps", "+30 points")
    assert standings_in(Library().snapshots) == {"notes": "helps"}
    skill(home, "notes", "other and longer")
    assert standings_in(Library().snapshots) == {}


def test_what_helps_is_offered_first_and_what_harms_last() -> None:
    rows = [CatalogueRow(name, "d", "user") for name in ("a", "b", "c", "d")]
    rows.append(CatalogueRow("z", "d", "project"))
    tried = {"d": "helps", "a": "harms", "b": "no difference", "z": "harms"}
    order = CatalogueOrder(recent=("a", "b"), standings=tried)
    assert make_catalogue(rows, 8000, order).shown == ("z", "d", "c", "b", "a")


def test_the_list_for_people_shows_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("notes", "tests", "other"):
        skill(home, name)
        write_standing(name, Library().get(name).digest, "harms", "")
    write_standing("notes", Library().get("notes").digest, "helps", "")
    skill(home, "other", "changed since then")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    fast._list_skills(os.getcwd())
    shown = capsys.readouterr().out
    assert "[helps] What notes does." in shown
    assert "[harms] What tests does." in shown
    assert "] What other does." not in shown
