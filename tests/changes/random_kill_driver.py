"""Kills a process that changes skills, at random moments, and looks at what is left each time.

Run as a program: `random_kill_driver.py FOLDER ROUNDS SEED`. A child makes change after change and
says which have landed; the parent kills it. What was said to have landed must be there, once; every
folder must be what its history says; doctor must find nothing. Prints one JSON object.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from kill_driver import md, silent

from tacit.changes import change_checks
from tacit.changes.change import Archive, Create, Edit, Operation, Restore, make_change
from tacit.changes.gate import Gate
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.place import Place

SKILLS = ("one", "two", "three")


def open_gate(folder: Path) -> Gate:
    place = Place(str(folder / "skills"))
    return Gate([place], neighbours=NoNeighbours(), scanner=silent, data=str(folder / "data"))


def next_operation(gate: Gate, skill: str) -> Operation:
    """Create, then edit, archive and restore, as it stands."""
    now = gate.state_of(skill)
    if now.is_live:
        text = now.contents.files["SKILL.md"].data.decode()
        number = text.rsplit("number ", 1)[1].split()[0]
        if int(number) % 5 == 4 and random.random() < 0.5:
            return Archive()
        return Edit(f"number {number} ", f"number {int(number) + 1} ")
    if now.head is not None:
        return Restore()
    return Create({"SKILL.md": md(skill, "number 0 of its versions\n"), "scripts/run.sh": b"ls\n"})


def work(folder: Path, report: int) -> None:
    gate = open_gate(folder)
    while True:
        skill = random.choice(SKILLS)
        change = make_change(skill, next_operation(gate, skill), actor="user")
        if gate.propose(change).applied:
            os.write(report, f"{change.id} {skill}\n".encode())


def killed_after(folder: Path, seconds: float) -> list[tuple[str, str]]:
    """Let a child work for so long, then kill it; the changes that it said have landed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        random.seed()
        try:
            work(folder, write)
        finally:
            os._exit(1)
    os.close(write)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status), "stuck: the child ended by itself"
    with os.fdopen(read) as pipe:
        rows = [line.split() for line in pipe.read().splitlines()]
    return [(row[0], row[1]) for row in rows]


def check(folder: Path, landed: list[tuple[str, str]]) -> None:
    gate = open_gate(folder)
    opened = gate.open_place()
    opened.recover()
    for change, skill in landed:
        assert opened.history.knows(change, skill), f"lost: {change}, which was said to have landed"
    if opened.exists():
        for skill in SKILLS:
            ids = [version.record.change for version in opened.history.log(skill)]
            assert len(ids) == len(set(ids)), f"doubled: a change to {skill}"
            kinds = {version.record.kind for version in opened.history.log(skill)}
            gate.state_of(skill)  # which would record what its history does not say
            assert "hand" not in kinds, f"lost: {skill} is not what its history says"
    found = change_checks.check_changes(gate)
    assert not found, f"unmended: {found[0].what}"


def main() -> None:
    folder, rounds = Path(sys.argv[1]), int(sys.argv[2])
    random.seed(int(sys.argv[3]))
    landed = 0
    for _ in range(rounds):
        told = killed_after(folder, random.uniform(0.0, 0.15))
        check(folder, told)
        landed += len(told)
    print(json.dumps({"points": rounds, "landed": landed}))


if __name__ == "__main__":
    main()
