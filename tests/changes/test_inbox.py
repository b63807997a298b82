"""The inbox: what waits survives, is asked once, and an answer is remembered."""

import sqlite3
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tacit.base.errors import NotFound, Refused, Unwritable
from tacit.changes import change_checks
from tacit.changes.change import BACKGROUND, Archive, Create, Delete, Edit, Pin, Rewrite, acting_as
from tacit.changes.gate import Gate

Rule = Callable[[Any], str]


def reopened(kit: Any) -> Gate:
    """The same place in a new process, as far as the gate can tell."""
    return Gate([kit.place], **kit.options)


def test_proposal_survives_a_restart(kit: Any) -> None:
    """A proposal made in one process is found, accepted and applied in another."""
    kit.create("notes")
    verdict = kit.propose(
        "notes",
        Edit("step by step", "at once"),
        actor="improver",
        reason="it was slow",
        evidence=("trace-1", "trace-2"),
    )
    assert verdict.outcome == "proposed"
    assert "step by step" in kit.text("notes")
    gate = reopened(kit)
    (proposal,) = gate.inbox.waiting()
    assert proposal.change.reason == "it was slow"
    assert gate.accept(proposal).applied
    assert "at once" in kit.text("notes")
    assert gate.inbox.waiting() == []


def test_accepted_change_keeps_its_provenance(make_kit: Callable[..., Any]) -> None:
    """What was accepted is still the machine's, with its evidence, and stays learned."""
    kit = make_kit(always_ask=("reviewer",))
    create = Create({"SKILL.md": kit.md("notes", learned=True)})
    kit.propose("notes", create, actor="reviewer", reason="seen twice", evidence=("trace-1",))
    (proposal,) = kit.gate.inbox.waiting()
    verdict = kit.gate.accept(proposal)
    assert verdict.applied
    record = kit.history.head("notes").record
    assert (record.actor, record.approved_by, record.evidence) == ("reviewer", "user", ("trace-1",))
    assert record.reason == "seen twice"
    assert kit.propose("notes", Archive(), actor="curator").applied  # so it can be curated


def test_same_proposal_waits_once(make_kit: Callable[..., Any]) -> None:
    """Two sessions that propose the same skill, under any name, make one proposal."""
    kit = make_kit(always_ask=("reviewer",))
    body = "Tag the release, push the tag, and wait until every build has passed.\n"
    first = kit.propose(
        "ship", Create({"SKILL.md": kit.md("ship", body, learned=True)}), actor="reviewer"
    )
    second = kit.propose(
        "ship", Create({"SKILL.md": kit.md("ship", body, learned=True)}), actor="reviewer"
    )
    assert first.outcome == second.outcome == "proposed"
    assert first.change == second.change
    assert len(kit.gate.inbox.waiting()) == 1


def test_rejected_proposal_does_not_come_back(kit: Any, rule: Rule) -> None:
    """A rejected idea is refused with the user's reason, also when it comes in other words."""
    kit.create("notes")
    sentence = "always run the whole suite of tests twice before you say that it is done"
    kit.propose("notes", Edit("step by step", sentence), actor="improver")
    (proposal,) = kit.gate.inbox.waiting()
    kit.gate.reject(proposal, "too slow for us")
    gate = reopened(kit)
    for words in (sentence, sentence + ".", sentence.replace(" ", "  ")):
        change = kit.change("notes", Edit("step by step", words), actor="improver")
        verdict = gate.propose(change)
        assert (verdict.outcome, rule(verdict)) == ("refused", "rejected-before")
        assert "too slow for us" in verdict.refusal.reason
    other = kit.change("notes", Edit("step by step", "with a list"), actor="improver")
    assert gate.propose(other).outcome == "proposed"
    assert kit.propose("notes", Edit("step by step", sentence)).applied  # the user may, of course


def test_rejected_create_does_not_come_back_under_another_name(
    make_kit: Callable[..., Any], rule: Rule
) -> None:
    """Renaming a rejected skill does not get it in."""
    kit = make_kit(always_ask=("reviewer",))
    body = "".join(
        f"Rule {n}: do the {n}th thing with much care and then go on.\n" for n in range(9)
    )
    kit.propose("a", Create({"SKILL.md": kit.md("a", body, learned=True)}), actor="reviewer")
    kit.gate.reject(kit.gate.inbox.waiting()[0], "not useful")
    again = Create({"SKILL.md": kit.md("b", body, learned=True)})
    assert rule(kit.propose("b", again, actor="reviewer")) == "rejected-before"


