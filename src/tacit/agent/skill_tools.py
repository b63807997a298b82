"""Tools for skills: loading one, finding one, changing one, and reading its recorded changes.

Changes pass the gate. The agent acts as `agent`: it may make skills and change learned ones; for
the user's own it asks first. Where a person has just allowed the call, that was the question; else
(`--yes`, a pattern that allows it) the change is judged as learned and waits in the inbox. A
refusal names the command that the user can run.

An archived skill comes back when it is called by its name: what curation archived for anybody who
calls it, what the user archived by hand for the user alone. One that was merged into another is not
restored: its name means the other one now. Restoring is a change like any other, made as the user
where they said `/name`, and as the curator, undoing its own work, where a model called.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from tacit.agent.activation import render
from tacit.agent.tool import Context, Failed, Result, Tool
from tacit.base.errors import NotFound, TacitError
from tacit.changes.change import (
    Actor,
    Archive,
    Create,
    Edit,
    Operation,
    RemoveFile,
    Restore,
    Verdict,
    WriteFile,
    acting_as,
    make_change,
)
from tacit.changes.change import make_change as make
from tacit.changes.gate import Gate
from tacit.changes.history import Record, Version
from tacit.changes.neighbours import Neighbours, NoNeighbours
from tacit.changes.place import Place, places_here, project_place, user_place
from tacit.changes.skill_state import live_name
from tacit.skills.library import Entry, Library, archived_named
from tacit.skills.project_terms import project_terms
from tacit.traces.trace import OWN_HOST, Trace

_MOST_HOPS = 8
"""A skill may have been taken in by one that was taken in itself."""


class Back(msgspec.Struct, frozen=True):
    """What a name that meant nothing means now."""

    name: str
    """The skill to load; empty when it stays away."""
    note: str
    """What happened, for the user or the model."""


def bring_back(
    library: Library, name: str, by: Literal["user", "model"], session: str = ""
) -> Back | None:
    """Bring back what is archived under `name`, or say what took its place; None: nothing is.

    Afterwards the library must be looked at anew.
    """
    for _ in range(_MOST_HOPS):
        entry = next(iter(archived_named(library, name)), None)
        if entry is None or (place := _place(library, entry)) is None:
            return None
        key = os.path.basename(entry.folder)
        gate = Gate([place], neighbours=NoNeighbours())
        head = gate.open_place().history.head(live_name(key))
        record = head.record if head is not None else None
        if record is None or not record.partner or record.kind != "archive":
            return _restore(gate, key, entry, record, by, session)
        if (taker := library.find(record.partner)) is not None:
            return Back(taker.name, f"'{entry.name}' is part of '{taker.name}' now")
        name = record.partner
    return None


def _restore(
    gate: Gate, key: str, entry: Entry, record: Record | None, by: str, session: str
) -> Back:
    if by != "user" and (record is None or record.actor != "curator"):
        return Back(
            "",
            f"The user archived the skill '{entry.name}'. They can bring it back:"
            f" tacit restore {live_name(key)}",
        )
    actor: Literal["user", "curator"] = "user" if by == "user" else "curator"
    reason = f"called by its name, by the {by}"
    with acting_as(actor):
        skill = key if "~" in key else live_name(key)
        change = make_change(skill, Restore(), reason=reason, session=session)
        try:
            verdict = gate.propose(change)
        except TacitError as error:
            return Back("", f"The skill '{entry.name}' is archived: {error.message}")
    if not verdict.applied:
        return Back("", f"The skill '{entry.name}' stays archived: {verdict.explain()}")
    return Back(entry.name, f"'{entry.name}' was archived and is back")


def _place(library: Library, entry: Entry) -> Place | None:
    """The place in whose archive a skill lies."""
    real = os.path.realpath(os.path.dirname(entry.root))
    return next((place for place in places_here(library.cwd) if place.real == real), None)


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
    entry = trusted_skill(context.library, call.name, context.session)
    try:
        text, active = render(context.library, entry.name, call.arguments, context.active)
    except NotFound as error:
        raise Failed(error.message) from None
    except OSError as error:
        raise Failed(f"The skill '{entry.name}' cannot be read: {error.strerror}.") from None
    return Result(text, activated=active)


def trusted_skill(library: Library, name: str, session: str = "") -> Entry:
    """The skill that `name` means to a model, back from the archive if need be. Raises `Failed`."""
    entry = library.find(name) or _brought_back(library, name, session)
    if entry is None:
        near = library.suggest(name)
        tail = f" Near: {', '.join(near)}." if near else " search_skills finds the right one."
        raise Failed(f"There is no skill '{name}'.{tail}")
    if entry.state == "untrusted":
        raise Failed(f"The skill '{entry.name}' belongs to a project that the user does not trust.")
    return entry


def _brought_back(library: Library, name: str, session: str) -> Entry | None:
    """The skill that was archived under `name`, back in the library. Raises `Failed`."""
    found = bring_back(library, name, "model", session)
    if found is None:
        return None
    if not found.name:
        raise Failed(found.note)
    library.refresh()
    return library.find(found.name)


async def search_skills(call: SearchSkills, context: Context) -> Result:
    about = " ".join((*project_terms(context.project), *context.user_words[-1:]))
    hits = context.library.search(
        call.query, max(1, min(call.limit, 20)), archived=True, about=about
    )
    meant = [
        hit.entry
        if hit.entry.state != "shadowed"
        else context.library.find(hit.entry.name) or hit.entry  # what run_skill would load
        for hit in hits
    ]
    rows = [
        f"- {entry.name}{_ARCHIVED if entry.state == 'archived' else ''}: {entry.description}"
        for entry in meant
        if entry.state in ("active", "archived") and entry.model_invocable
    ]
    return Result("\n".join(rows) or "(no skill fits)")


SKILL_TOOLS = (
    Tool(
        "run_skill",
        "Load a skill: its instructions come back and hold for the rest of the session.",
        RunSkill,
        run_skill,
    ),
    Tool("search_skills", "Find skills that fit a task.", SearchSkills, search_skills),
)


Action = Literal["create", "edit", "add_file", "remove_file", "archive"]


class ManageSkill(msgspec.Struct, frozen=True):
    action: Action
    name: str
    reason: str = ""
    description: str = ""
    content: str = ""
    old: str = ""
    new: str = ""
    path: str = ""
    project: bool = False


class GitLog(msgspec.Struct, frozen=True):
    name: str = ""
    tag: Literal["skills"] = "skills"
    limit: int = 20


class GitRollback(msgspec.Struct, frozen=True):
    name: str
    version: str = ""
    tag: Literal["skills"] = "skills"


async def manage_skill(call: ManageSkill, context: Context) -> Result:
    operation = _operation(call)

    def propose() -> Verdict:
        gate = open_gate(context)
        root = _root(call, context)
        with acting_as("agent"):
            change = make(_folder(call.name, context), operation, reason=call.reason, root=root)
            change = msgspec.structs.replace(change, session=context.session)
            return gate.propose(change)

    return await _verdict(propose, context)


async def git_log(call: GitLog, context: Context) -> Result:
    def read() -> list[Version]:
        gate = open_gate(context)
        most = max(1, min(call.limit, 200))
        found: list[Version] = []
        for opened in gate.open_places.values():
            log = opened.history.log(_folder(call.name, context)) if call.name else None
            versions = opened.history.latest(most) if log is None else log
            found += [version for version, _ in zip(versions, range(most), strict=False)]
        return sorted(found, key=lambda v: (v.at, v.record.change), reverse=True)[:most]

    try:
        rows = [_row(version) for version in await asyncio.to_thread(read)]
    except TacitError as error:
        raise Failed(error.explain()) from None
    return Result(context.shorten("\n".join(rows)) or "(nothing has been changed yet)")


async def git_rollback(call: GitRollback, context: Context) -> Result:
    def roll_back() -> Verdict:
        gate = open_gate(context)
        entry = context.library.find(call.name)
        root = entry.root if entry is not None else ""
        skill = _folder(call.name, context)
        with acting_as("agent"):
            head = gate.open_place(root).history.head(skill)
            if call.version or head is None:
                return gate.rollback(
                    skill, call.version, root=root, approved=context.approved_by_person
                )
            return gate.undo(head.record.change, root=root, approved=context.approved_by_person)

    return await _verdict(roll_back, context)


def open_gate(context: Context) -> Gate:
    """The gate over every skills folder that can be reached from here."""
    here = [user_place(), *places_here(context.library.cwd)]
    return agent_gate(here, context.session, agreed=context.approved_by_person)


_UNWATCHED: frozenset[Actor] = frozenset({"agent"})


def agent_gate(
    places: Sequence[Place],
    session: str,
    *,
    agreed: bool,
    neighbours: Neighbours | None = None,
) -> Gate:
    """The gate of an agent. `agreed`: a person has said yes to this very call, and that was the
    question. Without one, what it makes is judged as learned from its own session, and waits."""
    if agreed:
        return Gate(places, neighbours=neighbours, approver=lambda effect, asks: "yes")
    from tacit.changes.provenance.deeds import sources
    from tacit.changes.provenance.witness import Witness

    witness = Witness(sources(*own_traces(session)))
    return Gate(places, neighbours=neighbours, always_ask=_UNWATCHED, scanner=witness)


def own_traces(session: str) -> Iterator[Trace]:
    """A session of our own as it stands now; none where nothing was written of it."""
    from tacit.traces.assembler import read_trace
    from tacit.traces.host import Source
    from tacit.traces.host_registry import get
    from tacit.traces.hosts.tacit import session_ids, session_path

    if session and session in session_ids():
        yield read_trace(get(OWN_HOST), Source(OWN_HOST, session_path(session), ""))


async def _verdict(work: Callable[[], Verdict], context: Context) -> Result:
    try:
        verdict = await asyncio.to_thread(work)
    except TacitError as error:
        raise Failed(error.explain()) from None
    context.library.refresh()
    refusal = verdict.refusal
    instead = f"Edit instead: {', '.join(refusal.alternatives)}" if refusal else ""
    text = verdict_text(verdict, instead)
    return Result(text, failed=not verdict.applied, changed="skill" if verdict.applied else "")


def verdict_text(verdict: Verdict, instead: str) -> str:
    """A verdict for the model; `instead` says what to do where there is something better to do."""
    text = "\n".join([verdict.explain(), *verdict.notes])
    if verdict.refusal is not None and verdict.refusal.alternatives:
        text += f"\n{instead}"
    if verdict.outcome == "proposed":
        text += "\nIt waits for the user in the inbox; nothing was changed."
    if verdict.applied:
        text += f"\nThe user can take it back: tacit undo {verdict.change}"
    return text


def _operation(call: ManageSkill) -> Operation:
    """What the call asks for. Raises `Failed` where a part is missing."""
    if call.action == "create":
        if not call.content.strip():
            raise Failed("create needs `content`: the text of SKILL.md, or its body")
        return Create({"SKILL.md": skill_text(call.name, call.description, call.content).encode()})
    if call.action == "edit":
        if not call.old:
            raise Failed("edit needs `old`, which stands in the file once, and `new`")
        return Edit(call.old, call.new, call.path or "SKILL.md")
    if call.action == "archive":
        return Archive()
    if not call.path:
        raise Failed(f"{call.action} needs `path`, relative to the skill's folder")
    if call.action == "remove_file":
        return RemoveFile(call.path)
    return WriteFile(call.path, call.content.encode())


def skill_text(name: str, description: str, content: str) -> str:
    """SKILL.md with this body, or `content` itself where that is one. Raises `Failed`."""
    if content.startswith("---\n"):
        return content
    if not description.strip():
        raise Failed("create needs `description`: what it does and when it is of use")
    import yaml

    head = {"name": name, "description": " ".join(description.split())}
    dumped = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{dumped}---\n\n{content.strip()}\n"


def _root(call: ManageSkill, context: Context) -> str:
    entry = context.library.find(call.name)
    if call.action != "create" and entry is not None:
        return entry.root
    return (project_place(context.library.cwd) if call.project else user_place()).root


def _folder(name: str, context: Context) -> str:
    entry = context.library.find(name)
    return os.path.relpath(entry.folder, entry.root) if entry is not None else name


def _row(version: Version) -> str:
    record = version.record
    what = f"undo of {record.undoes}" if record.undoes else record.kind
    why = f": {record.reason}" if record.reason else ""
    when = f"{version.at:%Y-%m-%d %H:%M}"
    return f"{version.id[:12]} {when} {record.skill} {what} by {record.actor}{why}"


CHANGE_TOOLS = (
    Tool(
        "manage_skill",
        "Make or change a skill: create (description, content), edit (old, new, path), add_file and"
        " remove_file (path, content), archive. The change is checked and recorded first.",
        ManageSkill,
        manage_skill,
        "write",
    ),
    Tool(
        "git_log", "The recorded changes of skills, newest first; of one, or all.", GitLog, git_log
    ),
    Tool(
        "git_rollback",
        "Bring one skill back to a version of git_log; without one, to before its last change.",
        GitRollback,
        git_rollback,
        "write",
    ),
)
