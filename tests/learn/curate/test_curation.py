"""A library that is looked after: what is put away, what is left, and how all of it is undone."""

import json
import multiprocessing
import os
import random
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from used_sessions import session, used

from tacit.base import atomic_files, database, trust
from tacit.base.errors import Busy, Damaged, Unwritable
from tacit.base.setting_sections import LearnSettings
from tacit.changes import git_exclude
from tacit.changes.change import Archive, Create, Pin, Restore, make_change
from tacit.changes.change_groups import undo_group
from tacit.changes.gate import Gate
from tacit.changes.git_store import Objects
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.place import project_place
from tacit.learn.curate.curation import curate, rehearse_curation, report_markdown
from tacit.learn.curate.curation_records import CurationRecords
from tacit.learn.curate.curation_scope import copied_scope
from tacit.traces.store import Store


def use_there(library, skill: str, *, weeks: int) -> None:
    """A session of another agent that loads `skill`, once a week."""
    for _ in range(weeks):
        at = library.clock.now()
        store = Store.open()
        store.write(session((used(skill, at),), name=f"{at:%Y-%m-%d}", at=at))
        store.close()
        library.weeks(1)


def test_two_hundred_skills_over_120_days(library) -> None:
    """With recorded use over 120 simulated days, each ends in the state that the rules say."""
    chance = random.Random(7)
    names = [f"skill-{number:03}" for number in range(200)]
    library.put(*names)
    own = names[:20]
    for name in own[:10]:
        file = library.root / name / "SKILL.md"
        file.write_text(file.read_text().replace("  source: auto-skill\n", "  note: mine\n"))
    for name in own[10:13]:
        assert library.propose(name, Pin()).applied
    scheduled = frozenset(own[13:16])
    # Most are used often enough; the rest stop at some day, and a few are taken up again.
    plan: dict[int, list[str]] = {}
    for name in names[16:]:
        ends = chance.choice([0, 20, 60, 75, 95, 120, 120, 120, 120])
        days = [d for d in range(1, ends + 1) if chance.random() < 0.08] + ([ends] if ends else [])
        for day in days:
            plan.setdefault(day, []).append(name)
    last = dict.fromkeys(names, 0)
    library.curate()
    for day in range(1, 121):
        library.days(1)
        there = library.live()
        due = [name for name in plan.get(day, ()) if name in there]
        library.use(*due)
        last.update(dict.fromkeys(due, day))
        if day % 7 == 0 or day == 120:
            curate(library.scope(scheduled=scheduled), library.settings)
    states = library.states()
    for name in names:
        idle = 120 - last[name]
        rule = "archived" if idle >= 90 else "stale" if idle >= 30 else "active"
        wanted = "active" if name in own[:16] else rule
        assert states[name] == wanted, (name, idle)
    gone = {name for name in names if states[name] == "archived"}
    assert library.archived() == gone
    assert library.live() == set(names) - gone
    assert len(gone) >= 10
    assert set(states.values()) == {"active", "stale", "archived"}


def test_stale_then_archived_then_back_by_use_or_edit(library) -> None:
    """30 days make it stale, 90 archive it; an edit or a use makes it active again."""
    library.make("left", "edited", "used")
    library.curate()
    library.weeks(5)
    assert set(library.states().values()) == {"stale"}
    library.edit("edited")
    library.use("used")
    (report,) = library.weeks(1)
    assert library.states() == {"left": "stale", "edited": "active", "used": "active"}
    assert {(m.skill, m.after) for m in report.moved} == {("edited", "active"), ("used", "active")}
    reports = library.weeks(7)
    assert library.archived() == {"left"}
    (moved,) = [m for r in reports for m in r.moved if m.skill == "left"]
    assert moved.why == "91 days without use or edit; the limit is 90"


def test_a_use_in_a_host_counts(library) -> None:
    """A session of a connected agent that loaded the skill keeps it, through the store."""
    library.make("here", "there")
    library.curate()
    use_there(library, "there", weeks=13)
    assert library.archived() == {"here"}
    assert library.states()["there"] == "active"


