"""Which uses of skills call for a repair, and why others do not."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from repairing import due, make_skill
from traces_of_skills import call, session

from tacit.base import settings
from tacit.base.errors import NotFound
from tacit.changes.change import Pin, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import project_place
from tacit.learn.improve.repair_triggers import failed_uses, find_failed_use, why_not_counted
from tacit.learn.improve.repairs import Attempt, Repairs
from tacit.learn.skill_runs import runs_of
from tacit.traces.store import Store
from tacit.traces.trace import Trace

FAILED = call("Bash", "sh scripts/check.sh", "sh: 0: cannot open scripts/check.sh")
SESSION = "claude-code:s1"


@pytest.fixture
def store(project: Path) -> Any:
    make_skill(project)
    opened = Store.open()
    yield opened
    opened.close()


def _stored(store: Store, *calls: Any, name: str = "s1", **more: Any) -> Trace:
    trace = session("check-notes", *calls, name=name, project=str(Path.cwd()))
    trace = msgspec.structs.replace(trace, **more)
    store.write(trace)
    return trace


def _why_not(store: Store, trace: Trace) -> str:
    (case,) = failed_uses(store, store.trace(trace.id), settings.load_settings().settings)
    return case.why_not


def test_a_host_s_failed_use_is_due_once(store: Store) -> None:
    """A failed use in another agent's session makes one job, with the same key each time."""
    _stored(store, FAILED)
    (wanted,) = due(SESSION)
    assert wanted.payload == {"session": SESSION, "turn": 1, "skill": "check-notes"}
    assert "cannot open" in wanted.why
    assert due(SESSION) == (wanted,)


def test_nothing_is_due_without_cause(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a use that went well, nor for what the environment did, nor when it is off."""
    _stored(store, call("Bash", "ls"))
    assert due(SESSION) == ()
    _stored(store, call("Bash", "curl x", "curl: (6) Could not resolve host: x"), name="s2")
    assert due("claude-code:s2") == ()
    _stored(store, FAILED, name="s3")
    monkeypatch.setenv("TACIT_IMPROVE_USE", "false")
    assert due("claude-code:s3") == ()


def test_the_same_failure_is_looked_at_once_a_version(store: Store) -> None:
    """What a repair was about is not looked at again; another failure waits for the cool-down."""
    trace = _stored(store, FAILED)
    (case,) = failed_uses(store, store.trace(trace.id), settings.load_settings().settings)
    repairs = Repairs(store.connection)
    marks = tuple(failure.mark for failure in case.failures)
    attempt = Attempt(
        id="a", skill=case.skill, root=case.entry.root, digest=case.entry.digest, marks=marks
    )
    repairs.begin(attempt)
    assert "looked at before" in _why_not(store, trace)
    other = _stored(store, call("Bash", "make x", "make: *** no rule"), name="s2")
    assert "it was looked at lately" in _why_not(store, other)
    repairs.finish("a", "put off")
    assert _why_not(store, trace) == "", "what did not come about does not count"


def test_a_version_that_is_gone_is_left_alone(store: Store) -> None:
    """A skill that was changed after its failure is not judged by it."""
    loading = call(
        "run_skill", {"name": "check-notes"}, result="<skill>\n</skill 0123456789abcdef>"
    )
    trace = session("check-notes", FAILED, host="tacit", project=str(Path.cwd()))
    turn = trace.turns[0]
    turn = msgspec.structs.replace(turn, steps=(loading, *turn.steps))
    trace = msgspec.structs.replace(trace, turns=(turn,))
    store.write(trace)
    assert "changed since" in _why_not(store, trace)


def test_pinned_and_old_are_left_alone(store: Store) -> None:
    """A use of long ago is history; a pinned skill is the user's alone."""
    trace = _stored(store, FAILED)
    turn = trace.turns[0]
    long_ago = datetime.now(UTC) - timedelta(days=30)
    steps = (msgspec.structs.replace(turn.steps[0], at=long_ago), *turn.steps[1:])
    old = msgspec.structs.replace(turn, steps=steps, started=long_ago)
    assert "long ago" in _why_not(store, _stored(store, FAILED, name="s2", turns=(old,)))
    assert _why_not(store, trace) == ""
    gate = Gate([project_place()])
    assert gate.propose(make_change("check-notes", Pin(), actor="user")).applied
    assert "pinned" in _why_not(store, trace)
    assert find_failed_use(store, trace.id, "check-notes", settings.load_settings().settings).never


def test_finding_a_use_by_hand(store: Store) -> None:
    """The last use that failed is found, by the skill's name or folder; else it is said why."""
    trace = _stored(store, FAILED)
    loaded = settings.load_settings().settings
    assert len(find_failed_use(store, SESSION, "check-notes", loaded).failures) == 1
    with pytest.raises(NotFound, match="was not used"):
        find_failed_use(store, SESSION, "check-notes", loaded, turn=7)
    (run,) = runs_of(trace)
    assert why_not_counted(msgspec.structs.replace(run, steps=())) == "no step failed"
