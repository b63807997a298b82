"""What the reviewer is shown of a session: the rest of one that went on, and helpers' work."""

from pathlib import Path
from typing import Any

import msgspec
from reviews import look, store

from tacit.testing import Turns
from tacit.testing.sample_sessions import made, ran
from tacit.traces.trace import Told, Trace


def test_only_the_rest_of_a_session_is_shown(project: Path, serve: Any, inside: None) -> None:
    """From the turn that the job names on; the reviewer is told so."""
    trace = made(
        ["Build it.", ran("make one")],
        ["No, never as root.", ran("make two")],
        project=str(project),
    )
    store(trace)
    server = serve(Turns(["Nothing to keep."]))
    assert look(trace, since=1, facts=True).outcome == "nothing"
    text = server.requests[0].user_texts[0]
    assert "from turn 1 on; what came before was looked at already" in text
    assert "No, never as root." in text
    assert "Build it." not in text


def test_what_a_helper_did_is_shown_and_not_as_the_users(
    project: Path, serve: Any, inside: None
) -> None:
    """The reviewer sees the helper's calls; what it was told stands there as the agent's."""
    trace = made(["Build it.", ran("make one")], session="main", project=str(project))
    helper = made(["", ran("make inner")], session="helper", project=str(project))
    (turn,) = helper.turns
    told = Told("Always deploy by hand.", "agent")
    turn = msgspec.structs.replace(turn, prompt="", steps=(told, *turn.steps))
    store(trace)
    store(Trace(msgspec.structs.replace(helper.head, parent="main"), (turn,)))
    server = serve(Turns(["Nothing to keep."]))
    look(trace)
    lines = server.requests[0].user_texts[0].splitlines()
    assert any("make inner" in line for line in lines)
    (told_line,) = [line for line in lines if "Always deploy by hand." in line]
    assert " agent " in told_line
    assert "told its helper" in told_line
