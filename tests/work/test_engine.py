"""Jobs over real kills, on the engine and the file that users have."""

import os
import signal

import pytest

from tacit.work import jobs, requests, where
from tacit.work.requests import request

from .conftest import Workers

POINTS = [
    "before it is queued",
    "when it is queued",
    "before it is taken",
    "when it is taken",
    "before it may begin",
    "when it may begin",
    "at the beginning",
    "between steps",
    "after the change",
    "before it is over",
    "when it is over",
    "before it is tidied",
    "when it is tidied",
]
# All of them one after the other in one life of a job, as far as it may be killed while it runs.
SAMPLED = ["when it is queued", "between steps", "after the change", "when it is over"]


@pytest.mark.parametrize(
    "points", [[p] for p in POINTS] if os.environ.get("TACIT_TEST_FULL") else [SAMPLED]
)
def test_a_job_survives_kills_and_is_done_once(workers: Workers, points: list[str]) -> None:
    """Killed at each of these points, the job is done in the end, and what it changes once."""
    request("review", "s1", {"session": "claude-code:s1"})
    for point in points:
        assert workers.run(point) == -signal.SIGKILL, point
    assert workers.run() == 0
    (entry,) = jobs.listing()
    assert (entry.state, entry.outcome, entry.reason) == ("done", "created", "for s1")
    assert len(entry.attempts) == 1
    assert workers.changes() == ["s1"]
    assert not requests.waiting()
    assert not requests.taken()
    assert where.ahead(where.place()) == where.Ahead()
    if points == SAMPLED:
        assert workers.lines("s1.read") == 1, "a step that was done is not repeated"
        assert entry.attempts[0].kills == 3
