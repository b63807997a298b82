"""Edits: exact, unique, and helpful when they are neither."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.changes.change import Create, Edit, File, RemoveFile, Rewrite, WriteFile
from tacit.changes.file_edits import (
    Unfit,
    apply_operations,
    diff_files,
    edit_file,
    merge_files,
    rename_in_head,
)

TEXT = "---\nname: notes\n---\n\n# Notes\n\nRun the tests.\nRun the build.\n\tTabbed line\n"


def files(text: str = TEXT) -> dict[str, File]:
    return {"SKILL.md": File(text.encode()), "a.md": File(b"a\n")}


def refusal(old: str, new: str = "x", text: str = TEXT) -> Any:
    with pytest.raises(Unfit) as unfit:
        edit_file(files(text), Edit(old, new))
    return unfit.value.refusal


def test_exact_and_unique() -> None:
    """What stands there once is replaced, and nothing else changes."""
    assert (
        edit_file(files(), Edit("Run the tests.", "Test.")).data
        == TEXT.replace("Run the tests.", "Test.").encode()
    )


def test_not_unique_names_the_lines() -> None:
    """What stands there twice is refused, with the lines."""
    found = refusal("Run the")
    assert found.rule == "not-unique"
    assert "lines 7, 8" in found.reason


def test_not_found_shows_what_is_near() -> None:
    """What is nearly there is shown as it really stands, with its line."""
    found = refusal("run the test")
    assert found.rule == "not-found"
    assert "line 7:\nRun the tests." in found.reason
    assert "line 9:\n\tTabbed line" in refusal("    Tabbed line").reason
    found = refusal("teh build", text=TEXT.replace("Run the build.", "First " * 20 + "the build."))
    assert "line 8:" in found.reason
    both = refusal("Run the tests!\nRun the build!")
    assert "Run the tests.\nRun the build." in both.reason


def test_not_found_at_all() -> None:
    """What is nowhere near is said plainly."""
    found = refusal("zzzz qqqq xxxx")
    assert "nearest" not in found.reason
    assert refusal("").rule == "empty-old"


def test_windows_line_ends_are_kept() -> None:
    """An edit written with plain line ends fits a file with Windows ones, which stay."""
    text = TEXT.replace("\n", "\r\n")
    changed = edit_file(files(text), Edit("tests.\nRun", "tests!\nThen run")).data
    assert changed == text.replace("tests.\r\nRun", "tests!\r\nThen run").encode()


def test_binary_and_missing_files() -> None:
    """A file that is no text, or is not there, is refused with a hint."""
    with pytest.raises(Unfit) as unfit:
        apply_operations({**files(), "x.bin": File(b"\xff\xfe")}, [Edit("a", "b", "x.bin")])
    assert unfit.value.refusal.rule == "not-text"
    with pytest.raises(Unfit) as unfit:
        apply_operations(files(), [RemoveFile("b.md")])
    assert "a.md" in unfit.value.refusal.hint


def test_programs_stay_programs() -> None:
    """A rewritten script keeps its right to be run; a link survives a rewrite."""
    before = {**files(), "run": File(b"ls", "program"), "l": File(b"a.md", "link")}
    after = apply_operations(before, [Rewrite({"SKILL.md": b"x", "run": b"ls -l"})])
    assert after["run"].kind == "program"
    assert after["l"].kind == "link"
    assert "a.md" not in after
    assert apply_operations(before, [WriteFile("run", b"x")])["run"].kind == "program"


def test_rename_touches_one_line() -> None:
    """Only the frontmatter's name changes, whatever else says 'name:'."""
    text = "---\ndescription: d\nname:  'notes'  # mine\n---\n\nname: notes\n"
    after = rename_in_head({"SKILL.md": File(text.encode())}, "memo")["SKILL.md"].data.decode()
    assert after == "---\ndescription: d\nname: memo\n---\n\nname: notes\n"
    with pytest.raises(Unfit):
        rename_in_head({"SKILL.md": File(b"no head\nname: x\n")}, "memo")


@given(st.text(max_size=60), st.text(min_size=1, max_size=8), st.text(max_size=8))
def test_edit_replaces_once_or_refuses(text: str, old: str, new: str) -> None:
    """For any text, an edit makes exactly one replacement or none at all."""
    try:
        raw = text.encode()
        old.encode()
        new.encode()
    except UnicodeEncodeError:
        return
    if "\r" in text:
        return
    try:
        after = edit_file({"SKILL.md": File(raw)}, Edit(old, new)).data.decode()
    except Unfit:
        assert text.count(old) != 1
    else:
        before, _, behind = text.partition(old)
        assert after == before + new + behind


LABELS = ("now", "edit")


def of(**files: str) -> dict[str, File]:
    return {name: File(text.encode()) for name, text in files.items()}


def test_each_side_changes_its_own() -> None:
    """Changes to different lines, new files and removed files come together."""
    base = of(a="1\n2\n3\n4\n5\n", gone="x", same="s")
    ours = of(a="one\n2\n3\n4\n5\n", gone="x", same="s", mine="m")
    theirs = of(a="1\n2\n3\n4\nfive\n", same="s", theirs="t")
    merged = merge_files(base, ours, theirs, labels=LABELS)
    assert merged.conflicts == ()
    assert merged.files == of(a="one\n2\n3\n4\nfive\n", same="s", mine="m", theirs="t")


