"""`tacit jobs`, `why` and `cost`: what was done in the background, why, and for how much money."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click
import msgspec

from tacit.agent import budget
from tacit.agent import budget as spending
from tacit.agent.budget import Spent
from tacit.base.clock import ago
from tacit.base.display import amount, counted, dollars, one_line, plain
from tacit.base.errors import NotFound
from tacit.base.paths import with_tilde
from tacit.base.setting_sections import LearnSettings
from tacit.base.settings import load_settings
from tacit.learn.ledger import Ledger, RecordedDecision, Review
from tacit.traces.trace import OWN_HOST
from tacit.ui.cli import output
from tacit.ui.cli.command import command, group
from tacit.ui.cli.user_shell import complete_session

if TYPE_CHECKING:
    from tacit.learn.improve.repair_triggers import RepairAccount
    from tacit.traces.store import Store, Stored
    from tacit.work.jobs import Attempt, Entry


_JOB_COLOURS = {"running": "blue", "failed": "red", "stuck": "red", "put off": "yellow"}


@group(
    "jobs",
    "learn",
    "Show the work in the background: what came of it, and why.",
    "tacit jobs                         what there is, the latest first",
    "tacit jobs --live                  what is not over",
    "tacit jobs show review-3f9c        one of them, with every try and why",
    "tacit jobs retry review-3f9c       again, or now if it was put off",
    "tacit jobs cancel review-3f9c      not, or no further",
    note="Jobs are in jobs.db in the data folder, or in PostgreSQL by TACIT_DATABASE_URL.",
)
@click.option("--live", is_flag=True, help="Only those that are not over.")
@click.option("--kind", default="", help="Only one kind, e.g. review.")
@click.option("-n", "--limit", type=click.IntRange(1), default=30, help="How many.")
@click.option("--skip", type=click.IntRange(0), default=0, help="Leave out so many at the start.")
@click.pass_context
def jobs_command(
    ctx: click.Context, live: bool, kind: str, limit: int, skip: int, as_json: bool
) -> int:
    """Show the work in the background: what waits, what runs, what came of it and why."""
    from tacit.work import jobs, jobs_db
    from tacit.work.presence import log_file

    if ctx.invoked_subcommand:
        return 0
    found = [entry for entry in jobs.listing(kind=kind) if entry.live or not live]
    found = found[skip : skip + limit]
    if as_json:
        return output.write_json(
            {"jobs": found, "queue": jobs_db.address().shown, "log": log_file()}
        )
    if not found:
        click.echo("No jobs fit." if live or kind else "No jobs yet.")
        return 0
    now = datetime.now(UTC)
    rows = [
        (
            entry.id,
            _job_word(entry),
            ago(entry.at, now),
            _job_subject(entry),
            one_line(_job_reason(entry)),
        )
        for entry in found
    ]
    click.echo(output.table(("id", "state", "when", "about", "why"), rows, ("when", "about")))
    return 0


@jobs_command.verb("show", "tacit jobs show review-3f9c")
@click.argument("job")
def show_job(job: str, as_json: bool) -> int:
    """Show one job with every try, and why it came out as it did."""
    from tacit.work import jobs, jobs_db
    from tacit.work.presence import log_file

    entry = jobs.show(job)
    if as_json:
        return output.write_json(entry)
    click.echo(click.style(plain(entry.id), bold=True))
    rows = {
        "kind": entry.kind,
        "about": one_line(entry.key),
        "state": _job_word(entry),
        "why": one_line(_job_reason(entry)),
        "changes": ", ".join(change[-8:] for change in entry.changes),
        "queue": jobs_db.address().shown,
        "log": with_tilde(log_file()),
    }
    output.write_rows(rows.items(), 10, {"state": _JOB_COLOURS.get(entry.state)})
    for attempt in entry.attempts:
        click.echo(f"\n{_attempt_text(attempt)}")
    if not entry.live:
        click.echo(f"\nAgain: tacit jobs retry {entry.id}")
    elif entry.state == "put off":
        click.echo(f"\nNow: tacit jobs retry {entry.id} · not: tacit jobs cancel {entry.id}")
    return 0


@jobs_command.verb("retry", "tacit jobs retry review-3f9c")
@click.argument("job")
def retry_job(job: str, as_json: bool) -> int:
    """Have a job done again, or now if it was put off.

    One that waits for another machine, which is away, is done by this one.
    """
    from tacit.work import jobs

    entry = jobs.retry(job)
    if as_json:
        output.write_json(entry)
    else:
        click.echo(f"{entry.id} is {entry.state}; see: tacit jobs show {entry.id}")
    return 0


@jobs_command.verb("cancel", "tacit jobs cancel review-3f9c")
@click.argument("job")
def cancel_job(job: str, as_json: bool) -> int:
    """Have a job not done, or no further; what it changed before stays."""
    from tacit.work import jobs

    entry = jobs.cancel(job)
    if as_json:
        output.write_json(entry)
    else:
        click.echo(f"{entry.id} is cancelled; take it up again: tacit jobs retry {entry.id}")
    return 0


def _job_subject(entry: "Entry") -> str:
    """What it is about, with the id of a session cut short: `tacit why` finds it by that too."""
    return re.sub(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f-]{12,}", r"\1", one_line(entry.key))


def _job_word(entry: "Entry") -> str:
    return one_line(entry.outcome if entry.state == "done" and entry.outcome else entry.state)


def _job_reason(entry: "Entry") -> str:
    due = entry.attempts[-1].due if entry.attempts else None
    if entry.state == "put off" and due is not None:
        return f"until {due.astimezone():%Y-%m-%d %H:%M}: {entry.reason or 'as it was asked for'}"
    return entry.reason


def _attempt_text(attempt: "Attempt") -> str:
    """One try in a line or two."""
    began = attempt.began or attempt.asked
    parts = [f"try {attempt.number}", attempt.outcome or attempt.state]
    if began is not None:
        parts.append(f"{began.astimezone():%Y-%m-%d %H:%M:%S}")
    if attempt.began and attempt.ended:
        parts.append(f"{(attempt.ended - attempt.began).total_seconds():.1f} s")
    if attempt.machine:
        parts.append(f"by {attempt.machine}")
    if attempt.kills:
        parts.append(f"taken up again {attempt.kills} times after its worker was gone")
    text = " · ".join(one_line(part) for part in parts)
    return text + (f"\n    {one_line(attempt.reason)}" if attempt.reason else "")


_MOMENTS = {"after": "after the session", "chat": "during the chat"}


@command(
    "why",
    "learn",
    "Say what came of a session, or what supports a skill.",
    "tacit why b4a27079                 a session: was it learned from, and why or why not",
    "tacit why db-migration             a skill: the sessions behind each line",
    "tacit why db-migration:12          one line of it, with every step and its words",
)
@click.argument("session", metavar="SESSION|SKILL[:LINE]", shell_complete=complete_session)
def why_command(session: str, as_json: bool) -> int:
    """Say whether a session was learned from, what came of it, what it cost, and why or why not.

    Skills that failed in it are named too, with what came of their repair. Of a skill: for each
    line that was learned, the sessions that support it, the steps and words there, who disagrees.
    """
    from tacit.traces.store import Store
    from tacit.ui.cli.distillations import write_skill_reasons

    store = click.get_current_context().with_resource(Store.open())
    if not store.has(session):
        code = write_skill_reasons(session, store, as_json=as_json)
        if code is not None:
            return code
    gone = store.gone(session)
    stored = None if gone and not store.has(gone.id) else _session_or_skill(store, session)
    name = stored.id if stored else gone.id if gone else session
    ledger = Ledger(store.connection)
    reviews, decisions = ledger.of(name), ledger.decisions(name)
    failed = _repairs(store, stored) if stored else []
    spent = budget.sum_spent(entry.spent for entry in _spending_on(name))
    if as_json:
        return output.write_json(
            {
                "session": name,
                "reviews": reviews,
                "decisions": decisions,
                "repairs": failed,
                "spent": spent,
                "gone": gone.explain() if gone and not stored else "",
            }
        )
    if gone and not stored:
        click.echo(f"{gone.explain()}. What came of it stays:")
    elif stored and not reviews:
        _write_unreviewed(stored, decisions, store.short_id(stored.head.session))
    _write_reasons(reviews, decisions, failed)
    if spent.requests:
        requests = counted(spent.requests, "request")
        click.echo(f"It cost {spent.shown()}: {requests}, {spent.tokens:,} tokens.")
    return 0


def _session_or_skill(store: "Store", name: str) -> "Stored":
    """The session called `name`. Raises `NotFound`, which says that no skill is called so."""
    from tacit.skills.library import library_here

    try:
        return store.find(name)
    except NotFound:
        near = library_here().suggest(name.partition(":")[0])
        hint = f"did you mean {' or '.join(near)}?" if near else "see: tacit sessions, tacit list"
        raise NotFound(f"there is no session and no skill '{name}'", hint) from None


def _repairs(store: "Store", stored: "Stored") -> "list[RepairAccount]":
    """What came of the skills that failed in a session."""
    from tacit.learn.improve.repair_triggers import repair_accounts
    from tacit.learn.improve.repair_triggers import session_folder as settings_folder

    settings = load_settings(settings_folder(stored.head.project)).settings
    return repair_accounts(store, stored.id, settings)


def _write_reasons(
    reviews: list[Review], decisions: list[RecordedDecision], failed: "list[RepairAccount]"
) -> None:
    for review in reviews:
        _write_review(review)
    for decided in decisions:
        _write_decision(decided)
    for account in failed:
        _write_account(account)


def _write_unreviewed(stored: "Stored", decisions: list[RecordedDecision], short: str) -> None:
    waits = bool(decisions) and decisions[0].decision.due
    state = "is to be looked at (see: tacit jobs)" if waits else "has not been looked at"
    click.echo(f"{stored.id} {state}; by hand: tacit learn {short}")


def _write_review(review: Review) -> None:
    click.echo(f"{_shown_minute(review.at)}  {review.method}: {review.outcome}")
    click.echo(f"    {one_line(review.reason)}")
    for change in review.changes:
        click.echo(f"    {_how_to_see(change)}")


def _write_decision(decided: RecordedDecision) -> None:
    decision = decided.decision
    for_what = " and ".join(
        word for word, due in (("skills", decision.skills), ("facts", decision.facts)) if due
    )
    said = f"to be looked at for {for_what}" if for_what else "not looked at"
    click.echo(f"{_shown_minute(decided.at)}  {_MOMENTS[decision.moment]}: {said}")
    click.echo(output.wrapped(f"    {one_line(decision.reason)}"))


def _write_account(account: "RepairAccount") -> None:
    when = f"{account.at.astimezone():%Y-%m-%d %H:%M}  " if account.at else ""
    skill = one_line(account.skill)
    click.echo(f"{when}the skill {skill} failed; repair: {account.outcome}")
    click.echo(output.wrapped(f"    {one_line(account.reason)}"))
    if account.change:
        click.echo(f"    {_how_to_see(account.change)}")


def _how_to_see(change: str) -> str:
    """How a change can be seen: in the inbox, or, once it landed, with the way back."""
    from tacit.changes.inbox import Inbox

    short = change[-8:]
    try:
        proposal = Inbox().get(change)
    except NotFound:  # it never waited
        return f"see it: tacit diff {short} · undo: tacit undo {short}"
    if proposal.state == "accepted":
        short = proposal.applied_as[-8:]
        return f"accepted; see it: tacit diff {short} · undo: tacit undo {short}"
    state = "turned down; " if proposal.state == "rejected" else ""
    return f"{state}see it: tacit inbox {short}"


def _spending_on(session: str) -> list[budget.Spending]:
    """What was spent on the session; of a chat, over all its parts."""
    ever = budget.days_ago(3650)
    return [
        entry
        for kind in ("review", "improve")
        for entry in budget.spendings(ever, kind=kind)
        if entry.key == session or entry.key.startswith(f"{session}#")
    ]


def _shown_minute(at: str) -> str:
    return at[:16].replace("T", " ")


class DailyBudget(msgspec.Struct, frozen=True):
    """What may be spent a day, and how far it is; 0 is no limit, and null what is left then."""

    money: float
    tokens: int
    money_left: float | None
    tokens_left: int | None
    held: float
    """Dollars that work which is going on may still take."""
    refusal: str
    """Why no more may be spent today; empty where more may."""


class CostReport(msgspec.Struct, frozen=True):
    """What was spent and what may be, for `--json`."""

    today: Spent
    budget: DailyBudget
    days: int
    total: Spent
    by_day: dict[str, Spent]
    """Only days on which something was spent."""
    by_kind: dict[str, Spent]
    by_model: dict[str, Spent]
    chats: Spent
    """The user's own conversations with our agent in these days; no part of the other sums."""


