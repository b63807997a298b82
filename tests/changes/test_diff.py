"""Diffs and previews: what would change, without changing it."""

import subprocess
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.changes.change import Create, Edit
from tacit.changes.diff import diff
from tacit.changes.files import File

TEXTS = st.lists(st.sampled_from(["a", "b", "", "c\r", "x y"]), max_size=6).map("\n".join)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TEXTS, TEXTS)
def test_git_can_apply_it(tmp_path: Path, old: str, new: str) -> None:
    """For any two texts, git makes the new one from the old one and the diff."""
    text = diff({"SKILL.md": File(old.encode())}, {"SKILL.md": File(new.encode())})
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
    text = diff({"a": File(b"a\n"), "x": File(b"\0")}, {"b": File(b"b\n"), "x": File(b"\0\0")})
    assert "--- a/a\n+++ /dev/null\n" in text
    assert "--- /dev/null\n+++ b/b\n" in text
    assert "# x: 1 bytes becomes 2 bytes\n" in text
    assert "file becomes program" in diff({"r": File(b"")}, {"r": File(b"", "program")})


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
