"""What tests of reviews share: skills, the job, and a child that runs in this process."""

import asyncio
import os
from pathlib import Path
from typing import Any

from tacit.agent import models
from tacit.base.job import Job, JobResult
from tacit.changes.change import acting_as
from tacit.learn.background import child, child_process
from tacit.learn.background.task import Call, Called, RunReport, Start, Task, Up, Used
from tacit.learn.review.review_job import run_review
from tacit.traces.store import Store
from tacit.traces.trace import Trace

SKILL = """---
name: {name}
description: {about}
{head}---

# {name}

{body}
"""


class Direct:
    """Stands for the pipes: what the child would ask of its parent is asked directly."""

    def __init__(self, broker: child_process.Broker) -> None:
        self._broker = broker
        self.used: list[Used] = []
        self.calls: list[Call] = []

    def tell(self, message: Up) -> None:
        if isinstance(message, Used):
            self.used.append(message)
        elif isinstance(message, Called):
            self.calls.append(message.call)

    async def serve(self, name: str, arguments: dict[str, Any]) -> Any:
        return self._broker.serve(name, arguments)

    async def finished(self, text: str) -> str | None:
        return self._broker.finished(text)


def run_inside(task: Task, broker: child_process.Broker, settings: Any) -> RunReport:
    """The child's conversation in this process: the same tools, loop and limits, no new process."""
    choice = models.for_learning(settings)
    start = Start(task, settings, choice.name, choice.base_url, os.getpid(), (), ())
    link: Any = Direct(broker)
    with acting_as(task.actor):
        ended = asyncio.run(child._converse(start, link))
    return RunReport(
        reason=ended.reason,
        text=ended.text,
        error=ended.error,
        turns=len(link.used),
        model=choice.name,
        calls=tuple(link.calls),
    )


def store(trace: Trace) -> None:
    opened = Store.open()
    opened.write(trace)
    opened.close()


def look(trace: Trace, *, job: str = "review-1", **payload: Any) -> JobResult:
    """Review a session as the queue does."""
    return run_review(Job(job, "review", trace.id, {"session": trace.id} | payload))


def text_of(name: str, body: str, *, about: str = "", head: str = "") -> str:
    about = about or f"How {name} is done here. Use before doing it."
    return SKILL.format(name=name, about=about, head=head, body=body)


def put_skill(project: Path, name: str, body: str, *, head: str = "") -> Path:
    """A skill that is there before the review, in the project."""
    folder = project / ".agents/skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text_of(name, body, head=head))
    return folder


LEARNED = "metadata:\n  source: auto-skill\n  learned: '2026-10-01'\n  sessions: codex:old\n"
BUILDS = (
    "1. `read -r VERSION < VERSION; export VERSION; python3 build.py`\n2. Never invent a version."
)
