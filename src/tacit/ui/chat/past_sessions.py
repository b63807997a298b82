"""Earlier sessions as people remember them: when, about what, and what was said.

Messages as they were sent are passed over unread, so that a list of sessions costs little. Reading
the file is `traces/hosts/tacit.py`'s, resuming the agent's.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Literal

import msgspec

from tacit.base.display import one_line
from tacit.traces import values
from tacit.traces.hosts.tacit import read_lines, session_ids, session_path

_MOST_LINES = 200_000


class Spoken(msgspec.Struct, frozen=True):
    """One thing that was said or done."""

    who: Literal["you", "agent", "tool", "skill"]
    text: str
    failed: bool = False


class PastSession(msgspec.Struct, frozen=True):
    """A session by its head."""

    id: str
    project: str
    at: datetime | None
    title: str
    """What the user said first, on one line."""
    prompts: int


def past_sessions(project: str = "", most: int = 20) -> list[PastSession]:
    """The latest sessions with something said in them, newest first; of one project, or of all."""
    heads = (_read_head(session) for session in session_ids())
    found = (head for head in heads if head.prompts and project in ("", head.project))
    return list(islice(found, most))


def spoken_in(session: str) -> list[Spoken]:
    """What was said and done in a session, in order."""
    found: list[Spoken] = []
    names: dict[str, str] = {}
    for line in _lines(session):
        kind, text = line.get("type"), line.get("text")
        if kind == "prompt" and isinstance(text, str):
            found.append(Spoken("you", text))
        elif kind == "text" and isinstance(text, str):
            found.append(Spoken("agent", text))
        elif kind == "call":
            names[str(line.get("id"))] = _call_text(line)
        elif kind == "result":
            what = names.get(str(line.get("id")), "")
            found.append(Spoken("tool", what, line.get("failed") is True))
        elif kind == "skill":
            found.append(Spoken("skill", str(line.get("name"))))
    return found


def last_turns(spoken: list[Spoken], turns: int) -> tuple[list[Spoken], int]:
    """The part of `spoken` from the last `turns` prompts on, and how many prompts came before."""
    starts = [i for i, one in enumerate(spoken) if one.who == "you"]
    if len(starts) <= turns:
        return spoken, 0
    return spoken[starts[-turns] :], len(starts) - turns


def _call_text(line: dict[str, Any]) -> str:
    from tacit.ui.chat.event_text import call_subject

    arguments = line.get("arguments")
    about = call_subject(arguments) if isinstance(arguments, dict) else ""
    return one_line(f"{line.get('name')} {about}")


def _read_head(session: str) -> PastSession:
    title, prompts, project, at = "", 0, "", None
    for line in _lines(session):
        if line.get("type") == "session":
            project, at = str(line.get("project", "")), values.when(line.get("at"))
        elif line.get("type") == "prompt":
            prompts += 1
            title = title or one_line(str(line.get("text", "")))
    return PastSession(session, project, at, title, prompts)


def _lines(session: str) -> Iterator[dict[str, Any]]:
    """The lines that people care about."""
    try:
        for line, _ in islice(read_lines(session_path(session), "message", "return"), _MOST_LINES):
            yield line
    except OSError:
        return
