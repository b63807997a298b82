"""Names and home folders taken out of encoded rows."""

import json
import re
from typing import Any

import msgspec
import pytest

from tacit.testing.sample_sessions import made, ran
from tacit.traces.outcomes import Outcome
from tacit.traces.privacy import Privacy
from tacit.traces.trace import Activation, Compaction, Given, Subagent, Told
from tacit.traces.trajectory import Notes, trajectory_of
from tacit.traces.trajectory_forms import FORMS


def clean(value: Any, project: str = "", home: str = "/home/mirabel") -> tuple[Any, dict[str, int]]:
    data, counts = Privacy(["mirabel"], home).clean(msgspec.json.encode(value), project)
    return json.loads(data), counts


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("cd /home/mirabel/x && ls", "cd /home/user/x && ls"),
        ("see /Users/otto.k/src", "see /Users/user/src"),
        (r"C:\Users\Otto\src", r"C:\Users\user\src"),
        ("-home-mirabel-work", "-home-user-work"),
        ("mirabel@host:~$", "user@host:~$"),
        ("by\nmirabel\tand \x1b[01;34mmirabel\x1b[0m", "by\nuser\tand \x1b[01;34muser\x1b[0m"),
        ("mirabella and amirabel and mirabel_x stay", "mirabella and amirabel and mirabel_x stay"),
        ("nothing here: /etc/hosts, /homepage", "nothing here: /etc/hosts, /homepage"),
    ],
)
def test_texts(text: str, cleaned: str) -> None:
    assert clean({"a": text})[0] == {"a": cleaned}


def test_they_are_counted_by_kind() -> None:
    _, counts = clean(["/home/mirabel/a /home/mirabel/b", "mirabel", {"/home/mirabel": 1}])
    assert counts == {"home folder": 3, "user name": 1}


def test_the_owner_of_the_project_is_unknown_too() -> None:
    """A session of somebody else's machine names them in its paths, and elsewhere."""
    found, _ = clean("ottokar wrote it", project="/Users/ottokar/src/x")
    assert found == "user wrote it"


def test_a_home_elsewhere() -> None:
    found, counts = clean("/data/people/mirabel/x", home="/data/people/mirabel")
    assert (found, counts) == ("/home/user/x", {"home folder": 1})


def test_an_everyday_name_goes_from_paths_alone() -> None:
    """`npm run dev` stays what it is where the account is called dev."""
    found, _ = clean("npm run dev in /home/dev/x", home="/home/dev")
    assert found == "npm run dev in /home/user/x"


_OF_SESSION = {b"Bash", b"call", b"made"}
"""The words of the session itself: the name of a tool, and of what ids are made."""


@pytest.mark.parametrize("form", sorted(FORMS))
def test_no_name_of_an_account_changes_what_a_form_says(form: str) -> None:
    """Whatever word stands for itself in a row, its roles and kinds, is no name: it stays."""
    asides = (Activation("9"), Subagent("9", "9"), Compaction("9"))
    told = [Told("9", by) for by in ("hook", "file", "output")]
    trace = made(["9", "9", *told, *asides, ran("9", "9", failed=True)], ["9"], model="9")
    notes = Notes(Outcome("worked", "verdict"), [Outcome("failed", "user")] * 2, given=Given("9"))
    for row in FORMS[form].lines(trajectory_of(trace, notes)):
        data = msgspec.json.encode(row)
        for word in set(re.findall(rb"[A-Za-z]{3,}", data)) - _OF_SESSION:
            assert Privacy([word.decode()], "/home/x").clean(data) == (data, {}), word


def test_what_is_neutral_already_is_not_counted() -> None:
    assert clean("/home/user/x")[1] == {}
