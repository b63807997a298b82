"""`tacit inbox`, `accept` and `reject`, with proposals that background work made."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inside import answer, error, tacit
from skills_ref.validator import validate

from tacit.base.setting_sections import LearnSettings, Settings
from tacit.changes.change import Create, Edit, Verdict, acting_as, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import project_place
from tacit.learn import announcements
from tacit.learn.background.background_gate import background_gate

BIN = Path(sys.executable).parent
EMPTY: dict[str, Any] = {"marks": {}, "proposals": [], "notices": [], "waiting": []}
PROPOSAL = {"id", "change", "why", "state", "made", "decided", "answer", "applied_as"}
WORDS = {
    "tests": "Run the whole suite with make check before a commit, never a single file.",
    "release": "Tag the release commit, push the tag and wait until the pipeline is green.",
    "backup": "Dump the database to the cold bucket and compare both checksums afterwards.",
}


@pytest.fixture
def skills(home: Path) -> Path:
    return home / ".agents" / "skills"


def propose_new(name: str, body: str, root: str, **more: Any) -> Verdict:
    """What the distiller hands in: it waits, as it is set to ask."""
    text = (
        f"---\nname: {name}\ndescription: {body[:60]}. Use for {name}.\n"
        f"metadata:\n  source: auto-skill\n---\n\n1. {body}\n"
    )
    gate = Gate(always_ask=("distiller",))
    with acting_as("distiller"):
        change = make_change(
            name,
            Create({"SKILL.md": text.encode()}),
            reason=f"seen {name} twice",
            evidence=("claude-code:abc", "codex:def"),
            root=root,
            **more,
        )
        return gate.propose(change)


def propose_edit(name: str, old: str, new: str, root: str) -> Verdict:
    """What the improver hands in for a skill of the user's."""
    with acting_as("improver"):
        return Gate().propose(make_change(name, Edit(old, new), reason="better so", root=root))


def by_hand(folder: Path, name: str, body: str) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: {name}. Use for {name}.\n---\n\n{body}")
    return path


def test_a_proposal_is_seen_and_accepted(skills: Path) -> None:
    """It waits, is shown with its diff, and lands with its author, its evidence and my consent."""
    assert answer("inbox") == EMPTY
    assert tacit("inbox").stdout == "The inbox is empty.\n"
    waits = propose_new("tests", WORDS["tests"], str(skills))
    assert waits.outcome == "proposed"
    assert not (skills / "tests").exists()
    (row,) = answer("inbox")["proposals"]
    assert set(row) == PROPOSAL
    assert (row["id"], row["state"], row["change"]["actor"]) == (
        waits.change,
        "waiting",
        "distiller",
    )
    short = waits.change[-8:]
    shown = tacit("inbox", short).stdout
    for words in ("seen tests twice", "claude-code:abc, codex:def", f"+1. {WORDS['tests']}"):
        assert words in shown
    assert f"tacit accept {short}" in shown
    assert "What supports" not in shown, "there is nothing to say of lines of a draft"
    assert set(answer("inbox", short)) == {"marks", "proposal", "diff", "waiting"}
    (verdict,) = answer("accept", short)["verdicts"]
    assert verdict["outcome"] == "applied"
    assert validate(skills / "tests") == []
    (version,) = answer("log", "tests")["versions"]
    assert version["actor"] == "distiller"
    assert version["approved_by"] == "user"
    assert version["evidence"] == ["claude-code:abc", "codex:def"]
    assert answer("inbox") == EMPTY
    assert [p["state"] for p in answer("inbox", "--all")["proposals"]] == ["accepted"]
    assert tacit("accept", short).returncode == 5
    assert error(2, "reject", short)["message"].endswith("was accepted already")
    assert answer("undo", verdict["change"])["outcome"] == "applied"
    assert not (skills / "tests").exists()


def test_a_rejected_idea_does_not_come_back(skills: Path) -> None:
    """Neither as it was nor in nearly the same words; forgotten, it may."""
    waits = propose_new("release", WORDS["release"], str(skills))
    done = answer("reject", waits.change[-8:], "--reason", "we do this in CI")
    assert done == {"proposal": waits.change, "state": "rejected"}
    for body in (WORDS["release"], WORDS["release"].replace("green.", "green!")):
        again = propose_new("release", body, str(skills))
        assert again.refusal is not None
        assert again.refusal.rule == "rejected-before"
        assert "we do this in CI" in again.refusal.reason
    assert answer("inbox") == EMPTY
    assert "we do this in CI" in tacit("inbox", waits.change).stdout
    assert answer("reject", waits.change, "--forget")["state"] == "forgotten"
    assert propose_new("release", WORDS["release"], str(skills)).outcome == "proposed"


