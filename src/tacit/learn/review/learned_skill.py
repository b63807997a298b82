"""What a learned skill is called, and what it says of its own origin.

A name must be that of a class of work, not of a ticket, an error or a day, as far as a program can
see that. The origin is written into the frontmatter's `metadata` by code, whatever the model
wrote: that the skill was learned, when, from which sessions and by which model. An edit keeps what
stands there and says when and by which model it was revised; a skill of the user's own, which they
opted in, was revised and never learned.
"""

import re
from collections.abc import Collection, Iterator
from datetime import date
from typing import Any

import msgspec
import yaml

from tacit.base.display import one_line
from tacit.changes.change import (
    SKILL_FILE,
    Change,
    Create,
    File,
    FileOperation,
    Unfit,
    bytes_of,
)
from tacit.changes.file_edits import Merged, apply_operations, merge_files
from tacit.changes.gate import Gate
from tacit.learn.background.staging import operations_between
from tacit.skills import frontmatter
from tacit.skills.skill import LEARNED_SOURCE, MAX_NAME, name_faults

_TICKET = re.compile(
    r"(?:^|-)(?:pr|mr|issue|issues|ticket|bug|jira|gh|task|story|epic|case|incident|inc|cve|rfc)"
    r"-?\d+(?:-|$)|(?:^|-)[a-z]{2,6}-\d{2,}(?:-|$)|\d{4,}"
)
_DATE = re.compile(
    r"(?:^|-)(?:today|yesterday|tomorrow|tonight|this-week|monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday|january|february|april|june|july|august|september|october|november|december)"
    r"(?:-|$)|(?:19|20)\d\d"
)
_ERROR = re.compile(
    r"[a-z]+(?:error|exception)(?:-|$)|(?:^|-)(?:traceback|segfault|stacktrace|errno|exit-code)"
    r"(?:-|$)|(?:^|-)e\d{3,}(?:-|$)|(?:^|-)(?:error|exception)-\d+"
)
_HASH = re.compile(r"(?:^|-)(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?:-|$)")
# `fix-…` and its like name what was done once, not how such things are done.
_DEED = re.compile(r"^(?:fix|fixed|fixing|debug|debugged|hotfix|patch|workaround|quick-fix)-")
_SESSION = re.compile(r"(?:^|-)(?:session|conversation|transcript)-?\d*$")


def unfit_name(name: str) -> str:
    """Why `name` is not one for a class of work; empty where it may be."""
    if not name or len(name) > MAX_NAME:
        return f"a name has 1 to {MAX_NAME} characters"
    if wrong := name_faults(name):
        return f"the name {wrong[0]}"
    for pattern, what in (
        (_DATE, "a day"),
        (_TICKET, "a ticket or a number"),
        (_HASH, "a commit"),
        (_ERROR, "an error message"),
        (_DEED, "what was done once"),
        (_SESSION, "a session"),
    ):
        if pattern.search(name):
            return f"'{name}' names {what}, not a class of work"
    return ""


_MOST_SESSIONS = 8
_OWN = ("source", "learned", "learned-by", "revised", "revised-by", "sessions")


class SkillOrigin(msgspec.Struct, frozen=True):
    """Where what is learned now comes from."""

    session: str
    model: str
    today: date


class Signed(msgspec.Struct, frozen=True):
    """A change with its origin written into it, made on what stands there now."""

    change: Change
    onto: dict[str, File] = {}
    """The skill as it stands, which the change was made on; nothing for a new one."""
    conflicts: tuple[str, ...] = ()
    """The files in which others changed the same lines meanwhile. Then nothing was written in: the
    gate lets the change wait, with both sides."""


def sign(gate: Gate, change: Change, origin: SkillOrigin) -> Signed:
    """`change`, brought onto what was changed since it was made, with its origin.

    The origin is written last, and not by the model: two reviews at once both write it, and as a
    part of what they made of the skill it would set them against each other each time.
    """
    first = change.operations[0]
    if isinstance(first, Create):
        skill = {SKILL_FILE: File(first.files.get(SKILL_FILE, b""))}
        files = first.files | bytes_of(with_origin(skill, {}, origin))
        create = msgspec.structs.replace(first, files=files)
        return Signed(msgspec.structs.replace(change, operations=(create,)))
    now = gate.state_of(change.skill, change.root)
    if not now.is_live or now.head is None:
        return Signed(change)  # the gate says that it is gone
    history = gate.open_place(change.root).history
    old, current = history.files(history.version(change.base)), now.contents.files
    try:
        wanted = apply_operations(
            old, [op for op in change.operations if isinstance(op, FileOperation)]
        )
    except Unfit:
        return Signed(change, current)
    merged = (
        Merged(wanted)
        if now.head.id == change.base
        else merge_files(old, current, wanted, labels=("as it is now", "the review"))
    )
    if merged.conflicts or merged.files == current:
        return Signed(change, current, merged.conflicts)
    operations = operations_between(current, with_origin(merged.files, current, origin))
    replaced = msgspec.structs.replace(change, base=now.head.id, operations=operations)
    return Signed(replaced, current)


