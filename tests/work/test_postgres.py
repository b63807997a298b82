"""Machines that share queues on a real PostgreSQL server."""

import os
import random
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from subprocess import Popen
from typing import Any

import msgspec
import psycopg
import pytest

from tacit.base import config_file, trust
from tacit.base.errors import Refused
from tacit.changes.gate import Gate
from tacit.changes.place import Place
from tacit.learn.ledger import Ledger
from tacit.testing import ModelServer, ToolUse
from tacit.testing.sample_sessions import made, ran
from tacit.traces.store import Store
from tacit.work import job_queue, jobs, jobs_db
from tacit.work.presence import _number, log_file, machine
from waiting import LONG, until

from .conftest import Workers, ask, open_jobs
from .postgres import Server, server

Start = Callable[[str], "Popen[bytes]"]


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
def address(database: Server) -> str:
    """Of queues in which nothing is."""
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {jobs_db.SCHEMA} CASCADE")
    return database.url


@pytest.fixture
def start(workers: Workers, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a worker on the machine of this name: a data folder of its own, the same queues."""
    monkeypatch.setenv("TACIT_DATABASE_URL", address)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "one"))
    return lambda name: workers.start(TACIT_HOME=str(tmp_path / name), IDLE="600")


def ask_elsewhere(key: str) -> None:
    """A job that only another machine, which does not run, can do."""
    from tacit.work.engine import client, options
    from tacit.work.job_kinds import Ticket

    ticket = Ticket("improve", key, home="elsewhere")
    opened = client(jobs_db.address())
    opened.enqueue(options(ticket), msgspec.json.encode(ticket).decode())
    opened.destroy()


def test_a_killed_machines_job_is_taken_over(
    start: Start, workers: Workers, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two workers is killed in a job: the other does it, and each change is made once.

    One that only a third machine can do waits for that one, until somebody has it done here.
    """
    (workers.folder / "long.wait").touch()
    ask("review", "long")
    first = start("one")
    until((workers.folder / "long.waits").exists)
    for number in range(3):
        ask("review", f"s{number}")
    ask_elsewhere("far")
    start("two")
    until(lambda: workers.changes() == ["s0", "s1", "s2"] and not job_queue.waiting_jobs())
    assert workers.lines("long.read") == 1, "nobody takes a job from a worker that lives"
    first.send_signal(signal.SIGKILL)
    (workers.folder / "long.wait").unlink()
    until(lambda: {e.state for e in jobs.listing() if e.key != "far"} == {"done"})
    assert workers.changes() == ["long", "s0", "s1", "s2"]
    found = {entry.key: entry for entry in jobs.listing()}
    assert all(workers.lines(f"{key}.ran") == 1 for key in found if key != "far")
    assert workers.lines("long.read") == 1, "the step that the dead one did is not repeated"
    assert [(a.kills, a.outcome) for a in found["long"].attempts] == [(1, "created")]
    assert found["far"].state == "queued"
    far = found["far"]
    assert far.reason.startswith("it waits for elsewhere, which asked for it; here: tacit jobs")
    assert len(far.attempts) == 1
    monkeypatch.setattr(jobs, "wake", lambda: None)
    with psycopg.connect(address, autocommit=True) as there:
        there.execute("SELECT pg_advisory_lock(%s)", (_number("elsewhere"),))
        with pytest.raises(Refused, match=r"elsewhere, which asked for .*, is there"):
            jobs.retry("far")
    taken = jobs.retry("far")
    assert (taken.home, [a.state for a in taken.attempts]) == (machine(), ["cancelled", "queued"])
    start("one")
    until(lambda: not open_jobs())  # each machine closes what it decided on


class Machines:
    """Two machines, each with a home, sessions and a library of its own, on the same queues."""

    names = ("one", "two")
    DRIVER = Path(__file__).parent / "review_driver.py"

    def __init__(self, workers: Workers, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._workers = workers
        self._folder = folder
        self._monkeypatch = monkeypatch
        self.running: dict[str, Popen[bytes]] = {}

    def be(self, name: str) -> Path:
        """Have this process look at the machine of this name, and give its home."""
        home = self._folder / name
        for variable, folder in self._variables(name).items():
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._monkeypatch.setenv(variable, folder)
        return home

    def start(self, name: str, *points: str) -> "Popen[bytes]":
        (self._folder / name).mkdir(exist_ok=True)
        started = self._workers.start(
            *points, driver=self.DRIVER, IDLE="600", **self._variables(name)
        )
        self.running[name] = started
        return started

    def kill(self, name: str) -> None:
        self.running[name].kill()
        self.running[name].wait()

    def ask(self, name: str, url: str, subjects: Sequence[str]) -> None:
        """Sessions that are over on a machine, and to be reviewed."""
        project = self.be(name) / "work"
        (project / ".git").mkdir(parents=True)
        trust.add(str(project))
        config_file.set_values(
            {
                "agent.model": "openai:mock",
                "agent.base_url": f"{url}/v1",
                "agent.retries": 0,
                "learn.approval": "auto",
                "memory.use": False,
            }
        )
        with Store.open() as store:
            for subject in subjects:
                words = f"Always run `{subject} check` before `{subject} build`."
                trace = made(
                    [words, ran(f"{subject} check", "ok"), ran(f"{subject} build", "ok")],
                    session=f"{name}-{subject}",
                    project=str(project),
                )
                store.write(trace)
                ask("review", trace.id, {"session": trace.id})

    def outcomes(self, name: str) -> dict[str, str]:
        self.be(name)
        with Store.open() as store:
            return dict(Ledger(store.connection).outcomes())

    def learned(self, name: str) -> dict[str, int]:
        """The skills of a machine, and how many changes each has seen."""
        root = str(self.be(name) / "work/.agents/skills")
        names = [path.name for path in Path(root).glob("[!.]*")]
        history = Gate([Place(root, "project", os.path.dirname(os.path.dirname(root)))])
        return {n: len(list(history.open_place(root).history.log(n))) for n in names}

    def _variables(self, name: str) -> dict[str, str]:
        home = self._folder / name
        return {"HOME": str(home), "TACIT_HOME": str(home / "tacit")}


@pytest.fixture
def machines(
    workers: Workers, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Machines:
    monkeypatch.setenv("TACIT_DATABASE_URL", address)
    return Machines(workers, tmp_path, monkeypatch)


def learn_subject(request: Any) -> Any:
    """A reviewer that keeps what its session was about."""
    if request.turn:
        return "Kept it."
    subject = re.search(r"Always run `(\w+) check`", request.user_texts[0])[1]
    text = (
        f"---\nname: {subject}-use\ndescription: How {subject} is used. Use before it is run.\n"
        f"---\n\n# {subject}\n\nAlways run `{subject} check` before `{subject} build`.\n"
    )
    return ToolUse("write_file", {"path": f"{subject}-use/SKILL.md", "content": text})


@pytest.fixture
def reviewer() -> Iterator[ModelServer]:
    with ModelServer(learn_subject) as served:
        yield served


FULL = os.environ.get("TACIT_TEST_FULL")


@pytest.mark.skipif(not FULL, reason="three machines: TACIT_TEST_FULL=1, and scripts/test-faults")
def test_a_review_waits_for_the_machine_that_has_its_session(
    machines: Machines, reviewer: ModelServer
) -> None:
    """Killed between the conversation and the landing, it is not done by another machine, which has
    neither the session nor the project; its own goes on with it, and asks no model again."""
    machines.ask("one", reviewer.url, ["loom"])
    machines.ask("two", reviewer.url, ["kiln"])
    dying = machines.start("one", "before the landing")
    assert dying.wait(LONG) == -signal.SIGKILL
    machines.start("two")
    until(lambda: machines.outcomes("two") == {"claude-code:two-kiln": "created"})
    until(lambda: "took over 1 jobs" in Path(log_file()).read_text())
    machines.start("one")
    until(lambda: machines.outcomes("one") == {"claude-code:one-loom": "created"})
    until(lambda: not open_jobs())
    assert machines.learned("one") == {"loom-use": 1}
    assert {entry.outcome for entry in jobs.listing()} == {"created"}
    assert len(reviewer.requests) == 4


SUBJECTS = ["loom", "kiln", "anvil", "plough", "lathe", "churn", "forge", "sickle"]


@pytest.mark.skipif(not FULL, reason="minutes: TACIT_TEST_FULL=1, and scripts/test-faults")
@pytest.mark.parametrize("seed", range(8))
def test_every_session_is_reviewed_once_whatever_dies(
    machines: Machines, reviewer: ModelServer, database: Server, seed: int
) -> None:
    """Machines that are killed, a server that stops, crashes and is away for a while: at the end
    each machine has a skill of each of its sessions, made by one change."""
    chance = random.Random(seed)
    for number, name in enumerate(machines.names):
        machines.ask(name, reviewer.url, SUBJECTS[number::2])
        machines.start(name)
    for left in range(len(SUBJECTS) - 2, 0, -2):
        until(lambda left=left: sum(_open(machines, name) for name in machines.names) <= left)
        match chance.choice(["kill", "stop", "crash"]):
            case "kill":
                name = chance.choice(machines.names)
                machines.kill(name)
                machines.start(name)
            case how:
                before = _troubles(machines)
                database.stop(signal.SIGINT if how == "stop" else signal.SIGQUIT)
                until(lambda before=before: _troubles(machines) > before, "the trouble")
                database.start()
    for number, name in enumerate(machines.names):
        until(lambda name=name: not _open(machines, name), f"the end of {name}")
        wanted = SUBJECTS[number::2]
        assert machines.outcomes(name) == {f"claude-code:{name}-{s}": "created" for s in wanted}
        assert machines.learned(name) == {f"{subject}-use": 1 for subject in wanted}
    assert {entry.outcome for entry in jobs.listing()} == {"created"}


def _open(machines: Machines, name: str) -> int:
    machines.be(name)
    return len(open_jobs())


def _troubles(machines: Machines) -> int:
    """How often a machine has said that it cannot reach the queues."""
    logs = []
    for name in machines.names:
        machines.be(name)
        logs.append(Path(log_file()).read_text() if os.path.exists(log_file()) else "")
    return sum(log.count(" the queue of jobs at ") for log in logs)
