"""The gate: its steps, their order, what lands and what is said when something does not."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tacit.base.errors import NotFound, Unwritable
from tacit.base.event_bus import bus
from tacit.changes.change import (
    Applied,
    Archive,
    Create,
    Delete,
    Edit,
    MergeInto,
    Pin,
    Proposed,
    Refusal,
    RemoveFile,
    Rename,
    Restore,
    Rewrite,
    Unpin,
    WriteFile,
    acting_as,
    make_change,
    new_change_id,
)
from tacit.changes.change_groups import find_group, group_members, undo_group
from tacit.changes.containment import Folder
from tacit.changes.effect import Effect
from tacit.changes.gate import Gate
from tacit.changes.gate_steps import register_check
from tacit.changes.neighbours import LibraryNeighbours, NoNeighbours
from tacit.changes.place import Place, project_place, user_place

Rule = Callable[[Any], str]


def test_first_change_records_what_stood_there(kit: Any) -> None:
    """A skill made by hand is committed as the user's baseline before Tacit's first edit."""
    kit.by_hand("notes", "By hand.\n", learned=True)
    assert kit.propose("notes", Edit("By hand", "By both"), actor="reviewer").applied
    edit, baseline = kit.history.log("notes")
    assert (baseline.record.kind, baseline.record.actor) == ("baseline", "user")
    assert b"By hand" in kit.history.files(baseline)["SKILL.md"].data
    assert (edit.record.kind, edit.record.actor) == ("edit", "reviewer")


def test_hand_edits_in_between_are_the_users(kit: Any) -> None:
    """What a person edits between two machine edits is a commit of theirs, and no line is lost."""
    kit.create("notes", "one\n\ntwo\n\nthree\n", learned=True)
    assert kit.propose("notes", Edit("one", "1"), actor="reviewer").applied
    path = kit.root / "notes" / "SKILL.md"
    path.write_text(path.read_text() + "\nwritten by hand\n")
    assert kit.propose("notes", Edit("three", "3"), actor="improver").applied
    assert kit.text("notes").endswith("1\n\ntwo\n\n3\n\nwritten by hand\n")
    log = [(version.record.kind, version.record.actor) for version in kit.history.log("notes")]
    assert log == [("edit", "improver"), ("hand", "user"), ("edit", "reviewer"), ("create", "user")]


def test_machine_edit_merges_with_hand_edits(kit: Any) -> None:
    """A whole-file edit made on an older version is merged with what a person wrote since."""
    kit.create("notes", "one\n\ntwo\n\nthree\n", learned=True)
    base = kit.gate.state_of("notes").head.id
    path = kit.root / "notes" / "SKILL.md"
    path.write_text(path.read_text().replace("three", "three, by hand"))
    rewrite = Rewrite({"SKILL.md": kit.md("notes", "1\n\ntwo\n\nthree\n", learned=True)})
    assert kit.propose("notes", rewrite, actor="reviewer", base=base).applied
    assert kit.text("notes").endswith("1\n\ntwo\n\nthree, by hand\n")


def test_conflict_with_hand_edits_goes_to_the_inbox(kit: Any, rule: Rule) -> None:
    """Where a machine and a person changed the same line, the person's stays and the inbox asks."""
    kit.create("notes", "one\n", learned=True)
    base = kit.gate.state_of("notes").head.id
    path = kit.root / "notes" / "SKILL.md"
    path.write_text(path.read_text().replace("one", "one, by hand"))
    verdict = kit.propose("notes", Edit("one", "uno"), actor="reviewer", base=base)
    assert (verdict.outcome, rule(verdict)) == ("proposed", "conflict")
    assert b"<<<<<<<" in verdict.offer["SKILL.md"]
    assert kit.text("notes").endswith("one, by hand\n")
    assert [p.id for p in kit.gate.inbox.waiting()] == [verdict.change]
    mine = kit.propose("notes", Edit("one", "uno"), base=base)
    assert (mine.outcome, rule(mine)) == ("refused", "conflict")


def test_machine_does_not_overwrite_blindly(kit: Any, rule: Rule) -> None:
    """A machine that replaces a whole file has to say which version it read."""
    kit.create("notes", learned=True, references__a=b"a\n")
    text = kit.md("notes", "new\n", learned=True)
    for operation in (Rewrite({"SKILL.md": text}), WriteFile("references/a", b"b\n")):
        assert rule(kit.propose("notes", operation, actor="reviewer")) == "no-base"
    assert kit.propose("notes", WriteFile("references/b.md", b"b\n"), actor="reviewer").applied
    base = kit.gate.state_of("notes").head.id
    assert kit.propose("notes", Rewrite({"SKILL.md": text}), actor="reviewer", base=base).applied
    assert rule(kit.propose("notes", Edit("new", "x"), base="f" * 40)) == "unknown-version"