def test_the_same_proposal_waits_once(skills: Path) -> None:
    """Handed in three times, it is one line in the inbox; other ideas are lines of their own."""
    ids = {propose_new("backup", WORDS["backup"], str(skills)).change for _ in range(3)}
    assert len(ids) == 1
    propose_new("tests", WORDS["tests"], str(skills))
    assert len(answer("inbox")["proposals"]) == 2
    assert len(answer("accept", "--all")["verdicts"]) == 2
    assert sorted(path.name for path in skills.iterdir() if path.name[0] != ".") == [
        "backup",
        "tests",
    ]
    assert tacit("accept", "--all").stdout == "The inbox is empty.\n"
    assert answer("accept", "--all") == {"verdicts": []}


def test_an_edit_is_merged_with_what_happened_meanwhile(skills: Path) -> None:
    """The target changed by hand elsewhere: accepting keeps both; on the same line, it refuses."""
    path = by_hand(skills, "mine", "1. one\n2. two\n3. three\n4. four\n5. five\n6. six\n")
    first = propose_edit("mine", "1. one", "1. ONE", str(skills))
    second = propose_edit("mine", "6. six", "6. SIX", str(skills))
    assert {first.outcome, second.outcome} == {"proposed"}
    path.write_text(path.read_text().replace("3. three", "3. by hand"))
    assert "+1. ONE" in tacit("inbox", first.change[-8:]).stdout
    assert answer("accept", first.change[-8:])["verdicts"][0]["outcome"] == "applied"
    for line in ("1. ONE\n", "3. by hand\n", "6. six\n"):
        assert line in path.read_text()
    path.write_text(path.read_text().replace("6. six", "6. mine"))
    before = path.read_bytes()
    assert "no longer fits" in tacit("inbox", second.change).stdout
    done = tacit("accept", second.change)
    assert done.returncode == 5
    assert "refused [" in done.stderr
    assert "--override" not in done.stderr
    assert path.read_bytes() == before
    assert "mine-merged/SKILL.md" in done.stderr
    assert [p["state"] for p in answer("inbox")["proposals"]] == ["waiting"]


def test_a_target_that_is_gone_or_taken(skills: Path) -> None:
    """Deleted meanwhile, or the name taken meanwhile: refused, and the proposal stays."""
    by_hand(skills, "mine", "1. one\n2. two\n")
    edit = propose_edit("mine", "1. one", "1. ONE", str(skills))
    assert answer("rm", "mine", "--yes")["outcome"] == "applied"
    done = tacit("accept", edit.change[-8:])
    assert done.returncode == 5
    assert "mine" in done.stderr
    assert tacit("inbox", edit.change[-8:]).returncode == 0
    create = propose_new("tests", WORDS["tests"], str(skills))
    by_hand(skills, "tests", "1. My own way of testing things.\n")
    verdict = answer("accept", create.change[-8:])["verdicts"][0]
    assert verdict["refusal"]["rule"] == "exists"
    assert "My own way" in (skills / "tests/SKILL.md").read_text()
    assert len(answer("inbox")["proposals"]) == 2


def test_a_proposal_for_another_project(home: Path) -> None:
    """What waits for a project is read, accepted and undone from any folder."""
    project = home / "far" / "app"
    (project / ".git" / "info").mkdir(parents=True)
    os.chdir(project)
    waits = propose_new("tests", WORDS["tests"], str(project / ".agents/skills"))
    os.chdir(home)
    assert f"+1. {WORDS['tests']}" in tacit("inbox", waits.change[-8:]).stdout
    (verdict,) = answer("accept", waits.change[-8:])["verdicts"]
    assert verdict["outcome"] == "applied"
    assert (project / ".agents/skills/tests/SKILL.md").exists()
    assert answer("undo", verdict["change"][-8:])["outcome"] == "applied"
    assert not (project / ".agents/skills/tests").exists()


def test_wrong_calls(skills: Path) -> None:
    """Nothing named, both named, unknown or unclear ids: exit 2 or 3, and what to do."""
    assert "tacit inbox" in error(2, "accept")["hint"]
    error(2, "accept", "--all", "abc")
    for command in ("inbox", "accept", "reject"):
        assert error(3, command, "nope")["hint"] == "see them: tacit inbox --all"
    for name in ("tests", "backup"):
        propose_new(name, WORDS[name], str(skills))
    assert error(3, "accept", "2")["hint"]  # begins two of them
    assert len(answer("inbox")["proposals"]) == 2


