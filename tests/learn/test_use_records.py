"""Uses of skills are counted once, whatever happens to the sessions that show them."""

from datetime import timedelta
from pathlib import Path

from used_sessions import HOSTS, MORNING, call, session, used, with_skill

from tacit.changes.change import Create, Edit, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import user_place
from tacit.learn.curate.curation_records import CurationRecords
from tacit.learn.use_records import (
    catch_up,
    rebuild_use_tables,
    record_uses,
    use_tables_trouble,
)
from tacit.skills.library import Library
from tacit.testing import FakeClock
from tacit.traces import host_registry
from tacit.traces.skill_uses import open_use_tables, record_view, uses_of, views_of
from tacit.traces.store import Store

MD = b"---\nname: build\ndescription: How the package is built here.\n---\n\nRun build.py.\n"


def test_the_sessions_of_all_hosts_count(store: Store, tmp_path: Path) -> None:
    """A use in each of the eight agents is recorded, with its calls and failures in that answer."""
    for host in HOSTS:
        store.take_in(host_registry.get(host), with_skill(host, tmp_path / host))
    assert len(catch_up(store)) == 8
    found = uses_of(store.connection, ["build"])
    assert {use.session.partition(":")[0] for use in found} == set(HOSTS)
    assert {(use.by, use.calls, use.failed) for use in found} == {("model", 2, 1)}


def test_a_session_that_grew_is_counted_once(store: Store) -> None:
    """Recorded twice, and again when it went on, a use stands there once, with the last figures."""
    store.write(session((used("a"), call("x"))))
    assert catch_up(store) == ["claude-code:s1"]
    assert catch_up(store) == []
    record_uses(store, "claude-code:s1")
    store.write(session((used("a"), call("x"), call("y", failed=True)), (used("a"), used("b"))))
    assert catch_up(store) == ["claude-code:s1"]
    found = uses_of(store.connection)
    assert sorted((use.skill, use.calls, use.failed) for use in found) == [
        ("a", 0, 0),
        ("a", 2, 1),
        ("b", 0, 0),
    ]


def test_our_own_chat_counts_as_the_others_do(store: Store) -> None:
    """What run_skill loaded and what was merely read are uses, in place of older rows of it."""
    with open_use_tables() as connection:  # as an older tacit left it
        connection.execute(
            "INSERT INTO uses VALUES"
            " ('tacit:s1', -7, 'a', 'd1', 'model', '2026-11-02T09:00:00+00:00', '/p', 0, 0)"
        )
    load = call("run_skill", kind="skill", arguments={"name": "a"})
    read = call("read_file", kind="read", arguments={"path": "/x/skills/b/SKILL.md"})
    store.write(session((load, used("a"), read, used("b")), host="tacit"))
    catch_up(store)
    assert sorted((use.skill, use.session) for use in uses_of(store.connection)) == [
        ("a", "tacit:s1"),
        ("b", "tacit:s1"),
    ]


def test_files_beside_it_are_views(store: Store) -> None:
    """Opening a support file is a view by the model, `tacit show` one by a person; no uses."""
    read = call("Read", kind="read", arguments={"file_path": "/h/.claude/skills/a/references/x.md"})
    store.write(session((used("a"), read, read)))
    catch_up(store)
    catch_up(store)
    record_view("a")
    record_view("a")
    assert {(v.by, v.times) for v in views_of(store.connection)} == {("model", 2), ("user", 2)}
    assert len(uses_of(store.connection)) == 1


def test_the_version_is_the_one_that_stood_then(store: Store, home: Path) -> None:
    """A use before an edit belongs to the old version, one after it to the new one."""
    clock, day = FakeClock(MORNING), timedelta(days=1)
    gate = Gate([user_place()], clock=clock)
    assert gate.propose(make_change("build", Create({"SKILL.md": MD}), actor="user")).applied
    old = Library().get("build").digest
    clock.advance(10 * day)
    assert gate.propose(make_change("build", Edit("Run", "Start"), actor="user")).applied
    new = Library().get("build").digest
    for name, days in (("early", -1), ("before", 5), ("after", 15)):
        store.write(session((used("build", MORNING + days * day),), name=name))
    catch_up(store)
    found = {use.session.partition(":")[2]: use.digest for use in uses_of(store.connection)}
    assert old != new
    assert found == {"early": "", "before": old, "after": new}


def test_without_a_history_the_file_tells_while_it_is_unchanged(store: Store, home: Path) -> None:
    """A skill that Tacit never changed: its file's digest, and it stays known when it changes."""
    folder = home / ".agents" / "skills" / "build"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(MD)
    digest = Library().get("build").digest
    late = MORNING + timedelta(days=3650)
    store.write(session((used("build", late),), at=late))
    catch_up(store)
    (folder / "SKILL.md").write_bytes(MD + b"More.\n")
    store.write(session((used("build", late),), (call("x"),), at=late))
    catch_up(store, lambda project: lambda skill, at: "")
    assert [use.digest for use in uses_of(store.connection)] == [digest]


def test_names_that_are_no_folders_are_looked_for_nowhere(store: Store) -> None:
    """A transcript may name anything; a path is not followed out of the skills folder."""
    for number, name in enumerate(("../../etc", "/etc/passwd", "a\\b", "..", "a/b")):
        store.write(session((used(name),), name=f"s{number}"))
    catch_up(store)
    assert {use.digest for use in uses_of(store.connection)} == {""}


def test_a_session_without_skills_leaves_no_rows(store: Store) -> None:
    """Most sessions load nothing: they are marked as seen and cost no more."""
    store.write(session((call("x"), call("y", failed=True))))
    assert catch_up(store) == ["claude-code:s1"]
    assert uses_of(store.connection) == []
    assert catch_up(store) == []


def test_what_was_forgotten_leaves_numbers_only(store: Store) -> None:
    """After `forget`, the count of uses stays, and no text of the session is in the tables."""
    secret = call("Bash", failed=True, error="the-secret-word", result="the-secret-word")
    store.write(session((used("a"), secret)))
    catch_up(store)
    store.remove(["claude-code:s1"], by_user=True)
    with open_use_tables() as connection:
        assert len(uses_of(connection, ["a"])) == 1
        assert "the-secret-word" not in "".join(connection.iterdump())


def test_a_rebuild_keeps_what_forgotten_sessions_left(store: Store) -> None:
    """Stored sessions are counted anew; of forgotten ones the numbers stay, except nonsense."""
    for name in ("kept", "forgotten", "broken"):
        store.write(session((used("a"), call("x", failed=True)), name=name))
    catch_up(store)
    store.remove(["claude-code:forgotten", "claude-code:broken"], by_user=True)
    store.connection.execute("UPDATE uses SET at = 'no time' WHERE session LIKE '%:broken'")
    store.connection.execute("UPDATE uses SET failed = 9 WHERE session LIKE '%:kept'")
    rebuild_use_tables(store)
    found = {use.session: use.failed for use in uses_of(store.connection)}
    assert found == {"claude-code:kept": 1, "claude-code:forgotten": 1}


def test_what_an_older_version_counted_is_no_loss(store: Store) -> None:
    """It counted a skill twice that was loaded twice in one answer; one use fewer is no damage."""
    records = CurationRecords(store.connection)
    records.set_fact("uses", "2")
    store.write(session((used("a"), used("a")), host="tacit"))
    catch_up(store)
    assert len(uses_of(store.connection)) == 1
    assert use_tables_trouble(store.connection) == ""
    records.replace_skills({}, MORNING, 2)
    assert use_tables_trouble(store.connection) == "1 of 2 uses are gone"
