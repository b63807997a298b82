"""`tacit daemon`: a worker that stays."""

import os
import signal
import sys
import time
from datetime import UTC, datetime
from types import FrameType

import click

from tacit.base.errors import Busy, Refused
from tacit.base.moments import ago
from tacit.base.paths import shorten
from tacit.base.terminal import plain
from tacit.ui.cli import output
from tacit.work import units
from tacit.work.log import log, log_file
from tacit.work.where import place
from tacit.work.worker import patience, present, work

_EPILOG = """\b
Examples:
  tacit daemon                       stay and work, here; Ctrl-C ends it
  tacit daemon install               start it now and whenever you log in
  tacit daemon install --print       only show what would be written
  tacit daemon status
  tacit daemon stop

Hooks start a worker by themselves, which goes when it is idle; a daemon is for schedules, for jobs
that were put off, and for machines that share a queue. Keys for models: write NAME=value lines into
daemon.env beside config.toml.
"""
_STOPPING = 15.0


@click.group(epilog=_EPILOG, invoke_without_command=True)
@output.json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Keep a worker running: it does not go when it is idle."""
    if ctx.invoked_subcommand:
        return 0
    other = present()
    if other is not None and other.stays:
        raise Refused(f"a daemon runs already, process {other.pid}", "end it: tacit daemon stop")
    os.environ.update(units.read_environment())
    where = place()
    stopped: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        stopped.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    log(f"daemon: began, process {os.getpid()}, jobs in {where.shown}")
    if as_json:
        output.write_json({"pid": os.getpid(), "queue": where.shown, "log": log_file()})
    else:
        click.echo(f"Working until Ctrl-C. Jobs: {where.shown} · log: {shorten(log_file())}")
    sys.stdout.flush()
    work(quiet=patience().quiet, stay=True, stop=lambda: bool(stopped))
    log("daemon: ended")
    sys.stdout.flush()
    # A job that runs is taken up by the next worker; its thread must not keep this one.
    os._exit(0)


@command.command("install", epilog=output.example("tacit daemon install --print"))
@click.option("--print", "only_print", is_flag=True, help="Write nothing.")
@output.json_option
def install(only_print: bool, as_json: bool) -> int:
    """Have the daemon started now, and whenever you log in."""
    unit = units.unit()
    said = "" if only_print else units.install(unit)
    if output.json_wanted(as_json):
        output.write_json({"unit": unit, "written": not only_print, "trouble": said})
        return 0
    if only_print:
        click.echo(f"# {unit.path}\n{unit.text}")
        return 0
    click.echo(f"Written: {plain(shorten(unit.path))}")
    if said:
        click.echo(f"{unit.starter} did not start it: {plain(said)}")
        click.echo(f"Start it by hand: {' && '.join(' '.join(c) for c in unit.start)}")
    else:
        click.echo("It runs, and is started whenever you log in. Keys for models:")
        click.echo(f"  NAME=value lines in {shorten(units.environment_file())}")
    return 0


@command.command("uninstall", epilog=output.example("tacit daemon uninstall"))
@output.json_option
def uninstall(as_json: bool) -> int:
    """Take back what `tacit daemon install` wrote."""
    unit = units.unit()
    there = os.path.exists(unit.path)
    said = units.uninstall(unit)
    if output.json_wanted(as_json):
        output.write_json({"path": unit.path, "removed": there, "trouble": said})
    elif there:
        click.echo(f"Removed: {plain(shorten(unit.path))}{f' ({plain(said)})' if said else ''}")
    else:
        click.echo("Nothing was installed.")
    return 0


@command.command("status", epilog=output.example("tacit daemon status --json"))
@output.json_option
def status(as_json: bool) -> int:
    """Say whether a worker runs, and whether the daemon is installed."""
    here = present()
    unit = units.unit()
    installed = os.path.exists(unit.path)
    if output.json_wanted(as_json):
        output.write_json({"worker": here, "installed": installed, "queue": place().shown})
        return 0
    if here is None:
        click.echo("No worker runs; hooks start one when a session ends.")
    else:
        since = ago(datetime.fromtimestamp(here.since, UTC))
        what = "The daemon" if here.stays else "A worker that hooks started"
        click.echo(f"{what} runs, process {here.pid}, since {since}.")
    click.echo(f"jobs       {place().shown}")
    click.echo(f"log        {shorten(log_file())}")
    click.echo(f"installed  {shorten(unit.path) if installed else 'no: tacit daemon install'}")
    return 0


@command.command("stop", epilog=output.example("tacit daemon stop"))
@output.json_option
def stop(as_json: bool) -> int:
    """End the worker that runs; what it was doing is taken up by the next."""
    here = present()
    if here is not None:
        os.kill(here.pid, signal.SIGTERM)
        until = time.monotonic() + _STOPPING
        while (now := present()) is not None and now.pid == here.pid:
            if time.monotonic() > until:
                raise Busy(f"process {here.pid} has not ended", f"look at it: ps -p {here.pid}")
            time.sleep(0.1)
    if output.json_wanted(as_json):
        output.write_json({"stopped": here})
    else:
        click.echo("No worker runs." if here is None else f"Ended process {here.pid}.")
    return 0
