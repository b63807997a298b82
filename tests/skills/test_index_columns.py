"""Rows of the index as columns, and precedence by columns alone."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.base import marshal_cache, paths
from tacit.skills import index, index_builder
from tacit.skills.index import Columns, Row, Snapshot
from tacit.skills.scopes import (
    ACTIVE,
    REPEATED,
    SHADOWED,
    UNTRUSTED,
    Root,
    rank_skills,
    skill_states,
)

_TEXT = st.text(st.characters(exclude_characters="/\x00"), min_size=1, max_size=8)
_NUMBER = st.integers(0, 2**64 - 1)
_ROWS = st.lists(
    st.tuples(
        st.lists(_TEXT, min_size=1, max_size=3).map("/".join),
        st.sampled_from(["SKILL.md", "skill.md"]),
        _TEXT,
        st.text(max_size=20),
        _TEXT,
        st.integers(0, 3),
        st.lists(_TEXT, max_size=2).map(tuple),
        st.sampled_from(["", "/elsewhere/x"]),
        _TEXT,
        st.sampled_from(["", "error", "warning", "note"]),
        st.tuples(_NUMBER, _NUMBER, _NUMBER, _NUMBER),
        _TEXT,
    ),
    max_size=6,
)


@given(_ROWS)
def test_columns_give_the_rows_back(rows: list[Row]) -> None:
    """Rows survive being turned into columns, whatever their texts and numbers."""
    assert Columns.of(rows).rows() == rows


def test_numbers_out_of_range_never_match() -> None:
    """A time before 1970 or past 64 bits is kept as a number that differs from it."""
    stamp = (-5, 2**70 + 3, 10, 2**64)
    row = ("a", "SKILL.md", "a", "", "", 0, (), "", "", "", stamp, "")
    kept = Columns.of([row]).rows()[0][index.STAMP]
    assert [mine == theirs for mine, theirs in zip(kept, stamp, strict=True)] == [
        False,
        False,
        True,
        False,
    ]


def test_a_file_from_before_1970_is_read_again_and_found(home: Path) -> None:
    """A SKILL.md with a negative time stamp is indexed like any other."""
    file = _skill(home / "old")
    os.utime(file, (-1000, -1000))
    for _ in range(2):
        assert [row[index.NAME] for row in _load(home).rows] == ["old"]


def test_what_is_loaded_is_what_was_built(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot from the file has the rows, columns and links of the one that was saved; what
    cannot be read is known too, and a SKILL.md that is a link by where it leads."""
    monkeypatch.setattr(marshal_cache, "_RACY_NS", -60 * 10**9)  # believe new files
    root, outside = home / "skills", home / "elsewhere" / "b"
    _skill(root / "a")
    file = _skill(outside)
    (root / "c").symlink_to(outside)
    for name in ("d", "e"):
        (root / name).mkdir()
    (root / "d" / "SKILL.md").symlink_to(file)
    os.mkfifo(root / "e" / "SKILL.md")
    built = _load(root)
    monkeypatch.setattr(index_builder, "read_row", None)  # whoever reads a skill again fails
    loaded = _load(root)
    real = {row[index.FOLDER]: row[index.REAL] for row in loaded.rows}
    assert real == {"a": "", "c": str(outside), "d": str(outside), "e": ""}
    assert loaded.rows == built.rows
    assert loaded.columns.content == built.columns.content


def test_order_after_an_edit_is_that_of_a_new_index(home: Path) -> None:
    """A skill that is edited keeps its place; one that is renamed goes to its new place."""
    for name in ("a", "b", "c"):
        _skill(home / name)
    _load(home)
    (home / "b" / "SKILL.md").write_text("---\nname: b\ndescription: Another.\n---\n")
    assert [row[index.NAME] for row in _load(home).rows] == ["a", "b", "c"]
    (home / "a" / "SKILL.md").write_text("---\nname: d\ndescription: Renamed.\n---\n")
    refreshed = _load(home)
    assert [row[index.NAME] for row in refreshed.rows] == ["b", "c", "d"]
    assert refreshed.rows == index_builder.build(str(home)).rows


def test_states_agree_with_rank_across_roots(tmp_path: Path) -> None:
    """A link to a skill of an earlier root is the same skill; another of that name is shadowed."""
    first, second, third = tmp_path / "first", tmp_path / "second", tmp_path / "third"
    _skill(first / "a")
    _skill(second / "b")
    (second / "linked").symlink_to(first / "a")
    _skill(third / "a")
    snapshots = _snapshots(first, second, third)
    assert skill_states(snapshots) == [[ACTIVE], [REPEATED, ACTIVE], [SHADOWED]]
    ranked, also = rank_skills(snapshots)
    assert [(row[index.FOLDER], state) for _, row, state, _ in ranked] == [
        ("a", ACTIVE),
        ("b", ACTIVE),
        ("a", SHADOWED),
    ]
    assert also == {str(first / "a"): [str(second / "linked")]}


@pytest.mark.parametrize("linked", [False, True])
def test_a_root_inside_another_is_noticed(tmp_path: Path, linked: bool) -> None:
    """Skills of a root that lies in another root, or is a link to it, are listed once."""
    _skill(tmp_path / "outer" / "inner" / "a")
    inner = tmp_path / "outer" / "inner"
    if linked:
        (tmp_path / "link").symlink_to(inner)
        inner = tmp_path / "link"
    assert skill_states(_snapshots(tmp_path / "outer", inner)) == [[ACTIVE], [REPEATED]]


def test_the_untrusted_take_no_name(tmp_path: Path) -> None:
    """A skill of a root that is not trusted leaves its name to a later one that is."""
    _skill(tmp_path / "theirs" / "a")
    _skill(tmp_path / "mine" / "a")
    snapshots = _snapshots(tmp_path / "theirs", tmp_path / "mine")
    snapshots[0][0].trusted = False
    assert skill_states(snapshots) == [[UNTRUSTED], [ACTIVE]]


def _skill(folder: Path) -> Path:
    folder.mkdir(parents=True)
    file = folder / "SKILL.md"
    file.write_text(f"---\nname: {folder.name}\ndescription: About {folder.name}.\n---\n")
    return file


def _load(root: Path) -> Snapshot:
    return index.load(str(root), paths.folders().cache)


def _snapshots(*roots: Path) -> list[tuple[Root, Snapshot]]:
    return [(Root(str(root), "user", "agents"), _load(root)) for root in roots]
