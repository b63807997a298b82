"""Earlier sessions as people remember them: when, about what, and what was said.

Reads Tacit's session files line by line, without the provider's library, so that a list of
sessions costs nothing. Resuming itself is the agent's.
"""

import json
import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec

from tacit.base import paths
from tacit.base.display import one_line

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
    folder = _sessions_folder()
    names = sorted((n for n in _names_in(folder) if n.endswith(".jsonl")), reverse=True)
    found: list[PastSession] = []
    for name in names:
        if len(found) == most:
            break
        past = _read_head(os.path.join(folder, name))
        if past is not None and past.prompts and project in ("", past.project):
            found.append(past)
    return found


def spoken_in(session: str) -> list[Spoken]:
    """What was said and done in a session, in order."""
    found: list[Spoken] = []
    names: dict[str, str] = {}
    for line in _lines(os.path.join(_sessions_folder(), f"{session}.jsonl")):
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


def _read_head(path: str) -> PastSession | None:
    title, prompts, project, at = "", 0, "", None
    for line in _lines(path):
        if line.get("type") == "session":
            project, at = str(line.get("project", "")), _moment(line.get("at"))
        elif line.get("type") == "prompt":
            prompts += 1
            title = title or one_line(str(line.get("text", "")))
    name = os.path.basename(path).removesuffix(".jsonl")
    return PastSession(name, project, at, title, prompts)


def _lines(path: str) -> Iterator[dict[str, Any]]:
    """The lines that people care about; messages as sent are passed over unread."""
    try:
        with open(path, "rb") as file:
            for number, data in enumerate(file):
                if number > _MOST_LINES:
                    return
                if b'"type":"message"' in data[:200] or b'"type":"return"' in data[:200]:
                    continue
                try:
                    line = json.loads(data)
                except ValueError:
                    continue  # cut off by a kill
                if isinstance(line, dict):
                    yield line
    except OSError:
        return


def _moment(at: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(at))
    except ValueError:
        return None


def _sessions_folder() -> str:
    return os.path.join(paths.folders().data, "sessions")


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
