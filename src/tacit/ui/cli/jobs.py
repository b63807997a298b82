"""`tacit jobs`: the work in the background."""

import re
from datetime import UTC, datetime

import click

from tacit.base.moments import ago
from tacit.base.paths import shorten
from tacit.base.terminal import one_line, plain
from tacit.ui.cli import output
from tacit.work import jobs, where
from tacit.work.jobs import Attempt, Entry
from tacit.work.log import log_file

_EPILOG = """\b
Examples:
  tacit jobs                         what there is, the latest first
  tacit jobs --live                  what is not over
  tacit jobs show review-3f9c        one of them, with every try and why
  tacit jobs retry review-3f9c       again, or now if it was put off
  tacit jobs cancel review-3f9c      not, or no further

Jobs are in jobs.db in the data folder, or in PostgreSQL by TACIT_DATABASE_URL.
"""
_COLOURS = {"running": "blue", "failed": "red", "stuck": "red", "put off": "yellow"}


@click.group(epilog=_EPILOG, invoke_without_command=True)
@click.option("--live", is_flag=True, help="Only those that are not over.")
@click.option("--kind", default="", help="Only one kind, e.g. review.")
@click.option("-n", "--limit", type=click.IntRange(1), default=30, help="How many.")
@output.json_option
@click.pass_context
def command(ctx: click.Context, live: bool, kind: str, limit: int, as_json: bool) -> int:
    """Show the work in the background: what waits, what runs, what came of it and why."""
    if ctx.invoked_subcommand:
        return 0
    found = [entry for entry in jobs.listing(kind=kind) if entry.live or not live][:limit]
    if as_json:
        output.write_json({"jobs": found, "queue": where.place().shown, "log": log_file()})
        return 0
    if not found:
        click.echo("No jobs fit." if live or kind else "No jobs yet.")
        return 0
    now = datetime.now(UTC)
    rows = [
        (entry.id, _word(entry), ago(entry.at, now), _about(entry), one_line(_why(entry)))
        for entry in found
    ]
    click.echo(output.table(("id", "state", "when", "about", "why"), rows, ("when", "about")))
    return 0


@command.command("show", epilog=output.example("tacit jobs show review-3f9c"))
@click.argument("job")
@output.json_option
def show(job: str, as_json: bool) -> int:
    """Show one job with every try, and why it came out as it did."""
    entry = jobs.show(job)
    if output.json_wanted(as_json):
        output.write_json(entry)
        return 0
    click.echo(click.style(plain(entry.id), bold=True))
    facts = {
        "kind": entry.kind,
        "about": one_line(entry.key),
        "state": _state(entry),
        "why": one_line(_why(entry)),
        "changes": ", ".join(change[-8:] for change in entry.changes),
        "queue": where.place().shown,
        "log": shorten(log_file()),
    }
    for label, value in facts.items():
        if value:
            click.echo(f"{click.style(f'{label:<10}', dim=True)} {value}")
    for attempt in entry.attempts:
        click.echo(f"\n{_try(attempt)}")
    if not entry.live:
        click.echo(f"\nAgain: tacit jobs retry {entry.id}")
    elif entry.state == "put off":
        click.echo(f"\nNow: tacit jobs retry {entry.id} · not: tacit jobs cancel {entry.id}")
    return 0


@command.command("retry", epilog=output.example("tacit jobs retry review-3f9c"))
@click.argument("job")
@output.json_option
def retry(job: str, as_json: bool) -> int:
    """Have a job done again, or now if it was put off."""
    entry = jobs.retry(job)
    if output.json_wanted(as_json):
        output.write_json(entry)
    else:
        click.echo(f"{entry.id} is {entry.state}; see: tacit jobs show {entry.id}")
    return 0


@command.command("cancel", epilog=output.example("tacit jobs cancel review-3f9c"))
@click.argument("job")
@output.json_option
def cancel(job: str, as_json: bool) -> int:
    """Have a job not done, or no further; what it changed before stays."""
    entry = jobs.cancel(job)
    if output.json_wanted(as_json):
        output.write_json(entry)
    else:
        click.echo(f"{entry.id} is cancelled; take it up again: tacit jobs retry {entry.id}")
    return 0


def _about(entry: Entry) -> str:
    """What it is about, with the id of a session cut short: `tacit why` finds it by that too."""
    return re.sub(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{12,}", r"\1", one_line(entry.key))


def _word(entry: Entry) -> str:
    return one_line(entry.outcome if entry.state == "done" and entry.outcome else entry.state)


def _state(entry: Entry) -> str:
    return click.style(_word(entry), fg=_COLOURS.get(entry.state))


def _why(entry: Entry) -> str:
    due = entry.attempts[-1].due if entry.attempts else None
    if entry.state == "put off" and due is not None:
        return f"until {due.astimezone():%Y-%m-%d %H:%M}: {entry.reason or 'as it was asked for'}"
    return entry.reason


def _try(attempt: Attempt) -> str:
    """One try in a line or two."""
    began = attempt.began or attempt.asked
    parts = [f"try {attempt.number}", attempt.outcome or attempt.state]
    if began is not None:
        parts.append(f"{began.astimezone():%Y-%m-%d %H:%M:%S}")
    if attempt.began and attempt.ended:
        parts.append(f"{(attempt.ended - attempt.began).total_seconds():.1f} s")
    if attempt.machine:
        parts.append(f"by {attempt.machine}")
    if attempt.kills:
        parts.append(f"taken up again {attempt.kills} times after its worker was gone")
    text = " · ".join(one_line(part) for part in parts)
    return text + (f"\n    {one_line(attempt.reason)}" if attempt.reason else "")
