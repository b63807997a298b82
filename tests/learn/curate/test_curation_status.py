"""When the library is looked after: once a period, and only when no agent is at work."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tacit.base.job import Job
from tacit.base.setting_sections import CurateSettings
from tacit.learn.curate.curation_status import curation_due, newest_write
from tacit.learn.curate.curator import run_curation
from tacit.testing import FakeClock
from tacit.traces.host import Source
from tacit.traces.hosts.tacit import SessionWriter
from tacit.work import reactions
from tacit.work.job_kinds import Ticket

SETTINGS = CurateSettings()
WEEK = timedelta(days=7)


class Agent:
    """A host whose sessions were written at these moments."""

    def __init__(self, *times: datetime) -> None:
        self.times = times

    def find(self):
        for number, at in enumerate(self.times):
            yield Source("agent", f"/{number}", modified=at.timestamp())


def test_the_first_run_waits_a_whole_period(library) -> None:
    """Asked for the first time it is due in seven days, also when it is asked again and again."""
    clock = library.clock
    first = curation_due(SETTINGS, clock=clock, hosts=[])
    assert first.seconds == WEEK.total_seconds()
    clock.advance(timedelta(days=3))
    again = curation_due(SETTINGS, clock=clock, hosts=[])
    assert again.seconds == timedelta(days=4).total_seconds()
    assert again.key == first.key
    clock.advance(timedelta(days=4))
    assert curation_due(SETTINGS, clock=clock, hosts=[]).now


def test_it_waits_for_two_hours_in_which_nobody_wrote(library) -> None:
    """Any agent's newest write counts; one of an hour ago puts it off by an hour."""
    library.curate()
    library.days(8)
    now = library.clock.now()
    early, late = now - timedelta(days=2), now - timedelta(hours=1)
    waits = curation_due(SETTINGS, clock=library.clock, hosts=[Agent(early), Agent(early, late)])
    assert not waits.now
    assert waits.seconds == pytest.approx(3600, abs=60)
    assert waits.reason == "an agent wrote 60 minutes ago"
    assert curation_due(SETTINGS, clock=library.clock, hosts=[Agent(early)]).now


def test_a_clock_that_was_put_back_delays_by_a_period_at_most(library) -> None:
    """A last look in the future, and files from the future, do not stop curation for years."""
    library.curate()
    library.clock.set(library.clock.now() - timedelta(days=1000))
    assert curation_due(SETTINGS, clock=library.clock, hosts=[]).seconds == WEEK.total_seconds()
    now = library.clock.now()
    ahead = Agent(now + timedelta(days=1000), now - timedelta(hours=9))
    assert newest_write(now, [ahead]) == (now - timedelta(hours=9)).timestamp()


def test_real_sessions_are_measured(home: Path) -> None:
    """The newest change of any session file counts, of other agents and of our own chat."""
    old = home / ".claude" / "projects" / "p" / "s.jsonl"
    old.parent.mkdir(parents=True)
    old.write_text("{}\n")
    os.utime(old, (1_700_000_000, 1_700_000_000))
    now = datetime.now(UTC)
    assert newest_write(now) == 1_700_000_000
    SessionWriter("mine").prompt("hello")
    assert newest_write(datetime.now(UTC)) == pytest.approx(time.time(), abs=60)


def test_switched_off_it_is_never_due(library) -> None:
    """With curate.use = false no run has a name, so none is asked for."""
    library.curate()
    library.days(100)
    assert not curation_due(CurateSettings(use=False), clock=library.clock, hosts=[]).now


def test_the_job_looks_again_whether_it_is_due(library, monkeypatch) -> None:
    """Put off while an agent writes; done when it is quiet; done meanwhile, nothing more."""
    library.make("one")
    library.curate()
    library.weeks(12)
    library.days(7)
    monkeypatch.setattr("tacit.learn.curate.curation_status.SystemClock", lambda: library.clock)
    monkeypatch.setattr("tacit.learn.curate.curation_scope.SystemClock", lambda: library.clock)
    quiet: list[Agent] = [Agent(library.clock.now())]
    monkeypatch.setattr("tacit.learn.curate.curation_status.host_registry.each", lambda: quiet)
    key = curation_due(SETTINGS, clock=library.clock).key
    job = Job("curate-1", "curate", key)
    waits = run_curation(job)
    assert (waits.outcome, waits.later > 7000) == ("put off", True)
    assert library.live() == {"one"}
    quiet.clear()
    done = run_curation(job)
    assert (done.outcome, done.reason) == ("curated", "1 archived")
    assert len(done.changes) == 2  # the change, and the run that takes all of it back
    assert library.archived() == {"one"}
    assert run_curation(job).outcome == "nothing"


def test_the_worker_asks_for_it_once_and_stays_for_it(library, monkeypatch) -> None:
    """Due but not quiet yet, the worker stays; quiet, it asks for the job; else it goes."""
    monkeypatch.setattr("tacit.learn.curate.curation_status.SystemClock", lambda: library.clock)
    agents: list[Agent] = []
    monkeypatch.setattr("tacit.learn.curate.curation_status.host_registry.each", lambda: agents)
    monkeypatch.setenv("TACIT_WORKER", "1")
    library.curate()

    def idle() -> bool:
        monkeypatch.setattr(reactions, "_next_ask", 0.0)
        return reactions.idle(lambda ticket: not queued.append(ticket))

    queued: list[Ticket] = []
    assert (idle(), queued) == (False, [])
    library.days(7)
    agents.append(Agent(library.clock.now()))
    assert (idle(), queued) == (True, [])
    agents.clear()
    assert (idle(), idle()) == (False, False)
    assert {ticket.job for ticket in queued} == {queued[0].job}
    assert isinstance(library.clock, FakeClock)
