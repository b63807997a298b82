"""The two sides of a trial: which skills the agent has in each, laid out in a folder of their own.

One side has the skill as it is. The other has nothing in its place, an earlier version of it, or
the sessions that it was learned from, under its name. With `among` both also have the rest of the
library. The tasks that lie in a skill's folder are never laid out: an agent would find the answers.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from tacit.base.errors import NotFound, Usage
from tacit.changes.change import SKILL_FILE, File
from tacit.learn.improve.verification import lay_out
from tacit.learn.review.review_batch import CHARACTERS_A_TOKEN
from tacit.learn.trial.trial_tasks import EVALS_FOLDER
from tacit.skills import frontmatter
from tacit.skills.library import Entry
from tacit.traces.store import Store
from tacit.traces.trace import Text, ToolCall, Trace

Side = Literal["with", "without"]
SIDES: tuple[Side, Side] = ("with", "without")
_MOST_SESSION_TEXT = 200_000
"""Characters of sessions that are given in place of a skill; more fits few windows."""
_MOST_RESULT = 2_000


class Arms(msgspec.Struct, frozen=True):
    """What is compared."""

    skill: str
    sides: dict[str, dict[str, File]]
    """The skill's files on each side; none where it is left out."""
    others: dict[str, str] = {}
    """The folders of the other skills that both sides have, by name."""

    def lay_out(self, side: Side, folder: str) -> None:
        """Make `folder` a skills folder with what `side` has."""
        os.mkdir(folder)
        for name, place in self.others.items():
            os.symlink(os.path.realpath(place), os.path.join(folder, name))
        files = self.sides[side]
        if files:
            shown = {p: file for p, file in files.items() if not p.startswith(EVALS_FOLDER)}
            lay_out(os.path.join(folder, self.skill), shown)


def others_of(entries: Iterable[Entry], skill: str) -> dict[str, str]:
    """The rest of a library, by the names of its folders."""
    usable = [e for e in entries if e.state == "active" and e.name != skill]
    return {os.path.basename(entry.folder): entry.folder for entry in usable}


def sessions_as_skill(
    files: Mapping[str, File], store: Store, sessions: Iterable[str]
) -> dict[str, File]:
    """A skill of the same name and description whose body is the text of `sessions`.

    Raises `NotFound` where none of them is stored, and `Usage` where they are too long.
    """
    texts = []
    for session in sessions:
        try:
            texts.append(_as_text(store.whole(session)))
        except NotFound:
            continue
    if not texts:
        raise NotFound(
            "none of the sessions that it was learned from is stored any more",
            "compare with nothing instead: leave --against out",
        )
    body = "\n\n".join(texts)
    if len(body) > _MOST_SESSION_TEXT:
        raise Usage(
            f"the sessions are too long to stand in place of the skill: about"
            f" {len(body) // CHARACTERS_A_TOKEN:,} tokens",
            "compare with nothing instead: leave --against out",
        )
    head = frontmatter.split(files[SKILL_FILE].data.decode("utf-8", "replace")).head or ""
    text = f"---\n{head.strip()}\n---\n\nWhat earlier sessions did:\n\n{body}\n"
    return {SKILL_FILE: File(text.encode())}


def _as_text(trace: Trace) -> str:
    """A session as it went: what was asked, said and done, with the beginnings of results."""
    lines = []
    for turn in trace.turns:
        if turn.prompt:
            lines.append(f"User: {turn.prompt}")
        for step in turn.steps:
            if isinstance(step, Text):
                lines.append(f"Agent: {step.text}")
            elif isinstance(step, ToolCall):
                given = msgspec.json.encode(step.arguments).decode()
                lines.append(f"Call {step.name} {given}\n{step.result[:_MOST_RESULT]}")
    return "\n\n".join(lines)
