"""`tacit curate`, `tacit history`, and taking a whole run back, as a person runs them."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from inside import answer, error, tacit

sys.path.insert(0, str(Path(__file__).parents[1] / "learn" / "curate"))
sys.path.insert(0, str(Path(__file__).parents[1] / "learn"))

from aging import Library
from used_sessions import call, session, used

from tacit.base import database, paths
from tacit.changes.change import Edit
from tacit.changes.place import user_place
from tacit.traces.hosts.tacit import SessionWriter
from tacit.traces.store import Store


@pytest.fixture
def library(home: Path) -> Library:
    """Three skills, one of which has been without use for 90 days by now; one is the user's."""
    Path(paths.folders().data).mkdir(parents=True)
    Path(user_place().root).mkdir(parents=True)
    library = Library(datetime.now(UTC) - timedelta(days=90.2))
    library.make("old", "busy")
    library.make("mine", learned=False)
    library.curate()
    for _ in range(12):
        library.days(7)
        library.use("busy")
        library.curate()
    return library


def test_a_dry_run_then_the_run_then_all_of_it_back(library: Library) -> None:
    """The dry run says what the run then does; one command takes the run back."""
    dry = tacit("curate", "--dry-run")
    assert "On a copy: 1 archived" in dry.stdout
    assert "old: 90 days without use or edit; the limit is 90" in dry.stdout
    assert library.live() == {"old", "busy", "mine"}
    done = tacit("curate")
    assert "1 archived" in done.stdout
    assert "learned skills: 1 active, 0 stale, 1 archived; left alone: 1 yours" in done.stdout
    assert library.live() == {"busy", "mine"}
    undo = done.stdout.split("undo all of it: tacit ")[1].split("\n")[0].split()
    report = Path(paths.folders().data) / "reports"
    assert f"`tacit {' '.join(undo)}`" in max(report.iterdir()).read_text()
    back = tacit(*undo)
    assert (back.returncode, back.stdout.split("\n")[0]) == (0, "Undone: 1 change, in old")
    assert library.live() == {"old", "busy", "mine"}
    assert answer("undo", undo[1])["verdicts"][0]["outcome"] == "applied"
    assert library.archived() == {"old"}


def test_search_and_restore_find_what_was_archived(library: Library) -> None:
    """It is marked in the results, not in the list, and `tacit restore` brings it back."""
    tacit("curate")
    assert "old" not in tacit("list").stdout
    found = tacit("search", "what old is for").stdout
    assert "old (user) [archived]" in found
    states = {r["skill"]["name"]: r["skill"]["state"] for r in answer("search", "old")["results"]}
    assert states["old"] == "archived"
    assert tacit("restore", "old").returncode == 0
    assert "old" in library.live()


def test_the_status_shows_ages_and_uses(library: Library) -> None:
    """Bars and sparklines in a terminal that can, letters where it cannot; all figures in JSON."""
    shown = tacit("curate", "status", COLUMNS="120").stdout
    assert "stale         1  █" in shown
    assert "left alone: 1 yours" in shown
    row = next(line for line in shown.splitlines() if line.startswith("busy"))
    assert "active" in row
    assert any(sign in row for sign in "▁▂▃▄▅▆▇█")
    assert "mine" not in shown
    assert "mine" in tacit("curate", "status", "--all").stdout
    letters = tacit("curate", "status", TERM="dumb").stdout
    assert letters.replace("…", "").isascii()
    rows = {row["skill"]: row for row in answer("curate", "status")["rows"]}
    assert (rows["busy"]["uses"], sum(rows["busy"]["weeks"])) == (12, 12)
    assert rows["old"]["state"] == "stale"
    assert round(rows["old"]["idle"]) == 90
    assert tacit("curate", "status", "--report").stdout.startswith("# Curation")


def test_what_is_back_is_counted_as_back(library: Library) -> None:
    """An archived skill can be read; once restored it is active, and cannot be undone again."""
    run = answer("curate")["id"]
    assert "archived: tacit restore old" in tacit("show", "old").stdout
    assert answer("curate", "status")["states"] == {"active": 1, "stale": 0, "archived": 1}
    assert tacit("restore", "old").returncode == 0
    assert answer("curate", "status")["states"] == {"active": 2, "stale": 0, "archived": 0}
    undone = tacit("undo", run)
    assert (undone.returncode, undone.stdout) == (5, "Nothing was undone.\n")


