"""Kills a process at every system call of a change, and looks at what is left each time.

Run as a program by test_journal.py: `kill_driver.py SCENARIO FOLDER EVERY [swept]`. It forks once
a kill point; the child wraps the calls that change a disk and kills itself before the n-th, the
parent then recovers and checks; with `swept` the stage is removed first, as by `git clean -fdx`.
Prints one JSON object. The product knows nothing of this.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tacit.changes import change_checks, journal
from tacit.changes.change import (
    Archive,
    Change,
    Create,
    Delete,
    Edit,
    MergeInto,
    Pin,
    Rename,
    Restore,
    Rewrite,
    WriteFile,
    acting_as,
    make_change,
)
from tacit.changes.gate import Gate
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.place import Place
from tacit.changes.scan import scan_report
from tacit.changes.scan.scan_report import Finding
from tacit.changes.stage import STAGE

CALLS = (
    "open", "fsync", "rename", "replace", "unlink", "rmdir", "mkdir", "link", "symlink", "fchmod",
    "close", "write",
)  # fmt: skip


class Report:
    findings = ()


def silent(files: Any, *, learned: bool, executable: Any = ()) -> Report:
    return Report()


def asking(files: Any, *, learned: bool, executable: Any = ()) -> Any:
    """Marks each line that says "doubtful"."""
    lines = files.get("SKILL.md", b"").decode().split("\n")
    found = Finding(
        file="SKILL.md", line=0, rule="printed-alone", severity="ask", message="why", fix=""
    )
    marked = [number for number, line in enumerate(lines, 1) if "doubtful" in line]
    return scan_report.Report(tuple(msgspec.structs.replace(found, line=n) for n in marked))


def md(name: str, body: str) -> bytes:
    return (
        f"---\nname: {name}\ndescription: What {name} does.\n"
        f"metadata:\n  source: auto-skill\n---\n\n{body}"
    ).encode()


def fact(name: str, says: str) -> dict[str, bytes]:
    head = f"name: {name}\ndescription: {says}\nmetadata:\n  kind: project\n"
    return {"FACT.md": f"---\n{head}  source: auto-skill\n---\n".encode()}


class Scenario:
    """A place in a known state, and a change to make there."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.root = folder / "skills"
        self.of_facts = name.startswith("fact-")
        self.skill = {"rename": "three"}.get(name, "one")

    def gate(self) -> Gate:
        place = Place(str(self.root), kind="facts" if self.of_facts else "skills")
        if self.name == "learn":  # in a repository, where what is learned is hidden from git
            place = Place(str(self.root), "project", str(self.folder))
        scanner = asking if self.name == "lines" else silent
        return Gate(
            [place], neighbours=NoNeighbours(), scanner=scanner, data=str(self.folder / "data")
        )

    def check_lines(self, landed: bool, where: str) -> None:
        """What was left out waits, once, if the rest is there, and else does not."""
        waits = [p.id for p in self.gate().waiting()]
        wanted = 1 if landed and self.name == "lines" else 0
        assert len(waits) == wanted, f"{where}: landed {landed}, and there wait {waits}"

    def prepare(self) -> Change:
        """Set the scene and return the change, with an id that stays the same."""
        if self.name == "learn":
            subprocess.run(["git", "init", "-q", str(self.folder)], check=True)
        gate = self.gate()
        for name in ("one", "two"):
            files = self.files(name, f"The old word on {name}.") | {"scripts/run.sh": b"ls\n"}
            if self.of_facts:
                del files["scripts/run.sh"]
            if self.name not in ("create-first", "fact-create", "learn", "lines"):
                assert gate.propose(make_change(name, Create(files), actor="user")).applied
        if self.name in ("edit", "edit-turns", "merge", "delete"):
            with (self.root / "one" / "SKILL.md").open("a") as file:
                file.write("\nby hand\n")  # so that a baseline has to be recorded as well
        if self.name == "restore":
            assert gate.propose(make_change("one", Archive(), actor="user")).applied
        by = "reviewer" if self.name in ("learn", "lines") else "user"
        return make_change(*OPERATIONS[self.name], actor=by)  # type: ignore[arg-type]

    def files(self, name: str, says: str) -> dict[str, bytes]:
        """The files of a skill or a fact, as it fits the place."""
        if self.of_facts:
            return fact(name, says)
        return {"SKILL.md": md(name, f"first\n\nsecond\n\nthird\n\n{says}\n")}

    def act(self, change: Change) -> None:
        gate = self.gate()
        if self.name == "undo":
            with acting_as("user"):
                last = next(gate.open_place().history.log("one")).record.change
                verdict = gate.undo(last)
        else:
            verdict = gate.propose(change)
        assert verdict.applied, verdict

    def state(self) -> dict[str, str]:
        """Every file that a reader sees."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            parts = path.relative_to(self.root).parts
            if path.is_file() and parts[0] != ".tacit-stage" and path.name != ".gitignore":
                found["/".join(parts)] = path.read_text()
        return found


OPERATIONS: dict[str, tuple[Any, ...]] = {
    "create-first": ("one", Create({"SKILL.md": md("one", "new\n"), "references/a.md": b"a\n"})),
    "learn": ("one", Create({"SKILL.md": md("one", "new\n")})),
    "lines": ("one", Create({"SKILL.md": md("one", "- new\n- a\n- doubtful\n- b\n")})),
    "edit": ("one", Edit("second", "2nd"), WriteFile("references/b.md", b"b\n")),
    "edit-turns": ("one", Edit("second", "2nd"), WriteFile("references/b.md", b"b\n")),
    "rename": ("one", Rename("three")),
    "archive": ("one", Archive()),
    "restore": ("one", Restore()),
    "merge": ("one", MergeInto("two", (Edit("third", "third, and one"),))),
    "delete": ("one", Delete()),
    "pin": ("one", Pin()),
    "undo": ("one",),
    "fact-create": ("one", Create(fact("one", "Something is so."))),
    "fact-replace": ("one", Rewrite(fact("one", "Something else is so."))),
    "fact-forget": ("one", Delete()),
}


def die_at(number: int) -> Callable[[], int]:
    """Wrap the calls; the n-th kills. Returns what tells how many there were."""
    count = 0

    def wrap(function: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return wrapped

    for name in CALLS:
        setattr(os, name, wrap(getattr(os, name)))
    journal._rename_flagged = wrap(journal._rename_flagged)
    subprocess.run = wrap(subprocess.run)
    return lambda: count


def in_child(scenario: Scenario, change: Change, number: int) -> tuple[bool, int]:
    """Make the change in a child that dies at call `number`. Whether it died, and its calls."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        code = 1
        try:
            if scenario.name == "edit-turns":
                journal.swap_names = lambda *_: False  # type: ignore[assignment]
            calls = die_at(number)
            scenario.act(change)
            total = calls()
            os.write(write, str(total).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True, 0
    assert os.WEXITSTATUS(status) == 0, "the change failed in the child"
    return False, int(text)


def main() -> None:
    name, folder, every = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    scene = Scenario(name, folder / "scene")
    scene.folder.mkdir(parents=True)
    change = scene.prepare()
    template = folder / "template"
    shutil.copytree(scene.folder, template, symlinks=True)
    old = scene.state()
    died, calls = in_child(scene, change, -1)
    assert not died
    new = scene.state()
    assert (old != new) == (name != "pin")
    seen = {"old": 0, "new": 0}
    for number in range(1, calls + 1, every):
        shutil.rmtree(scene.folder)
        shutil.copytree(template, scene.folder, symlinks=True)
        died, _ = in_child(scene, change, number)
        if not died:  # one call less than the first time, e.g. a folder that was there already
            assert number > calls - 10, number
            break
        if "swept" in sys.argv:
            shutil.rmtree(scene.root / STAGE, ignore_errors=True)
        seen[look_at_it(scene, change, old, new, number)] += 1
    print(json.dumps({"calls": calls, "points": sum(seen.values()), **seen}))


def look_at_it(
    scene: Scenario, change: Change, old: dict[str, str], new: dict[str, str], number: int
) -> str:
    gate = scene.gate()
    opened = gate.open_place()
    during = scene.state()
    if scene.name != "edit-turns" and scene.name not in ("rename", "merge"):
        # One folder moves in one step: even before recovery a reader sees old or new.
        assert during in (old, new), f"call {number}: torn before recovery: {during}"
    opened.recover()
    after = scene.state()
    assert after in (old, new), f"call {number}: torn: {after}"
    found = change_checks.check_changes(gate)
    assert not found, f"call {number}: doctor finds {[f.what for f in found]}"
    skill = scene.skill
    landed = opened.history.knows(change.id, skill) if scene.name != "undo" else ""
    if scene.name == "undo":
        landed = next(opened.history.log("one")).record.undoes
    if scene.name != "pin":
        assert bool(landed) == (after == new), f"call {number}: history and folder disagree"
    outcome = "new" if landed else "old"
    scene.check_lines(bool(landed), f"call {number}")
    if scene.name != "undo":  # the same change again: it lands once, whatever happened before
        scene.act(change)
        assert scene.state() == new, f"call {number}: the retry made {scene.state()}"
        scene.check_lines(True, f"call {number}, again")
        ids = [v.record.change for v in opened.history.log(skill) if v.record.kind != "renamed"]
        assert ids.count(change.id) == 1, f"call {number}: landed {ids.count(change.id)} times"
    return outcome


if __name__ == "__main__":
    main()
