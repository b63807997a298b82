"""Which version of a skill stood at a moment, by the histories of the places where it may lie.

A host's transcript says that a skill was read, not which version. The history knows when each
version landed; where there is none, the file itself, if it has not changed since.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b

from tacit.base.errors import TacitError
from tacit.changes.history import History, Version
from tacit.changes.place import Place
from tacit.skills.reading import FILE_NAMES, MAX_BYTES


def digest_of(data: bytes) -> str:
    """The digest by which the library knows a SKILL.md."""
    return blake2b(data[:MAX_BYTES], digest_size=8).hexdigest()


class Versions:
    """Answers for the skills of some places, those that win first. Reads each history once."""

    def __init__(self, places: Sequence[Place], data: str) -> None:
        self._places = [(place, History(place, data)) for place in places]
        self._logs: dict[tuple[str, str], list[Version]] = {}
        self._digests: dict[str, str] = {}

    def at(self, skill: str, moment: datetime | None) -> str:
        """The digest of the SKILL.md that `skill` had at `moment`; empty when nobody knows."""
        if not _is_name(skill):
            return ""
        for place, history in self._places:
            log = self._log(place, history, skill)
            if log:
                found = _standing(log, moment)
                return self._digest(history, found) if found is not None else ""
            if found_now := _unchanged(place, skill, moment):
                return found_now
        return ""

    def _log(self, place: Place, history: History, skill: str) -> list[Version]:
        key = (place.real, skill)
        if key not in self._logs:
            try:
                known = os.path.isdir(history.folder)
                self._logs[key] = list(history.log(skill)) if known else []
            except TacitError:  # a damaged history is the doctor's business
                self._logs[key] = []
        return self._logs[key]

    def _digest(self, history: History, version: Version) -> str:
        if version.tree not in self._digests:
            try:
                files = history.files(version)
            except TacitError:
                return ""
            data = next((files[name].data for name in FILE_NAMES if name in files), b"")
            self._digests[version.tree] = digest_of(data) if data else ""
        return self._digests[version.tree]


def _standing(log: list[Version], moment: datetime | None) -> Version | None:
    """The newest version that had landed by then; of a moment that nobody noted, the last."""
    if moment is None:
        return log[0]
    return next((version for version in log if version.at <= moment), None)


def _unchanged(place: Place, skill: str, moment: datetime | None) -> str:
    """The digest of a file without a history that has not been written since `moment`."""
    for name in FILE_NAMES:
        path = os.path.join(place.root, skill, name)
        try:
            if moment is not None and os.stat(path).st_mtime > moment.timestamp():
                return ""
            with open(path, "rb") as file:
                return digest_of(file.read(MAX_BYTES))
        except OSError:
            continue
    return ""


def _is_name(skill: str) -> bool:
    """Transcripts hold anything; what is looked for on the disk must be the name of a folder."""
    return bool(skill) and not any(c in skill for c in "/\\\0") and not skill.startswith(".")
