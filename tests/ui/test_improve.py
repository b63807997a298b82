"""`tacit improve`: what it prints, and what it says when there is nothing to mend."""

import os
import sys
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "learn"))

from inside import answer, tacit
from kills import converse
from repairing import MENDED, make_skill
from traces_of_skills import call, session

from tacit.base import settings, trust
from tacit.learn.background import child_process
from tacit.learn.improve import probation
from tacit.traces.store import Store


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A skill in a trusted project, whose repair needs no model."""
    (home / "work" / ".git").mkdir()
    trust.add(str(home / "work"))
    monkeypatch.setenv("TACIT_LEARN_APPROVAL", "auto")
    monkeypatch.setattr(child_process, "run", converse)
    return make_skill(home / "work")


def _store(*calls: object, ago: float = 1) -> None:
    store = Store.open()
    store.write(session("check-notes", *calls, project=os.getcwd(), ago=ago))  # type: ignore[arg-type]
    store.close()


def test_it_repairs_the_last_failed_use(folder: Path) -> None:
    """The diff, what was checked and how to take it back are printed; a second time it says why
    there is nothing to do."""
    _store(call("Bash", "sh scripts/check.sh notes.txt", "sh: cannot open scripts/check.sh"))
    done = tacit("improve", "check-notes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "check-notes repaired: Mended." in done.stdout
    assert "scripts/count.sh is new" in done.stdout
    assert "verified: scripts/count.sh" in done.stdout
    assert "undo: tacit undo" in done.stdout
    assert MENDED.split("`")[2] in (folder / "SKILL.md").read_text()


def test_json_and_a_session_by_name(folder: Path) -> None:
    """With --json the whole report is given, of the session that was named."""
    _store(call("Bash", "sh scripts/check.sh notes.txt", "sh: cannot open scripts/check.sh"))
    told = answer("improve", "check-notes", "--session", "claude-code:s1")
    assert (told["outcome"], told["skill"]) == ("repaired", "check-notes")
    assert told["diff"].startswith("---") or "is new" in told["diff"]


def test_without_a_failure_it_says_why(folder: Path) -> None:
    """A skill that never failed, one that the network failed, and one that is not there."""
    none = tacit("improve", "check-notes")
    assert (none.returncode, "not used in any session" in none.stderr) == (3, True)
    _store(call("Bash", "curl x", "curl: (6) Could not resolve host: x"))
    network = tacit("improve", "check-notes")
    assert "not the skill's doing: no network" in network.stderr
    assert tacit("improve", "no-such-skill").returncode == 3


def test_why_names_the_skills_that_failed(folder: Path) -> None:
    """`tacit why` says what came of a repair, and why a failure led to none."""
    _store(call("Bash", "curl x", "curl: (6) Could not resolve host: x"))
    said = tacit("why", "s1").stdout
    assert "the skill check-notes failed; repair: not looked at" in said
    assert "not the skill's doing: no network" in said
    _store(call("Bash", "sh scripts/check.sh notes.txt", "sh: cannot open scripts/check.sh"))
    change = answer("improve", "check-notes")["change"]
    (account,) = answer("why", "s1")["repairs"]
    assert (account["outcome"], account["change"]) == ("repaired", change)
    assert f"undo: tacit undo {change[-8:]}" in tacit("why", "s1").stdout


def test_history_shows_the_probation(folder: Path) -> None:
    """How a repair does, in numbers: while it is watched in the head, then in the timeline."""
    failed = call("Bash", "sh scripts/check.sh notes.txt", "sh: cannot open scripts/check.sh")
    _store(failed, ago=3600)
    repaired = answer("improve", "check-notes")["change"]
    numbers = "no use yet, before no use"  # when that was made, there was no version yet
    shown = tacit("history", "check-notes").stdout
    assert f"repair {repaired[-8:]} on probation: {numbers}" in shown
    assert answer("history", "check-notes")["probation"]["state"] == "watching"
    store = Store.open()
    root, loaded = str(folder.parent), settings.load_settings().settings
    watched = probation.current_probation(store.connection, root, "check-notes", loaded)
    assert watched is not None
    probation._keep(store.connection, msgspec.structs.replace(watched, state="kept"))
    store.close()
    life = answer("history", "check-notes")
    assert life["probation"] is None
    assert life["events"][-1]["what"] == "kept"
    assert life["events"][-1]["detail"] == numbers


def test_a_pinned_skill_is_left_alone(folder: Path) -> None:
    """What nobody but the user may change is not repaired, also not on request."""
    _store(call("Bash", "sh scripts/check.sh notes.txt", "sh: cannot open scripts/check.sh"))
    assert tacit("pin", "check-notes").returncode == 0
    done = tacit("improve", "check-notes")
    assert (done.returncode, "is pinned" in done.stderr) == (5, True)
