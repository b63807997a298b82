"""Every problem that reading or checking a skill can report: how grave, what is said, how to mend.

The table is also the source of `docs/problems.md`.
"""

from typing import Any, NamedTuple

from tacit.skills.skill import Problem, Severity


class Rule(NamedTuple):
    """One kind of problem. `message` and `fix` are filled in by `problem`."""

    severity: Severity
    message: str
    fix: str


RULES: dict[str, Rule] = {
    "no-frontmatter": Rule(
        "error",
        "the file does not begin with a '---' line",
        "begin it with the lines '---', 'name: …', 'description: …' and '---'",
    ),
    "space-before-frontmatter": Rule(
        "error",
        "something stands before the opening '---'",
        "delete what stands before the first '---'",
    ),
    "unclosed-frontmatter": Rule(
        "error",
        "the frontmatter has no closing '---' line",
        "put a line '---' after the last key",
    ),
    "long-head": Rule(
        "error",
        "the frontmatter has {n:,} characters; only the first {most:,} were read",
        "move what is not a key to the body",
    ),
    "bad-yaml": Rule("error", "the frontmatter is not valid YAML: {why}", "{fix}"),
    "not-a-mapping": Rule(
        "error",
        "{what} is not a list of 'key: value' lines",
        "write one 'key: value' a line",
    ),
    "repeated-key": Rule("error", "'{key}' stands twice; the last one counts", "keep one of them"),
    "bad-key": Rule("error", "a key is not plain text", "write the key as a word"),
    "no-name": Rule("error", "the frontmatter has no name", "add 'name: {name}'"),
    "bad-name": Rule("error", "the name is empty or not text", "write 'name: {name}'"),
    "long-name": Rule(
        "error", "the name has {n} characters; {most} are allowed", "shorten it, e.g. '{name}'"
    ),
    "name-form": Rule("warning", "the name '{is_}' {wrong}", "write 'name: {name}'"),
    "name-differs": Rule(
        "warning",
        "the name is '{name}' but the folder is '{folder}'",
        "rename the folder to '{name}', or write 'name: {folder}'; until then both find it",
    ),
    "file-case": Rule("warning", "the file is called '{file}'", "rename it to SKILL.md"),
    "no-description": Rule(
        "error",
        "the frontmatter has no description",
        "add 'description: what it does and when to use it'",
    ),
    "bad-description": Rule(
        "error",
        "the description is empty or not text",
        "write what the skill does and when to use it, in quotes",
    ),
    "long-description": Rule(
        "error",
        "the description has {n:,} characters; {most:,} are allowed",
        "shorten it, or move detail to the body",
    ),
    "bad-compatibility": Rule("error", "'compatibility' is not text", "write it on one line"),
    "long-compatibility": Rule(
        "error", "'compatibility' has {n} characters; {most} are allowed", "shorten it"
    ),
    "not-text": Rule("warning", "'{key}' is not text", "write it on one line, in quotes"),
    "not-a-flag": Rule(
        "warning",
        "'{key}' is '{is_}', neither true nor false",
        "write '{key}: true' or '{key}: false'",
    ),
    "unknown-key": Rule(
        "error",
        "'{key}' is not a key of the standard",
        "move it under 'metadata:'; the standard knows {allowed}",
    ),
    "flow-style": Rule(
        "error",
        "'{{…}}' and '[…]' are not allowed in frontmatter",
        "write one indented 'key: value' or '- item' a line",
    ),
    "yaml-anchor": Rule("error", "anchors and aliases are not allowed", "write the value out"),
    "yaml-tag": Rule(
        "error", "the YAML tag '{tag}' is not allowed", "delete it; put the value in quotes"
    ),
    "dashes-in-value": Rule(
        "note",
        "'---' inside a value ends the frontmatter for some readers",
        "write '--' or a dash there",
    ),
    "not-utf8": Rule("error", "byte 0x{byte:02x} is not UTF-8", "save the file as UTF-8"),
    "bom": Rule(
        "warning", "the file begins with a byte order mark", "save it as UTF-8 without BOM"
    ),
    "nul": Rule("error", "the file holds NUL characters", "delete them; is it a text file?"),
    "too-big": Rule(
        "error",
        "the file has {n:,} bytes; only the first {most:,} were read",
        "move the long parts to files under references/",
    ),
    "no-body": Rule(
        "warning", "nothing stands after the frontmatter", "write what to do, step by step"
    ),
    "long-body": Rule(
        "warning",
        "the body has {n:,} lines; {most} are advised",
        "move detail to files under references/ and link to them",
    ),
    "missing-file": Rule(
        "warning",
        "it links to '{path}', which is not in the folder",
        "add the file or mend the link",
    ),
    "link-outside": Rule(
        "warning", "it links to '{path}', outside its folder", "copy that file into the folder"
    ),
    "nested-skill": Rule(
        "warning",
        "'{path}' is a skill inside this skill; it is not read as one",
        "move it beside this folder",
    ),
    "broken-link": Rule(
        "warning", "'{path}' is a link to nothing", "remove it, or restore what it pointed to"
    ),
    "unreadable": Rule("error", "the file cannot be read: {why}", "check its permissions and kind"),
}


def problem(
    code: str, line: int, *, severity: Severity | None = None, file: str = "SKILL.md", **fill: Any
) -> Problem:
    """A problem of the kind `code` on `line`, its texts filled in."""
    rule = RULES[code]
    return Problem(
        line,
        code,
        severity or rule.severity,
        rule.message.format(file=file, **fill),
        rule.fix.format(file=file, **fill),
        file,
    )