@pytest.mark.parametrize("width", ["80", "40"])
def test_the_table_fits(skills: Path, width: str) -> None:
    """No line of the list is wider than the terminal."""
    propose_new("release", WORDS["release"], str(skills))
    lines = tacit("inbox", COLUMNS=width).stdout.splitlines()
    assert "release" in lines[1]
    assert max(len(line) for line in lines[:2]) <= int(width)


def test_hostile_words_do_not_reach_the_terminal(skills: Path) -> None:
    """Escape sequences in a reason or a text are shown as marks, not obeyed."""
    by_hand(skills, "mine", "1. one\n")
    with acting_as("improver"):
        waits = Gate().propose(
            make_change(
                "mine",
                Edit("1. one", "1. \x1b]0;owned\x07one"),
                reason="\x1b[2Jgone\nnew line",
                root=str(skills),
            )
        )
    assert waits.outcome in ("proposed", "refused")
    for arguments in (("inbox",), ("inbox", waits.change), ("log",)):
        done = tacit(*arguments)
        assert "\x1b" not in done.stdout + done.stderr
    done = tacit("accept", waits.change)
    assert "\x1b" not in done.stdout + done.stderr


def test_it_survives_a_restart(skills: Path) -> None:
    """Another process, the real program, sees and accepts what this one proposed."""
    waits = propose_new("tests", WORDS["tests"], str(skills))
    done = subprocess.run(
        [BIN / "tacit", "accept", waits.change[-8:]], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "Accepted: tests" in done.stdout
    assert (skills / "tests/SKILL.md").exists()


def test_what_was_learned_elsewhere_is_told_seen_and_undone_from_here(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notice of a skill of another project holds commands that work in any folder."""
    project = home / "elsewhere"
    (project / ".git").mkdir(parents=True)
    text = (
        f"---\nname: backup\ndescription: {WORDS['backup']} Use for backups.\n"
        f"metadata:\n  source: auto-skill\n---\n\n1. {WORDS['backup']}\n"
    )
    settings = Settings(learn=LearnSettings(approval="auto"))
    gate = background_gate("reviewer", [project_place(str(project))], settings)
    with announcements.listening(), acting_as("reviewer"):
        change = make_change("backup", Create({"SKILL.md": text.encode()}), reason="seen twice")
        short = gate.propose(change).change[-8:]
    shown = tacit("inbox").stdout
    assert "The inbox is empty." in shown
    assert "Since you last looked here:\n- learned the skill backup (seen twice)" in shown
    assert f"see: tacit diff {short} · undo: tacit undo {short}" in shown
    assert "Since you last looked here" not in tacit("inbox").stdout
    assert "cold bucket" in tacit("diff", short).stdout
    assert tacit("undo", short).returncode == 0
    assert not (project / ".agents/skills/backup").exists()


def test_after_three_learned_skills_the_user_is_asked_once(skills: Path, home: Path) -> None:
    """The third yes brings the question with both answers; a setting ends it."""
    for name, words in WORDS.items():
        propose_new(name, words, str(skills))
    first = tacit("accept", "--all").stdout
    assert "You have accepted 3 learned skills. Go on without asking?" in first
    assert "tacit config set learn.approval auto" in tacit("inbox").stdout
    assert tacit("prompt-status").stdout == ""  # the inbox has asked
    tacit("config", "set", "learn.approval", "ask")
    assert "Go on without asking" not in tacit("inbox").stdout


def test_many_are_listed_by_parts(skills: Path) -> None:
    """Each part in its order; what waits in all is told with every part."""
    made = [
        propose_new(f"part-{n}", f"Only {word * n} of it", str(skills)).change
        for n, word in enumerate(("alpha beta ", "gamma delta ", "epsilon zeta "), 3)
    ]
    found = answer("inbox", "-n", "1", "--skip", "1")
    assert [one["id"] for one in found["proposals"]] == [made[1]]
    assert [one["id"] for one in found["waiting"]] == made
    assert {(one["kind"], one["actor"]) for one in found["waiting"]} == {("create", "distiller")}
    assert "2 more" in tacit("inbox", "-n", "1").stdout


def test_a_rejection_is_taken_back(skills: Path) -> None:
    """It waits again; what was not turned down cannot be."""
    change = propose_new("again", "Do it again", str(skills)).change
    assert error(2, "reject", change, "--undo")["message"].endswith("was not turned down")
    answer("reject", change, "--reason", "no")
    assert answer("reject", change, "--undo")["state"] == "waiting"
    assert [one["id"] for one in answer("inbox")["waiting"]] == [change]
