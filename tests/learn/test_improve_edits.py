"""From files before and after to operations, and back."""

from hypothesis import given
from hypothesis import strategies as st

from tacit.changes.change import Edit, RemoveFile, Rewrite, WriteFile
from tacit.changes.edits import perform
from tacit.changes.files import File
from tacit.learn.improve.edits import operations, told

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
    found = operations(before, after)
    assert (perform(before, found) if found else before) == after
    assert bool(told(before, after)) == (before != after)


def test_they_are_small() -> None:
    """Of a text only the stretch that changed is said; other files by what happened to them."""
    before = {"SKILL.md": File(b"1\n2\n3\n4\n"), "scripts/x.sh": File(b"x", "program")}
    after = {"SKILL.md": File(b"1\n2\nthree\n4\n"), "scripts/y.sh": File(b"y")}
    assert operations(before, after) == (
        Edit("3\n", "three\n"),
        RemoveFile("scripts/x.sh"),
        WriteFile("scripts/y.sh", b"y"),
    )
    assert isinstance(operations({"SKILL.md": File(b"\xff")}, after)[0], Rewrite)