def test_pinned_scheduled_and_the_users_own_are_left_alone(library) -> None:
    """None of them ages; the report says how many were left, and why."""
    library.make("pinned", "on-a-clock", "mine-to-go")
    library.make("mine", learned=False)
    assert library.propose("pinned", Pin()).applied
    scope = library.scope(scheduled=frozenset({"on-a-clock"}))
    for _ in range(20):
        library.days(7)
        report = curate(msgspec.structs.replace(scope, clock=library.clock), library.settings)
    assert library.archived() == {"mine-to-go"}
    assert report.kept == {"pinned": 1, "scheduled": 1, "yours": 1}


def test_a_whole_run_is_undone_by_one_id(library) -> None:
    """Every skill that a run archived comes back, byte for byte, and is not put away at once."""
    library.make("one", "two")
    library.curate()
    before = library.everything()
    report = library.weeks(13)[-1]
    assert library.archived() == {"one", "two"}
    assert report.undo == f"tacit undo {report.id[-8:]}"
    assert all(v.applied for v in undo_group(library.gate, report.id, actor="user"))
    assert library.everything() == before
    library.weeks(1)
    assert library.states() == {"one": "active", "two": "active"}


def dumped() -> str:
    """All that is in tacit.db."""
    with closing(database.connect()) as connection:
        return "\n".join(connection.iterdump())


def test_a_dry_run_changes_nothing_and_says_the_same(library) -> None:
    """The same code on a copy: same findings, and not a byte is different afterwards."""
    library.make("one", "two")
    library.curate()
    library.weeks(12)
    library.days(7)
    before = library.everything()
    rows = dumped()
    dry = rehearse_curation(library.scope(), library.settings)
    assert library.everything() == before
    assert dumped() == rows
    real = library.curate()
    assert [(m.skill, m.after, m.days, m.root) for m in dry.moved] == [
        (m.skill, m.after, m.days, m.root) for m in real.moved
    ]
    assert {m.outcome for m in dry.moved} == {"would"}
    assert dry.undo == ""
    assert dry.states == real.states


def test_where_the_user_wants_to_be_asked_it_waits(library) -> None:
    """With approval set to ask, archiving waits in the inbox, once; a no is remembered."""
    library.settings = msgspec.structs.replace(
        library.settings, learn=LearnSettings(approval="ask")
    )
    library.make("one")
    library.curate()
    library.weeks(16)
    (waiting,) = library.gate.inbox.waiting()
    assert (waiting.change.skill, waiting.change.actor) == ("one", "curator")
    assert library.states() == {"one": "stale"}
    library.gate.reject(waiting, "I need it")
    assert library.weeks(1)[0].moved[0].outcome == "refused"
    assert library.live() == {"one"}


def test_what_is_used_after_the_plan_is_left(library, monkeypatch) -> None:
    """A skill that is called between the decision and the act stays where it is."""
    library.make("one", "two")
    library.curate()
    library.weeks(12)
    begin = CurationRecords.begin

    def called_meanwhile(self: CurationRecords, *rest: object) -> None:
        begin(self, *rest)
        library.use("one")

    monkeypatch.setattr(CurationRecords, "begin", called_meanwhile)
    (report,) = library.weeks(1)
    outcomes = {m.skill: m.outcome for m in report.moved}
    assert outcomes == {"one": "used meanwhile", "two": "done"}
    assert library.live() == {"one"}


def test_jumps_and_sleep_do_no_harm(library) -> None:
    """Ten years forward, back again, and a summer asleep: nothing is put away by that."""
    library.make("one")
    library.curate()
    start = library.clock.now()
    library.clock.set(start + timedelta(days=3650))
    library.curate()
    library.clock.set(start - timedelta(days=900))
    library.curate()
    library.clock.set(start)
    library.curate()
    library.days(95)
    library.curate()
    assert library.states() == {"one": "stale"}
    assert library.live() == {"one"}


