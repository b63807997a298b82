"""The staging folder: copies in, edits out, and nothing by a side way."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.agent.tool import Failed
from tacit.base.errors import NotFound
from tacit.changes import journal
from tacit.changes.change import (
    Create,
    Edit,
    File,
    RemoveFile,
    Rewrite,
    WriteFile,
    change_time,
    is_change_id,
    make_change,
)
from tacit.changes.file_edits import apply_operations
from tacit.changes.gate import Gate
from tacit.changes.place import user_place
from tacit.learn.background.staging import (
    Staging,
    change_id,
    difference_text,
    earlier_verdict,
    operations_between,
)
from tacit.learn.background.toolset import MOST_BYTES, StagedSkills

HEAD = b"---\nname: notes\ndescription: Takes notes. Use when notes are wanted.\n---\n\n# Notes\n"


@pytest.fixture
def gate() -> Gate:
    """A gate to the user's skills, with the skill `notes`."""
    made = Gate([user_place()])
    files = {"SKILL.md": HEAD, "scripts/run.sh": b"#!/bin/sh\necho hi\n"}
    verdict = made.propose(make_change("notes", Create(files, ("scripts/run.sh",)), actor="user"))
    assert verdict.applied
    return made


def test_a_copy_goes_in_and_its_edit_lands(gate: Gate) -> None:
    """What was edited comes out with its base, and lands once however often it is proposed."""
    staging = Staging.open("job:1")
    copied = staging.copy_in(gate, "notes")
    assert staging.copy_in(gate, "notes") is copied
    assert staging.work().edited == ()
    staged = StagedSkills(staging.path)
    staged.write("notes", "SKILL.md", HEAD + b"\nMore.\n")
    (edited,) = staging.work().edited
    assert (edited.skill, edited.base, edited.is_new) == ("notes", copied.base, False)
    assert edited.old["scripts/run.sh"].kind == edited.new["scripts/run.sh"].kind == "program"
    change = edited.change("job:1", "user", "because", evidence=["t1"])
    assert isinstance(change.operations[0], Edit)
    first = gate.propose(change)
    again = gate.propose(edited.change("job:1", "user", "because"))
    assert first.applied
    assert (again.outcome, again.version) == ("applied", first.version)
    assert len(list(gate.open_place().history.log("notes"))) == 2


def test_a_person_s_edit_meanwhile_is_kept(gate: Gate) -> None:
    """A line that the user wrote while the copy was out stands beside the machine's."""
    staging = Staging.open("job-2")
    staging.copy_in(gate, "notes")
    StagedSkills(staging.path).write("notes", "SKILL.md", HEAD + b"\nThe machine's.\n")
    path = Path(user_place().root) / "notes" / "SKILL.md"
    path.write_bytes(HEAD.replace(b"Takes notes.", b"Takes my notes."))
    (edited,) = staging.work().edited
    assert gate.propose(edited.change("job-2", "user", "x")).applied
    assert b"my notes" in path.read_bytes()
    assert b"The machine's." in path.read_bytes()


def test_a_new_skill_comes_out_as_new(gate: Gate) -> None:
    """A folder that was not copied in is a skill to create; an empty one is nothing."""
    staging = Staging.open("job-3")
    staged = StagedSkills(staging.path)
    staged.write("fresh", "SKILL.md", HEAD)
    staged.write("fresh", "scripts/a.py", b"#!/usr/bin/env python3\n", executable=True)
    staged.write("fresh", "scripts/a.py", b"#!/usr/bin/env python3\n")
    os.mkdir(os.path.join(staged.path, "empty"))
    (edited,) = staging.work().edited
    assert (edited.name, edited.is_new, edited.root) == ("fresh", True, "")
    change = edited.change("job-3", "user", "x", root=user_place().root)
    assert change.operations == (
        Create({"SKILL.md": HEAD, "scripts/a.py": b"#!/usr/bin/env python3\n"}, ("scripts/a.py",)),
    )


def test_what_stands_elsewhere_is_not_copied(gate: Gate) -> None:
    """A skill that is not there, or a second of the same name, is not staged."""
    staging = Staging.open("job-4")
    with pytest.raises(NotFound):
        staging.copy_in(gate, "nothing")
    staging.copy_in(gate, "notes")
    with pytest.raises(NotFound, match="is being changed"):
        staging.copy_in(gate, "more/notes")


def test_links_are_left_where_they_are(gate: Gate, home: Path) -> None:
    """A link in a skill is not copied; one that appears on the staged spoils its folder."""
    secret = home / "secret"
    secret.write_text("secret")
    (Path(user_place().root) / "notes" / "way").symlink_to(secret)
    staging = Staging.open("job-5")
    assert "way" not in staging.copy_in(gate, "notes").files
    staged = Path(StagedSkills(staging.path).path)
    assert not (staged / "notes" / "way").exists()
    (staged / "notes" / "way").symlink_to(secret)
    os.link(secret, staged / "hard")
    (staged / "other").mkdir()
    os.link(secret, staged / "other" / "SKILL.md")
    os.mkfifo(staged / "other" / "pipe")
    (staged / "linked").symlink_to(home)
    assert staging.work().edited == ()
    assert {found.name for found in staging.work().spoilt} == {"notes", "other", "linked", "hard"}


def test_a_second_try_begins_anew(gate: Gate) -> None:
    """What a killed try left is gone; what others left long ago is swept, what is new is not."""
    first = Staging.open("job-6")
    StagedSkills(first.path).write("half", "SKILL.md", b"x")
    other = Staging.open("other")
    old = Staging.open("old")
    long_ago = time.time() - 10 * 86_400
    os.utime(old.path, (long_ago, long_ago))
    again = Staging.open("job-6")
    assert again.path == first.path
    assert StagedSkills(again.path).names() == []
    assert os.path.isdir(other.path)
    assert not os.path.exists(old.path)
    again.discard()
    again.discard()
    assert not os.path.exists(again.path)


