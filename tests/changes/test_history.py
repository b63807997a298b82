"""History: a commit a change, in git's own format, found again by skill, change and version."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base.errors import Damaged, NotFound
from tacit.changes.change import Create, Edit, File, Rename, new_change_id
from tacit.changes.git_store import (
    EMPTY_TREE,
    Objects,
    RefUpdate,
    quote_name,
    ref_part,
    tree_id,
    unquote_name,
)
from tacit.changes.history import History, Record, ref_updates
from tacit.changes.place import Place

NAMES = st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="/\0"), min_size=1, max_size=12
).filter(lambda name: name not in (".", "..", ".git"))
FILES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join),
    st.builds(File, st.binary(max_size=200), st.sampled_from(["file", "program", "link"])),
    max_size=8,
)


def git(folder: str, *arguments: str) -> str:
    done = subprocess.run(
        ["git", f"--git-dir={folder}", *arguments], capture_output=True, check=True
    )
    return done.stdout.decode()


@settings(max_examples=40, deadline=None)
@given(FILES)
def test_files_survive_git(tmp_path: Path, files: dict[str, File]) -> None:
    """Any files are read back from the store as they were, under the id that was foretold."""
    kept = {
        path: file
        for path, file in files.items()
        if not any(other.startswith(path + "/") for other in files)
    }
    objects = Objects(str(tmp_path / "x.git"))
    objects.make()
    oid = objects.write_tree(kept)
    assert oid == tree_id(kept)
    assert objects.read_tree(oid) == kept


def test_empty_tree_is_gits() -> None:
    """The id of no files is the one that git gives them."""
    assert tree_id({}) == EMPTY_TREE


def test_git_reads_what_was_written(kit: Any) -> None:
    """Git's own check finds no fault, and its log shows author, reason and trailers."""
    kit.create("notes", scripts__run=b"ls\n", **{"a__b": b"x", "a-c": b"y"})
    verdict = kit.propose(
        "notes",
        Edit("step by step", "at once"),
        reason="It took\ntoo long.\n\nTacit-Actor: forged",
        evidence=("trace-1",),
        overrides=("nothing",),
    )
    folder = kit.history.folder
    git(folder, "fsck", "--strict")
    text = git(
        folder, "log", "-1", "--format=%an%n%B%n%(trailers:key=Tacit-Actor)", verdict.version
    )
    assert text.startswith("user\nedit notes\n\nIt took\ntoo long.")
    assert text.rstrip().endswith("Tacit-Actor: user")
    assert git(folder, "ls-tree", "-r", "--name-only", verdict.version).split() == [
        "SKILL.md",
        "a-c",
        "a/b",
        "scripts/run",
    ]
    record = kit.history.head("notes").record
    assert record.actor == "user"
    assert record.reason == "It took\ntoo long.\n\nTacit-Actor: forged"
    assert record.evidence == ("trace-1",)


