"""Skills that were put away come back when they are called by name, through the gate."""

from pathlib import Path

import msgspec
import pytest
from talking import of, say, write_skill

from tacit.agent import events
from tacit.agent.bringing_back import bring_back
from tacit.agent.uses import uses
from tacit.changes.change import Archive, MergeInto, make_change
from tacit.changes.gate import Gate
from tacit.changes.neighbours import Nobody
from tacit.changes.place import user_place
from tacit.skills.library import Library
from tacit.testing import ModelServer, ToolUse

LEARNED = "metadata:\n  source: auto-skill\n"


@pytest.fixture
def gate(home: Path) -> Gate:
    for name in ("deploy", "release", "both"):
        folder = home / ".agents" / "skills"
        write_skill(folder, name, f"# {name}\nRun the {name} script.", head=LEARNED)
    return Gate([user_place()], neighbours=Nobody())


def put_away(gate: Gate, name: str, *, actor: str = "curator", into: str = "") -> None:
    operation = MergeInto(into) if into else Archive()
    assert gate.propose(make_change(name, operation, actor=actor)).applied


def heads(gate: Gate, name: str) -> tuple[str, str]:
    head = gate.site().history.head(name)
    assert head is not None
    return head.record.kind, head.record.actor


def test_the_user_calls_it_by_a_slash(open_session, gate) -> None:
    """`/name` brings it back as the user, loads it in the same message, and says so."""
    put_away(gate, "deploy", actor="user")
    with ModelServer(["done"]) as server:
        told = say(open_session(server), "/deploy it")
    assert [event.name for event in of(events.Skill, told)] == ["deploy"]
    assert "'deploy' was archived and is back" in [e.text for e in of(events.Notice, told)]
    assert heads(gate, "deploy") == ("restore", "user")
    assert [use.by for use in uses("deploy")] == ["user"]


def test_the_model_calls_what_curation_put_away(open_session, gate) -> None:
    """run_skill brings it back as the curator; it is loaded, and found by name from then on."""
    put_away(gate, "deploy")
    with ModelServer([ToolUse("run_skill", {"name": "deploy"}), "done"]) as server:
        session = open_session(server)
        told = say(session, "go")
    (result,) = of(events.Return, told)
    assert (result.failed, "Run the deploy script." in result.text) == (False, True)
    assert heads(gate, "deploy") == ("restore", "curator")
    assert session.library.find("deploy") is not None


def test_what_the_user_archived_stays_away_from_the_model(open_session, gate) -> None:
    """A model is told how the user can bring it back; nothing moves."""
    put_away(gate, "deploy", actor="user")
    with ModelServer([ToolUse("run_skill", {"name": "deploy"}), "done"]) as server:
        told = say(open_session(server), "go")
    (result,) = of(events.Return, told)
    assert result.failed
    assert "tacit restore deploy" in result.text
    assert heads(gate, "deploy") == ("archive", "user")


def test_the_name_of_an_absorbed_skill_means_the_one_that_took_it_in(open_session, gate) -> None:
    """By `/name` and by run_skill, over two hops; nothing is restored for it."""
    put_away(gate, "deploy", into="release")
    put_away(gate, "release", into="both")
    with ModelServer(["done", ToolUse("run_skill", {"name": "release"}), "fine"]) as server:
        session = open_session(server)
        told = say(session, "/deploy it", "go")
    assert [event.name for event in of(events.Skill, told)] == ["both", "both"]
    assert heads(gate, "deploy") == ("archive", "curator")
    assert "'release' is part of 'both' now" in [e.text for e in of(events.Notice, told)]


def test_search_finds_it_marked(open_session, gate) -> None:
    """search_skills names archived skills and says how they come back."""
    put_away(gate, "deploy")
    with ModelServer([ToolUse("search_skills", {"query": "deploy script"}), "done"]) as server:
        told = say(open_session(server), "go")
    (result,) = of(events.Return, told)
    assert "- deploy (archived; run_skill brings it back): Does deploy." in result.text


def test_it_is_in_no_catalogue(gate) -> None:
    """Archived, it is neither offered nor listed; search without the flag does not find it."""
    put_away(gate, "deploy")
    library = Library()
    assert "deploy" not in library.catalogue().text
    assert library.find("deploy") is None
    assert "deploy" not in [hit.entry.name for hit in library.search("deploy script")]
    found = [hit.entry for hit in library.search("deploy script", archived=True)]
    assert [(e.name, e.state) for e in found if e.name == "deploy"] == [("deploy", "archived")]


def test_a_name_that_was_never_there(gate) -> None:
    """Nothing is archived under it: nothing happens, whatever the name holds."""
    put_away(gate, "deploy")
    for name in ("nothing", "../deploy", "", "~", "deploy/x", "a\0b"):
        assert bring_back(Library(), name, "user") is None


def test_the_last_one_of_a_name_comes_back(gate, home: Path) -> None:
    """Of two that were archived under one name, the later is restored."""
    put_away(gate, "deploy")
    write_skill(home / ".agents" / "skills", "deploy", "# the second", head=LEARNED)
    put_away(gate, "deploy")
    found = bring_back(Library(), "deploy", "model")
    assert found is not None
    assert found.name == "deploy"
    assert "the second" in Library().read("deploy").body


def test_where_a_person_must_agree_it_stays(gate, home: Path) -> None:
    """A pinned skill that was archived stays away from a model's call, with the reason."""
    from tacit.changes.change import Pin

    assert gate.propose(make_change("deploy", Pin(), actor="user")).applied
    put_away(gate, "deploy", actor="user")
    found = bring_back(Library(), "deploy", "model")
    assert found is not None
    assert found.name == ""
    assert msgspec.structs.asdict(found)["note"]
