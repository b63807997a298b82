"""Reviews that a person asked for: their likely cost, then one after the other, by the same job.

The estimate counts the characters that will be sent; how often a review sends its conversation,
and how much a model answers, comes from earlier reviews on this machine, or from fixed numbers
before there are any. What a review cost is what was recorded for its session meanwhile. The day's
budget holds here too, and whoever stops in the middle keeps what was done before.
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import msgspec

from tacit.agent import budget
from tacit.agent.budget import Spent
from tacit.agent.models import ModelChoice, provider_of
from tacit.base.display import amount, dollars
from tacit.base.errors import TacitError
from tacit.base.job import Job, job_id
from tacit.base.paths import existing_folder
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.changes.change import acting_as, new_change_id
from tacit.learn.digest import digest
from tacit.learn.review.review_broker import LandingTurn
from tacit.learn.review.review_job import (
    ReviewWork,
    WantedReview,
    rehearse_review,
    related_findings,
    review_form,
    review_instructions,
    review_message,
    run_review,
)
from tacit.learn.review.review_triggers import (
    REVIEW_KIND,
    ReviewCandidate,
    named_sessions,
    review_request,
)
from tacit.traces.store import Store

CHARACTERS_A_TOKEN = 4
"""Characters that a token has, about; providers count for themselves."""
_ENOUGH = 3
"""Earlier reviews from which their figures are taken rather than the fixed ones."""


class ReviewAverages(msgspec.Struct, frozen=True):
    """How a review goes, on average."""

    requests: float = 4.0
    output: float = 300.0
    """Tokens of an answer."""
    results: float = 400.0
    """Tokens that the tools add between two requests."""
    reviews: int = 0
    """Earlier reviews that this stands on; 0 for the fixed numbers."""


_SHORT = ReviewAverages(requests=1.0, output=600.0, results=0.0)
"""A review in the short form, of which hardly any is sent back."""


class Estimate(msgspec.Struct, frozen=True):
    """What is likely to be taken."""

    sessions: int
    requests: int
    input_tokens: int
    output_tokens: int
    model: str
    cost: float | None
    """In dollars; None where the price of the model is not known."""
    reviews: int
    """Earlier reviews that the estimate stands on."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def shown(self) -> str:
        """`about $0.42 (1.2M tokens), an estimate …`."""
        basis = f"from {self.reviews} earlier reviews" if self.reviews else "without experience yet"
        tokens = f"{amount(self.tokens)} tokens"
        if self.cost is None:
            return f"about {tokens}, an estimate {basis}; no price is known for {self.model}"
        return f"about {dollars(self.cost)} ({tokens} of {self.model}), an estimate {basis}"


def estimate_cost(
    digests: Sequence[int],
    model: str,
    *,
    instructions: int = 0,
    habits: ReviewAverages | None = None,
) -> Estimate:
    """What reviews of sessions with digests of so many characters are likely to take.

    `instructions` are the characters that each request carries besides. Every request sends the
    whole conversation again; what the provider then charges less for is not taken off.
    """
    habits = habits or review_averages()
    count = habits.requests
    growth = (count - 1) / 2 * (habits.output + habits.results)
    per_request = [(size + instructions) / CHARACTERS_A_TOKEN + growth for size in digests]
    input_tokens = round(sum(size * count for size in per_request))
    output_tokens = round(len(digests) * count * habits.output)
    return Estimate(
        sessions=len(digests),
        requests=round(len(digests) * count),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        model=model,
        cost=model_price(model, input_tokens, output_tokens),
        reviews=habits.reviews,
    )


