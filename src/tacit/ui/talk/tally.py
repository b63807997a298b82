"""What a conversation has taken so far, by what the provider reported. Nothing is guessed."""

from tacit.agent.events import Usage
from tacit.base.amounts import amount, dollars


class Tally:
    """Counts requests, tokens and money."""

    def __init__(self) -> None:
        self.requests = 0
        self.input = 0
        self.output = 0
        self.cached = 0
        self.money = 0.0
        self.unpriced = 0
        self.context = 0
        """Tokens of the last request with its answer: what the next one begins with."""
        self.window: int | None = None
        """What the model can read at once, where that is known."""

    def count(self, usage: Usage) -> None:
        self.requests += 1
        self.input += usage.input_tokens
        self.output += usage.output_tokens
        self.cached += usage.cached_tokens
        self.context = usage.input_tokens + usage.output_tokens
        if usage.cost is None:
            self.unpriced += 1
        else:
            self.money += usage.cost

    def shown_context(self) -> str:
        """`12.3k tokens (6%)`; without the share where the window is not known."""
        if not self.context:
            return ""
        text = f"{amount(self.context)} tokens"
        return f"{text} ({self.context / self.window:.0%})" if self.window else text

    def shown_cost(self) -> str:
        """`$0.042`; `?` where a price is not known, `$0.042+?` where some are not."""
        if not self.requests:
            return ""
        if self.unpriced == self.requests:
            return "$?"
        return dollars(self.money) + ("+?" if self.unpriced else "")

    def report(self) -> str:
        """The whole account, for `/cost`."""
        if not self.requests:
            return "Nothing has been asked yet."
        share = f", {self.cached / self.input:.0%} of it from the cache" if self.cached else ""
        window = f" of {amount(self.window)}" if self.window else ""
        lines = [
            f"requests   {self.requests:,}",
            f"input      {self.input:,} tokens{share}",
            f"output     {self.output:,} tokens",
            f"context    {self.context:,} tokens in the last request{window}",
            f"cost       {self._priced()}",
        ]
        return "\n".join(lines)

    def _priced(self) -> str:
        if self.unpriced == self.requests:
            return "not known: no price is on record for this model"
        unknown = f", and {self.unpriced} requests without a known price" if self.unpriced else ""
        return dollars(self.money) + unknown
