"""What came of a review, in words: from what the gate did, not from what the model says."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from tacit.base.moments import until_tomorrow
from tacit.base.secrets import redact
from tacit.base.terminal import one_line
from tacit.learn.background.task import Ran
from tacit.learn.review.landing import Landed

Word = Literal["created", "edited", "proposed", "applied", "nothing", "refused", "failed"]
_LIMITS = ("turns", "seconds", "tokens", "money")
_MOST = 600


class Outcome(msgspec.Struct, frozen=True):
    """The end of a review."""

    word: Word
    reason: str
    changes: tuple[str, ...] = ()
    again: float = 0.0
    """Seconds after which it is worth another try; 0 for never."""


def outcome(ran: Ran, landed: Iterable[Landed], refused: Iterable[str] = ()) -> Outcome:
    """What came of it: changes first, then refusals, then why there was nothing."""
    landed = list(landed)
    kept = [one for one in landed if not one.verdict.refused]
    told = [*refused, *(f"{o.skill}: {o.verdict.explain()}" for o in landed if o.verdict.refused)]
    how = _how(ran)
    if kept:
        changes = tuple(one.verdict.change for one in kept)
        parts = [_phrase(one) for one in kept]
        parts += [f"refused: {text}" for text in told]
        return Outcome(_word(kept), _joined([*parts, how]), changes)
    if ran.day == "rest":
        return Outcome("failed", _joined([how, "nothing was changed"]), again=until_tomorrow())
    if ran.reason == "budget":
        return Outcome("failed", ran.error, again=3600.0)
    if ran.reason in ("error", "killed"):
        return Outcome("failed", _joined([how, *told, "nothing was changed"]), again=600.0)
    if told:
        return Outcome("refused", _joined([*told, how]))
    if how:
        return Outcome("failed", _joined([how, "nothing was changed"]))
    return Outcome("nothing", _nothing(ran.text))


def _word(kept: list[Landed]) -> Word:
    done = [one for one in kept if one.verdict.applied]
    if not done:
        return "proposed"
    skills = [one for one in done if one.what == "skill"]
    if not skills:
        return "applied"
    return "created" if any(one.is_new for one in skills) else "edited"


def _phrase(one: Landed) -> str:
    name = one.skill if one.what == "skill" else f"{one.what} {one.skill}"
    if one.verdict.applied:
        done = ("created", "edited") if one.what == "skill" else ("noted the", "replaced the")
        return f"{done[0] if one.is_new else done[1]} {name}"
    why = f" ({one.verdict.refusal.reason})" if one.verdict.refusal else ""
    return f"{name} waits in the inbox{why}"


def _how(ran: Ran) -> str:
    """How it ended, where that was not by itself."""
    if ran.reason == "done":
        return ""
    if ran.reason in _LIMITS and not ran.day:
        requests = "1 request" if ran.turns == 1 else f"{ran.turns} requests"
        return f"the limit on {ran.reason} was reached after {requests}"
    return ran.error or f"it ended by: {ran.reason}"


def _nothing(text: str) -> str:
    """The reviewer's reason for saving nothing, told as its words: they may claim anything."""
    said = one_line(redact(text).text)[:_MOST]
    return f'nothing was changed; the reviewer said: "{said}"' if said else "nothing was changed"


def _joined(parts: Iterable[str]) -> str:
    text = "; ".join(part for part in parts if part)
    return text if len(text) <= 2 * _MOST else text[: 2 * _MOST - 1] + "…"
