"""Fifty processes that change skills at once. Run by test_writers.py with a folder."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tacit.changes.change import Create, Edit, make_change
from tacit.changes.gate import Gate
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.place import Place

WRITERS = 50


class Report:
    findings = ()


def silent(files: Any, *, learned: bool, executable: Any = ()) -> Report:
    return Report()


def md(name: str, body: str) -> bytes:
    return f"---\nname: {name}\ndescription: What {name} does.\n---\n\n{body}".encode()


def work(gate: Gate, number: int) -> None:
    """One skill of its own, and a line in the skill that all share."""
    own = f"own-{number}"
    files = {"SKILL.md": md(own, f"by {number}\n")}
    assert gate.propose(make_change(own, Create(files), actor="user")).applied
    line = Edit("the end", f"line {number}\nthe end")
    verdict = gate.propose(make_change("shared", line, actor="user", reason=f"writer {number}"))
    assert verdict.applied, verdict


def main() -> None:
    folder = Path(sys.argv[1])
    gate = Gate(
        [Place(str(folder / "skills"))],
        neighbours=NoNeighbours(),
        scanner=silent,
        data=str(folder / "data"),
    )
    shared = Create({"SKILL.md": md("shared", "the end\n")})
    assert gate.propose(make_change("shared", shared, actor="user")).applied
    children = []
    for number in range(WRITERS):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work(gate, number)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps(codes))


if __name__ == "__main__":
    main()
