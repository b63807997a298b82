"""Repairs on probation: when one is worse, and what is done then."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from repairing import make_skill
from traces_of_skills import call, session

from tacit.base import settings
from tacit.base.errors import Damaged
from tacit.base.setting_sections import ImproveSettings
from tacit.changes.change import Edit, acting_as, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import project_place
from tacit.learn import notices, use_records
from tacit.learn.improve import probation
from tacit.learn.improve.probation import (
    current_probation,
    judge_probation,
    settle_probation,
)
from tacit.learn.trial.interval import points
from tacit.traces.skill_uses import Use, prepare_use_tables
from tacit.traces.store import Store

NOW = datetime.now(UTC)


def _uses(*counts: tuple[int, int]) -> list[Use]:
    """Uses, newest first, with so many calls of which so many failed."""
    return [
        Use("demo", "d", "model", NOW - timedelta(minutes=n), f"s{n}", "", calls, failed)
        for n, (calls, failed) in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("old", "new", "state"),
    [
        (((4, 0),) * 5, ((4, 4),) * 5, "worse"),
        (((4, 0),) * 5, ((4, 0),) * 5, "kept"),
        (((4, 4),) * 5, ((4, 4),) * 5, "kept"),
        (((4, 1),) * 5, ((4, 2),) * 5, "kept"),
        (((4, 0),) * 5, ((4, 4),) * 2, "worse"),
        (((4, 0),) * 5, ((2, 1),) * 2, "watching"),
        ((), ((4, 4),) * 5, "kept"),
        (((4, 0),) * 5, (), "watching"),
    ],
)
def test_verdicts(old: Any, new: Any, state: str) -> None:
    """Clearly worse, at whichever look, is worse; what is not stays after its uses."""
    found = judge_probation("c", "demo", "/r", _uses(*old), _uses(*new), ImproveSettings())
    assert found.state == state, found.numbers
    compared = found.change_in_success
    assert (points(compared) in found.numbers) == bool(compared.count)


def test_only_the_next_five_count() -> None:
    """What happens after the five uses is no longer the repair's."""
    after = _uses(*((4, 4),) * 20, *((4, 0),) * 5)
    found = judge_probation("c", "demo", "/r", _uses(*((4, 0),) * 5), after, ImproveSettings())
    assert (found.new.uses, found.new.failed, found.state) == (5, 0, "kept")


@pytest.fixture
def store(project: Path) -> Any:
    opened = Store.open()
    yield opened
    opened.close()


def _repair(source: str = "auto-skill") -> str:
    """A skill and a repair of it that landed; the repair."""
    make_skill(Path.cwd(), source=source)
    gate = Gate([project_place()])
    with acting_as("improver"):
        edit = Edit("Then say how many there are.", "Then shout how many there are.")
        change = make_change("check-notes", edit, reason="louder", evidence=("codex:1",))
        verdict = gate.propose(change)
    if verdict.outcome == "proposed":
        verdict = gate.accept(gate.inbox.get(verdict.change))
    assert verdict.applied, verdict.explain()
    return verdict.change


def _record(store: Store, change: str, old: int, new: int) -> None:
    """Five uses of the old version and three of the new, of ten calls, with so many failed."""
    prepare_use_tables(store.connection)
    place = Gate([project_place()]).open_place()
    after, before = list(place.history.log("check-notes"))[:2]
    for version, failed, count in ((before, old, 5), (after, new, 3)):
        digest = probation._digest(place.history.files(version))
        for number in range(count):
            at = version.at + timedelta(seconds=number)
            store.connection.execute(
                "INSERT INTO uses VALUES (?, 0, 'check-notes', ?, 'model', ?, '', 10, ?)",
                (f"tacit:s{digest}{number}", digest, at.isoformat(), failed),
            )


def test_worse_is_taken_back_and_better_kept(store: Store) -> None:
    """A verdict ends the probation for good: rolled back with a notice, or kept in silence."""
    loaded = settings.load_settings(flags={"improve.probation_uses": 3}).settings
    change = _repair()
    root = project_place().root
    _record(store, change, old=0, new=9)
    found = current_probation(store.connection, root, "check-notes", loaded)
    assert found is not None
    assert (found.state, found.old.failed, found.new.failed) == ("worse", 0, 27)
    ended = settle_probation(store.connection, root, "check-notes", change, loaded)
    assert (ended.outcome, ended.change != "") == ("rolled back", True)
    assert "shout" not in (Path(root) / "check-notes" / "SKILL.md").read_text()
    assert [notice.kind for notice in notices.pending("chat")] == ["rolled-back"]
    assert current_probation(store.connection, root, "check-notes", loaded) is None
    (verdict,) = probation.probation_verdicts(store.connection, "check-notes")
    assert verdict.state == "worse"
    assert "27 of 30 steps failed (90%) in 3 uses, before 0 of 50 (0%) in 5" in verdict.numbers
    (told,) = map(notices.line, notices.pending("chat"))
    assert f"(worse: {found.numbers})" in told