def test_a_damaged_record_of_uses(library: Library) -> None:
    """What reads it says what to do, and a run mends it and puts nothing away."""
    connection = database.connect()
    connection.execute("PRAGMA ignore_check_constraints = 1")
    connection.execute("UPDATE uses SET by = 'nobody', at = 'never'")
    connection.close()
    for command in (("history", "busy"), ("curate", "status")):
        found = error(6, *command)
        assert found["message"].startswith("the record of uses is damaged: a row makes no sense")
        assert found["hint"].endswith("tacit curate")
    assert "it was made again from the sessions" in tacit("curate").stdout
    assert library.live() == {"old", "busy", "mine"}
    assert tacit("history", "busy").returncode == 0


def test_the_doctor_mends_the_record_of_uses_alone(library: Library) -> None:
    """Rows that make no sense are no reason to put the whole database aside."""
    connection = database.connect()
    connection.execute("PRAGMA ignore_check_constraints = 1")
    connection.execute("UPDATE uses SET by = 'nobody' WHERE turn = 0")
    connection.close()
    fixed = answer("doctor", "--fix")
    assert [(f["code"], f["mended"]) for f in fixed["findings"]] == [
        ("uses", True),
        ("database", True),
    ]
    assert not list(Path(paths.folders().data).glob("tacit.db.damaged*"))
    assert answer("doctor")["findings"] == []
    assert answer("history", "busy")["figures"]["uses"] == 11


def test_a_library_of_nothing(home: Path) -> None:
    """Without any skill every command says so, and makes nothing."""
    assert "Nothing was learned yet." in tacit("curate", "status").stdout
    assert "Nothing to do" in tacit("curate").stdout
    assert "Nothing to do" in tacit("curate", "--dry-run").stdout.replace("nothing", "Nothing")
    assert not (home / ".agents").exists()


def test_joining_by_hand(home: Path) -> None:
    """Without look-alikes no model is asked; an id that does not wait is an error that says so."""
    assert "No learned skills are much alike." in tacit("curate", "--consolidate").stdout
    assert answer("curate", "--consolidate", "--dry-run") == {"reports": []}
    found = error(3, "curate", "--apply", "12345678")
    assert found["message"] == "no consolidation '12345678' waits for you"


def test_the_life_of_a_skill(library: Library) -> None:
    """Made, used, failed, edited, archived, in order, with the sessions to look at."""
    store = Store.open()
    at = library.clock.now() + timedelta(days=1)
    broken = call("Bash", failed=True, error="make: no rule to make target", at=at)
    store.write(session((used("old", at), broken), name="abc", at=at))
    store.close()
    mine = SessionWriter("own", project="/p")
    mine.prompt("/old it")
    mine.called("skill_1", "run_skill", {"name": "old"})
    mine.returned("skill_1", '<skill name="old" folder="/x">\nDo it.\n</skill feedc0de00000000>')
    mine.activated("old")
    mine.close()
    library.days(3)
    assert library.propose("old", Edit("Do it", "Do it now"), actor="improver").applied
    library.days(1)
    assert library.gate.rollback("old", actor="user").applied
    tacit("show", "old")
    shown = tacit("history", "old", COLUMNS="200").stdout
    assert "used 2 times" in shown
    assert "(1 by you, 1 by models), looked at 1" in shown
    assert "version feedc0de  1 use, 0 of 0 calls failed" in shown
    assert "tacit session claude-code:abc" in shown
    assert "tacit session tacit:own" in shown
    life = answer("history", "old")
    assert {e["what"] for e in life["events"]} == {
        "made", "used", "failed", "repaired", "rolled back",
    }  # fmt: skip
    failed = next(e for e in life["events"] if e["what"] == "failed")
    assert failed["detail"] == "make: no rule to make target"
    assert failed["sessions"] == ["claude-code:abc"]
    assert [e["at"] for e in life["events"]] == sorted(e["at"] for e in life["events"])
    assert life["figures"]["seen_by_people"] == 1


def test_history_of_an_archived_skill_and_of_none(library: Library) -> None:
    """What is gone still has a life; a name that never was is an error that says so."""
    tacit("curate")
    assert [e["what"] for e in answer("history", "old")["events"]] == ["made", "archived"]
    assert error(3, "history", "never-was")["message"].startswith("there is no skill")
