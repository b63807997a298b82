"""`tacit cost`: what work in the background cost, by day, kind and model, and what is left."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import click
import msgspec

from tacit.agent import spending
from tacit.agent.spending import Spent
from tacit.base.amounts import amount, counted, dollars
from tacit.base.sections import LearnSettings
from tacit.base.settings import load
from tacit.base.terminal import one_line
from tacit.traces.store import Store
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  tacit cost                         today, and the last 30 days
  tacit cost --days 7
  tacit cost --json
  tacit config set learn.daily_money 5

Counted is what reviews, repairs, curation and schedules asked a model for. A request whose price is
not known counts its tokens, and is said as such.
"""
_BARS = "·▁▂▃▄▅▆▇█"
_WIDTH = 20


class Budget(msgspec.Struct, frozen=True):
    """What may be spent a day, and how far it is; 0 is no limit, and null what is left then."""

    money: float
    tokens: int
    money_left: float | None
    tokens_left: int | None
    held: float
    """Dollars that work which is going on may still take."""
    refusal: str
    """Why no more may be spent today; empty where more may."""


class Report(msgspec.Struct, frozen=True):
    """The whole account."""

    today: Spent
    budget: Budget
    days: int
    total: Spent
    by_day: dict[str, Spent]
    """Only days on which something was spent."""
    by_kind: dict[str, Spent]
    by_model: dict[str, Spent]
    chats: Spent
    """The user's own conversations with our agent in these days; no part of the other sums."""


@click.command(epilog=_EPILOG)
@click.option("--days", type=click.IntRange(1, 3650), default=30, help="How many days back.")
@output.json_option
def command(days: int, as_json: bool) -> int:
    """Show what work in the background cost today and lately, and what it may cost a day."""
    report = account(load().settings.learn, days)
    if as_json:
        output.write_json(report)
        return 0
    _write_today(report)
    _write_days(report)
    _write_parts("by kind", report.by_kind)
    _write_parts("by model", report.by_model)
    if report.chats.requests:
        count = counted(report.chats.requests, "conversation")
        _line(
            "your chats", f"{_priced(report.chats, 'conversation')} in {count}, not counted above"
        )
    return 0


def account(learn: LearnSettings, days: int, *, now: datetime | None = None) -> Report:
    """What was spent in the last `days` days, today among them, and what is left of today."""
    since = spending.days_ago(days - 1, now=now)
    today, held = spending.today(now=now), spending.held(now=now)
    money_left = learn.daily_money - today.money - held.money
    tokens_left = learn.daily_tokens - today.tokens - held.tokens
    by_kind = spending.totals("kind", since)
    return Report(
        today,
        Budget(
            learn.daily_money,
            learn.daily_tokens,
            max(money_left, 0.0) if learn.daily_money else None,
            max(tokens_left, 0) if learn.daily_tokens else None,
            held.money,
            spending.allowed(learn, now=now),
        ),
        days,
        spending.total(by_kind.values()),
        spending.totals("day", since),
        by_kind,
        spending.totals("model", since),
        _chats(since),
    )


def _chats(since: datetime) -> Spent:
    """The user's own conversations, by what their sessions say; `requests` counts conversations."""
    with Store.open() as store:
        usages = [s.head.usage for s in store.sessions(host="tacit", since=since, limit=100_000)]
    return Spent(
        requests=len(usages),
        unpriced=sum(usage.cost is None for usage in usages),
        input_tokens=sum(usage.input for usage in usages),
        output_tokens=sum(usage.output for usage in usages),
        cached_tokens=sum(usage.cache_read for usage in usages),
        money=sum(usage.cost or 0.0 for usage in usages),
    )


# For people.


def _write_today(report: Report) -> None:
    today, budget = report.today, report.budget
    if budget.money:
        share = today.money / budget.money
        text = f"{dollars(today.money)} of {dollars(budget.money)}  {_bar(share)} {share:.0%}"
    else:
        text = _priced(today)
    _line("today", text)
    unknown = f", {today.unpriced:,} of them without a known price" if today.unpriced else ""
    requests = counted(today.requests, "request")
    _line("", f"{requests}{unknown}; {amount(today.tokens)} tokens")
    if budget.tokens:
        share = today.tokens / budget.tokens
        _line("", f"{today.tokens:,} of {budget.tokens:,} tokens  {_bar(share)} {share:.0%}")
    if not budget.money and not budget.tokens:
        _line("", "no budget is set: tacit config set learn.daily_money 2")
    if budget.held:
        _line("", f"{dollars(budget.held)} held for work that is going on")
    if budget.refusal:
        click.echo(click.style(output.wrapped(budget.refusal.partition("; see:")[0]), fg="yellow"))
        more = spending.allow_more(budget.refusal, budget.money, budget.tokens)
        click.echo(f"It goes on tomorrow, or: {more}")


def _write_days(report: Report) -> None:
    label = f"{report.days} days"
    _line(label, f"{_priced(report.total)}  {sparkline(report)}".rstrip())
    total = report.total
    if total.requests:
        cached = f", {total.cached_tokens / total.input_tokens:.0%} of the input from the cache"
        text = f"{counted(total.requests, 'request')}, {amount(total.tokens)} tokens"
        _line("", text + (cached if total.cached_tokens and total.input_tokens else ""))
    else:
        _line("", "nothing was asked of a model in the background")


def _write_parts(label: str, parts: Mapping[str, Spent]) -> None:
    by_tokens = not any(spent.money for spent in parts.values())
    whole = sum(_size(spent, by_tokens) for spent in parts.values())
    ordered = sorted(parts.items(), key=lambda item: -_size(item[1], by_tokens))
    names = [one_line(name) or "unknown" for name, _ in ordered]
    wide = max(map(len, names), default=0)
    for name, (_, spent) in zip(names, ordered, strict=True):
        share = _size(spent, by_tokens) / whole if whole else 0.0
        _line(label, f"{name:<{wide}}  {_bar(share, 10)} {share:>4.0%}  {_priced(spent)}")
        label = ""


def sparkline(report: Report) -> str:
    """A mark a day, the oldest first; by tokens where nothing has a price."""
    by_tokens = not any(spent.money for spent in report.by_day.values())
    sizes = []
    last = datetime.now(UTC).astimezone().date()
    for back in range(report.days - 1, -1, -1):
        day = (last - timedelta(days=back)).isoformat()
        sizes.append(_size(report.by_day.get(day, Spent()), by_tokens))
    most = max(sizes)
    if not most or report.days > 90:
        return ""
    # Whatever was spent shows, however little it was.
    return "".join(_BARS[max(round(s / most * 8), 1)] if s else _BARS[0] for s in sizes)


def _size(spent: Spent, by_tokens: bool) -> float:
    return float(spent.tokens) if by_tokens else spent.money


def _bar(share: float, wide: int = _WIDTH) -> str:
    full = min(max(round(share * wide), 1 if share > 0 else 0), wide)
    return "█" * full + "░" * (wide - full)


def _priced(spent: Spent, noun: str = "request") -> str:
    return spent.shown().replace("request", noun)


def _line(label: str, text: str) -> None:
    click.echo(f"{click.style(f'{label:<12}', dim=True)}{text}")
