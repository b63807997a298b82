"""Names are completed in the shell: skills, sessions, agents, proposals."""

from pathlib import Path

import click
import pytest

from tacit.changes.change import Create, acting_as, make_change
from tacit.changes.gate import Gate
from tacit.testing.sample_sessions import made
from tacit.traces.store import Store
from tacit.ui.cli import user_shell


def completed(complete: user_shell.Complete, word: str = "") -> list[str]:
    context = click.Context(click.Command("x"))
    return [item.value for item in complete(context, click.Argument(["a"]), word)]


def test_sessions_agents_and_proposals(home: Path) -> None:
    """What is in the store, what is known, and what waits."""
    store = Store.open()
    store.write(made(["go"], session="b4a27079-1"))
    store.write(made(["go"], session="c0ffee00-2"))
    store.close()
    assert completed(user_shell.complete_session, "b4") == ["b4a27079-1"]
    assert completed(user_shell.complete_host, "cl") == ["claude-code"]
    text = (
        b"---\nname: tests\ndescription: How tests are run. Use before a commit.\n"
        b"metadata:\n  source: auto-skill\n---\n\n1. Run make check.\n"
    )
    with acting_as("distiller"):
        change = make_change("tests", Create({"SKILL.md": text}), evidence=("a:b",))
        waits = Gate(always_ask=("distiller",)).propose(change)
    assert completed(user_shell.complete_proposal) == [waits.change[-8:]]


@pytest.mark.parametrize("complete", [user_shell.complete_session, user_shell.complete_proposal])
def test_a_broken_database_completes_nothing(complete: user_shell.Complete) -> None:
    """No error reaches a prompt."""
    from tacit.base import database

    path = Path(database.default_path())
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database, by any means" * 99)
    assert completed(complete) == []
