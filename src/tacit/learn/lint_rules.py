"""The rules that linters and type checkers name in what they print, and how often."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.secrets import clean
from tacit.traces.command_purposes import WorkClass


class RuleCount(msgspec.Struct, frozen=True):
    """A rule that a linter named, and how often."""

    rule: str
    count: int
    sessions: tuple[str, ...]
    example: str


_RULES = (
    # golangci-lint
    re.compile(
        r"^(?:\[[^\]]+\]\s+)?\S+:\d+:\d+:?\s+(?P<says>.+?)\s+\((?P<rule>[a-z][\w-]{2,30})\)$", re.M
    ),
    # eslint
    re.compile(
        r"^\s*\d+:\d+\s+(?:error|warning)\s+(?P<says>.+?)\s{2,}(?P<rule>@?[\w/-]{3,60})$", re.M
    ),
    # ruff, flake8
    re.compile(r"^\S+:\d+:\d+:?\s+(?P<rule>[A-Z]{1,4}\d{3,4})\s+(?:\[\*\] )?(?P<says>.+)$", re.M),
    # biome
    re.compile(r"^\S+:\d+(?::\d+)?\s+(?P<rule>lint/[\w/]+)(?P<says>)", re.M),
    # TypeScript
    re.compile(
        r"^\S+?(?:\(\d+,\d+\)|:\d+:\d+)(?::| -) error (?P<rule>TS\d{4}): (?P<says>.+)$", re.M
    ),
    # mypy
    re.compile(r"^\S+:\d+: error: (?P<says>.+?)  \[(?P<rule>[a-z][\w-]+)\]$", re.M),
    # clippy
    re.compile(r"#\[(?:warn|deny)\((?P<rule>clippy::\w+)\)\](?P<says>)", re.M),
)
_NO_RULE = {"typecheck", "syntax", "misc", "typescript"}
"""What linters call it when the code does not compile."""
_MOST_RULES = 8


def rules_named(work: WorkClass | None, printed: str) -> Iterator[tuple[str, str]]:
    """The rules that a linter or a type checker named in one run, with what it said of each."""
    for pattern in _RULES if work in ("lint", "types", "build") else ():
        for found in pattern.finditer(printed):
            if found["rule"] not in _NO_RULE:
                yield found["rule"], shorten(one_line(clean(found["says"])), 140)


def count_rules(
    named: Iterable[tuple[str, tuple[tuple[str, str], ...]]],
) -> tuple[RuleCount, ...]:
    """The rules that were named in two sessions, the commonest first; `named` has the session of
    each run and what was named in it."""
    counts: Counter[str] = Counter()
    sessions: dict[str, dict[str, None]] = {}
    examples: dict[str, str] = {}
    for session, own in named:
        for rule, said in own:
            counts[rule] += 1
            sessions.setdefault(rule, {})[session] = None
            if said and (rule not in examples or len(said) < len(examples[rule])):
                examples[rule] = said
    often = sorted(
        (rule for rule in counts if len(sessions[rule]) > 1),
        key=lambda rule: (-len(sessions[rule]), -counts[rule]),
    )
    return tuple(
        RuleCount(rule, counts[rule], tuple(sessions[rule]), examples.get(rule, ""))
        for rule in often[:_MOST_RULES]
    )
