"""The noun Skill: a folder with a SKILL.md, as it was read; what it may be called; and every
problem that reading or checking one can report.

The table of problems is also the source of `docs/problems.md`. Reading is `skill_file.py`'s,
checking is `skill_lint.py`'s.
"""

import re
import unicodedata
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:  # an import of 5 ms
    from pathlib import Path

Severity = Literal["error", "warning", "note"]
Origin = Literal["user", "learned", "bundled", "installed", "scheduled"]

LEARNED_SOURCE = "auto-skill"


class Problem(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong with a skill: where, what, and how to repair it."""

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
    folder: "Path | None" = None
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


MAX_NAME = 64


def normal_name(name: str) -> str:
    """`name` in the one spelling that is compared and shown."""
    return unicodedata.normalize("NFKC", name).strip()


def name_faults(name: str) -> list[str]:
    """What is wrong with the form of `name`, as ends of the sentence "the name …"."""
    wrong = []
    if name != name.lower():
        wrong.append("has capital letters")
    if name.startswith("-") or name.endswith("-"):
        wrong.append("begins or ends with a hyphen")
    if "--" in name:
        wrong.append("has two hyphens in a row")
    if not (name.replace("-", "") or "a").isalnum():
        wrong.append("has characters other than letters, digits and hyphens")
    return wrong


def suggest_name(name: str) -> str:
    """A valid name as near to `name` as can be."""
    name = re.sub(r"[\W_]+", "-", normal_name(name).lower()).strip("-")
    return name[:MAX_NAME].strip("-") or "my-skill"


class ProblemRule(NamedTuple):
    """One kind of problem. `message` and `fix` are filled in by `problem`."""

    severity: Severity
    message: str
    fix: str


PROBLEM_RULES: dict[str, ProblemRule] = {
    "no-frontmatter": ProblemRule(
        "error",
        "the file does not begin with a '---' line",
        "begin it with the lines '---', 'name: …', 'description: …' and '---'",
    ),
    "space-before-frontmatter": ProblemRule(
        "error",
        "something stands before the opening '---'",
        "delete what stands before the first '---'",
    ),
    "unclosed-frontmatter": ProblemRule(
        "error",
        "the frontmatter has no closing '---' line",
        "put a line '---' after the last key",
    ),
    "long-head": ProblemRule(
        "error",
        "the frontmatter has {n:,} characters; only the first {most:,} were read",
        "move what is not a key to the body",
    ),
    "bad-yaml": ProblemRule("error", "the frontmatter is not valid YAML: {why}", "{fix}"),
    "not-a-mapping": ProblemRule(
        "error",
        "{what} is not a list of 'key: value' lines",
        "write one 'key: value' a line",
    ),
    "repeated-key": ProblemRule(
        "error", "'{key}' stands twice; the last one counts", "keep one of them"
    ),
    "bad-key": ProblemRule("error", "a key is not plain text", "write the key as a word"),
    "no-name": ProblemRule("error", "the frontmatter has no name", "add 'name: {name}'"),
    "bad-name": ProblemRule("error", "the name is empty or not text", "write 'name: {name}'"),
    "long-name": ProblemRule(
        "error", "the name has {n} characters; {most} are allowed", "shorten it, e.g. '{name}'"
    ),
    "name-form": ProblemRule("warning", "the name '{is_}' {wrong}", "write 'name: {name}'"),
    "name-differs": ProblemRule(
        "warning",
        "the name is '{name}' but the folder is '{folder}'",
        "rename the folder to '{name}', or write 'name: {folder}'; until then both find it",
    ),
    "file-case": ProblemRule("warning", "the file is called '{file}'", "rename it to SKILL.md"),
    "no-description": ProblemRule(
        "error",
        "the frontmatter has no description",
        "add 'description: what it does and when to use it'",
    ),
    "bad-description": ProblemRule(
        "error",
        "the description is empty or not text",
        "write what the skill does and when to use it, in quotes",
    ),
    "long-description": ProblemRule(
        "error",
        "the description has {n:,} characters; {most:,} are allowed",
        "shorten it, or move detail to the body",
    ),
    "bad-compatibility": ProblemRule(
        "error", "'compatibility' is not text", "write it on one line"
    ),
    "long-compatibility": ProblemRule(
        "error", "'compatibility' has {n} characters; {most} are allowed", "shorten it"
    ),
    "not-text": ProblemRule("warning", "'{key}' is not text", "write it on one line, in quotes"),
    "not-a-flag": ProblemRule(
        "warning",
        "'{key}' is '{is_}', neither true nor false",
        "write '{key}: true' or '{key}: false'",
    ),
    "unknown-key": ProblemRule(
        "error",
        "'{key}' is not a key of the standard",
        "move it under 'metadata:'; the standard knows {allowed}",
    ),
    "flow-style": ProblemRule(
        "error",
        "'{{…}}' and '[…]' are not allowed in frontmatter",
        "write one indented 'key: value' or '- item' a line",
    ),
    "yaml-anchor": ProblemRule(
        "error", "anchors and aliases are not allowed", "write the value out"
    ),
    "yaml-tag": ProblemRule(
        "error", "the YAML tag '{tag}' is not allowed", "delete it; put the value in quotes"
    ),
    "dashes-in-value": ProblemRule(
        "note",
        "'---' inside a value ends the frontmatter for some readers",
        "write '--' or a dash there",
    ),
    "not-utf8": ProblemRule("error", "byte 0x{byte:02x} is not UTF-8", "save the file as UTF-8"),
    "bom": ProblemRule(
        "warning", "the file begins with a byte order mark", "save it as UTF-8 without BOM"
    ),
    "nul": ProblemRule("error", "the file holds NUL characters", "delete them; is it a text file?"),
    "too-big": ProblemRule(
        "error",
        "the file has {n:,} bytes; only the first {most:,} were read",
        "move the long parts to files under references/",
    ),
    "no-body": ProblemRule(
        "warning", "nothing stands after the frontmatter", "write what to do, step by step"
    ),
    "long-body": ProblemRule(
        "warning",
        "the body has {n:,} lines; {most} are advised",
        "move detail to files under references/ and link to them",
    ),
    "missing-file": ProblemRule(
        "warning",
        "it links to '{path}', which is not in the folder",
        "add the file or mend the link",
    ),
    "link-outside": ProblemRule(
        "warning", "it links to '{path}', outside its folder", "copy that file into the folder"
    ),
    "nested-skill": ProblemRule(
        "warning",
        "'{path}' is a skill inside this skill; it is not read as one",
        "move it beside this folder",
    ),
    "broken-link": ProblemRule(
        "warning", "'{path}' is a link to nothing", "remove it, or restore what it pointed to"
    ),
    "unreadable": ProblemRule(
        "error", "the file cannot be read: {why}", "check its permissions and kind"
    ),
}


def problem(
    code: str, line: int, *, severity: Severity | None = None, file: str = "SKILL.md", **fill: Any
) -> Problem:
    """A problem of the kind `code` on `line`, its texts filled in."""
    rule = PROBLEM_RULES[code]
    return Problem(
        line,
        code,
        severity or rule.severity,
        rule.message.format(file=file, **fill),
        rule.fix.format(file=file, **fill),
        file,
    )
