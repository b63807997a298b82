"""Kills a consolidation at its every step, and looks at what is left and what the next one does.

Run as a program by test_kill.py: `kill_join_driver.py FOLDER EVERY`, with a home in FOLDER. The
plan is made once, by a played agent, and waits; the child that carries it out is killed before or
after the n-th step. Prints one JSON object.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from aging import Library
from kill_driver import in_child
from test_consolidation import Agent, chosen, fill, joins

from tacit.base import database, paths
from tacit.changes.change_groups import undo_group
from tacit.changes.place import user_place
from tacit.learn.curate.curation_records import CurationRecords
from tacit.learn.curate.curator import BY_MODEL, accept_consolidation, consolidate

ABSORBED = {"deploy-aws", "deploy-gcp"}


def planned(library: Library) -> str:
    """A plan that waits: an umbrella over two skills. Its id."""
    agent = Agent(cast("Any", SimpleNamespace(setattr=setattr)))
    join = joins("deploy")
    join[-1].arguments["absorbs"] = sorted(ABSORBED)
    agent.script = [*join, "One umbrella over two skills."]
    (report,) = consolidate(library.scope(), chosen(library, mode="propose"))
    return report.id


def main() -> None:
    folder, every = Path(sys.argv[1]), int(sys.argv[2])
    home = Path(os.environ["HOME"])
    os.chdir("/")  # the home is replaced again and again
    Path(user_place().root).mkdir(parents=True)
    Path(paths.folders().data).mkdir(parents=True)
    library = Library()
    fill(library)
    plan = planned(library)
    before = library.everything()
    template = folder / "template"
    shutil.copytree(home, template, symlinks=True)
    died, calls = in_child(lambda: accept_consolidation(library.scope(), plan), -1)
    assert not died
    after = library.everything()
    assert library.archived() == ABSORBED
    points = 0
    for number in range(every // 2, calls + 1, every):
        shutil.rmtree(home)
        shutil.copytree(template, home, symlinks=True)
        died, _ = in_child(lambda: accept_consolidation(library.scope(), plan), number)
        if not died:
            assert number > calls - 10, number
            break
        points += 1
        look_at_it(library, plan, before, after, number)
    print(json.dumps({"calls": calls, "points": points}))


def look_at_it(
    library: Library, plan: str, before: dict[str, bytes], after: dict[str, bytes], number: int
) -> None:
    """After a kill nothing is torn; carried on, it is as without the kill, and can be undone."""
    assert library.live() | library.archived() >= {path.split("/")[0] for path in before}, number
    consolidate(library.scope(), library.settings)  # what was begun is finished by any next run
    if not library.archived():
        assert accept_consolidation(library.scope(), plan) is not None, number  # it still waited
    assert library.everything() == after, number
    history = library.gate.open_place().history
    kinds = [version.record.kind for version in history.log("deploy-web-service")]
    assert kinds == ["create"], (number, kinds)
    for name in ABSORBED:
        kinds = [version.record.kind for version in history.log(name)]
        assert kinds.count("archive") == 1, (number, name, kinds)
    connection = database.connect()
    states = [run.state for run in CurationRecords(connection).curations() if run.by == BY_MODEL]
    connection.close()
    assert states == ["done"], (number, states)
    assert all(verdict.applied for verdict in undo_group(library.gate, plan, actor="user")), number
    assert library.everything() == before, number


if __name__ == "__main__":
    main()
