"""`tacit sessions`: what agents did here, a line a session."""

from collections.abc import Iterable
from datetime import UTC, datetime

import click
import msgspec

from tacit.base.moments import ago, parse_since
from tacit.base.paths import shorten
from tacit.base.terminal import one_line
from tacit.learn.ledger import Ledger
from tacit.learn.triggers import Decision
from tacit.traces.store import Store, Stored
from tacit.ui.cli import output
from tacit.ui.cli.names import complete_host

_EPILOG = """\b
Examples:
  tacit sessions
  tacit sessions --host codex --since 7d
  tacit sessions --project . --json

Take in what is new first: tacit import. Read one: tacit session ID.
"""

_DROP = ("skills", "cost", "turns", "project", "learned", "failed", "when")


class Row(msgspec.Struct, frozen=True):
    """One session in `--json`."""

    id: str
    host: str
    session: str
    project: str
    model: str
    title: str
    started: datetime | None
    ended: datetime | None
    turns: int
    prompts: int
    calls: int
    failures: int
    skills: tuple[str, ...]
    input_tokens: int
    output_tokens: int
    cost: float | None
    redacted: dict[str, int]
    learned: str
    """What learning made of it; empty where it was not looked at."""
    decided: Decision | None
    """Whether it was to be looked at, and why or why not; null where nobody had to decide."""


@click.command(epilog=_EPILOG)
@click.option(
    "--host", default="", shell_complete=complete_host, help="Only this agent's, e.g. claude-code."
)
@click.option("--project", default="", help="Only those in this folder and below it.")
@click.option("--since", help="Only those since: 7d, 12h, a date.")
@click.option("-n", "--limit", type=click.IntRange(1), default=30, help="How many.")
@output.json_option
def command(host: str, project: str, since: str | None, limit: int, as_json: bool) -> int:
    """List the sessions that are in the store, the latest first.

    `learned` says what came of each, or why it was not looked at; more: tacit why ID.
    """
    import os

    store = click.get_current_context().with_resource(Store.open())
    folder = os.path.abspath(os.path.expanduser(project)) if project else ""
    moment = parse_since(since) if since else None
    found = store.sessions(host=host, project=folder, since=moment, limit=limit)
    ledger = Ledger(store.connection)
    if as_json:
        output.write_json({"sessions": rows_of(found, ledger)})
        return 0
    if not found:
        some = host or project or since
        click.echo(
            "No session fits. All of them: tacit sessions"
            if some
            else "No sessions yet. Take in those of your agents: tacit import"
        )
        return 0
    outcomes, decisions = ledger.outcomes(), ledger.latest_decisions()
    now = datetime.now(UTC)
    head = (
        "when", "id", "agent", "project", "turns", "calls", "failed", "cost", "learned", "skills"
    )  # fmt: skip
    rows = [
        (
            ago(s.head.ended or s.head.started, now),
            one_line(s.head.session)[:12],
            one_line(s.head.host),
            _end(one_line(shorten(s.head.project)), 28),
            str(s.prompts),
            str(s.calls),
            str(s.failures or ""),
            _cost(s.head.usage.cost),
            _learned(outcomes.get(s.id, ""), decisions.get(s.id)),
            one_line(", ".join(s.skills)),
        )
        for s in found
    ]
    click.echo(output.table(head, rows, _DROP))
    return 0


def rows_of(found: Iterable[Stored], ledger: Ledger) -> list[Row]:
    """Sessions for `--json`."""
    outcomes, decisions = ledger.outcomes(), ledger.latest_decisions()
    return [_row(s, outcomes.get(s.id, ""), decisions.get(s.id)) for s in found]


def _row(stored: Stored, learned: str, decided: Decision | None) -> Row:
    head = stored.head
    return Row(
        stored.id,
        head.host,
        head.session,
        head.project,
        head.model,
        head.title,
        head.started,
        head.ended,
        stored.turns,
        stored.prompts,
        stored.calls,
        stored.failures,
        stored.skills,
        head.usage.input,
        head.usage.output,
        head.usage.cost,
        stored.redacted,
        learned,
        decided,
    )


def _learned(outcome: str, decided: Decision | None) -> str:
    """What came of a session; else why it was not looked at, or that it will be."""
    if outcome or decided is None:
        return outcome
    return decided.word if decided.look else f"no: {decided.word}"


def _end(text: str, most: int) -> str:
    """The end of a path, which tells more than its beginning."""
    return text if len(text) <= most else "…" + text[1 - most :]


def _cost(cost: float | None) -> str:
    return "" if cost is None else f"${cost:.2f}"
