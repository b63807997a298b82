"""Daily use: an observation of like tasks, and a trial where lots were drawn."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from tried_skills import user_skill

from tacit.base.setting_sections import LearnSettings, Settings
from tacit.changes.gate import Gate
from tacit.changes.place import user_place
from tacit.learn.clusters import Cluster
from tacit.learn.segments import Segment, SegmentOutcome
from tacit.learn.trial import daily_use as daily_use_module
from tacit.learn.trial.daily_use import compare, daily_use, known_tasks, settle_daily_use
from tacit.learn.trial.trial_records import TrialAbout, TrialRecords
from tacit.skills import holdback
from tacit.skills.holdback import Holdback
from tacit.skills.library import Library
from tacit.skills.standing import standing_of
from tacit.traces.store import Store
from tacit.traces.trace import Activation, Head, ToolCall, Trace, Turn

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)
ASKED = "Write the database migration and test it"
ABOUT = "Database migrations. Use when a table changes."


def write(store: Store, number: int, *, used: bool, worked: bool, asked: str = ASKED) -> str:
    """A session that migrates the database, with the skill or without; its id."""
    at = BEGAN + timedelta(hours=number)
    result = "3 passed in 0.1s" if worked else "1 failed, 2 passed in 0.1s"
    call = ToolCall(
        "1", "Bash", "shell", {"command": "pytest tests/test_migration.py"}, result=result,
        failed=not worked, error="" if worked else "exit code 1", at=at,
    )  # fmt: skip
    steps = (*((Activation("migrate", at),) if used else ()), call)
    turn = Turn(0, asked, steps, started=at, ended=at)
    head = Head("tacit", f"s{number}", project="/p", started=at, ended=at)
    store.write(Trace(head, (turn,)))
    return head.id


@pytest.fixture
def digest(home: Path) -> str:
    user_skill("migrate", learned=True, about=ABOUT)
    return Library().get("migrate").digest


@pytest.fixture
def others(store: Store) -> None:
    """Other work, so that there are kinds of tasks."""
    for number in range(85):
        words = f"Look at topic{number} and thing{number} of part{number}"
        head = Head("tacit", f"o{number}", project="/p", started=BEGAN, ended=BEGAN)
        store.write(Trace(head, (Turn(0, words, (), started=BEGAN, ended=BEGAN),)))


def test_used_against_not_used_is_an_observation(store: Store, digest: str, others: None) -> None:
    """It has an interval, and finds nothing by itself."""
    for number in range(20):
        write(store, number, used=number % 2 == 0, worked=number % 2 == 0)
    found = daily_use(store, "migrate")
    assert (found.used, found.observed.success.count) == (10, 10)
    assert (found.observed.with_skill, found.observed.without) == (1.0, 0.0)
    assert found.observed.success.low > 0
    assert (found.by_lot, found.finding) == (None, "unclear")


def test_what_was_run_tells_like_tasks_where_the_words_do_not(store: Store, digest: str) -> None:
    """People ask for the same in other words; how a task failed does not set it apart."""
    words = ("now the next one", "go on with billing", "customers too", "same for the archive")
    for number, asked in enumerate(words):
        write(store, number, used=number % 2 == 0, worked=number % 2 == 0, asked=asked)
    for number in range(8):
        head = Head("tacit", f"o{number}", project="/p", started=BEGAN, ended=BEGAN)
        call = ToolCall("1", "Bash", "shell", {"command": f"tool{number} run"}, result="ok")
        store.write(Trace(head, (Turn(0, f"Look at topic{number}", (call,), started=BEGAN),)))
    found = daily_use(store, "migrate").observed
    assert (found.success.count, found.with_skill, found.without) == (2, 1.0, 0.0)


def test_without_like_tasks_nothing_is_compared(store: Store, digest: str) -> None:
    write(store, 1, used=True, worked=True)
    found = daily_use(store, "migrate")
    assert (found.used, found.observed.success.count) == (1, 0)


def test_lots_make_it_a_trial_and_harm_has_its_consequence(
    store: Store, digest: str, home: Path, others: None
) -> None:
    """Offered sessions count as such, whoever read the skill: those who did not were offered it."""
    for number in range(20):
        held = number % 2 == 0
        session = write(store, number, used=number % 4 == 1, worked=held)
        own = {"migrate": digest}
        holdback.record(session, Holdback("", {} if held else own, own if held else {}))
    other = write(store, 99, used=False, worked=True, asked="Tidy the cellar and the attic")
    holdback.record(other, Holdback("", {"migrate": digest}, {}))
    found = daily_use(store, "migrate", ABOUT)
    assert found.by_lot is not None
    assert (found.by_lot.success.count, found.finding) == (10, "harms")
    assert found.by_lot.with_skill == 0.0  # the other request speaks of something else
    gate = Gate([user_place()])
    settings = Settings(learn=LearnSettings(holdback=0.1))
    (effect,) = settle_daily_use(gate, Library(), settings)
    assert effect.did == "archived"
    assert standing_of("migrate", digest)[0] == "harms"
    assert settle_daily_use(gate, Library(), settings) == []


def test_a_session_counts_once_and_lots_share_the_chance_of_error(
    store: Store, digest: str, others: None
) -> None:
    """The lot is the session's; and this version is an attempt of the skill, as a trial is."""
    own = {"migrate": digest}
    for number in range(6):
        held = number % 3 == 2
        session = write(store, number, used=number == 0, worked=not held)
        holdback.record(session, Holdback("", {} if held else own, own if held else {}))
    task = next(task for task in known_tasks(store, []) if task.session.endswith(":s2"))
    twice = msgspec.structs.replace(task, first=99, number=2)
    for tasks in (known_tasks(store, []), [*known_tasks(store, []), twice]):
        found = daily_use(store, "migrate", tasks=tasks)
        assert found.by_lot is not None
        assert found.by_lot.success.count == 2  # two offered sessions against each that was not
        assert found.attempt == 1
    records = TrialRecords(store.connection)
    assert records.trials() == []
    assert records.begin(TrialAbout(skill="migrate", digest=digest, agent="x")).attempt == 2


