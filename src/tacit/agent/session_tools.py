"""The tools of a session: all of them together, and the small ones.

Owns the list `TOOLS` that a session with a user has, the `Kit` by which a caller gives it others,
and the tools that need no module of their own: running a command, asking the user, searching
earlier sessions.
"""

import asyncio

import msgspec

from tacit.agent import fact_tools, file_tools, skill_tools
from tacit.agent.sandbox import run_sandboxed
from tacit.agent.tool import Context, Failed, Question, Result, Tool
from tacit.base.errors import Refused, TacitError
from tacit.skills.library import Library
from tacit.traces.session_search import Hit
from tacit.traces.store import Store

_LONGEST = 1800.0


class RunCommand(msgspec.Struct, frozen=True):
    command: str
    seconds: float = 0.0


class AskUser(msgspec.Struct, frozen=True):
    question: str
    options: list[str] = []


async def run_command(call: RunCommand, context: Context) -> Result:
    try:
        sandbox = context.sandbox()
    except Refused as refused:
        raise Failed(refused.explain()) from None
    rules = context.rules()
    seconds = min(call.seconds or context.options.seconds, _LONGEST)
    try:
        outcome = await run_sandboxed(call.command, sandbox, rules, seconds)
    except Refused as refused:
        raise Failed(refused.explain()) from None
    text = context.shorten(outcome.output.rstrip("\n"))
    if outcome.removed:
        names = ", ".join(outcome.removed)
        text += f"\n[taken away again: {names}. Skills are made by manage_skill; git's settings and"
        text += " hooks, and files that other programs obey, are the user's: agent.allow_write.]"
        return Result(text.lstrip(), failed=True)
    if outcome.excess:
        return Result(f"{text}\n[stopped: {outcome.excess}]".lstrip(), failed=True)
    if outcome.timed_out:
        return Result(f"{text}\n[stopped after {seconds:g} s]".lstrip(), failed=True)
    if outcome.exit_code:
        return Result(f"{text}\n[exit code {outcome.exit_code}]".lstrip(), failed=True)
    return Result(text or "[done, no output]")


async def ask_user(call: AskUser, context: Context) -> Result:
    if not call.question.strip():
        raise Failed("ask_user needs a question")
    answer = await context.ask(Question(call.question, tuple(call.options)))
    if answer is None:
        return Result(
            "Nobody is there to answer. Go on with what is known, or say what is missing.",
            failed=True,
        )
    return Result(answer)


COMMAND_TOOLS = (
    Tool(
        "run_command",
        "Run a shell command in the project, in a sandbox. A non-zero exit is a failure.",
        RunCommand,
        run_command,
        "command",
    ),
    Tool(
        "ask_user", "Ask the user, with optional answers to choose from.", AskUser, ask_user, "ask"
    ),
)


class SearchSessions(msgspec.Struct, frozen=True):
    query: str
    everywhere: bool = False
    limit: int = 8


async def search_sessions(call: SearchSessions, context: Context) -> Result:
    def find() -> list[Hit]:
        where = "" if call.everywhere else context.project
        with Store.open() as store:
            return store.search(call.query, project=where, limit=max(1, min(call.limit, 50)))

    try:
        hits = await asyncio.to_thread(find)
    except TacitError as error:
        raise Failed(error.explain()) from None
    rows = [_row(hit) for hit in hits]
    return Result(context.shorten("\n".join(rows)) or "(no session fits)")


def _row(hit: Hit) -> str:
    when = f"{hit.at:%Y-%m-%d}" if hit.at else "undated"
    return f"- {hit.id}, step {hit.place}, {when}: {' '.join(hit.snippet.text.split())}"


SESSION_TOOLS = (
    Tool(
        "search_sessions",
        "Find earlier sessions in this project (or everywhere) in which all the words stand.",
        SearchSessions,
        search_sessions,
    ),
)


TOOLS: tuple[Tool, ...] = (
    *file_tools.FILE_TOOLS,
    *COMMAND_TOOLS,
    *skill_tools.SKILL_TOOLS,
    *skill_tools.CHANGE_TOOLS,
    *SESSION_TOOLS,
    *fact_tools.FACT_TOOLS,
)
"""All of a foreground session's own."""


class Kit(msgspec.Struct, frozen=True):
    """The tools of a session, and the skills that it knows."""

    tools: tuple[Tool, ...] = TOOLS
    library: Library | None = None
    """Instead of the one of its working directory."""
    purpose: str = ""
    """What a session is for that is not a conversation with a user: `schedule`."""
