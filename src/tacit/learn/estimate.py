"""What looking at sessions is likely to cost, said before it is begun, and said as an estimate.

Counted are the characters that will be sent. How often a review sends its conversation, and how
much a model answers, comes from earlier reviews on this machine, and before there are any from
fixed numbers. The price is the one that the provider's library has on its list.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from tacit.agent import spending
from tacit.base.amounts import amount, dollars
from tacit.base.errors import TacitError

CHARACTERS = 4
"""Characters that a token has, about; providers count for themselves."""
_ENOUGH = 3
"""Earlier reviews from which their figures are taken rather than the fixed ones."""
_PROVIDERS = {"google-gla": "google", "google-vertex": "google", "openai-responses": "openai"}


class Habits(msgspec.Struct, frozen=True):
    """How a review goes, on average."""

    requests: float = 4.0
    output: float = 300.0
    """Tokens of an answer."""
    results: float = 400.0
    """Tokens that the tools add between two requests."""
    reviews: int = 0
    """Earlier reviews that this stands on; 0 for the fixed numbers."""


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


def estimate(
    digests: Sequence[int], model: str, *, instructions: int = 0, habits: Habits | None = None
) -> Estimate:
    """What reviews of sessions with digests of so many characters are likely to take.

    `instructions` are the characters that each request carries besides. Every request sends the
    whole conversation again; what the provider then charges less for is not taken off.
    """
    habits = habits or habits_so_far()
    count = habits.requests
    growth = (count - 1) / 2 * (habits.output + habits.results)
    per_request = [(size + instructions) / CHARACTERS + growth for size in digests]
    input_tokens = round(sum(size * count for size in per_request))
    output_tokens = round(len(digests) * count * habits.output)
    return Estimate(
        sessions=len(digests),
        requests=round(len(digests) * count),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        model=model,
        cost=price(model, input_tokens, output_tokens),
        reviews=habits.reviews,
    )


def price(model: str, input_tokens: int, output_tokens: int) -> float | None:
    """Dollars for so many tokens of `provider:model`; None where the price is not known."""
    provider, _, name = model.partition(":")
    try:
        from genai_prices import Usage, calc_price

        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        found = calc_price(usage, model_ref=name, provider_id=_PROVIDERS.get(provider, provider))
        return float(found.total_price)
    except Exception:  # not installed, or a model that is on no list
        return None


def habits_so_far(*, days: int = 90, now: datetime | None = None) -> Habits:
    """How reviews went lately, from what they were booked with."""
    moment = (now or datetime.now(UTC)) - timedelta(days=days)
    try:
        entries = spending.listing(moment, kind="review")
    except TacitError:
        return Habits()
    reviews = {entry.key for entry in entries}
    whole = spending.total(entry.spent for entry in entries)
    if len(reviews) < _ENOUGH or not whole.requests:
        return Habits()
    return Habits(
        requests=whole.requests / len(reviews),
        output=whole.output_tokens / whole.requests,
        reviews=len(reviews),
    )
