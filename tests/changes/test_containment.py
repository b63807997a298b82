"""Attacks on the way to the disk: names, links, races, pipes."""

import os
import socket
import string
import threading
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.base.errors import Unwritable
from tacit.changes.change import Create, Edit, RemoveFile, Rewrite, WriteFile
from tacit.changes.containment import (
    Escape,
    check_name,
    check_path,
    check_paths,
    open_root,
    read_contents,
    remove_tree,
)
from tacit.changes.place import Place

BAD_PATHS = {
    "../escape.md": "dots",
    "references/../../escape.md": "dots",
    "./notes.md": "dots",
    "references//notes.md": "dots",
    "references/": "dots",
    "/etc/passwd": "absolute-path",
    "~/notes.md": "absolute-path",
    "C:notes.md": "absolute-path",
    "C:\\notes.md": "absolute-path",
    "\\\\server\\share": "absolute-path",
    "a\\b.md": "unsafe-character",
    "notes.md:stream": "unsafe-character",
    "no\0tes.md": "unseen-character",
    "no\ntes.md": "unseen-character",
    "no\x1btes.md": "unseen-character",
    "notes\u200b.md": "unseen-character",
    "notes\u202egpj.md": "unseen-character",
    "\ufeffnotes.md": "unseen-character",
    "NUL": "windows-name",
    "references/con.md": "windows-name",
    "com1.txt": "windows-name",
    "LPT9": "windows-name",
    "com¹": "windows-name",
    "notes.md.": "loose-ends",
    "notes.md ": "loose-ends",
    " notes.md": "loose-ends",
    "references /notes.md": "loose-ends",
    "references./notes.md": "loose-ends",
    "ＳＫＩＬＬ.md": "look-alike",
    "e\u0301.md": "look-alike",
    "ﬁle.md": "look-alike",
    "SΚILL.md": "look-alike",
    "ѕkill.md": "look-alike",
    "skill.md": "skill-file",
    "Skill.MD": "skill-file",
    "sub/SKILL.md": "nested-skill",
    "references/deep/skill.md": "nested-skill",
    "references/SKILL.md/x": "nested-skill",
    ".git/hooks/post-checkout": "kept-out",
    ".GIT/config": "kept-out",
    "node_modules/x.js": "kept-out",
    ".tacit-stage/x": "kept-out",
    "": "empty-path",
    "x" * 201: "long-name",
    "/".join("abcdefghi"): "deep-path",
}


@pytest.mark.parametrize(("path", "expected"), BAD_PATHS.items())
def test_bad_path_is_refused(
    path: str, expected: str, kit: Any, rule: Callable[[Any], str]
) -> None:
    """A path that could lead astray is refused on every road, and nothing is written."""
    kit.create("notes")
    before = sorted(str(p) for p in kit.root.parent.rglob("*") if kit.data not in p.parents)
    assert rule(kit.propose("notes", WriteFile(path, b"x"))) == expected
    whole = {"SKILL.md": kit.md("notes", "new\n"), path: b"x"}
    assert kit.propose("notes", Rewrite(whole)).refused
    assert kit.propose("other", Create({**whole, "SKILL.md": kit.md("other")})).refused
    assert kit.propose("notes", RemoveFile(path)).refused
    after = sorted(str(p) for p in kit.root.parent.rglob("*") if kit.data not in p.parents)
    assert after == before


@pytest.mark.parametrize(
    "name",
    ["..", ".", "../other", "/tmp/x", ".archive", ".tacit-stage", "a/../b", "", "a\0b", "a\\b"],
)
def test_bad_skill_name_is_refused(name: str, kit: Any) -> None:
    """A skill's folder cannot be named outside the skills folder, for no operation."""
    kit.create("notes")
    for operation in (Create({"SKILL.md": kit.md("x")}), Edit("a", "b"), WriteFile("a.md", b"")):
        verdict = kit.propose(name, operation)
        assert verdict.refused
        assert verdict.refusal.step in ("containment", "apply")
    assert kit.names() == ["notes"]


@pytest.mark.parametrize(
    "path", ["references/naïve.md", "参考/メモ.md", "scripts/run-2.sh", "a b.md"]
)
def test_honest_path_is_taken(path: str, kit: Any) -> None:
    """Names in any one script, with spaces inside, are fine."""
    kit.create("notes")
    assert kit.propose("notes", WriteFile(path, b"x\n")).applied
    assert kit.text("notes", path) == "x\n"


