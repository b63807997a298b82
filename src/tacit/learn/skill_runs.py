"""Runs of skills: what was done in a session while a skill was active, by which version.

Reads a Trace, of our own sessions and of any host's alike. A skill is active from the moment it
was loaded (a skill tool, `/name`, or its SKILL.md opened) to the end of the session; loaded again,
a new run begins. A host's transcript says that a skill was read, not which version: the history
knows when each version landed, and where there is none, the file itself, if it has not changed
since. Counting and keeping runs is left to `use_records`.
"""

import html
import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from tacit.base.display import shorten_middle
from tacit.base.errors import TacitError
from tacit.changes.history import History, Version
from tacit.changes.place import Place
from tacit.skills.skill_file import MAX_SKILL_READ, SKILL_FILE_NAMES, skill_digest
from tacit.traces.skill_uses import By, Use
from tacit.traces.tool_calls import our_tool, skills_loaded
from tacit.traces.trace import OWN_HOST, REFUSED, Activation, Kind, ToolCall, Trace, Turn


class SkillVersions:
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
            data = next((files[name].data for name in SKILL_FILE_NAMES if name in files), b"")
            self._digests[version.tree] = skill_digest(data) if data else ""
        return self._digests[version.tree]


def _standing(log: list[Version], moment: datetime | None) -> Version | None:
    """The newest version that had landed by then; of a moment that nobody noted, the last."""
    if moment is None:
        return log[0]
    return next((version for version in log if version.at <= moment), None)


def _unchanged(place: Place, skill: str, moment: datetime | None) -> str:
    """The digest of a file without a history that has not been written since `moment`."""
    for name in SKILL_FILE_NAMES:
        path = os.path.join(place.root, skill, name)
        try:
            if moment is not None and os.stat(path).st_mtime > moment.timestamp():
                return ""
            with open(path, "rb") as file:
                return skill_digest(file.read(MAX_SKILL_READ))
        except OSError:
            continue
    return ""


def _is_name(skill: str) -> bool:
    """Transcripts hold anything; what is looked for on the disk must be the name of a folder."""
    return bool(skill) and not any(c in skill for c in "/\\\0") and not skill.startswith(".")


VersionOf = Callable[[str, datetime | None], str]
"""The digest of the SKILL.md that a skill had at a moment; empty when that is not known."""

