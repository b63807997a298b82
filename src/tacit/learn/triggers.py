"""When a session is looked at, and why not: decisions without any state of their own.

Two moments: after a session, of any host; and during our own chat, when an answer is over. What is
known of the session comes in, a decision with its reason goes out. Who gathers the one, records the
other and asks for the job is `considering.py` and `work/glue.py`.

After a session: for skills, when it made enough tool calls and did not itself change skills; for
facts, when the user said enough in it, or when it is looked at for skills anyway. Each once. During
a chat: for skills after so many requests since the last change of a skill, for facts after so many
messages; only at a final answer; both due make one look.
"""

from typing import Literal

import msgspec

from tacit.base.amounts import counted
from tacit.base.sections import LearnSettings, MemorySettings

Moment = Literal["after", "chat"]
_NAMED = 3
"""Skills that a reason names."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session that is over."""

    calls: int
    messages: int
    """Prompts of the user's."""
    changed: tuple[str, ...] = ()
    """The skills that it changed itself."""
    background: bool = False
    """Work of our own in the background."""
    skills_before: str = ""
    """When it was looked at for skills, or that was decided; empty where it never was."""
    facts_before: str = ""
    """Likewise for facts."""
    weight: int = 0
    """How much speaks for it, by cheap signals."""


class Spoken(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a chat whose answer is over."""

    ended: str
    """`done` for a final answer; else how it ended."""
    iterations: int
    """Requests to the model since the last change of a skill, or the last look."""
    messages: int
    """Messages of the user's since the last look for facts."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Whether to look, for what, and why or why not."""

    moment: Moment
    skills: bool = False
    facts: bool = False
    word: str = ""
    """The reason in a word or two, for a table."""
    reason: str = ""
    """The reasons for both, for the user."""
    weight: int = 0
    """For the order among several; more is sooner."""

    @property
    def look(self) -> bool:
        return self.skills or self.facts


def after_session(seen: Seen, learn: LearnSettings, memory: MemorySettings) -> Decision:
    """Whether a session that is over is looked at."""
    if seen.background:
        reason = "it is work of Tacit's own in the background"
        return Decision(moment="after", word="own work", reason=reason)
    skills = _for_skills(seen, learn)
    facts = _for_facts(seen, learn, memory, read_anyway=skills.due)
    return _decision("after", skills, facts, seen.weight)


def in_chat(spoken: Spoken, learn: LearnSettings, memory: MemorySettings) -> Decision:
    """Whether a chat is looked at now that an answer is over."""
    if spoken.ended != "done":
        how = "interrupted" if spoken.ended == "interrupted" else f"ended by: {spoken.ended}"
        reason = f"the answer was not a final one ({how})"
        return Decision(moment="chat", word="not final", reason=reason)
    skills = _counted(spoken.iterations, learn.chat_iterations, "request", "learn.chat_iterations")
    facts = _counted(spoken.messages, memory.chat_turns, "message", "memory.chat_turns")
    return _decision("chat", skills, facts if memory.use else _NO_MEMORY)


class _Due(msgspec.Struct, frozen=True):
    """Whether one of the two is due, in a word, and why."""

    due: bool
    word: str
    why: str


_NO_MEMORY = _Due(False, "off", "memory is off (memory.use)")


def _for_skills(seen: Seen, learn: LearnSettings) -> _Due:
    calls = counted(seen.calls, "tool call")
    if not learn.after_calls:
        return _Due(False, "off", "looking at finished sessions is off (learn.after_calls)")
    if seen.skills_before:
        return _Due(False, "done before", f"it was looked at already ({seen.skills_before})")
    if seen.changed:
        names = ", ".join(seen.changed[:_NAMED])
        more = f" and {len(seen.changed) - _NAMED} more" if len(seen.changed) > _NAMED else ""
        return _Due(False, "changed skills", f"it changed skills itself: {names}{more}")
    if seen.calls < learn.after_calls:
        why = f"{calls}, fewer than {learn.after_calls} (learn.after_calls)"
        return _Due(False, "few calls", why)
    return _Due(True, "due", f"{calls}, at least {learn.after_calls}")


def _for_facts(
    seen: Seen, learn: LearnSettings, memory: MemorySettings, *, read_anyway: bool
) -> _Due:
    messages = f"{counted(seen.messages, 'message')} of yours"
    if not memory.use:
        return _NO_MEMORY
    if seen.facts_before:
        return _Due(False, "done before", f"it was looked at already ({seen.facts_before})")
    if read_anyway and seen.messages:
        return _Due(True, "due", "it is read anyway")
    if not learn.after_messages:
        return _Due(False, "off", "looking at finished sessions is off (learn.after_messages)")
    if seen.messages < learn.after_messages:
        why = f"{messages}, fewer than {learn.after_messages} (learn.after_messages)"
        return _Due(False, "few messages", why)
    return _Due(True, "due", f"{messages}, at least {learn.after_messages}")


def _counted(number: int, least: int, noun: str, setting: str) -> _Due:
    if not least:
        return _Due(False, "off", f"looking at a running chat is off ({setting})")
    due = number >= least
    why = f"{counted(number, noun)} since the last time, of {least} ({setting})"
    return _Due(due, "due" if due else "not yet", why)


def _decision(moment: Moment, skills: _Due, facts: _Due, weight: int = 0) -> Decision:
    word = skills.word if skills.due or not facts.due else "due for facts"
    return Decision(
        moment=moment,
        skills=skills.due,
        facts=facts.due,
        word=word,
        reason=f"for skills: {skills.why}; for facts: {facts.why}",
        weight=weight,
    )