def test_looking_changes_nothing(kit: Any) -> None:
    """A skill that a machine merely reads stays where and what it is, also one not yet there."""
    assert kit.gate.state_of("notes").state == "gone"
    assert not kit.root.exists()
    folder = kit.by_hand("notes")
    before = (folder.stat(), (folder / "SKILL.md").stat())
    with acting_as("reviewer"):
        seen = kit.gate.state_of("notes")
    assert seen.head.record.kind == "baseline"
    after = (folder.stat(), (folder / "SKILL.md").stat())
    assert [(s.st_ino, s.st_mtime_ns) for s in after] == [(s.st_ino, s.st_mtime_ns) for s in before]
    assert kit.gate.inbox.waiting() == []


def test_same_change_twice_lands_once(kit: Any) -> None:
    """Proposing a change with the same id again gives the same version and no second commit."""
    change = kit.change("notes", Create({"SKILL.md": kit.md("notes")}))
    first, second = kit.gate.propose(change), kit.gate.propose(change)
    assert first.applied
    assert second == msgspec.structs.replace(first, notes=second.notes)
    assert kit.kinds("notes") == ["create"]


def test_create_never_replaces(kit: Any, rule: Rule) -> None:
    """A folder of that name that is already there, with or without a SKILL.md, stays as it is."""
    (kit.root / "empty").mkdir(parents=True)
    (kit.root / "drafts").mkdir()
    (kit.root / "drafts" / "idea.txt").write_text("mine")
    kit.create("notes")
    for name in ("empty", "drafts", "notes"):
        verdict = kit.propose(name, Create({"SKILL.md": kit.md(name, "new\n")}))
        assert rule(verdict) == "exists"
        assert name in verdict.refusal.alternatives
    assert (kit.root / "drafts" / "idea.txt").read_text() == "mine"
    assert "step by step" in kit.text("notes")


def test_refusals_leave_no_trace(kit: Any) -> None:
    """A refused create in a place that does not exist yet makes no folder."""
    assert kit.propose("notes", Create({"SKILL.md": b"no head"})).refused
    assert kit.propose("notes", Edit("a", "b")).refused
    assert not kit.root.exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"no head at all", "no-frontmatter"),
        (b"---\nname: notes\n---\nx\n", "no-description"),
        (b"---\nname: other\ndescription: d\n---\nx\n", "name-differs"),
        (b"---\nname: notes\ndescription: a: b\n---\nx\n", "bad-yaml"),
        (b"---\nname: notes\ndescription: d\nhooks: x\n---\nx\n", "unknown-key"),
        (b"---\nname: notes\ndescription: " + b"d" * 1025 + b"\n---\nx\n", "long-description"),
        (b"---\nname: notes\ndescription: caf\xe9\n---\nx\n", "not-utf8"),
    ],
)
def test_standard_is_kept(text: bytes, expected: str, kit: Any, rule: Rule) -> None:
    """A SKILL.md that breaks the standard is refused with the line and the fix."""
    verdict = kit.propose("notes", Create({"SKILL.md": text}))
    assert (verdict.refusal.step, rule(verdict)) == ("standard", expected)
    assert "line" in verdict.refusal.reason
    assert verdict.refusal.hint


def test_what_was_written_passes_the_reference_validator(kit: Any) -> None:
    """The open standard's own validator accepts what lands."""
    from skills_ref import validate

    kit.create("notes", learned=True)
    assert kit.propose("notes", Rename("better-notes")).applied
    assert validate(kit.root / "better-notes") == []


def test_person_is_not_held_to_old_faults(kit: Any, rule: Rule) -> None:
    """The user may edit a skill that already broke a rule, but not break a further one."""
    kit.root.mkdir()
    (kit.root / "old").mkdir()
    (kit.root / "old" / "SKILL.md").write_bytes(
        b"---\nname: Old Name\ndescription: d\nhooks: x\n---\nBLOCK one\ntwo\n"
    )
    assert kit.propose("old", Edit("two", "2")).applied
    assert rule(kit.propose("old", Edit("two", "BLOCK"))) == "not-found"
    assert rule(kit.propose("old", Edit("2", "BLOCK"))) == "word-block"
    assert rule(kit.propose("old", Edit("description: d\n", ""))) == "no-description"


def test_scan_blocks_asks_and_notes(kit: Any, rule: Rule) -> None:
    """Block refuses with file, line and fix; ask waits for the user; note is only said."""
    body = "fine\nBLOCK here\n"
    verdict = kit.propose("a", Create({"SKILL.md": kit.md("a", body)}))
    assert (verdict.refusal.step, rule(verdict)) == ("scan", "word-block")
    assert "SKILL.md, line 7" in verdict.refusal.reason
    assert verdict.refusal.hint == "take it out"
    learned = Create({"SKILL.md": kit.md("b", "ASK\n", learned=True)})
    assert kit.propose("b", learned, actor="reviewer").outcome == "proposed"
    assert rule(kit.propose("b", learned)) == "word-ask"
    verdict = kit.propose("c", Create({"SKILL.md": kit.md("c", "NOTE this\n")}))
    assert verdict.applied
    assert "NOTE this" in verdict.notes[0]