def test_target_that_changed_meanwhile_is_merged(kit: Any) -> None:
    """A proposal made on an older version is merged with what the user wrote since."""
    kit.create("notes", "one\n\ntwo\n\nthree\n")
    kit.propose("notes", Edit("one", "1"), actor="improver")
    kit.propose("notes", Edit("three", "3"))
    (proposal,) = kit.gate.inbox.waiting()
    assert kit.gate.accept(proposal).applied
    assert kit.text("notes").endswith("1\n\ntwo\n\n3\n")


def test_target_that_conflicts_is_refused_and_stays(kit: Any, rule: Rule) -> None:
    """When the same line was changed meanwhile, accepting says so; nothing is overwritten."""
    kit.create("notes", "one\n")
    kit.propose("notes", Edit("one", "1"), actor="improver")
    kit.propose("notes", Edit("one", "eins"))
    (proposal,) = kit.gate.inbox.waiting()
    verdict = kit.gate.accept(proposal)
    assert (verdict.outcome, rule(verdict)) == ("refused", "conflict")
    assert b"<<<<<<<" in verdict.offer["SKILL.md"]
    assert kit.text("notes").endswith("eins\n")
    assert [p.id for p in kit.gate.inbox.waiting()] == [proposal.id]


def test_accepting_never_replaces_a_folder_that_appeared(
    make_kit: Callable[..., Any], rule: Rule
) -> None:
    """A folder of the same name that the user made meanwhile stays, with its files."""
    kit = make_kit(always_ask=("reviewer",))
    create = Create({"SKILL.md": kit.md("notes", learned=True)})
    assert kit.propose("notes", create, actor="reviewer").outcome == "proposed"
    mine = kit.by_hand("notes", "mine\n")
    (mine / "extra.md").write_text("extra")
    (proposal,) = kit.gate.inbox.waiting()
    assert rule(kit.gate.accept(proposal)) == "exists"
    assert kit.text("notes").endswith("mine\n")
    assert (mine / "extra.md").exists()


def test_accepting_is_judged_again(make_kit: Callable[..., Any], rule: Rule) -> None:
    """What is pinned, or gone, since the proposal was made is not changed by accepting it."""
    kit = make_kit(always_ask=("reviewer",))
    kit.create("notes", "one\n", learned=True)
    kit.propose("notes", Edit("one", "1"), actor="reviewer")
    kit.propose("notes", Pin())
    (proposal,) = kit.gate.inbox.waiting()
    assert rule(kit.gate.accept(proposal)) == "pinned"
    kit.propose("notes", Delete())
    assert rule(kit.gate.accept(proposal)) == "no-such-skill"


def test_consent_does_not_lift_the_scan(make_kit: Callable[..., Any], rule: Rule) -> None:
    """A learned skill that the scan blocks cannot be accepted either."""
    kit = make_kit(always_ask=("reviewer",))
    kit.create("notes", "one\n\ntwo\n\nthree\n", learned=True)
    kit.propose("notes", Edit("one", "uno"), actor="reviewer")
    path = kit.root / "notes" / "SKILL.md"
    path.write_text(path.read_text() + "BLOCK\n")
    (proposal,) = kit.gate.inbox.waiting()
    assert rule(kit.gate.accept(proposal)) == "word-block"


def test_nobody_but_the_user_answers_and_only_what_waits(kit: Any, rule: Rule) -> None:
    """A machine's yes is none, nor is one to another change under the id of one that waits."""
    kit.create("notes")
    kit.propose("notes", Edit("step by step", "at once"), actor="improver")
    (proposal,) = kit.gate.inbox.waiting()
    other = msgspec.structs.replace(proposal.change, operations=(Edit("step by step", "never"),))
    forged = msgspec.structs.replace(proposal, change=other)
    assert rule(kit.gate.accept(forged)) == "exchanged"
    for actor in sorted(BACKGROUND):
        with acting_as(actor):
            assert rule(kit.gate.accept(proposal)) == "answers"
    assert kit.gate.inbox.get(proposal.id).state == "waiting"
    with acting_as("improver"):
        assert kit.gate.accept(proposal, setting="improve.own").applied