def test_what_a_kill_left_is_settled_before_it_is_told(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed with the skill there and its doubtful line in nobody's hands: a job that is run again
    finds the change whole, and tells that the line waits."""

    class Stop(BaseException):
        pass

    def stop(*_: object) -> None:
        raise Stop

    monkeypatch.setattr(journal, "_put_apart", stop)
    monkeypatch.setattr(journal, "_revert", lambda *_: None)
    steps = b"1. Sort them.\n2. Append the alias to ~/.bashrc.\n3. Read them.\n4. Keep them.\n"
    text = HEAD.replace(b"---\n\n", b"metadata:\n  source: auto-skill\n---\n\n") + steps
    files = {"SKILL.md": text.replace(b"notes", b"lists")}
    change = make_change("lists", Create(files), actor="reviewer")
    with pytest.raises(Stop):
        gate.propose(change)
    monkeypatch.undo()
    verdict = earlier_verdict(gate, change.id, "lists")
    assert verdict is not None
    assert verdict.notes[0].startswith("1 line waits for your yes")
    assert verdict.apart == gate.waiting()[0].id


def test_an_id_is_the_same_each_time() -> None:
    """One job and one skill give one id, in the gate's format, also in a later try."""
    first = change_id("job-7", "notes")
    Staging.open("job-7").discard()
    assert is_change_id(first)
    assert change_id("job-7", "notes") == first
    assert len({first, change_id("job-7", "other"), change_id("job-8", "notes")}) == 3
    assert abs(change_time(first).timestamp() - time.time()) < 600


@settings(max_examples=60)
@given(job=st.text(min_size=1, max_size=30), path=st.text(max_size=30))
def test_no_name_leads_out(home: Path, job: str, path: str) -> None:
    """Whatever a job or a file is called, it lies in the staging folder or is refused."""
    staging = Staging.open(job.encode("utf-8", "replace").decode())
    staged = StagedSkills(staging.path)
    for skill in ("demo", path):
        try:
            staged.write(skill, path, b"x")
        except Failed:
            continue
        assert os.path.lexists(os.path.join(staged.path, skill, path))
    above = os.path.dirname(staging.path)
    assert os.path.basename(above) == "staging"
    assert sorted(os.listdir(staging.path)) == ["log", "skills", "tmp"]
    staging.discard()
    assert set(os.listdir(above)) <= {".began"}


def test_the_desk_refuses_ways_out(gate: Gate, home: Path) -> None:
    """Links planted on the staged are neither read, written nor removed through."""
    staging = Staging.open("job-9")
    staging.copy_in(gate, "notes")
    staged = StagedSkills(staging.path)
    (home / "secret").write_text("secret")
    folder = Path(staged.path) / "notes"
    (folder / "way").symlink_to(home)
    (folder / "file").symlink_to(home / "secret")
    for act in (
        lambda: staged.read("notes", "way/secret"),
        lambda: staged.read("notes", "file"),
        lambda: staged.write("notes", "way/secret", b"x"),
        lambda: staged.write("notes", "file", b"x"),
        lambda: staged.remove("notes", "way/secret"),
        lambda: staged.remove("notes", "SKILL.md"),
        lambda: staged.read("../skills/notes"),
        lambda: staged.write("notes", "big", b"x" * (MOST_BYTES + 1)),
        lambda: staged.read("nobody"),
        lambda: staged.read("notes", "none.md"),
    ):
        with pytest.raises(Failed):
            act()
    assert (home / "secret").read_text() == "secret"


def test_a_hard_link_is_not_written_through(gate: Gate, home: Path) -> None:
    """A file with a second name elsewhere is replaced, and the other one keeps its bytes."""
    staging = Staging.open("job-10")
    staged = StagedSkills(staging.path)
    staged.write("demo", "SKILL.md", b"one")
    os.link(Path(staged.path) / "demo" / "SKILL.md", home / "second")
    staged.write("demo", "SKILL.md", b"two")
    assert (home / "second").read_bytes() == b"one"
    assert staged.read("demo") == b"two"


lines = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "\n", "ü\n"]), max_size=8).map("".join)


@given(lines, lines, lines, st.none() | lines)
def test_operations_lead_from_one_to_the_other(
    old: str, new: str, one: str, two: str | None
) -> None:
    """Whatever the texts, performing the operations gives the new files."""
    before = {"SKILL.md": File(old.encode()), "references/a.md": File(one.encode())}
    after = {"SKILL.md": File(new.encode())}
    if two is not None:
        after["references/a.md"] = File(two.encode())
    found = operations_between(before, after)
    assert (apply_operations(before, found) if found else before) == after
    assert bool(difference_text(before, after)) == (before != after)


def test_they_are_small() -> None:
    """Of a text only the stretch that changed is said; other files by what happened to them."""
    before = {"SKILL.md": File(b"1\n2\n3\n4\n"), "scripts/x.sh": File(b"x", "program")}
    after = {"SKILL.md": File(b"1\n2\nthree\n4\n"), "scripts/y.sh": File(b"y")}
    assert operations_between(before, after) == (
        Edit("3\n", "three\n"),
        RemoveFile("scripts/x.sh"),
        WriteFile("scripts/y.sh", b"y"),
    )
    assert isinstance(operations_between({"SKILL.md": File(b"\xff")}, after)[0], Rewrite)
