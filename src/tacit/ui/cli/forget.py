"""`tacit forget`: take sessions out of the store for good."""

import os
import sys

import click

from tacit.base.errors import Refused, Usage
from tacit.base.moments import parse_since
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
    store = Store.open()
    folder = os.path.abspath(os.path.expanduser(what)) if what and os.sep in what else ""
    about = folder or what or f"sessions before {before}"
    if not yes:
        if not sys.stdin.isatty():
            raise Refused(f"forgetting {about} needs a yes", "add --yes")
        click.confirm(f"Forget {about} for good?", abort=True)
    done = forget(
        store,
        session=what if what and not folder else "",
        project=folder,
        before=parse_since(before) if before else None,
    )
    if as_json:
        output.write_json(done)
    else:
        freed = f", {done.freed:,} bytes freed" if done.freed > 0 else ""
        click.echo(f"Forgot {output.counted(done.sessions, 'session')}{freed}")
    return 0
