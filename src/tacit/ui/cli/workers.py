"""`tacit worker`, `watch` and `daemon`: the processes that take sessions in and do jobs."""

import os
import signal
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from types import FrameType

import click

from tacit.base.clock import ago
from tacit.base.display import counted, plain
from tacit.base.errors import Busy, Refused, TacitError
from tacit.base.paths import with_tilde
from tacit.traces.store import Store
from tacit.ui.cli import output
from tacit.ui.cli.command import command, group
from tacit.work.intake import Taken, host_homes, watch


@command(
    "worker",
    "sessions",
    "Take in the sessions that hooks reported.",
    "tacit worker                       do what waits, then go",
    "tacit worker --quiet 0             do not wait for sessions to go quiet",
)
@click.option("--quiet", type=click.FloatRange(0), help="Seconds that end a session.")
@click.option("--idle", type=click.FloatRange(0), help="Seconds to wait for more.")
def worker_command(quiet: float | None, idle: float | None, as_json: bool) -> int:
    """Take in the sessions that hooks reported, and go when nothing is left.

    Hooks start it by themselves; one runs at a time. How patient it is can be set: worker.quiet
    and worker.idle.
    """
    from tacit.work.worker import left_running, work, worker_settings

    set_ = worker_settings()
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


@command(
    "watch",
    "sessions",
    "Follow the agents' folders, without hooks.",
    "tacit watch",
    "tacit watch --quiet 30 --json",
)
@click.option(
    "--quiet", type=click.FloatRange(1), default=120.0, help="Seconds that end a session."
)
def watch_command(quiet: float, as_json: bool) -> int:
    """Follow the agents' folders and take in each session when it has gone quiet.

    For agents that are not connected by hooks. Runs until Ctrl-C.
    """
    from tacit.work import reactions

    reactions.listen()
    store = click.get_current_context().with_resource(Store.open())
    if not as_json:
        click.echo(
            f"Watching {', '.join(with_tilde(f) for f in host_homes()) or 'nothing: no agents'}"
        )

    def tell(taken: Taken) -> None:
        if as_json:
            output.write_json(taken)
        else:
            parts = ", ".join(f"{count} {status}" for status, count in taken.counts.items())
            click.echo(f"{taken.title}: {parts}")

    watch(store, quiet, tell, lambda: False)
    return 0


_STOP_SECONDS = 15.0


