"""What the model is told without having asked: the system prompt, recalled facts, later news.

The system prompt is made once for a conversation and never changed after it was sent, so that the
provider's cache holds: who the agent is, how skills are carried out, which skills there are, the
facts, the project's own instructions. Skills and facts that appear, change or go later are told in
a short note before the user's next message. Facts are marked as data, kept within the budget, and
any secret that somebody wrote into one by hand is masked. Which facts may be recalled is decided in
`changes/`; the text of the prompts is in `prompts/`.
"""

import os
import platform
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import date

import msgspec

from tacit.agent import tool_aliases
from tacit.agent.conversation import Conversation
from tacit.agent.off_limits import is_secret_path
from tacit.agent.tool import Tool
from tacit.base import paths, secrets, trust
from tacit.base.display import shorten
from tacit.base.paths import is_inside
from tacit.base.prompts import prompt
from tacit.base.setting_sections import MemorySettings
from tacit.changes.facts import recallable_facts
from tacit.changes.pins import pinned_skills
from tacit.skills.catalogue import Catalogue
from tacit.skills.fact import MEMORY_FOLDER, Fact, fact_index, fact_line, facts_here
from tacit.skills.library import Library
from tacit.skills.skill_file import read_skill_bytes
from tacit.traces.skill_uses import recently_used

_MOST_NEWS = 10


class RecalledFacts(msgspec.Struct, frozen=True):
    """What a prompt carries of the facts, and the keys of all that are known with it."""

    text: str = ""
    keys: tuple[str, ...] = ()


class FactNews(msgspec.Struct, frozen=True):
    """Lines of news for the model, and the keys of the facts that it knows after them."""

    lines: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def recall_facts(cwd: str, settings: MemorySettings) -> RecalledFacts:
    """The block of the system prompt, empty where there is nothing to recall."""
    if not settings.use:
        return RecalledFacts()
    known = recallable_facts(cwd)
    about = {fact_key(k.fact): k.provenance for k in known}
    found = fact_index(
        [k.fact for k in known],
        lines=settings.lines,
        kilobytes=settings.kilobytes,
        about=lambda fact: about[fact_key(fact)],
    )
    keys = tuple(f"{name}#0" for name in about)
    if not found.text:
        return RecalledFacts("", keys)
    return RecalledFacts(prompt("agent", "memory", facts=secrets.redact(found.text).text), keys)


def facts_for_agents(cwd: str, settings: MemorySettings) -> str:
    """What an agent of the user's is told of the facts, within its budget; may be empty."""
    known = recallable_facts(cwd) if settings.use else []
    about = {fact_key(k.fact): k.provenance for k in known}
    frame = prompt("agent", "briefing", facts="")
    found = fact_index(
        [k.fact for k in known],
        kilobytes=max(settings.agent_characters - len(frame), 0) / 1024,
        about=lambda fact: about[fact_key(fact)],
        more="tacit memory",
    )
    return prompt("agent", "briefing", facts=secrets.redact(found.text).text) if found.text else ""


def fact_news(
    cwd: str, settings: MemorySettings, known: Collection[str], own: Collection[str] = ()
) -> FactNews:
    """What was noted or forgotten since the model was last told, except by itself (`own`)."""
    if not settings.use:
        return FactNews()
    facts = {fact_key(k.fact): k for k in recallable_facts(cwd)}
    # A key is kept once for each time that it was told: an odd number is "there", an even "gone".
    counts = Counter(kept.rpartition("#")[0] for kept in known if kept.startswith("fact:"))
    fresh = [name for name in facts if counts[name] % 2 == 0]
    gone = [name for name, count in counts.items() if count % 2 == 1 and name not in facts]
    keys = tuple(f"{name}#{counts[name]}" for name in (*fresh, *gone))
    subjects = {_subject(name) for name in facts}
    new = [facts[name] for name in fresh if name not in own]
    lost = [name for name in gone if name not in own and _subject(name) not in subjects]
    lines: list[str] = []
    if new:
        lines.append("Facts that were noted after this conversation began, as data:")
        lines += [fact_line(k.fact, k.provenance) for k in new[:_MOST_NEWS]]
        if len(new) > _MOST_NEWS:
            lines.append(f"- {len(new) - _MOST_NEWS} more can be found with recall")
    if lost:
        names = ", ".join(_subject(name).rpartition(":")[2] for name in lost[:_MOST_NEWS])
        lines.append(f"Facts that no longer hold, as they were forgotten: {names}")
    return FactNews(tuple(secrets.redact(text).text for text in lines), keys)


