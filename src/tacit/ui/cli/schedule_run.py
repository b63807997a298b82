"""`tacit schedule run`: a schedule now, by hand."""

import asyncio
import sys

import click

from tacit.agent import events
from tacit.agent.approval import Answer, Request
from tacit.base.terminal import plain
from tacit.ui.cli import output, schedule_help
from tacit.ui.cli.run import CODES, Printer
from tacit.ui.cli.scheduling import complete_schedule
from tacit.work import glue
from tacit.work.schedules import shelf
from tacit.work.schedules.byhand import ByHand


@click.command(epilog=schedule_help.RUN)
@click.argument("name", shell_complete=complete_schedule)
@output.json_option
def run(name: str, as_json: bool) -> int:
    """Run a schedule now, by hand, and print its output.

    It is a session of its own, as when it fires. On a terminal you are asked before a call that
    needs it. With --json, every event is a line of JSON as it happens.
    """
    as_json = output.json_wanted(as_json)
    schedule = shelf.find(name)
    asks = _approve if sys.stdin.isatty() and not as_json else None
    glue.listen_to_chat()
    hand = ByHand(schedule, approve=asks)
    try:
        return asyncio.run(_run(hand, as_json))
    finally:
        hand.close()
        glue.leave()


async def _run(hand: ByHand, as_json: bool) -> int:
    shown = Printer()
    reason: events.Reason = "error"
    async for event in hand.stream():
        if as_json:
            click.echo(events.encode(event))
        else:
            shown.show(event)
        if isinstance(event, events.End):
            reason = event.reason
    shown.break_line()
    for refused in hand.refused:
        click.echo(f"tacit: not allowed: {plain(refused)}", err=True)
    code = CODES.get(reason, 1)
    if code == 1:
        click.echo(f"tacit: stopped: the limit on {reason} was reached", err=True)
    return code


async def _approve(request: Request) -> Answer:
    said = f"Allow {request.tool} {plain(request.subject)[:200]}?"
    yes = await asyncio.to_thread(click.confirm, said, default=False, err=True)
    return "once" if yes else "no"