_OVERTAKEN = 10


def signings(gate: Gate, change: Change, origin: SkillOrigin) -> Iterator[Signed]:
    """`change` signed, to be put before the gate; again where it was overtaken on the way there.

    Whoever is content with what the gate says of one asks for no more.
    """
    before: Signed | None = None
    for _ in range(_OVERTAKEN):
        signed = sign(gate, change, origin)
        if signed == before:
            return
        yield signed
        before = signed


def with_origin(
    files: dict[str, File], old: dict[str, File], origin: SkillOrigin
) -> dict[str, File]:
    """`files` with their origin in the metadata of SKILL.md; as they are where it has no head.

    The origin that stood in `old` stays, so that an edit cannot change where a skill is from.
    """
    file = files.get(SKILL_FILE)
    if file is None or file.kind == "link":
        return files
    text = file.data.decode("utf-8", "replace").replace("\r\n", "\n")
    parts = frontmatter.split(text)
    if parts.head is None or any(p.code == "unclosed-frontmatter" for p in parts.problems):
        return files  # the gate says what is wrong with it
    head = with_metadata(parts.head, _marks(metadata_of(old), origin, is_new=not old))
    if head is None:
        return files
    made = f"---\n{head}\n---\n{parts.body}"
    return files | {SKILL_FILE: msgspec.structs.replace(file, data=made.encode())}


def _marks(before: dict[str, str], origin: SkillOrigin, *, is_new: bool) -> dict[str, str]:
    day = origin.today.isoformat()
    known = [name for name in before.get("sessions", "").split(", ") if name]
    session = one_line(origin.session).replace(",", " ")
    sessions = [*(name for name in known if name != session), session][-_MOST_SESSIONS:]
    model = one_line(origin.model) or "unknown"
    metadata = {"source": LEARNED_SOURCE}
    if is_new:
        metadata |= {"learned": day, "learned-by": model}
    else:
        metadata |= {key: before[key] for key in ("learned", "learned-by") if before.get(key)}
        metadata |= {"revised": day, "revised-by": model}
    return metadata | {"sessions": ", ".join(sessions)}


def metadata_of(files: dict[str, File]) -> dict[str, str]:
    file = files.get(SKILL_FILE)
    if file is None:
        return {}
    parts = frontmatter.split(file.data.decode("utf-8", "replace").replace("\r\n", "\n"))
    values, _ = frontmatter.parse(parts.head or "", 1)
    return _strings(values.get("metadata"))


def _strings(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {str(key): inner for key, inner in value.items() if isinstance(inner, str)}


def with_metadata(head: str, metadata: dict[str, str], own: Collection[str] = _OWN) -> str | None:
    """`head` with these keys under `metadata`; None where its YAML cannot be trusted.

    What stood there under a key of `own` goes; other keys stay.

    All other lines stay as they are written. A new skill's mark at the top level is left to the one
    under `metadata`; the user's, by which they opted in, stays where they wrote it.
    """
    values, problems = frontmatter.parse(head, 1)
    if any(problem.severity == "error" for problem in problems) and "name" not in values:
        return None
    kept = {k: v for k, v in _strings(values.get("metadata")).items() if k not in own}
    lines = _without(head, "metadata")
    if values.get("source") == LEARNED_SOURCE and "learned" in metadata:
        lines = _without("\n".join(lines), "source")
    elif values.get("source") == LEARNED_SOURCE:
        metadata = {key: value for key, value in metadata.items() if key != "source"}
    block = yaml.safe_dump(
        {"metadata": metadata | kept},
        sort_keys=False,
        allow_unicode=True,
        width=100_000,
        default_flow_style=False,
    )
    return "\n".join([*lines, block.rstrip("\n")])


def _without(head: str, key: str) -> list[str]:
    """The lines of `head` but for a top-level key and what is indented below it."""
    out: list[str] = []
    skipping = False
    for line in head.split("\n"):
        if re.match(rf"{key}\s*:", line):
            skipping = True
        elif skipping and (not line.strip() or line[0] in " \t" or line.startswith("- ")):
            continue
        else:
            skipping = False
            out.append(line)
    return out
