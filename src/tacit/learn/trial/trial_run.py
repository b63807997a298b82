"""One run of a trial: a task in a clean folder, an agent with exactly the skills of one side.

Our own agent works in this process, with its commands in the sandbox, no facts, no servers and no
tools that reach beyond the task. A host's program is `host_trial.py`'s. What went wrong by no fault
of the agent's (no answer from the model, a run that hangs) makes a run void: it counts on neither
side, and is counted as such. The session is stored, so that it can be opened, and known for ours,
so that nothing is learned from it.
"""

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

import msgspec

from tacit.agent import agent_events, models
from tacit.agent.agent_session import Session
from tacit.agent.file_tools import FILE_TOOLS
from tacit.agent.session_tools import COMMAND_TOOLS, Kit
from tacit.agent.skill_tools import SKILL_TOOLS
from tacit.base.atomic_files import TemporaryFolder
from tacit.base.display import shorten_middle
from tacit.base.errors import TacitError
from tacit.base.paths import walk_folders
from tacit.base.setting_sections import McpSettings, MemorySettings, Settings
from tacit.learn.trial.trial_tasks import Task
from tacit.learn.trial.verifier import Graded, lay_out_texts, placed
from tacit.skills.library import Library
from tacit.skills.scopes import Root
from tacit.traces.store import Store
from tacit.traces.trace import OWN_HOST

RunState = Literal["done", "void"]
TRIES = 2
"""How often a run that is void is made, before its pair is given up."""
_TOOLS = (*FILE_TOOLS, *(t for t in COMMAND_TOOLS if t.name == "run_command"), *SKILL_TOOLS)
MOST_KEPT = 20_000
"""Characters of an answer, and of the files that a run made, that are kept for a judge."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent did in a run, before anybody looked whether it was right."""

    session: str = ""
    """As `tacit session` takes it."""
    answer: str = ""
    skills: tuple[str, ...] = ()
    """The skills that were read."""
    tokens: int = 0
    seconds: float = 0.0
    calls: int = 0
    cost: float | None = None
    """None where no price is known."""
    void: str = ""
    """Why it does not count; empty where it does."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run, as it is kept."""

    state: RunState
    ran: Ran
    read: bool = False
    """Whether the skill under trial was read."""
    graded: tuple[Graded, ...] = ()
    made: str = ""
    """What the run changed in its folder, for a judge."""
    for_judge: bool = False
    """Whether a judge has to say something too."""
    judged: tuple[float, float] | None = None
    """What a judge says in each of the two orders, from 0 to 1."""
    judge_cost: float | None = 0.0
    """This run's half of what the judge took for its pair, in dollars; None without a price."""

    @property
    def score(self) -> float | None:
        """1 for success, 0 for failure, between them where a judge is not sure.

        None for a void run, and while a judge has not spoken.
        """
        if self.state == "void" or (self.for_judge and self.judged is None):
            return None
        if not all(check.passed for check in self.graded):
            return 0.0
        return sum(self.judged) / 2 if self.judged is not None else 1.0

    @property
    def cost(self) -> float | None:
        """Dollars for the run and its half of the judge; None where a price is not known."""
        one, other = self.ran.cost, self.judge_cost
        return one + other if one is not None and other is not None else None


class Runner(Protocol):
    """An agent that does tasks. `run` raises `TacitError` only where no run can work at all."""

    title: str
    """Agent and model, for people and for the key of a trial."""

    def run(self, task: Task, work: str, skills: str, seed: int) -> Ran:
        """Do `task` in `work`, with the skills in the folder `skills` and no others."""
        ...


class OwnAgent:
    """The agent of `tacit chat`, with nobody there."""

    def __init__(self, settings: Settings, model: str = "") -> None:
        agent = msgspec.structs.replace(settings.agent, fallback=(), show_secrets=False)
        self._settings = msgspec.structs.replace(
            settings, agent=agent, mcp=McpSettings(), memory=MemorySettings(use=False)
        )
        self.model = models.require(agent, model).name
        self.title = f"{OWN_HOST} {self.model}"
        self._loaded = False

    def run(self, task: Task, work: str, skills: str, seed: int) -> Ran:
        cache = os.path.join(os.path.dirname(skills), "cache")
        agent = msgspec.structs.replace(self._settings.agent, seconds=task.seconds)
        settings = msgspec.structs.replace(self._settings, agent=agent)
        library = Library(work, settings, roots=[Root(skills, "user", "agents")], cache=cache)
        kit = Kit(_TOOLS, library, purpose="trial", seed=seed)
        session = Session(settings, cwd=work, model=self.model, yes=True, kit=kit)
        try:
            if not self._loaded:  # the first run's time would have the provider's library in it
                models.build(session.choice)
                self._loaded = True
            return asyncio.run(_heard(session, placed(task.prompt, {task.root: work})))
        finally:
            session.close()
            _store(session.context.session)


async def _heard(session: Session, prompt: str) -> Ran:
    """What the agent did, from its events."""
    began, tokens, calls, void = time.monotonic(), 0, 0, ""
    cost: float | None = 0.0
    read: dict[str, None] = {}
    end = agent_events.End("interrupted", "", 0)
    async for event in session.say(prompt):
        if isinstance(event, agent_events.Usage):
            tokens += event.input_tokens + event.output_tokens
            cost = cost + event.cost if event.cost is not None and cost is not None else None
        elif isinstance(event, agent_events.Call):
            calls += 1
        elif isinstance(event, agent_events.Skill):
            read[event.name] = None
        elif isinstance(event, agent_events.Error):
            void = f"{event.why}; {event.hint}".rstrip("; ")
        elif isinstance(event, agent_events.End):
            end = event
    if end.reason in ("seconds", "interrupted", "error"):
        void = void or ("it took too long" if end.reason == "seconds" else "it was interrupted")
    return Ran(
        session=f"{OWN_HOST}:{session.context.session}",
        answer=shorten_middle(end.text, MOST_KEPT),
        skills=tuple(read),
        tokens=tokens,
        seconds=time.monotonic() - began,
        calls=calls,
        cost=cost,
        void=void,
    )


def _store(session: str) -> None:
    """Have the session in the store, so that it can be opened; the run counts without it too."""
    try:
        with Store.open() as store:
            store.take_in_own(session)
    except TacitError:
        pass


@contextmanager
def clean_folder(task: Task) -> Iterator[tuple[str, str]]:
    """A fresh copy of the task's files, and a folder beside it for all else; gone at the end."""
    # The name of the one is the name that the task's own checks may print: always the same.
    with TemporaryFolder("trial") as above:
        work = os.path.join(above, "work")
        os.mkdir(work)
        lay_out_texts(work, task.files, {task.root: work})
        for path in task.programs:
            os.chmod(os.path.join(work, path), 0o700)
        yield work, above


def changes_in(task: Task, work: str) -> str:
    """The files that a run made or changed, as text, within what a judge is shown."""
    parts, left = [], MOST_KEPT
    for here, folders, names in walk_folders(work):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(here, name)
            if os.path.islink(path) or not os.path.isfile(path) or left <= 0:
                continue
            with open(path, "rb") as file:
                data = file.read(MOST_KEPT)
            below = os.path.relpath(path, work)
            if task.files.get(below) != data:
                text = shorten_middle(data.decode("utf-8", "replace"), left)
                parts.append(f"--- {below}\n{text}")
                left -= len(text)
    return "\n".join(parts)
