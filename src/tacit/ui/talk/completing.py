"""Completion of what is being typed: `/skill` and `/command` at the beginning, `@file` anywhere."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from tacit.base.terminal import one_line
from tacit.ui.talk import fuzzy

if TYPE_CHECKING:
    from tacit.skills.library import Entry

Kind = Literal["skill", "command", "file", "scheduled"]
_SLASHES = re.compile(r"(?:/[^\s/]+\s+)*(/[^\s/]*)\Z")
_FILE = re.compile(r"(?:^|\s)(@\S*)\Z")
_PASSED_OVER = {".git", ".hg", ".jj", "node_modules", "__pycache__", ".venv", "venv"}
_MOST_FILES = 50_000


class Token(msgspec.Struct, frozen=True):
    """The word at the cursor that can be completed."""

    kind: Literal["slash", "file"]
    start: int
    end: int
    text: str
    """Without its mark."""


class Candidate(msgspec.Struct, frozen=True):
    """Something that the word could become."""

    kind: Kind
    name: str
    about: str = ""

    @property
    def inserted(self) -> str:
        return f"@{self.name}" if self.kind == "file" else f"/{self.name}"


def token_at(text: str, cursor: int) -> Token | None:
    """The word before the cursor, if it begins with a mark that stands where it counts."""
    before = text[:cursor]
    if match := _SLASHES.match(before):
        return Token("slash", match.start(1), cursor, match[1][1:])
    if match := _FILE.search(before):
        return Token("file", match.start(1), cursor, match[1][1:])
    return None


def slash_candidates(
    query: str,
    skills: "Iterable[Entry]",
    commands: Iterable[tuple[str, str]],
    scheduled: Iterable[tuple[str, str]] = (),
) -> list[Candidate]:
    """Skills first, then commands, then skills that run by schedule; a nearer name goes before.

    Where no letter of the name fits, a word of the description will do.
    """
    ranked: list[tuple[int, int, float, int, Candidate]] = []

    def consider(group: int, candidate: Candidate) -> None:
        worth = fuzzy.score(query, candidate.name)
        if worth <= 0 and not (len(query) > 2 and query.casefold() in candidate.about.casefold()):
            return
        tier = 0 if worth >= 300 or not query else 1 if worth > 0 else 2
        tier = 3 if candidate.kind == "scheduled" else tier  # below everything else
        order = worth if query else 0.0
        ranked.append((tier, group, -order, len(ranked), candidate))

    for entry in sorted(skills, key=lambda entry: entry.name):
        if entry.user_invocable:
            consider(0, Candidate("skill", entry.name, one_line(entry.description)))
    for name, about in commands:
        consider(1, Candidate("command", name, about))
    for name, about in scheduled:
        consider(2, Candidate("scheduled", name, one_line(about)))
    # A name typed in full is meant, whatever it is.
    ranked.sort(key=lambda row: (row[4].name != query, *row[:4]))
    return [row[4] for row in ranked]


def file_candidates(query: str, files: Sequence[str], most: int = 30) -> list[Candidate]:
    """Files of the project by the letters typed."""
    return [Candidate("file", name) for name in fuzzy.rank(query, files, most)]


def project_files(root: str) -> list[str]:
    """The files of a project below `root`, as git sees them, else as they lie there.

    Files of secrets are left out: the agent may not read them.
    """
    from tacit.agent.masking import is_secret_file

    found = _by_git(root)
    if found is None:
        found = _by_walk(root)
    shown = [name for name in found if name.isprintable() and not is_secret_file(name)]
    return sorted(shown, key=lambda name: (name.count("/"), name))


def _by_git(root: str) -> list[str] | None:
    import subprocess

    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "."]
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, timeout=5, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return None
    names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return [name for name in dict.fromkeys(names) if name][:_MOST_FILES]


def _by_walk(root: str) -> list[str]:
    found: list[str] = []
    for here, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in _PASSED_OVER)
        found.extend(os.path.relpath(os.path.join(here, name), root) for name in sorted(names))
        if len(found) > _MOST_FILES:
            break
    return found[:_MOST_FILES]
