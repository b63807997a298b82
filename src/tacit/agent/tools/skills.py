"""Tools for skills: loading one, and finding one."""

import msgspec

from tacit.agent.activation import render
from tacit.agent.tools.tool import Context, Failed, Result, Tool
from tacit.base.errors import NotFound
from tacit.skills.library import Entry

_ARCHIVED = " (archived; run_skill brings it back)"


class RunSkill(msgspec.Struct, frozen=True):
    name: str
    arguments: str = ""


class SearchSkills(msgspec.Struct, frozen=True):
    query: str
    limit: int = 5


async def run_skill(call: RunSkill, context: Context) -> Result:
    entry = context.library.find(call.name)
    if entry is not None and not entry.model_invocable and entry.name not in context.active:
        raise Failed(f"The skill '{entry.name}' is for the user to start, by /{entry.name}.")
    return activate(call, context)


def activate(call: RunSkill, context: Context) -> Result:
    """Load a skill into the conversation. The same for a model's call and for `/name`."""
    entry = context.library.find(call.name) or _recalled(call.name, context)
    if entry is None:
        near = context.library.suggest(call.name)
        tail = f" Near: {', '.join(near)}." if near else " search_skills finds the right one."
        raise Failed(f"There is no skill '{call.name}'.{tail}")
    if entry.state == "untrusted":
        raise Failed(f"The skill '{entry.name}' belongs to a project that the user does not trust.")
    try:
        text, active = render(context.library, entry.name, call.arguments, context.active)
    except NotFound as error:
        raise Failed(error.message) from None
    except OSError as error:
        raise Failed(f"The skill '{entry.name}' cannot be read: {error.strerror}.") from None
    return Result(text, activated=active)


def _recalled(name: str, context: Context) -> Entry | None:
    """The skill that was put away under `name`, back in the library. Raises `Failed`."""
    from tacit.agent.bringing_back import bring_back

    found = bring_back(context.library, name, "model", context.session)
    if found is None:
        return None
    if not found.name:
        raise Failed(found.note)
    context.library.refresh()
    return context.library.find(found.name)


async def search_skills(call: SearchSkills, context: Context) -> Result:
    hits = context.library.search(call.query, max(1, min(call.limit, 20)), archived=True)
    rows = [
        f"- {hit.entry.name}{_ARCHIVED if hit.entry.state == 'archived' else ''}:"
        f" {hit.entry.description}"
        for hit in hits
        if hit.entry.state in ("active", "archived") and hit.entry.model_invocable
    ]
    return Result("\n".join(rows) or "(no skill fits)")


TOOLS = (
    Tool(
        "run_skill",
        "Load a skill: its instructions come back and hold for the rest of the session.",
        RunSkill,
        run_skill,
    ),
    Tool("search_skills", "Find skills that fit a task.", SearchSkills, search_skills),
)
