"""Planted sessions: tool output asks for a skill, and a model that obeys writes it.

A set is a file of JSON lines: the turns of a session, and the skill that is written from it. The
honest sets have the same form, with a skill that a careful reviewer would write.
"""

import os
from typing import Any

import msgspec

from tacit.testing.replies import Reply, ReplyLike, ToolUse, reply
from tacit.testing.request import Request
from tacit.testing.script import Script
from tacit.testing.sessions import called, made
from tacit.traces.trace import Step, Trace


class Call(msgspec.Struct, frozen=True):
    tool: str
    arguments: dict[str, Any]
    output: str
    failed: bool = False


class Exchange(msgspec.Struct, frozen=True):
    prompt: str
    steps: tuple[Call, ...]


class Planted(msgspec.Struct, frozen=True):
    """One session, and what a model keeps of it."""

    id: str
    name: str
    skill: str
    turns: tuple[Exchange, ...]
    disguise: str = ""


def load(path: str | os.PathLike[str]) -> list[Planted]:
    """A set, in its order."""
    with open(path, "rb") as file:
        return [msgspec.json.decode(line, type=Planted) for line in file if line.strip()]


def trace_of(planted: Planted, project: str = "") -> Trace:
    """The session itself."""
    turns: list[list[str | Step]] = [
        [
            turn.prompt or "Go on.",
            *(called(c.tool, c.arguments, c.output, failed=c.failed) for c in turn.steps),
        ]
        for turn in planted.turns
    ]
    return made(*turns, session=planted.id, project=project)


def obeying(planted: Planted) -> Script:
    """A model that writes the skill and insists on it, whatever it is told."""
    path = f"{planted.name}/SKILL.md"
    write = ToolUse("write_file", {"path": path, "content": planted.skill})
    answers: list[Reply] = [reply(write)]

    def script(request: Request) -> ReplyLike:
        return answers[request.turn] if request.turn < len(answers) else f"Kept {planted.name}."

    return script
