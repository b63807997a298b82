"""What a learned skill is called, and what it says of its own origin.

A name must be that of a class of work, not of a ticket, an error or a day, as far as a program can
see that. The origin is written into the frontmatter's `metadata` by code, whatever the model
wrote: that the skill was learned, when, from which sessions and by which model. An edit keeps what
stands there and adds its own.
"""

import re
from datetime import date
from typing import Any

import msgspec
import yaml

from tacit.base.display import one_line
from tacit.changes.change import SKILL_FILE, File
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
_OWN = ("source", "learned", "revised", "sessions", "learned-by")


class SkillOrigin(msgspec.Struct, frozen=True):
    """Where what is learned now comes from."""

    session: str
    model: str
    today: date


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
    before = _metadata(old)
    new = _marks(before, origin, is_new=not old)
    head = _with_metadata(parts.head, new)
    if head is None:
        return files
    made = f"---\n{head}\n---\n{parts.body}"
    return files | {SKILL_FILE: msgspec.structs.replace(file, data=made.encode())}


def _marks(before: dict[str, str], origin: SkillOrigin, *, is_new: bool) -> dict[str, str]:
    day = origin.today.isoformat()
    known = [name for name in before.get("sessions", "").split(", ") if name]
    session = one_line(origin.session).replace(",", " ")
    sessions = [*(name for name in known if name != session), session][-_MOST_SESSIONS:]
    metadata = {"source": LEARNED_SOURCE, "learned": before.get("learned", "") or day}
    if not is_new:
        metadata["revised"] = day
    return metadata | {
        "sessions": ", ".join(sessions),
        "learned-by": one_line(origin.model) or "unknown",
    }


def _metadata(files: dict[str, File]) -> dict[str, str]:
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


def _with_metadata(head: str, metadata: dict[str, str]) -> str | None:
    """`head` with these keys under `metadata`; None where its YAML cannot be trusted.

    All other lines stay as they are written. A key at the top level, by which a skill says the
    same of itself, is left to the one under `metadata`.
    """
    values, problems = frontmatter.parse(head, 1)
    if any(problem.severity == "error" for problem in problems) and "name" not in values:
        return None
    kept = {k: v for k, v in _strings(values.get("metadata")).items() if k not in _OWN}
    lines = _without(head, "metadata")
    if values.get("source") == LEARNED_SOURCE:
        lines = _without("\n".join(lines), "source")
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
