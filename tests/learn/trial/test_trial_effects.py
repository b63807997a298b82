"""What follows from an answer: the standing, and a learned skill that harms is taken out of use."""

from pathlib import Path

import pytest
from tried_skills import user_skill

from tacit.base.setting_sections import LearnSettings, Settings
from tacit.changes.change import acting_as
from tacit.changes.gate import Gate
from tacit.changes.place import user_place
from tacit.learn import notices
from tacit.learn.trial.candidate import Candidate, find_candidate
from tacit.learn.trial.interval import Interval, interval_of
from tacit.learn.trial.trial_effects import TrialEffect, settle_standing
from tacit.skills.library import Library
from tacit.skills.standing import standing_of

HARM, HELP = interval_of([-1] * 12), interval_of([1] * 12)


def found(gate: Gate) -> Candidate:
    return find_candidate(gate, Library(), "notes")


def settled(gate: Gate, shown: Interval, settings: Settings | None = None) -> TrialEffect:
    how = "in 12 pairs"
    return settle_standing(gate, found(gate), shown.finding(), shown, how, settings or Settings())


@pytest.fixture
def gate(home: Path) -> Gate:
    user_skill("notes", learned=True)
    return Gate([user_place()])


def test_a_standing_has_its_figures(gate: Gate, home: Path) -> None:
    assert settled(gate, HELP).did == "nothing"
    standing, figures = standing_of("notes", found(gate).digest)
    assert (standing, figures) == ("helps", "+100 points (+25 to +100) in 12 pairs")
    assert settled(gate, interval_of([1, -1])).did == "nothing"
    assert standing_of("notes", found(gate).digest)[0] == "helps"


def test_a_learned_skill_that_harms_is_taken_out_of_use_and_told(gate: Gate, home: Path) -> None:
    """It can be taken back, and then it stays: the same version is not taken out twice."""
    done = settled(gate, HARM)
    assert done.did == "archived"
    assert not (home / ".agents/skills/notes").exists()
    (told,) = map(notices.line, notices.pending("chat"))
    assert "it harms: -100 points" in told
    with acting_as("user"):
        assert gate.undo(done.change).applied
    assert settled(gate, HARM).did == "nothing"
    assert (home / ".agents/skills/notes").exists()


def test_it_waits_where_the_user_wants_to_be_asked(gate: Gate, home: Path) -> None:
    done = settled(gate, HARM, Settings(learn=LearnSettings(approval="ask")))
    assert done.did == "waits"
    assert (home / ".agents/skills/notes").exists()


def test_a_skill_of_the_users_own_only_gets_its_standing(home: Path) -> None:
    user_skill("notes", learned=False)
    gate = Gate([user_place()])
    assert settled(gate, HARM).did == "nothing"
    assert standing_of("notes", found(gate).digest)[0] == "harms"
    assert (home / ".agents/skills/notes").exists()
