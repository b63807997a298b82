"""Whether a job may begin now, here: the day's budget, and whether what it is about is here."""

from typing import TYPE_CHECKING

import msgspec

from tacit.base.errors import NotFound, TacitError
from tacit.base.moments import until_tomorrow
from tacit.base.sections import LearnSettings
from tacit.base.settings import load
from tacit.traces.store import Store
from tacit.work import kinds
from tacit.work.machines import machine

if TYPE_CHECKING:
    from tacit.work.ticket import Ticket


_MEND = 600.0
_HELD = 300.0


class Allowed(msgspec.Struct, frozen=True):
    """The answer: yes, if nothing of it is set."""

    reason: str = ""
    later: float = 0.0
    """Seconds to wait."""
    home: str = ""
    """The machine that can do it."""


def may_begin(ticket: "Ticket") -> Allowed:
    """Whether this worker may begin it. Whoever does it holds to the limits all the same."""
    try:
        return _may_begin(ticket)
    except TacitError as error:  # settings or a database that somebody will mend
        return Allowed(error.message, later=_MEND)


def _may_begin(ticket: "Ticket") -> Allowed:
    session = ticket.payload.get("session")
    if ticket.home not in ("", machine()) and isinstance(session, str) and not _is_here(session):
        return Allowed(f"its session is on {ticket.home}", home=ticket.home)
    if ticket.home not in ("", machine()) and ticket.kind == "schedule":
        return Allowed(f"its schedule is on {ticket.home}", home=ticket.home)
    if kinds.get(ticket.kind).spends:
        return _budget(load().settings.learn)
    return Allowed()


def _budget(learn: LearnSettings) -> Allowed:
    from tacit.agent import spending

    refusal = spending.allowed(learn)
    if not refusal:
        return Allowed()
    spent = spending.today()
    money = 0 < learn.daily_money <= spent.money
    tokens = 0 < learn.daily_tokens <= spent.tokens
    # Otherwise others hold what is left of it, and may give some back.
    return Allowed(refusal, later=until_tomorrow() if money or tokens else _HELD)


def _is_here(session: str) -> bool:
    with Store.open() as store:
        try:
            store.find(session)
        except NotFound:
            return False
    return True
