"""Limits on a run, and the meter that is held against them."""

import time
from collections.abc import Callable

import msgspec

from tacit.agent.events import Reason, Usage


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


class Meter:
    """What a run has taken so far."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._began = clock()
        self.turns = 0
        self.tokens = 0
        self.money = 0.0
        self.unpriced = 0

    def count(self, usage: Usage) -> None:
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

    def over(self) -> Reason | None:
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
