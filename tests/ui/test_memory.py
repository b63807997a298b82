"""`tacit memory`, and the commands that also work on facts."""

import subprocess
from pathlib import Path

import click
import pytest
from inside import answer, error, tacit

from tacit.base import trust
from tacit.changes.facts import NewFact, remember
from tacit.changes.gate import Gate
from tacit.changes.place import fact_places, project_place, user_place
from tacit.ui.cli.memory import forget_fact
from tacit.ui.cli.user_shell import complete_fact

PNPM = "The project uses pnpm; npm breaks the lock file."


@pytest.fixture
def project(home: Path) -> Path:
    """A trusted project under git, which is the working directory."""
    folder = home / "work"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    trust.add(str(folder))
    return folder


def add(*arguments: str) -> dict[str, object]:
    done = answer("memory", "add", *arguments)
    assert done["outcome"] == "applied", done
    return dict(done)


def names() -> list[str]:
    return [fact["name"] for fact in answer("memory", "list")["facts"]]


def test_a_fact_is_added_listed_shown_and_forgotten(project: Path) -> None:
    """The four of them, as a person types them, with a table, and an undo for the last."""
    assert "Nothing has been noted yet" in tacit("memory").stdout
    done = tacit("memory", "add", "package-manager", PNPM, "--detail", "See #12.")
    assert done.stdout.startswith(
        "Noted package-manager in ~/work/.agents/memory\nundo: tacit undo"
    )
    tacit("memory", "add", "answers", "The user wants short answers.", "--kind", "feedback")
    table = tacit("memory").stdout.splitlines()
    assert table[0].split() == ["name", "kind", "where", "state", "by", "noted", "says"]
    assert [row.split()[:3] for row in table[1:]] == [
        ["package-manager", "project", "project"],
        ["answers", "feedback", "user"],
    ]
    shown = tacit("memory", "show", "package-manager").stdout
    assert shown.startswith(f"package-manager  {PNPM}\n\nSee #12.\n")
    assert "noted by the user" in shown
    gone = tacit("memory", "forget", "answers", "--yes")
    assert gone.stdout.startswith("Forgot answers\n")
    assert names() == ["package-manager"]
    assert tacit("undo", gone.stdout.split()[-1]).returncode == 0
    assert names() == ["package-manager", "answers"]


def test_a_fact_for_the_user_is_about_the_user(project: Path) -> None:
    """Where it goes says what it is about, unless a kind is given."""
    add("package-manager", PNPM, "--project")
    add("editor", "The user works in Helix.", "--user")
    add("answers", "The user wants short answers.", "--user", "--kind", "feedback")
    kinds = {fact["name"]: fact["kind"] for fact in answer("memory", "list")["facts"]}
    assert kinds == {"package-manager": "project", "editor": "user", "answers": "feedback"}


def test_json_has_what_the_table_has(project: Path) -> None:
    """Every command answers in JSON; the list can be cut to a scope or a kind."""
    add("package-manager", PNPM)
    add("answers", "The user wants short answers.", "--kind", "user", "--reason", "they said so")
    (fact,) = answer("memory", "list", "--user")["facts"]
    assert (fact["name"], fact["by"], fact["state"], fact["scope"]) == (
        "answers",
        "user",
        "active",
        "user",
    )
    assert [f["name"] for f in answer("memory", "list", "--kind", "project")["facts"]] == [
        "package-manager"
    ]
    assert answer("memory")["facts"] == answer("memory", "list")["facts"]
    assert answer("memory", "show", "answers")["metadata"]["kind"] == "user"
    found = answer("memory", "index")
    assert found["facts"] == 2
    assert found["text"] == tacit("memory", "index").stdout
    assert "- package-manager: The project uses pnpm" in found["text"]


def test_adding_again_replaces_and_the_log_says_why(project: Path) -> None:
    """One subject has one fact; log, diff and rollback work on it by its name."""
    add("package-manager", PNPM)
    add("package-manager", "The project uses yarn.", "--reason", "switched in May")
    first, second = answer("log", "package-manager")["versions"]
    assert (first["kind"], first["reason"], second["kind"]) == ("edit", "switched in May", "create")
    assert f"-description: {PNPM}" in tacit("diff", "package-manager").stdout
    assert tacit("rollback", "package-manager").returncode == 0
    assert answer("memory", "show", "package-manager")["says"] == PNPM


def test_edit_in_an_editor_and_from_a_file(project: Path, tmp_path: Path) -> None:
    """What the editor leaves is the fact; a refused text is kept and can be given again."""
    add("package-manager", PNPM)
    script = tmp_path / "editor"
    script.write_text('#!/bin/sh\nsed -i s/pnpm/bun/ "$1"\n')
    script.chmod(0o755)
    assert tacit("memory", "edit", "package-manager", EDITOR=str(script)).returncode == 0
    assert "bun" in answer("memory", "show", "package-manager")["says"]
    assert "Nothing was changed" in tacit("memory", "edit", "package-manager", EDITOR="true").stderr
    script.write_text("#!/bin/sh\necho 'no head' > \"$1\"\n")
    refused = tacit("memory", "edit", "package-manager", EDITOR=str(script))
    assert refused.returncode == 5
    assert "Your text is kept: tacit memory edit package-manager --from" in refused.stderr
    text = (Path(project_place(kind="facts").root) / "package-manager" / "FACT.md").read_bytes()
    given = text.replace(b"bun", b"deno")
    done = tacit("memory", "edit", "package-manager", "--from", "-", given=given)
    assert done.returncode == 0, done.stderr
    assert "deno" in answer("memory", "show", "package-manager")["says"]


