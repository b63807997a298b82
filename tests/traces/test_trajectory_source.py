"""Stored sessions as trajectories: which are chosen, and what is looked up for each."""

import io
import json
import shutil
import zlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tacit.testing.sample_sessions import called, made, ran, used
from tacit.traces import host_registry
from tacit.traces.copied_turns import CopiedTurns
from tacit.traces.hosts.tacit import SessionWriter
from tacit.traces.session_rows import unpacked
from tacit.traces.skill_uses import prepare_use_tables
from tacit.traces.store import Store, forget_sessions
from tacit.traces.trace import Told, Trace
from tacit.traces.trajectory import Trajectory
from tacit.traces.trajectory_source import (
    Choice,
    TrajectorySource,
    chosen_sessions,
    redact_given,
)
from tacit.work.intake import piped_file, take_in

TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.fixture
def store(home: Path) -> Store:
    return Store.open()


def load(store: Store, name: str) -> tuple[Trajectory, dict[str, int]]:
    return TrajectorySource(store, CopiedTurns(store)).load(name)


def test_choosing(store: Store) -> None:
    """By agent, project, time, skill and outcome; a helper goes with its parent."""
    with store:
        passed = ran("pytest", "===== 3 passed in 0.1s =====")
        store.write(made(["Test.", passed], session="a", project="/p/x"))
        failed = ran("pytest", "1 failed in 0.2s", failed=True)
        store.write(made(["Test.", used("release"), failed], session="b", host="pi", project="/p"))
        store.write(made(["Hi.", "Hello."], session="c"))
        helper = made(["", "Done."], session="h")
        store.write(Trace(msgspec.structs.replace(helper.head, parent="a"), helper.turns))
        found = {
            "all": chosen_sessions(store, Choice()),
            "host": chosen_sessions(store, Choice(host="pi")),
            "project": chosen_sessions(store, Choice(project="/p")),
            "since": chosen_sessions(store, Choice(since=datetime(2027, 1, 1, tzinfo=UTC))),
            "skill": chosen_sessions(store, Choice(skill="release")),
            "worked": chosen_sessions(store, Choice(outcome="worked")),
            "failed": chosen_sessions(store, Choice(outcome="failed")),
            "unclear": chosen_sessions(store, Choice(outcome="unclear")),
        }
    assert found == {
        "all": ["claude-code:a", "pi:b", "claude-code:c"],
        "host": ["pi:b"],
        "project": ["claude-code:a", "pi:b"],
        "since": [],
        "skill": ["pi:b"],
        "worked": ["claude-code:a"],
        "failed": ["pi:b"],
        "unclear": ["claude-code:c"],
    }


def test_labels_come_from_what_is_on_record(store: Store) -> None:
    """The outcome with its line, and the digest of the skill as it was loaded then."""
    with store:
        store.write(made(["Test.", used("release"), ran("pytest", "== 3 passed in 0.1s ==")]))
        prepare_use_tables(store.connection)
        store.connection.execute(
            "INSERT INTO uses VALUES ('claude-code:made-1', 0, 'release', 'd1g3st', 'user',"
            " '2026-11-01T09:00:00+00:00', '', 1, 0)"
        )
        labels = load(store, "claude-code:made-1")[0].labels
    assert labels.outcome.state == "worked"
    assert (labels.outcome.reason, labels.outcome.evidence) == ("exit code", "pytest: worked")
    assert [(s.name, s.version, s.by) for s in labels.skills] == [("release", "d1g3st", "user")]


def test_helpers_of_helpers_are_inside(store: Store) -> None:
    """Each below the session that started it; one that names itself in a circle is met once."""

    def helper(session: str, parent: str) -> Trace:
        trace = made(["", Told("do it", "agent"), "Done."], session=session)
        return Trace(msgspec.structs.replace(trace.head, parent=parent), trace.turns)

    with store:
        store.write(made(["Go.", called("Task", {"prompt": "do it"}, "ok")], session="a"))
        store.write(helper("b", "a"))
        store.write(helper("c", "b"))
        store.write(helper("x", "y"))
        store.write(helper("y", "x"))
        whole, _ = load(store, "claude-code:a")
        circle, _ = load(store, "claude-code:x")
    assert [one.head.session for one in whole.family()] == ["a", "b", "c"]
    assert [one.head.session for one in whole.helpers] == ["b"]
    assert [one.head.session for one in circle.family()] == ["x", "y"]