def test_same_line_is_a_conflict_with_both_texts() -> None:
    """Both texts and the old one stand in the result, between named marks."""
    merged = merge_files(of(a="x\n"), of(a="ours\n"), of(a="theirs\n"), labels=LABELS)
    assert merged.conflicts == ("a",)
    text = merged.files["a"].data.decode()
    assert all(word in text for word in ("<<<<<<< now", "ours", "x", "theirs", ">>>>>>> edit"))


def test_removed_and_changed_is_a_conflict_that_keeps_the_change() -> None:
    """A file that one side removed and the other changed is kept, and is a conflict."""
    for ours, theirs in ((of(), of(a="new")), (of(a="new"), of())):
        merged = merge_files(of(a="old"), ours, theirs, labels=LABELS)
        assert merged.conflicts == ("a",)
        assert merged.files == of(a="new")


def test_binary_and_links_are_not_mixed() -> None:
    """Bytes that are no text, and links, are never merged by lines."""
    base, ours, theirs = ({"a": File(b"\0" + text)} for text in (b"1", b"2", b"3"))
    assert merge_files(base, ours, theirs, labels=LABELS).conflicts == ("a",)
    link = {"a": File(b"there", "link")}
    assert merge_files(of(a="1"), of(a="2"), link, labels=LABELS).conflicts == ("a",)


def test_permission_and_text_come_together() -> None:
    """One side makes a file a program, the other edits it: both hold."""
    base = {"run": File(b"1\n")}
    merged = merge_files(
        base, {"run": File(b"1\n", "program")}, {"run": File(b"2\n")}, labels=LABELS
    )
    assert merged.files == {"run": File(b"2\n", "program")}
    assert merged.conflicts == ()


LINES = st.lists(st.sampled_from("abcdef"), max_size=6).map(
    lambda lines: "".join(f"{line}\n" for line in lines).encode()
)


@settings(max_examples=40, deadline=None)
@given(LINES, LINES, LINES)
def test_merge_keeps_every_new_line(base: bytes, ours: bytes, theirs: bytes) -> None:
    """Every line that a side added stands in the result, conflict or not."""
    merged = merge_files({"a": File(base)}, {"a": File(ours)}, {"a": File(theirs)}, labels=LABELS)
    text = merged.files["a"].data if "a" in merged.files else b""
    for side in (ours, theirs):
        added = set(side.split(b"\n")) - set(base.split(b"\n"))
        assert added <= set(text.split(b"\n"))
    if ours == theirs:
        assert merged.conflicts == ()


TEXTS = st.lists(st.sampled_from(["a", "b", "", "c\r", "x y"]), max_size=6).map("\n".join)


@settings(max_examples=25, deadline=None)
@given(TEXTS, TEXTS)
def test_git_can_apply_it(tmp_path: Path, old: str, new: str) -> None:
    """For any two texts, git makes the new one from the old one and the diff."""
    text = diff_files({"SKILL.md": File(old.encode())}, {"SKILL.md": File(new.encode())})
    assert bool(text) == (old != new)
    if not text:
        return
    (tmp_path / "SKILL.md").write_bytes(old.encode())
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "--unidiff-zero", "-"],
        input=text.encode(),
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, (done.stderr, text)
    assert (tmp_path / "SKILL.md").read_bytes() == new.encode()


def test_new_gone_and_binary_files() -> None:
    """A new, a removed and a binary file are each shown for what they are."""
    text = diff_files(
        {"a": File(b"a\n"), "x": File(b"\0")}, {"b": File(b"b\n"), "x": File(b"\0\0")}
    )
    assert "--- a/a\n+++ /dev/null\n" in text
    assert "--- /dev/null\n+++ b/b\n" in text
    assert "# x: 1 bytes becomes 2 bytes\n" in text
    assert "file becomes program" in diff_files({"r": File(b"")}, {"r": File(b"", "program")})


def test_preview_changes_nothing(kit: Any) -> None:
    """A preview gives the diff, the refusal or the question, and leaves no trace."""
    create = kit.change("notes", Create({"SKILL.md": kit.md("notes")}))
    assert "+Do it step by step." in kit.gate.preview(create).diff
    assert not kit.root.exists()
    kit.create("notes")
    before = kit.history.head("notes").id
    asked = kit.gate.preview(kit.change("notes", Edit("step by step", "x"), actor="improver"))
    assert asked.refusal is None
    assert asked.asks[0].rule == "proposes"
    assert "-Do it step by step.\n+Do it x.\n" in asked.diff
    refused = kit.gate.preview(kit.change("notes", Edit("nothing", "x")))
    assert refused.refusal is not None
    blocked = kit.gate.preview(kit.change("notes", Edit("step by step", "BLOCK")))
    assert blocked.refusal is not None
    assert blocked.refusal.rule == "word-block"
    assert kit.history.head("notes").id == before
    assert kit.gate.inbox.waiting() == []