def test_a_project_counts_when_sessions_were_seen_in_it(library, home: Path) -> None:
    """Learned skills of a trusted project are looked after; what is shared by git is not."""
    project = home / "app"
    project.mkdir()
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    for name in ("left", "shared"):
        folder = project / ".agents" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: D.\nmetadata:\n  source: auto-skill\n---\n\nX.\n"
        )
    store = Store.open()
    store.write(session((used("left"),), project=str(project)))
    store.close()
    assert [place.root for place in library.scope().places] == [str(library.root)]
    trust.add(str(project))
    assert len(library.scope().places) == 2
    assert git_exclude.hide(project_place(str(project)), "left", "")
    report = library.curate()
    assert report.kept == {"shared": 1}
    assert report.states["active"] == 1


def test_of_a_project_that_is_not_trusted_only_the_own_skills_are_looked_after(
    library, home: Path
) -> None:
    """What was learned there ages like any other; what came with the clone is left alone."""
    project = home / "app"
    (project / ".tacit").mkdir(parents=True)  # a project without git
    text = "---\nname: {}\ndescription: D.\nmetadata:\n  source: auto-skill\n---\n\nX.\n"
    folder = project / ".agents/skills/shipped"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text.format("shipped"))
    place = project_place(str(project))
    files = {"SKILL.md": text.format("learned").encode()}
    change = make_change("learned", Create(files), actor="reviewer")
    assert Gate([place], neighbours=NoNeighbours()).propose(change).applied
    with Store.open() as store:
        store.write(session((used("learned"),), project=str(project)))
    assert len(library.scope().places) == 2
    report = library.curate()
    assert (report.kept, report.states["active"]) == ({"untrusted": 1}, 1)


def test_two_at_once(library) -> None:
    """The second curator gives way while the first works; both in turn do it once."""
    library.make("one")
    library.curate()
    library.weeks(12)
    library.days(7)
    lock = str(Path(database.default_path()).parent / "locks" / "curate.lock")
    with atomic_files.locked(lock), pytest.MonkeyPatch.context() as patch:
        patch.setattr("tacit.learn.curate.curation.WAIT_SECONDS", 0.1)
        with pytest.raises(Busy, match="curation"):
            library.curate()
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=library.curate) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join(120)
    assert [process.exitcode for process in both] == [0, 0]
    assert library.archived() == {"one"}
    kinds = [v.record.kind for v in library.gate.open_place().history.log("one")]
    assert kinds.count("archive") == 1


def test_lost_uses_are_found_again_and_put_nothing_away(library) -> None:
    """Tables that were emptied, dropped or filled with nonsense: rebuilt from the sessions."""
    library.make("used", "left")
    library.curate()
    use_there(library, "used", weeks=12)
    assert library.states()["left"] == "stale"
    library.use("left")  # in our own chat, whose session nobody stored
    for damage in (
        "DELETE FROM uses",
        "DROP TABLE uses",
        "UPDATE curated SET since = 'yesterday'",
        "UPDATE uses SET at = 'no time' WHERE turn = 0",
        "DROP TABLE curated; DROP TABLE recorded",
    ):
        use_there(library, "used", weeks=1)
        library.days(7)
        connection = database.connect()
        connection.executescript(damage)
        connection.close()
        report = library.curate()
        assert len(report.notes) == 1, damage
        assert "damaged" in report.notes[0]
        assert library.archived() == set()
        assert library.states()["used"] == "active"
        assert library.curate().notes == ()


def test_a_database_beyond_reading_stops_it(library) -> None:
    """Where nobody knows what was used, nothing is put away."""
    library.make("one")
    library.curate()
    library.weeks(12)
    path = Path(database.default_path())
    for file in path.parent.glob("tacit.db*"):
        file.write_bytes(b"this is no database " * 500)
    library.days(7)
    with pytest.raises(Damaged):
        library.curate()
    assert library.live() == {"one"}


def test_what_the_user_archived_or_restored_is_theirs(library) -> None:
    """An archived skill stays archived; restored by hand, it begins anew."""
    library.make("one")
    library.curate()
    assert library.propose("one", Archive()).applied
    library.weeks(1)
    assert library.states() == {"one": "archived"}
    assert library.propose("one", Restore()).applied
    library.weeks(4)
    assert library.states() == {"one": "active"}


