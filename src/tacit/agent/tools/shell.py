"""The tool for commands, and the one for questions."""

import msgspec

from tacit.agent import running
from tacit.agent.tools.tool import Asked, Context, Failed, Result, Tool
from tacit.base.errors import Refused

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
        raise Failed(f"{refused.message}; {refused.hint}") from None
    rules = context.rules()
    seconds = min(call.seconds or context.options.seconds, _LONGEST)
    outcome = await running.run(call.command, sandbox, rules, seconds)
    text = context.shorten(outcome.output.rstrip("\n"))
    if outcome.taken_away:
        names = ", ".join(outcome.taken_away)
        text += f"\n[taken away again: {names}. Skills are made by manage_skill; git's settings and"
        text += " hooks are the user's.]"
        return Result(text.lstrip(), failed=True)
    if outcome.timed_out:
        return Result(f"{text}\n[stopped after {seconds:g} s]".lstrip(), failed=True)
    if outcome.exit_code:
        return Result(f"{text}\n[exit code {outcome.exit_code}]".lstrip(), failed=True)
    return Result(text or "[done, no output]")


async def ask_user(call: AskUser, context: Context) -> Result:
    if not call.question.strip():
        raise Failed("ask_user needs a question")
    answer = await context.ask(Asked(call.question, tuple(call.options)))
    if answer is None:
        return Result(
            "Nobody is there to answer. Go on with what is known, or say what is missing.",
            failed=True,
        )
    return Result(answer)


TOOLS = (
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
