"""How fast changes pass the gate, where the time goes, and whether it grows with the library.

    python bench/gate.py [--skills 100,10000,100000] [--changes 40]

Figures are ratios within one run: against a bare `git add` and `git commit` of the same file (which
force nothing to the disk), and against a bare write, fsync and rename of the same bytes. Absolute
times hang on the disk and are only shown beside.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tacit.base.git_program import git_environment
from tacit.changes import gate, gate_steps, journal, skill_state
from tacit.changes.change import Create, Edit, make_change
from tacit.changes.gate import Gate
from tacit.changes.neighbours import LibraryNeighbours, NoNeighbours
from tacit.changes.place import Place

BODY = "".join(
    f"Step {n}: look at part {n}, mend it, and write down what was found.\n" for n in range(40)
)


def skill_text(name: str, body: str = BODY) -> bytes:
    head = f"name: {name}\ndescription: What {name} does and when to use it."
    return f"---\n{head}\nmetadata:\n  source: auto-skill\n---\n\n{body}".encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skills", default="100,10000,100000")
    parser.add_argument("--changes", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as name:
        folder = Path(name)
        os.environ["HOME"] = os.environ["TACIT_HOME"] = str(folder / "home")
        floor = bare_replace(folder / "floor", options.changes)
        commit = bare_commit(folder / "commit", options.changes)
        print(f"bare write, fsync, rename   {floor * 1e3:8.2f} ms   1.0 x")
        print(f"bare git add + commit       {commit * 1e3:8.2f} ms   {commit / floor:.1f} x")
        sizes = [int(size) for size in options.skills.split(",")]
        medians = changes(folder, sizes, options.changes)
        for (kind, count), seconds in sorted(medians.items()):
            print(
                f"{kind:9} among {count:7,} skills {seconds * 1e3:8.2f} ms   {1 / seconds:6.1f}/s"
                f"   {seconds / commit:.2f} x a git commit   {seconds / floor:.1f} x the floor"
                f"   {seconds / medians[kind, sizes[0]]:.2f} x the first size"
            )
        print("\nwhere the time of an edit goes (median share):")
        for step, share in where(folder / "where" / "skills", options.changes):
            print(f"  {step:28} {share:6.1%}")


def fill(root: Path, count: int) -> None:
    """Skills as a person's library has them: plain folders, unknown to the history."""
    root.mkdir(parents=True)
    for number in range(count):
        folder = root / f"skill-{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_bytes(skill_text(folder.name))


def new_gate(root: Path) -> Gate:
    return Gate([Place(str(root))], neighbours=NoNeighbours(), data=str(root.parent / "data"))


def with_library(root: Path) -> Gate:
    """A gate that knows every skill, as `tacit` uses it, to look up names and near-duplicates."""
    project = root.parent.parent
    (project / ".tacit").mkdir(exist_ok=True)  # marks it as a project
    neighbours = LibraryNeighbours(str(project))
    return Gate([Place(str(root))], neighbours=neighbours, data=str(root.parent / "data"))


def changes(folder: Path, sizes: list[int], count: int) -> dict[tuple[str, int], float]:
    """Median seconds of a create, of a first edit (which records a baseline) and of a later one.

    "full" is a create that is also compared with the whole library; the first one of a process
    reads the library. The sizes take turns, so that what else the disk does hits all alike.
    """
    gates = {}
    for size in sizes:
        root = folder / str(size) / ".agents" / "skills"
        fill(root, size)
        gates[size] = (new_gate(root), with_library(root))
        with_library(root).neighbours.find("nothing")  # the index is on the disk
    os.sync()  # else the changes would wait for these files to be written
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for number in range(count):
        for size, (plain, full) in gates.items():
            name = f"new-{number}"
            create = make_change(name, Create({"SKILL.md": skill_text(name)}), actor="reviewer")
            found["create", size].append(timed(lambda c=create, g=plain: propose(g, c)))
            text = skill_text(f"odd-{number}", f"Nothing like it: {number * 7919}.\n" * 3)
            odd = make_change(f"odd-{number}", Create({"SKILL.md": text}), actor="reviewer")
            kind = "full" if number else "full, 1st"
            found[kind, size].append(timed(lambda c=odd, g=full: propose(g, c)))
            for kind, old, new in (
                ("first", "Step 3:", "Step 3!"),
                ("later", "Step 5:", "Step 5!"),
            ):
                change = make_change(f"skill-{number}", Edit(old, new), actor="reviewer")
                found[kind, size].append(timed(lambda c=change, g=plain: propose(g, c)))
    return {key: statistics.median(times) for key, times in found.items()}


def propose(gate: Gate, change: Any) -> None:
    verdict = gate.propose(change)
    assert verdict.applied, verdict


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def bare_replace(folder: Path, count: int) -> float:
    """The least that any durable change costs."""
    folder.mkdir()
    data, target = skill_text("floor"), folder / "SKILL.md"

    def replace() -> None:
        temporary = folder / ".SKILL.md.tmp"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, data)
        os.fsync(descriptor)
        os.close(descriptor)
        os.replace(temporary, target)
        above = os.open(folder, os.O_RDONLY)
        os.fsync(above)
        os.close(above)

    return statistics.median(timed(replace) for _ in range(count))


def bare_commit(folder: Path, count: int) -> float:
    """What `git add` and `git commit` take for the same file."""
    folder.mkdir()
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]

    def git(*arguments: str) -> None:
        subprocess.run(
            ["git", *identity, *arguments], cwd=folder, check=True, env=git_environment(),
            capture_output=True,
        )  # fmt: skip

    git("init", "-q")
    times = []
    for number in range(count):
        (folder / "SKILL.md").write_bytes(skill_text("floor", BODY + f"{number}\n"))
        times.append(timed(lambda: (git("add", "SKILL.md"), git("commit", "-qm", "edit"))))
    return statistics.median(times)


@contextmanager
def measured(times: dict[str, float]) -> Iterator[None]:
    """Time the steps of the gate, by standing in for the functions that make them."""
    steps = (
        (gate, "work_out", "read and work out"),
        (gate_steps, "judge_standard", "standard"),
        (gate_steps.Judge, "_scan", "scan"),
        (gate_steps, "judge_size", "size"),
        (gate_steps, "judge_duplicate", "near-duplicate"),
        (gate, "prepare_entry", "commits and stage"),
        (gate, "carry_out", "journal, swap and refs"),
        (gate, "clean", "clean the stage"),
        (skill_state.History, "commit", "  of which the commit"),
        (journal.Journal, "write", "  of which the journal"),
    )
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in steps]

    def stand_in(function: Any, label: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                times[label] += time.perf_counter() - start

        return call

    for (owner, name, function), (_, _, label) in zip(kept, steps, strict=True):
        setattr(owner, name, stand_in(function, label))
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def where(root: Path, count: int) -> list[tuple[str, float]]:
    fill(root, count)
    gate_ = new_gate(root)
    shares: dict[str, list[float]] = defaultdict(list)
    for number in range(count):
        times: dict[str, float] = defaultdict(float)
        change = make_change(f"skill-{number}", Edit("Step 3:", "Step 3!"), actor="reviewer")
        with measured(times):
            total = timed(lambda change=change: propose(gate_, change))
        for label, seconds in times.items():
            shares[label].append(seconds / total)
    return [(label, statistics.median(values)) for label, values in shares.items()]


if __name__ == "__main__":
    main()
