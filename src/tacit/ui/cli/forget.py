"""`tacit forget`: take sessions out of the store for good."""

import os
import sys

import click
import msgspec

from tacit.base.amounts import counted
from tacit.base.errors import NotFound, Refused, Usage
from tacit.base.moments import parse_since
from tacit.changes.place import user_place
from tacit.traces.forgetting import forget
from tacit.traces.store import Store
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  tacit forget b4a27079              one session
  tacit forget ~/work/secret-project all sessions in a folder and below it
  tacit forget --before 90d --yes
"""


@click.command(epilog=_EPILOG)
@click.argument("what", required=False)
@click.option("--before", help="All that ended before: 90d, a date.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@output.json_option
def command(what: str | None, before: str | None, yes: bool, as_json: bool) -> int:
    """Forget a session, a project's sessions, or old ones, for good.

    Their text is gone from the database's files afterwards, and they are not taken in again. The
    agents' own transcripts are not touched.
    """
    if bool(what) == bool(before):
        raise Usage("say what to forget", "a session, a folder, or --before 90d")
    moment = parse_since(before) if before else None
    store = click.get_current_context().with_resource(Store.open())
    folder = _folder(what) if what else ""
    about = folder or what or f"sessions before {before}"
    if not yes:
        if not sys.stdin.isatty():
            raise Refused(f"forgetting {about} needs a yes", "add --yes")
        click.confirm(f"Forget {about} for good?", abort=True)
    known = _names(store)
    done = forget(store, session=what if what and not folder else "", project=folder, before=moment)
    if folder and not done.sessions:
        raise NotFound(f"there is no session in {folder}", "see them: tacit sessions")
    quoted = _quoting(known - _names(store))
    if as_json:
        output.write_json({**msgspec.structs.asdict(done), "quoted_in": quoted})
        return 0
    freed = f", {done.freed:,} bytes freed" if done.freed > 0 else ""
    click.echo(f"Forgot {counted(done.sessions, 'session')}{freed}")
    if done.in_log:
        click.echo("Another process is reading: the last bytes go when it ends.")
    if quoted:
        click.echo(f"{counted(len(quoted), 'draft')} in the inbox may quote what was said:")
    for proposal in quoted:
        click.echo(f"  tacit reject {proposal[-8:]} --forget")
    return 0


def _folder(what: str) -> str:
    """The folder that is meant, or nothing where it is a session's name."""
    if os.sep in what or what in (".", "..", "~") or os.path.isdir(what):
        return os.path.abspath(os.path.expanduser(what))
    return ""


def _names(store: Store) -> set[str]:
    return {
        str(row[0])
        for row in store.connection.execute("SELECT host || ':' || session FROM sessions")
    }


def _quoting(gone: set[str]) -> list[str]:
    """The proposals that stand on sessions that are gone."""
    from tacit.changes.gate import Gate

    inbox = Gate([user_place()]).inbox
    return [p.id for p in inbox.all(100_000) if gone.intersection(p.change.evidence)]
