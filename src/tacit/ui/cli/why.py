"""`tacit why`: what came of a session."""

import click

from tacit.base.terminal import one_line
from tacit.learn.ledger import Ledger
from tacit.traces.store import Store
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  tacit why b4a27079
"""


@click.command(epilog=_EPILOG)
@click.argument("session")
@output.json_option
def command(session: str, as_json: bool) -> int:
    """Say whether a session was learned from, what came of it, and why."""
    store = Store.open()
    stored = store.find(session)
    reviews = Ledger(store.connection).of(stored.id)
    if as_json:
        output.write_json({"session": stored.id, "reviews": reviews})
        return 0
    if not reviews:
        click.echo(
            f"{stored.id} has not been looked at yet: tacit learn {stored.head.session[:12]}"
        )
        return 0
    for review in reviews:
        click.echo(f"{review.at[:16].replace('T', ' ')}  {review.method}: {review.outcome}")
        click.echo(f"    {one_line(review.reason)}")
        for change in review.changes:
            click.echo(f"    see it: tacit inbox {change[-8:]}")
    return 0
