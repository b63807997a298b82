"""Activating a skill: by the model's own call of `run_skill`, or by `/name` in the user's message.

Both ways put the same bytes into the conversation. A skill stays active for the session; when it is
activated again and has not changed, that is said instead of repeating its text. Finding the skill,
and bringing an archived one back, is done in `skill_tools.py`. What a `/name` looks like is said
here for all: commands of the chat, schedules, skills, and completion, which is why this loads fast.
"""

import os
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tacit.base.paths import walk_folders
from tacit.base.patterns import late_pattern

if TYPE_CHECKING:
    from tacit.skills.library import Entry, Library

SLASH_WORD = r"/([^\s/]+)"
_SLASH = late_pattern(rf"{SLASH_WORD}(?:\s+|$)")
_PLACE = late_pattern(r"\$(ARGUMENTS\b|[1-9](?!\d))")
_MOST_FILES = 100


class SlashWord(NamedTuple):
    """A `/name` at the beginning of a message."""

    name: str
    """Without the slash."""
    end: int
    """Where the text after it begins."""


def slash_words(message: str) -> list[SlashWord]:
    """The `/name` words that a message begins with; none for `/` alone, and for a path."""
    found: list[SlashWord] = []
    while match := _SLASH.match(message, found[-1].end if found else 0):
        found.append(SlashWord(match[1], match.end()))
    return found


class Slash(msgspec.Struct, frozen=True):
    """A message that begins with `/name`: the skills in order, and what the model is told."""

    skills: tuple[str, ...]
    text: str
    """The rest of the line; or the literal message, when nothing follows the names."""
    arguments: str


class Unknown(msgspec.Struct, frozen=True):
    """A `/name` that cannot be called, and names near to it."""

    name: str
    near: tuple[str, ...]
    refused: tuple[str, str] = ("", "")
    """Of a skill that is there: why it is not for the user to call, and what to do."""


def parse_slash(message: str, library: "Library") -> Slash | Unknown | None:
    """The skills that a message asks for by `/name`; None for any other message."""
    names: list[str] = []
    at = 0
    for word in slash_words(message):
        entry = library.find(word.name)
        if entry is None or entry.state == "untrusted" or not entry.user_invocable:
            if names:
                break  # `/a /tmp …`: what is no skill belongs to the text
            return Unknown(word.name, tuple(library.suggest(word.name)), _refused(entry))
        if entry.name not in names:
            names.append(entry.name)
        at = word.end
    if not names:
        return None
    rest = message[at:].strip()
    return Slash(tuple(names), rest or message.strip(), rest)


def _refused(entry: "Entry | None") -> tuple[str, str]:
    if entry is None:
        return "", ""
    if entry.state == "untrusted":
        return "came with this project, which you do not trust", "let its skills count: tacit trust"
    return "is for the model to call, not for you", f"see: tacit show {entry.name}"


class Active(msgspec.Struct, frozen=True):
    """A skill that is active in a conversation, in the version that was read."""

    name: str
    digest: str
    folder: str


def render(
    library: "Library", name: str, arguments: str, active: dict[str, Active]
) -> tuple[str, Active]:
    """What a call of `run_skill` returns, and what to remember.

    Raises `NotFound`, and OSError when the skill went away meanwhile.
    """
    from tacit.skills.skill_file import read_skill

    entry = library.get(name)
    now = Active(entry.name, entry.digest, entry.folder)
    given = f"\n\nArguments: {arguments}" if arguments else ""
    if active.get(entry.name) == now:
        text = f'The skill "{entry.name}" is active already and has not changed. Go on with it.'
        return text + given, now
    skill = read_skill(entry.checked_file)
    parts = [substitute(skill.body.strip("\n"), arguments)]
    if files := _files(entry.folder):
        parts.append("\nFiles in the folder (read them when the text above refers to them):")
        parts += [f"- {file}" for file in files]
    if given and "$ARGUMENTS" not in skill.body:
        parts.append(given[1:])
    return wrap(now, "\n".join(parts)), now


def wrap(skill: Active, text: str) -> str:
    """`text` between two marks. The digest in the last one is what no body can foresee."""
    from html import escape

    name, folder = (escape(value, quote=True) for value in (skill.name, skill.folder))
    return f'<skill name="{name}" folder="{folder}">\n{text}\n</skill {skill.digest}>'


def substitute(body: str, arguments: str) -> str:
    """`$ARGUMENTS` is all of them, `$1` to `$9` the single words; what was put in is left alone."""
    words = arguments.split()

    def value(match: re.Match[str]) -> str:
        if match[1] == "ARGUMENTS":
            return arguments
        number = int(match[1])
        return words[number - 1] if number <= len(words) else match[0]

    return _PLACE.sub(value, body)


def _files(folder: str) -> list[str]:
    """Files beside SKILL.md, by name alone, not more than a reader can use."""
    found: list[str] = []
    for here, folders, names in walk_folders(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "node_modules")
        below = (os.path.relpath(os.path.join(here, name), folder) for name in sorted(names))
        found += [path for path in below if path.lower() != "skill.md"]
        if len(found) > _MOST_FILES:
            return [*found[:_MOST_FILES], "… and more"]
    return found
