"""A damaged history is found, and made again of all that can be read; what is lost is counted."""

import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.changes import change_checks
from tacit.changes.change import Edit, File, Pin


def begun(kit: Any, versions: int = 4) -> Any:
    """A kit with two skills that have some versions each, one of them pinned."""
    for name in ("notes", "other"):
        kit.create(name, "version 0\n", scripts__run=b"ls\n")
        for number in range(1, versions):
            assert kit.propose(name, Edit(f"version {number - 1}", f"version {number}")).applied
    assert kit.propose("other", Pin()).applied
    return kit


def mended(kit: Any) -> str:
    """Mend what is found until nothing is; what was said."""
    said = []
    for _ in range(3):
        found = change_checks.check_changes(kit.gate)
        if not found:
            return "; ".join(said)
        said += [str(finding.repair()) for finding in found]
    raise AssertionError([finding.what for finding in found])


def object_file(kit: Any, oid: str) -> Path:
    return Path(kit.history.folder, "objects", oid[:2], oid[2:])


def ref_files(kit: Any, below: str) -> list[Path]:
    return [path for path in Path(kit.history.folder, "refs", below).rglob("*") if path.is_file()]


def works(kit: Any) -> None:
    """Changes and undo go on."""
    opened = kit.gate.open_place()
    verdict = kit.propose("notes", Edit("version 3", "version 9"))
    assert verdict.applied
    assert kit.gate.undo(verdict.change, actor="user").applied
    assert kit.text("notes").endswith("version 3\n")
    assert [v.record.kind for v in opened.history.log("notes")][:2] == ["edit", "edit"]


DAMAGE: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "garbage": lambda path: path.write_bytes(b"\xff\x00" * 30),
    "zeros": lambda path: path.write_bytes(b"\0" * max(path.stat().st_size, 1)),
    "deleted": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("file", ["HEAD", "config"])
def test_head_and_config(damage: str, file: str, kit: Any) -> None:
    """They are the same for every history, so they are written again, and nothing is lost; the log
    works meanwhile."""
    begun(kit)
    DAMAGE[damage](Path(kit.history.folder, file))
    assert len(kit.history.latest(20)) == 9
    mended(kit)
    assert kit.kinds("notes") == ["create", "edit", "edit", "edit"]
    works(kit)


@pytest.mark.parametrize("file", ["HEAD", "objects/pack/*.idx", "SKILL.md"])
@pytest.mark.parametrize("full", [False, True])
def test_a_folder_in_a_files_place(file: str, full: bool, kit: Any) -> None:
    """It gives way, or is put aside with what is in it, and the file is there again."""
    begun(kit)
    kit.history.pack()
    skill = Path(kit.gate.open_place().real, "notes")
    (path,) = [skill / file] if file == "SKILL.md" else Path(kit.history.folder).glob(file)
    path.unlink()
    path.mkdir()
    if full:
        (path / "kept").write_text("something")
    assert " lost" not in mended(kit)
    kit.history = kit.gate.open_place().history
    assert path.is_file() or file.endswith(".idx")
    assert kit.kinds("notes")[:4] == ["create", "edit", "edit", "edit"]
    assert kit.text("notes").endswith("version 3\n")
    if full:
        assert [p.read_text() for p in Path(kit.history.folder).parents[2].rglob("kept")] == [
            "something"
        ]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("below", ["skills", "changes", "pinned"])
def test_refs(damage: str, below: str, packed: bool, kit: Any) -> None:
    """Refs are found again by what the commits say."""
    begun(kit)
    if packed:
        kit.history.pack()
        DAMAGE[damage](Path(kit.history.folder, "packed-refs"))
    else:
        for path in ref_files(kit, below):
            DAMAGE[damage](path)
    if below == "pinned" and damage == "deleted" and not packed:
        return  # as after an unpin: nothing can tell
    said = mended(kit)
    opened = kit.gate.open_place()
    assert " lost" not in said
    assert [v.record.kind for v in opened.history.log("notes")] == ["edit"] * 3 + ["create"]
    assert len(opened.history.latest(100)) == 9
    assert opened.history.is_pinned("other")
    works(kit)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_commit_in_the_middle(damage: str, kit: Any) -> None:
    """One version is lost, and said to be; those before and after it are kept."""
    begun(kit)
    second = list(kit.history.log("notes"))[2]
    DAMAGE[damage](object_file(kit, second.id))
    assert "1 version of 'notes' lost" in mended(kit)
    kit.history = kit.gate.open_place().history
    assert kit.kinds("notes") == ["create", "edit", "edit"]
    assert kit.kinds("other") == ["create", "edit", "edit", "edit", "pin"]
    works(kit)


