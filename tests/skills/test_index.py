"""The persistent index: a shortcut that is never wrong."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tacit.skills import index, index_builder
from tacit.skills.index import DESCRIPTION, FOLDER, NAME, STAMP, Snapshot, load

Later = Callable[[], None]


def content(snapshot: Snapshot) -> tuple[Any, ...]:
    """All that a snapshot says, without the stamps."""
    rows = [row[:STAMP] + row[STAMP + 1 :] for row in snapshot.rows]
    folders = sorted(folder for folder, _ in snapshot.categories)
    return (snapshot.root, rows, folders, snapshot.repeated, sorted(snapshot.broken))


@pytest.fixture
def cache(home: Path) -> str:
    return str(home / "cache")


@pytest.fixture
def root(home: Path, put) -> Path:
    """A root with three skills, one of them in a category."""
    folder = home / "skills"
    put(folder / "one", description="first")
    put(folder / "two", description="second")
    put(folder / "cat" / "three", description="third")
    return folder


def next_tick() -> None:
    """Tests that set the clock ahead believe every stamp, so changes need stamps of their own."""
    time.sleep(0.012)


def names(root: Path, cache: str) -> list[str]:
    """The names now, by way of the index; always the same as without one."""
    warm = load(str(root), cache)
    assert content(warm) == content(index_builder.build(str(root)))
    next_tick()
    return [row[NAME] for row in warm.rows]


def about(root: Path, cache: str, folder: str) -> str:
    rows = load(str(root), cache).rows
    next_tick()
    return next(row[DESCRIPTION] for row in rows if row[FOLDER] == folder)


class TestWarm:
    def test_an_unchanged_library_is_not_read(
        self, root: Path, cache: str, later: Later, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A second load neither walks nor reads nor writes."""
        later()
        before = load(str(root), cache)

        def fail(*_: object) -> None:
            raise AssertionError("not warm")

        monkeypatch.setattr(index_builder, "build", fail)
        monkeypatch.setattr(index_builder, "refresh", fail)
        monkeypatch.setattr(index, "save", fail)
        assert content(load(str(root), cache)) == content(before)

    def test_a_warm_load_opens_no_skill(self, root: Path, home: Path) -> None:
        """Seen from outside: a fresh process opens the index and no SKILL.md, and stays light."""
        shutil.copytree(root, home / ".agents" / "skills")
        code = """
import sys, time, json
opened = []
from tacit.skills import index
index.now = lambda: time.time_ns() + 10_000_000_000
from tacit.base import paths
from tacit.skills.scopes import skill_roots as roots
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
for root in roots("."):
    index.load(root.path, paths.folders().cache)
print(json.dumps([[p for p in opened if "SKILL" in p], [p for p in opened if ".idx" in p],
                  "msgspec" in sys.modules or "yaml" in sys.modules]))
"""
        run = [sys.executable, "-c", code]
        cold, warm = (json.loads(subprocess.check_output(run)) for _ in range(2))
        assert len(cold[0]) == 6  # three and the three bundled ones
        assert warm[0] == []
        assert len(warm[1]) == 2
        assert not warm[2]


