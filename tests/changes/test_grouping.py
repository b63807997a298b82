"""Changes that were made together are taken back together, by one id."""

import msgspec
import pytest

from tacit.base.errors import NotFound
from tacit.changes.change import Archive, Create, Edit, MergeInto, make_change, new_id
from tacit.changes.grouping import find_group, members, undo_group


def put_together(kit, *changes):
    group = new_id()
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
    last = members(kit.gate, group)[-1][1]
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
    assert find_group(kit.gate, members(kit.gate, group)[0][1]) == ""
    assert find_group(kit.gate, "") == ""
    with pytest.raises(NotFound, match="no group"):
        undo_group(kit.gate, new_id(), actor="user")


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
