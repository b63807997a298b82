"""`/inbox` and `/undo` against the real gate, and every command without a session."""

from pathlib import Path

import pytest

from tacit.base.errors import TacitError
from tacit.changes.change import Create, Verdict, acting_as, make_change
from tacit.changes.gate import Gate
from tacit.ui.chat import slash_commands
from tacit.ui.chat.event_text import CommandAnswer
from tacit.ui.chat.live_chat import Chat, ChatOptions


async def _nobody(asked: object) -> None:
    return None


@pytest.fixture
def chat(home: Path) -> Chat:
    return Chat(ChatOptions(), approve=_nobody, ask=_nobody)  # type: ignore[arg-type]


def do(chat: Chat, text: str) -> CommandAnswer:
    """Run a line as a face does."""
    found = slash_commands.parse_slash_command(text)
    assert found is not None
    command, rest = found
    return command.run(chat, rest)


def propose(home: Path, name: str, body: str, actor: str = "distiller") -> Verdict:
    text = (
        f"---\nname: {name}\ndescription: {body} Use for {name}.\n"
        f"metadata:\n  source: auto-skill\n---\n\n1. {body}\n"
    )
    gate = Gate(always_ask=("distiller",))
    with acting_as(actor):  # type: ignore[arg-type]
        root = str(home / ".agents" / "skills")
        change = make_change(
            name, Create({"SKILL.md": text.encode()}), reason=f"seen {name} twice", root=root
        )
        return gate.propose(change)


BACKUP = "Dump the database to the cold bucket and compare both checksums afterwards."
RELEASE = "Tag the release commit, push the tag and wait until the pipeline is green."


def test_a_proposal_is_seen_accepted_and_taken_back(chat: Chat, home: Path) -> None:
    """What waits is listed, shown with its diff, accepted; /undo takes it back, and again back."""
    assert do(chat, "/inbox").text == "The inbox is empty."
    short = propose(home, "backup", BACKUP).change[-8:]
    assert slash_commands.waiting_count() == 1
    listed = do(chat, "/inbox").text
    assert short in listed
    assert "seen backup twice" in listed
    shown = do(chat, f"/inbox {short}")
    assert f"/inbox accept {short}" in shown.text
    assert "+1. Dump the database" in shown.diff
    path = home / ".agents" / "skills" / "backup" / "SKILL.md"
    assert not path.exists()
    assert do(chat, f"/inbox accept {short}").text.startswith("Accepted: backup (take it back: /un")
    assert path.exists()
    assert chat.library.find("backup") is not None
    assert slash_commands.waiting_count() == 0
    with pytest.raises(TacitError, match="already"):
        do(chat, f"/inbox accept {short}")
    listed = do(chat, "/undo").text
    assert "backup" in listed
    change = listed.split()[0]
    undone = do(chat, f"/undo {change}").text
    assert undone.startswith("Undone: backup (bring it back: /undo ")
    assert not path.exists()
    assert chat.library.find("backup") is None
    do(chat, undone.partition("back: ")[2].rstrip(")"))
    assert path.exists()


def test_what_was_rejected_does_not_come_back(chat: Chat, home: Path) -> None:
    """/inbox reject empties the inbox, keeps the reason, and the same idea is refused."""
    short = propose(home, "release", RELEASE).change[-8:]
    told = do(chat, f"/inbox reject {short} we do this in CI").text
    assert told == "Rejected: release. It is not proposed again."
    assert do(chat, "/inbox").text == "The inbox is empty."
    assert not (home / ".agents" / "skills" / "release").exists()
    assert Gate().inbox.get(short).answer == "we do this in CI"
    assert propose(home, "release", RELEASE).refused


@pytest.mark.parametrize(
    "line", ["/undo nothing", "/inbox nothing", "/inbox accept", "/inbox reject"]
)
def test_a_wrong_id_is_told_with_the_next_step(chat: Chat, line: str) -> None:
    """What does not exist, and what is not named, is an error with a hint."""
    with pytest.raises(TacitError) as raised:
        do(chat, line)
    assert raised.value.hint


@pytest.mark.parametrize("name", sorted(slash_commands.SLASH_COMMANDS))
def test_every_command_answers_without_a_model(
    chat: Chat, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty home with no model, a command gives text, or an error that says what to do."""
    from tacit.agent import models

    monkeypatch.setattr(models, "LOCAL", ())
    if name in ("model", "new"):
        with pytest.raises(TacitError, match="no model") as raised:
            do(chat, f"/{name}")
        assert "tacit setup" in raised.value.hint
    else:
        shown = do(chat, f"/{name}")
        assert shown.text or shown.next_step


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/undo", "undo", ""),
        ("/undo abc ", "undo", "abc"),
        ("/undo\nabc", "undo", "abc"),
        ("/undo\t/help", "undo", "/help"),
        ("/undo/abc", "", ""),
        ("/help-me", "", ""),
        ("please /undo", "", ""),
        ("/", "", ""),
    ],
)
def test_a_command_wins_over_a_skill(
    chat: Chat, home: Path, text: str, name: str, rest: str
) -> None:
    """However the line goes on: a skill called `undo` is never what `/undo` means."""
    folder = home / ".agents" / "skills" / "undo"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: undo\ndescription: Takes over.\n---\n\nHa.\n")
    assert chat.library.find("undo") is not None
    found = slash_commands.parse_slash_command(text)
    assert (found[0].name, found[1]) == (name, rest) if found else (name, rest) == ("", "")