def test_sessions_that_drew_long_ago_still_count(
    store: Store, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was looked at once must not drop out, or every look would be a new chance to err."""
    own = {"migrate": digest}
    for number in range(4):
        held = number % 2 == 0
        session = write(store, number, used=not held, worked=True)
        holdback.record(session, Holdback("", {} if held else own, own if held else {}))
    monkeypatch.setattr(daily_use_module, "MOST_SESSIONS", 1)
    drawn = holdback.holdbacks(store.connection)
    assert len(known_tasks(store, [])) == 1
    assert len(known_tasks(store, drawn)) == 4


def test_lots_hardly_ever_promote_what_has_no_effect() -> None:
    """Looked at again and again; a session's tasks end alike. See `bench/trial_rates.py`."""
    rng, found = random.Random(7), 0
    for _ in range(30):
        members: list[Segment] = []
        offered, held = set[str](), set[str]()
        for number in range(60):
            at = BEGAN + timedelta(hours=number)
            ended = SegmentOutcome(rng.choice(("worked", "failed")))
            tasks = [
                Segment(session=str(number), number=n, start=0, stop=1, first=n, at=at,
                        outcome=ended)
                for n in range(3)
            ]  # fmt: skip
            members += tasks
            (offered if rng.random() < 0.5 else held).update(task.id for task in tasks)
            if number % 10 == 9:
                seen = compare([Cluster("", (), tuple(members))], offered, held).success
                assert seen.count <= number // 2 + 1
                if seen.finding() == "helps":
                    found += 1
                    break
    assert found <= 2


def test_runs_of_trials_are_no_daily_use(store: Store, digest: str) -> None:
    for number in range(4):
        write(store, number, used=True, worked=True)
    tasks = daily_use(store, "migrate").used
    head = Head("tacit", "trial", project="/tmp/tacit-trial-x/work")
    store.write(Trace(head, (Turn(0, "Write it", (Activation("migrate"),)),)))
    assert daily_use(store, "migrate").used == tasks == 4
