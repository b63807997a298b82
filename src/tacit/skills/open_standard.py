"""The open Agent Skills standard, to the letter: what must hold before a skill is published, and
for every skill that Tacit writes, as the standard's reference validator reads it.

`skill_file.py` is lenient so that any skill can be used; this is the other end. The frontmatter is
restricted YAML: no flow style, anchors, aliases or tags, and no key twice.
"""

import re
import unicodedata
from typing import Any

import yaml

from tacit.base.patterns import late_pattern
from tacit.skills import skill
from tacit.skills.frontmatter import yaml_loader
from tacit.skills.skill import Problem, problem
from tacit.skills.skill_file import MAX_COMPATIBILITY, MAX_DESCRIPTION

ALLOWED_KEYS = ("allowed-tools", "compatibility", "description", "license", "metadata", "name")
# Where the fast reader is more lenient than the standard's.
_TRICKY = late_pattern("[\t\x85\u2028\u2029\ufeff]|[|>][-+0-9]*#")
_LINE_ENDS = "\0\r\n\x85\u2028\u2029"
_DOCUMENT_END = late_pattern(r"^\.\.\.(?=\s|$)", re.M)
# A value without a key: the standard's reader takes the key for an empty text.
_NO_KEY = late_pattern(r"((?:^|[\x85\u2028\u2029])(?:- +| )*):(?=\s|$)", re.M)


def check_standard(text: str, folder_name: str) -> list[Problem]:
    """What keeps the SKILL.md with this `text` from being valid; no error when it is."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.startswith("---"):
        return [problem("no-frontmatter", 1)]
    parts = text.split("---", 2)
    if len(parts) < 3:
        return [problem("unclosed-frontmatter", 1)]
    head = parts[1]
    problems = []
    if not head.endswith("\n"):
        problems.append(problem("dashes-in-value", head.count("\n") + 1))
    try:
        values, lines = _mapping(head)
    except _NotRestrictedYaml as error:
        return [*problems, error.problem]
    return [*problems, *_check_fields(values, lines, folder_name)]


class _NotRestrictedYaml(Exception):
    """The head is not restricted YAML; carries the problem to report."""

    def __init__(self, code: str, line: int, **fill: Any) -> None:
        super().__init__(code)
        self.problem = problem(code, line, severity="error", **fill)


def _mapping(head: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The values of `head`, and the line of each top-level key. Raises `_NotRestrictedYaml`."""
    try:
        return _RestrictedYaml(head).mapping()
    except _NotRestrictedYaml:
        if not _NO_KEY.search(head):
            raise
    return _RestrictedYaml(_NO_KEY.sub(r"\1'':", head)).mapping()


class _StandardLoader(yaml.BaseLoader):
    """The slow reader, with the ways of the standard's: a tab is no space, except after an empty
    line; separators that are neither LF nor CR end a line, yet columns are counted on."""

    def forward(self, length: int = 1) -> None:
        reader: Any = self
        if reader.pointer + length + 1 >= len(reader.buffer):
            reader.update(length + 1)
        for _ in range(length):
            c = reader.buffer[reader.pointer]
            reader.pointer += 1
            reader.index += 1
            if c == "\n":
                reader.line += 1
                reader.column = 0
            elif c != "\ufeff":
                reader.column += 1

    def scan_to_next_token(self) -> None:
        reader: Any = self
        while True:
            while reader.peek() == " " or (reader.index == 0 and reader.peek() == "\ufeff"):
                reader.forward()
            is_comment = reader.peek() == "#"
            while is_comment and reader.peek() not in _LINE_ENDS:
                reader.forward()
            if not reader.scan_line_break():
                return
            if not reader.flow_level:
                reader.allow_simple_key = True
            if is_comment:
                while reader.scan_line_break():
                    pass
            elif reader.peek() == "\n":
                while reader.scan_line_break() or reader.peek() in ("\t", " "):
                    if reader.peek() in ("\t", " "):
                        reader.forward()


def _loader(head: str) -> Any:
    return _StandardLoader if _TRICKY.search(head) else yaml_loader()


