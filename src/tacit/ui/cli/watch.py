"""`tacit watch`: notice sessions without hooks."""

import click

from tacit.base.paths import shorten
from tacit.traces.store import Store
from tacit.ui.cli import output
from tacit.work import glue
from tacit.work.intake import Taken
from tacit.work.watch import folders, watch

_EPILOG = """\b
Examples:
  tacit watch
  tacit watch --quiet 30 --json
"""


@click.command(epilog=_EPILOG)
@click.option(
    "--quiet", type=click.FloatRange(1), default=120.0, help="Seconds that end a session."
)
@output.json_option
def command(quiet: float, as_json: bool) -> int:
    """Follow the agents' folders and take in each session when it has gone quiet.

    For agents that are not connected by hooks. Runs until Ctrl-C.
    """
    glue.listen()
    store = click.get_current_context().with_resource(Store.open())
    if not as_json:
        click.echo(f"Watching {', '.join(shorten(f) for f in folders()) or 'nothing: no agents'}")

    def tell(taken: Taken) -> None:
        if as_json:
            output.write_json(taken)
        else:
            parts = ", ".join(f"{count} {status}" for status, count in taken.counts.items())
            click.echo(f"{taken.title}: {parts}")

    watch(store, quiet, tell, lambda: False)
    return 0
