"""Skills changed by the agent: through the gate, on record, and never past the user."""

from pathlib import Path
from typing import Any

import pytest
from talking import of, say, write_skill

from tacit.agent import events
from tacit.testing import ModelServer, ToolUse

CREATE = {
    "action": "create",
    "name": "release-notes",
    "description": "Writes release notes from the git log. Use when a release is prepared.",
    "content": "# Release notes\n\n1. Read the log since the last tag.\n2. Group by kind of it.",
    "reason": "the user asked for it",
}


async def yes(request: Any) -> str:
    return "once"


@pytest.fixture
def skills(home: Path) -> Path:
    return home / ".agents" / "skills"


def run(open_session: Any, *uses: ToolUse, **how: Any) -> tuple[list[Any], Any]:
    with ModelServer([*uses, "done"]) as server:
        session = open_session(server, **how)
        told = say(session, "go")
    return of(events.Return, told), session


def test_a_skill_is_made_changed_and_seen_in_the_log(open_session, skills: Path) -> None:
    """Created, edited, given a file; each step on record as the agent's."""
    returned, session = run(
        open_session,
        ToolUse("manage_skill", CREATE),
        ToolUse(
            "manage_skill",
            {
                "action": "edit",
                "name": "release-notes",
                "old": "Group by kind",
                "new": "Sort by kind",
            },
        ),
        ToolUse(
            "manage_skill",
            {
                "action": "add_file",
                "name": "release-notes",
                "path": "references/kinds.md",
                "content": "added, changed, mended\n",
            },
        ),
        ToolUse("git_log", {"name": "release-notes", "tag": "skills"}),
        approve=yes,
    )
    assert [r.failed for r in returned] == [False] * 4, [r.text for r in returned]
    text = (skills / "release-notes" / "SKILL.md").read_text()
    assert "Sort by kind" in text
    assert (skills / "release-notes" / "references" / "kinds.md").exists()
    log = returned[3].text.splitlines()
    assert len(log) == 3
    assert log[-1].endswith("by agent: the user asked for it")
    assert session.library.find("release-notes") is not None


def test_the_users_own_skill_is_changed_only_when_the_user_agreed(
    open_session, skills: Path
) -> None:
    """Allowed by a person, the edit lands; allowed by a rule only, it waits in the inbox."""
    edit = ToolUse(
        "manage_skill",
        {"action": "edit", "name": "mine", "old": "Do it slowly.", "new": "Do it at once."},
    )
    folder = write_skill(skills, "mine", "# Mine\n\nDo it slowly.")
    returned, _ = run(open_session, edit, yes=True)
    assert returned[0].failed
    assert "inbox" in returned[0].text
    assert "slowly" in (folder / "SKILL.md").read_text()
    returned, _ = run(open_session, edit, approve=yes)
    assert not returned[0].failed, returned[0].text
    assert "at once" in (folder / "SKILL.md").read_text()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"content": ""}, "content"),
        ({"description": ""}, "description"),
        ({"name": "../evil"}, ""),
        ({"action": "edit", "old": ""}, "old"),
        ({"action": "add_file", "path": ""}, "path"),
        ({"action": "burn"}, "It takes"),
        ({"content": "Use the key AKIAIOSFODNN7EXAMPLQ for aws s3."}, ""),
    ],
)
def test_a_bad_change_is_refused_in_words(open_session, home, skills, change, says) -> None:
    """Missing parts, names that lead out and secrets are refused; nothing is written."""
    returned, _ = run(open_session, ToolUse("manage_skill", CREATE | change), approve=yes)
    assert returned[0].failed
    assert says in returned[0].text
    assert not list(skills.glob("*/SKILL.md"))
    assert not (home / ".agents" / "evil").exists()


def _edited_skill() -> None:
    """A skill of the user's with one edit."""
    from tacit.changes.actor import acting_as
    from tacit.changes.change import Create, Edit, make_change
    from tacit.changes.gate import Gate
    from tacit.changes.place import user_place

    text = b"---\nname: mine\ndescription: Mine. Use it when it is mine.\n---\n\n# Mine\n"
    gate = Gate([user_place()])
    with acting_as("user"):
        assert gate.propose(make_change("mine", Create({"SKILL.md": text}))).applied
        assert gate.propose(make_change("mine", Edit("# Mine", "# Yours"))).applied


def test_a_change_is_taken_back_when_the_user_says_yes(open_session, skills: Path) -> None:
    """With a person's yes the last change is undone, on record as the agent's and approved."""
    from tacit.changes.gate import Gate
    from tacit.changes.place import user_place

    _edited_skill()
    returned, _ = run(open_session, ToolUse("git_rollback", {"name": "mine"}), approve=yes)
    assert not returned[0].failed
    assert "# Mine" in (skills / "mine" / "SKILL.md").read_text()
    head = Gate([user_place()]).site().history.head("mine")
    assert head is not None
    assert (head.record.actor, head.record.approved_by) == ("agent", "user")


def test_what_others_did_is_not_taken_back_unasked(open_session, skills: Path) -> None:
    """Without a person's yes the user's own change stays, and the refusal names the command."""
    _edited_skill()
    returned, _ = run(open_session, ToolUse("git_rollback", {"name": "mine"}), yes=True)
    assert returned[0].failed
    assert "tacit undo" in returned[0].text
    assert "# Yours" in (skills / "mine" / "SKILL.md").read_text()


def test_without_approval_nothing_is_proposed(open_session, skills: Path) -> None:
    """With nobody to ask, making a skill is refused like any write."""
    returned, _ = run(open_session, ToolUse("manage_skill", CREATE))
    assert returned[0].failed
    assert not skills.exists()


def test_earlier_sessions_are_found(open_session, project: Path) -> None:
    """A session that was taken in is found by its words; other projects' only when asked for."""
    from tacit.agent.stored import session_file
    from tacit.traces.hosts.host import Source
    from tacit.traces.hosts.tacit import host
    from tacit.traces.store import Store

    with ModelServer(["The pelican build needs clang 19."]) as server:
        session = open_session(server)
        say(session, "how is pelican built?")
    store = Store.open()
    store.take_in(host, Source("tacit", session_file(session.conversation.session)))
    store.close()
    use = ToolUse("search_sessions", {"query": "pelican clang"})
    returned, _ = run(open_session, use, ToolUse("search_sessions", {"query": "walrus"}))
    assert session.conversation.session in returned[0].text
    assert "pelican" in returned[0].text
    assert returned[1].text == "(no session fits)"
