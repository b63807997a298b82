"""What a call would do, shown before it is allowed: the command, or the change as a diff."""

import os

from tacit.agent.tool_approval import ApprovalRequest
from tacit.base.display import plain, unified_diff
from tacit.ui.chat.event_text import arguments_text

_MOST_BYTES = 1_000_000
_DIFF_ARGUMENTS = ("path", "name", "old", "old_string", "new", "new_string", "content", "text",
                "file_text")  # fmt: skip


def call_preview(request: ApprovalRequest, project: str) -> tuple[str, str]:
    """The text to show, and what it is: `command`, `diff` or `text`."""
    if request.power == "command":
        return plain(request.subject), "command"
    arguments = request.arguments
    if request.tool in ("add_schedule", "patch_schedule"):
        return _schedule_text(arguments), "text"
    if request.tool in ("remember", "forget"):
        return _standing_facts(request.subject, project) + arguments_text(arguments), "text"
    old, new = (
        _text_argument(arguments, "old", "old_string"),
        _text_argument(arguments, "new", "new_string"),
    )
    name = plain(request.subject)
    content = _text_argument(arguments, "content", "text", "file_text")
    if old and new is not None:
        return _other_arguments(arguments) + _short_diff(old, new, name), "diff"
    writes = request.tool == "write_file"
    if request.subject and (content or (writes and content is not None)):
        standing = _standing_text(request.subject, project) if writes else ""
        return _other_arguments(arguments) + _short_diff(standing, content, name), "diff"
    return arguments_text(arguments), "text"


def _other_arguments(arguments: dict[str, object]) -> str:
    """What a call says beside the text that it changes, above the diff of that."""
    said = {key: value for key, value in arguments.items() if value and key not in _DIFF_ARGUMENTS}
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
    lines = plain(unified_diff(before, after, name, name)).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("--- ", "+++ ", "\\ ")))


def _text_argument(arguments: dict[str, object], *names: str) -> str | None:
    for name in names:
        if isinstance(value := arguments.get(name), str):
            return value
    return None


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