def test_answered_once(kit: Any, rule: Rule) -> None:
    """An accepted or rejected proposal cannot be answered again."""
    kit.create("notes")
    kit.propose("notes", Edit("step by step", "at once"), actor="improver")
    (proposal,) = kit.gate.inbox.waiting()
    assert kit.gate.accept(proposal).applied
    assert rule(kit.gate.accept(kit.gate.inbox.get(proposal.id))) == "answered"
    with pytest.raises(Refused, match="answered already"):
        kit.gate.reject(kit.gate.inbox.get(proposal.id), "too late")
    assert kit.gate.inbox.get(proposal.id).state == "accepted"


def test_kill_between_applying_and_noting_it(kit: Any) -> None:
    """A proposal that landed but still waits is found by doctor, and accepting it again is safe."""
    kit.create("notes")
    kit.propose("notes", Edit("step by step", "at once"), actor="improver")
    (proposal,) = kit.gate.inbox.waiting()
    close, kit.gate.inbox.close = kit.gate.inbox.close, lambda *_: None  # the kill
    assert kit.gate.accept(proposal).applied
    kit.gate.inbox.close = close
    (found,) = change_checks.check_changes(kit.gate)
    assert found.code == "answered-proposal"
    gate = reopened(kit)
    assert gate.accept(gate.inbox.waiting()[0]).applied
    assert kit.kinds("notes") == ["create", "edit"]
    assert change_checks.check_changes(gate) == []


def test_an_inbox_that_cannot_be_told(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What landed is reported as landed, with a note, when the answer cannot be written down; it is
    not shown as waiting, cannot be turned down, and is closed by the next look."""
    kit.create("notes")
    kit.propose("notes", Edit("step by step", "at once"), actor="improver")
    (proposal,) = kit.gate.inbox.waiting()

    def full(*_: Any) -> bool:
        raise Unwritable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(type(kit.gate.inbox), "close", full)
        verdict = kit.gate.accept(proposal)
        assert verdict.applied
        assert "the disk is full" in verdict.notes[-1]
        assert kit.gate.waiting() == []
    (still,) = kit.gate.inbox.waiting()
    with pytest.raises(Refused, match="answered already"):
        kit.gate.reject(still)
    assert kit.gate.inbox.get(still.id).state == "accepted"


def test_asked_agent_gets_an_answer_at_once(make_kit: Callable[..., Any], rule: Rule) -> None:
    """With a person there to ask, the agent's change lands, is refused, or waits, as they say."""
    answers = iter(["yes", "no", "later"])
    kit = make_kit(approver=lambda case, asks: next(answers))
    kit.create("notes", "one\n")
    assert kit.propose("notes", Edit("one", "two"), actor="agent").applied
    assert kit.history.head("notes").record.approved_by == "user"
    assert rule(kit.propose("notes", Edit("two", "three"), actor="agent")) == "said-no"
    assert kit.propose("notes", Edit("two", "four"), actor="agent").outcome == "proposed"


def test_proposals_are_found_by_a_few_letters(kit: Any) -> None:
    """An id's beginning or end is enough; wildcards are not obeyed."""
    kit.create("notes")
    verdict = kit.propose("notes", Edit("step by step", "at once"), actor="improver")
    inbox = kit.gate.inbox
    assert inbox.get(verdict.change[-6:]).id == verdict.change
    for wrong in ("", "%", "_", "zz"):
        with pytest.raises(NotFound):
            inbox.get(wrong)


def test_broken_row_is_found_and_mended(kit: Any) -> None:
    """A row that cannot be read hides no other, and doctor removes it."""
    kit.create("notes")
    kit.propose("notes", Edit("step by step", "at once"), actor="improver")
    kit.propose("notes", Edit("step by step", "quite differently"), actor="distiller")
    with sqlite3.connect(kit.data / "tacit.db") as connection:
        connection.execute("UPDATE proposals SET change = x'00' WHERE actor = 'improver'")
    connection.close()
    assert [p.change.actor for p in kit.gate.inbox.waiting()] == ["distiller"]
    (found,) = change_checks.check_changes(kit.gate)
    assert found.code == "broken-proposal"
    found.repair()
    assert change_checks.check_changes(kit.gate) == []


def test_bytes_survive_the_inbox(kit: Any) -> None:
    """A proposal with any bytes comes back as it was."""
    kit.create("notes")
    base = kit.gate.state_of("notes").head.id
    rewrite = Rewrite({"SKILL.md": kit.md("notes", "é\n"), "assets/x.bin": bytes(range(256))})
    kit.propose("notes", rewrite, actor="improver", base=base)
    (proposal,) = kit.gate.inbox.waiting()
    assert proposal.change.operations == (rewrite,)