def test_what_was_stored_with_its_secrets_leaves_without(home: Path) -> None:
    """Where redaction is off in the store, it is not on the way out."""
    with Store.open(redact=lambda text: (text, {})) as store:
        store.write(made([f"Use {TOKEN}.", ran("echo", TOKEN)]))
        trajectory, counts = load(store, "claude-code:made-1")
        assert TOKEN in store.trace("claude-code:made-1").prompts[0]
    assert TOKEN not in repr(trajectory)
    assert sum(counts.values()) == 2


def test_secrets_that_were_taken_out_before_are_counted(store: Store) -> None:
    with store:
        store.write(made([f"Use {TOKEN}."]))
        assert sum(load(store, "claude-code:made-1")[1].values()) == 1


def test_what_the_model_was_given(agents: Path, store: Store) -> None:
    """Codex and Hermes write the system prompt down; it is read where it lies, and not stored."""
    with store:
        for name in ("codex", "hermes", "pi"):
            host = host_registry.get(name)
            for source in host.find():
                store.take_in(host, source)
        found = {
            row["host"]: load(store, f"{row['host']}:{row['session']}")[0].given.system
            for row in store.connection.execute("SELECT host, session FROM sessions").fetchall()
        }
        assert found["codex"].startswith("You are a coding agent running in the Codex CLI")
        assert found["hermes"] == "[elided]"
        assert found["pi"] == ""
        for source in host_registry.get("codex").find():
            Path(source.path).unlink()
        gone = chosen_sessions(store, Choice(host="codex"))
        assert load(store, gone[0])[0].given.system == ""


def test_what_stands_in_an_imported_file_was_given(store: Store, tmp_path: Path) -> None:
    """Also in an export of another agent's session, which is read under that agent's name."""
    forms = Path(__file__).parents[1] / "fixtures" / "trace-forms"
    shutil.copy(forms / "openai.jsonl", tmp_path)
    document = json.loads((forms / "atif-1.5.json").read_text())
    document["agent"] |= {"name": "pi", "tool_definitions": [{"name": "make"}]}
    document["extra"] = {"tacit": {"title": "t"}}
    (tmp_path / "ours.json").write_text(json.dumps(document))
    with store:
        for source in host_registry.recognise(str(tmp_path)):
            store.take_in(host_registry.get(source.host), source)
        found = {name.partition(":")[0]: load(store, name)[0].given
                 for name in chosen_sessions(store, Choice())}  # fmt: skip
    assert {given.system for given in found.values()} == {"You are a demo agent."}
    assert {host: given.tools[0]["function"]["name"] for host, given in found.items()} == {
        "openai": "run_command", "pi": "make",
    }  # fmt: skip


def test_our_own_chat_says_what_the_model_was_given(store: Store) -> None:
    with store:
        writer = SessionWriter("20261101-090000-aaaa", project="/p")
        writer.note({"type": "instructions", "text": f"You are Tacit. {TOKEN}"})
        writer.prompt("Hi.")
        writer.said("Hello.")
        writer.close()
        store.take_in_own()
        given = load(store, "tacit:20261101-090000-aaaa")[0].given
    assert given.system.startswith("You are Tacit. [redacted")


def test_what_the_model_was_given_outlives_a_file_that_was_handed_in(home: Path) -> None:
    """As from standard input: without secrets, by later rules too, and gone with the session."""
    line = {
        "id": "x",
        "messages": [
            {"role": "system", "content": f"You are terse. {TOKEN}"},
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": "Hello."},
        ],
        "tools": [{"type": "function", "function": {"name": "bash"}}],
    }
    with Store.open() as store:
        with piped_file(io.BytesIO(json.dumps(line).encode())) as path:
            (taken,) = take_in(store, host_registry.recognise(path))
        assert taken.counts == {"new": 1}
        given = load(store, "openai:x")[0].given
        assert given.system.startswith("You are terse. [")
        assert TOKEN not in given.system
        assert [tool["function"]["name"] for tool in given.tools] == ["bash"]
        outdated = zlib.compress(msgspec.json.encode(msgspec.structs.replace(given, system=TOKEN)))
        store.connection.execute("UPDATE given SET rules = 0, body = ?", (outdated,))
        redact_given(store)
        kept = store.connection.execute("SELECT rules, body FROM given").fetchone()
        assert kept["rules"] > 0
        assert TOKEN.encode() not in unpacked(kept["body"])
        forget_sessions(store, session="openai:x")
        assert store.connection.execute("SELECT count(*) FROM given").fetchone()[0] == 0