def test_names_that_differ_by_case_clash(kit: Any, rule: Callable[[Any], str]) -> None:
    """Two files that are one on a Mac are refused, and so is a file that is also a folder."""
    kit.create("notes", references__A__md=b"x")
    assert check_paths(["references/A.md", "references/a.md"]).rule == "name-clash"
    assert check_paths(["References/b.md", "references/a.md"]).rule == "name-clash"
    assert check_paths(["a", "a/b"]).rule == "name-clash"
    files = {"SKILL.md": kit.md("two"), "a.md": b"", "A.md": b""}
    assert rule(kit.propose("two", Create(files))) == "name-clash"


@given(st.text(alphabet=string.printable + "\u0000\u202e\u200b．／ａé\u0301ß", max_size=30))
def test_accepted_path_stays_inside(path: str) -> None:
    """Whatever is accepted is relative, plain, normal and below the folder."""
    if check_path(path) is None:
        assert not os.path.isabs(path)
        assert os.path.normpath(path) == path
        assert ".." not in path.split("/")
        assert unicodedata.normalize("NFKC", path) == path
        assert path.isprintable()


@given(st.text(max_size=20))
def test_accepted_name_is_one_component(name: str) -> None:
    """A name that is accepted is a single, visible component."""
    if check_name(name) is None:
        assert "/" not in name
        assert name not in ("", ".", "..")
        assert "\0" not in name


def test_linked_skill_folder_is_refused(
    kit: Any, tmp_path: Path, rule: Callable[[Any], str]
) -> None:
    """A skill's folder that is a link is refused with the real path; nothing lands there."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "SKILL.md").write_bytes(kit.md("notes", learned=True))
    kit.root.mkdir()
    (kit.root / "notes").symlink_to(outside)
    for actor in ("user", "agent", "reviewer"):
        verdict = kit.propose("notes", Edit("step by step", "X"), actor=actor)
        assert rule(verdict) == "linked-folder"
        assert str(outside) in verdict.refusal.reason
    assert "step by step" in (outside / "SKILL.md").read_text()


def test_linked_file_is_neither_read_nor_written(
    kit: Any, tmp_path: Path, rule: Callable[[Any], str]
) -> None:
    """A file that is a link to a secret is not followed: not edited, not committed."""
    secret = tmp_path / "secret.txt"
    secret.write_text("top secret\n")
    kit.create("notes", learned=True)
    (kit.root / "notes" / "references").mkdir()
    (kit.root / "notes" / "references" / "leak.md").symlink_to(secret)
    verdict = kit.propose("notes", Edit("top", "bottom", "references/leak.md"), actor="reviewer")
    assert rule(verdict) == "linked-file"
    verdict = kit.propose("notes", WriteFile("references/leak.md", b"x"))
    assert rule(verdict) == "linked-file"
    assert kit.propose("notes", Edit("step by step", "at once"), actor="reviewer").applied
    assert secret.read_text() == "top secret\n"
    assert (kit.root / "notes" / "references" / "leak.md").is_symlink()
    head = kit.history.head("notes")
    blobs = [file.data for file in kit.history.files(head).values()]
    assert not any(b"top secret" in blob for blob in blobs)


def test_linked_folder_inside_is_not_entered(kit: Any, tmp_path: Path) -> None:
    """A folder inside a skill that is a link to elsewhere takes no new file."""
    outside = tmp_path / "outside"
    outside.mkdir()
    kit.create("notes")
    (kit.root / "notes" / "references").symlink_to(outside)
    verdict = kit.propose("notes", WriteFile("references/new.md", b"x"))
    assert verdict.refused
    assert list(outside.iterdir()) == []


def test_linked_skill_file_is_the_users(kit: Any, tmp_path: Path) -> None:
    """A SKILL.md that is a link to a learned skill gives no machine the right to it."""
    real = tmp_path / "real.md"
    real.write_bytes(kit.md("notes", learned=True))
    (kit.root / "notes").mkdir(parents=True)
    (kit.root / "notes" / "SKILL.md").symlink_to(real)
    assert kit.propose("notes", Edit("step", "x"), actor="reviewer").refused
    assert kit.propose("notes", Edit("step", "x")).refused
    assert "step by step" in real.read_text()


@pytest.mark.parametrize("level", [".agents", ".agents/skills"])
def test_project_skills_folder_linked_outside(
    level: str, tmp_path: Path, make_kit: Callable[..., Any], rule: Callable[[Any], str]
) -> None:
    """A project whose skills folder leads out of it takes no write, by nobody."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    (outside / "skills").mkdir(parents=True)
    link = project / level
    link.parent.mkdir(parents=True)
    link.symlink_to(outside if level == ".agents" else outside / "skills")
    kit = make_kit(place=Place(str(project / ".agents/skills"), "project", str(project)))
    for actor in ("user", "reviewer"):
        create = Create({"SKILL.md": kit.md("notes", learned=True)})
        assert rule(kit.propose("notes", create, actor=actor)) == "linked-root"
    assert list((outside / "skills").iterdir()) == []


