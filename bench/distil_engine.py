"""The jobs of a distillation with a simulated model of one second a request.

    python -m bench.distil engine

200 tasks on one machine at 20 at once, against the ideal of 10 s; on two machines with a PostgreSQL
server of its own, where the second has no sessions; and on one that is killed again and again,
after which each answer is there once. The times are from the first request to the last answer.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench import distil
from tacit.base.job import Job, JobResult
from tacit.learn.distil import distillation
from tacit.learn.distil.distil_plan import DistilOptions
from tacit.learn.distil.distillation import DISTIL_KIND, DistilResult
from tacit.learn.distil.support import open_lessons
from tacit.learn.ledger import DecidedJob, open_ledger
from tacit.testing.sample_sessions import made, ran
from tacit.traces.store import Store
from tacit.work import job_kinds

TASKS, SECONDS, AT_ONCE = 200, 1.0, 20


def work(log: Path) -> None:
    """Be a worker whose model takes a second."""
    from tacit.learn import inquiry
    from tacit.work import worker

    def answer(job: Job) -> JobResult:
        _note(log, f"begin {job.kind} {job.key}")
        time.sleep(SECONDS)
        _note(log, f"end {job.kind} {job.key}")
        return distil.scripted(job)

    inquiry.answer_job = answer
    worker.work(quiet=0, idle=60.0, permanent=bool(os.environ.get("TACIT_DATABASE_URL")))


def _note(log: Path, text: str) -> None:
    with open(log, "a") as file:
        file.write(f"{time.time():.3f} {text}\n")


class Machine:
    """A data folder with a worker of its own."""

    def __init__(self, folder: Path, url: str = "") -> None:
        self.home, self.log = folder, folder / "requests"
        self.home.mkdir(parents=True)
        self._url = {"TACIT_DATABASE_URL": url} if url else {}
        self._running: subprocess.Popen[bytes] | None = None

    def be(self) -> None:
        """Have this process look at this machine."""
        os.environ.pop("TACIT_DATABASE_URL", None)
        os.environ |= {"TACIT_HOME": str(self.home), "HOME": str(self.home), **self._url}

    def ask(self, tasks: int) -> str:
        """Sessions to be distilled here; the run."""
        self.be()
        kinds = distil.TRUE
        with Store.open() as store:
            for number in range(tasks):
                one = kinds[number % len(kinds)]
                asked = f"Work on {one.name}, round {number}{distil.told(one)}"
                turn = [asked, ran(one.first), ran(one.then)]
                store.write(made(turn, session=f"s{number}", project="/p/app"))
        run = distillation.begin(DistilOptions(model="scripted:model"))
        with open_ledger() as ledger:
            ledger.add_jobs([DecidedJob(DISTIL_KIND, run, {"run": run})])
        return run

    def start(self) -> None:
        variables = {"TACIT_HOME": str(self.home), "HOME": str(self.home), **self._url}
        command = [sys.executable, "-m", "bench.distil_engine", "work", str(self.log)]
        with open(self.home / "printed", "ab") as printed:
            self._running = subprocess.Popen(
                command, env=os.environ | variables, stdout=printed, stderr=printed
            )

    def kill(self) -> None:
        if self._running is not None:
            self._running.send_signal(signal.SIGKILL)
            self._running.wait()
            self._running = None

    def requests(self) -> list[tuple[float, str, str]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        parts = [line.split(" ", 3) for line in lines]
        return [(float(at), what, f"{kind} {key}") for at, what, kind, key in parts]


def _finished(run: str, machines: list[Machine], limit: float = 300.0) -> DistilResult:
    until = time.monotonic() + limit
    machines[0].be()
    while (result := distillation.result_of(run)) is None:
        if time.monotonic() > until:
            raise SystemExit(f"not over in {limit:.0f} s: {distillation.progress(run)}")
        time.sleep(0.3)
    return result


def _reading_time(machines: list[Machine]) -> float:
    """From the first request of an analyst to the last answer."""
    each = [one for m in machines for one in m.requests() if one[2].startswith("analyse")]
    return max(at for at, _, _ in each) - min(at for at, _, _ in each)


def measure(folder: Path, machines: int, url: str = "") -> float:
    """Seconds that the tasks take on so many machines, of which the first has the sessions."""
    own = [Machine(folder / f"m{number}", url) for number in range(machines)]
    run = own[0].ask(TASKS)
    for machine in reversed(own):
        machine.start()
        if machine is not own[0]:
            time.sleep(6.0)  # until it waits for work
    try:
        _finished(run, own)
        return _reading_time(own)
    finally:
        for machine in own:
            machine.kill()


def killed(folder: Path, kills: int = 8) -> str:
    """A run whose worker is killed again and again: what was asked twice, and is it whole."""
    chance = random.Random(7)
    at_hand = AT_ONCE + job_kinds.find_kind("analyse").ready  # answers that are not stored yet too
    machine = Machine(folder / "killed")
    run = machine.ask(TASKS)
    for _ in range(kills):
        machine.start()
        time.sleep(chance.uniform(3.0, 6.0))
        machine.kill()
    machine.start()
    try:
        result = _finished(run, [machine])
    finally:
        machine.kill()
    begun = Counter(key for _, what, key in machine.requests() if what == "begin")
    again = sum(count - 1 for count in begun.values())
    with open_lessons() as lessons:
        shown = {row.session for one in lessons.all() for row in lessons.rows(one.id)}
    return (
        f"{kills} kills: {again} requests made again (at most {kills * at_hand} were in flight),"
        f" {result.requests} counted, {len(shown)} of {TASKS} sessions in the support"
    )


@contextlib.contextmanager
def _postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of our own."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "work"))
    from postgres import server

    with server() as running:
        yield running.url


def main() -> int:
    ideal = TASKS / AT_ONCE * SECONDS
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        one = measure(Path(folder) / "sqlite", 1)
        print(f"SQLite, one machine: {one:.1f} s, {one / ideal:.2f} times the ideal", flush=True)
        print(killed(Path(folder)), flush=True)
        with _postgres() as url:
            alone = measure(Path(folder) / "alone", 1, url)
            print(f"PostgreSQL, one machine: {alone:.1f} s, {alone / ideal:.2f} times", flush=True)
        with _postgres() as url:
            both = measure(Path(folder) / "both", 2, url)
            print(
                f"PostgreSQL, two machines: {both:.1f} s, {alone / both:.2f} times as fast as one"
            )
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["work"]:
        work(Path(sys.argv[2]))
    else:
        raise SystemExit(main())
