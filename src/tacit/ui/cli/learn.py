"""`tacit learn`: from sessions to skills."""

import sys

import click

from tacit.base.moments import parse_since
from tacit.base.terminal import one_line, plain
from tacit.learn.distil import METHOD, Proposed, distil
from tacit.learn.ledger import Ledger
from tacit.traces.store import Store, Stored
from tacit.ui.cli import output
from tacit.work.intake import sources, take_in

_EPILOG = """\b
Examples:
  tacit learn                        new sessions of all agents
  tacit learn b4a27079               one session
  tacit learn --host codex --since 30d
  tacit learn --dry-run              show what would be proposed
"""


@click.command(epilog=_EPILOG)
@click.argument("session", required=False)
@click.option("--host", default="", help="Only this agent's sessions.")
@click.option("--since", help="Only sessions since: 30d, a date.")
@click.option("--again", is_flag=True, help="Also sessions that were looked at before.")
@click.option("--dry-run", is_flag=True, help="Propose nothing; show the drafts.")
@output.json_option
def command(
    session: str | None, host: str, since: str | None, again: bool, dry_run: bool, as_json: bool
) -> int:
    """Learn from what agents did: drafts of skills go to the inbox.

    Works without a model, by counting: a command that failed and then worked, what you put right,
    commands that recur in the same order. Each draft names the sessions that it comes from. Nothing
    is used until you accept it.
    """
    store = Store.open()
    ledger = Ledger(store.connection)
    if not session:
        _take_in(store, host, as_json)
    chosen = _choose(store, ledger, session, host, since, again)
    done = distil(store, ledger, chosen, dry_run=dry_run)
    if as_json:
        output.write_json({"sessions": len(chosen), "drafts": done})
        return 0
    if not chosen:
        click.echo("Nothing new to learn from. See: tacit sessions")
        return 0
    _write(done, len(chosen), dry_run)
    return 0


def _take_in(store: Store, host: str, quiet: bool) -> None:
    found = sources(host)
    hidden = quiet or not sys.stderr.isatty()
    with click.progressbar(
        length=len(found), label="reading sessions", file=sys.stderr, hidden=hidden
    ) as bar:
        take_in(store, found, lambda source: bar.update(1))


def _choose(
    store: Store, ledger: Ledger, session: str | None, host: str, since: str | None, again: bool
) -> list[Stored]:
    if session:
        return [store.find(session)]
    moment = parse_since(since) if since else None
    found = store.sessions(host=host, since=moment, limit=10_000)
    return [s for s in found if again or ledger.is_new(s, METHOD)]


def _write(done: list[Proposed], looked_at: int, dry_run: bool) -> None:
    click.echo(f"{output.counted(looked_at, 'session')} looked at, without a model.")
    if not done:
        click.echo("Nothing was mended, put right or repeated that a skill could keep.")
        return
    for proposed in done:
        if dry_run:
            click.echo(f"\n{plain(proposed.draft.text)}")
            continue
        verdict = proposed.verdict
        assert verdict is not None
        name = click.style(proposed.draft.name, bold=True)
        click.echo(f"\n{name}  {one_line(proposed.draft.reason)}")
        if verdict.outcome == "proposed":
            click.echo(f"    waits for you: tacit inbox {verdict.change[-8:]}")
        else:
            click.echo(f"    {one_line(verdict.explain())}")