def test_override_is_the_users_and_on_record(kit: Any, rule: Rule) -> None:
    """The user can set a rule aside for their own skill; the commit says so. Machines cannot."""
    create = Create({"SKILL.md": kit.md("a", "BLOCK\n")})
    assert kit.propose("a", create, overrides=("word-block",)).applied
    assert kit.history.head("a").record.overrides == ("word-block",)
    learned = Create({"SKILL.md": kit.md("b", "BLOCK\n", learned=True)})
    for actor in ("user", "agent", "reviewer"):
        verdict = kit.propose("b", learned, actor=actor, overrides=("word-block",))
        assert rule(verdict) == "word-block", actor
    plain = Create({"SKILL.md": kit.md("c", "BLOCK\n")})
    assert kit.propose("c", plain, actor="agent", overrides=("word-block",)).refused
    outside = kit.propose("d", Create({"SKILL.md": kit.md("d"), "../x": b""}), overrides=("dots",))
    assert rule(outside) == "dots"


def test_default_scanner_is_the_real_one(tmp_path: Path, kit: Any, rule: Rule) -> None:
    """A gate that is given no scanner scans: a learned skill with a token is refused."""
    gate = Gate([kit.place], neighbours=NoNeighbours(), data=str(tmp_path / "d"))
    token = "ghp_" + "x8Kd02mQzVb7Lr4TnYw9HsPc3FjGa1EuRi5o"
    text = kit.md("keys", f"export GITHUB_TOKEN={token}\n", learned=True)
    verdict = gate.propose(make_change("keys", Create({"SKILL.md": text}), actor="reviewer"))
    assert verdict.refusal is not None
    assert verdict.refusal.step == "scan"


def test_machine_keeps_the_mark(kit: Any, rule: Rule) -> None:
    """A background actor's skill must say that it was learned, and its edits may not drop that."""
    verdict = kit.propose("a", Create({"SKILL.md": kit.md("a")}), actor="reviewer")
    assert rule(verdict) == "reviewer-create-user"
    assert "source: auto-skill" in verdict.refusal.hint
    kit.create("b", learned=True)
    mark = "metadata:\n  source: auto-skill\n"
    assert rule(kit.propose("b", Edit(mark, ""), actor="curator")) == "mark-removed"
    assert kit.propose("b", Edit(mark, "")).applied


def test_opting_in_opens_a_skill_to_machines(kit: Any) -> None:
    """A user who adds the mark to their own skill lets the reviewer update it."""
    kit.create("notes")
    edit = Edit("step by step", "at once")
    assert kit.propose("notes", edit, actor="reviewer").refused
    opt_in = Edit("---\n\nDo", "metadata:\n  source: auto-skill\n---\n\nDo")
    assert kit.propose("notes", opt_in).applied
    assert kit.propose("notes", edit, actor="reviewer").applied


def test_what_the_user_put_away_is_not_made_again(kit: Any, rule: Rule) -> None:
    """A machine does not bring back, under its name, what was archived or what the user deleted."""
    kit.create("notes", learned=True)
    create = Create({"SKILL.md": kit.md("notes", "Again.\n", learned=True)})
    assert kit.propose("notes", Archive()).applied
    assert rule(kit.propose("notes", create, actor="reviewer")) == "archived"
    assert kit.propose("notes", Delete()).applied
    assert rule(kit.propose("notes", create, actor="distiller")) == "deleted-by-user"
    assert kit.propose("notes", create).applied


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("allowed-tools: Bash\n", "Run it.\n"),
        ("", "Run it\u200b with care.\n"),
        ("", "Run it \u202egnp.exe\n"),
    ],
)
def test_learned_skill_gives_no_powers(tmp_path: Path, kit: Any, head: str, body: str) -> None:
    """With the real scan, tools and hidden characters do not get into a learned skill."""
    gate = Gate([kit.place], neighbours=NoNeighbours(), data=str(tmp_path / "d"))
    text = kit.md("notes", body, learned=True).replace(b"metadata", head.encode() + b"metadata", 1)
    for actor in ("reviewer", "distiller", "agent"):
        verdict = gate.propose(make_change("notes", Create({"SKILL.md": text}), actor=actor))
        assert verdict.refused
        assert verdict.refusal is not None
        assert verdict.refusal.step == "scan"
    assert not kit.root.exists()


def test_pinned_is_the_users_alone(kit: Any, rule: Rule) -> None:
    """Nobody but the user changes a pinned skill, until it is unpinned."""
    kit.create("notes", learned=True)
    assert kit.propose("notes", Pin()).applied
    edit = Edit("step by step", "at once")
    for actor in ("agent", "reviewer", "improver", "curator", "distiller"):
        assert rule(kit.propose("notes", edit, actor=actor)) == "pinned"
    assert rule(kit.propose("notes", Archive(), actor="curator")) == "pinned"
    assert rule(kit.propose("notes", Pin())) == "no-change"
    assert kit.propose("notes", edit).applied
    assert kit.history.pinned() == ["notes"]
    assert kit.propose("notes", Unpin()).applied
    assert kit.propose("notes", Edit("at once", "later"), actor="reviewer").applied


def test_pin_follows_a_rename(kit: Any) -> None:
    """A pinned skill that is renamed stays pinned under its new name only."""
    kit.create("notes")
    assert kit.propose("notes", Pin()).applied
    assert kit.propose("notes", Rename("memo")).applied
    assert kit.history.pinned() == ["memo"]


