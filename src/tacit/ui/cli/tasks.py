"""`tacit run`: one task for the agent, for scripts and pipes.

Owns the printing of an agent's events as lines, which `tacit schedule run` uses too.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import click

from tacit.agent import agent_events
from tacit.agent.agent_session import Session
from tacit.base import settings
from tacit.base.display import plain, shorten
from tacit.base.errors import Usage
from tacit.ui.chat.event_text import event_notice
from tacit.ui.chat.live_chat import chat_kit
from tacit.ui.cli.command import command, leaving_in_order
from tacit.ui.cli.user_shell import complete_skill
from tacit.work import reactions

EXIT_CODES = {"done": 0, "interrupted": 130, "error": 11}


@command(
    "run",
    "work",
    "Let the agent do one task, and print its answer.",
    'tacit run "what does this project do?"',
    'tacit run --skill code-review "the last commit"',
    'git diff | tacit run "review this change" -',
    'tacit run --yes --json "mend the failing test" | jq -r \'select(.type=="call").name\'',
    note="Exit codes: 0 answered, 1 a limit was reached, 11 the model or the provider failed, "
    "130 stopped.",
)
@click.argument("task", nargs=-1, required=True)
@click.option("--skill", multiple=True, shell_complete=complete_skill, help="Activate this first.")
@click.option("--model", default="", help="provider:model, instead of the setting.")
@click.option("--max-turns", type=click.IntRange(1), help="Most requests to the model.")
@click.option("--max-seconds", type=click.FloatRange(0.1), help="Most seconds, also mid-request.")
@click.option("--yes", is_flag=True, help="Allow writes and commands without asking.")
def run_command(
    task: tuple[str, ...],
    skill: tuple[str, ...],
    model: str,
    max_turns: int | None,
    max_seconds: float | None,
    yes: bool,
    as_json: bool,
) -> int:
    """Let the agent do one task, and print its answer.

    TASK is a sentence; a last word '-' adds what stands on standard input: as what the task is
    about, not as your words, unless it is all there is. Nobody is there to ask, so writes and
    commands are refused unless --yes or the setting agent.allow lets them through. With --json,
    every event is a line of JSON as it happens.
    """
    words = list(task)
    piped = sys.stdin.read() if words[-1] == "-" else ""
    text = " ".join(words[:-1] if words[-1] == "-" else words)
    piped = piped.strip()
    if piped and (text.strip() or skill):  # alone it is the task, else what the task is about
        from tacit.traces.typed_words import as_piped

        piped = as_piped(piped)
    message = "\n\n".join(part for part in (text.strip(), piped) if part)
    if not message:
        raise Usage("nothing to do", 'say what: tacit run "…"')
    flags = {"agent.turns": max_turns, "agent.seconds": max_seconds}
    loaded = settings.load_settings(flags={key: value for key, value in flags.items() if value})
    with leaving_in_order():
        session = Session(loaded.settings, model=model, yes=yes, kit=chat_kit())
        reactions.listen_to_chat()
        try:
            session.release(skill)
            names = [session.library.get(name).name for name in skill]
            message = " ".join([*(f"/{name}" for name in names), message])
            return asyncio.run(print_events(session.say(message), as_json))
        finally:
            session.close()
            reactions.end_chats()


async def print_events(events: AsyncIterator[agent_events.AnyEvent], as_json: bool) -> int:
    """Print what an agent says and does until it ends; the exit code."""
    printer = EventPrinter()
    end: agent_events.AnyEvent = agent_events.End("error", "", 0)
    async for event in events:
        if as_json:
            click.echo(agent_events.encode_event(event))
        else:
            printer.show(event)
        if isinstance(event, agent_events.End):
            end = event
    printer.break_line()
    assert isinstance(end, agent_events.End)
    if stopped := event_notice(end)[0]:
        click.echo(f"tacit: {stopped}", err=True)
    return EXIT_CODES.get(end.reason, 1)


class EventPrinter:
    """The answer on standard output, everything else on standard error."""

    def __init__(self) -> None:
        self._fresh = True

    def show(self, event: agent_events.AnyEvent) -> None:
        if isinstance(event, agent_events.Text):
            click.echo(plain(event.delta), nl=False)
            self._fresh = event.delta.endswith("\n")
            return
        if isinstance(event, agent_events.Usage | agent_events.End | agent_events.Skill):
            return
        self.break_line()
        if isinstance(event, agent_events.Call):
            about = shorten(plain(agent_events.subject_of(event.arguments)).split("\n")[0], 80)
            _write_aside(f"· {plain(event.name)} {about}")
        elif isinstance(event, agent_events.Return) and event.failed:
            last = shorten(plain(agent_events.last_words(event.text)), 120)
            click.echo(click.style(f"  failed: {last}", fg="yellow"), err=True)
        elif isinstance(event, agent_events.Error):
            text = plain(event_notice(event)[0]).replace("\n", "\n       ")
            click.echo(f"{click.style('tacit:', fg='red')} {text}", err=True)
        elif text := event_notice(event)[0]:
            _write_aside(f"· {plain(text)}")

    def break_line(self) -> None:
        if not self._fresh:
            click.echo()
            self._fresh = True


def _write_aside(text: str) -> None:
    click.echo(click.style(text, dim=True), err=True)
