"""Putting an agent together from the settings: model, prompt, tools, approval, limits."""

import os
import platform
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date
from importlib.resources import files

from tacit.agent import events, foreign, models, sandbox
from tacit.agent.activation import Slash, Unknown, call_id, parse_slash
from tacit.agent.approval import Approver, Ask
from tacit.agent.conversation import Conversation, resume
from tacit.agent.limits import Limits
from tacit.agent.loop import Agent
from tacit.agent.tools import files as file_tools
from tacit.agent.tools import shell as shell_tools
from tacit.agent.tools import skills as skill_tools
from tacit.agent.tools.skills import RunSkill, activate
from tacit.agent.tools.tool import Asked, Context, Options, Result, Tool
from tacit.base import paths
from tacit.base.errors import BadConfig, NotFound
from tacit.base.settings import AgentSettings, Settings
from tacit.skills.library import Library

TOOLS: tuple[Tool, ...] = (*file_tools.TOOLS, *shell_tools.TOOLS, *skill_tools.TOOLS)

AskUser = Callable[[Asked], Awaitable[str | None]]
_INSTRUCTION_FILES = ("AGENTS.md", "CLAUDE.md")
_MOST_INSTRUCTIONS = 32_000


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
    ) -> None:
        cwd = cwd or os.getcwd()
        self.settings = settings
        self.project = paths.project_root(cwd)
        self.library = Library(cwd, settings)
        chosen = settings.agent
        self.choice = choose(chosen, model)
        self.temporary = tempfile.mkdtemp(prefix="tacit-")
        options = Options(
            network=chosen.network,
            seconds=chosen.command_seconds,
            show_secrets=chosen.show_secrets,
        )
        self.context = Context(
            self.project,
            self.temporary,
            library=self.library,
            sandbox=lambda: sandbox.find(allow_none=chosen.sandbox == "none"),
            ask=ask or _nobody,
            options=options,
        )
        self.conversation = resume(resuming) if resuming else self._start()
        self.context.active = self.conversation.active
        self.context.on_activated = self.conversation.activate
        self._approver = Approver(chosen.allow, yes=yes, ask=approve, remember=_remember)
        self._agent: Agent | None = None

    def close(self) -> None:
        shutil.rmtree(self.temporary, ignore_errors=True)

    async def say(self, message: str) -> AsyncIterator[events.AnyEvent]:
        """Answer a message of the user's; `/name` activates skills first."""
        slash = parse_slash(message, self.library)
        if isinstance(slash, Unknown):
            near = f"did you mean /{' or /'.join(slash.near)}?" if slash.near else "see: /skills"
            yield events.Error(f"there is no skill '/{slash.name}'; nothing was sent", near)
            yield events.End("error", "", 0)
            return
        agent = self._loaded()
        if slash is None:
            async for event in agent.respond(message):
                yield event
            return
        self.conversation.add_user(slash.text)
        for event in self._activate(slash):
            yield event
        async for event in agent.resume():
            yield event

    def _activate(self, slash: Slash) -> "list[events.AnyEvent]":
        from pydantic_ai.messages import ToolCallPart

        calls: list[tuple[ToolCallPart, Result]] = []
        told: list[events.AnyEvent] = []
        for name in slash.skills:
            arguments = {"name": name} | ({"arguments": slash.arguments} if slash.arguments else {})
            number = len(self.conversation.messages) + len(calls)
            part = ToolCallPart("run_skill", arguments, call_id(self.conversation.session, number))
            result, active = activate(RunSkill(**arguments), self.context)
            calls.append((part, result))
            told.append(events.Skill(active.name, "user", active.digest))
        self.conversation.add_user_calls(calls)
        return told

    def _loaded(self) -> Agent:
        """The agent; the provider's library is imported at the first message."""
        if self._agent is None:
            chosen = self.settings.agent
            others = tuple(models.Choice(name, chosen.base_url) for name in chosen.fallback)
            limits = Limits(chosen.turns, chosen.seconds, chosen.tokens, chosen.money)
            model = models.build(self.choice, others)
            self._agent = Agent(
                model, self.conversation, TOOLS, self.context, self._approver, limits=limits
            )
        return self._agent

    def _start(self) -> Conversation:
        return Conversation.new(self._instructions(), project=self.project, model=self.choice.name)

    def _instructions(self) -> str:
        """The system prompt. It is made once: what changes later is said in later messages."""
        network = "a network" if self.settings.agent.network else "no network"
        parts = [
            prompt("system").format(
                project=self.project,
                network=network,
                date=date.today().isoformat(),
                system=platform.platform(terse=True),
            ),
            prompt("skill_execution").format(mapping=foreign.mapping({t.name for t in TOOLS})),
            self.library.catalogue().text,
            self._project_instructions(),
        ]
        return "\n".join(part.strip() + "\n" for part in parts if part.strip())

    def _project_instructions(self) -> str:
        """AGENTS.md and CLAUDE.md of the project; one that only repeats the other is left out."""
        found: dict[str, str] = {}
        for name in _INSTRUCTION_FILES:
            try:
                with open(
                    os.path.join(self.project, name), encoding="utf-8", errors="replace"
                ) as f:
                    text = f.read(_MOST_INSTRUCTIONS).strip()
            except OSError:
                continue
            if text and text not in found.values():
                found[name] = text
        return "\n\n".join(
            f"## From the project's {name}\n\n{text}" for name, text in found.items()
        )


def choose(settings: AgentSettings, model: str = "") -> models.Choice:
    """The model for a conversation. Raises `BadConfig` with what to do when there is none."""
    choice = models.find(model or settings.model, settings.base_url)
    if choice is None:
        raise BadConfig(
            "no model: no key is set, and no local server answers",
            "set one up: tacit setup (or set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY)",
        )
    return choice


def prompt(name: str) -> str:
    """A prompt of ours, by its file's stem."""
    return (files("tacit.agent") / "prompts" / f"{name}.md").read_text(encoding="utf-8")


async def _nobody(asked: Asked) -> str | None:
    return None


def _remember(pattern: str) -> None:
    """Keep a pattern in the user's settings."""
    raise NotFound(f"cannot keep {pattern}", "add it to agent.allow")
