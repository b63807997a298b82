"""How large a skill may be. Long skills are read worse, and cost every session that loads them."""

from collections.abc import Callable
from typing import NamedTuple

from tacit.changes.change import Refusal
from tacit.changes.files import Files
from tacit.skills.skill import Skill

MAX_LINES = 500
MAX_TOKENS = 5_000
MAX_TOTAL = 1024 * 1024
MAX_FILES = 50
MAX_DESCRIPTION = 1_024

_PER_TOKEN = 4.0  # characters, of English prose and code
_PER_TOKEN_WIDE = 1.5  # of scripts that are written without spaces


def estimate_tokens(text: str) -> int:
    """About how many tokens `text` is: by characters, so an estimate, not a count."""
    wide = sum(1 for c in text if c >= "\u2e80") if not text.isascii() else 0
    return round((len(text) - wide) / _PER_TOKEN + wide / _PER_TOKEN_WIDE)


class Measure(NamedTuple):
    """One thing that is counted: what it is called, how much there is, and how much may be."""

    rule: str
    n: int
    most: int
    text: str
    """The words for too much of it, with `n` and `most` to fill in."""
    hint: str


Measuring = Callable[[Files, Skill], tuple[Measure, ...]]


def measure_skill(files: Files, skill: Skill) -> tuple[Measure, ...]:
    return (
        Measure(
            "long-body",
            skill.body.count("\n") + 1,
            MAX_LINES,
            "the body has {n:,} lines; {most:,} are allowed",
            _MOVE,
        ),
        Measure(
            "heavy-body",
            estimate_tokens(skill.body),
            MAX_TOKENS,
            "the body has about {n:,} tokens (an estimate); {most:,} are allowed",
            _MOVE,
        ),
        Measure(
            "heavy-skill",
            sum(len(file.data) for file in files.values()),
            MAX_TOTAL,
            "the skill has {n:,} bytes; {most:,} are allowed",
            "leave out what can be fetched or made when it is needed",
        ),
        Measure(
            "many-files",
            len(files),
            MAX_FILES,
            "the skill has {n:,} files; {most:,} are allowed",
            "put related files together, or make two skills",
        ),
        Measure(
            "long-description",
            len(skill.description),
            MAX_DESCRIPTION,
            "the description has {n:,} characters; {most:,} are allowed",
            "say what it does and when to use it, and move the rest to the body",
        ),
    )


def check(files: Files, skill: Skill, measure: Measuring = measure_skill) -> list[Refusal]:
    """What is over a limit, one refusal each."""
    return [
        Refusal("size", found.rule, _words(found), found.hint, overridable=True)
        for found in measure(files, skill)
        if found.n > found.most
    ]


def sizes(files: Files, skill: Skill, measure: Measuring = measure_skill) -> dict[str, int]:
    """The same measures by rule, to tell whether a change made one worse."""
    return {found.rule: found.n for found in measure(files, skill)}


def _words(found: Measure) -> str:
    return found.text.format(n=found.n, most=found.most)


_MOVE = "move detail to files under references/ and name them in the body"
