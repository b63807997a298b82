"""What a run may take, and what the background has taken of the day's budget.

Owns the limits on one run with the meter that is held against them, and the tables `spending` and
`reservations` in tacit.db. Every request of a review, a repair, a curation or a scheduled run is
one row, with its cost where the price is known. The user's own conversations are not counted here:
they are in the store of sessions.

Several processes may work at once. Each reserves what it wants before it asks a model, is granted
no more than is left of the day beside what the others hold, and settles when it is done. So all of
them together exceed the budget by at most the last request of each. The reservation of a process
that was killed is free again as soon as the process is gone; where that cannot be seen, because it
runs in another container, when its time is over.

Nothing here raises into the work that it counts: what cannot be written is reported in words, and
while what was spent cannot be read, no more may be spent.
"""

import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day
from typing import Literal, TypeVar

import msgspec

from tacit.agent.agent_events import Usage
from tacit.base import database
from tacit.base.display import counted, dollars
from tacit.base.errors import TacitError
from tacit.base.setting_sections import AgentSettings, LearnSettings


class Limits(msgspec.Struct, frozen=True):
    """What a run may take; 0 means no limit."""

    turns: int = 0
    """Requests to the model."""
    seconds: float = 0.0
    """Hard: holds also in the middle of a stalled request."""
    tokens: int = 0
    """Input and output together."""
    money: float = 0.0
    """In dollars; counts what has a known price."""
    retries: int = 4
    """How often a request that failed on its way is made again."""

    @classmethod
    def of(cls, settings: AgentSettings) -> "Limits":
        """Those that the user set for an answer."""
        s = settings
        return cls(s.turns, s.seconds, s.tokens, s.money, s.retries)


