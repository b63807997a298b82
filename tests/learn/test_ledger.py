"""The ledger: a decision and its jobs are one, and a job is on record until it is over."""

import pytest

from tacit.learn.ledger import DecidedJob, Decision, Ledger, open_ledger

JOB = DecidedJob("review", "codex:1", {"session": "codex:1", "text": "zwölf\n"}, "codex:1")
LOOK = Decision(moment="after", skills=True, word="due", reason="enough")


def names(ledger: Ledger) -> list[tuple[str, str]]:
    return [(job.key, job.queue) for job in ledger.open_jobs()]


def test_a_job_is_on_record_until_it_is_over() -> None:
    """Read back as it was decided; queued, lost and queued again; each step the same done twice."""
    with open_ledger() as ledger:
        ledger.decide("codex:1", LOOK, [JOB])
        (found,) = ledger.open_jobs()
        assert (found.kind, found.payload, found.session) == (JOB.kind, JOB.payload, JOB.session)
        assert found.id == JOB.id
        for queue in ("jobs.db", "jobs.db", ""):
            ledger.mark_queued("review", "codex:1", queue)
            assert names(ledger) == [("codex:1", queue)]
        ledger.close_job("review", "codex:1")
        ledger.close_job("review", "codex:1")
        assert names(ledger) == []


def test_what_is_known_stays_as_it_is() -> None:
    """Decided again, a job that a queue has is still the same one."""
    with open_ledger() as ledger:
        ledger.decide("codex:1", LOOK, [JOB])
        ledger.mark_queued("review", "codex:1", "jobs.db")
        ledger.decide("codex:1", LOOK, [JOB])
        ledger.add_jobs([JOB, DecidedJob("improve", "codex:1", {})])
        assert names(ledger) == [("codex:1", "jobs.db"), ("codex:1", "")]


def test_a_decision_lands_with_its_jobs_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in between, neither is there: the next worker decides again."""

    def killed(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "_insert", killed)
    with open_ledger() as ledger, pytest.raises(KeyboardInterrupt):
        ledger.decide("codex:1", LOOK, [JOB])
    with open_ledger() as ledger:
        assert ledger.decisions("codex:1") == []
