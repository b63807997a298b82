"""What a file of a skill is and could do: its kind by its bytes, and the powers that it claims.

A file is text to be read, a picture, or something that runs or hides. Powers are claimed in the
frontmatter, or by the name of a file that other programs obey. A person may give their own skill
such powers; a learned one never has them. Keys are read from the parsed head and from its raw
lines, since hosts differ in what they make of a key that stands twice, of capitals and of
underscores.
"""

import codecs
import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

ContentKind = Literal["text", "media", "program", "archive", "data"]

_MAGIC: tuple[tuple[bytes, ContentKind, str], ...] = (
    (b"\x7fELF", "program", "a Linux program"),
    (b"\xfe\xed\xfa\xce", "program", "a macOS program"),
    (b"\xfe\xed\xfa\xcf", "program", "a macOS program"),
    (b"\xce\xfa\xed\xfe", "program", "a macOS program"),
    (b"\xcf\xfa\xed\xfe", "program", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "program", "a macOS or Java program"),
    (b"\x00asm", "program", "a WebAssembly program"),
    (b"dex\n", "program", "an Android program"),
    (b"L\x00\x00\x00\x01\x14\x02\x00", "program", "a Windows shortcut"),
    (b"PK\x03\x04", "archive", "a zip archive"),
    (b"PK\x05\x06", "archive", "a zip archive"),
    (b"\x1f\x8b", "archive", "a gzip archive"),
    (b"BZh", "archive", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "archive", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "archive", "a 7z archive"),
    (b"Rar!\x1a\x07", "archive", "a rar archive"),
    (b"\x28\xb5\x2f\xfd", "archive", "a zstd archive"),
    (b"\x89PNG\r\n\x1a\n", "media", "a PNG picture"),
    (b"\xff\xd8\xff", "media", "a JPEG picture"),
    (b"GIF87a", "media", "a GIF picture"),
    (b"GIF89a", "media", "a GIF picture"),
    (b"wOFF", "media", "a font"),
    (b"wOF2", "media", "a font"),
    (b"\x00\x01\x00\x00\x00", "media", "a font"),
    (b"OTTO", "media", "a font"),
    (b"%PDF-", "media", "a PDF document"),
)
_RUNS_BY_NAME = (
    ".exe", ".dll", ".so", ".dylib", ".scr", ".com", ".msi", ".jar", ".class", ".lnk", ".pyc",
    ".pyo", ".pyd", ".node", ".wasm", ".apk", ".app", ".dmg", ".pkg", ".deb", ".rpm", ".vbe",
)  # fmt: skip


class Inspected(NamedTuple):
    """The kind of a file, what to call it, and its text where it has one."""

    kind: ContentKind
    what: str
    text: str
    odd: str = ""
    """What is unusual about the encoding, if anything."""


def inspect_file(path: str, data: bytes) -> Inspected:
    """What `data`, called `path`, is. Text is decoded; nothing is unpacked."""
    for magic, kind, what in _MAGIC:
        if data.startswith(magic) and (kind != "archive" or not _is_plain(data)):
            return Inspected(kind, what, "")
    if data.startswith(b"MZ") and b"\x00" in data[:512]:
        return Inspected("program", "a Windows program", "")
    if data[2:4] == b"\r\n" and len(data) > 16 and b"\x00" in data[4:16]:
        return Inspected("program", "compiled Python", "")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return Inspected("media", "a WebP picture", "")
    if path.lower().endswith(_RUNS_BY_NAME):
        return Inspected(
            "program", f"a program by its name ({path.rpartition('.')[2]})", _text(data)[0]
        )
    text, odd = _text(data)
    if "\x00" in text:
        return Inspected("data", "binary data", text.replace("\x00", " "))
    return Inspected("text", "text", text, odd)


def _is_plain(data: bytes) -> bool:
    return data[:4096].isascii() and b"\x00" not in data[:4096]


def _text(data: bytes) -> tuple[str, str]:
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if data.startswith(mark):
            return data.decode(name, "replace"), "it is UTF-16"
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace"), "it is not UTF-8"


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


def claimed_powers(head: str, line: int, values: dict[str, Any]) -> list[Claim]:
    """The powers that the head of a SKILL.md claims, each once; it begins on `line`."""
    found: dict[str, Claim] = {}
    for key in (*_keys(values), *(match[1] for match in _RAW_KEY.finditer(head))):
        does = CLAIMS.get(_plain(key))
        if does and key not in found:
            found[key] = Claim(key, line + _lines_above(key, head), does)
    return list(found.values())


def scan_switches(head: str, line: int) -> list[Claim]:
    """Keys that try to switch a scan off."""
    return [
        Claim(match[1], line + head.count("\n", 0, match.start()), "")
        for match in _RAW_KEY.finditer(head)
        if SWITCHES.fullmatch(_plain(match[1]))
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


def _lines_above(key: str, head: str) -> int:
    match = re.search(rf"^[ \t\"'-]{{0,44}}{re.escape(key)}[\"' \t]{{0,4}}:", head, re.M)
    return head.count("\n", 0, match.start()) if match else 0
