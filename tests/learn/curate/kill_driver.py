"""Kills a curation at its every step, and looks at what is left and what the next one makes of it.

Run as a program by test_kill.py: `kill_driver.py FOLDER EVERY`, with a home in FOLDER. It forks
once a kill point: the child dies before the n-th step, the parent then curates again and checks.
Prints one JSON object.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from aging import Library

from tacit.base import database, paths
from tacit.changes import journal
from tacit.changes.git_store import Refs
from tacit.changes.place import user_place
from tacit.learn.curate.curation_records import CurationRecords
from tacit.learn.use_records import Store  # noqa: F401 - loaded before the fork

STEPS = (
    (CurationRecords, "begin"),
    (CurationRecords, "replace_skills"),
    (CurationRecords, "close"),
    (Refs, "move"),
)


def die_at(number: int) -> Callable[[], int]:
    """Wrap what writes; the n-th kills before it, or after it for the steps of the records."""
    count = 0

    def wrap(function: Any) -> Any:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            result = function(*args, **kwargs)
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return wrapped

    for owner, name in STEPS:
        setattr(owner, name, wrap(getattr(owner, name)))
    journal._rename_flagged = wrap(journal._rename_flagged)
    for name in ("replace", "rename", "unlink", "mkdir"):
        setattr(os, name, wrap(getattr(os, name)))
    return lambda: count


def in_child(work: Callable[[], object], number: int) -> tuple[bool, int]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            calls = die_at(number)
            work()
            os.write(write, str(calls()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True, 0
    assert os.WEXITSTATUS(status) == 0, "the curation failed in the child"
    return False, int(text)


def main() -> None:
    folder, every = Path(sys.argv[1]), int(sys.argv[2])
    home = Path(os.environ["HOME"])
    os.chdir("/")  # the home is replaced again and again
    Path(user_place().root).mkdir(parents=True)
    Path(paths.folders().data).mkdir(parents=True)
    library = Library()
    library.put("one", "two", "three")
    library.curate()
    library.use("three")
    for _ in range(12):
        library.days(7)
        library.use("three")
        library.curate()
    library.days(7)
    library.use("three")
    template = folder / "template"
    shutil.copytree(home, template, symlinks=True)
    died, calls = in_child(library.curate, -1)
    assert not died
    assert library.archived() == {"one", "two"}
    points = 0
    for number in range(1, calls + 1, every):
        shutil.rmtree(home)
        shutil.copytree(template, home, symlinks=True)
        died, _ = in_child(library.curate, number)
        if not died:
            assert number > calls - 10, number
            break
        points += 1
        look_at_it(library, number)
    print(json.dumps({"calls": calls, "points": points}))


def look_at_it(library: Library, number: int) -> None:
    """After a kill nothing is torn, and one more run ends it: each skill archived exactly once."""
    assert library.live() | library.archived() == {"one", "two", "three"}, number
    now = library.clock.now()
    library.days(0.01)
    library.curate()
    library.clock.set(now)
    library.clock._monotonic = 0.0
    assert library.archived() == {"one", "two"}, number
    assert library.states() == {"one": "archived", "two": "archived", "three": "active"}, number
    history = library.gate.open_place().history
    for name in ("one", "two"):
        kinds = [version.record.kind for version in history.log(name)]
        assert kinds.count("archive") == 1, (number, name, kinds)
        assert history.head(name).record.group, number
    connection = database.connect()
    assert CurationRecords(connection).curations("begun") == [], number
    assert CurationRecords(connection).curations()[0].at <= now + timedelta(days=1)
    connection.close()


if __name__ == "__main__":
    main()
