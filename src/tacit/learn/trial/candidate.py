"""What is tried: a skill as it stands, one of its versions, or a change that waits in the inbox."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tacit.base.errors import NotFound, Refused
from tacit.changes.change import BACKGROUND, SKILL_FILE, File
from tacit.changes.file_edits import apply_operations
from tacit.changes.gate import Gate
from tacit.changes.history import History, Version
from tacit.changes.inbox import Proposal
from tacit.skills.library import Library
from tacit.skills.skill_file import SKILL_FILE_NAMES, parse_skill, skill_digest


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that can be tried, with its files as they would be in use."""

    name: str
    files: dict[str, File]
    root: str = ""
    """The skills folder that it lies in, or is to lie in."""
    skill: str = ""
    """Its folder below `root`."""
    sessions: tuple[str, ...] = ()
    """The sessions that it was written from."""
    proposal: Proposal | None = None
    """The change that waits; None for a skill that is in use."""
    old: dict[str, File] = {}
    """Before that change."""
    learned: bool = False

    @property
    def digest(self) -> str:
        """Of its SKILL.md, as everywhere."""
        return digest_of(self.files)


def digest_of(files: "dict[str, File]") -> str:
    """The digest of the SKILL.md in `files`; empty where there is none."""
    return next((skill_digest(files[name].data) for name in SKILL_FILE_NAMES if name in files), "")


def find_candidate(gate: Gate, library: Library, name: str) -> Candidate:
    """The skill that `name` means, or the waiting change by its id or the skill's name.

    Raises `NotFound` and `Refused`.
    """
    entry = library.find(name)
    if entry is not None:
        if entry.state != "active":
            raise Refused(
                f"'{entry.name}' is {entry.state}, so it is not in use", "see: tacit list"
            )
        now = gate.state_of(entry.relative_folder, entry.root)
        history = gate.open_place(entry.root).history
        return Candidate(
            name=entry.name,
            files=dict(now.contents.files),
            root=entry.root,
            skill=entry.relative_folder,
            sessions=_sessions(history.log(entry.relative_folder), entry.name, now.contents.files),
            learned=entry.origin == "learned",
        )
    waiting = [
        proposal
        for proposal in gate.waiting()
        if proposal.change.skill == name or (len(name) >= 4 and proposal.id.endswith(name))
    ]
    if not waiting:
        library.get(name)  # raises, with what is near
        raise NotFound(f"there is no skill '{name}'", "see them: tacit list")
    return of_proposal(gate, waiting[-1])


def of_proposal(gate: Gate, proposal: Proposal) -> Candidate:
    """What a waiting change would make. Raises `Refused` where it is no change of files."""
    change = proposal.change
    now = gate.state_of(change.skill, change.root)
    old = dict(now.contents.files) if now.is_live else {}
    operations: Any = change.operations
    try:
        files = apply_operations(old, operations)
    except (TypeError, AttributeError, LookupError):
        raise Refused(f"{proposal.id} changes no files that could be tried") from None
    return Candidate(
        name=change.skill,
        files=files,
        root=change.root,
        skill=change.skill,
        sessions=tuple(dict.fromkeys((*change.evidence, change.session))),
        proposal=proposal,
        old=old,
        learned=True,
    )


def version_files(history: History, skill: str, version: str) -> tuple[str, dict[str, File]]:
    """A version by the beginning of its id, or the end of its change's; its name and its files.

    The name is the one that `tacit log` shows.
    """
    try:
        found = history.find_version(skill, version)
    except NotFound:
        ends = [v for v in history.log(skill) if version and v.record.change.endswith(version)]
        if not ends:
            raise
        found = ends[0]
    return (found.record.change or found.id)[-8:], dict(history.files(found))


def _sessions(log: Iterable[Version], name: str, files: "dict[str, File] | Any") -> tuple[str, ...]:
    """The sessions that background changes name, and those that the skill itself does."""
    found = [
        session
        for version in log
        if version.record.actor in BACKGROUND
        for session in (*version.record.evidence, version.record.session)
    ]
    if SKILL_FILE in files:
        said = parse_skill(files[SKILL_FILE].data, name).metadata.get("sessions", "")
        found += [part.strip() for part in str(said).split(",")]
    return tuple(dict.fromkeys(filter(None, found)))
