"""Packs and packed refs are read as git reads them."""

import io
import random
import subprocess
from pathlib import Path

import pytest

from tacit.changes.change import File
from tacit.changes.git_pack import packed_ids, read_packed
from tacit.changes.git_store import Objects, Refs, RefUpdate


def git(folder: str, *arguments: str, given: bytes = b"") -> bytes:
    words = ["git", f"--git-dir={folder}", *arguments]
    done = subprocess.run(words, input=given, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def packed(tmp_path: Path) -> Objects:
    """Many versions of a large file, which git stores as differences, and odd ones."""
    objects = Objects(str(tmp_path / "x.git"))
    objects.make()
    rng = random.Random(1)
    lines = [f"line {n} {rng.random()}\n" for n in range(3000)]
    for number in range(30):
        lines[rng.randrange(len(lines))] = f"changed {number}\n"
        text = "".join(lines).encode()
        objects.write_tree({"a/b": File(text), "empty": File(b""), "x": File(rng.randbytes(70000))})
    git(objects.folder, "repack", "-d", "--geometric=2", "-q")
    return objects


def test_every_object_is_read_as_git_reads_it(packed: Objects) -> None:
    """Whole ones, differences of differences, empty and large ones."""
    folder = f"{packed.folder}/objects/pack"
    ids = list(packed_ids(folder))
    assert len(ids) == len(set(ids)) > 100
    stored = git(packed.folder, "verify-pack", "-v", *map(str, Path(folder).glob("*.idx")))
    assert b"chain length = 2" in stored  # else this proves nothing of differences
    shown = io.BytesIO(git(packed.folder, "cat-file", "--batch", given="\n".join(ids).encode()))
    for oid in ids:
        found = read_packed(folder, oid)
        assert found is not None
        named, kind, size = shown.readline().decode().split()
        assert (named, kind, shown.read(int(size) + 1)) == (oid, found.kind, found.data + b"\n")
    assert read_packed(folder, "0" * 40) is None
    assert not list(Path(packed.folder, "objects").glob("??/*"))


def test_a_broken_pack_says_so(packed: Objects) -> None:
    """By an error that the store turns into its own."""
    (file,) = Path(packed.folder, "objects", "pack").glob("*.pack")
    file.chmod(0o600)
    data = file.read_bytes()
    file.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
    failed = 0
    for oid in list(packed_ids(str(file.parent)))[::10]:
        try:
            read_packed(str(file.parent), oid)
        except ValueError:
            failed += 1
    assert failed > 5


@pytest.mark.parametrize("seed", range(5))
def test_refs_are_listed_as_git_lists_them(seed: int, tmp_path: Path) -> None:
    """Loose, packed, both, moved and removed since, forwards and the newest."""
    rng = random.Random(seed)
    objects = Objects(str(tmp_path / "x.git"))
    objects.make()
    refs = Refs(objects)
    commits = [
        objects.write("commit", f"tree {objects.write_tree({})}\nauthor a <a@b> {n} +0000\n"
                      f"committer a <a@b> {n} +0000\n\n{n}\n".encode())
        for n in range(4)
    ]  # fmt: skip
    for _ in range(3):
        for _ in range(15):
            name = rng.choice(["refs/skills/", "refs/changes/202611/", "refs/changes/202612/"])
            name += rng.choice(["a", "a-b", "a%2fb", "b", "b0", "zz"]) + "/" * ("changes" in name)
            name += rng.choice(["x", "y", "x-1"]) if "changes" in name else ""
            wanted = rng.choice([*commits, ""])
            refs.move((RefUpdate(name, wanted, refs.get(name)),))
        told = git(objects.folder, "for-each-ref", "--format=%(refname) %(objectname)").decode()
        rows = [tuple(line.split(" ")) for line in told.splitlines()]
        assert refs.list("refs") == rows
        changes = [row for row in rows if row[0].startswith("refs/changes/")]
        assert refs.list("refs/changes", newest=3) == changes[::-1][:3]
        assert refs.names("refs/skills") == [n for n, _ in rows if n.startswith("refs/skills/")]
        refs.pack()
        assert refs.list("refs") == rows
        again = git(objects.folder, "for-each-ref", "--format=%(refname) %(objectname)").decode()
        assert again == told