@command(
    "cost",
    "learn",
    "Show what work in the background cost, and what it may.",
    "tacit cost                         today, and the last 30 days",
    "tacit cost --days 7",
    "tacit cost --json",
    "tacit config set learn.daily_money 5",
    note="Counted is what reviews, repairs, curation and schedules asked a model for. A request "
    "whose price is not known counts its tokens, and is said as such.",
)
@click.option("--days", type=click.IntRange(1, 3650), default=30, help="How many days back.")
def cost_command(days: int, as_json: bool) -> int:
    """Show what work in the background cost today and lately, and what it may cost a day."""
    report = cost_report(load_settings().settings.learn, days)
    if as_json:
        return output.write_json(report)
    _write_today(report)
    _write_days(report)
    _write_parts("by kind", report.by_kind)
    _write_parts("by model", report.by_model)
    if report.chats.requests:
        count = counted(report.chats.requests, "conversation")
        _labelled(
            "your chats", f"{_priced(report.chats, 'conversation')} in {count}, not counted above"
        )
    return 0


def cost_report(learn: LearnSettings, days: int, *, now: datetime | None = None) -> CostReport:
    """What was spent in the last `days` days, today among them, and what is left of today."""
    since = spending.days_ago(days - 1, now=now)
    today, held = spending.today(now=now), spending.held(now=now)
    money_left = learn.daily_money - today.money - held.money
    tokens_left = learn.daily_tokens - today.tokens - held.tokens
    by_kind = spending.totals("kind", since)
    return CostReport(
        today,
        DailyBudget(
            learn.daily_money,
            learn.daily_tokens,
            max(money_left, 0.0) if learn.daily_money else None,
            max(tokens_left, 0) if learn.daily_tokens else None,
            held.money,
            spending.refusal_today(learn, now=now),
        ),
        days,
        spending.sum_spent(by_kind.values()),
        spending.totals("day", since),
        by_kind,
        spending.totals("model", since),
        _chat_spending(since),
    )


