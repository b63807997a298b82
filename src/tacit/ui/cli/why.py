"""`tacit why`: what came of a session."""

import os
from typing import TYPE_CHECKING

import click

from tacit.agent import spending
from tacit.base import paths
from tacit.base.amounts import counted
from tacit.base.clock import SystemClock
from tacit.base.database import FILE_NAME
from tacit.base.errors import NotFound
from tacit.base.settings import load
from tacit.base.terminal import one_line
from tacit.changes.inbox import Inbox
from tacit.learn.improve.triggers import where
from tacit.learn.ledger import Decided, Ledger, Review
from tacit.traces.store import Store, Stored
from tacit.ui.cli import output
from tacit.ui.cli.names import complete_session

if TYPE_CHECKING:
    from tacit.learn.improve.accounts import Account

_EPILOG = """\b
Examples:
  tacit why b4a27079
"""
_MOMENTS = {"after": "after the session", "chat": "during the chat"}


@click.command(epilog=_EPILOG)
@click.argument("session", shell_complete=complete_session)
@output.json_option
def command(session: str, as_json: bool) -> int:
    """Say whether a session was learned from, what came of it, what it cost, and why or why not.

    Skills that failed in it are named too, with what came of their repair.
    """
    from tacit.learn.improve.accounts import accounts

    store = click.get_current_context().with_resource(Store.open())
    stored = store.find(session)
    ledger = Ledger(store.connection)
    reviews, decisions = ledger.of(stored.id), ledger.decisions(stored.id)
    failed = accounts(store, stored.id, load(where(stored.head.project)).settings)
    spent = spending.total(entry.spent for entry in _entries(stored))
    if as_json:
        output.write_json(
            {
                "session": stored.id,
                "reviews": reviews,
                "decisions": decisions,
                "repairs": failed,
                "spent": spent,
            }
        )
        return 0
    if not reviews:
        _not_yet(stored, decisions)
    for review in reviews:
        _write_review(review)
    for decided in decisions:
        _write_decision(decided)
    for account in failed:
        _write_account(account)
    if spent.requests:
        requests = counted(spent.requests, "request")
        click.echo(f"It cost {spent.shown()}: {requests}, {spent.tokens:,} tokens.")
    return 0


def _not_yet(stored: Stored, decisions: list[Decided]) -> None:
    waits = bool(decisions) and decisions[0].decision.look
    state = "is to be looked at (see: tacit jobs)" if waits else "has not been looked at"
    click.echo(f"{stored.id} {state}; by hand: tacit learn {_short(stored)}")


def _short(stored: Stored) -> str:
    """Enough of the id to name it. Our own begin with the date, so there all of it."""
    session = stored.head.session
    return session if stored.head.host == "tacit" else session[:12]


def _write_review(review: Review) -> None:
    click.echo(f"{_minute(review.at)}  {review.method}: {review.outcome}")
    click.echo(f"    {one_line(review.reason)}")
    for change in review.changes:
        click.echo(f"    {_see(change)}")


def _write_decision(decided: Decided) -> None:
    decision = decided.decision
    for_what = " and ".join(
        word for word, due in (("skills", decision.skills), ("facts", decision.facts)) if due
    )
    said = f"to be looked at for {for_what}" if for_what else "not looked at"
    click.echo(f"{_minute(decided.at)}  {_MOMENTS[decision.moment]}: {said}")
    click.echo(output.wrapped(f"    {one_line(decision.reason)}"))


def _write_account(account: "Account") -> None:
    when = f"{account.at.astimezone():%Y-%m-%d %H:%M}  " if account.at else ""
    skill = one_line(account.skill)
    click.echo(f"{when}the skill {skill} failed; repair: {account.outcome}")
    click.echo(output.wrapped(f"    {one_line(account.reason)}"))
    if account.change:
        click.echo(f"    {_see(account.change)}")


def _see(change: str) -> str:
    """How a change can be seen: in the inbox, or, once it landed, with the way back."""
    short = change[-8:]
    inbox = Inbox(os.path.join(paths.folders().data, FILE_NAME), SystemClock())
    try:
        proposal = inbox.get(change)
    except NotFound:  # it never waited
        return f"see it: tacit diff {short} · undo: tacit undo {short}"
    if proposal.state == "accepted":
        short = proposal.applied_as[-8:]
        return f"accepted; see it: tacit diff {short} · undo: tacit undo {short}"
    state = "turned down; " if proposal.state == "rejected" else ""
    return f"{state}see it: tacit inbox {short}"


def _entries(stored: Stored) -> list[spending.Spending]:
    """What was spent on the session; of a chat, over all its parts."""
    ever = spending.days_ago(3650)
    return [
        entry
        for kind in ("review", "improve")
        for entry in spending.listing(ever, kind=kind)
        if entry.key == stored.id or entry.key.startswith(f"{stored.id}#")
    ]


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")
