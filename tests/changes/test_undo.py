"""Undo, redo and rollback: each touches only what it names, and keeps what came after."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.base.errors import NotFound, Unwritable
from tacit.changes.change import (
    Archive,
    Create,
    Delete,
    Edit,
    MergeInto,
    Pin,
    Rename,
    Restore,
    WriteFile,
    acting_as,
)

Rule = Callable[[Any], str]
BODY = "one\n\ntwo\n\nthree\n"


@pytest.fixture(autouse=True)
def as_user() -> Iterator[None]:
    with acting_as("user"):
        yield


def everything(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != ".gitignore"
    }


@pytest.mark.parametrize(
    "operation",
    [
        Edit("two", "2"),
        WriteFile("references/new.md", b"new\n"),
        Rename("memo"),
        Archive(),
        Delete(),
        MergeInto("other", (Edit("two", "two and notes"),)),
    ],
    ids=lambda operation: type(operation).__name__,
)
def test_undo_and_redo_of_each_operation(operation: Any, kit: Any) -> None:
    """Undoing brings back every file as it was; undoing the undo makes the change again."""
    kit.create("notes", BODY, scripts__run=b"ls\n")
    kit.create("other", BODY)
    before = everything(kit.root)
    verdict = kit.propose("notes", operation)
    assert verdict.applied
    after = everything(kit.root)
    assert after != before
    undone = kit.gate.undo(verdict.change)
    assert undone.applied, undone
    assert everything(kit.root) == before
    redone = kit.gate.undo(undone.change)
    assert redone.applied, redone
    assert everything(kit.root) == after
    again = kit.gate.undo(verdict.change)
    assert again.applied, again
    assert everything(kit.root) == before


def test_undo_of_create_and_restore(kit: Any) -> None:
    """Undoing a create removes the skill; undoing a restore archives it again."""
    created = kit.create("notes", BODY)
    archived = kit.propose("notes", Archive())
    restored = kit.propose("notes", Restore())
    assert kit.gate.undo(restored.change).applied
    assert kit.names() == []
    assert kit.gate.undo(archived.change).applied
    assert kit.names() == ["notes"]
    assert kit.gate.undo(created.change).applied
    assert kit.names() == []


def test_undoing_the_same_change_twice_is_redo(kit: Any) -> None:
    """The second undo of a change brings it back, the third takes it away again."""
    kit.create("notes", BODY)
    verdict = kit.propose("notes", Edit("two", "2"))
    for expected in ("two", "2", "two", "2"):
        assert kit.gate.undo(verdict.change).applied
        assert expected in kit.text("notes").splitlines()


def test_undo_keeps_what_came_after(kit: Any) -> None:
    """An older change is taken back out of the middle; later ones and hand edits stay."""
    kit.create("notes", BODY)
    first = kit.propose("notes", Edit("one", "1"))
    kit.propose("notes", Edit("three", "3"))
    path = kit.root / "notes" / "SKILL.md"
    path.write_text(path.read_text() + "\nby hand\n")
    assert kit.gate.undo(first.change).applied
    assert kit.text("notes").endswith("one\n\ntwo\n\n3\n\nby hand\n")
    assert kit.kinds("notes") == ["create", "edit", "edit", "hand", "edit"]
    assert kit.history.head("notes").record.undoes == first.change


def test_undo_of_a_rename_keeps_later_edits(kit: Any) -> None:
    """A renamed and then edited skill gets its old name back with the edits."""
    kit.create("notes", BODY)
    renamed = kit.propose("notes", Rename("memo"))
    assert kit.propose("memo", Edit("two", "2")).applied
    assert kit.gate.undo(renamed.change).applied
    assert kit.names() == ["notes"]
    assert "name: notes\n" in kit.text("notes")
    assert kit.text("notes").endswith("one\n\n2\n\nthree\n")


def test_conflicting_undo_says_so_and_offers_a_merge(kit: Any, rule: Rule) -> None:
    """Where later changes touch the same line, nothing is done and the merged text is offered."""
    kit.create("notes", BODY)
    first = kit.propose("notes", Edit("two", "2"))
    kit.propose("notes", Edit("2", "zwei"))
    verdict = kit.gate.undo(first.change)
    assert (verdict.outcome, rule(verdict)) == ("refused", "conflict")
    text = verdict.offer["SKILL.md"].decode()
    assert "zwei" in text
    assert ">>>>>>> without " + first.change in text
    assert kit.text("notes").endswith("one\n\nzwei\n\nthree\n")


def test_undo_of_a_create_that_was_edited_since(kit: Any, rule: Rule) -> None:
    """A skill that somebody worked on since is not removed by undoing its creation."""
    created = kit.create("notes", BODY)
    assert kit.propose("notes", Edit("two", "2")).applied
    assert rule(kit.gate.undo(created.change)) == "changed-since"
    assert kit.names() == ["notes"]


def test_undo_where_the_name_is_taken_again(kit: Any, rule: Rule) -> None:
    """A deleted or archived skill does not come back over another one of its name."""
    kit.create("notes", "old\n")
    deleted = kit.propose("notes", Delete())
    kit.create("notes", "new\n")
    assert rule(kit.gate.undo(deleted.change)) == "exists"
    archived = kit.propose("notes", Archive())
    kit.create("notes", "newest\n")
    assert rule(kit.gate.undo(archived.change)) == "exists"
    assert kit.text("notes").endswith("newest\n")


def test_undo_of_a_pin_and_of_a_hand_edit(kit: Any, rule: Rule) -> None:
    """A pin and what was done by hand can be taken back too; the baseline cannot."""
    kit.by_hand("notes", BODY)
    pinned = kit.propose("notes", Pin())
    baseline = list(kit.history.log("notes"))[-1]
    assert kit.gate.undo(pinned.change).applied
    assert kit.history.pinned() == []
    path = kit.root / "notes" / "SKILL.md"
    path.write_text(path.read_text().replace("two", "2"))
    hand = kit.gate.state_of("notes").head
    assert hand.record.kind == "hand"
    assert kit.gate.undo(hand.record.change).applied
    assert "two" in kit.text("notes")
    assert rule(kit.gate.undo(baseline.record.change)) == "baseline"


def test_rollback_touches_one_skill(kit: Any) -> None:
    """Rolling one skill back leaves every other skill and its history alone."""
    kit.create("one", BODY)
    kit.create("two", BODY)
    kit.propose("one", Edit("two", "2"))
    kit.propose("two", Edit("two", "2"))
    other = kit.history.head("two").id
    text = kit.text("two")
    assert kit.gate.rollback("one").applied
    assert kit.text("one").endswith(BODY)
    assert (kit.text("two"), kit.history.head("two").id) == (text, other)


def test_rollback_to_any_version(kit: Any, rule: Rule) -> None:
    """A version is named by its id, by its change, or by the beginning of either."""
    first = kit.create("notes", BODY)
    kit.propose("notes", Edit("one", "1"))
    kit.propose("notes", Edit("two", "2"))
    (kit.root / "notes" / "SKILL.md").write_bytes(kit.md("notes", "by hand\n"))
    assert kit.gate.rollback("notes", first.version[:10]).applied
    assert kit.text("notes").endswith(BODY)
    assert kit.kinds("notes")[-2:] == ["hand", "edit"]  # what stood there was saved first
    assert rule(kit.gate.rollback("notes", first.change)) == "no-change"
    kit.propose("notes", Delete())
    assert kit.gate.rollback("notes", first.version).applied
    assert kit.text("notes").endswith(BODY)
    with pytest.raises(NotFound, match="no one version"):
        kit.gate.rollback("notes", "nonsense")
    with pytest.raises(NotFound, match="no earlier version"):
        kit.gate.rollback("nothing")


def test_no_rollback_without_its_safety_copy(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """When what stands there cannot be saved first, the rollback does not go ahead."""
    first = kit.create("notes", BODY)
    (kit.root / "notes" / "SKILL.md").write_bytes(kit.md("notes", "precious\n"))
    from tacit.changes.git_store import Objects

    def full(*_: Any) -> None:
        raise Unwritable("cannot write the history: full")

    monkeypatch.setattr(Objects, "write_file", full)
    with pytest.raises(Unwritable):
        kit.gate.rollback("notes", first.version)
    monkeypatch.undo()
    assert kit.text("notes").endswith("precious\n")
    assert kit.gate.rollback("notes", first.version).applied
    precious = [v for v in kit.history.log("notes") if v.record.kind == "hand"]
    assert b"precious" in kit.history.files(precious[0])["SKILL.md"].data


def test_who_may_undo(kit: Any, rule: Rule) -> None:
    """The user takes back anything; a machine takes back what it did itself, and no more."""
    kit.create("notes", BODY, learned=True)
    mine = kit.propose("notes", Edit("one", "1"))
    with acting_as("improver"):
        theirs = kit.propose("notes", Edit("three", "3"), actor="improver")
        assert rule(kit.gate.undo(mine.change)) == "improver-undo"
        assert rule(kit.gate.rollback("notes")) == "improver-undo"
        assert kit.gate.undo(theirs.change).applied
    with acting_as("agent"):
        assert rule(kit.gate.undo(mine.change)) == "agent-undo"
    assert kit.gate.undo(mine.change).applied


def test_actor_of_an_undo_cannot_be_forged(kit: Any, rule: Rule) -> None:
    """Code that runs for the reviewer cannot undo as the user."""
    kit.create("notes", BODY)
    mine = kit.propose("notes", Edit("one", "1"))
    with acting_as("reviewer"):
        assert rule(kit.gate.undo(mine.change, actor="user")) == "actor"
        assert rule(kit.gate.rollback("notes", actor="user")) == "actor"
    assert "1" in kit.text("notes")


def test_machine_does_not_undo_on_a_pinned_skill(kit: Any, rule: Rule) -> None:
    """Also taking back is changing: a pinned skill is the user's alone."""
    kit.create("notes", BODY, learned=True)
    theirs = kit.propose("notes", Edit("three", "3"), actor="improver")
    assert kit.propose("notes", Pin()).applied
    with acting_as("improver"):
        assert rule(kit.gate.undo(theirs.change)) == "pinned"


