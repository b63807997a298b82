"""Edits: exact, unique, and helpful when they are neither."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.changes.change import Edit, RemoveFile, Rewrite, WriteFile
from tacit.changes.edits import Unfit, edit, perform, rename
from tacit.changes.files import File

TEXT = "---\nname: notes\n---\n\n# Notes\n\nRun the tests.\nRun the build.\n\tTabbed line\n"


def files(text: str = TEXT) -> dict[str, File]:
    return {"SKILL.md": File(text.encode()), "a.md": File(b"a\n")}


def refusal(old: str, new: str = "x", text: str = TEXT) -> Any:
    with pytest.raises(Unfit) as unfit:
        edit(files(text), Edit(old, new))
    return unfit.value.refusal


def test_exact_and_unique() -> None:
    """What stands there once is replaced, and nothing else changes."""
    assert (
        edit(files(), Edit("Run the tests.", "Test.")).data
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
    changed = edit(files(text), Edit("tests.\nRun", "tests!\nThen run")).data
    assert changed == text.replace("tests.\r\nRun", "tests!\r\nThen run").encode()


def test_binary_and_missing_files() -> None:
    """A file that is no text, or is not there, is refused with a hint."""
    with pytest.raises(Unfit) as unfit:
        perform({**files(), "x.bin": File(b"\xff\xfe")}, [Edit("a", "b", "x.bin")])
    assert unfit.value.refusal.rule == "not-text"
    with pytest.raises(Unfit) as unfit:
        perform(files(), [RemoveFile("b.md")])
    assert "a.md" in unfit.value.refusal.hint


def test_programs_stay_programs() -> None:
    """A rewritten script keeps its right to be run; a link survives a rewrite."""
    before = {**files(), "run": File(b"ls", "program"), "l": File(b"a.md", "link")}
    after = perform(before, [Rewrite({"SKILL.md": b"x", "run": b"ls -l"})])
    assert after["run"].kind == "program"
    assert after["l"].kind == "link"
    assert "a.md" not in after
    assert perform(before, [WriteFile("run", b"x")])["run"].kind == "program"


def test_rename_touches_one_line() -> None:
    """Only the frontmatter's name changes, whatever else says 'name:'."""
    text = "---\ndescription: d\nname:  'notes'  # mine\n---\n\nname: notes\n"
    after = rename({"SKILL.md": File(text.encode())}, "memo")["SKILL.md"].data.decode()
    assert after == "---\ndescription: d\nname: memo\n---\n\nname: notes\n"
    with pytest.raises(Unfit):
        rename({"SKILL.md": File(b"no head\nname: x\n")}, "memo")


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
        after = edit({"SKILL.md": File(raw)}, Edit(old, new)).data.decode()
    except Unfit:
        assert text.count(old) != 1
    else:
        before, _, behind = text.partition(old)
        assert after == before + new + behind
