"""`tacit distil` and `tacit why SKILL`."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tacit.base import trust
from tacit.changes.inbox import Inbox
from tacit.learn.distil.distilled_skill import skill_text_of
from tacit.learn.distil.support import open_lessons
from tacit.testing.sample_sessions import made, ran
from tacit.traces.store import Store, prune_sessions
from tacit.ui.cli.app import tacit

CHECKED = ["Fix the parser of dates", ran("mise run lint", "0 issues."), ran("mise run test", "ok")]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "app"
    (folder / ".git").mkdir(parents=True)
    trust.add(str(folder))
    monkeypatch.chdir(folder)
    with Store.open() as store:
        for number in range(3):
            store.write(made(CHECKED, session=f"s{number}", project=str(folder)))
    return folder


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(tacit, words, standalone_mode=True)
    assert done.exit_code == code, done.output
    return done.output


def test_the_estimate_comes_first(project: Path) -> None:
    """A dry run says what there is to read and what it costs, and changes nothing."""
    shown = run("distil", "--dry-run", "--no-model")
    assert "3 sessions, 3 tasks of 1 kind; 3 to be read." in shown
    assert "costs nothing" in shown
    assert run("inbox").startswith("The inbox is empty")
    guess = json.loads(run("distil", "--dry-run", "--no-model", "--json"))["estimate"]
    assert (guess["sessions"], guess["requests"], guess["cost"]) == (3, 0, 0.0)


def test_from_sessions_to_a_skill_and_why(project: Path) -> None:
    """The proposal is accepted, and each line of it can be asked for its support."""
    shown = run("distil", "--no-model")
    assert "app-ways" in shown
    change = json.loads(run("inbox", "--json"))
    (proposal,) = change["proposals"] if isinstance(change, dict) else change
    waiting = run("inbox", proposal["id"][-8:])
    assert "Check the work with `mise run lint`.\n      3 sessions (3 worked)" in waiting
    assert "s2 step 0.1 (worked): mise run lint" in run("why", "app-ways"), "before it is accepted"
    run("accept", proposal["id"])
    text = (project / ".agents/skills/app-ways/SKILL.md").read_text().splitlines()
    line = text.index("- Check the work with `mise run lint`.") + 1
    shown = run("why", f"app-ways:{line}")
    assert "3 sessions" in shown
    assert "s2 step 0.1 (worked): mise run lint" in shown
    done = CliRunner().invoke(tacit, ["why", "app-ways:1"])
    assert "no session is known to support line 1 of 'app-ways'" in str(done.exception)
    lines = json.loads(run("why", "app-ways", "--json"))["lines"]
    assert {found["support"]["sessions"] for found in lines} == {3}
    assert "has not been looked at" in run("why", "s1"), "a session is still asked by its id"
    run("share", "app-ways")
    shared = (project / ".agents/skills/app-ways/references/evidence.md").read_text()
    assert "3 sessions" in shared
    assert "s2" not in shared
    assert "Nothing new" in run("distil", "--no-model")
    with Store.open() as store:
        assert prune_sessions(store, older=timedelta()).sessions == 3
    assert run("why", f"app-ways:{line}") == shown, "the words outlive the sessions"
    assert "not stored any more" in run("why", "claude-code:s1")


def test_a_session_that_is_forgotten_leaves_nothing_here(project: Path) -> None:
    """Its tasks, words and support go with it."""
    run("distil", "--no-model")
    run("forget", "s0", "--yes")
    with open_lessons() as lessons:
        assert {one.support.sessions for one in lessons.all()} == {2}
        assert set(lessons.cut_sessions()) == {"claude-code:s1", "claude-code:s2"}
        assert {name.partition("#")[0] for name in lessons.methods()} == set(lessons.cut_sessions())


def test_the_same_command_goes_on(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that was stopped goes on with its run, also one that reaches back some days."""
    runs: list[str] = []

    def stopped(run: str, *given: object, **named: object) -> None:
        runs.append(run)
        raise KeyboardInterrupt

    monkeypatch.setattr("tacit.learn.distil.distillation.go_on", stopped)
    for _ in range(2):
        assert "Stopped" in run("distil", "--no-model", "--since", "9000d")
    assert len(runs) == 2
    assert len(set(runs)) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--sessions", "s0", "--since", "3d"), "--sessions names the sessions itself"),
        (("--model", "x:y", "--no-model"), "exclude each other"),
        (("--settle", "nonsense"), "is no answer"),
        (("--no-model", "--since", "soon"), "soon"),
        (("--settle", "abc-def=1"), "there is no contradiction"),
        (("--into", "no-such-skill"), "there is no skill 'no-such-skill'"),
        (("--no-model", "--host", "codex"), "there is no session"),
    ],
)
def test_what_is_refused(project: Path, words: tuple[str, ...], says: str) -> None:
    """Options that exclude each other, and answers to nothing, are named with what to do."""
    done = CliRunner().invoke(tacit, ["distil", *words])
    assert done.exit_code != 0
    assert says in str(done.exception) + done.output


def test_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is nothing to read, it says where to look."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(tacit, ["distil", "--no-model"])
    assert "there is no session" in str(done.exception) + done.output


def test_into_a_skill_of_the_project(project: Path) -> None:
    """The lines are proposed as an edit of it, where it lies."""
    folder = project / ".agents/skills/house-rules"
    folder.mkdir(parents=True)
    text = "---\nname: house-rules\ndescription: How we work here.\n---\n\n# Rules\n\n- Be kind.\n"
    (folder / "SKILL.md").write_text(text)
    run("distil", "--no-model", "--into", "house-rules")
    (proposal,) = Inbox().waiting()
    assert (proposal.change.skill, proposal.change.root) == ("house-rules", str(folder.parent))
    after = skill_text_of(proposal.change)
    assert "- Be kind.\n" in after
    assert "- Check the work with `mise run lint`." in after