def test_support_files_are_not_a_way_to_skill_md(kit: Any, rule: Rule) -> None:
    """SKILL.md is neither written nor removed as a support file, and no second one is planted."""
    kit.create("notes")
    for path in ("SKILL.md", "skill.md", "Skill.md"):
        assert rule(kit.propose("notes", WriteFile(path, b"x"))) == "skill-file"
        assert rule(kit.propose("notes", RemoveFile(path))) == "skill-file"
    assert rule(kit.propose("notes", WriteFile("x/SKILL.md", b"x"))) == "nested-skill"
    assert rule(kit.propose("notes", Rewrite({"a.md": b"x"}))) == "no-skill-file"


def test_operations_land_together_or_not_at_all(kit: Any, rule: Rule) -> None:
    """A change of three edits whose last cannot be made changes nothing."""
    kit.create("notes", "one\ntwo\n")
    edits = (Edit("one", "1"), WriteFile("a.md", b"a"), Edit("three", "3"))
    assert rule(kit.propose("notes", *edits)) == "not-found"
    assert kit.text("notes").endswith("one\ntwo\n")
    assert not (kit.root / "notes" / "a.md").exists()
    assert kit.propose("notes", *edits[:2]).applied
    assert rule(kit.propose("notes", Edit("1", "2"), Archive())) == "mixed-operations"
    assert rule(kit.propose("notes")) == "no-operations"


def test_no_change_is_said(kit: Any, rule: Rule) -> None:
    """An edit that changes nothing is not reported as done."""
    kit.create("notes")
    assert rule(kit.propose("notes", Edit("step by step", "step by step"))) == "no-change"
    assert kit.kinds("notes") == ["create"]


def test_support_files_keep_their_permissions(kit: Any) -> None:
    """Programs stay programs, private files stay private, untouched files stay the same file."""
    kit.create("notes", scripts__run=b"#!/bin/sh\n", references__big=b"x" * 1000)
    os.chmod(kit.root / "notes" / "scripts" / "run", 0o750)
    os.chmod(kit.root / "notes" / "SKILL.md", 0o600)
    big = (kit.root / "notes" / "references" / "big").stat()
    assert kit.propose("notes", Edit("step by step", "at once")).applied
    after = (kit.root / "notes" / "references" / "big").stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_nlink) == (big.st_ino, big.st_mtime_ns, 1)
    assert (kit.root / "notes" / "SKILL.md").stat().st_mode & 0o777 == 0o600
    assert kit.propose("notes", WriteFile("scripts/run", b"#!/bin/sh\nls\n")).applied
    assert (kit.root / "notes" / "scripts" / "run").stat().st_mode & 0o777 == 0o750


def test_what_is_not_versioned_comes_along(kit: Any, rule: Rule) -> None:
    """A skill's own .git and node_modules survive an edit, a rename and the archive, unread."""
    kit.create("notes")
    git = kit.root / "notes" / ".git"
    subprocess.run(["git", "init", "-q", str(kit.root / "notes")], check=True)
    (kit.root / "notes" / "node_modules" / "x").mkdir(parents=True)
    (kit.root / "notes" / "node_modules" / "x" / "SKILL.md").write_text("not ours")
    config = (git / "config").read_text()
    assert kit.propose("notes", Edit("step by step", "at once")).applied
    assert kit.propose("notes", Rename("memo")).applied
    assert kit.propose("memo", Archive()).applied
    assert kit.propose("memo", Restore()).applied
    assert (kit.root / "memo" / ".git" / "config").read_text() == config
    assert (kit.root / "memo" / "node_modules" / "x" / "SKILL.md").exists()
    assert set(kit.history.files(kit.history.head("memo"))) == {"SKILL.md"}
    assert rule(kit.propose("memo", Delete())) == "unversioned"
    assert kit.propose("memo", Delete(), overrides=("unversioned",)).applied


def test_rename_changes_folder_and_frontmatter(kit: Any, rule: Rule) -> None:
    """After a rename the skill has one name, its history goes on, and the old name is free."""
    kit.create("notes", scripts__run=b"ls\n")
    kit.create("taken")
    assert rule(kit.propose("notes", Rename("taken"))) == "exists"
    assert rule(kit.propose("notes", Rename("../up"))) == "unsafe-character"
    assert rule(kit.propose("notes", Rename("Not Valid"))) == "name-form"
    assert kit.propose("notes", Rename("memo")).applied
    assert kit.names() == ["memo", "taken"]
    assert "name: memo\n" in kit.text("memo")
    assert kit.text("memo", "scripts/run") == "ls\n"
    assert kit.kinds("memo") == ["create", "renamed", "rename"]
    assert kit.kinds("notes") == ["create", "renamed"]
    kit.create("notes", "another\n")


def test_archive_and_restore(kit: Any, rule: Rule) -> None:
    """An archived skill is out of every reader's way and comes back as it was, twice if need be."""
    kit.create("notes", "first\n")
    assert kit.propose("notes", Archive()).applied
    assert kit.names() == []
    assert rule(kit.propose("notes", Edit("first", "x"))) == "archived"
    kit.create("notes", "second\n")
    assert rule(kit.propose("notes", Restore())) == "exists"
    assert kit.propose("notes", Archive()).applied
    assert sorted(p.name for p in (kit.root / ".archive").glob("n*")) == ["notes", "notes~2"]
    assert kit.propose("notes", Restore()).applied
    assert kit.text("notes").endswith("second\n")
    assert kit.propose("notes", Delete()).applied
    assert kit.propose("notes", Restore()).applied
    assert kit.text("notes").endswith("first\n")
    assert rule(kit.propose("nothing", Restore())) == "not-archived"


