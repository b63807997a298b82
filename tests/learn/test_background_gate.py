"""What lands unasked, by the setting and by the user's answers so far."""

from pathlib import Path

import pytest

from tacit import learn
from tacit.base import trust
from tacit.base.setting_sections import LearnSettings, Settings
from tacit.changes.change import Actor, Create, Verdict, acting_as, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import user_place
from tacit.learn.background.background_gate import (
    FIRST_ACCEPTED,
    GO_ON,
    approval_question,
    background_gate,
    current_approval,
    new_skill_place,
    reading_gate,
)

BODIES = {
    "release-notes": "Collect merged work since the last tag, then group it by what users notice.",
    "db-migration": "Expand the schema, backfill rows in batches, and contract it afterwards.",
    "log-triage": "Sort the failures by their first stack frame before reading a single one.",
    "cache-warming": "Request every landing page once per region after a deployment ended.",
}


def set_to(mode: str) -> Settings:
    return Settings(learn=LearnSettings(approval=mode))


def propose(gate: Gate, name: str, actor: Actor = "reviewer") -> Verdict:
    text = (
        f"---\nname: {name}\ndescription: {BODIES[name]} Use when it comes up.\n"
        f"metadata:\n  source: auto-skill\n---\n\n# Steps\n\n1. {BODIES[name]}\n"
    )
    with acting_as(actor):
        change = make_change(
            name, Create({"SKILL.md": text.encode()}), reason="seen", evidence=("t",)
        )
        return gate.propose(change)


@pytest.mark.parametrize(
    ("mode", "outcome"), [("auto", "applied"), ("ask", "proposed"), ("propose-only", "proposed")]
)
def test_what_each_setting_does_with_a_learned_skill(mode: str, outcome: str, home: Path) -> None:
    """Only `auto` lets it land; the other two let it wait."""
    verdict = propose(background_gate("reviewer", [user_place()], set_to(mode)), "release-notes")
    assert verdict.outcome == outcome
    assert (home / ".agents/skills/release-notes").exists() == (outcome == "applied")
    found = current_approval(set_to(mode).learn)
    assert found.mode == mode
    assert not found.question


def test_drafts_by_counting_wait_even_when_all_else_lands() -> None:
    """`auto` is trust in a reviewer with a model, not in a draft."""
    gate = background_gate("distiller", [user_place()], set_to("auto"))
    assert propose(gate, "release-notes", "distiller").outcome == "proposed"


def test_through_a_gate_for_reading_nothing_lands() -> None:
    """Whoever proposes something there nevertheless has it wait for a person."""
    assert propose(reading_gate([user_place()]), "release-notes").outcome == "proposed"


def test_gates_are_made_in_one_place() -> None:
    """No other module that works in the background makes a gate of its own."""
    folder = Path(learn.__file__).parent
    makers = [path.name for path in folder.rglob("*.py") if "Gate(" in path.read_text()]
    assert makers == ["background_gate.py"]


def test_three_are_looked_at_then_the_user_is_asked() -> None:
    """Not set: each waits; from the third yes on the question is due, and still each waits."""
    default = Settings()
    for number, name in enumerate(list(BODIES)[:FIRST_ACCEPTED]):
        gate = background_gate("reviewer", [user_place()], default)
        found = current_approval(default.learn)
        assert (found.mode, found.accepted, found.question) == ("ask", number, False)
        assert propose(gate, name).outcome == "proposed"
        (waiting,) = gate.inbox.waiting()
        assert gate.accept(waiting).applied
    found = current_approval(default.learn)
    assert (found.mode, found.accepted, found.question) == ("ask", FIRST_ACCEPTED, True)
    assert GO_ON in approval_question(found.accepted)
    gate = background_gate("reviewer", [user_place()], default)
    assert propose(gate, "cache-warming").outcome == "proposed"
    assert not current_approval(set_to("ask").learn).question  # answered
    (waiting,) = gate.inbox.waiting()
    gate.reject(waiting)
    assert current_approval(default.learn).accepted == FIRST_ACCEPTED  # a no is no yes


def test_only_new_skills_that_were_learned_count() -> None:
    """The user's own changes and edits of what is there bring the question no nearer."""
    from tacit.changes.change import Edit

    gate = Gate([user_place()], always_ask=("agent", "improver"))
    assert propose(gate, "release-notes", "agent").outcome == "proposed"
    assert gate.accept(gate.inbox.waiting()[0]).applied
    auto = background_gate("reviewer", [user_place()], set_to("auto"))
    assert propose(auto, "db-migration").applied
    with acting_as("improver"):
        change = make_change("db-migration", Edit("1. Expand", "1. Carefully expand"))
        assert gate.propose(change).outcome == "proposed"
    assert gate.accept(gate.inbox.waiting()[0]).applied
    assert current_approval(LearnSettings()).accepted == 0


def test_a_new_skill_goes_to_the_project_where_there_is_one(home: Path) -> None:
    """Trusted or not; a folder without a mark is none until it is trusted, and one that keeps its
    skills elsewhere by a link, as a clone may, gets none."""
    for name in ("clone", "linked"):
        (home / name / ".git").mkdir(parents=True)
    (home / "clone/below").mkdir()
    plain = home / "plain"
    plain.mkdir()
    (home / "linked/.agents").symlink_to(home / "elsewhere")
    for folder in ("clone", "clone/below"):
        assert new_skill_place(str(home / folder)).root == str(home / "clone/.agents/skills")
    for folder in ("", str(home), str(plain), str(home / "linked")):
        assert new_skill_place(folder) == user_place()
    trust.add(str(plain))
    assert new_skill_place(str(plain)).root == str(plain / ".agents/skills")
