"""From the bytes of a SKILL.md to a Skill. Never raises for what stands in the file.

Owns how each field is understood, and the limits on sizes. Which files are read is the library's
decision; whether the result meets the open standard to the letter is `skill_lint.py`'s.
"""

import errno
import os
import re
import stat
from functools import cache
from typing import TYPE_CHECKING, Any

from tacit.base.display import shorten
from tacit.base.errors import NotFound, Unwritable
from tacit.skills import frontmatter, skill
from tacit.skills.skill import Problem, Severity, Skill, problem

if TYPE_CHECKING:
    from pathlib import Path

SKILL_FILE_NAMES = ("SKILL.md", "skill.md")
MAX_SKILL_READ = 8 * 1024 * 1024
"""Bytes of a SKILL.md that are read; the gate lets through far less."""
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
MAX_BODY_LINES = 500

_KNOWN = {
    "name", "description", "version", "license", "compatibility", "metadata", "allowed-tools",
    "when_to_use", "argument-hint", "disable-model-invocation", "user-invocable", "paths", "source",
}  # fmt: skip
_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}
_SPACES = " \t\n"


def read_skill(folder: str | os.PathLike[str]) -> Skill:
    """The skill in `folder`, or the one whose SKILL.md is named; `NotFound` if there is none."""
    path = os.fspath(folder)
    names: tuple[str, ...] = SKILL_FILE_NAMES
    is_file = os.path.lexists(path) and not os.path.isdir(path)
    if os.path.basename(path) in SKILL_FILE_NAMES and is_file:
        path, names = os.path.dirname(path) or ".", (os.path.basename(path),)
    for name in names:
        file = os.path.join(path, name)
        try:
            data, size = read_skill_bytes(file)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise Unwritable(f"cannot read {file}: {error.strerror}", "check its kind") from error
        from pathlib import Path

        real = Path(os.path.abspath(path))
        return parse_skill(data, real.name, folder=real, file=name, size=size)
    raise NotFound(f"no SKILL.md in {path}", "see what there is: tacit list")


def read_skill_bytes(path: str) -> tuple[bytes, int]:
    """The first bytes of the regular file at `path`, and its whole size."""
    data, status = read_with_status(path)
    return data, status.st_size


def read_with_status(path: str, flags: int = 0) -> tuple[bytes, os.stat_result]:
    """The first bytes of the regular file at `path`, and its status from before they were read.

    Pipes and devices are refused, without waiting for them: a folder may hold anything. `flags`:
    more to open it with.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        most = min(status.st_size, MAX_SKILL_READ)
        data = os.read(descriptor, most + 1)
        while len(data) < most and (part := os.read(descriptor, most + 1 - len(data))):
            data += part
        return data[:MAX_SKILL_READ], status
    finally:
        os.close(descriptor)


def skill_digest(data: bytes) -> str:
    """What tells one text of a SKILL.md from another; the library's index keeps it."""
    digest: str = _blake2b()(data[:MAX_SKILL_READ], digest_size=8).hexdigest()
    return digest


@cache
def _blake2b() -> Any:
    from hashlib import blake2b  # late: it loads OpenSSL

    return blake2b


def parse_skill(
    data: bytes | str,
    folder_name: str = "",
    *,
    folder: "Path | None" = None,
    file: str = "SKILL.md",
    size: int = 0,
    only_grades: bool = False,
) -> Skill:
    """The skill that `data` holds. `folder_name` stands in for a missing name.

    `only_grades`: of the problems that its fields have, no more than the kind and the severity.
    """
    text, problems = decode(data, size)
    parts = frontmatter.split(text)
    problems.extend(parts.problems)
    values: dict[str, Any] = {}
    if parts.head is not None:
        values, found = frontmatter.parse(parts.head, parts.head_line)
        problems.extend(found)
    fields = _Fields(values, parts, problems, only_grades)
    name = fields.name(folder_name, file)
    metadata = fields.mapping("metadata")
    description = fields.description()
    _check_body(parts.body, parts.body_line, problems)
    return Skill(
        name=name,
        description=description,
        folder=folder,
        file=file,
        aliases=(folder_name,) if folder_name and folder_name != name else (),
        version=fields.text("version") or _string(metadata.get("version", "")),
        license=fields.text("license"),
        compatibility=fields.text("compatibility", MAX_COMPATIBILITY),
        metadata=metadata,
        allowed_tools=fields.tools("allowed-tools"),
        when_to_use=fields.text("when_to_use"),
        argument_hint=fields.text("argument-hint"),
        disable_model_invocation=fields.flag("disable-model-invocation", default=False),
        user_invocable=fields.flag("user-invocable", default=True),
        paths=fields.strings("paths"),
        source=_string(values.get("source", "")) or _string(metadata.get("source", "")),
        extra={key: value for key, value in values.items() if key not in _KNOWN},
        head=parts.head or "",
        body=parts.body,
        body_line=parts.body_line,
        problems=tuple(sorted(problems)),
    )


def decode(data: bytes | str, size: int = 0) -> tuple[str, list[Problem]]:
    """`data` as text with plain line ends, and what was wrong with its bytes."""
    problems: list[Problem] = []
    if isinstance(data, str):
        text = data
    else:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            if size <= MAX_SKILL_READ:  # else our own cut may have split a character
                line = _line_of(data[: error.start].decode("latin-1"))
                problems.append(problem("not-utf8", line, byte=data[error.start]))
            text = data.decode("utf-8", "replace")
    if size > MAX_SKILL_READ:
        problems.append(problem("too-big", 1, n=size, most=MAX_SKILL_READ))
    if text.startswith("\ufeff"):
        problems.append(problem("bom", 1))
        text = text[1:]
    if "\x00" in text:
        problems.append(problem("nul", _line_of(text[: text.index("\x00")])))
        text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, problems


