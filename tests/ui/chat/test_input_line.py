"""Completion: which word can be completed, and by what."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.skills.library import Entry
from tacit.ui.chat import input_line
from tacit.ui.chat.input_line import file_candidates, project_files, slash_candidates, token_at


def _entry(name: str, about: str = "") -> Entry:
    return Entry(
        name=name, description=about, folder="/x", scope="user", origin="user",
        host="agents", state="active",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/", ("slash", "")),
        ("/rel", ("slash", "rel")),
        ("/a /b", ("slash", "b")),
        ("/a text /b", None),
        ("/etc/hosts", None),
        (" /a", None),
        ("see @", ("file", "")),
        ("see @src/ma", ("file", "src/ma")),
        ("/a @x", ("file", "x")),
        ("me@example", None),
        ("words", None),
    ],
)
def test_the_word_that_can_be_completed(text: str, found: tuple[str, str] | None) -> None:
    """A slash counts at the beginning and after other names, an at sign after a space."""
    token = token_at(text, len(text))
    assert (None if token is None else (token.kind, token.text)) == found


def test_skills_come_first_then_commands_then_schedules() -> None:
    """Schedules stand below skills and commands, with letters and without."""
    skills = [_entry("zeta"), _entry("alpha"), _entry("s-c-h-e-d")]
    commands = [("help", "keys"), ("cost", "money")]
    found = slash_candidates("", skills, commands, [("sched-nightly-1a2b3c4d", "By night")])
    names = [c.name for c in found]
    assert names == ["alpha", "s-c-h-e-d", "zeta", "help", "cost", "sched-nightly-1a2b3c4d"]
    assert found[-1].kind == "scheduled"
    near = slash_candidates("sched", skills, commands, [("sched-nightly-1a2b3c4d", "By night")])
    assert [c.inserted for c in near] == ["/s-c-h-e-d", "/sched-nightly-1a2b3c4d"]


def test_a_name_typed_in_full_is_first() -> None:
    """The exact name wins over skills that merely hold its letters."""
    skills = [_entry("help-desk"), _entry("the-lamp")]
    assert slash_candidates("help", skills, [("help", "keys")])[0].name == "help"


def test_a_word_of_the_description_will_do() -> None:
    """Where the name has not the letters, the description is looked at, last."""
    skills = [_entry("ship-it", "Release a version."), _entry("release-notes")]
    assert [c.name for c in slash_candidates("release", skills, [])] == ["release-notes", "ship-it"]


def test_files_of_secrets_are_not_offered(home: Path) -> None:
    """Without git the folder is walked; .env and .git are passed over."""
    (home / "work" / "src").mkdir()
    for name in ("a.txt", ".env", "src/b.py", "id_rsa"):
        (home / "work" / name).write_text("")
    assert project_files(str(home / "work")) == ["a.txt", "src/b.py"]
    assert [c.inserted for c in file_candidates("b", ["a.txt", "src/b.py"])] == ["@src/b.py"]


@given(st.text(max_size=8), st.lists(st.text(max_size=12), max_size=8))
def test_ranking_takes_any_text(query: str, names: list[str]) -> None:
    """Whatever is typed, ranking raises nothing and gives only names that it was given."""
    assert set(input_line.fuzzy_rank(query, names)) <= set(names)


@given(st.text(alphabet="abc-", min_size=1, max_size=10), st.data())
def test_letters_in_order_are_found(name: str, data: st.DataObject) -> None:
    """Any letters of a name, in their order, find it."""
    kept = data.draw(st.lists(st.booleans(), min_size=len(name), max_size=len(name)))
    query = "".join(c for c, keep in zip(name, kept, strict=True) if keep)
    assert input_line.fuzzy_score(query, name) > 0


def test_listing_files_runs_nothing_of_the_repository(home: Path) -> None:
    """`@` in a hostile folder, or in one with a bare layout at its top, starts no program."""
    work, mark = home / "work", home / "it-ran"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / "a.txt").write_text("a")
    subprocess.run(["git", "-C", str(work), "add", "a.txt"], check=True)
    config = ["git", "-C", str(work), "config"]
    subprocess.run([*config, "core.fsmonitor", f"touch {mark};"], check=True)
    assert project_files(str(work)) == ["a.txt"]
    subprocess.run([*config, "core.worktree", str(work)], check=True)
    for part in ("HEAD", "config", "objects", "refs", "index"):
        (work / ".git" / part).rename(work / part)
    shutil.rmtree(work / ".git")
    assert "a.txt" in project_files(str(work))
    assert not mark.exists()
