"""Skills as MCP resources and prompts, and the Skills extension of the protocol.

A skill is `skill://NAME/SKILL.md`, its files lie beside that. What is served is what a model may
load here: active, trusted, not kept for the user. The extension lists those whose own name is
theirs and that keep its limits; the others are reached by the tools all the same. Reads only, by
directory handles, so that no link in a skill leads out of it.
"""

import base64
import hashlib
import mimetypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from tacit.agent.tool import Failed
from tacit.skills.library import Entry, Library

if TYPE_CHECKING:
    from tacit.changes.change import Files

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
PAGE = 100
_MOST_FILES, _MOST_BYTES = 512, 16 * 1024 * 1024
"""What every host has to take of one skill."""
_SCHEME = "skill://"


class SkillAddress(NamedTuple):
    """What a `skill://` address names."""

    name: str
    path: str
    """Below the skill's folder; empty for the folder itself."""


def skill_uri(name: str, path: str = "SKILL.md") -> str:
    """The address of a file of a skill."""
    return f"{_SCHEME}{quote(name, safe='')}/{quote(path)}"


def parse_uri(uri: str) -> SkillAddress:
    """The skill and the file that `uri` names. Raises `Failed`."""
    name, _, path = uri.removeprefix(_SCHEME).partition("/")
    if not uri.startswith(_SCHEME) or not name:
        raise Failed(f"'{uri}' is not the address of a skill: {_SCHEME}NAME/SKILL.md")
    return SkillAddress(unquote(name), unquote(path).rstrip("/"))


def served(library: Library) -> list[Entry]:
    """The skills that clients get."""
    return [entry for entry in library.active() if entry.model_invocable]


def served_skill(library: Library, name: str) -> Entry:
    """The skill called `name`, by its own name, if clients get it. Raises `Failed`."""
    entry = library.find(name)
    if entry is None or entry.name != name or entry.state != "active" or not entry.model_invocable:
        raise Failed(f"There is no skill '{name}' here.")
    return entry


def skill_files(entry: Entry) -> "Files":
    """The files of a skill, links left out, with the extension's name for SKILL.md."""
    from tacit.changes.change import Unfit
    from tacit.changes.containment import Folder, read_contents

    try:
        with Folder.at(entry.real or entry.folder) as folder:
            found = read_contents(folder).files
    except Unfit as error:
        raise Failed(f"The skill '{entry.name}' cannot be read: {error.refusal.reason}") from None
    plain = {path: file for path, file in found.items() if file.kind != "link"}
    if entry.file != "SKILL.md" and entry.file in plain:
        plain["SKILL.md"] = plain.pop(entry.file)
    return plain


def read_file(entry: Entry, path: str) -> bytes:
    """The bytes of one file of a skill. Raises `Failed`."""
    files = skill_files(entry)
    if path not in files:
        near = ", ".join(sorted(files)[:40])
        raise Failed(f"The skill '{entry.name}' has no file '{path}'. It has: {near}.")
    return files[path].data


def contents(uri: str, data: bytes) -> dict[str, Any]:
    """A file as `resources/read` gives it."""
    kind = mimetypes.guess_type(uri)[0] or "text/plain"
    if uri.endswith(".md"):
        kind = "text/markdown"
    try:
        return {"uri": uri, "mimeType": kind, "text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"uri": uri, "mimeType": kind, "blob": base64.b64encode(data).decode()}


def extension_skill(entry: Entry) -> dict[str, Any] | None:
    """A skill as the extension describes it; None for one that it has no room for."""
    import yaml

    from tacit.skills.skill_file import read_skill

    try:
        files = skill_files(entry)
        head = yaml.safe_load(read_skill(entry.checked_file).head)
    except (Failed, OSError, yaml.YAMLError):
        return None
    size = sum(len(file.data) for file in files.values())
    if not isinstance(head, dict) or head.get("name") != entry.name:
        return None
    if len(files) > _MOST_FILES or size > _MOST_BYTES:
        return None
    resources = [
        {
            "uri": skill_uri(entry.name, path),
            "digest": f"sha256:{hashlib.sha256(file.data).hexdigest()}",
            "size": len(file.data),
        }
        for path, file in sorted(files.items())
    ]
    return {"uri": skill_uri(entry.name), "frontmatter": _json(head), "resources": resources}


def directory(entry: Entry, path: str) -> list[dict[str, Any]]:
    """What lies in a folder of a skill, as resources. Raises `Failed`."""
    prefix = f"{path}/" if path else ""
    found: dict[str, dict[str, Any]] = {}
    for name, file in sorted(skill_files(entry).items()):
        if not name.startswith(prefix):
            continue
        child, _, below = name[len(prefix) :].partition("/")
        uri = skill_uri(entry.name, prefix + child)
        found.setdefault(
            child,
            {"uri": uri, "name": child, "mimeType": "inode/directory"}
            if below
            else {"uri": uri, "name": child, "size": len(file.data)},
        )
    if not found:
        raise Failed(f"The skill '{entry.name}' has no folder '{path}'.")
    return list(found.values())


def page(items: Sequence[Any], cursor: str | None) -> tuple[Sequence[Any], str | None]:
    """The items of one page, and where the next begins. Raises `Failed` on a cursor not ours."""
    try:
        start = int(cursor or 0)
    except ValueError:
        start = -1
    if not 0 <= start <= len(items):
        raise Failed("That is not a cursor of this list.")
    end = start + PAGE
    return items[start:end], str(end) if end < len(items) else None


def _json(value: Any) -> Any:
    """YAML's dates and other values as JSON has them."""
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_json(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