def test_what_comes_back_from_the_archive_is_scanned_again(kit: Any, rule: Rule) -> None:
    """Others may write into the archive: what was planted there does not land unseen."""
    kit.create("notes", "first\n")
    assert kit.propose("notes", Archive()).applied
    file = kit.root / ".archive" / "notes" / "SKILL.md"
    kept = file.read_text()
    file.write_text(kept + "BLOCK\n")
    assert rule(kit.propose("notes", Restore())) == "word-block"
    assert kit.names() == []
    file.write_text(kept)
    assert kit.propose("notes", Restore()).applied


def test_library_does_not_see_archive_or_stage(kit: Any) -> None:
    """No reader lists an archived skill."""
    from tacit.skills.index_builder import walk

    kit.create("one")
    kit.create("two")
    assert kit.propose("two", Archive()).applied
    assert list(walk(str(kit.root)).skills) == ["one"]


def test_merge_into_edits_one_and_archives_the_other(kit: Any, rule: Rule) -> None:
    """A merge lands as one change in both skills, or in neither."""
    kit.create("one", "alpha\n", learned=True)
    kit.create("two", "beta\n", learned=True)
    bad = MergeInto("two", (Edit("gamma", "x"),))
    assert rule(kit.propose("one", bad, actor="curator")) == "not-found"
    assert kit.names() == ["one", "two"]
    merge = MergeInto(
        "two", (Edit("beta", "alpha and beta"), WriteFile("references/one.md", b"a\n"))
    )
    verdict = kit.propose("one", merge, actor="curator")
    assert verdict.applied
    assert kit.names() == ["two"]
    assert kit.text("two").endswith("alpha and beta\n")
    assert {v.record.skill for v in kit.history.of_change(verdict.change)} == {"one", "two"}
    assert kit.history.head("one").record.partner == "two"
    assert rule(kit.propose("two", MergeInto("two"))) == "itself"


def test_curator_needs_an_umbrella(make_kit: Callable[..., Any], rule: Rule) -> None:
    """The curator makes a skill only over at least two learned ones that exist."""
    kit = make_kit()
    kit.options["neighbours"] = LibraryNeighbours(str(kit.root.parent))
    work = kit.root.parent
    place = Place(str(work / ".agents" / "skills"), "project", str(work))
    gate = Gate([place], neighbours=LibraryNeighbours(str(work)), data=str(work / "data"),
                scanner=kit.options["scanner"])  # fmt: skip
    (work / ".tacit").mkdir()

    def propose(name: str, body: str, actor: Any, *absorbs: str) -> Any:
        create = Create({"SKILL.md": kit.md(name, body, learned=True)}, absorbs=absorbs)
        return gate.propose(make_change(name, create, actor=actor))

    assert propose("pack-a", "Pack apples with care.\n", "reviewer").applied
    assert propose("pack-b", "Ship boxes by the morning train.\n", "reviewer").applied
    umbrella = "One guide to sending things.\n"
    assert rule(propose("packing", umbrella, "curator")) == "umbrella"
    assert rule(propose("packing", umbrella, "curator", "pack-a", "nothing")) == "umbrella"
    assert propose("packing", umbrella, "curator", "pack-a", "pack-b").applied


def test_editing_a_bundled_skill_makes_a_copy(tmp_path: Path, kit: Any) -> None:
    """The user's edit of a skill that is not theirs lands as a copy in their scope."""
    bundled = tmp_path / "bundled" / "guide"
    (bundled / "scripts").mkdir(parents=True)
    (bundled / "SKILL.md").write_bytes(kit.md("guide"))
    (bundled / "scripts" / "run").write_text("ls\n")
    (bundled / "scripts" / "run").chmod(0o755)
    places = [Place(str(tmp_path / "own"), "user"), Place(str(tmp_path / "bundled"), "bundled")]
    gate = Gate(
        places, neighbours=NoNeighbours(), scanner=kit.options["scanner"], data=str(kit.data)
    )
    edit = Edit("step by step", "my way")
    change = make_change("guide", edit, actor="user", root=str(tmp_path / "bundled"))
    verdict = gate.propose(change)
    assert verdict.applied
    assert "my way" in (tmp_path / "own" / "guide" / "SKILL.md").read_text()
    assert os.access(tmp_path / "own" / "guide" / "scripts" / "run", os.X_OK)
    assert "step by step" in (bundled / "SKILL.md").read_text()
    head = gate.open_place(str(tmp_path / "own")).history.head("guide")
    assert head is not None
    assert head.record.partner == str(tmp_path / "bundled")


