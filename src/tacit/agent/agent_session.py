"""A session: the agent put together from the settings, in conversation with one user.

Owns the life of a session, from its first message to the last: it reads `/name` and loads skills,
tells the model what is new, hands the message to the loop and publishes that the answer is over.
Showing events is left to the faces in `ui/`.
"""

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from tacit.agent import agent_events, models, sandbox
from tacit.agent.activation import Slash, Unknown, parse_slash, slash_words
from tacit.agent.agent_events import ReviewBegun
from tacit.agent.budget import Limits
from tacit.agent.command_limits import limits_of
from tacit.agent.conversation import Conversation, resume
from tacit.agent.instructions import (
    INSTRUCTION_FILES,
    News,
    fact_news,
    instructions,
    leads_out,
    news_for,
    offered_skills,
    recall_facts,
    untrusted_files,
)
from tacit.agent.loop import Agent
from tacit.agent.mcp_servers import Servers
from tacit.agent.session_tools import Kit
from tacit.agent.skill_tools import RunSkill, activate, bring_back
from tacit.agent.tool import Context, Failed, Question, Result, Tool, ToolOptions
from tacit.agent.tool_approval import Approver, Ask
from tacit.base import config_file, paths
from tacit.base.atomic_files import TemporaryFolder, drop_abandoned
from tacit.base.errors import BadConfig, TacitError
from tacit.base.event_bus import bus
from tacit.base.setting_sections import AgentSettings, Settings
from tacit.skills import holdback
from tacit.skills.holdback import Holdback
from tacit.skills.library import Library
from tacit.traces.hosts.tacit import find_session
from tacit.traces.trace import OWN_HOST

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models import Model

AskUser = Callable[[Question], Awaitable[str | None]]


