"""Which failures of a provider pass by themselves, and how long to wait for that."""

import random
from collections.abc import Iterator

_TRIES = 5
_FIRST, _MOST = 1.0, 30.0


class Faults(Exception):
    """A request that failed, in words for the user."""

    def __init__(
        self, why: str, hint: str = "", *, passing: bool = False, retry_after: float = 0.0
    ) -> None:
        super().__init__(why)
        self.hint = hint
        self.passing = passing
        self.retry_after = retry_after

    @classmethod
    def of(cls, error: Exception) -> "Faults | None":
        """What `error` means, or None when it is not the provider's."""
        from pydantic_ai import exceptions as e

        if isinstance(error, e.ModelAuthenticationError):
            return cls(f"the provider refused the key: {_said(error)}", "check it: tacit setup")
        if isinstance(error, e.ModelContextWindowExceededError):
            return cls("the conversation is longer than the model can read", "start a new one")
        if isinstance(error, e.ModelQuotaExceededError):
            return cls(f"the quota is used up: {_said(error)}", "see the provider's account page")
        passing = (
            e.ModelRateLimitError,
            e.ModelUnavailableError,
            e.ModelServerError,
            e.ModelConnectionError,
        )
        if isinstance(error, passing):
            after = float(getattr(error, "retry_after", 0) or 0)
            return cls(_said(error), "try again later", passing=True, retry_after=min(after, _MOST))
        if isinstance(error, e.ModelHTTPError):
            server = error.status_code >= 500 or error.status_code == 429
            return cls(_said(error), "check the model's name: tacit config", passing=server)
        if isinstance(error, e.ModelAPIError | e.UnexpectedModelBehavior):
            return cls(_said(error), "try again, or take another model")
        if isinstance(error, e.UserError):
            return cls(str(error), "check the model's name: tacit config")
        return None


def waits() -> Iterator[float | None]:
    """Seconds to wait after each try; None after the last. They double, with some chance in it."""
    for number in range(_TRIES - 1):
        wait = min(_FIRST * 2**number, _MOST)
        yield wait * random.uniform(0.75, 1.25)  # noqa: S311 - not a secret
    yield None


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text[:300] + ("…" if len(text) > 300 else "")
