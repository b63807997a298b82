"""What a learned skill says of its own origin: by code, whatever the model wrote.

In the frontmatter's `metadata`, where the open standard has room for it: that it was learned, when,
from which sessions and by which model. An edit keeps what stands there and adds its own.
"""

import re
from datetime import date
from typing import Any

import msgspec
import yaml

from tacit.base.terminal import one_line
from tacit.changes.change import SKILL_FILE
from tacit.changes.files import File
from tacit.skills import frontmatter
from tacit.skills.skill import LEARNED_SOURCE

_MOST_SESSIONS = 8
_OWN = ("source", "learned", "revised", "sessions", "learned-by")


class Origin(msgspec.Struct, frozen=True):
    """Where what is learned now comes from."""

    session: str
    model: str
    today: date


def marked(files: dict[str, File], old: dict[str, File], origin: Origin) -> dict[str, File]:
    """`files` with the marks of their origin in SKILL.md; as they are where it has no head.

    The marks that stood in `old` stay, so that an edit cannot change where a skill is from.
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


def _marks(before: dict[str, str], origin: Origin, *, is_new: bool) -> dict[str, str]:
    day = origin.today.isoformat()
    known = [name for name in before.get("sessions", "").split(", ") if name]
    session = one_line(origin.session).replace(",", " ")
    sessions = [*(name for name in known if name != session), session][-_MOST_SESSIONS:]
    marks = {"source": LEARNED_SOURCE, "learned": before.get("learned", "") or day}
    if not is_new:
        marks["revised"] = day
    return marks | {
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


def _with_metadata(head: str, marks: dict[str, str]) -> str | None:
    """`head` with these marks under `metadata`; None where its YAML cannot be trusted.

    All other lines stay as they are written. A mark at the top level, by which a skill says the
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
        {"metadata": marks | kept},
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
