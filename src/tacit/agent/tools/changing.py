"""Tools that change skills, through the gate and on record, and that look at that record.

The agent acts as `agent`: it may make skills and change learned ones; for the user's own ones it
asks first. Where a person has just allowed the call, that was the asking; else the change waits in
the inbox. Whether it may take something back is the gate's to say; a refusal names the command
that the user can run.
"""

import asyncio
import os
from collections.abc import Callable
from typing import Literal

import msgspec

from tacit.agent.tools.tool import Context, Failed, Result, Tool
from tacit.base.errors import TacitError
from tacit.changes.actor import acting_as
from tacit.changes.change import Archive, Create, Edit, Operation, RemoveFile, Verdict, WriteFile
from tacit.changes.change import make_change as make
from tacit.changes.gate import Gate
from tacit.changes.history import Version
from tacit.changes.place import places_here, project_place, user_place

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
        for site in gate.sites.values():
            log = site.history.log(_folder(call.name, context)) if call.name else None
            versions = site.history.latest(most) if log is None else log
            found += [version for version, _ in zip(versions, range(most), strict=False)]
        return sorted(found, key=lambda v: (v.at, v.record.change), reverse=True)[:most]

    try:
        rows = [_row(version) for version in await asyncio.to_thread(read)]
    except TacitError as error:
        raise Failed(f"{error.message}; {error.hint}") from None
    return Result(context.shorten("\n".join(rows)) or "(nothing has been changed yet)")


async def git_rollback(call: GitRollback, context: Context) -> Result:
    def roll_back() -> Verdict:
        gate = open_gate(context)
        entry = context.library.find(call.name)
        root = entry.root if entry is not None else ""
        skill = _folder(call.name, context)
        with acting_as("agent"):
            head = gate.site(root).history.head(skill)
            if call.version or head is None:
                return gate.rollback(skill, call.version, root=root, approved=context.agreed)
            return gate.undo(head.record.change, root=root, approved=context.agreed)

    return await _verdict(roll_back, context)


def open_gate(context: Context) -> Gate:
    """The gate over every skills folder that can be reached from here."""
    here = [user_place(), *places_here(context.library.cwd)]
    agreed = context.agreed
    return Gate(here, approver=lambda case, asks: "yes" if agreed else "later")


async def _verdict(work: Callable[[], Verdict], context: Context) -> Result:
    try:
        verdict = await asyncio.to_thread(work)
    except TacitError as error:
        raise Failed(f"{error.message}; {error.hint}") from None
    context.library.refresh()
    text = "\n".join([verdict.explain(), *verdict.notes])
    if verdict.refusal is not None and verdict.refusal.alternatives:
        text += f"\nEdit instead: {', '.join(verdict.refusal.alternatives)}"
    if verdict.outcome == "proposed":
        text += "\nIt waits for the user in the inbox; nothing was changed."
    if verdict.applied:
        text += f"\nThe user can take it back: tacit undo {verdict.change}"
    return Result(text, failed=not verdict.applied, changed="skill" if verdict.applied else "")


def _operation(call: ManageSkill) -> Operation:
    """What the call asks for. Raises `Failed` where a part is missing."""
    if call.action == "create":
        if not call.content.strip():
            raise Failed("create needs `content`: the text of SKILL.md, or its body")
        return Create({"SKILL.md": _whole(call).encode()})
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


def _whole(call: ManageSkill) -> str:
    if call.content.startswith("---\n"):
        return call.content
    if not call.description.strip():
        raise Failed("create needs `description`: what it does and when it is of use")
    import yaml

    head = {"name": call.name, "description": " ".join(call.description.split())}
    dumped = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{dumped}---\n\n{call.content.strip()}\n"


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


TOOLS = (
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