class Session:
    """One conversation with a user, from the first message to the last."""

    def __init__(
        self,
        settings: Settings,
        *,
        cwd: str | None = None,
        model: str = "",
        resuming: str = "",
        yes: bool = False,
        approve: Ask | None = None,
        ask: AskUser | None = None,
        kit: Kit | None = None,
    ) -> None:
        cwd = cwd or os.getcwd()
        kit = kit or Kit()
        chosen = settings.agent
        self.settings = settings
        self.project = paths.project_root(cwd)
        # An empty library is one too, and false.
        self.library = kit.library if kit.library is not None else Library(cwd, settings)
        self.tools = kit.tools
        self.choice = models.require(chosen, model)
        if kit.seed is not None:
            self.choice = msgspec.structs.replace(self.choice, seed=kit.seed)
        self._configured = (models.configured(chosen) if model else None) or self.choice
        redact = settings.traces.redact
        held = self._drawn(resuming, kit)
        if held.held:
            self.library.leave_out(held.held)
        self.conversation = (
            resume(resuming, redact=redact) if resuming else self._start(kit.purpose)
        )
        if not resuming and (held.held or held.offered):
            self._keep_drawn(held)
        drop_abandoned(time.time())
        self._folder = TemporaryFolder()
        self.temporary = self._folder.path
        self.context = Context(
            self.project,
            self.temporary,
            library=self.library,
            sandbox=lambda: sandbox.find_sandbox(allow_none=chosen.sandbox == "none"),
            ask=ask or _nobody,
            options=_tool_options(chosen),
        )
        self.context.session = self.conversation.session
        self.context.active = self.conversation.active
        self.context.user_words = self.conversation.user_words
        self.context.folders_below = tuple(
            os.path.realpath(p) for p in paths.upwards(cwd, self.project)
        )
        self._approver = Approver(chosen.allow, yes=yes, ask=approve, remember=self._remember)
        self._agent: Agent | None = None
        self._servers = Servers(settings.mcp.servers)
        self._unsubscribe = bus.subscribe(ReviewBegun, self._on_review)
        self._notices = list(_what_is_not_read(self.project, cwd))

    def _drawn(self, resuming: str, kit: Kit) -> Holdback:
        """Which learned skills this session is without, by lot, where the user wants to know."""
        share = self.settings.learn.holdback
        if not share or kit.purpose or kit.library is not None:
            return Holdback()
        if resuming:
            return holdback.drawn_by(f"{OWN_HOST}:{find_session(resuming)}")
        return holdback.draw(self.library, share)

    def _keep_drawn(self, drawn: Holdback) -> None:
        if not holdback.record(f"{OWN_HOST}:{self.conversation.session}", drawn):
            self.library.leave_out(())  # the model is told of them with the next message

    def release(self, names: Iterable[str]) -> None:
        """Have those of `names` back that were left out by lot: a person asked for them."""
        asked = self.library.left_out.intersection(names)
        if asked:
            self.library.leave_out(self.library.left_out - asked)
            holdback.release(f"{OWN_HOST}:{self.conversation.session}", asked)

    def use_model(self, name: str) -> None:
        """Go on with another model, from the next message on; `name` as `models.named` reads it.

        The conversation stays as it is, to the byte where the provider is the same. Blocks while
        a provider's library is imported. Raises `BadConfig`, and then all is as before.
        """
        choice = models.named(name, self.choice, self._configured)
        models.build(choice)
        self.choice = choice
        self._agent = None
        self.conversation.switched(choice.name)

    def close(self) -> None:
        """Let go of the session's file and folder. Safe to call again."""
        self._unsubscribe()
        self._servers.close()
        self.conversation.close()
        self._folder.close()

    async def say(
        self, message: str, *, skills: Sequence[str] = ()
    ) -> AsyncGenerator[agent_events.AnyEvent, None]:
        """Answer a message of the user's; `/name` activates skills first, and so do `skills`.

        The last event is an `End`. Cancelling the reader interrupts the agent; what was done stays.
        """
        self.library.refresh()
        self.release([*skills, *(word.name for word in slash_words(message))])
        named = Slash(tuple(skills), message, "") if skills else None
        slash = named or parse_slash(message, self.library)
        if isinstance(slash, Unknown):
            slash = self._restored(slash, message)
        if isinstance(slash, Unknown):
            near = f"did you mean /{' or /'.join(slash.near)}?" if slash.near else "see: /skills"
            why, hint = slash.refused
            said = (
                f"the skill '/{slash.name}' {why}" if why else f"there is no skill '/{slash.name}'"
            )
            yield agent_events.Error(f"{said}; nothing was sent", hint or near)
            yield agent_events.End("error", "", 0)
            return
        agent = self._loaded(await self._servers.tools())
        self._notices += self._servers.troubles
        self._servers.troubles.clear()
        facts = fact_news(
            self.library.cwd,
            self.settings.memory,
            self.conversation.known,
            self.context.facts_changed,
        )
        self.context.facts_changed.clear()
        fresh = news_for(self.library, self.conversation, facts)
        reason: agent_events.Reason = "interrupted"
        try:
            async for event in self._answer(agent, message, slash, fresh):
                if isinstance(event, agent_events.End):
                    reason = event.reason
                while self._notices:
                    yield agent_events.Notice(self._notices.pop(0))
                yield event
        finally:
            counts = self.conversation.counts
            bus.publish(counts.answered(self.context.session, self.project, reason))

    def _restored(self, unknown: Unknown, message: str) -> Slash | Unknown | None:
        """What `message` asks for once an archived skill is back."""
        found = bring_back(self.library, unknown.name, "user", self.conversation.session)
        if found is None:
            return unknown
        self._notices.append(found.note)
        if not found.name:
            return unknown
        self.library.refresh()
        rest = message[slash_words(message)[0].end :]
        return parse_slash(f"/{found.name} {rest}", self.library)

    async def _answer(
        self, agent: Agent, message: str, slash: Slash | None, fresh: News
    ) -> AsyncGenerator[agent_events.AnyEvent, None]:
        if slash is None:
            async for event in agent.respond(message, note=fresh.note, known=fresh.names):
                yield event
            return
        try:
            calls = self._activate(slash)
        except Failed as failed:
            yield agent_events.Error(str(failed), "nothing was sent")
            yield agent_events.End("error", "", 0)
            return
        self.conversation.add_user(slash.text, note=fresh.note, known=fresh.names)
        self.conversation.add_user_calls(calls)
        for _, result in calls:
            if (active := result.activated) is not None:
                yield agent_events.Skill(active.name, "user", active.digest)
        async for event in agent.resume():
            yield event

    def _activate(self, slash: Slash) -> "list[tuple[ToolCallPart, Result]]":
        """The calls that the model itself would have made, with their results. Raises `Failed`."""
        from pydantic_ai.messages import ToolCallPart

        calls = []
        ids = self.conversation.next_call_ids(len(slash.skills))
        for name, call_id in zip(slash.skills, ids, strict=True):
            arguments = {"name": name} | ({"arguments": slash.arguments} if slash.arguments else {})
            result = activate(RunSkill(**arguments), self.context)
            calls.append((ToolCallPart("run_skill", arguments, call_id), result))
        return calls

    def _loaded(self, more: Sequence[Tool] = ()) -> Agent:
        """The agent; the provider's library is imported at the first message."""
        if self._agent is None:
            self._agent = Agent(
                [models.build(self.choice), *self._fallback()],
                self.conversation,
                (*self.tools, *more),
                self.context,
                self._approver,
                limits=Limits.of(self.settings.agent),
                window=self.settings.agent.window,
            )
        return self._agent

    def _fallback(self) -> "list[Model]":
        """The other models, in order. One that cannot be had is told of, and is not missed yet."""
        found = []
        for name in self.settings.agent.fallback:
            try:
                found.append(models.build(models.named(name, self._configured)))
            except BadConfig as error:
                self._notices.append(f"without the fallback {name}: {error.message}")
        return found

    def _start(self, purpose: str) -> Conversation:
        facts = recall_facts(self.library.cwd, self.settings.memory)
        text = instructions(
            self.project,
            self.library,
            self.tools,
            network=self.settings.agent.network,
            memory=facts.text,
        )
        known = (*offered_skills(self.library), *facts.keys)
        return Conversation.new(
            text,
            project=self.project,
            model=self.choice.name,
            purpose=purpose,
            known=known,
            redact=self.settings.traces.redact,
        )

    def _on_review(self, begun: ReviewBegun) -> None:
        if begun.session == self.context.session:
            self.conversation.review_begun(skills=begun.skills, facts=begun.facts)

    def _remember(self, pattern: str) -> None:
        try:
            path = config_file.append_value("agent.allow", pattern)
        except TacitError as error:
            self._notices.append(f"'{pattern}' is allowed for this session only: {error.message}")
        else:
            self._notices.append(f"'{pattern}' is allowed from now on: {paths.with_tilde(path)}")


def _tool_options(chosen: AgentSettings) -> ToolOptions:
    return ToolOptions(
        network=chosen.network,
        seconds=chosen.command_seconds,
        show_secrets=chosen.show_secrets,
        show_paths=tuple(map(os.path.expanduser, chosen.show_paths)),
        write_paths=_existing_folders(chosen.write_paths),
        allow_write=chosen.allow_write,
        limits=limits_of(chosen),
    )


def _what_is_not_read(project: str, cwd: str) -> Iterator[str]:
    """Which of the project's own instructions are left out, and why."""
    if left_out := untrusted_files(project):
        yield f"{' and '.join(left_out)} of this project is not read: tacit trust {cwd}"
    for name in INSTRUCTION_FILES:
        if leads_out(project, name):
            yield f"{name} of this project leads out of it and is not read"


def _existing_folders(chosen: Sequence[str]) -> tuple[str, ...]:
    real = (os.path.realpath(os.path.expanduser(path)) for path in chosen)
    return tuple(path for path in real if os.path.isdir(path))


async def _nobody(asked: Question) -> str | None:
    return None
