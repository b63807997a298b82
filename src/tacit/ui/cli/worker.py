"""`tacit worker`: what hooks start in the background."""

import click

from tacit.traces import events
from tacit.ui.cli import output
from tacit.work.worker import IDLE, work

_EPILOG = """\b
Examples:
  tacit worker                       do what waits, then go
  tacit worker --quiet 0             do not wait for sessions to go quiet
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--quiet", type=click.FloatRange(0), default=events.QUIET, help="Seconds that end a session."
)
@click.option("--idle", type=click.FloatRange(0), default=IDLE, help="Seconds to wait for more.")
@output.json_option
def command(quiet: float, idle: float, as_json: bool) -> int:
    """Take in the sessions that hooks reported, and go when nothing is left.

    Hooks start it by themselves; one runs at a time.
    """
    taken = work(quiet=quiet, idle=idle)
    if as_json:
        output.write_json({"taken": taken})
    else:
        click.echo(f"Took in {output.counted(taken, 'session')}")
    return 0