def test_machine_undo_follows_the_table(kit: Any, rule: Rule) -> None:
    """A machine does not delete by undoing its create, nor touch what the user took over."""
    create = Create({"SKILL.md": kit.md("fresh", BODY, learned=True)})
    made = kit.propose("fresh", create, actor="reviewer")
    edited = kit.propose("fresh", Edit("three", "3"), actor="reviewer")
    assert kit.propose("fresh", Edit("metadata:\n  source: auto-skill\n", "")).applied
    with acting_as("reviewer"):
        assert rule(kit.gate.undo(edited.change)) == "reviewer-edit-user"
    assert kit.gate.undo(kit.history.head("fresh").record.change).applied
    assert kit.gate.undo(edited.change).applied
    with acting_as("reviewer"):
        assert rule(kit.gate.undo(made.change)) in ("reviewer-delete-learned", "changed-since")


def test_unknown_and_ambiguous_changes(kit: Any) -> None:
    """A change is found by the beginning or the end of its id; a guess is never acted on."""
    verdict = kit.create("notes", BODY)
    kit.propose("notes", Edit("two", "2"))
    with pytest.raises(NotFound):
        kit.gate.undo("2")
    with pytest.raises(NotFound):
        kit.gate.undo("")
    kit.gate.undo(kit.history.head("notes").record.change)
    assert kit.history.find_change(verdict.change[-8:]) == verdict.change
