"""Lets every system call of a change fail, one at a time, and looks at what is left each time.

Run as a program by test_journal.py: `errno_driver.py SCENARIO FOLDER EVERY MODE`. In the mode
`once` the n-th call fails and the next ones work, as with a passing fault; in the mode `on` every
call from the n-th on fails, as with a disk that dies, until somebody comes back to one that works.
Each time what was reported must be what is there, the next change must work, and doctor must be
content. Prints one JSON object. The product knows nothing of this.
"""

import builtins
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kill_driver import Scenario

from tacit.base.errors import TacitError
from tacit.changes import change_checks, journal
from tacit.changes.change import Change, Create, make_change
from tacit.changes.journal import Interrupted

CALLS = (
    "open", "close", "fsync", "rename", "replace", "unlink", "rmdir", "mkdir", "link", "symlink",
    "fchmod", "write", "stat", "fstat", "listdir", "readlink", "dup", "fdopen",
)  # fmt: skip
NUMBERS = (
    errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EMFILE, errno.EROFS, errno.EPERM,
)  # fmt: skip


class Faults:
    """The wrapped calls of this process: counted, and failing where it is wanted."""

    def __init__(self, at: int, number: int, lasting: bool) -> None:
        self.count = 0
        self.name = ""
        self._at, self._number, self._lasting = at, number, lasting

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self._fails(name):
                self.name = self.name or name
                if name == "close":  # which lets go of the file whatever it says
                    function(*args, **kwargs)
                raise OSError(self._number, os.strerror(self._number), f"injected in {name}")
            return function(*args, **kwargs)

        return wrapped

    def _fails(self, name: str) -> bool:
        if self._lasting:
            # A dead disk still lets go of what is held, and reads what it has in memory.
            return 0 < self._at <= self.count and name not in ("close", "dup", "stat", "fstat")
        return self.count == self._at


@contextmanager
def injected(faults: Faults) -> Iterator[Faults]:
    """The calls of the system fail for the block as `faults` says."""
    kept: list[tuple[Any, str, Any]] = [(os, name, getattr(os, name)) for name in CALLS]
    kept += [
        (builtins, "open", builtins.open),
        (journal, "_rename_flagged", journal._rename_flagged),
        (subprocess, "run", subprocess.run),
    ]
    try:
        for owner, name, function in kept:
            setattr(owner, name, faults.wrap(name, function))
        yield faults
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def try_it(scene: Scenario, change: Change, faults: Faults) -> str:
    """Make the change under faults; what was reported: landed, failed or unsure."""
    with injected(faults):
        try:
            scene.act(change)
        except Interrupted:
            return "unsure"
        except (TacitError, OSError):
            return "failed"
    return "landed"


def check(scene: Scenario, change: Change, told: str, states: tuple[Any, Any], where: str) -> str:
    """What was reported is there, now and after the next change, which works."""
    old, new = states
    expected = {"landed": (new,), "failed": (old,), "unsure": (old, new)}[told]
    before = scene.state()
    if told != "unsure":
        assert before in expected, f"{where}: reported {told}, there is {sorted(before)}"
    gate = scene.gate()
    other = make_change("other", Create(scene.files("other", "Another.")), actor="user")
    assert gate.propose(other).applied, f"{where}: the next change did not work"
    after = {path: text for path, text in scene.state().items() if not path.startswith("other/")}
    assert after in expected, f"{where}: reported {told}, then there was {sorted(after)}"
    scene.check_lines(after == new, where)
    found = change_checks.check_changes(gate)
    assert not found, f"{where}: doctor finds {[f.what for f in found]}"
    if scene.name != "undo":
        scene.act(change)  # the same again: it lands once, whatever was before
        again = {
            path: text for path, text in scene.state().items() if not path.startswith("other/")
        }
        assert again == new, f"{where}: the retry made {sorted(again)}"
        log = gate.open_place().history.log(scene.skill)
        ids = [v.record.change for v in log if v.record.kind != "renamed"]
        assert ids.count(change.id) == 1, f"{where}: landed {ids.count(change.id)} times"
    return told


def main() -> None:
    name, folder, every, mode = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    scene = Scenario(name, folder / "scene")
    scene.folder.mkdir(parents=True)
    change = scene.prepare()
    template = folder / "template"
    shutil.copytree(scene.folder, template, symlinks=True)
    old = scene.state()
    counted = Faults(-1, 0, False)
    assert try_it(scene, change, counted) == "landed"
    states = old, scene.state()
    seen = {"landed": 0, "failed": 0, "unsure": 0}
    for trial, at in enumerate(range(1, counted.count + 1, every)):
        # Every error at every call takes long; with a step each call gets another error.
        chosen = NUMBERS if every == 1 else (NUMBERS[trial % len(NUMBERS)],)
        for number in chosen:
            shutil.rmtree(scene.folder)
            shutil.copytree(template, scene.folder, symlinks=True)
            faults = Faults(at, number, mode == "on")
            told = try_it(scene, change, faults)
            where = f"call {at}, {faults.name}, {errno.errorcode[number]}"
            seen[check(scene, change, told, states, where)] += 1
    print(json.dumps({"calls": counted.count, "points": sum(seen.values()), **seen}))


if __name__ == "__main__":
    main()
