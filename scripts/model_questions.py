"""The measuring of scripts/test-model: without a skill, by Tacit, and with the right skill given.

By Tacit means the tools that the agent has: the question goes to the search over the library, the
first skill found is loaded by `run_skill`, and what that returns is what the model reads. A model
of this size calls no tools itself, so the calls are made for it; and it reads no long prompt, so it
gets the skill and the question and nothing else.
"""

import asyncio
import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from model_library import Question
from tacit.agent.skill_tools import RunSkill, run_skill
from tacit.agent.tool import Context, ToolOptions
from tacit.skills.library import Library

ALONE = "{question} Give the command."
WITH_SKILL = "{skill}\n\n{question} Copy the command from the text above."
TOKENS = 40
TOP = 5


class Answer(NamedTuple):
    """One question, asked once."""

    question: Question
    found: str
    """The skill that was given; empty where none was."""
    rank: int
    """The place of the right skill in the search, from 1; 0 where it was not among the first."""
    delivered: bool
    """Whether the line with the answer stood in what was sent."""
    text: str
    seconds: float

    @property
    def used(self) -> bool:
        """Whether every word of the command stands there in order; a lost hyphen is let pass."""
        return says(self.text, self.question.answer, exactly=False)

    @property
    def right(self) -> bool:
        """Whether the command can be run as it was written."""
        return says(self.text, self.question.answer)


Ask = Callable[[list[dict[str, str]]], str]


def asker(address: str, timeout: float) -> Ask:
    """Asks the OpenAI-compatible server at `address`, always in the same way.

    Nothing is left to chance, so the same messages again get the answer that they got.
    """

    @cached
    def ask(messages: list[dict[str, str]]) -> str:
        body: dict[str, Any] = {"messages": messages, "temperature": 0, "max_tokens": TOKENS}
        body |= {"model": "local", "seed": 1}
        request = urllib.request.Request(  # noqa: S310
            f"{address}/v1/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=timeout) as response:  # noqa: S310
            told = json.load(response)
        return str(told["choices"][0]["message"]["content"] or "")

    return ask


def cached(ask: Ask) -> Ask:
    known: dict[str, str] = {}

    def remembered(messages: list[dict[str, str]]) -> str:
        key = json.dumps(messages)
        if key not in known:
            known[key] = ask(messages)
        return known[key]

    return remembered


def without(question: Question, ask: Ask) -> Answer:
    """The question alone."""
    return _send(question, "", 0, "", ask)


def by_tacit(question: Question, library: Library, ask: Ask) -> Answer:
    """What Tacit finds for the question, loaded as the agent loads it."""
    names = [hit.entry.name for hit in library.search(question.text, TOP)]
    rank = names.index(question.skill) + 1 if question.skill in names else 0
    if not names:
        return _send(question, "", 0, "", ask)
    return _send(question, names[0], rank, loaded(library, names[0]), ask)


def with_right(question: Question, library: Library, ask: Ask) -> Answer:
    """The right skill, whatever the search says."""
    return _send(question, question.skill, 1, loaded(library, question.skill), ask)


def says(text: str, command: str, *, exactly: bool = True) -> bool:
    """Whether `text` holds the whole command, not counting spaces and what stands around it.

    Not `exactly`: one hyphen before an option is as good as two.
    """
    words = [re.escape(word) for word in command.split()]
    if not exactly:
        words = [re.sub(r"^(\\-){2}", "--?", word) for word in words]
    return re.search(r"(?<![\w-])" + r"\s+".join(words) + r"(?![\w-])", text) is not None


def count(answers: Iterable[Answer]) -> dict[str, int]:
    """The figures of one way of asking."""
    rows = list(answers)
    return {
        "questions": len(rows),
        "retrieved": sum(row.found == row.question.skill for row in rows),
        "in the first five": sum(row.rank > 0 for row in rows),
        "delivered": sum(row.delivered for row in rows),
        "used": sum(row.used for row in rows),
        "right": sum(row.right for row in rows),
    }


def loaded(library: Library, name: str) -> str:
    """The skill as `run_skill` gives it."""
    context = Context(
        library.cwd, library.cwd, library=library, sandbox=_none, ask=_nobody, options=ToolOptions()
    )
    return asyncio.run(run_skill(RunSkill(name), context)).text


def _send(question: Question, found: str, rank: int, skill: str, ask: Ask) -> Answer:
    form = WITH_SKILL if skill else ALONE
    said = form.format(skill=skill, question=question.text)
    began = time.monotonic()
    text = ask([{"role": "user", "content": said}])
    delivered = question.answer in said
    return Answer(question, found, rank, delivered, text, time.monotonic() - began)


def _none() -> Any:
    raise AssertionError("no command is run here")


async def _nobody(asked: object) -> None:
    return None
