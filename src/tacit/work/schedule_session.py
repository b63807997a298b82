"""The agent's session of one scheduled run, with the skill's body as what it carries out.

It works in the folder that the schedule was made for, with the tools of its allow list and no
others, and neither the tools for schedules nor the skill that makes them: whatever the model
takes the text for, it cannot make a schedule here. The loop, the rules and the sandbox are those
of every session.
"""

import os
from collections.abc import AsyncGenerator
from datetime import datetime
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from tacit.agent import agent_events
from tacit.agent.agent_session import AskUser, Session
from tacit.agent.budget import Limits
from tacit.agent.session_tools import TOOLS, Kit
from tacit.agent.tool import Tool
from tacit.agent.tool_approval import Approver, Ask
from tacit.base import paths
from tacit.base.display import shorten
from tacit.base.errors import NotFound, Refused
from tacit.base.prompts import prompt
from tacit.base.setting_sections import McpSettings, Settings
from tacit.base.settings import load_settings
from tacit.skills.library import Entry, Library, scheduled_entry
from tacit.work.due_times import exact_time
from tacit.work.schedule_store import NEVER, Schedule

if TYPE_CHECKING:
    from tacit.skills.catalogue import CatalogueRow
    from tacit.skills.skill_search import Hit

CREATOR = "schedule-creator"


class RunOutcome(msgspec.Struct, frozen=True):
    """How a run ended."""

    reason: agent_events.Reason
    text: str = ""
    """The whole last answer."""
    error: str = ""
    passing: bool = False
    """Whether it failed on the way to the model, so that it may work later."""
    refused: tuple[str, ...] = ()

    @property
    def succeeded(self) -> bool:
        return self.reason == "done" and not self.error


class ScheduleSession:
    """A run, from its first request to its last. `close` it in any case."""

    def __init__(
        self,
        schedule: Schedule,
        due: datetime,
        *,
        by_hand: bool = False,
        approve: Ask | None = None,
        ask: AskUser | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Raises `NotFound` or `Refused` where it cannot be run, with the reason."""
        binding = schedule.binding
        if not os.path.isdir(binding.project):
            raise NotFound(
                f"the folder {paths.with_tilde(binding.project)} is not there any more",
                f"bind another one: tacit schedule edit {schedule.name} --in DIR",
            )
        settings = run_settings(schedule, load_settings(binding.project).settings, limits)
        library = RunLibrary(schedule, settings)
        # What is loaded last governs: the skills do the work, the schedule says what is wanted.
        self._names = (schedule.name, *(_usable(library, name) for name in binding.skills))
        self._message = prompt(
            "work",
            "hand" if by_hand else "due",
            name=schedule.name,
            due=exact_time(due, binding.place),
        )
        self.session = Session(
            settings,
            cwd=binding.project,
            model=binding.model,
            approve=approve,
            ask=ask,
            kit=Kit(tools_for(schedule, asking=ask is not None), library, purpose="schedule"),
        )
        self.outcome = RunOutcome("interrupted")
        self._refused: list[str] = []
        self._calls: dict[str, agent_events.Call] = {}

    async def stream(self) -> AsyncGenerator[agent_events.AnyEvent, None]:
        """What happens, as it happens; afterwards `outcome` says how it ended."""
        error = agent_events.Error("")
        async for event in self.session.say(self._message, skills=self._names):
            if isinstance(event, agent_events.Error):
                error = event
            elif isinstance(event, agent_events.Call):
                self._calls[event.id] = event
            elif isinstance(event, agent_events.Return) and event.failed:
                self._note_refusal(event)
            elif isinstance(event, agent_events.End):
                why = f"{error.why}; {error.hint}" if error.hint else error.why
                self.outcome = RunOutcome(
                    event.reason, event.text, why, error.passing, tuple(self._refused)
                )
            yield event

    def close(self) -> None:
        self.session.close()

    def _note_refusal(self, event: agent_events.Return) -> None:
        """Keep what was not allowed, so that the run can say so."""
        if event.text not in _REFUSALS and not event.text.startswith("There is no tool '"):
            return
        from tacit.agent.agent_events import subject_of

        call = self._calls.get(event.id)
        about = shorten(subject_of(call.arguments).split("\n")[0], 80) if call is not None else ""
        self._refused.append(f"{event.name} {about}".strip())


_REFUSALS = frozenset({Approver().refusal})


def run_settings(schedule: Schedule, settings: Settings, limits: Limits | None) -> Settings:
    """The settings of its folder, held to what the schedule allows."""
    binding = schedule.binding
    agent = msgspec.structs.replace(
        settings.agent,
        allow=binding.allowed,
        network=binding.network,
        sandbox="auto",
        seconds=min(binding.seconds, limits.seconds)
        if limits and limits.seconds
        else binding.seconds,
        tokens=limits.tokens if limits else settings.agent.tokens,
        money=limits.money if limits else settings.agent.money,
        show_secrets=False,
    )
    return msgspec.structs.replace(settings, agent=agent, mcp=McpSettings())


def tools_for(schedule: Schedule, *, asking: bool = False) -> tuple[Tool, ...]:
    """The tools that its allow list names. With a person there, also the one that asks."""
    wanted = [entry.partition(":")[0] for entry in schedule.binding.allowed]

    def is_named(tool: Tool) -> bool:
        if tool.name == "ask_user":
            return asking
        return tool.name not in NEVER and any(fnmatchcase(tool.name, name) for name in wanted)

    return tuple(tool for tool in TOOLS if is_named(tool))


def known_tools() -> tuple[str, ...]:
    """What an allow list can name."""
    return tuple(tool.name for tool in TOOLS if tool.name not in NEVER)


class RunLibrary(Library):
    """The library of a run's folder with the scheduled skill in it, and without the creator."""

    def __init__(self, schedule: Schedule, settings: Settings) -> None:
        self._schedule = schedule
        super().__init__(schedule.binding.project, settings)

    @cached_property
    def entries(self) -> list[Entry]:
        own = scheduled_entry(self._schedule.name)
        others = (e for e in super().entries if e.name not in (CREATOR, self._schedule.name))
        return [*others, *([own] if own is not None else [])]

    def named(self, name: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.name == name]

    def _aliased(self, alias: str) -> list[Entry]:
        return [entry for entry in self.entries if alias in entry.aliases]

    def _known_names(self) -> set[str]:
        return {name for entry in self.entries for name in (entry.name, *entry.aliases)}

    def _lying_at(self, real: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.real == real), None)

    def search(
        self, query: str, limit: int = 10, *, archived: bool = False, about: str = ""
    ) -> "list[Hit]":
        found = super().search(query, limit, archived=archived, about=about)
        return [hit for hit in found if hit.entry.name not in (CREATOR, self._schedule.name)]

    def _offers(self) -> "list[CatalogueRow]":
        return [offer for offer in super()._offers() if offer.name != CREATOR]


def _usable(library: Library, name: str) -> str:
    """The skill that a schedule names. Raises with why it cannot be used."""
    entry = library.find(name)
    if entry is None:
        near = library.suggest(name)
        hint = (
            f"did you mean {' or '.join(near)}?" if near else "bring it back: tacit restore " + name
        )
        raise NotFound(f"the skill '{name}', which it runs, is not there any more", hint)
    if entry.state == "untrusted":
        raise Refused(
            f"the skill '{name}', which it runs, belongs to a project that is not trusted",
            f"trust it: tacit trust {library.cwd}",
        )
    return entry.name
