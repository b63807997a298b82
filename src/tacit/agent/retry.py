"""Which failures of a provider pass by themselves, and how long to wait for that.

The providers' libraries raise what they like, above all in the middle of a stream: errors of
theirs, of the HTTP client below them, of the decoder. Here all of them become one kind of fault.
"""

import json
import random
from collections.abc import Iterator

_FIRST, _MOST = 1.0, 30.0
_LONGEST_TOLD = 120.0
"""Longer than this nobody waits because a provider says so."""
# Libraries between us and a provider, by the first part of their modules' names.
_CARRIERS = ("httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "openai", "anthropic", "google")


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
    def of(cls, error: Exception) -> "Faults":
        """What an `error` of a request means."""
        from pydantic_ai import exceptions as e

        if isinstance(error, Faults):
            return error
        if isinstance(error, e.ModelAPIError):
            return _of_provider(error)
        if isinstance(error, e.ContentFilterError):
            return cls(f"the provider's filter stopped the answer: {_said(error)}", "ask otherwise")
        if isinstance(error, e.UnexpectedModelBehavior):
            return cls(f"the provider's answer cannot be read: {_said(error)}", passing=True)
        if isinstance(error, e.UserError):
            return cls(str(error), "check the model's name: tacit config")
        if isinstance(error, UnicodeDecodeError):
            return cls("the provider's answer cannot be read: it is not UTF-8", passing=True)
        if type(error).__module__.partition(".")[0] in _CARRIERS:
            return _of_carrier(error)
        if isinstance(error, OSError | ValueError | EOFError):
            return cls(f"the provider's answer cannot be read: {_said(error)}", passing=True)
        return cls(f"the provider's library failed: {_said(error)}", "take another model")


class TooLong(Faults):
    """The conversation is longer than the model can read."""


def waits(retries: int) -> Iterator[float | None]:
    """Seconds to wait after each try; None after the last. They double, with some chance in it."""
    for number in range(retries):
        wait = min(_FIRST * 2**number, _MOST)
        yield wait * random.uniform(0.75, 1.25)  # noqa: S311 - not a secret
    yield None


def _of_provider(error: Exception) -> Faults:
    """An error that pydantic-ai has put a name to."""
    from pydantic_ai import exceptions as e

    if isinstance(error, e.ModelAuthenticationError):
        return Faults(f"the provider refused the key: {_said(error)}", "check it: tacit setup")
    if isinstance(error, e.ModelContextWindowExceededError):
        return TooLong("the conversation is longer than the model can read", "start a new one")
    if isinstance(error, e.ModelQuotaExceededError):
        return Faults(f"the quota is used up: {_said(error)}", "see the provider's account page")
    if isinstance(error, e.ModelNotFoundError):
        return Faults(_said(error), "check the model's name and address: tacit config")
    known = (
        e.ModelRateLimitError,
        e.ModelUnavailableError,
        e.ModelServerError,
        e.ModelConnectionError,
        e.ModelRequestTimeout,
    )
    # Without a status, the answer came and could not be read.
    status = getattr(error, "status_code", None) or 500
    passing = isinstance(error, known) or status in (408, 409, 425, 429) or status >= 500
    after = float(getattr(error, "retry_after", 0) or 0)
    if after > _LONGEST_TOLD:
        return Faults(_said(error), f"the provider says: try again in {after:.0f} s")
    if isinstance(error, e.ModelConnectionError):
        hint = "see that it runs and the address is right (agent.base_url), or try again later"
        said = _said(error).rstrip(".")
        return Faults(f"the model's server cannot be reached: {said}", hint, passing=True)
    hint = "try again later" if passing else "check the model's name: tacit config"
    return Faults(_said(error), hint, passing=passing, retry_after=after)


def _of_carrier(error: Exception) -> Faults:
    """An error that came through from a library below."""
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if isinstance(status, int) and 400 <= status < 500 and status not in (408, 409, 425, 429):
        return Faults(_said(error), "check the model's name: tacit config")
    kind = type(error).__name__
    slow = "Timeout" in kind
    why = "the provider stopped answering" if slow else "the connection to the provider broke"
    return Faults(f"{why}: {_said(error) or kind}", "try again later", passing=True)


def _said(error: Exception) -> str:
    """What went wrong, in the provider's own words where it has some."""
    status = getattr(error, "status_code", None)
    told = _message(getattr(error, "body", None))
    text = f"{told} (error {status})" if told and status else told or str(error)
    text = " ".join(text.split()) or type(error).__name__
    return text[:300] + ("…" if len(text) > 300 else "")


def _message(body: object) -> str:
    """The sentence in the body of an answer: providers put it in one place or another."""
    if isinstance(body, str):
        try:
            return _message(json.loads(body)) or body
        except ValueError:
            return "" if "<html" in body.lower() else body
    if isinstance(body, list) and body:
        return _message(body[0])
    if not isinstance(body, dict):
        return ""
    for key in ("error", "message", "detail", "msg"):
        if found := _message(body.get(key)):
            return found
    return ""
