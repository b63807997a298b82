"""What a face shows as text: events, calls and times in words, and what a call would do.

Text in, text out, free of control characters. Light, because the first frame imports it.
"""

import json
import os
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tacit.agent import agent_events
from tacit.agent.agent_events import subject_of
from tacit.base.display import fit, headless_diff, one_line, pad, plain, unified_diff, width

if TYPE_CHECKING:
    from tacit.agent.tool_approval import ApprovalRequest


def call_subject(arguments: dict[str, Any]) -> str:
    """What a call is about, on one line: its command, its path, else its first word-like value."""
    values = (subject_of(arguments), *arguments.values())
    return next((one_line(v) for v in values if isinstance(v, str) and v.strip()), "")


def shown_seconds(taken: float) -> str:
    """`0.2 s`, `12 s`, `3 min 20 s`."""
    if taken < 9.95:
        return f"{taken:.1f} s"
    whole = round(taken)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def arguments_text(arguments: dict[str, Any]) -> str:
    """The arguments of a call, each under its name; long texts as they are, not as JSON."""
    lines = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\n" in text:
            inside = "\n".join(f"  {line}" for line in text.splitlines())
            lines.append(f"{name}:\n{inside}")
        else:
            lines.append(f"{name}: {text}")
    return plain("\n".join(lines))


def event_notice(event: agent_events.AnyEvent) -> tuple[str, str]:
    """What an event says beside the answer and the calls, and its kind; empty for most."""
    match event:
        case agent_events.Skill(name=name, by=by):
            return f"{name}, called by {'you' if by == 'user' else 'the model'}", "skill"
        case agent_events.Notice(text=text):
            return text, "warning"
        case agent_events.Compacted(tokens=tokens):
            return f"the conversation grew to {tokens:,} tokens; it goes on from a summary", "note"
        case agent_events.Restarted(why=why, seconds=wait):
            return f"{why}; again in {shown_seconds(wait)}", "warning"
        case agent_events.Error(why=why, hint=hint):
            return f"{why}\n{hint}".strip(), "error"
        case agent_events.End(reason=reason) if reason not in ("done", "interrupted", "error"):
            return f"stopped: the limit on {reason} was reached", "warning"
    return "", ""


def first_lines(text: str, most: int) -> tuple[str, int]:
    """The first `most` lines of `text`, and how many are left."""
    lines = plain(text).splitlines()
    return "\n".join(lines[:most]), max(len(lines) - most, 0)


class CommandAnswer(msgspec.Struct, frozen=True):
    """Text, a diff under it, and what the face does next."""

    text: str
    diff: str = ""
    next_step: Literal["", "quit", "reopened"] = ""


def two_columns(rows: list[tuple[str, str]], most: int = 24) -> str:
    """Two columns; a face wraps what is longer than its width."""
    first = min(max(width(left) for left, _ in rows), most)
    return "\n".join(f"{pad(left, first)}  {fit(right, 200)}".rstrip() for left, right in rows)


_MOST_BYTES = 1_000_000


def call_preview(request: "ApprovalRequest", project: str) -> tuple[str, str]:
    """The text to show, and what it is: `command`, `diff` or `text`.

    Every argument is in it: the yes is to what is seen.
    """
    if request.power == "command":
        return plain(request.subject), "command"
    arguments = request.arguments
    if request.tool in ("add_schedule", "patch_schedule"):
        return _schedule_text(arguments), "text"
    if request.tool in ("remember", "forget"):
        return _standing_facts(request.subject, project) + arguments_text(arguments), "text"
    old, new, content = (arguments.get(key) for key in ("old", "new", "content"))
    name = plain(request.subject)
    if old and isinstance(old, str) and isinstance(new, str):
        return _others(arguments, "old", "new") + _short_diff(old, new, name), "diff"
    writes = request.tool == "write_file"
    if isinstance(content, str) and request.subject and (content or writes):
        standing = _standing_text(request.subject, project) if writes else ""
        return _others(arguments, "content") + _short_diff(standing, content, name), "diff"
    return arguments_text(arguments), "text"


def _others(arguments: dict[str, object], *shown: str) -> str:
    """What a call says beside the text that it changes, above the diff of that."""
    said = {key: value for key, value in arguments.items() if value and key not in shown}
    return f"{arguments_text(said)}\n" if said else ""


def _schedule_text(arguments: dict[str, object]) -> str:
    """What a schedule would bind, with its exact times first."""
    from tacit.work.schedule_requests import preview as times

    return plain("\n".join(part for part in (times(arguments), arguments_text(arguments)) if part))


def _standing_facts(name: str, project: str) -> str:
    """What stands under the name of a fact now: that is what would go."""
    from tacit.skills.fact import facts_here

    found = [fact for fact in facts_here(project) if fact.name == name]
    return "".join(f"now, in {fact.scope}: {plain(fact.says)}\n" for fact in found)


def _short_diff(before: str, after: str, name: str) -> str:
    lines = plain(headless_diff(unified_diff(before, after, name, name))).splitlines()
    return "\n".join(line for line in lines if not line.startswith("\\ "))


def _standing_text(path: str, project: str) -> str:
    """What the file holds now; nothing for one that is outside the project, large or no text."""
    root = os.path.realpath(project)
    real = os.path.realpath(os.path.join(root, path))
    try:
        if not real.startswith(root + os.sep) or os.path.getsize(real) > _MOST_BYTES:
            return ""
        with open(real, "rb") as file:
            return file.read().decode("utf-8")
    except (OSError, ValueError):
        return ""