def test_the_last_commit(kit: Any) -> None:
    """When the last version's commit is gone, what stands there counts as edited by hand."""
    begun(kit)
    object_file(kit, kit.history.head("notes").id).unlink()
    assert "1 version of 'notes' lost" in mended(kit)
    kit.history = kit.gate.open_place().history
    works(kit)
    assert kit.kinds("notes")[:4] == ["create", "edit", "edit", "hand"]


def test_files_that_still_stand_there(kit: Any) -> None:
    """The files of the last version come from its folder: nothing is lost."""
    begun(kit)
    objects = kit.history.objects
    (blob,) = [
        oid
        for oid in objects.ids()
        if b"notes does" in (data := zlib.decompress(object_file(kit, oid).read_bytes()))
        and b"version 3" in data
    ]
    object_file(kit, blob).unlink()
    assert " lost" not in mended(kit)
    kit.history = kit.gate.open_place().history
    assert kit.kinds("notes") == ["create", "edit", "edit", "edit"]
    works(kit)


@pytest.mark.parametrize("damage", ["emptied", "cut", "deleted"])
@pytest.mark.parametrize("ending", [".pack", ".idx"])
def test_a_pack(damage: str, ending: str, kit: Any) -> None:
    """Without its pack a history begins anew with what stands there, and it is said what is gone;
    an index is made again, and a pack of which only the checksum is gone is read."""
    begun(kit)
    kit.history.pack()
    (pack,) = Path(kit.history.folder, "objects", "pack").glob(f"*{ending}")
    pack.chmod(0o600)
    DAMAGE[damage](pack)
    is_readable = ending == ".idx" or damage == "cut"
    assert (" lost" in mended(kit)) != is_readable
    assert list(Path(kit.data, "history").glob("*.damaged-*"))
    kit.history = kit.gate.open_place().history
    assert len(kit.kinds("notes")) == (4 if is_readable else 0)
    works(kit)


def test_without_git(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it works where there is no git."""
    begun(kit)
    monkeypatch.setenv("PATH", "")
    assert shutil.which("git") is None
    assert change_checks.check_changes(kit.gate) == []
    object_file(kit, list(kit.history.log("notes"))[2].id).unlink()
    assert "1 version of 'notes' lost" in mended(kit)


def test_what_was_taken_back_stays_so(kit: Any) -> None:
    """A commit that never became a version, as of a change that failed, is none of the damage and
    does not become one by mending."""
    begun(kit)
    head = kit.history.head("notes")
    files = kit.history.files(head) | {"references/more.md": File(b"never")}
    record = head.record.__class__(
        **{field: getattr(head.record, field) for field in head.record.__struct_fields__}
        | {"change": "20990101-000000000-00000000"}
    )
    stray = kit.history.commit(record, files, (head.id,), head.at)
    assert change_checks.check_changes(kit.gate) == []
    DAMAGE["emptied"](ref_files(kit, "skills")[0])
    mended(kit)
    ids = [v.record.change for v in kit.gate.open_place().history.log("notes")]
    assert stray.record.change not in ids


def test_mended_history_is_gits(kit: Any) -> None:
    """Git finds no fault with what was made."""
    begun(kit)
    object_file(kit, list(kit.history.log("notes"))[2].id).unlink()
    mended(kit)
    folder = kit.gate.open_place().history.folder
    done = subprocess.run(["git", f"--git-dir={folder}", "fsck", "--strict"], capture_output=True)
    assert done.returncode == 0, done.stderr
