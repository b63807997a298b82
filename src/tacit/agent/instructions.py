"""The system prompt: who the agent is, how skills are carried out, which there are, the project's.

It is made once for a conversation and never changed: what is new later is said in later messages.
"""

import os
import platform
from collections.abc import Iterable
from datetime import date

from tacit.agent import foreign
from tacit.agent.prompts import prompt
from tacit.agent.tools.tool import Tool
from tacit.agent.uses import recently_used
from tacit.base import paths, trust
from tacit.changes.pins import pinned_skills
from tacit.skills.catalogue import Catalogue
from tacit.skills.library import Library
from tacit.skills.memory import MEMORY

_FILES = ("AGENTS.md", "CLAUDE.md")
_MOST = 32_000


def instructions(
    project: str, library: Library, tools: Iterable[Tool], *, network: bool, memory: str = ""
) -> str:
    """The whole of it, for a new conversation in `project`; `memory` is what is recalled."""
    parts = [
        prompt("system").format(
            project=project,
            network="a network" if network else "no network",
            date=date.today().isoformat(),
            system=platform.platform(terse=True),
        ),
        prompt("skill_execution").format(mapping=foreign.mapping({tool.name for tool in tools})),
        catalogue(library).text,
        memory,
        of_project(project),
    ]
    return "\n".join(part.strip() + "\n" for part in parts if part.strip())


def catalogue(library: Library) -> Catalogue:
    """The skills that the model is told of: pinned ones first, then as they were last used."""
    return library.catalogue(pinned=pinned_skills(library.cwd), recent=recently_used())


def of_project(project: str) -> str:
    """AGENTS.md and CLAUDE.md; nothing where the user does not trust the project.

    One that repeats the other, or only points to it, is left out.
    """
    if not trust.is_trusted(project):
        return ""
    found: dict[str, str] = {}
    for name in _FILES:
        text = _read(os.path.join(project, name))
        others = [f"@{other}" for other in _FILES if other != name]
        if text and text not in found.values() and text not in others:
            found[name] = text
    return "\n\n".join(f"## From the project's {name}\n\n{text}" for name, text in found.items())


def untold(project: str) -> list[str]:
    """Files of the project that are left out because the user does not trust it."""
    if trust.is_trusted(project):
        return []
    files = [name for name in _FILES if os.path.isfile(os.path.join(project, name))]
    has_facts = os.path.isdir(os.path.join(project, MEMORY)) and not paths.is_home(project)
    return [*files, MEMORY] if has_facts else files


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_MOST + 1)
    except OSError:
        return ""
    return text[:_MOST].strip() + ("\n[… cut]" if len(text) > _MOST else "")
