"""`tacit worker`: what hooks start in the background."""

import os
import sys

import click

from tacit.base.amounts import counted
from tacit.ui.cli import output
from tacit.work.worker import left_running, patience, work

_EPILOG = """\b
Examples:
  tacit worker                       do what waits, then go
  tacit worker --quiet 0             do not wait for sessions to go quiet
"""


@click.command(epilog=_EPILOG)
@click.option("--quiet", type=click.FloatRange(0), help="Seconds that end a session.")
@click.option("--idle", type=click.FloatRange(0), help="Seconds to wait for more.")
@output.json_option
def command(quiet: float | None, idle: float | None, as_json: bool) -> int:
    """Take in the sessions that hooks reported, and go when nothing is left.

    Hooks start it by themselves; one runs at a time. How patient it is can be set: worker.quiet
    and worker.idle.
    """
    set_ = patience()
    taken = work(
        quiet=set_.quiet if quiet is None else quiet, idle=set_.idle if idle is None else idle
    )
    if as_json:
        output.write_json({"taken": taken})
    else:
        click.echo(f"Took in {counted(taken, 'session')}")
    if left_running():  # the next worker takes it up; its thread must not keep this process
        sys.stdout.flush()
        os._exit(0)
    return 0