def test_what_does_well_is_kept(store: Store) -> None:
    """After its uses a repair that is no worse stays, and is watched no longer."""
    loaded = settings.load_settings(flags={"improve.probation_uses": 3}).settings
    change = _repair()
    root = project_place().root
    _record(store, change, old=5, new=1)
    assert settle_probation(store.connection, root, "check-notes", change, loaded).outcome == "kept"
    assert current_probation(store.connection, root, "check-notes", loaded) is None
    assert (
        settle_probation(store.connection, root, "check-notes", change, loaded).outcome == "nothing"
    )
    assert notices.pending("chat") == []


def test_what_the_network_did_is_not_the_repair_s(store: Store) -> None:
    """Steps that failed by no fault of the skill count on neither side."""
    loaded = settings.load_settings(flags={"improve.probation_uses": 5}).settings
    change = _repair()
    _record(store, change, old=0, new=0)
    root = project_place().root
    down = [call("Bash", "curl x", "curl: (6) Could not resolve host: x")] * 9
    gone = call("Bash", "sh gone.sh", "sh: cannot open gone.sh")
    for number in range(2):
        store.write(session("check-notes", *down, gone, name=f"n{number}", project=os.getcwd()))
        use_records.record_uses(store, f"claude-code:n{number}")
    later = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    store.connection.execute(
        "UPDATE uses SET at = ?, digest = '' WHERE session LIKE 'claude-code:%'", (later,)
    )
    found = current_probation(store.connection, root, "check-notes", loaded)
    assert found is not None
    assert (found.new.uses, found.new.calls, found.new.failed) == (5, 32, 2)
    assert settle_probation(store.connection, root, "check-notes", change, loaded).outcome == "kept"


@pytest.mark.parametrize("own", [False, True])
def test_of_the_user_s_own_skill(store: Store, own: bool) -> None:
    """A repair of the user's own skill is not taken back unasked, unless repairs are applied so."""
    flags = {"improve.probation_uses": 3, "improve.own": own, "learn.approval": "auto"}
    loaded = settings.load_settings(flags=flags).settings
    change = _repair(source="")
    root = project_place().root
    _record(store, change, old=0, new=9)
    ended = settle_probation(store.connection, root, "check-notes", change, loaded)
    assert ended.outcome == ("rolled back" if own else "proposed"), ended.reason
    text = (Path(root) / "check-notes" / "SKILL.md").read_text()
    assert ("shout" in text) != own
    assert [n.kind for n in notices.pending("chat")] == ["rolled-back" if own else "proposed"]


def test_no_rollback_without_a_safety_copy(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the history does not hold what stands now, nothing is taken back."""
    loaded = settings.load_settings(flags={"improve.probation_uses": 3}).settings
    change = _repair()
    root = project_place().root
    _record(store, change, old=0, new=9)
    real = Gate.state_of

    def unsaved(self: Gate, skill: str, root: str = "") -> Any:
        standing = real(self, skill, root)
        contents = msgspec.structs.replace(standing.contents, files={})
        return msgspec.structs.replace(standing, contents=contents)

    found = current_probation(store.connection, root, "check-notes", loaded)
    monkeypatch.setattr(probation, "current_probation", lambda *given: found)
    monkeypatch.setattr(Gate, "state_of", unsaved)
    with pytest.raises(Damaged):
        settle_probation(store.connection, root, "check-notes", change, loaded)
    assert "shout" in (Path(root) / "check-notes" / "SKILL.md").read_text()


def test_a_hand_edit_ends_the_probation(store: Store) -> None:
    """What a person has touched since is theirs: nothing is taken back."""
    loaded = settings.load_settings(flags={"improve.probation_uses": 3}).settings
    change = _repair()
    root = project_place().root
    _record(store, change, old=0, new=9)
    path = Path(root) / "check-notes" / "SKILL.md"
    path.write_text(path.read_text() + "\nMine.\n")
    assert current_probation(store.connection, root, "check-notes", loaded) is None
    assert (
        settle_probation(store.connection, root, "check-notes", change, loaded).outcome == "nothing"
    )
    assert "Mine." in path.read_text()