def test_what_is_refused_says_why_and_what_instead(project: Path) -> None:
    """A near-duplicate names the fact to edit, and the override; a secret has none."""
    add("package-manager", PNPM)
    refused = tacit("memory", "add", "deps", "The project uses pnpm: npm breaks the lock file.")
    assert refused.returncode == 5
    assert "instead: tacit memory edit package-manager" in refused.stderr
    assert "your own fact: --override near-duplicate" in refused.stderr
    add("deps", "The project uses pnpm: npm breaks the lock file.", "--override", "near-duplicate")
    key = "ghp_" + "x7Kq2mVb9TzR4wLp8NcY3sHd6JfG1aEu5oXi"
    refused = tacit("memory", "add", "token", f"It is {key}.")
    assert refused.returncode == 5
    assert "--override" not in refused.stderr
    assert key not in refused.stderr


def test_errors_name_the_next_step(project: Path) -> None:
    """An unknown name suggests one that is near; without a yes nothing is forgotten."""
    add("package-manager", PNPM)
    assert "package-manager" in error(3, "memory", "show", "package-manger")["hint"]
    assert "--yes" in error(5, "memory", "forget", "package-manager")["hint"]
    assert error(3, "rm", "package-manager", "--yes")["hint"] == (
        "see it: tacit memory show package-manager"
    )
    assert names() == ["package-manager"]


def test_at_home_there_is_no_project(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no project, facts go to the user, and --project says so."""
    monkeypatch.chdir(home)
    add("editor", "The editor is Helix.")
    assert (home / ".agents" / "memory" / "editor").is_dir()
    assert error(2, "memory", "add", "x", "y", "--project")["message"] == "this is not a project"


def test_an_untrusted_project_is_listed_and_said_to_be(project: Path) -> None:
    """Its facts are in the table with their state, and the way to trust it."""
    add("package-manager", PNPM)
    file = project / ".agents/memory/package-manager/FACT.md"
    file.write_text(file.read_text() + "\nAnd what a pull brought.\n")
    trust.remove(str(project))
    shown = tacit("memory").stdout
    assert "untrusted" in shown
    assert "tacit trust" in shown
    assert answer("memory", "index")["text"] == ""


def test_a_proposed_fact_is_seen_and_accepted_in_the_inbox(project: Path) -> None:
    """A reviewer's replacement of the user's fact waits with its diff, and lands when accepted."""
    add("package-manager", PNPM)
    said = NewFact(name="package-manager", says="The project uses bun since June.", kind="project")
    gate = Gate(fact_places())
    assert (
        remember(gate, project_place(kind="facts").root, said, actor="reviewer").outcome
        == "proposed"
    )
    (waiting,) = answer("inbox")["proposals"]
    assert "+description: The project uses bun since June." in tacit("inbox", waiting["id"]).stdout
    assert tacit("accept", waiting["id"]).returncode == 0
    fact = answer("memory", "show", "package-manager")
    assert (fact["says"], fact["by"]) == ("The project uses bun since June.", "reviewer")


def test_share_shows_a_fact_to_git(project: Path) -> None:
    """A project's fact is out of `git status` until it is shared, and again when private."""
    add("package-manager", PNPM)
    status = ["git", "status", "--porcelain", "-uall"]

    def seen() -> str:
        return subprocess.run(status, capture_output=True, check=True, text=True).stdout

    assert seen() == ""
    assert answer("memory", "share", "package-manager")["changed"]
    assert "FACT.md" in seen()
    assert "private again" in tacit("memory", "share", "package-manager", "--private").stdout
    assert seen() == ""


def test_control_characters_of_a_file_do_not_reach_the_terminal(project: Path) -> None:
    """A fact that somebody else wrote steers no terminal."""
    folder = Path(user_place("facts").root) / "odd"
    folder.mkdir(parents=True)
    (folder / "FACT.md").write_text('---\nname: odd\ndescription: "a\\x1b[2Jb"\n---\n\n\x1b[2J\n')
    assert "\x1b" not in tacit("memory", "show", "odd").stdout
    assert "\x1b" not in tacit("memory").stdout


def test_doctor_looks_at_facts_too(project: Path) -> None:
    """What an interrupted change left on the stage of a facts folder is found and mended."""
    add("package-manager", PNPM)
    (Path(project_place(kind="facts").root) / ".tacit-stage").mkdir()
    assert tacit("doctor").returncode == 6
    assert tacit("doctor", "--fix").returncode == 0
    assert tacit("doctor").returncode == 0


def test_names_are_completed(project: Path) -> None:
    """The shell completes the names of facts, with what they say."""
    add("package-manager", PNPM)
    context = click.Context(forget_fact)
    (item,) = complete_fact(context, forget_fact.params[0], "pack")
    assert (item.value, item.help) == ("package-manager", PNPM)
    assert complete_fact(context, forget_fact.params[0], "x") == []
