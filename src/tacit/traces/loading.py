"""Which skills a tool call loaded, whatever the host: by a skill tool, or by showing a SKILL.md."""

import re
from collections.abc import Iterator
from typing import Any

from tacit.traces import values
from tacit.traces.trace import Kind

_SKILL_FILE = re.compile(r"([^\s/\\\"'`=:;|&<>()]+)[/\\]SKILL\.md", re.IGNORECASE)
# A command that shows a file; one that writes or lists a SKILL.md does not load the skill.
_SHOWS = re.compile(r"^\s*(?:cat|sed|head|tail|less|more|bat|nl|type|get-content)\b[^>]*$", re.I)
# A file in one of the folders that a skill may have beside its SKILL.md.
_SUPPORT = re.compile(
    r"[/\\]([^/\\\s]+)[/\\](?:scripts|references|assets|templates)[/\\][^\s]+$", re.IGNORECASE
)
_COMMAND_END = re.compile(r"&&|\|\||[;|\n]")


def skills_loaded(kind: Kind, arguments: dict[str, Any]) -> Iterator[str]:
    """The names of the skills that a call of this kind, with these arguments, loaded."""
    if kind == "skill":
        for key in ("skill", "name", "skill_name", "command"):
            if name := values.string(arguments.get(key)).strip().strip("/"):
                yield name[:200]
                return
    elif kind == "read":
        for value in arguments.values():
            if isinstance(value, str) and len(value) < 4000 and (m := _SKILL_FILE.search(value)):
                yield m.group(1)
    elif kind == "shell":
        for key in ("command", "cmd", "input"):
            for part in _COMMAND_END.split(values.text(arguments.get(key))[:4000]):
                if _SHOWS.match(part):
                    yield from _SKILL_FILE.findall(part)


def support_file(path: str) -> str:
    """The skill whose support file lies at `path`; empty when it is no such file."""
    found = _SUPPORT.search(path) if re.search(r"[/\\]skills?[/\\]", path) else None
    return found.group(1) if found else ""
