"""The rules that linters and type checkers name in what they print, and how often; and what a hook
that stopped a commit or a push had run.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.secrets import clean
from tacit.traces.command_purposes import WorkClass
from tacit.traces.outcomes import failed_check, uncoloured
from tacit.traces.trace import ToolCall


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
    # markdownlint
    re.compile(
        r"^\S+?:\d+(?::\d+)? (?:error )?(?P<rule>MD\d{3})\S* (?P<says>.+?)(?: \[.*)?$", re.M
    ),
    # commitlint
    re.compile(r"^✖\s+(?P<says>[a-z].+?)\s+\[(?P<rule>[a-z]+(?:-[a-z]+)+)\]$", re.M),
    # clippy
    re.compile(r"#\[(?:warn|deny)\((?P<rule>clippy::\w+)\)\](?P<says>)", re.M),
)
_NO_RULE = {"typecheck", "syntax", "misc", "typescript"}
"""What linters call it when the code does not compile."""
_MOST_RULES = 8


def rules_named(work: WorkClass | None, printed: str) -> Iterator[tuple[str, str]]:
    """The rules that a linter or a type checker named in one run, each once for what it said."""
    yield from dict.fromkeys(_rules_named(work, printed))


def _rules_named(work: WorkClass | None, printed: str) -> Iterator[tuple[str, str]]:
    for pattern in _RULES if work in ("lint", "types", "build") else ():
        for found in pattern.finditer(printed):
            if found["rule"] not in _NO_RULE:
                yield found["rule"], shorten(one_line(clean(found["says"])), 140)


def count_rules(
    named: Iterable[tuple[str, tuple[tuple[str, str], ...]]], fewest: int = 2
) -> tuple[RuleCount, ...]:
    """The rules that were named in `fewest` sessions, the commonest first; `named` has the session
    of each run and what was named in it."""
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
        (rule for rule in counts if len(sessions[rule]) >= fewest),
        key=lambda rule: (-len(sessions[rule]), -counts[rule]),
    )
    return tuple(
        RuleCount(rule, counts[rule], tuple(sessions[rule]), examples.get(rule, ""))
        for rule in often[:_MOST_RULES]
    )


# Hooks.

HOOKED = ("git commit", "git push")
_OF_GIT = re.compile(
    r"^(?:error: (?:failed to push|cannot |could not|pathspec|src refspec|unable|Your local|Please "
    r"|RPC|The |remote|Signing |gpg )|fatal: |hint: |remote: ).*$",
    re.MULTILINE,
)
_OF_HOOK = re.compile(
    r"pre-commit|husky|lefthook|commitlint|commitizen|lint-staged|commit-msg|pre-push|\bhook\b"
    r"|\.{4,}(?:Passed|Failed)",
    re.IGNORECASE,
)
_NO_HOOK = re.compile(r"nothing (?:added )?to commit|no changes added|\[rejected\]", re.IGNORECASE)
_STEP = re.compile(
    r"^\[FAILED\] (?P<listed>[^—\n]{2,60}?) \[FAILED\]$|^\s*[✖×] (?P<task>[a-z][^—\n()]{1,50}?)"
    r"(?: \[FAILED\]|:)$|^(?P<hook>\w[\w .,()/:-]{1,60}?)\.{3,}(?:\([^)]*\))?Failed$"
    r"|^\W*(?:🥊|❌)\s+(?P<command>[\w:-]{2,40})(?: \(|$)",
    re.MULTILINE,
)
"""How lint-staged, pre-commit and lefthook name what failed."""


def stopped_by_hook(purpose: str, call: ToolCall) -> Literal["", "checks", "itself"]:
    """What a hook has to do with the failure of a commit or a push: checks failed that it ran, or
    it complains of itself. Git's own words are none of its."""
    if purpose not in HOOKED or "failed to write commit object" in call.result:
        return ""
    said = _OF_GIT.sub("", uncoloured(call.result))
    if failed_check(msgspec.structs.replace(call, result=said)) is not None or failed_steps(said):
        return "checks"
    own = purpose == "git commit" and _OF_HOOK.search(said) and not _NO_HOOK.search(said)
    return "itself" if own else ""


def failed_steps(printed: str) -> tuple[str, ...]:
    """The steps of a hook that failed, by their names."""
    named = (str(found[found.lastgroup or 0]) for found in _STEP.finditer(uncoloured(printed)))
    return tuple(dict.fromkeys(clean(one_line(name)) for name in named))