def test_size_limits(kit: Any, rule: Rule) -> None:
    """A body, a skill or a number of files over the limit is refused, each by its own rule."""
    long = {"SKILL.md": kit.md("a", "line\n" * 501)}
    heavy = {"SKILL.md": kit.md("a", "word " * 5000 + "\n")}
    big = {"SKILL.md": kit.md("a"), "assets/x.txt": b"x" * 1_100_000}
    many = {"SKILL.md": kit.md("a"), **{f"references/{n}.md": b"x" for n in range(50)}}
    assert rule(kit.propose("a", Create(long))) == "long-body"
    assert rule(kit.propose("a", Create(heavy))) == "heavy-body"
    assert rule(kit.propose("a", Create(big))) == "heavy-skill"
    assert rule(kit.propose("a", Create(many))) == "many-files"
    assert kit.propose("a", Create(long), overrides=("long-body",)).applied
    assert kit.propose("a", Edit("---\n\nline\n", "---\n\n")).applied  # it was over, and shrinks
    assert rule(kit.propose("a", Edit("---\n\nline\n", "---\n\n1\n2\n"))) == "long-body"


def test_near_duplicate_is_refused_with_its_name(home: Path, rule: Rule, kit: Any) -> None:
    """A create that mostly repeats a skill, also one of the user's, is told to edit that one."""
    gate = Gate(scanner=kit.options["scanner"])
    body = "Check the changelog. Tag the release. Push the tag and wait for the build to pass.\n"
    first = make_change("release", Create({"SKILL.md": kit.md("release", body * 3)}), actor="agent")
    assert gate.propose(first).applied
    text = kit.md("ship-it", body * 3 + "Tell the team.\n", learned=True)
    verdict = gate.propose(make_change("ship-it", Create({"SKILL.md": text}), actor="reviewer"))
    assert rule(verdict) == "near-duplicate"
    assert verdict.refusal is not None
    assert verdict.refusal.alternatives == ("release",)
    other = kit.md("bake", "Heat the oven. Mix flour and water.\n", learned=True)
    assert gate.propose(make_change("bake", Create({"SKILL.md": other}), actor="reviewer")).applied


def test_the_same_files_are_scanned_once(make_kit: Callable[..., Any]) -> None:
    """Previewed, proposed and accepted, a change is scanned once; another text is scanned anew, and
    so is the same one where the scanner has come to know more."""
    scanned: list[str] = []

    def count(files: Any, **how: Any) -> Any:
        scanned.extend(data.decode()[-4:] for data in files.values())
        return SimpleNamespace(findings=())

    count.generation = 1  # type: ignore[attr-defined]
    kit = make_kit(scanner=count, always_ask=("reviewer",))
    change = kit.change(
        "notes", Create({"SKILL.md": kit.md("notes", "One", learned=True)}), actor="reviewer"
    )
    assert kit.gate.preview(change).refusal is None
    assert kit.gate.propose(change).outcome == "proposed"
    assert kit.gate.accept(kit.gate.inbox.waiting()[0]).applied
    assert scanned == ["\nOne"]
    assert kit.propose("notes", Edit("One", "Two")).applied
    assert scanned[-1] == "\nTwo"
    again = kit.change("other", Create({"SKILL.md": kit.md("other", "One")}))
    for generation in (1, 1, 2):
        count.generation = generation  # type: ignore[attr-defined]
        assert kit.gate.preview(again).refusal is None
    assert scanned[2:] == ["\nOne"] * 2


def test_another_actor_or_library_is_judged_anew(home: Path, kit: Any, rule: Rule) -> None:
    """What passed once does not pass for a machine, nor beside a skill that says the same."""
    kit.create("tools")
    program = WriteFile("scripts/a.sh", b"echo\n", executable=True)
    assert kit.gate.preview(kit.change("tools", program)).refusal is None
    assert rule(kit.propose("tools", program, actor="improver")) == "executable"
    gate = Gate([user_place()])
    text = "Collect the merged work since the last tag and group it by what users will notice.\n"
    new = kit.change("release-text", Create({"SKILL.md": kit.md("release-text", text)}))
    assert gate.preview(new).refusal is None
    old = kit.change("release-notes", Create({"SKILL.md": kit.md("release-notes", text)}))
    assert gate.propose(old).applied
    assert rule(gate.propose(new)) == "near-duplicate"


def test_reviewer_takes_no_name_in_any_scope(home: Path, rule: Rule, kit: Any) -> None:
    """A name that the user already uses in another scope is not taken by a machine."""
    gate = Gate(scanner=kit.options["scanner"])
    mine = Create({"SKILL.md": kit.md("notes", "Mine alone.\n")})
    assert gate.propose(make_change("notes", mine, actor="user", root=user_place().root)).applied
    theirs = Create({"SKILL.md": kit.md("notes", "Something else.\n", learned=True)})
    verdict = gate.propose(make_change("notes", theirs, actor="reviewer"))
    assert rule(verdict) == "exists"
    alike = Create({"SKILL.md": kit.md("n0tes", "Something else.\n", learned=True)})
    assert rule(gate.propose(make_change("n0tes", alike, actor="reviewer"))) == "exists"
    assert gate.propose(make_change("notes", theirs, actor="user")).applied