class Meter:
    """What a run has taken so far."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._began = clock()
        self.turns = 0
        self.answers = 0
        self.tokens = 0
        self.money = 0.0
        self.unpriced = 0

    def count(self, usage: Usage) -> None:
        self.answers += 1
        self.tokens += usage.input_tokens + usage.output_tokens
        if usage.cost is None:
            self.unpriced += 1
        else:
            self.money += usage.cost

    def left(self) -> float | None:
        """Seconds left, or None without a limit."""
        if not self.limits.seconds:
            return None
        return max(self.limits.seconds - (self._clock() - self._began), 0.0)

    def tokens_left(self) -> int | None:
        """Tokens left, or None without a limit."""
        return max(self.limits.tokens - self.tokens, 0) if self.limits.tokens else None

    def over(self) -> Literal["turns", "tokens", "money", "seconds"] | None:
        """The limit that is reached, if one is."""
        limits = self.limits
        if limits.turns and self.turns >= limits.turns:
            return "turns"
        if limits.tokens and self.tokens >= limits.tokens:
            return "tokens"
        if limits.money and self.money >= limits.money:
            return "money"
        if (left := self.left()) is not None and left <= 0:
            return "seconds"
        return None


STEPS = (
    """
    CREATE TABLE spending (
      id INTEGER PRIMARY KEY,
      at REAL NOT NULL,
      kind TEXT NOT NULL,
      key TEXT NOT NULL,
      model TEXT NOT NULL,
      requests INTEGER NOT NULL,
      unpriced INTEGER NOT NULL,
      input_tokens INTEGER NOT NULL,
      output_tokens INTEGER NOT NULL,
      cached_tokens INTEGER NOT NULL,
      money REAL NOT NULL,
      seconds REAL NOT NULL
    ) STRICT;
    CREATE INDEX spending_at ON spending (at);
    CREATE INDEX spending_key ON spending (kind, key);
    CREATE TABLE reservations (
      id TEXT PRIMARY KEY, until REAL NOT NULL, money REAL NOT NULL, tokens INTEGER NOT NULL
    ) STRICT;
    """,
    "ALTER TABLE reservations ADD COLUMN holder TEXT NOT NULL DEFAULT '';",
    "ALTER TABLE spending ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;",
)
_WAIT = 5.0
_SLACK = 60.0
"""Seconds for which a reservation stands beyond the limit of the work that it is for."""
_LONGEST = 3600.0
"""Seconds for which one stands whose work has no limit."""
_MOST = 1 << 40
"""More tokens than any request has; a provider that reports nonsense must break no sum."""
_SUMS = (
    "coalesce(sum(requests), 0), coalesce(sum(unpriced), 0), coalesce(sum(input_tokens), 0),"
    " coalesce(sum(output_tokens), 0), coalesce(sum(cached_tokens), 0), coalesce(sum(money), 0.0),"
    " coalesce(sum(seconds), 0.0), coalesce(sum(estimated), 0)"
)
T = TypeVar("T")
Grouping = Literal["kind", "model", "day", "key"]
_GROUPS: dict[Grouping, str] = {
    "kind": "kind",
    "model": "model",
    "day": "date(at, 'unixepoch', 'localtime')",
    "key": "kind || ' ' || key",
}


class Spent(msgspec.Struct, frozen=True):
    """A sum. `money` is of the requests whose price is known; `unpriced` are the others."""

    requests: int = 0
    unpriced: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of the input, what the provider had at hand and charged less for."""
    money: float = 0.0
    seconds: float = 0.0
    estimated: int = 0
    """Of the requests, those whose tokens or cost were estimated: nobody reported them."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def shown(self) -> str:
        """`$0.042`, with what has no price or is an estimate said as such."""
        some = "" if self.estimated == self.requests else f"{self.estimated} of {self.requests} "
        guessed = f" ({some}estimated)" if self.estimated else ""
        if not self.unpriced:
            return dollars(self.money) + guessed
        unknown = f"{counted(self.unpriced, 'request')} without a price{guessed}"
        return unknown if self.unpriced == self.requests else f"{dollars(self.money)} and {unknown}"


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """One entry: what one request took, or several that were reported together."""

    at: datetime
    kind: str
    key: str
    model: str
    spent: Spent


class Reservation(msgspec.Struct, frozen=True):
    """What a piece of work may take, or, in `refusal`, why it may not begin."""

    id: str = ""
    limits: Limits = Limits()
    """As they were asked for, narrowed to what is left of the day."""
    refusal: str = ""


def record_spending(
    kind: str,
    key: str,
    usage: Usage,
    *,
    seconds: float = 0.0,
    requests: int = 1,
    reserved: Reservation | None = None,
    now: datetime | None = None,
) -> str:
    """Note what a request of the work `kind` on `key` took; empty, or why it could not be noted.

    Best noted after each request, so that a killed process leaves what it took on record; several
    may be noted as one, with how many `requests` they were. A cost of None is a price that is not
    known. What was `reserved` for this work shrinks by as much.
    """
    cost = usage.cost if usage.cost is not None and 0 <= usage.cost < math.inf else None
    money, unpriced = (0.0, requests) if cost is None else (cost, 0)
    counted = (usage.input_tokens, usage.output_tokens, usage.cached_tokens)
    tokens = [min(max(number, 0), _MOST) for number in counted]
    counts, guessed = (requests, unpriced), requests if usage.estimated else 0

    def write(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO spending (at, kind, key, model, requests, unpriced, input_tokens,"
            " output_tokens, cached_tokens, money, seconds, estimated)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (_stamp(now), kind, key, usage.model, *counts, *tokens, money, seconds, guessed),
        )
        if reserved is not None:
            connection.execute(
                "UPDATE reservations SET money = max(money - ?, 0.0),"
                " tokens = max(tokens - ?, 0) WHERE id = ?",
                (money, tokens[0] + tokens[1], reserved.id),
            )

    return _written(write)[1]


def reserve(learn: LearnSettings, limits: Limits, *, now: datetime | None = None) -> Reservation:
    """Hold what `limits` ask for, as far as it is left of today. Settle it when the work is done.

    Work that may take only a part is granted that part: the limits that come back are the ones to
    keep to. Where less than a quarter is left it is refused: work that is cut off in the middle
    costs, and gives nothing.
    """
    at = _stamp(now)

    def write(connection: sqlite3.Connection) -> Reservation:
        connection.execute("DELETE FROM reservations WHERE until <= ?", (at,))
        _free_abandoned(connection)
        spent, held = _sum(connection, _midnight(now)), _held(connection, at)
        if refusal := _refusal(learn, limits, spent, held):
            return Reservation(refusal=refusal)
        money = _granted(limits.money, learn.daily_money - spent.money - held.money)
        tokens = _granted(limits.tokens, learn.daily_tokens - spent.tokens - held.tokens)
        granted = msgspec.structs.replace(
            limits,
            money=money if learn.daily_money else limits.money,
            tokens=int(tokens) if learn.daily_tokens else limits.tokens,
        )
        until = at + (limits.seconds + _SLACK if limits.seconds else _LONGEST)
        made = Reservation(os.urandom(8).hex(), granted)
        connection.execute(
            "INSERT INTO reservations (id, until, money, tokens, holder) VALUES (?, ?, ?, ?, ?)",
            (made.id, until, granted.money, granted.tokens, _process(os.getpid())),
        )
        return made

    found, trouble = _written(write)
    return found if found is not None else Reservation(refusal=_unknown(trouble))


def settle(reserved: Reservation) -> None:
    """The work is over: what it did not take is free again. Safe to call again."""
    _written(lambda c: c.execute("DELETE FROM reservations WHERE id = ?", (reserved.id,)))


def refusal_today(learn: LearnSettings, *, now: datetime | None = None) -> str:
    """Empty, or why no more may be begun today: work of the size of one review."""
    limits = Limits(money=learn.money, tokens=learn.tokens)
    try:
        with _open() as connection:
            spent = _sum(connection, _midnight(now))
            return _refusal(learn, limits, spent, _held(connection, _stamp(now)))
    except TacitError as error:
        return _unknown(str(error))


def is_spent(learn: LearnSettings) -> bool:
    """Whether the day's budget is used up; else, what refuses work is only held by other work."""
    spent = today()
    money = 0 < learn.daily_money <= spent.money
    return money or 0 < learn.daily_tokens <= spent.tokens


