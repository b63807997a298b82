"""Telling the model of skills and facts that appeared or changed after a conversation began.

The system prompt and the tools never change once sent, so that the provider's cache holds: the
news stands in a short note before the user's next message.
"""

import msgspec

from tacit.agent.conversation import Conversation
from tacit.agent.recalling import Told
from tacit.skills.library import Library

_MOST = 10


class News(msgspec.Struct, frozen=True):
    """The note, empty when there is nothing to say, and the names that are known after it."""

    note: str
    names: tuple[str, ...]


def offered(library: Library) -> list[str]:
    """The skills that the model may call."""
    return [entry.name for entry in library.active() if entry.model_invocable]


def news(library: Library, conversation: Conversation, facts: Told | None = None) -> News:
    """What is new in `library` for the model of `conversation`, and what of `facts` is."""
    facts = facts or Told()
    fresh = [
        entry
        for entry in library.active()
        if entry.model_invocable and entry.name not in conversation.known
    ]
    lines: list[str] = []
    if fresh:
        lines.append("Skills that came in after this conversation began; run_skill loads them:")
        lines += [f"- {entry.name}: {entry.description}" for entry in fresh[:_MOST]]
        if len(fresh) > _MOST:
            lines.append(f"- {len(fresh) - _MOST} more can be found with search_skills")
    changed = [
        (active.name, f"{active.name}@{entry.digest}")
        for active in conversation.active.values()
        if (entry := library.find(active.name)) is not None
        and entry.state == "active"
        and entry.digest != active.digest
    ]
    changed = [(name, mark) for name, mark in changed if mark not in conversation.known]
    lines += [f'The skill "{n}" was changed; run_skill loads the new text.' for n, _ in changed]
    lines += facts.lines
    note = "\n".join(["<note>", *lines, "</note>"]) if lines else ""
    names = (*(entry.name for entry in fresh), *(mark for _, mark in changed), *facts.marks)
    return News(note, names)