def test_one_skill_with_two_names_is_found_by_both(home: Path, kit: Any) -> None:
    """A folder and a frontmatter that disagree name the same skill, for changes as for readers."""
    gate = Gate(scanner=kit.options["scanner"])
    folder = Path(project_place().root) / "folder-name"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(kit.md("other-name", "one\n\ntwo\n"))
    assert gate.propose(make_change("other-name", Edit("one", "1"), actor="user")).applied
    assert gate.propose(make_change("folder-name", Edit("two", "2"), actor="user")).applied
    assert (folder / "SKILL.md").read_text().endswith("1\n\n2\n")


def test_skill_is_found_in_whichever_place_has_it(home: Path, kit: Any) -> None:
    """Without a folder named, an edit goes to where the library has the skill."""
    other = home / ".claude" / "skills" / "notes"
    other.mkdir(parents=True)
    (other / "SKILL.md").write_bytes(kit.md("notes", "one\n"))
    gate = Gate(scanner=kit.options["scanner"])
    verdict = gate.propose(make_change("notes", Edit("one", "1"), actor="user"))
    assert verdict.applied, verdict
    assert (other / "SKILL.md").read_text().endswith("1\n")


def test_nested_folder_is_a_skill_too(kit: Any) -> None:
    """A skill in a category folder is changed, archived and restored in its place."""
    kit.by_hand("tools/notes", "one\n")
    assert kit.propose("tools/notes", Edit("one", "1")).applied
    assert kit.propose("tools/notes", Archive()).applied
    assert kit.propose("tools/notes", Restore()).applied
    assert kit.text("tools/notes").endswith("1\n")
    assert kit.propose("tools", Archive()).refused


def test_actor_cannot_be_forged(kit: Any, rule: Rule) -> None:
    """Code that runs for the reviewer cannot hand in a change as the user."""
    kit.create("notes")
    change = kit.change("notes", Edit("step by step", "x"), actor="user")
    with acting_as("reviewer"):
        assert rule(kit.gate.propose(change)) == "actor"
    bad = msgspec.structs.replace(change, id="../../etc")
    assert rule(kit.gate.propose(bad)) == "change-id"


def test_events_tell_what_happened(kit: Any) -> None:
    """A landed change and a waiting one are each announced once."""
    heard: list[Any] = []
    with bus.listening(Applied, heard.append), bus.listening(Proposed, heard.append):
        kit.create("notes")
        kit.propose("notes", Edit("step by step", "x"), actor="improver")
        kit.propose("notes", Edit("step by step", "x"), actor="improver")
    assert [type(event).__name__ for event in heard] == ["Applied", "Proposed"]


