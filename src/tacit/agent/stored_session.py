"""The file of one of our own sessions as the agent reads it back in order to resume.

The format is Tacit's own trace format (`traces/hosts/tacit.py`), so `tacit session` reads it like
any other host's. Events are for readers; beside them stand notes, which are for resuming. What
belongs together is written at once with its note last, so whatever follows the last note was cut
off by a kill and is dropped.
"""

import json
import os
import secrets
import time
from typing import TYPE_CHECKING, Any

from tacit.base import paths
from tacit.base.errors import NotFound
from tacit.traces.hosts.tacit import NOTES

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage


def session_file(session: str) -> str:
    """The file of the session whose id begins with `session`. Raises `NotFound`."""
    folder = sessions_folder()
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = [name for name in names if name.startswith(session) and name.endswith(".jsonl")]
    if len(found) != 1:
        many = f"{len(found)} sessions begin" if found else "no session begins"
        raise NotFound(f"{many} with '{session}'", "see them: tacit sessions")
    return os.path.join(folder, found[0])


def latest_session(project: str) -> str:
    """The id of the last session in `project` where something was said. Raises `NotFound`."""
    folder = sessions_folder()
    names = [n for n in os.listdir(folder) if n.endswith(".jsonl")] if os.path.isdir(folder) else []
    for name in sorted(names, reverse=True):
        if _is_of(os.path.join(folder, name), project):
            return name.removesuffix(".jsonl")
    raise NotFound(f"there is no earlier session in {project}", "start one: tacit chat")


def sessions_folder() -> str:
    return os.path.join(paths.folders().data, "sessions")


def new_session_id() -> str:
    """An id that sorts by time."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(4)


def read_whole(path: str) -> list[dict[str, Any]]:
    """The lines up to and with the last note."""
    return _read(path)[0]


def drop_cut_off(path: str) -> None:
    """Take away what a kill left behind the last note. Only for whoever holds the session."""
    _, end = _read(path)
    if end < os.path.getsize(path):
        os.truncate(path, end)


def _read(path: str) -> tuple[list[dict[str, Any]], int]:
    found: list[dict[str, Any]] = []
    whole, end, at = 0, 0, 0
    with open(path, "rb") as file:
        for text in file:
            at += len(text)
            line = _decode(text)
            if line is None:
                continue
            found.append(line)
            if line.get("type") in (*NOTES, "session"):
                whole, end = len(found), at
    return found[:whole], end


def _is_of(path: str, project: str) -> bool:
    with open(path, "rb") as file:
        if (_decode(file.readline()) or {}).get("project") != project:
            return False
        return any((_decode(text) or {}).get("type") == "message" for text in file)


def _decode(text: bytes) -> dict[str, Any] | None:
    if not text.endswith(b"\n"):
        return None
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def dump(message: "ModelMessage") -> Any:
    """A message as plain data."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


def load(data: Any) -> "ModelMessage":
    """A message from plain data."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.validate_python([data])[0]


def dump_part(part: Any) -> Any:
    """A part of a request as plain data."""
    from pydantic_ai.messages import ModelRequest

    return dump(ModelRequest(parts=[part]))["parts"][0]


def load_part(data: Any) -> Any:
    """A part of a request from plain data."""
    return load({"kind": "request", "parts": [data]}).parts[0]
