"""Whether a new skill mostly repeats one that is there.

Compares runs of three words of description and body, so that texts count as alike when they say
the same in the same words, not when they are on the same subject. Two skills with nearly the same
description are alike as well, unless the new one names something that the other does not: one
pattern written out for two products is two skills. Which skills to compare with is asked of
whoever can find a few in a large library; nothing here grows with it.
"""

import hashlib
import re
from collections.abc import Iterable

import msgspec

from tacit.changes.change import Refusal
from tacit.skills.skill import Skill

REPEATS = 0.6
"""The part of the new text that must stand in the old one."""
SAME_DESCRIPTION = 0.8
"""The part of all words of two descriptions that they must share."""

_WORD = re.compile(r"[^\W_]+")
_RUN = 3
_COMMON = frozenset(
    _WORD.findall(
        "a an and any are as at be by can do for from how if in into is it its of on or that the "
        "then this to use used using user users want wants when which with you your skill skills"
    )
)


class Likeness(msgspec.Struct, frozen=True):
    """A skill that the new one repeats, and how much of it, from 0 to 1."""

    skill: Skill
    share: float
    measure: str


def nearest(new: Skill, candidates: Iterable[Skill]) -> Likeness | None:
    """The candidate that `new` repeats most, where that is too much."""
    found: list[Likeness] = []
    runs, words = shingles(_text(new)), content_words(new.description)
    for other in candidates:
        share = contained(runs, shingles(_text(other)))
        if share >= REPEATS:
            found.append(Likeness(other, share, "text"))
            continue
        theirs = content_words(other.description)
        both = len(words & theirs) / max(1, len(words | theirs))
        own = (content_words(new.name) & words) - theirs
        if both >= SAME_DESCRIPTION and min(len(words), len(theirs)) >= 4 and not own:
            found.append(Likeness(other, both, "description"))
    return max(found, key=lambda likeness: likeness.share, default=None)


def refusal(new: Skill, likeness: Likeness) -> Refusal:
    name = likeness.skill.name
    what = "of its text" if likeness.measure == "text" else "of the description's words"
    return Refusal(
        "near-duplicate",
        "near-duplicate",
        f"'{new.name}' mostly repeats '{name}': {likeness.share:.0%} {what} stand there",
        f"edit '{name}' instead, or say in it what is different here",
        alternatives=(name,),
        overridable=True,
    )


def shingles(text: str) -> frozenset[int]:
    """Every run of three words in `text`, as numbers."""
    words = [word.casefold() for word in _WORD.findall(text)]
    runs = (" ".join(words[i : i + _RUN]) for i in range(max(1, len(words) - _RUN + 1)))
    return frozenset(
        int.from_bytes(hashlib.blake2b(run.encode(), digest_size=8).digest()) for run in runs if run
    )


def contained(new: frozenset[int], old: frozenset[int]) -> float:
    """Which part of `new` is in `old`."""
    return len(new & old) / len(new) if new else 0.0


def sketch(text: str, size: int = 64) -> tuple[int, ...]:
    """The smallest numbers of `text`'s runs: enough to compare two texts, small enough to keep."""
    return tuple(sorted(shingles(text))[:size])


def resemblance(one: Iterable[int], other: Iterable[int], size: int = 64) -> float:
    """How alike the texts behind two sketches are, from 0 to 1."""
    a, b = set(one), set(other)
    smallest = sorted(a | b)[:size]
    return sum(1 for n in smallest if n in a and n in b) / len(smallest) if smallest else 0.0


def _text(skill: Skill) -> str:
    return f"{skill.description}\n{skill.body}"


def content_words(text: str) -> frozenset[str]:
    """The words of `text` that say something, in small letters."""
    return frozenset(word.casefold() for word in _WORD.findall(text)) - _COMMON