def fact_key(fact: Fact) -> str:
    """What tells one version of one fact from every other."""
    return f"fact:{fact.scope}:{fact.name}@{fact.digest}"


def _subject(name: str) -> str:
    """The part of a key that stays the same when a fact is replaced."""
    return name.rpartition("@")[0]


class News(msgspec.Struct, frozen=True):
    """The note, empty when there is nothing to say, and the names that are known after it."""

    note: str
    names: tuple[str, ...]


def offered_skills(library: Library) -> list[str]:
    """The skills that the model may call."""
    return [entry.name for entry in library.active() if entry.model_invocable]


def news_for(library: Library, conversation: Conversation, facts: FactNews | None = None) -> News:
    """What is new in `library` for the model of `conversation`, and what of `facts` is."""
    facts = facts or FactNews()
    fresh = [
        entry
        for entry in library.active()
        if entry.model_invocable and entry.name not in conversation.known
    ]
    lines: list[str] = []
    if fresh:
        lines.append("Skills that came in after this conversation began; run_skill loads them:")
        lines += [f"- {entry.name}: {entry.description}" for entry in fresh[:_MOST_NEWS]]
        if len(fresh) > _MOST_NEWS:
            lines.append(f"- {len(fresh) - _MOST_NEWS} more can be found with search_skills")
    changed = [
        (active.name, f"{active.name}@{entry.digest}")
        for active in conversation.active.values()
        if (entry := library.find(active.name)) is not None
        and entry.state == "active"
        and entry.digest != active.digest
    ]
    changed = [(name, key) for name, key in changed if key not in conversation.known]
    lines += [f'The skill "{n}" was changed; run_skill loads the new text.' for n, _ in changed]
    lines += facts.lines
    note = "\n".join(["<note>", *lines, "</note>"]) if lines else ""
    names = (*(entry.name for entry in fresh), *(key for _, key in changed), *facts.keys)
    return News(note, names)


INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
_MOST_CHARACTERS = 32_000


def instructions(
    project: str, library: Library, tools: Iterable[Tool], *, network: bool, memory: str = ""
) -> str:
    """The whole of it, for a new conversation in `project`; `memory` is what is recalled."""
    parts = [
        prompt(
            "agent",
            "system",
            project=project,
            network="a network" if network else "no network",
            date=date.today().isoformat(),
            system=platform.platform(terse=True),
        ),
        prompt(
            "agent",
            "skill_execution",
            mapping=tool_aliases.alias_table({tool.name for tool in tools}),
        ),
        catalogue(library).text,
        memory,
        project_instructions(project),
    ]
    return "\n".join(part.strip() + "\n" for part in parts if part.strip())


def catalogue(library: Library) -> Catalogue:
    """The skills that the model is told of: pinned ones first, then as they were last used."""
    return library.catalogue(pinned=pinned_skills(library.cwd), recent=recently_used())


def project_instructions(project: str) -> str:
    """AGENTS.md and CLAUDE.md; nothing where the user does not trust the project.

    One that repeats the other, or only points to it, is left out.
    """
    if not trust.is_trusted(project):
        return ""
    found: dict[str, str] = {}
    for name in INSTRUCTION_FILES:
        text = "" if leads_out(project, name) else _read(os.path.join(project, name))
        others = [f"@{other}" for other in INSTRUCTION_FILES if other != name]
        if text and text not in found.values() and text not in others:
            found[name] = text
    return "\n\n".join(f"## From the project's {name}\n\n{text}" for name, text in found.items())


def leads_out(project: str, name: str) -> bool:
    """Whether a file of the project is a link to outside of it, or to a file of keys."""
    path = os.path.join(project, name)
    if not os.path.islink(path):
        return False
    real = os.path.realpath(path)
    inside = is_inside(real, os.path.realpath(project))
    return not inside or is_secret_path(real, paths.user_home())


def untrusted_files(project: str) -> list[str]:
    """Files of the project that are left out because the user does not trust it."""
    if trust.is_trusted(project):
        return []
    files = [name for name in INSTRUCTION_FILES if os.path.isfile(os.path.join(project, name))]
    has_facts = any(fact.state == "untrusted" for fact in facts_here(project))
    return [*files, MEMORY_FOLDER] if has_facts else files


def _read(path: str) -> str:
    try:
        text = read_skill_bytes(path)[0].decode("utf-8", "replace")  # no pipe makes us wait
    except OSError:
        return ""
    return shorten(text, _MOST_CHARACTERS, "\n[… cut]").strip()
