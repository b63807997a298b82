"""What the scan answers: findings, each with its place, its grade and what to do, and a verdict."""

from typing import Literal

import msgspec

Severity = Literal["block", "ask", "note"]
ScanVerdict = Literal["block", "ask", "pass"]

_ORDER: dict[str, int] = {"block": 0, "ask": 1, "note": 2}


class Part(msgspec.Struct, frozen=True):
    """One sign that a grade was summed from."""

    line: int
    sign: str
    points: float
    why: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the scan found. It never holds the secret or the hostile text itself."""

    file: str
    line: int
    rule: str
    severity: Severity
    message: str
    fix: str
    overridable: bool = True
    """Whether the owner of a skill of their own may let it pass, on record."""
    parts: tuple[Part, ...] = ()
    """For a graded finding: what its points were summed from."""
    whole: bool = False
    """Whether it is about the skill as a whole, of which the line is only the first."""


class Report(msgspec.Struct, frozen=True):
    """All findings, gravest first."""

    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> ScanVerdict:
        """The gravest severity, or `pass`. Notes do not stand in the way of anything."""
        found = {finding.severity for finding in self.findings}
        return "block" if "block" in found else "ask" if "ask" in found else "pass"

    @property
    def overridable(self) -> bool:
        """Whether an owner may override all that blocks."""
        return all(found.overridable for found in self.findings if found.severity == "block")


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """`findings`, gravest first, then by file and line; the same one only once."""
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda f: (_ORDER[f.severity], f.file, f.line, f.rule)))
