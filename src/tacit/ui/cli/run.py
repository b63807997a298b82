"""`tacit run`: one task for the agent, for scripts and pipes."""

import asyncio
import sys

import click

from tacit.agent import events
from tacit.agent.approval import subject_of
from tacit.agent.session import Session
from tacit.base import settings
from tacit.base.errors import Usage
from tacit.base.terminal import plain
from tacit.ui.cli import output
from tacit.ui.cli.names import complete_skill
from tacit.ui.talk.scheduled import kit
from tacit.work import glue

_EPILOG = """\b
Examples:
  tacit run "what does this project do?"
  tacit run --skill code-review "the last commit"
  git diff | tacit run "review this change" -
  tacit run --yes --json "mend the failing test" | jq -r 'select(.type=="call").name'

Exit codes: 0 answered, 1 a limit was reached, 11 the model or the provider failed, 130 stopped.
"""

CODES = {"done": 0, "interrupted": 130, "error": 11}


@click.command(epilog=_EPILOG)
@click.argument("task", nargs=-1, required=True)
@click.option("--skill", multiple=True, shell_complete=complete_skill, help="Activate this first.")
@click.option("--model", default="", help="provider:model, instead of the setting.")
@click.option("--max-turns", type=click.IntRange(1), help="Most requests to the model.")
@click.option("--max-seconds", type=click.FloatRange(0.1), help="Most seconds, also mid-request.")
@click.option("--yes", is_flag=True, help="Allow writes and commands without asking.")
@output.json_option
def command(
    task: tuple[str, ...],
    skill: tuple[str, ...],
    model: str,
    max_turns: int | None,
    max_seconds: float | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Let the agent do one task, and print its answer.

    TASK is a sentence; a last word '-' adds what stands on standard input. Nobody is there to ask,
    so writes and commands are refused unless --yes or the setting agent.allow lets them through.
    With --json, every event is a line of JSON as it happens.
    """
    words = list(task)
    piped = sys.stdin.read() if words[-1] == "-" else ""
    text = " ".join(words[:-1] if words[-1] == "-" else words)
    message = "\n\n".join(part for part in (text.strip(), piped.strip()) if part)
    if not message:
        raise Usage("nothing to do", 'say what: tacit run "…"')
    flags = {"agent.turns": max_turns, "agent.seconds": max_seconds}
    loaded = settings.load(flags={key: value for key, value in flags.items() if value})
    session = Session(loaded.settings, model=model, yes=yes, kit=kit())
    glue.listen_to_chat()
    try:
        names = [session.library.get(name).name for name in skill]
        message = " ".join([*(f"/{name}" for name in names), message])
        return asyncio.run(_run(session, message, as_json))
    finally:
        session.close()
        glue.leave()


async def _run(session: Session, message: str, as_json: bool) -> int:
    shown = Printer()
    reason: events.Reason = "error"
    async for event in session.say(message):
        if as_json:
            click.echo(events.encode(event))
        else:
            shown.show(event)
        if isinstance(event, events.End):
            reason = event.reason
    shown.break_line()
    code = CODES.get(reason, 1)
    if code == 1:
        click.echo(f"tacit: stopped: the limit on {reason} was reached", err=True)
    return code


class Printer:
    """The answer on standard output, everything else on standard error."""

    def __init__(self) -> None:
        self._fresh = True

    def show(self, event: events.AnyEvent) -> None:
        if isinstance(event, events.Text):
            click.echo(plain(event.delta), nl=False)
            self._fresh = event.delta.endswith("\n")
            return
        if isinstance(event, events.Usage | events.End | events.Skill):
            return
        self.break_line()
        if isinstance(event, events.Call):
            about = plain(subject_of(event.arguments)).split("\n")[0][:80]
            _note(f"· {plain(event.name)} {about}")
        elif isinstance(event, events.Return) and event.failed:
            last = plain(events.last_words(event.text))[:120]
            click.echo(click.style(f"  failed: {last}", fg="yellow"), err=True)
        elif isinstance(event, events.Restarted):
            _note(f"· {plain(event.why)}; again in {event.seconds:.0f} s")
        elif isinstance(event, events.Notice):
            _note(f"· {plain(event.text)}")
        elif isinstance(event, events.Compacted):
            _note(f"· summed up to make room ({event.tokens:,} tokens before)")
        elif isinstance(event, events.Error):
            name = click.style("tacit:", fg="red")
            click.echo(f"{name} {plain(event.why)}\n       {plain(event.hint)}", err=True)

    def break_line(self) -> None:
        if not self._fresh:
            click.echo()
            self._fresh = True


def _note(text: str) -> None:
    click.echo(click.style(text, dim=True), err=True)