class _RestrictedYaml:
    """Restricted YAML to strings, lists and dicts, refusing what the standard's reader refuses."""

    def __init__(self, head: str) -> None:
        self._head = head
        self._lines: dict[str, int] = {}

    def mapping(self) -> tuple[dict[str, Any], dict[str, int]]:
        """The values, and the line of each top-level key. Raises `_NotRestrictedYaml`."""
        try:
            self._events = yaml.parse(self._head, Loader=_loader(self._head))
            value = self._document()
        except yaml.MarkedYAMLError as error:
            mark: Any = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise _bad_yaml(line, error.problem or "cannot be parsed") from None
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise _bad_yaml(1, str(error).split("\n", 1)[0]) from None
        if not isinstance(value, dict):
            raise _NotRestrictedYaml("not-a-mapping", 1, what="the frontmatter")
        return value, self._lines

    def _document(self) -> Any:
        event = next(self._events)
        while isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
            event = next(self._events)
        value = None if isinstance(event, yaml.StreamEndEvent) else self._value(event, 0)
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                at: Any = event.start_mark
                raise _bad_yaml(at.line + 1, "it holds two documents")
        ends = list(_DOCUMENT_END.finditer(self._head))
        if len(ends) > 1:
            line = self._head.count("\n", 0, ends[1].start()) + 1
            raise _bad_yaml(line, "it holds two documents")
        return value

    def _value(self, event: Any, depth: int) -> Any:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _NotRestrictedYaml("yaml-anchor", line)
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise _NotRestrictedYaml("yaml-tag", line, tag=tag)
        if isinstance(event, yaml.ScalarEvent):
            if event.value == "=" and event.implicit[0]:
                return ""  # a type of YAML 1.1 that the standard's reader turns to nothing
            return event.value
        if event.flow_style:
            raise _NotRestrictedYaml("flow-style", line)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(depth)
        return self._dict(depth)

    def _sequence(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, depth + 1))
        return items

    def _dict(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = event.start_mark.line + 1
            if getattr(event, "value", "") == "<<" and event.implicit[0]:
                self._merge_key(next(self._events), line, depth)
                continue
            key = self._value(event, depth + 1)
            if not isinstance(key, str):
                raise _NotRestrictedYaml("bad-key", line)
            if key in values:
                raise _NotRestrictedYaml("repeated-key", line, key=key)
            if depth == 0:
                self._lines[key] = line
            values[key] = self._value(next(self._events), depth + 1)
        return values

    def _merge_key(self, event: Any, line: int, depth: int) -> None:
        """What `<<` brings is dropped by the standard's reader, but it must be mappings."""
        value = self._value(event, depth + 1)
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise _bad_yaml(line, "'<<' stands before something other than a mapping")


def _bad_yaml(line: int, why: str) -> _NotRestrictedYaml:
    return _NotRestrictedYaml("bad-yaml", line, why=why, fix="put the value in quotes")


def _check_fields(values: dict[str, Any], lines: dict[str, int], folder_name: str) -> list[Problem]:
    known = ", ".join(ALLOWED_KEYS)
    problems = [
        problem("unknown-key", lines[key], key=key, allowed=known)
        for key in values
        if key not in ALLOWED_KEYS
    ]
    if "name" in values:
        problems.extend(_check_name(values["name"], lines["name"], folder_name))
    else:
        problems.append(problem("no-name", 1, name=skill.suggest_name(folder_name)))
    if "description" in values:
        text, line = values["description"], lines["description"]
        if not isinstance(text, str) or not text.strip():
            problems.append(problem("bad-description", line))
        elif len(text) > MAX_DESCRIPTION:
            problems.append(problem("long-description", line, n=len(text), most=MAX_DESCRIPTION))
    else:
        problems.append(problem("no-description", 1))
    if "compatibility" in values:
        text, line = values["compatibility"], lines["compatibility"]
        if not isinstance(text, str):
            problems.append(problem("bad-compatibility", line))
        elif len(text) > MAX_COMPATIBILITY:
            most = MAX_COMPATIBILITY
            problems.append(problem("long-compatibility", line, n=len(text), most=most))
    return problems


def _check_name(value: Any, line: int, folder_name: str) -> list[Problem]:
    if not isinstance(value, str) or not value.strip():
        return [problem("bad-name", line, name=skill.suggest_name(folder_name))]
    name = skill.normal_name(value)
    near = skill.suggest_name(name)
    problems = [
        problem("name-form", line, severity="error", is_=name, wrong=wrong, name=near)
        for wrong in skill.name_faults(name)
    ]
    if len(name) > skill.MAX_NAME:
        most = skill.MAX_NAME
        problems.append(problem("long-name", line, n=len(name), most=most, name=near))
    if unicodedata.normalize("NFKC", folder_name) != name:
        found = problem("name-differs", line, severity="error", name=name, folder=folder_name)
        problems.append(found)
    return problems