def model_price(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Dollars for so many tokens of `provider:model`; None where the price is not known."""
    provider = provider_of(model)
    try:
        from genai_prices import Usage, calc_price

        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        found = calc_price(
            usage,
            model_ref=model.partition(":")[2],
            provider_id=provider.priced_as or provider.name,
        )
        return float(found.total_price)
    except Exception:  # not installed, or a model that is on no list
        return None


def review_averages(*, days: int = 90, now: datetime | None = None) -> ReviewAverages:
    """How recent reviews went, from what was recorded for them."""
    moment = (now or datetime.now(UTC)) - timedelta(days=days)
    try:
        entries = budget.spendings(moment, kind="review")
    except TacitError:
        return ReviewAverages()
    reviews = {entry.key for entry in entries}
    whole = budget.sum_spent(entry.spent for entry in entries)
    if len(reviews) < _ENOUGH or not whole.requests:
        return ReviewAverages()
    return ReviewAverages(
        requests=whole.requests / len(reviews),
        output=whole.output_tokens / whole.requests,
        reviews=len(reviews),
    )


class RehearsedChange(msgspec.Struct, frozen=True):
    """A change that a rehearsal would have made."""

    skill: str
    diff: str
    waits: str
    """Why it would wait for the user; empty where it would land at once."""
    lines: int = 0
    """How many of its lines would wait by themselves; the diff is without them."""


class ReviewResult(msgspec.Struct, frozen=True):
    """The result for one session."""

    session: str
    outcome: str
    reason: str
    changes: tuple[str, ...] = ()
    spent: Spent = Spent()
    would: tuple[RehearsedChange, ...] = ()


def estimate_reviews(
    store: Store, candidates: Iterable[ReviewCandidate], settings: Settings, model: str
) -> Estimate:
    """What reviewing `candidates` is likely to cost: what will be sent is made, and counted."""
    sizes, fixed = [], 0
    is_short = review_form(settings, ModelChoice(model)) == "short"
    for candidate in candidates:
        wanted, trace = _wanted("", candidate), store.whole(candidate.stored.id)
        if is_short:  # with the skills that could be meant
            with acting_as("reviewer"), closing(LandingTurn()) as turn:
                work = ReviewWork(trace, wanted, settings, (), turn)
                sizes.append(sum(map(len, work.short_prompt())))
            continue
        fixed = len(review_instructions(wanted, settings.learn.turns))
        sizes.append(len(review_message(digest(trace), wanted)))
    habits = _SHORT if is_short else None
    return estimate_cost(sizes, model, instructions=fixed, habits=habits)


def review_session(session: str, *, model: str = "") -> ReviewResult:
    """Review one stored session now, whatever it holds: its id, or a part of it.

    Asks the model of the settings, or `model`, and spends. What it proposes passes the gate.
    """
    with Store.open() as store:
        stored = store.find(session)
        settings = load_settings(existing_folder(stored.head.project) or None).settings
        (candidate,) = named_sessions(store, [stored], settings).candidates
    return review_now(candidate, model=model)


def review_now(candidate: ReviewCandidate, *, model: str = "") -> ReviewResult:
    """Look at one session, by the job of the kind `review`. A fault is a result, too."""
    began = datetime.now(UTC)
    session = candidate.stored.id
    # A review by hand is a job of its own.
    key, payload = review_request(session, candidate.decision, new_change_id(began))
    job = Job(job_id(REVIEW_KIND, key), REVIEW_KIND, key, payload | {"model": model})
    try:
        done = run_review(job)
        found = ReviewResult(session, done.outcome, done.reason, done.changes)
    except TacitError as error:
        found = ReviewResult(session, "failed", error.message)
    return msgspec.structs.replace(found, spent=_spent(session, began))


def rehearse_now(candidate: ReviewCandidate, store: Store, settings: Settings) -> ReviewResult:
    """What a review would do. A model is asked, and paid for; nothing is changed or recorded."""
    began = datetime.now(UTC)
    stored = candidate.stored
    key, _ = review_request(stored.id, candidate.decision, new_change_id(began))
    wanted = _wanted(job_id(REVIEW_KIND, key), candidate)
    found = related_findings(store, stored)
    done = rehearse_review(store.whole(stored.id), wanted, settings, found)
    would = tuple(
        RehearsedChange(
            change.skill,
            preview.diff,
            preview.asks[0].reason if preview.asks else "",
            preview.lines,
        )
        for change, preview in done.ready
    )
    outcome = "would change" if would else done.outcome.word
    return ReviewResult(
        stored.id, outcome, done.outcome.reason, (), _spent(stored.id, began), would
    )


def _wanted(job: str, candidate: ReviewCandidate) -> WantedReview:
    decision = candidate.decision
    return WantedReview(
        job=job, moment=decision.moment, skills=decision.skills, facts=decision.facts
    )


def _spent(session: str, began: datetime) -> Spent:
    try:
        entries = budget.spendings(began, kind=REVIEW_KIND, key=session)
    except TacitError:
        return Spent()
    return budget.sum_spent(entry.spent for entry in entries)
