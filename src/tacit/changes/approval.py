"""A person's consent: how it is asked for, and what it covers."""

from collections.abc import Callable
from typing import Literal

import msgspec

from tacit.changes.case import Case
from tacit.changes.change import Refusal
from tacit.changes.objects import tree_id

Answer = Literal["yes", "no", "later"]
Approver = Callable[[Case, tuple[Refusal, ...]], Answer]
"""Asks a person. Called from the thread that proposes, with no lock held; may take its time."""


class Consent(msgspec.Struct, frozen=True):
    """What a person said: to this outcome, or to any where `tree` is empty."""

    answer: Answer | None = None
    tree: str = ""

    def covers(self, case: Case) -> bool:
        return self.answer == "yes" and self.tree in ("", tree_id(case.new))


class Question(msgspec.Struct, frozen=True):
    """The change stands or falls with a person's answer."""

    case: Case
    asks: tuple[Refusal, ...]