def _chat_spending(since: datetime) -> Spent:
    """The user's own conversations, by what their sessions say; `requests` counts conversations."""
    from tacit.traces.store import Store

    with Store.open() as store:
        if OWN_HOST not in store.counts():
            return Spent()
        usages = [s.head.usage for s in store.sessions(host=OWN_HOST, since=since, limit=100_000)]
    return Spent(
        requests=len(usages),
        unpriced=sum(usage.cost is None for usage in usages),
        input_tokens=sum(usage.input for usage in usages),
        output_tokens=sum(usage.output for usage in usages),
        cached_tokens=sum(usage.cache_read for usage in usages),
        money=sum(usage.cost or 0.0 for usage in usages),
    )


# For people.


def _write_today(report: CostReport) -> None:
    today, budget = report.today, report.budget
    if budget.money:
        share = today.money / budget.money
        text = f"{dollars(today.money)} of {dollars(budget.money)}  {_bar(share)} {share:.0%}"
    else:
        text = _priced(today)
    _labelled("today", text)
    unknown = f", {today.unpriced:,} of them without a known price" if today.unpriced else ""
    requests = counted(today.requests, "request")
    _labelled("", f"{requests}{unknown}; {amount(today.tokens)} tokens")
    if budget.tokens:
        share = today.tokens / budget.tokens
        text = f"{today.tokens:,} of {budget.tokens:,} tokens  {_bar(share)} {share:.0%}"
        _labelled("", text)
    if not budget.money and not budget.tokens:
        _labelled("", "no budget is set: tacit config set learn.daily_money 2")
    if budget.held:
        _labelled("", f"{dollars(budget.held)} held for work that is going on")
    if budget.refusal:
        click.echo(click.style(output.wrapped(budget.refusal.partition("; see:")[0]), fg="yellow"))
        more = spending.allow_more(budget.refusal, budget.money, budget.tokens)
        click.echo(f"It goes on tomorrow, or: {more}")


