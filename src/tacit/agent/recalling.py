"""Facts in a conversation: recalled once at its beginning, and what is new told later.

Which facts may be recalled, and who noted them, is said by `changes/memory.py`. Here they become
text for a model: marked as data, within the budget, with secrets masked that somebody wrote there
by hand.
"""

from collections import Counter
from collections.abc import Collection

import msgspec

from tacit.agent.prompts import prompt
from tacit.base import secrets
from tacit.base.sections import MemorySettings
from tacit.changes.memory import recallable
from tacit.skills.memory import Fact
from tacit.skills.memory_index import index, line

_MOST = 10


class Recalled(msgspec.Struct, frozen=True):
    """What a prompt carries of the facts, and marks of all that are known with it."""

    text: str = ""
    marks: tuple[str, ...] = ()


class Told(msgspec.Struct, frozen=True):
    """Lines of news for the model, and the marks of what it knows after them."""

    lines: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


def recalled(cwd: str, settings: MemorySettings) -> Recalled:
    """The block of the system prompt, empty where there is nothing to recall."""
    if not settings.use:
        return Recalled()
    known = recallable(cwd)
    about = {mark(k.fact): k.provenance for k in known}
    found = index(
        [k.fact for k in known],
        lines=settings.lines,
        kilobytes=settings.kilobytes,
        about=lambda fact: about[mark(fact)],
    )
    marks = tuple(f"{name}#0" for name in about)
    if not found.text:
        return Recalled("", marks)
    return Recalled(prompt("memory").format(facts=secrets.redact(found.text).text), marks)


def fact_news(
    cwd: str, settings: MemorySettings, known: Collection[str], own: Collection[str] = ()
) -> Told:
    """What was noted or forgotten since the model was last told, except by itself (`own`)."""
    if not settings.use:
        return Told()
    facts = {mark(k.fact): k for k in recallable(cwd)}
    # A mark is kept once for each time that it was told: an odd number is "there", an even "gone".
    counts = Counter(kept.rpartition("#")[0] for kept in known if kept.startswith("fact:"))
    fresh = [name for name in facts if counts[name] % 2 == 0]
    gone = [name for name, count in counts.items() if count % 2 == 1 and name not in facts]
    marks = tuple(f"{name}#{counts[name]}" for name in (*fresh, *gone))
    subjects = {_subject(name) for name in facts}
    told = [facts[name] for name in fresh if name not in own]
    lost = [name for name in gone if name not in own and _subject(name) not in subjects]
    lines: list[str] = []
    if told:
        lines.append("Facts that were noted after this conversation began, as data:")
        lines += [line(k.fact, k.provenance) for k in told[:_MOST]]
        if len(told) > _MOST:
            lines.append(f"- {len(told) - _MOST} more can be found with recall")
    if lost:
        names = ", ".join(_subject(name).rpartition(":")[2] for name in lost[:_MOST])
        lines.append(f"Facts that no longer hold, as they were forgotten: {names}")
    return Told(tuple(secrets.redact(text).text for text in lines), marks)


def mark(fact: Fact) -> str:
    """What tells one version of one fact from every other."""
    return f"fact:{fact.scope}:{fact.name}@{fact.digest}"


def _subject(name: str) -> str:
    """The part of a mark that stays the same when a fact is replaced."""
    return name.rpartition("@")[0]