class TestEdits:
    @pytest.mark.parametrize("is_old", [True, False])
    def test_an_edit_is_seen(self, root: Path, cache: str, is_old: bool, later: Later, put) -> None:
        """Whether the library was long untouched or just written."""
        if is_old:
            later()
        assert about(root, cache, "one") == "first"
        put(root / "one", description="changed and longer")
        assert about(root, cache, "one") == "changed and longer"

    def test_an_edit_of_the_same_size_within_the_same_tick(
        self, root: Path, cache: str, later: Later, put
    ) -> None:
        """Size and time of writing set back to what they were: the time of change tells."""
        later()
        assert about(root, cache, "one") == "first"
        file = root / "one" / "SKILL.md"
        before = file.stat()
        next_tick()
        file.write_bytes(file.read_bytes().replace(b"first", b"fIRST"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = file.stat()
        assert (after.st_mtime_ns, after.st_size, after.st_ino) == (
            before.st_mtime_ns, before.st_size, before.st_ino,
        )  # fmt: skip
        assert about(root, cache, "one") == "fIRST"

    def test_an_edit_that_changes_no_stamp_right_after_the_look(
        self, root: Path, cache: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a coarse clock no stamp may tell: what is fresh is not believed."""
        file = root / "one" / "SKILL.md"
        assert about(root, cache, "one") == "first"
        frozen = file.stat()
        real_stat = os.stat

        def coarse(path: Any, **options: Any) -> os.stat_result:
            status = real_stat(path, **options)
            return frozen if status.st_ino == frozen.st_ino else status

        monkeypatch.setattr(os, "stat", coarse)
        file.write_bytes(file.read_bytes().replace(b"first", b"fIRST"))
        assert about(root, cache, "one") == "fIRST"

    def test_a_file_swapped_in_by_a_rename(self, root: Path, cache: str, later: Later) -> None:
        """As editors save: a new file of the same size and time of writing."""
        later()
        assert about(root, cache, "one") == "first"
        file = root / "one" / "SKILL.md"
        status = file.stat()
        other = file.with_name("new")
        other.write_bytes(file.read_bytes().replace(b"first", b"fIRST"))
        os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
        other.replace(file)
        assert about(root, cache, "one") == "fIRST"

    def test_an_edit_during_the_scan(
        self, root: Path, cache: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What changes after our look and before the index is written is seen next time."""
        file = root / "one" / "SKILL.md"
        real = index.save

        def edit_first(snapshot: Snapshot, path: str) -> None:
            file.write_bytes(file.read_bytes().replace(b"first", b"fIRST"))
            real(snapshot, path)

        monkeypatch.setattr(index, "save", edit_first)
        assert about(root, cache, "one") == "first"
        monkeypatch.setattr(index, "save", real)
        assert about(root, cache, "one") == "fIRST"

    def test_only_what_changed_is_read_again(
        self, root: Path, cache: str, later: Later, put, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One edit costs one file; one new skill costs one file."""
        later()
        load(str(root), cache)
        next_tick()
        read: list[str] = []
        real = index_builder.read_row

        def count(base: str, folder: str, *rest: Any) -> Any:
            read.append(folder)
            return real(base, folder, *rest)

        monkeypatch.setattr(index_builder, "read_row", count)
        put(root / "two", description="x")
        load(str(root), cache)
        next_tick()
        put(root / "cat" / "four")
        load(str(root), cache)
        assert read == ["two", "cat/four"]


class TestShape:
    """Every change of what there is, on a library that was long untouched."""

    @pytest.fixture(autouse=True)
    def _warm(self, root: Path, cache: str, later: Later) -> None:
        later()
        load(str(root), cache)
        next_tick()

    def test_added(self, root: Path, cache: str, put) -> None:
        """At the top, in a category, in a new category."""
        put(root / "new")
        assert "new" in names(root, cache)
        put(root / "cat" / "newer")
        put(root / "a" / "b" / "c" / "d" / "newest")
        assert {"newer", "newest"} <= set(names(root, cache))

    def test_removed(self, root: Path, cache: str) -> None:
        """A skill, its file alone, a category, the root."""
        shutil.rmtree(root / "one")
        assert names(root, cache) == ["three", "two"]
        (root / "two" / "SKILL.md").unlink()
        assert names(root, cache) == ["three"]
        shutil.rmtree(root / "cat")
        assert names(root, cache) == []
        shutil.rmtree(root)
        assert names(root, cache) == []

    def test_renamed_and_moved(self, root: Path, cache: str) -> None:
        """The folder is the new one, the rest as before."""
        (root / "one").rename(root / "uno")
        (root / "two").rename(root / "cat" / "two")
        names(root, cache)
        folders = {row[FOLDER] for row in load(str(root), cache).rows}
        assert folders == {"uno", "cat/two", "cat/three"}

    def test_two_swapped(self, root: Path, cache: str) -> None:
        """Two folders that change places."""
        (root / "one").rename(root / "x")
        (root / "two").rename(root / "one")
        (root / "x").rename(root / "two")
        names(root, cache)
        assert about(root, cache, "one") == "second"

    def test_the_file_replaced_by_a_folder_and_back(self, root: Path, cache: str, put) -> None:
        """It is a skill no more, and then again."""
        file = root / "one" / "SKILL.md"
        file.unlink()
        file.mkdir()
        assert names(root, cache) == ["three", "two"]
        file.rmdir()
        put(root / "one")
        assert names(root, cache) == ["one", "three", "two"]

    def test_the_file_replaced_by_a_pipe(self, root: Path, cache: str) -> None:
        """It is listed as broken, without waiting."""
        (root / "one" / "SKILL.md").unlink()
        os.mkfifo(root / "one" / "SKILL.md")
        assert names(root, cache) == ["one", "three", "two"]

    def test_a_category_turned_into_a_skill_and_back(self, root: Path, cache: str, put) -> None:
        """What lay below is hidden, and comes back."""
        put(root / "cat")
        assert names(root, cache) == ["cat", "one", "two"]
        (root / "cat" / "SKILL.md").unlink()
        assert names(root, cache) == ["one", "three", "two"]

    def test_the_usual_name_beside_the_unusual(self, root: Path, cache: str, put) -> None:
        """A SKILL.md that appears beside skill.md wins."""
        put(root / "small", file="skill.md", description="small")
        assert about(root, cache, "small") == "small"
        put(root / "small", description="large")
        names(root, cache)
        assert about(root, cache, "small") == "large"

    def test_links(self, root: Path, cache: str, home: Path, put) -> None:
        """A new link, a link that leads elsewhere, one that breaks, and one that is whole again."""
        put(home / "x" / "lx", description="x")
        put(home / "y" / "ly", description="y")
        (root / "link").symlink_to(home / "x" / "lx")
        assert "lx" in names(root, cache)
        (root / "link").unlink()
        (root / "link").symlink_to(home / "y" / "ly")
        assert "ly" in names(root, cache)
        (home / "y").rename(home / "z")
        assert "ly" not in names(root, cache)
        assert load(str(root), cache).broken == ["link"]
        (home / "z").rename(home / "y")
        assert "ly" in names(root, cache)

    def test_behind_a_link(self, root: Path, cache: str, home: Path, put) -> None:
        """Edits, additions and removals in a linked category are seen."""
        put(home / "x" / "inner", description="x")
        (root / "link").symlink_to(home / "x")
        names(root, cache)
        put(home / "x" / "inner", description="changed")
        put(home / "x" / "other")
        names(root, cache)
        assert about(root, cache, "link/inner") == "changed"
        shutil.rmtree(home / "x" / "other")
        assert "other" not in names(root, cache)

    def test_a_chain_of_links_that_is_turned(self, root: Path, cache: str, home: Path, put) -> None:
        """The link in the root stays as it is, the next one is turned to another folder."""
        put(home / "x" / "inner", description="x")
        put(home / "y" / "inner", description="y")
        (home / "current").symlink_to("x")
        (root / "link").symlink_to(home / "current")
        names(root, cache)
        (home / "current").unlink()
        (home / "current").symlink_to("y")
        names(root, cache)
        assert about(root, cache, "link/inner") == "y"


class TestDamage:
    @given(data=st.data())
    @settings(max_examples=80, deadline=None)
    def test_any_damage_is_survived(self, root: Path, cache: str, data: st.DataObject) -> None:
        """One byte changed, bytes cut off or added: the index is built again, with equal result."""
        expected = content(load(str(root), cache))
        file = Path(index.index_file(str(root), cache))
        good = file.read_bytes()
        at = data.draw(st.integers(0, 1_000_000)) % len(good)
        kind = data.draw(st.sampled_from(["flip", "cut", "add", "zero", "insert"]))
        byte = data.draw(st.integers(1, 255))
        bad = {
            "flip": good[:at] + bytes([good[at] ^ byte]) + good[at + 1 :],
            "cut": good[:at],
            "add": good + bytes([byte]),
            "zero": good[:at].ljust(len(good), b"\0"),
            "insert": good[:at] + bytes([byte]) + good[at:],
        }[kind]
        file.write_bytes(bad)
        assert bad == good or not index.is_sound(str(file))
        assert content(load(str(root), cache)) == expected
        assert index.is_sound(str(file))

    def test_another_interpreters_index_is_not_used(
        self, root: Path, cache: str, later: Later, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The format is the interpreter's own; another version builds its own."""
        later()
        load(str(root), cache)
        file = index.index_file(str(root), cache)
        monkeypatch.setattr(index, "_HEAD", b"tacit-index 1 cpython-399\n")
        assert not index.is_sound(file)
        assert names(root, cache) == ["one", "three", "two"]
        assert index.is_sound(file)

    def test_an_index_of_another_root_under_this_name(
        self, root: Path, cache: str, home: Path
    ) -> None:
        """Two roots whose names fall together do not mix."""
        load(str(root), cache)
        other = home / "other"
        other.mkdir()
        shutil.copy(index.index_file(str(root), cache), index.index_file(str(other), cache))
        assert names(other, cache) == []

    def test_a_folder_in_place_of_the_index(self, root: Path, cache: str) -> None:
        """Nothing can be kept, all is still right."""
        os.makedirs(index.index_file(str(root), cache) + "/x")
        assert names(root, cache) == names(root, cache) == ["one", "three", "two"]

    def test_a_cache_that_cannot_be_written(self, root: Path, home: Path) -> None:
        """A file in place of the cache folder, or a folder without the right to write."""
        (home / "file").write_text("")
        assert names(root, str(home / "file")) == ["one", "three", "two"]
        code = """
import os, sys
import array, hashlib, yaml, tacit.base.atomic_files, tacit.skills.index_builder
from tacit.skills.index import load, NAME
if os.geteuid() == 0:
    os.setegid(65534); os.seteuid(65534)
print(*[row[NAME] for row in load(sys.argv[1], sys.argv[2]).rows])
"""
        # Outside the private temporary folder, where another user can reach it.
        with tempfile.TemporaryDirectory() as base:
            os.chmod(base, 0o755)
            shutil.copytree(root, f"{base}/skills")
            os.mkdir(f"{base}/cache", 0o500)
            run = [sys.executable, "-c", code, f"{base}/skills", f"{base}/cache"]
            out = subprocess.run(run, capture_output=True, text=True, check=True, cwd="/")
            assert out.stdout.split() == ["one", "three", "two"]
            assert os.listdir(f"{base}/cache") == []


def test_many_processes_at_once(root: Path, home: Path, cache: str, put) -> None:
    """Twenty that load and change at the same time each see a library that was there."""
    code = """
import os, sys
from tacit.skills.index import load, NAME, DESCRIPTION
root, cache, number = sys.argv[1:]
for turn in range(4):
    os.makedirs(f"{root}/s{number}", exist_ok=True)
    with open(f"{root}/s{number}/new", "w") as file:
        file.write(f"---\\nname: s{number}\\ndescription: turn {turn}\\n---\\nx\\n")
    os.replace(f"{root}/s{number}/new", f"{root}/s{number}/SKILL.md")
    rows = {row[NAME]: row[DESCRIPTION] for row in load(root, cache).rows}
    assert rows[f"s{number}"] == f"turn {turn}", rows
    assert {"one", "two", "three"} <= set(rows), rows
"""
    run = [sys.executable, "-c", code, str(root), cache]
    processes = [subprocess.Popen([*run, str(n)]) for n in range(20)]
    assert [process.wait(120) for process in processes] == [0] * 20
    assert len(names(root, cache)) == 23


class Operations(RuleBasedStateMachine):
    """Any sequence of changes; after each, the index says what a walk without it says."""

    places = st.sampled_from(["a", "b", "c1", "c1/x", "c1/y", "c1/d/z", "c2/x", "c10"])
    texts = st.sampled_from(["one", "two", "a: b", ""])

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp())
        self.root = self.base / "skills"
        self.root.mkdir()
        self.cache = str(self.base / "cache")
        self.ahead = 0

    def teardown(self) -> None:
        index.now = time.time_ns
        shutil.rmtree(self.base)

    @rule(place=places, text=texts, small=st.booleans())
    def write(self, place: str, text: str, small: bool) -> None:
        folder = self.root / place
        try:
            folder.mkdir(parents=True, exist_ok=True)
            name = "skill.md" if small else "SKILL.md"
            (folder / name).write_text(f"---\nname: n\ndescription: {text}\n---\nx\n")
        except OSError:
            pass

    @rule(place=places)
    def delete(self, place: str) -> None:
        path = self.root / place
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)

    @rule(place=places)
    def delete_file(self, place: str) -> None:
        for name in ("SKILL.md", "skill.md"):
            try:
                (self.root / place / name).unlink(missing_ok=True)
            except OSError:
                pass

    @rule(old=places, new=places)
    def move(self, old: str, new: str) -> None:
        try:
            (self.root / new).parent.mkdir(parents=True, exist_ok=True)
            (self.root / old).rename(self.root / new)
        except OSError:
            pass

    @rule(old=places, new=places)
    def link(self, old: str, new: str) -> None:
        try:
            (self.root / new).parent.mkdir(parents=True, exist_ok=True)
            (self.root / new).symlink_to(self.root / old)
        except OSError:
            pass

    @rule(place=places)
    def folder_for_file(self, place: str) -> None:
        try:
            (self.root / place / "SKILL.md").unlink(missing_ok=True)
            (self.root / place / "SKILL.md").mkdir(parents=True)
        except OSError:
            pass

    @rule()
    def time_passes(self) -> None:
        """What was written is old from here on, so that stamps are believed."""
        index.now = lambda: time.time_ns() + 10_000_000_000
        next_tick()
        load(str(self.root), self.cache)
        index.now = time.time_ns
        next_tick()

    @invariant()
    def same_as_without_an_index(self) -> None:
        warm = load(str(self.root), self.cache)
        assert content(warm) == content(index_builder.build(str(self.root)))


Operations.TestCase.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
TestOperations = Operations.TestCase