def test_dangling_link_out_of_project(
    tmp_path: Path, make_kit: Callable[..., Any], rule: Callable[[Any], str]
) -> None:
    """A skills folder that is a link to a place outside that does not exist yet is refused too."""
    project = tmp_path / "project"
    (project / ".agents").mkdir(parents=True)
    (project / ".agents" / "skills").symlink_to(tmp_path / "not-there")
    kit = make_kit(place=Place(str(project / ".agents/skills"), "project", str(project)))
    verdict = kit.propose("notes", Create({"SKILL.md": kit.md("notes")}))
    assert rule(verdict) == "linked-root"
    assert not (tmp_path / "not-there").exists()


def test_link_inside_project_is_fine(tmp_path: Path, make_kit: Callable[..., Any]) -> None:
    """A skills folder that is a link to another folder of the same project is used."""
    project = tmp_path / "project"
    (project / ".claude" / "skills").mkdir(parents=True)
    (project / ".agents").mkdir()
    (project / ".agents" / "skills").symlink_to("../.claude/skills")
    kit = make_kit(place=Place(str(project / ".agents/skills"), "project", str(project)))
    assert kit.propose("notes", Create({"SKILL.md": kit.md("notes")})).applied
    assert (project / ".claude" / "skills" / "notes" / "SKILL.md").exists()


def test_users_folder_may_be_a_link(tmp_path: Path, make_kit: Callable[..., Any]) -> None:
    """The user's own skills folder may lie among their dotfiles."""
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (tmp_path / "linked").symlink_to(dotfiles)
    kit = make_kit(place=Place(str(tmp_path / "linked")))
    assert kit.propose("notes", Create({"SKILL.md": kit.md("notes")})).applied
    assert (dotfiles / "notes" / "SKILL.md").exists()


def test_stage_that_is_a_link(kit: Any, tmp_path: Path) -> None:
    """A link in place of the stage is not followed."""
    kit.create("notes")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_text("x")
    (kit.root / ".tacit-stage").symlink_to(outside)
    kit.propose("notes", Edit("step by step", "at once"))
    assert (outside / "keep").exists()
    assert sorted(p.name for p in outside.iterdir()) == ["keep"]


def test_archive_that_is_a_link(kit: Any, tmp_path: Path, rule: Callable[[Any], str]) -> None:
    """A link in place of the archive takes nothing."""
    from tacit.changes.change import Archive

    kit.create("notes")
    outside = tmp_path / "outside"
    outside.mkdir()
    (kit.root / ".archive").symlink_to(outside)
    assert rule(kit.propose("notes", Archive())) == "linked-folder"
    assert kit.names() == ["notes"]
    assert list(outside.iterdir()) == []


def test_hard_link_is_not_the_machines(
    kit: Any, tmp_path: Path, rule: Callable[[Any], str]
) -> None:
    """A machine leaves a skill with hard links alone; the user's edit spares the other name."""
    kit.create("notes", learned=True)
    other = tmp_path / "other-name.md"
    os.link(kit.root / "notes" / "SKILL.md", other)
    verdict = kit.propose("notes", Edit("step by step", "at once"), actor="reviewer")
    assert rule(verdict) == "hard-link"
    assert kit.propose("notes", Edit("step by step", "at once")).applied
    assert "step by step" in other.read_text()
    assert "at once" in kit.text("notes")


def test_pipes_and_sockets_are_refused_at_once(kit: Any, rule: Callable[[Any], str]) -> None:
    """A pipe in a skill's folder is refused, without waiting for somebody to write into it."""
    kit.create("notes")
    os.mkfifo(kit.root / "notes" / "pipe")
    assert rule(kit.propose("notes", Edit("step", "x"))) == "special-file"
    os.unlink(kit.root / "notes" / "pipe")
    here = os.getcwd()
    os.chdir(kit.root / "notes")  # the name of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("sock")
    finally:
        os.chdir(here)
    assert rule(kit.propose("notes", Edit("step", "x"))) == "special-file"