def held(*, now: datetime | None = None) -> Spent:
    """What work that is going on may still take: its `money`, and its tokens as input."""
    with _open() as connection:
        return _held(connection, _stamp(now))


def today(*, now: datetime | None = None) -> Spent:
    """What was spent since midnight, by this machine's clock."""
    return since(_midnight(now))


def since(moment: datetime) -> Spent:
    """What was spent since then. Raises what `database.connect` does."""
    with _open() as connection:
        return _sum(connection, moment)


def totals(by: Grouping, moment: datetime) -> dict[str, Spent]:
    """What was spent since then by kind, model, local day (`2026-11-15`), or `kind key`."""
    with _open() as connection:
        rows = connection.execute(
            f"SELECT {_GROUPS[by]}, {_SUMS} FROM spending WHERE at >= ? GROUP BY 1 ORDER BY 1",  # noqa: S608
            (moment.timestamp(),),
        ).fetchall()
    return {row[0]: Spent(*row[1:]) for row in rows}


def spendings(moment: datetime, *, kind: str = "", key: str = "") -> list[Spending]:
    """What was spent since then, an entry a record, the newest first."""
    with _open() as connection:
        rows = connection.execute(
            "SELECT at, kind, key, model, requests, unpriced, input_tokens, output_tokens,"
            " cached_tokens, money, seconds, estimated FROM spending"
            " WHERE at >= ? AND ? IN ('', kind) AND ? IN ('', key) ORDER BY at DESC, id DESC",
            (moment.timestamp(), kind, key),
        ).fetchall()
    return [
        Spending(
            at=datetime.fromtimestamp(row[0], UTC),
            kind=row[1],
            key=row[2],
            model=row[3],
            spent=Spent(*row[4:]),
        )
        for row in rows
    ]


def sum_spent(parts: Iterable[Spent]) -> Spent:
    """All of `parts` together."""
    columns = list(zip(*(msgspec.structs.astuple(part) for part in parts), strict=True))
    return Spent(*(sum(column) for column in columns)) if columns else Spent()


def days_ago(days: int, *, now: datetime | None = None) -> datetime:
    """The midnight, by this machine's clock, that began the day so many days ago."""
    local = (now or datetime.now(UTC)).astimezone().date() - timedelta(days=days)
    # Without a zone, and then with the one that holds on that day: it may not be today's.
    return datetime.combine(local, time_of_day.min).astimezone()


def _midnight(now: datetime | None) -> datetime:
    return days_ago(0, now=now)


