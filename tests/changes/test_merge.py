"""Three-way merges: nobody's line is lost in silence."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.changes.files import File
from tacit.changes.merge import merge

LABELS = ("now", "edit")


def of(**files: str) -> dict[str, File]:
    return {name: File(text.encode()) for name, text in files.items()}


def test_each_side_changes_its_own() -> None:
    """Changes to different lines, new files and removed files come together."""
    base = of(a="1\n2\n3\n4\n5\n", gone="x", same="s")
    ours = of(a="one\n2\n3\n4\n5\n", gone="x", same="s", mine="m")
    theirs = of(a="1\n2\n3\n4\nfive\n", same="s", theirs="t")
    merged = merge(base, ours, theirs, labels=LABELS)
    assert merged.conflicts == ()
    assert merged.files == of(a="one\n2\n3\n4\nfive\n", same="s", mine="m", theirs="t")


def test_same_line_is_a_conflict_with_both_texts() -> None:
    """Both texts and the old one stand in the result, between named marks."""
    merged = merge(of(a="x\n"), of(a="ours\n"), of(a="theirs\n"), labels=LABELS)
    assert merged.conflicts == ("a",)
    text = merged.files["a"].data.decode()
    assert all(word in text for word in ("<<<<<<< now", "ours", "x", "theirs", ">>>>>>> edit"))


def test_removed_and_changed_is_a_conflict_that_keeps_the_change() -> None:
    """A file that one side removed and the other changed is kept, and is a conflict."""
    for ours, theirs in ((of(), of(a="new")), (of(a="new"), of())):
        merged = merge(of(a="old"), ours, theirs, labels=LABELS)
        assert merged.conflicts == ("a",)
        assert merged.files == of(a="new")


def test_binary_and_links_are_not_mixed() -> None:
    """Bytes that are no text, and links, are never merged by lines."""
    base, ours, theirs = ({"a": File(b"\0" + text)} for text in (b"1", b"2", b"3"))
    assert merge(base, ours, theirs, labels=LABELS).conflicts == ("a",)
    link = {"a": File(b"there", "link")}
    assert merge(of(a="1"), of(a="2"), link, labels=LABELS).conflicts == ("a",)


def test_permission_and_text_come_together() -> None:
    """One side makes a file a program, the other edits it: both hold."""
    base = {"run": File(b"1\n")}
    merged = merge(base, {"run": File(b"1\n", "program")}, {"run": File(b"2\n")}, labels=LABELS)
    assert merged.files == {"run": File(b"2\n", "program")}
    assert merged.conflicts == ()


LINES = st.lists(st.sampled_from("abcdef"), max_size=6).map(
    lambda lines: "".join(f"{line}\n" for line in lines).encode()
)


@settings(max_examples=40, deadline=None)
@given(LINES, LINES, LINES)
def test_merge_keeps_every_new_line(base: bytes, ours: bytes, theirs: bytes) -> None:
    """Every line that a side added stands in the result, conflict or not."""
    merged = merge({"a": File(base)}, {"a": File(ours)}, {"a": File(theirs)}, labels=LABELS)
    text = merged.files["a"].data if "a" in merged.files else b""
    for side in (ours, theirs):
        added = set(side.split(b"\n")) - set(base.split(b"\n"))
        assert added <= set(text.split(b"\n"))
    if ours == theirs:
        assert merged.conflicts == ()
