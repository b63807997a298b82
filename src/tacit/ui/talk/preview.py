"""What a call would do, shown before it is allowed: the command, or the change as a diff."""

import os

from tacit.agent.approval import Request
from tacit.base.terminal import plain

_MOST_BYTES = 1_000_000


def preview(request: Request, project: str) -> tuple[str, str]:
    """The text to show, and what it is: `command`, `diff` or `text`."""
    from tacit.ui.talk.words import arguments_text

    if request.power == "command":
        return plain(request.subject), "command"
    arguments = request.arguments
    if request.tool in ("add_schedule", "patch_schedule"):
        return _scheduled(arguments), "text"
    old, new = _text(arguments, "old", "old_string"), _text(arguments, "new", "new_string")
    name = plain(request.subject)
    if old is not None and new is not None:
        return _diff(old, new, name), "diff"
    content = _text(arguments, "content", "text", "file_text")
    if content is not None and request.subject:
        return _diff(_standing(request.subject, project), content, name), "diff"
    return arguments_text(arguments), "text"


def _scheduled(arguments: dict[str, object]) -> str:
    """What a schedule would bind, with its exact times first."""
    from tacit.ui.talk.words import arguments_text
    from tacit.work.schedules.tools import preview as times

    return plain("\n".join(part for part in (times(arguments), arguments_text(arguments)) if part))


def _diff(before: str, after: str, name: str) -> str:
    from tacit.agent.tools.files import diff

    lines = plain(diff(before, after, name)).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("--- ", "+++ ")))


def _text(arguments: dict[str, object], *names: str) -> str | None:
    for name in names:
        if isinstance(value := arguments.get(name), str):
            return value
    return None


def _standing(path: str, project: str) -> str:
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
