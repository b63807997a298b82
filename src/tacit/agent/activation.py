"""Activating a skill: by the model's own call of `run_skill`, or by `/name` in the user's message.

Both ways put the same bytes into the conversation. A skill stays active for the session; a second
activation of an unchanged one says so instead of repeating it.
"""

import os
import re

import msgspec

from tacit.skills.library import Library
from tacit.skills.reading import read_skill

_SLASH = re.compile(r"/([^\s/]+)(?:\s+|$)")
_MOST_FILES = 100


class Slash(msgspec.Struct, frozen=True):
    """A message that begins with `/name`: the skills in order, and what the model is told."""

    skills: tuple[str, ...]
    text: str
    """The rest of the line; or the literal message, when nothing follows the names."""
    arguments: str


class Unknown(msgspec.Struct, frozen=True):
    """A `/name` that is no skill, and names near to it."""

    name: str
    near: tuple[str, ...]


def parse_slash(message: str, library: Library) -> Slash | Unknown | None:
    """What a message that begins with `/` asks for; None for any other message."""
    if not message.startswith("/"):
        return None
    names: list[str] = []
    at = 0
    while match := _SLASH.match(message, at):
        entry = library.find(match[1])
        if entry is None or entry.state == "untrusted" or not entry.user_invocable:
            if names:
                break  # `/a /etc/hosts …`: a path after the skill belongs to the text
            return Unknown(match[1], tuple(library.suggest(match[1])))
        names.append(entry.name)
        at = match.end()
    if not names:
        return None  # `/` alone, or a path
    rest = message[at:].strip()
    return Slash(tuple(names), rest or message.strip(), rest)


def call_id(session: str, number: int) -> str:
    """The id of an activation's call: the same for the same place in the same session."""
    return f"skill_{session[:12]}_{number}"


class Active(msgspec.Struct, frozen=True):
    """A skill that is active in a conversation, in the version that was read."""

    name: str
    digest: str
    folder: str


def render(
    library: Library, name: str, arguments: str, active: dict[str, Active]
) -> "tuple[str, Active]":
    """What a call of `run_skill` returns, and what to remember. Raises `NotFound`."""
    entry = library.get(name)
    now = Active(entry.name, entry.digest, entry.folder)
    known = active.get(entry.name)
    if known is not None and known.digest == entry.digest and not arguments:
        return (
            f'The skill "{entry.name}" is active already and has not changed. Go on with it.',
            now,
        )
    skill = read_skill(os.path.join(entry.folder, entry.file))
    body = substitute(skill.body.strip("\n"), arguments)
    files = _files(entry.folder)
    parts = [f'<skill name="{entry.name}" folder="{entry.folder}">', body]
    if files:
        parts.append("\nFiles in the folder (read them when the text above refers to them):")
        parts += [f"- {file}" for file in files]
    if arguments and not _uses_arguments(skill.body):
        parts.append(f"\nArguments: {arguments}")
    parts.append("</skill>")
    return "\n".join(parts), now


def substitute(body: str, arguments: str) -> str:
    """`$ARGUMENTS` is all of them, `$1` to `$9` the single words."""
    if not _uses_arguments(body):
        return body
    words = arguments.split()
    body = body.replace("$ARGUMENTS", arguments)

    def word(match: re.Match[str]) -> str:
        number = int(match[1])
        return words[number - 1] if number <= len(words) else match[0]

    return re.sub(r"\$([1-9])(?!\d)", word, body) if words else body


def _uses_arguments(body: str) -> bool:
    return "$ARGUMENTS" in body or re.search(r"\$[1-9](?!\d)", body) is not None


def _files(folder: str) -> list[str]:
    found: list[str] = []
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        found.extend(os.path.relpath(os.path.join(here, n), folder) for n in sorted(names))
    found = [path for path in found if path.lower() != "skill.md"]
    return found[:_MOST_FILES]