def test_unwritable_place_is_an_error_with_a_hint(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is raised, not passed over: nothing has changed and nothing is left behind."""
    kit.create("notes")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Folder, "write_new", full)
    with pytest.raises(Unwritable, match="No space left"):
        kit.propose("notes", Edit("step by step", "x"))
    monkeypatch.undo()
    assert "step by step" in kit.text("notes")
    assert not (kit.root / ".tacit-stage").exists()
    assert kit.propose("notes", Edit("step by step", "x")).applied


def test_no_history_no_change(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the version that stands there cannot be recorded, it is not replaced."""
    kit.by_hand("notes")
    from tacit.changes.git_store import Objects

    def full(*_: Any) -> None:
        raise Unwritable("cannot write the history: full")

    monkeypatch.setattr(Objects, "write_file", full)
    with pytest.raises(Unwritable):
        kit.propose("notes", Edit("By hand", "x"))
    monkeypatch.undo()
    assert "By hand" in kit.text("notes")


def test_unknown_place(kit: Any, tmp_path: Path) -> None:
    """A skills folder that the gate was not made for is not written."""
    with pytest.raises(NotFound):
        kit.propose("x", Create({"SKILL.md": kit.md("x")}), root=str(tmp_path / "elsewhere"))


def test_edit_race_with_a_person(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A save between the moment a skill is read and the moment it is replaced is kept."""
    from tacit.changes import journal

    kit.create("notes", "one\n\ntwo\n\nthree\n", learned=True)
    original, saves = journal.swap_names, []

    def save_first(*args: Any) -> bool:
        if not saves:
            path = kit.root / "notes" / "SKILL.md"
            text = path.read_text().replace("three", "three, by hand")
            path.with_suffix(".tmp").write_text(text)  # as editors save
            path.with_suffix(".tmp").rename(path)
            saves.append(1)
        return original(*args)

    monkeypatch.setattr(journal, "swap_names", save_first)
    assert kit.propose("notes", Edit("one", "1"), actor="reviewer").applied
    assert kit.text("notes").endswith("1\n\ntwo\n\nthree, by hand\n")
    assert kit.kinds("notes") == ["create", "hand", "edit"]


def test_neighbours_see_what_was_just_made(home: Path, kit: Any) -> None:
    """A skill made a moment ago is found by name and by likeness, without reading all again."""
    from tacit.base.clock import SystemClock

    class Stopped(SystemClock):
        def monotonic(self) -> float:
            return 0.0

    neighbours = LibraryNeighbours(clock=Stopped())
    gate = Gate(scanner=kit.options["scanner"], neighbours=neighbours)
    assert neighbours.find("notes") is None
    body = "Water the plants on the sill each morning and turn the pots by a quarter.\n"
    create = Create({"SKILL.md": kit.md("notes", body, learned=True)})
    assert gate.propose(make_change("notes", create, actor="reviewer")).applied
    found = neighbours.find("notes")
    assert found is not None
    assert (found.folder, found.origin) == ("notes", "learned")
    again = Create({"SKILL.md": kit.md("memo", body, learned=True)})
    verdict = gate.propose(make_change("memo", again, actor="reviewer"))
    assert verdict.refusal is not None
    assert verdict.refusal.rule == "near-duplicate"
    assert gate.propose(make_change("notes", Delete(), actor="user")).applied
    assert neighbours.find("notes") is None


def put_together(kit, *changes):
    group = new_change_id()
    for skill, operation in changes:
        change = make_change(skill, operation, actor="user")
        assert kit.gate.propose(msgspec.structs.replace(change, group=group)).applied
    return group


def everything(kit) -> dict[str, bytes]:
    """Every file that a reader sees, and everything in the archive."""
    return {
        str(path.relative_to(kit.root)): path.read_bytes()
        for path in sorted(kit.root.rglob("*"))
        if path.is_file() and path.name != ".gitignore"
    }


@pytest.fixture
def group(kit) -> str:
    """A new skill that takes in two others, and an edit of a third that named one of them."""
    for name in ("one", "two", "three"):
        kit.create(name, f"See `one`. This is {name}.\n", learned=True)
    kit.before = everything(kit)
    return put_together(
        kit,
        ("all", Create({"SKILL.md": kit.md("all", learned=True)})),
        ("three", Edit("`one`", "`all`")),
        ("one", MergeInto("all", (Edit("step by step", "as one says"),))),
        ("two", MergeInto("all")),
    )


def test_one_undo_for_all_of_it(kit, group) -> None:
    """Undone as a group, every byte is as it was; undone once more, it is all back."""
    after = everything(kit)
    assert after != kit.before
    assert all(verdict.applied for verdict in undo_group(kit.gate, group, actor="user"))
    assert everything(kit) == kit.before
    assert all(verdict.applied for verdict in undo_group(kit.gate, group, actor="user"))
    assert everything(kit) == after


def test_what_was_undone_alone_is_passed_over(kit, group) -> None:
    """After one change was taken back by itself, or a kill in the middle, the rest follows."""
    last = group_members(kit.gate, group)[-1][1]
    assert kit.gate.undo(last, actor="user").applied
    verdicts = undo_group(kit.gate, group, actor="user")
    assert [v.outcome for v in verdicts] == ["applied"] * 3
    assert everything(kit) == kit.before


def test_one_that_cannot_be_undone_stops_no_other(kit, group) -> None:
    """Later edits of the same lines keep their change; the others are taken back and it is said."""
    kit.propose("three", Edit("See `all`.", "Look at `all`!"))
    verdicts = {v.skill: v for v in undo_group(kit.gate, group, actor="user")}
    assert [name for name, v in verdicts.items() if v.refused] == ["three"]
    assert verdicts["three"].refusal.rule == "conflict"
    assert {"one", "two"} <= set(kit.names())


def test_a_group_is_found_by_the_end_of_its_id(kit, group) -> None:
    """As changes are; a change's own id is no group's, and a short text means nothing."""
    assert find_group(kit.gate, group[-8:]) == group
    assert find_group(kit.gate, group_members(kit.gate, group)[0][1]) == ""
    assert find_group(kit.gate, "") == ""
    with pytest.raises(NotFound, match="no group"):
        undo_group(kit.gate, new_change_id(), actor="user")


def test_a_group_must_be_an_id(kit, rule) -> None:
    """A group that is no id, such as a path, is turned away before anything is written."""
    kit.create("one")
    change = msgspec.structs.replace(kit.change("one", Archive()), group="../../x")
    assert rule(kit.gate.propose(change)) == "change-id"


def test_the_machine_takes_back_only_its_own(kit, group) -> None:
    """The curator cannot undo a group of the user's."""
    verdicts = undo_group(kit.gate, group, actor="curator")
    assert {v.refusal.rule for v in verdicts if v.refusal} == {"curator-undo"}


def test_a_merge_points_to_what_took_it_in(kit, group) -> None:
    """The history of an absorbed skill names the other, and carries the group."""
    head = kit.history.head("two")
    assert (head.record.partner, head.record.group) == ("all", group)


def test_a_check_of_ones_own_is_asked_too(kit: Any) -> None:
    """What a registered check says against a change refuses it; other changes land."""

    def no_shouting(effect: Effect) -> list[Refusal]:
        loud = [path for path, file in effect.new.items() if b"!!!" in file.data]
        return [Refusal("check", "shouting", f"{path} is too loud", "hush") for path in loud]

    kit.create("notes", "one\n")
    register_check(no_shouting)
    refused = kit.propose("notes", Edit("one", "ONE!!!"))
    assert (refused.refusal.step, refused.refusal.rule) == ("check", "shouting")
    assert kit.text("notes").endswith("one\n")
    assert kit.propose("notes", Edit("one", "two")).applied