def _stamp(now: datetime | None) -> float:
    return (now or datetime.now(UTC)).timestamp()


def _granted(wanted: float, left: float) -> float:
    """What of `wanted` is left; all that is left where no limit was asked for."""
    return min(wanted, left) if wanted else left


def _refusal(learn: LearnSettings, limits: Limits, spent: Spent, held: Spent) -> str:
    used, waiting = spent.money, held.money
    if learn.daily_money and _too_little(learn.daily_money, limits.money, used + waiting):
        going_on = f", {dollars(waiting)} held by work that is going on" if waiting else ""
        return (
            f"the budget of {dollars(learn.daily_money)} a day is used up"
            f" ({dollars(used)} spent today{going_on}){_MORE}"
        )
    tokens, reserved = spent.tokens, held.tokens
    if learn.daily_tokens and _too_little(learn.daily_tokens, limits.tokens, tokens + reserved):
        going_on = f", {reserved:,} held by work that is going on" if reserved else ""
        return (
            f"the {learn.daily_tokens:,} {_TOKENS_A_DAY} are used up"
            f" ({tokens:,} taken today{going_on}){_MORE}"
        )
    return ""


def allow_more(refusal: str, money: float, tokens: int) -> str:
    """The command that lifts the limit which `refusal` is about, to twice what it is."""
    if _TOKENS_A_DAY in refusal:
        return f"tacit config set learn.daily_tokens {tokens * 2}"
    return f"tacit config set learn.daily_money {money * 2:g}"


def _too_little(budget: float, wanted: float, taken: float) -> bool:
    """Whether less is left than a quarter of what is wanted, or of what a whole day has."""
    least = min(wanted or budget, budget) / 4
    return taken >= budget or budget - taken < least


_MORE = "; see: tacit cost"
_TOKENS_A_DAY = "tokens a day"


def _unknown(trouble: str) -> str:
    return f"it cannot be read what was spent today ({trouble}), so no more is"


def _held(connection: sqlite3.Connection, at: float) -> Spent:
    rows = connection.execute(
        "SELECT money, tokens, holder FROM reservations WHERE until > ?", (at,)
    ).fetchall()
    live = [row for row in rows if not _is_gone(row[2])]
    return Spent(money=sum(row[0] for row in live), input_tokens=sum(row[1] for row in live))


def _free_abandoned(connection: sqlite3.Connection) -> None:
    """Drop what is held by processes that are gone."""
    holders = connection.execute("SELECT DISTINCT holder FROM reservations").fetchall()
    gone = [row for row in holders if _is_gone(row[0])]
    connection.executemany("DELETE FROM reservations WHERE holder = ?", gone)


def _process(pid: int) -> str:
    """A process so that no later one is taken for it: its namespace, number and start."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name of the program stands in brackets and may hold anything.
            fields = file.read().rpartition(b")")[2].split()
        state, started = fields[0].decode(), fields[19].decode()
        return "" if state in "ZX" else f"{os.readlink('/proc/self/ns/pid')} {pid} {started}"
    except (OSError, IndexError):
        return f"- {pid} -" if _runs(pid) else ""


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True


def _is_gone(holder: str) -> bool:
    """Whether the process that holds something has ended. What cannot be seen from here has not."""
    namespace, _, rest = holder.partition(" ")
    pid = rest.partition(" ")[0]
    if not pid.isdecimal() or namespace != _process(os.getpid()).partition(" ")[0]:
        return False
    return _process(int(pid)) != holder


def _sum(connection: sqlite3.Connection, moment: datetime) -> Spent:
    row = connection.execute(
        f"SELECT {_SUMS} FROM spending WHERE at >= ?",  # noqa: S608
        (moment.timestamp(),),
    ).fetchone()
    return Spent(*row)


def _open() -> AbstractContextManager[sqlite3.Connection]:
    return database.opened(("spending", STEPS), wait=_WAIT)


def _written(work: Callable[[sqlite3.Connection], T]) -> tuple[T | None, str]:
    """What `work` gives in a transaction, and, where it could not be done, why not."""
    try:
        with _open() as connection, database.transaction(connection):
            return work(connection), ""
    except TacitError as error:
        return None, error.message
