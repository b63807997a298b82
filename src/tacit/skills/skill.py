"""The noun Skill: a folder with a SKILL.md, as it was read, with what is wrong with it."""

from pathlib import Path
from typing import Any, Literal

import msgspec

Severity = Literal["error", "warning", "note"]
Origin = Literal["user", "learned", "bundled", "installed", "scheduled"]

LEARNED_SOURCE = "auto-skill"


class Problem(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong with a skill: where, what, and how to mend it."""

    line: int
    code: str
    severity: Severity
    message: str
    fix: str
    file: str = "SKILL.md"


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill as read. Every field has a value; `problems` says what had to be bent for it."""

    name: str
    """The one identity: the frontmatter's name, or the folder's where there is none."""
    description: str
    folder: Path | None = None
    file: str = "SKILL.md"
    aliases: tuple[str, ...] = ()
    """Other names that mean this skill: the folder's, where it differs."""
    version: str = ""
    license: str = ""
    compatibility: str = ""
    metadata: dict[str, Any] = {}
    allowed_tools: tuple[str, ...] = ()
    when_to_use: str = ""
    argument_hint: str = ""
    disable_model_invocation: bool = False
    user_invocable: bool = True
    paths: tuple[str, ...] = ()
    """Patterns of files; the skill is offered when one of them is touched."""
    source: str = ""
    """`source` at the top level or under `metadata`; `auto-skill` makes a skill learned."""
    extra: dict[str, Any] = {}
    """Keys that Tacit does not know, untouched."""
    head: str = ""
    """The raw text between the fences."""
    body: str = ""
    body_line: int = 1
    """The line of the file on which the body begins."""
    problems: tuple[Problem, ...] = ()

    @property
    def learned(self) -> bool:
        return self.source == LEARNED_SOURCE

    @property
    def worst(self) -> Severity | None:
        """The gravest severity among the problems."""
        found = {problem.severity for problem in self.problems}
        return next((s for s in ("error", "warning", "note") if s in found), None)