def test_users_git_is_not_needed_nor_heeded(
    kit: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No identity, and a hostile git configuration and environment, change nothing."""
    hook = home / "hooks"
    hook.mkdir()
    for name in ("pre-commit", "reference-transaction", "post-update"):
        (hook / name).write_text(f"#!/bin/sh\ntouch {home}/ran\n")
        (hook / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hook}\n\tautocrlf = true\n[user]\n\tuseConfigOnly = true\n"
    )
    monkeypatch.setenv("GIT_DIR", str(home / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(home / "index"))
    kit.create("notes", "one\r\n")
    assert kit.propose("notes", Edit("one", "two")).applied
    kit.history.pack()
    assert b"two\r\n" in kit.history.files(kit.history.head("notes"))["SKILL.md"].data
    assert not (home / "ran").exists()
    assert not (home / "elsewhere").exists()


def test_packed_history_is_read_and_continued(kit: Any) -> None:
    """After git has packed objects and refs, everything is found and new changes go on top."""
    made = [kit.create(f"skill-{n}") for n in range(30)]
    kit.history.pack()
    objects = Path(kit.history.folder) / "objects"
    assert [p.name for p in objects.iterdir() if len(p.name) == 2] == []
    assert kit.history.head("skill-7").id == made[7].version
    assert kit.history.knows(made[3].change, "skill-3") == made[3].version
    assert kit.history.head("skill-99") is None
    assert kit.propose("skill-7", Edit("step by step", "x")).applied
    assert kit.kinds("skill-7") == ["create", "edit"]
    assert len(kit.history.skills()) == 30
    kit.history.refs.move((RefUpdate("refs/skills/skill-8", "", made[8].version),))
    assert kit.history.head("skill-8") is None
    git(kit.history.folder, "fsck", "--strict")


@given(st.text(max_size=80))
def test_ref_names_are_valid_and_apart(name: str) -> None:
    """Any name makes a ref that git accepts, differs from others by more than case, and returns."""
    text = ref_part(name)
    assert text == text.lower()
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_%")
    assert len(text) <= 180
    assert unquote_name(quote_name(name)) == name
    assert text == quote_name(name) or "%%" in text


@settings(max_examples=60)
@given(
    st.dictionaries(st.text(st.sampled_from("ab-cz0"), min_size=1, max_size=4), st.integers(0, 15))
)
def test_packed_lookup_finds_exactly_what_is_there(names: dict[str, int]) -> None:
    """Looking a ref up by halving gives what a scan of the whole file would."""
    import mmap
    import tempfile

    from tacit.changes.git_store import _bisect

    lines = [f"{number:040x} refs/skills/{name}" for name, number in sorted(names.items())]
    text = "# pack-refs with: peeled fully-peeled sorted \n" + "".join(
        f"{line}\n" for line in lines
    )
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as packed:
            for name, number in names.items():
                assert _bisect(packed, f"refs/skills/{name}".encode()) == f"{number:040x}"
            for missing in ("", "a-missing", "zzzzz"):
                assert _bisect(packed, f"refs/skills/{missing}".encode()) == ""


def test_ref_moves_only_from_where_it_was(kit: Any) -> None:
    """A ref that points elsewhere than expected is not moved; one that is there already is fine."""
    made = kit.create("notes")
    name = "refs/skills/notes"
    kit.history.refs.move((RefUpdate(name, made.version, "0" * 40),))
    with pytest.raises(Damaged, match="instead of"):
        kit.history.refs.move((RefUpdate(name, "1" * 40, "2" * 40),))


def test_damage_is_named(kit: Any) -> None:
    """A missing or broken object is an error that says where, not a wrong answer."""
    verdict = kit.create("notes")
    path = Path(kit.history.folder) / "objects" / verdict.version[:2] / verdict.version[2:]
    path.write_bytes(b"nonsense")
    with pytest.raises(Damaged, match=verdict.version[:12]):
        kit.history.head("notes")
    path.unlink()
    with pytest.raises(Damaged):
        kit.history.head("notes")


def test_log_and_latest(kit: Any) -> None:
    """The log of a skill follows its renames; the log of all has the newest first."""
    kit.create("notes")
    kit.create("other")
    kit.propose("notes", Edit("step by step", "x"))
    kit.propose("notes", Rename("memo"))
    assert kit.kinds("memo") == ["create", "edit", "renamed", "rename"]
    latest = kit.history.latest(3)
    assert [version.record.kind for version in latest][-1] == "edit"
    assert {version.record.skill for version in latest[:2]} == {"notes", "memo"}
    with pytest.raises(NotFound):
        kit.history.find_change("nope")


def test_each_skill_has_a_history_of_its_own(kit: Any) -> None:
    """A change writes as many objects in a place with many skills as in one with few."""

    def objects() -> int:
        folder = Path(kit.history.folder) / "objects"
        return sum(len(os.listdir(p)) for p in folder.iterdir() if len(p.name) == 2)

    kit.create("first")
    before = objects()
    assert kit.propose("first", Edit("step by step", "a")).applied
    few = objects() - before
    for number in range(30):
        kit.create(f"more-{number}")
    before = objects()
    assert kit.propose("first", Edit("Do it a", "Do it b")).applied
    assert objects() - before == few == 3  # a blob, a tree, a commit


def test_two_places_do_not_share_a_history(tmp_path: Path) -> None:
    """Places with the same last folder have ids of their own; one place by two paths has one."""
    (tmp_path / "a" / "skills").mkdir(parents=True)
    (tmp_path / "b" / "skills").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    one, two = Place(str(tmp_path / "a" / "skills")), Place(str(tmp_path / "b" / "skills"))
    assert one.id != two.id
    assert Place(str(tmp_path / "link" / "skills")).id == one.id


def test_odd_skill_names_in_records(tmp_path: Path, kit: Any) -> None:
    """A folder with spaces, capitals or line ends in its name has a history like any other."""
    from datetime import UTC, datetime

    history = History(Place(str(tmp_path)), str(tmp_path / "data"))
    for name in ("My Skill", "MY SKILL", "line\nend", "ünï/cödé", "a:b", "技" * 64):
        record = Record(
            skill=name, kind="baseline", actor="user", change=new_change_id(), state="live",
            was="none", partner="X:y z",
        )  # fmt: skip
        version = history.commit(record, {"SKILL.md": File(b"x")}, (), datetime.now(UTC))
        history.refs.move(ref_updates([version], ""))
        found = history.head(name)
        assert found is not None
        assert (found.record.skill, found.record.partner) == (name, "X:y z")
    assert "技" * 64 in history.skills()
    assert len(history.skills()) == 6
    git(history.folder, "fsck", "--strict")


def test_create_after_delete_continues_the_history(kit: Any) -> None:
    """A name that is used again keeps the history of what was there before."""
    from tacit.changes.change import Delete

    kit.create("notes", "old\n")
    kit.propose("notes", Delete())
    assert kit.propose("notes", Create({"SKILL.md": kit.md("notes", "new\n")})).applied
    assert kit.kinds("notes") == ["create", "delete", "create"]


def test_a_half_made_git_directory_is_an_empty_history(kit) -> None:
    """A kill while the first version was written leaves nothing that a reader stumbles over."""
    (Path(kit.history.folder) / "objects").mkdir(parents=True)
    assert kit.history.pinned() == []
    assert kit.history.latest(5) == []
    kit.history.pack()
    kit.create("one")
    assert kit.history.skills() == ["one"]