def _write_days(report: CostReport) -> None:
    label = f"{report.days} days"
    _labelled(label, f"{_priced(report.total)}  {day_bars(report)}".rstrip())
    total = report.total
    if total.requests:
        cached = f", {total.cached_tokens / total.input_tokens:.0%} of the input from the cache"
        text = f"{counted(total.requests, 'request')}, {amount(total.tokens)} tokens"
        _labelled("", text + (cached if total.cached_tokens and total.input_tokens else ""))
    else:
        _labelled("", "nothing was asked of a model in the background")


def _write_parts(label: str, parts: Mapping[str, Spent]) -> None:
    by_tokens = not any(spent.money for spent in parts.values())
    whole = sum(_spent_size(spent, by_tokens) for spent in parts.values())
    ordered = sorted(parts.items(), key=lambda item: -_spent_size(item[1], by_tokens))
    names = [one_line(name) or "unknown" for name, _ in ordered]
    wide = max(map(len, names), default=0)
    for name, (_, spent) in zip(names, ordered, strict=True):
        share = _spent_size(spent, by_tokens) / whole if whole else 0.0
        _labelled(
            label,
            f"{name:<{wide}}  {_bar(share, 10)} {share:>4.0%}  {_priced(spent)}",
        )
        label = ""


def day_bars(report: CostReport) -> str:
    """A mark a day, the oldest first; by tokens where nothing has a price."""
    by_tokens = not any(spent.money for spent in report.by_day.values())
    sizes = []
    last = datetime.now(UTC).astimezone().date()
    for back in range(report.days - 1, -1, -1):
        day = (last - timedelta(days=back)).isoformat()
        sizes.append(_spent_size(report.by_day.get(day, Spent()), by_tokens))
    return "" if not any(sizes) or report.days > 90 else output.sparkline(sizes, "·")


def _spent_size(spent: Spent, by_tokens: bool) -> float:
    return float(spent.tokens) if by_tokens else spent.money


def _bar(share: float, wide: int = 20) -> str:
    return output.share_bar(share, wide, "░")


def _priced(spent: Spent, noun: str = "request") -> str:
    return spent.shown().replace("request", noun)


def _labelled(label: str, text: str) -> None:
    click.echo(f"{click.style(f'{label:<12}', dim=True)}{text}")
