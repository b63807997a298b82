"""What a call would do, shown before it is allowed: the command, or the change as a diff."""

import os

from tacit.agent.approval import Request
from tacit.base.terminal import plain
from tacit.ui.talk.words import arguments_text

_MOST_BYTES = 1_000_000
_IN_THE_DIFF = ("path", "name", "old", "old_string", "new", "new_string", "content", "text",
                "file_text")  # fmt: skip


def preview(request: Request, project: str) -> tuple[str, str]:
    """The text to show, and what it is: `command`, `diff` or `text`."""
    if request.power == "command":
        return plain(request.subject), "command"
    arguments = request.arguments
    if request.tool in ("add_schedule", "patch_schedule"):
        return _scheduled(arguments), "text"
    if request.tool in ("remember", "forget"):
        return _noted(request.subject, project) + arguments_text(arguments), "text"
    old, new = _text(arguments, "old", "old_string"), _text(arguments, "new", "new_string")
    name = plain(request.subject)
    content = _text(arguments, "content", "text", "file_text")
    if old and new is not None:
        return _about(arguments) + _diff(old, new, name), "diff"
    writes = request.tool == "write_file"
    if request.subject and (content or (writes and content is not None)):
        standing = _standing(request.subject, project) if writes else ""
        return _about(arguments) + _diff(standing, content, name), "diff"
    return arguments_text(arguments), "text"


def _about(arguments: dict[str, object]) -> str:
    """What a call says beside the text that it changes, above the diff of that."""
    said = {key: value for key, value in arguments.items() if value and key not in _IN_THE_DIFF}
    return f"{arguments_text(said)}\n" if said else ""


def _scheduled(arguments: dict[str, object]) -> str:
    """What a schedule would bind, with its exact times first."""
    from tacit.work.schedules.tools import preview as times

    return plain("\n".join(part for part in (times(arguments), arguments_text(arguments)) if part))


def _noted(name: str, project: str) -> str:
    """What stands under the name of a fact now: that is what would go."""
    from tacit.skills.memory import facts_here

    found = [fact for fact in facts_here(project) if fact.name == name]
    return "".join(f"now, in {fact.scope}: {plain(fact.says)}\n" for fact in found)


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