_MOST_RESULT = 2000
"""Characters kept of the result of a step: its beginning and its end, where errors stand."""
# What our own run_skill gives begins with the skill that was loaded and ends with its version.
_LOADED_SKILL = re.compile(r'(?:<skill name=|The skill )"([^"]+)"')
_LOADED_VERSION = re.compile(r"</skill ([0-9a-f]{8,64})>\s*(?:\Z|\n)")
# Ids of the calls that `/name` makes in our own chat on the user's behalf.
_USERS_CALL = re.compile(r"skill_\d+")
_EXIT_CODE = re.compile(
    r"(?i)\W*(?:the )?(?:(?:command|process|shell) )?"
    r"(?:failed|(?:exit(?:ed)?|failed|ended)(?: with)?(?: exit)?(?: code| status)?:?\s*-?\d+)\W*"
)
"""A line that says that it failed, and nothing of why."""
_NOT_ALLOWED = ("The user did not allow this call", "Nobody is there to allow this call")


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call while a skill was active."""

    number: int
    """From 1, in the run."""
    turn: int
    """The number of the turn in the session."""
    tool: str
    """As the host calls it."""
    kind: Kind
    arguments: dict[str, Any] = {}
    result: str = ""
    """Its beginning and its end."""
    failed: bool = False
    """The host said so: a non-zero exit, an error, a refusal. Words in the result do not count."""
    refused: bool = False
    """It failed because the user did not allow it."""
    error: str = ""
    finished: bool = True
    governed_by: str = ""
    """The skill that was loaded last before this call; others may have been active too."""
    at: datetime | None = None

    @property
    def said(self) -> str:
        """The line that says why it failed: the last that is more than an exit code."""
        if self.error and not _EXIT_CODE.fullmatch(self.error):
            return self.error
        lines = [line.strip() for line in self.result.splitlines() if line.strip()]
        why = next((line for line in reversed(lines) if not _EXIT_CODE.fullmatch(line)), "")
        return why or self.error or (lines[-1] if lines else "")


class SkillRun(msgspec.Struct, frozen=True, kw_only=True):
    """One use of a skill."""

    skill: str
    """The name by which it was loaded: the skill's own, or its folder's."""
    digest: str = ""
    """Of the SKILL.md that governed it; empty when that is not known."""
    by: By
    at: datetime | None
    session: str
    """`host:session`, as everywhere."""
    project: str
    turn: int
    """The turn in which it was loaded."""
    read: bool = False
    """Loaded by opening its SKILL.md, not by a skill tool or by `/name`."""
    steps: tuple[RunStep, ...] = ()
    answer: int = 0
    """How many of the steps belong to the answer in which it was loaded."""

    @property
    def governed(self) -> tuple[RunStep, ...]:
        """The steps that no skill loaded later stands between."""
        return tuple(step for step in self.steps if step.governed_by == self.skill)


def runs_of(trace: Trace, version_of: VersionOf | None = None) -> tuple[SkillRun, ...]:
    """Every use of a skill in a session, in the order in which they began."""
    return _Walk(trace, version_of or _unknown).runs()


def run_of_use(trace: Trace, use: Use) -> SkillRun | None:
    """The run in its session that `use` records: the one that began nearest to its moment."""
    runs = [run for run in runs_of(trace) if run.skill == use.skill]
    return min(runs, key=lambda run: abs((run.at or use.at) - use.at), default=None)


class _Open:
    """A run that steps are still added to."""

    def __init__(self, run: SkillRun, answer: int) -> None:
        self.run = run
        self.answer_number = answer
        self.steps: list[RunStep] = []
        self.in_answer = 0

    def add(self, step: RunStep, answer: int) -> None:
        self.steps.append(msgspec.structs.replace(step, number=len(self.steps) + 1))
        self.in_answer += answer == self.answer_number

    def closed(self) -> SkillRun:
        return msgspec.structs.replace(self.run, steps=tuple(self.steps), answer=self.in_answer)


class _Walk:
    """Goes through a session once."""

    def __init__(self, trace: Trace, version_of: VersionOf) -> None:
        self._trace = trace
        self._version_of = version_of
        self._all: list[_Open] = []
        self._active: dict[str, _Open] = {}
        self._last = ""
        self._answer = 0

    def runs(self) -> tuple[SkillRun, ...]:
        for turn in self._trace.turns:
            # A turn without a prompt is the rest of a very long one.
            self._answer += bool(turn.prompt)
            calls: list[ToolCall] = []
            for step in turn.steps:
                if isinstance(step, ToolCall):
                    calls.append(step)
                    self._called(turn, step)
                elif isinstance(step, Activation):
                    self._activated(turn, step, calls)
        return tuple(run.closed() for run in self._all)

    def _called(self, turn: Turn, call: ToolCall) -> None:
        if not self._active:
            return
        step = RunStep(
            number=0,
            turn=turn.number,
            tool=call.name,
            kind=call.kind,
            arguments=call.arguments,
            result=shorten_middle(call.result, _MOST_RESULT, tail=0.5),
            failed=call.failed,
            refused=call.failed and _is_refused(call),
            error=call.error,
            finished=call.finished,
            governed_by=self._last,
            at=call.at,
        )
        reported = reported_failure(call)
        for name, run in self._active.items():
            if reported is not None and reported[0] == name:
                step = msgspec.structs.replace(step, failed=True, error=reported[1])
            run.add(step, self._answer)

    def _activated(self, turn: Turn, found: Activation, calls: list[ToolCall]) -> None:
        call = next((c for c in reversed(calls) if self._loads(c, found.name)), None)
        if call is None and calls and self._own_skill(calls[-1]) and _names(calls[-1], found.name):
            return  # the model called it by an alias; its own name follows
        at = found.at or turn.started
        run = _Open(
            SkillRun(
                skill=found.name,
                digest=self._digest(found.name, at, call),
                by=_by(turn, found.name, call),
                at=at,
                session=self._trace.id,
                project=self._trace.project,
                turn=turn.number,
                read=call is not None and call.kind != "skill",
            ),
            self._answer,
        )
        self._all.append(run)
        self._active[found.name] = run
        self._last = found.name

    def _digest(self, name: str, at: datetime | None, call: ToolCall | None) -> str:
        if call is not None and self._trace.host == OWN_HOST and call.kind == "skill":
            if said := _LOADED_VERSION.search(call.result[-200:]):
                return said.group(1)
            before = self._active.get(name)  # "active already and has not changed"
            if before is not None and before.run.digest:
                return before.run.digest
        return self._version_of(name, at)

    def _loads(self, call: ToolCall, name: str) -> bool:
        """Whether `call` is what loaded the skill `name`."""
        own = self._own_skill(call)
        return own == name if own else _names(call, name)

    def _own_skill(self, call: ToolCall) -> str:
        """The skill that a call of our own run_skill loaded, which its result names."""
        if self._trace.host != OWN_HOST or call.kind != "skill" or call.failed:
            return ""
        found = _LOADED_SKILL.match(call.result)
        return html.unescape(found[1]) if found else ""


def reported_failure(call: ToolCall) -> tuple[str, str] | None:
    """The skill that a client of `tacit mcp` said has failed, and what it said of that."""
    if our_tool(call.name) != "report_outcome" or call.arguments.get("worked") is not False:
        return None
    said = (call.arguments.get(key) for key in ("step", "detail"))
    why = ": ".join(part for part in said if isinstance(part, str) and part)
    return str(call.arguments.get("skill", "")), why or "the agent reported that it failed"


def _names(call: ToolCall, name: str) -> bool:
    """Whether the arguments of `call` load the skill `name`."""
    return not call.failed and name in skills_loaded(call.kind, call.arguments)


def _by(turn: Turn, name: str, call: ToolCall | None) -> By:
    """The user loads by `/name` (or `$name`, `/skill:name`), the model by a call."""
    said = turn.prompt.lstrip()[: len(name) + 20]
    asked = re.match(rf"[/$](?:skills?[: ])?{re.escape(name)}(?![\w-])", said) is not None
    own = call is not None and call.name == "run_skill" and _USERS_CALL.fullmatch(call.id)
    return "user" if asked or own else "model"


def _is_refused(call: ToolCall) -> bool:
    return call.error == REFUSED or call.result.startswith(_NOT_ALLOWED)


def _unknown(skill: str, at: datetime | None) -> str:
    return ""