def test_the_report_says_what_why_and_how_to_undo(library) -> None:
    """In Markdown, with each change's own undo and one for the whole run; hostile names too."""
    library.make("one")
    library.curate()
    report = library.weeks(13)[-1]
    text = report_markdown(report)
    assert f"Take all of it back: `tacit undo {report.id[-8:]}`" in text
    row = next(line for line in text.splitlines() if line.startswith("| one |"))
    assert "91 days without use or edit; the limit is 90" in row
    assert f"`tacit undo {report.moved[0].change[-8:]}`" in row
    assert "| archived | 1 |" in text
    evil = msgspec.structs.replace(report.moved[0], skill="a|b`\n# c")
    text = report_markdown(msgspec.structs.replace(report, moved=(evil,)))
    assert "| a\\|b' # c |" in text


def test_nothing_is_put_away_or_taken_back_without_its_safety_copy(library, monkeypatch) -> None:
    """Where no version can be written, archiving and undoing leave every byte; later they go on."""

    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    library.put("one")
    library.curate()
    library.weeks(12)
    library.days(7)
    folder = Path(library.gate.open_place().history.folder)
    folder.mkdir(parents=True)
    (folder / "objects").write_bytes(b"no object can be put here")
    before = library.everything()
    with pytest.raises(Unwritable):
        library.curate()
    assert library.everything() == before
    (folder / "objects").unlink()
    library.curate()
    assert library.archived() == {"one"}
    run = library.gate.open_place().history.head("one").record.group
    away = library.everything()
    (library.root / ".archive" / "one" / "SKILL.md").write_text("edited in the archive\n")
    edited = library.everything()
    monkeypatch.setattr(Objects, "write", full)
    (verdict,) = undo_group(library.gate, run, actor="user")
    assert verdict.refusal.rule == "unwritable"
    assert library.everything() == edited != away


def test_a_copy_holds_what_could_be_touched_and_no_more(library, home: Path) -> None:
    """Of the user's own skill only its SKILL.md is copied, a link stays one, the rest is whole."""
    library.put("learned", "away")
    library.put("mine", learned=False)
    (library.root / "mine" / "large.bin").write_bytes(b"x" * 1000)
    (library.root / "learned" / "references").mkdir()
    (library.root / "learned" / "references" / "a.md").write_text("a\n")
    elsewhere = home / "elsewhere" / "linked"
    elsewhere.mkdir(parents=True)
    (elsewhere / "SKILL.md").write_bytes((library.root / "learned" / "SKILL.md").read_bytes())
    (library.root / "linked").symlink_to(elsewhere)
    assert library.propose("away", Archive()).applied
    with copied_scope(library.scope()) as copy:
        root = Path(copy.places[0].root)
        found = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
        assert found == {
            "learned/SKILL.md", "learned/references/a.md", "mine/SKILL.md",
            ".archive/away/SKILL.md", ".archive/.gitignore",
        } | {p for p in found if p.startswith("linked")}  # fmt: skip
        assert (root / "linked").is_symlink()
        assert curate(copy, library.settings).kept == {"linked": 1, "yours": 1}
    assert not root.exists()


EVERY = int(os.environ.get("TACIT_TEST_KILL_EVERY", "19"))
"""Every so many steps; 1 tries them all."""


def test_killed_at_any_step(tmp_path: Path, home: Path) -> None:
    """Old or new at every step; the next run finishes it, and nothing is archived twice."""
    found = _drive("kill_driver.py", tmp_path, EVERY)
    assert found["points"] >= found["calls"] // EVERY - 2
    assert found["points"] >= 4


def test_a_consolidation_killed_at_any_step(tmp_path: Path, home: Path) -> None:
    """All that was agreed lands in the end, each change once, and one undo brings back all."""
    pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")
    every = EVERY * 3
    found = _drive("kill_join_driver.py", tmp_path, every)
    assert found["points"] >= found["calls"] // every - 1
    assert found["points"] >= 3


def _drive(program: str, folder: Path, every: int) -> dict[str, int]:
    driver = Path(__file__).parent / program
    done = subprocess.run(
        [sys.executable, str(driver), str(folder), str(every)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, int] = json.loads(done.stdout)
    return found