@group(
    "daemon",
    "sessions",
    "Keep a worker running, and start it with the machine.",
    "tacit daemon                       stay and work, here; Ctrl-C ends it",
    "tacit daemon install               start it now and whenever you log in",
    "tacit daemon install --print       only show what would be written",
    "tacit daemon status",
    "tacit daemon stop",
    note="Hooks start a worker by themselves, which goes when it is idle; a daemon is for "
    "schedules, for jobs that were put off, and for machines that share a queue. Keys for "
    "models: write NAME=value lines into daemon.env beside config.toml.",
)
@click.pass_context
def daemon_command(ctx: click.Context, as_json: bool) -> int:
    """Keep a worker running: it does not go when it is idle."""
    from tacit.work import daemon_unit
    from tacit.work.jobs_db import address
    from tacit.work.presence import log, log_file, present
    from tacit.work.worker import settings_or_defaults, work, worker_settings

    if ctx.invoked_subcommand:
        return 0
    other = present()
    if other is not None and other.permanent:
        raise Refused(f"a daemon runs already, process {other.pid}", "end it: tacit daemon stop")
    os.environ.update(daemon_unit.read_environment())
    where = address()
    chosen, listener = settings_or_defaults().traces, None
    if chosen.otlp_port:
        from tacit.work.otlp_listener import OtlpListener

        listener = OtlpListener(chosen.otlp_port, redact=chosen.redact)
    stopped: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        stopped.append(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    log(f"daemon: began, process {os.getpid()}, jobs in {where.shown}")
    if as_json:
        output.write_json({"pid": os.getpid(), "queue": where.shown, "log": log_file()})
    else:
        click.echo(f"Working until Ctrl-C. Jobs: {where.shown} · log: {with_tilde(log_file())}")
        if listener is not None:
            click.echo(f"OpenTelemetry: http://127.0.0.1:{listener.port}; see: tacit daemon status")
    sys.stdout.flush()
    with _pages(worker_settings().pages):
        work(quiet=worker_settings().quiet, permanent=True, stop=lambda: bool(stopped))
    if listener is not None:
        listener.close()
    log("daemon: ended")
    sys.stdout.flush()
    # A job that runs is taken up by the next worker; its thread must not keep this one.
    os._exit(0)


def _pages(wanted: bool) -> AbstractContextManager[None]:
    """The pages beside the worker, where they are wanted and can be had."""
    from tacit.work.presence import log

    if not wanted:
        return nullcontext()
    try:
        from tacit.ui.web.web_server import PageServer

        server = PageServer()
    except (ImportError, TacitError) as error:
        log(f"daemon: no pages: {error}")
        return nullcontext()
    log(f"daemon: pages at {server.address}; open them: tacit web")
    return server.beside()


@daemon_command.verb("install", "tacit daemon install --print")
@click.option("--print", "only_print", is_flag=True, help="Write nothing.")
def install_daemon(only_print: bool, as_json: bool) -> int:
    """Have the daemon started now, and whenever you log in."""
    from tacit.work import daemon_unit

    unit = daemon_unit.unit()
    trouble = "" if only_print else daemon_unit.install(unit)
    if as_json:
        return output.write_json({"unit": unit, "written": not only_print, "trouble": trouble})
    if only_print:
        click.echo(f"# {unit.path}\n{unit.text}")
        return 0
    click.echo(f"Written: {plain(with_tilde(unit.path))}")
    if trouble:
        click.echo(f"{unit.manager} did not start it: {plain(trouble)}")
        click.echo(f"Start it by hand: {' && '.join(' '.join(c) for c in unit.start)}")
    else:
        click.echo("It runs, and is started whenever you log in. Keys for models:")
        click.echo(f"  NAME=value lines in {with_tilde(daemon_unit.environment_file())}")
    return 0


@daemon_command.verb("uninstall", "tacit daemon uninstall")
def uninstall_daemon(as_json: bool) -> int:
    """Take back what `tacit daemon install` wrote."""
    from tacit.work import daemon_unit

    unit = daemon_unit.unit()
    there = os.path.exists(unit.path)
    trouble = daemon_unit.uninstall(unit)
    if as_json:
        output.write_json({"path": unit.path, "removed": there, "trouble": trouble})
    elif there:
        click.echo(
            f"Removed: {plain(with_tilde(unit.path))}{f' ({plain(trouble)})' if trouble else ''}"
        )
    else:
        click.echo("Nothing was installed.")
    return 0


@daemon_command.verb("status", "tacit daemon status --json")
def daemon_status(as_json: bool) -> int:
    """Say whether a worker runs, and whether the daemon is installed."""
    from tacit.work import daemon_unit
    from tacit.work.jobs_db import address
    from tacit.work.presence import log_file, present

    here = present()
    unit = daemon_unit.unit()
    installed = os.path.exists(unit.path)
    senders = _otlp_settings()
    if as_json:
        return output.write_json(
            {"worker": here, "installed": installed, "queue": address().shown, "otlp": senders}
        )
    if here is None:
        click.echo("No worker runs; hooks start one when a session ends.")
    else:
        since = ago(datetime.fromtimestamp(here.since, UTC))
        what = "The daemon" if here.permanent else "A worker that hooks started"
        click.echo(f"{what} runs, process {here.pid}, since {since}.")
    click.echo(f"jobs       {address().shown}")
    click.echo(f"log        {with_tilde(log_file())}")
    click.echo(f"installed  {with_tilde(unit.path) if installed else 'no: tacit daemon install'}")
    if senders:
        click.echo("traces     agents send them to the daemon with:")
        for name, value in senders.items():
            click.echo(f'  export {name}="{value}"')
    return 0


def _otlp_settings() -> dict[str, str]:
    """The variables by which agents send their traces here; empty where none are taken."""
    from tacit.work.worker import settings_or_defaults

    port = settings_or_defaults().traces.otlp_port
    if not port:
        return {}
    from tacit.work.otlp_listener import sender_settings, token

    token()  # made before somebody asks for its file
    return sender_settings(port)


@daemon_command.verb("stop", "tacit daemon stop")
def stop_daemon(as_json: bool) -> int:
    """End the worker that runs; what it was doing is taken up by the next."""
    from tacit.work.presence import present

    here = present()
    if here is not None:
        os.kill(here.pid, signal.SIGTERM)
        until = time.monotonic() + _STOP_SECONDS
        while (now := present()) is not None and now.pid == here.pid:
            if time.monotonic() > until:
                raise Busy(f"process {here.pid} has not ended", f"look at it: ps -p {here.pid}")
            time.sleep(0.1)
    if as_json:
        output.write_json({"stopped": here})
    else:
        click.echo("No worker runs." if here is None else f"Ended process {here.pid}.")
    return 0
