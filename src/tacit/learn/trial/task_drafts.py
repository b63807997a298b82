"""Tasks drafted from the sessions that a skill was learned from: the prompt, its files, a check.

A session is cut into its tasks. Of each that ended well, the draft has what was asked, the files
that were read and not changed, as they are now, and the last test, build or other check that
passed; where none did, an expectation for a judge. A draft names its session: the skill was written
from it, so it says little of whether the skill helps with anything else.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from tacit.base import paths
from tacit.base.errors import NotFound
from tacit.changes.change import WriteFile
from tacit.learn.segments import Segment, segment_trace, segments
from tacit.learn.trial.trial_tasks import EVAL_FILES
from tacit.traces.command_purposes import purposes, work_class
from tacit.traces.observations import commands, files
from tacit.traces.store import Store
from tacit.traces.trace import Trace

_MOST_FILES = 20
_MOST_BYTES = 64_000
_SHORTEST = 15
"""Characters of a prompt below which it says too little without what came before."""


class Draft(msgspec.Struct, frozen=True):
    """A task for evals.json, and the files that go with it."""

    entry: dict[str, Any]
    files: tuple[WriteFile, ...] = ()


def drafts_from(store: Store, sessions: Iterable[str]) -> list[Draft]:
    """A draft for each task in `sessions` that ended well, or may have."""
    found = []
    for session in sessions:
        try:
            trace = store.whole(session)
        except NotFound:
            continue
        found += [
            _draft(segment, segment_trace(trace, segment))
            for segment in segments(trace)
            if segment.outcome.state in ("worked", "unclear") and len(segment.asked) >= _SHORTEST
        ]
    return found


def _draft(segment: Segment, trace: Trace) -> Draft:
    name = f"task-{segment.session.rpartition(':')[2][-8:]}-{segment.number}"
    needed = tuple(_needed(trace, name))
    check = _check(trace)
    entry: dict[str, Any] = {
        "prompt": segment.asked,
        "expected_output": "",
        "files": [file.path for file in needed],
        "expectations": [] if check else ["What was asked for is done, and nothing else is."],
        "checks": [{"command": check}] if check else [],
        "learned_from": [segment.session],
    }
    return Draft(entry, needed)


def _check(trace: Trace) -> str:
    """The last command that tests, builds or checks something and passed."""
    found = [
        command.text
        for command in commands(trace)
        if not command.failed and any(work_class(name) for name in purposes(command.text))
    ]
    return found[-1] if found else ""


def _needed(trace: Trace, name: str) -> Iterator[WriteFile]:
    """The files that were read and not changed, as they stand in the project now."""
    given = 0
    for touched in files(trace):
        if (
            touched.written
            or not touched.read
            or os.path.isabs(touched.path)
            or given >= _MOST_FILES
        ):
            continue
        path = os.path.realpath(os.path.join(trace.project, touched.path))
        if not paths.is_inside(path, os.path.realpath(trace.project)) or not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) <= _MOST_BYTES and b"\0" not in data:
            given += 1
            yield WriteFile(path=f"{EVAL_FILES}{name}/{touched.path}", data=data)