def _line_of(before: str) -> int:
    """The line that begins or goes on after `before`, whatever its line ends."""
    return before.count("\n") + before.count("\r") - before.count("\r\n") + 1


def _line_in(head: str, key: str) -> int:
    """The line of `head`, from 0, on which `key` stands; -1 where it stands nowhere."""
    if head.startswith(f"{key}:"):
        return 0
    found = re.search(rf"^{key}[^\S\n]*:", head, re.M)
    return head.count("\n", 0, found.start()) if found else -1


class _Fields:
    """The values of a head, each understood in its own way; complaints go to the key's line."""

    def __init__(
        self,
        values: dict[str, Any],
        parts: frontmatter.Split,
        problems: list[Problem],
        only_grades: bool,
    ) -> None:
        self._values = values
        self._head = parts.head
        self._line = parts.head_line
        self._problems = problems
        self._only_grades = only_grades

    def _complain(
        self, code: str, key: str, severity: Severity | None = None, /, near: str = "", **fill: Any
    ) -> None:
        """`near`: what a better name is made of."""
        if self._only_grades:
            grade = severity or skill.PROBLEM_RULES[code].severity
            self._problems.append(Problem(0, code, grade, "", ""))
            return
        if near:
            fill["name"] = skill.suggest_name(near)
        line = max(self._line + _line_in(self._head or "", key), 1)
        self._problems.append(problem(code, line, severity=severity, **fill))

    def name(self, folder_name: str, file: str) -> str:
        value = self._values.get("name")
        if isinstance(value, str) and value.strip():
            name = skill.normal_name(value)
        else:
            name = folder_name
            if self._head is not None:
                code = "bad-name" if "name" in self._values else "no-name"
                self._complain(code, "name", near=folder_name or "-")
        if len(name) > skill.MAX_NAME:
            self._complain("long-name", "name", near=name, n=len(name), most=skill.MAX_NAME)
        if wrong := skill.name_faults(name):
            self._complain("name-form", "name", near=name, is_=name, wrong=" and ".join(wrong))
        if folder_name and skill.normal_name(folder_name) != name:
            self._complain("name-differs", "name", name=name, folder=folder_name)
        if file != "SKILL.md":
            self._complain("file-case", "name", file=file)
        return name

    def description(self) -> str:
        value = self._values.get("description")
        text = _string(value).strip()
        if "description" not in self._values:
            if self._head is not None:
                self._complain("no-description", "description")
        elif not text or not isinstance(value, str):
            self._complain("bad-description", "description")
        elif len(value) > MAX_DESCRIPTION:
            self._complain("long-description", "description", n=len(value), most=MAX_DESCRIPTION)
        return text

    def text(self, key: str, most: int = 0) -> str:
        value = self._values.get(key, "")
        if value == "":  # as most are
            return ""
        if isinstance(value, dict | list):
            self._complain("not-text", key, key=key)
        text = _string(value).strip()
        if most and len(text) > most:
            self._complain(f"long-{key}", key, n=len(text), most=most)
        return text

    def mapping(self, key: str) -> dict[str, Any]:
        value = self._values.get(key, "")
        if isinstance(value, dict):
            return {str(k): v for k, v in value.items()}
        if value:
            self._complain("not-a-mapping", key, "warning", what=f"'{key}'")
        return {}

    def strings(self, key: str) -> tuple[str, ...]:
        value = self._values.get(key, "")
        if value == "":
            return ()
        # `*.{ts,tsx}` is one pattern.
        parts = value if isinstance(value, list) else _split(_string(value), ",", "{}")
        return tuple(text for part in parts if (text := _string(part).strip()))

    def tools(self, key: str) -> tuple[str, ...]:
        value = self._values.get(key, "")
        if value == "":
            return ()
        # `Bash(git add:*)` is one tool: cut short it would allow more than was written.
        return tuple(tool for tool in _split(_string(value), "," + _SPACES, "()") if tool)

    def flag(self, key: str, *, default: bool) -> bool:
        if key not in self._values:
            return default
        value = _string(self._values[key]).strip().lower()
        if value in _TRUE:
            return True
        if value in _FALSE:
            return False
        if value:
            self._complain("not-a-flag", key, key=key, is_=shorten(value, 40))
        return default


def _split(text: str, separators: str, brackets: str) -> list[str]:
    """`text` cut at `separators`, except where they stand between `brackets`."""
    opening, closing = brackets[0], brackets[1]
    parts, start, depth = [], 0, 0
    for at, c in enumerate(text):
        if c in separators and not depth:
            parts.append(text[start:at])
            start = at + 1
        elif c == opening:
            depth += 1
        elif c == closing and depth:
            depth -= 1
    return [*parts, text[start:]]


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(_string(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_string(part)}" for key, part in value.items())
    return "" if value is None else str(value)


def _check_body(body: str, line: int, problems: list[Problem]) -> None:
    lines = body.count("\n") + 1
    if not body or body.isspace():
        problems.append(problem("no-body", line))
    elif lines > MAX_BODY_LINES:
        problems.append(problem("long-body", line, n=lines, most=MAX_BODY_LINES))
