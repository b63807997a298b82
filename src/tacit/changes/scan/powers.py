"""Powers that a skill claims in its frontmatter, or by files that other programs obey.

A person may give their own skill such powers; a learned one never has them. Keys are read from
the parsed head and from its raw lines, since hosts differ in what they make of a key that stands
twice, of capitals and of underscores.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tacit.skills import frontmatter

# Key, without hyphens and underscores and in small letters -> what a host does with it.
CLAIMS = {
    "hooks": "runs commands on the host's events",
    "hook": "runs commands on the host's events",
    "allowedtools": "lets tools run without asking",
    "tools": "chooses the tools that may be used",
    "disallowedtools": "changes which tools may be used",
    "permissions": "changes what may be done without asking",
    "permissionmode": "changes what may be done without asking",
    "model": "chooses the model",
    "effort": "chooses how much the model spends",
    "context": "runs the skill in another context",
    "agent": "runs the skill as another agent",
    "mcp": "starts servers",
    "mcpservers": "starts servers",
    "env": "sets environment variables",
    "environment": "sets environment variables",
    "shell": "chooses the shell that runs its commands",
    "command": "runs a command",
    "commands": "runs commands",
    "install": "installs programs",
    "installer": "installs programs",
    "preinstall": "runs a command",
    "postinstall": "runs a command",
    "sandbox": "changes the sandbox",
    "autoapprove": "lets tools run without asking",
    "alwaysload": "is loaded whatever the task",
    "alwaysapply": "is loaded whatever the task",
    "uservisible": "hides the skill from the user",
    "userinvocable": "hides the skill from the user",
    "hidden": "hides the skill from the user",
    "disablemodelinvocation": "keeps the agent from using it",
}
# Keys that try to speak to the scan itself. They have no effect; that they are there is telling.
SWITCHES = re.compile(
    r"(?:security|skill|tacit|secret|malware)?scan(?:ner|ning)?|noscan|nosec|skipchecks?|trusted|verified"
)

# Files that another program picks up by name and obeys.
OBEYED = re.compile(
    r"(?:^|/)(?:\.claude/|\.codex/|\.gemini/|\.qwen/|\.cursor/|\.vscode/|\.github/|\.git/|\.husky/|hooks/hooks\.json$"
    r"|\.mcp\.json$|settings(?:\.local)?\.json$|hooks\.json$|claude\.md$|agents\.md$|gemini\.md$|\.cursorrules$"
    r"|\.envrc$|\.npmrc$|\.pypirc$|sitecustomize\.py$|[^/]{1,200}\.pth$|\.gitattributes$|\.gitmodules$|\.bashrc$|\.profile$)"
)  # fmt: skip
IGNORE_FILES = re.compile(
    r"(?:^|/)\.?[a-z0-9_-]{0,40}(?:ignore|allowlist|baseline)(?:\.(?:json|txt|ya?ml|toml))?$"
)


class Claim(NamedTuple):
    """A key, its line in SKILL.md, and what it would do."""

    key: str
    line: int
    does: str


def claims(text: str) -> list[Claim]:
    """The powers that the head of this SKILL.md claims, each once."""
    parts = frontmatter.split(text)
    if not parts.head:
        return []
    values, _ = frontmatter.parse(parts.head, parts.head_line)
    found: dict[str, Claim] = {}
    for key in (*_keys(values), *(match[1] for match in _RAW_KEY.finditer(parts.head))):
        does = CLAIMS.get(_plain(key))
        if does and key not in found:
            found[key] = Claim(key, _line_of(key, parts), does)
    return list(found.values())


def switches(text: str) -> list[Claim]:
    """Keys that try to switch a scan off."""
    parts = frontmatter.split(text)
    return [
        Claim(match[1], parts.head_line + parts.head.count("\n", 0, match.start()), "")
        for match in _RAW_KEY.finditer(parts.head or "")
        if parts.head and SWITCHES.fullmatch(_plain(match[1]))
    ]


_RAW_KEY = re.compile(
    r"^[ \t]{0,40}(?:- )?[\"']?([A-Za-z][A-Za-z0-9_. -]{0,60}?)[\"']?[ \t]{0,20}:(?=\s|$|[\"'{\[])",
    re.M,
)


def _plain(key: str) -> str:
    return re.sub(r"[^a-z0-9]", "", key.lower())


def _keys(values: Any, depth: int = 0) -> Iterator[str]:
    """All keys, also nested ones: hosts read settings of their own under `metadata`."""
    if isinstance(values, dict):
        for key, value in values.items():
            yield str(key)
            if depth < 8:
                yield from _keys(value, depth + 1)
    elif isinstance(values, list) and depth < 8:
        for value in values:
            yield from _keys(value, depth + 1)


def _line_of(key: str, parts: frontmatter.Split) -> int:
    match = re.search(
        rf"^[ \t\"'-]{{0,44}}{re.escape(key)}[\"' \t]{{0,4}}:", parts.head or "", re.M
    )
    return (
        parts.head_line + (parts.head or "").count("\n", 0, match.start())
        if match
        else parts.head_line
    )
