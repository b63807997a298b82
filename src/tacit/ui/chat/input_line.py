"""What helps while a message is typed: earlier inputs, and completion after `/` and `@`.

Owns the file of earlier inputs and the fuzzy match over names. Called at every key, so it never
waits.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from tacit.agent.activation import SLASH_WORD
from tacit.base import paths
from tacit.base.display import one_line
from tacit.base.paths import make_private
from tacit.base.secrets import clean

if TYPE_CHECKING:
    from tacit.skills.library import Entry


_WORD_START = re.compile(r"(?:^|[-_./\s:])$")


def fuzzy_rank(query: str, names: Iterable[str], most: int = 50) -> list[str]:
    """The names that hold the letters of `query` in order, the nearest first."""
    if not query:
        return [name for name, _ in zip(names, range(most), strict=False)]
    pattern = re.compile(".*?".join(re.escape(c) for c in query), re.I | re.S)
    found = [(fuzzy_score(query, name), name) for name in names if pattern.search(name)]
    found.sort(key=lambda pair: (-pair[0], len(pair[1]), pair[1]))
    return [name for _, name in found[:most]]


def fuzzy_score(query: str, name: str) -> float:
    """How well `query` fits `name`; 0 when a letter is missing."""
    wanted, whole = query.casefold(), name.casefold()
    if not wanted:
        return 1.0
    if whole == wanted:
        return 1000.0
    base = whole.rstrip("/").rpartition("/")[2]
    for text, worth in ((whole, 500.0), (base, 400.0)):
        if text.startswith(wanted):
            return worth
    at = whole.find(wanted)
    if at >= 0:
        return 300.0 if _WORD_START.search(whole[:at]) else 200.0
    return _scattered(wanted, whole)


def _scattered(wanted: str, whole: str) -> float:
    """Letters that follow each other count most, then letters at the start of words."""
    total, at = 0.0, 0
    for number, letter in enumerate(wanted):
        rest = wanted[number + 1 :]
        places = [
            i
            for i in range(at, len(whole))
            if whole[i] == letter and _follows(rest, whole[i + 1 :])
        ]
        if not places:
            return 0.0
        starts = [i for i in places if i == 0 or whole[i - 1] in "-_./ :"]
        next_one = at > 0 and places[0] == at
        place = at if next_one else (starts or places)[0]
        total += 3.0 if next_one else 2.0 if place in starts else 1.0
        at = place + 1
    return 100.0 * total / (3.0 * len(wanted))


def _follows(wanted: str, whole: str) -> bool:
    letters = iter(whole)
    return all(letter in letters for letter in wanted)


CandidateKind = Literal["skill", "command", "file", "scheduled"]
_SLASH_TOKEN = re.compile(rf"(?:{SLASH_WORD}\s+)*(?P<word>/[^\s/]*)\Z")
_FILE_TOKEN = re.compile(r"(?:^|\s)(@\S*)\Z")
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

    kind: CandidateKind
    name: str
    about: str = ""

    @property
    def inserted(self) -> str:
        return f"@{self.name}" if self.kind == "file" else f"/{self.name}"


def token_at(text: str, cursor: int) -> Token | None:
    """The word before the cursor, if it begins with a mark that stands where it counts."""
    before = text[:cursor]
    if match := _SLASH_TOKEN.match(before):
        return Token("slash", match.start("word"), cursor, match["word"][1:])
    if match := _FILE_TOKEN.search(before):
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
        worth = fuzzy_score(query, candidate.name)
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
    return [Candidate("file", name) for name in fuzzy_rank(query, files, most)]


def project_files(root: str) -> list[str]:
    """The files of a project below `root`, as git sees them, else as they lie there.

    Files of secrets are left out: the agent may not read them.
    """
    from itertools import islice

    from tacit.agent.off_limits import walk_files
    from tacit.agent.project_survey import is_secret_file

    found = _by_git(root)
    if found is None:
        found = list(islice(walk_files(root, _MOST_FILES), _MOST_FILES))
    shown = [name for name in found if name.isprintable() and not is_secret_file(name)]
    return sorted(shown, key=lambda name: (name.count("/"), name))


def _by_git(root: str) -> list[str] | None:
    import subprocess

    from tacit.base.errors import TacitError
    from tacit.base.git_program import run_git

    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ".")
    try:
        done = run_git(*words, cwd=root, seconds=5)
        done.check_returncode()
    except (OSError, TacitError, subprocess.SubprocessError):
        return None
    names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    return [name for name in dict.fromkeys(names) if name][:_MOST_FILES]


_MOST_INPUTS = 1000
_MOST_HISTORY_BYTES = 2_000_000


class InputHistory:
    """Earlier inputs, oldest first, and a place in them. A file that cannot be used is not missed:
    history is a comfort, and a full disk must not stop a conversation."""

    def __init__(self, path: str = "") -> None:
        self.path = path or os.path.join(paths.folders().data, "chat-history.jsonl")
        self.entries: list[str] = self._read()
        self._at = len(self.entries)
        self._draft = ""

    def add(self, text: str) -> None:
        """Keep `text`, unless it is what was typed last."""
        if text and (not self.entries or self.entries[-1] != text):
            self.entries.append(text)
            self._append(text)
        self._at = len(self.entries)
        self._draft = ""

    def back(self, now: str) -> str | None:
        """The entry before the place; None at the beginning. `now` is what stands there."""
        if self._at == 0:
            return None
        if self._at == len(self.entries):
            self._draft = now
        self._at -= 1
        return self.entries[self._at]

    def forward(self) -> str | None:
        """The entry after the place, and at last what was being typed; None at the end."""
        if self._at >= len(self.entries):
            return None
        self._at += 1
        return self._draft if self._at == len(self.entries) else self.entries[self._at]

    @property
    def browsing(self) -> bool:
        return self._at < len(self.entries)

    def _read(self) -> list[str]:
        try:
            with open(self.path, "rb") as file:
                lines = file.read(_MOST_HISTORY_BYTES + 1).splitlines()
        except OSError:
            return []
        found = [text for text in map(_decoded_input, lines[-2 * _MOST_INPUTS :]) if text]
        if len(found) > _MOST_INPUTS or len(lines) > 2 * _MOST_INPUTS:
            found = found[-_MOST_INPUTS:]
            self._rewrite(found)
        return found

    def _append(self, text: str) -> None:
        line = json.dumps(clean(text)).encode() + b"\n"  # no secret is kept for later
        try:
            make_private(os.path.dirname(self.path))
            file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, line)
            finally:
                os.close(file)
        except OSError:
            pass

    def _rewrite(self, entries: list[str]) -> None:
        from tacit.base.atomic_files import write_atomic
        from tacit.base.errors import Unwritable

        data = b"".join(json.dumps(text).encode() + b"\n" for text in entries)
        try:
            write_atomic(self.path, data, durable=False)
        except Unwritable:
            pass


def _decoded_input(line: bytes) -> str:
    try:
        text = json.loads(line)
    except ValueError:
        return ""  # cut off, or not ours
    return text if isinstance(text, str) else ""