@pytest.mark.skipif(not hasattr(os, "mknod") or os.geteuid() != 0, reason="only root makes devices")
def test_device_is_refused(kit: Any, rule: Callable[[Any], str]) -> None:
    """A device in a skill's folder is refused."""
    import stat

    kit.create("notes")
    try:
        os.mknod(kit.root / "notes" / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("not in this container")
    assert rule(kit.propose("notes", Edit("step", "x"))) == "special-file"


def test_file_as_skill_folder(kit: Any, rule: Callable[[Any], str]) -> None:
    """A file where a skill's folder should be is neither entered nor replaced."""
    kit.root.mkdir()
    (kit.root / "notes").write_text("a file")
    assert rule(kit.propose("notes", Create({"SKILL.md": kit.md("notes")}))) == "not-a-folder"
    assert (kit.root / "notes").read_text() == "a file"


def test_folder_replaced_between_check_and_write(
    tmp_path: Path, make_kit: Callable[..., Any]
) -> None:
    """A folder that becomes a link while the user is being asked takes the write nowhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    kit: Any = None

    def swap(case: Any, asks: Any) -> str:
        (kit.root / "notes").rename(tmp_path / "moved")
        (kit.root / "notes").symlink_to(outside)
        return "yes"

    kit = make_kit(approver=swap)
    kit.create("notes")
    verdict = kit.propose("notes", Edit("step by step", "at once"), actor="agent")
    assert verdict.refused
    assert verdict.refusal.rule == "linked-folder"
    assert list(outside.iterdir()) == []
    assert "step by step" in (tmp_path / "moved" / "SKILL.md").read_text()


def test_consent_is_to_what_was_shown(make_kit: Callable[..., Any]) -> None:
    """A skill that changes while the user is being asked is asked about again."""
    kit: Any = None
    asked = []

    def meddle(case: Any, asks: Any) -> str:
        asked.append(case.new["SKILL.md"].data)
        if len(asked) == 1:
            with (kit.root / "notes" / "SKILL.md").open("a") as file:
                file.write("one line more\n")
        return "yes"

    kit = make_kit(approver=meddle)
    kit.create("notes")
    assert kit.propose("notes", Edit("step by step", "at once"), actor="agent").applied
    assert len(asked) == 2
    assert b"one line more" in asked[1]
    assert "one line more" in kit.text("notes")
    assert "at once" in kit.text("notes")


def test_links_flipped_during_the_write(kit: Any, tmp_path: Path) -> None:
    """While another thread flips the folder between real and link, nothing lands outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "SKILL.md").write_bytes(kit.md("notes", "outside\n"))
    (outside / "keep.md").write_text("keep")
    kit.create("notes", "a0 z\n")
    live, aside = kit.root / "notes", tmp_path / "aside"
    stop = threading.Event()

    def flip() -> None:
        while not stop.is_set():
            try:
                os.rename(live, aside)
                os.symlink(outside, live)
                os.unlink(live)
                os.rename(aside, live)
            except OSError:
                continue

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        for number in range(25):
            with suppress(Unwritable):  # the folder was nowhere just then
                kit.propose("notes", WriteFile(f"references/f{number}.md", b"inside\n"))
                kit.propose("notes", Edit(" z", "+ z"))
    finally:
        stop.set()
        thread.join()
    assert sorted(path.name for path in outside.iterdir()) == ["SKILL.md", "keep.md"]
    assert (outside / "SKILL.md").read_bytes() == kit.md("notes", "outside\n")


def test_reading_stays_in_the_open_folder(tmp_path: Path) -> None:
    """A handle goes on meaning the folder it was opened for, when a link takes its name."""
    real, other = tmp_path / "real", tmp_path / "other"
    (real / "notes").mkdir(parents=True)
    (real / "notes" / "a.md").write_text("mine")
    (other / "notes").mkdir(parents=True)
    (other / "notes" / "a.md").write_text("theirs")
    with open_root(Place(str(real))) as root:
        real.rename(tmp_path / "gone")
        real.symlink_to(other)
        with root.open("notes") as folder:
            assert read_contents(folder).files["a.md"].data == b"mine"


def test_remove_tree_does_not_follow(tmp_path: Path) -> None:
    """Removing a folder removes the links in it, not what they point to."""
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "a").write_text("x")
    (tmp_path / "root" / "go" / "deep").mkdir(parents=True)
    (tmp_path / "root" / "go" / "deep" / "link").symlink_to(tmp_path / "keep")
    (tmp_path / "root" / "go" / "deep").chmod(0o500)
    with open_root(Place(str(tmp_path / "root"))) as root:
        remove_tree(root, "go")
        remove_tree(root, "go")
        with pytest.raises(Escape):
            root.open("..")
    assert (tmp_path / "keep" / "a").exists()
    assert list((tmp_path / "root").iterdir()) == []


def test_huge_folder_is_refused(
    kit: Any, monkeypatch: pytest.MonkeyPatch, rule: Callable[[Any], str]
) -> None:
    """A folder with more than Tacit keeps versions of is refused, not half read."""
    monkeypatch.setattr("tacit.changes.containment.MAX_FILES", 10)
    kit.by_hand("big")
    for number in range(12):
        (kit.root / "big" / f"{number}.md").write_text("x")
    assert rule(kit.propose("big", Edit("By hand", "x"))) == "too-much"
