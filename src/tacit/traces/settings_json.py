"""JSON settings files of agents: read with comments and trailing commas, edited in place.

The files are written by people. They are read as the agents read them, with the place of every
part, and changed without touching a byte that is not ours. A change is a list of splices, each of
which can be taken back to the byte; other editors use those too.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec


class Splice(msgspec.Struct, frozen=True):
    """At `offset` of the text as it was, `removed` gives way to `inserted`."""

    offset: int
    removed: str
    inserted: str


def apply_splices(text: str, splices: Iterable[Splice]) -> str:
    """`text` with every splice made. Offsets are those of `text`; equal ones keep their order."""
    parts, at = [], 0
    for splice in sorted(splices, key=lambda splice: splice.offset):
        assert text.startswith(splice.removed, splice.offset)
        parts += [text[at : splice.offset], splice.inserted]
        at = splice.offset + len(splice.removed)
    return "".join([*parts, text[at:]])


def inverse_splices(splices: Iterable[Splice]) -> tuple[Splice, ...]:
    """The splices that turn the result back into the text as it was."""
    found, shift = [], 0
    for splice in sorted(splices, key=lambda splice: splice.offset):
        found.append(Splice(splice.offset + shift, splice.inserted, splice.removed))
        shift += len(splice.inserted) - len(splice.removed)
    return tuple(found)


_DEEPEST = 200
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*"')
_ATOM = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class Malformed(Exception):
    """A settings file is not in its format: what is wrong, and in which line."""


class Unfit(Exception):
    """A settings file is valid, but cannot be edited safely: which part of it, and why."""


class BadJson(Malformed):
    """The text is not JSON, not even with comments: what was found, and where."""

    def __init__(self, reason: str, text: str, at: int) -> None:
        self.line = text.count("\n", 0, at) + 1
        self.column = at - (text.rfind("\n", 0, at) + 1) + 1
        self.reason = reason
        super().__init__(f"line {self.line}, column {self.column}: {reason}")


class Node:
    """A value and where it stands."""

    __slots__ = ("end", "kind", "members", "start", "value")

    def __init__(self, kind: str, start: int) -> None:
        self.kind = kind
        """`object`, `array` or `scalar`."""
        self.start = start
        self.end = start
        self.value: Any = None
        self.members: list[Member] = []

    def find(self, key: str | int) -> "Member | None":
        """The member of that name or number; of a name that comes twice the last, as it counts."""
        return next((member for member in reversed(self.members) if member.key == key), None)


class Member:
    """One entry of an object or an array."""

    __slots__ = ("comma", "key", "node", "start")

    def __init__(self, key: str | int, start: int, node: Node) -> None:
        self.key = key
        self.start = start
        """Where the key begins, or the value in an array."""
        self.node = node
        self.comma = -1
        """Where the comma after it stands, if there is one."""


class Document:
    """A whole text: its value, if it has one, and its comments."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_comments: list[tuple[int, int]] = []
        """Where comments stand that run to the end of their line."""
        at = self._skip(1 if text.startswith("\ufeff") else 0)
        self.root: Node | None = None
        if at < len(text):
            self.root, at = self._value(at, 0)
            at = self._skip(at)
            if at < len(text):
                raise BadJson("more text after the end of the value", text, at)

    def _skip(self, at: int) -> int:
        """Past white space and comments."""
        text = self.text
        while True:
            at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
            if text.startswith("//", at):
                end = text.find("\n", at)
                end = len(text) if end < 0 else end
                self.line_comments.append((at, end))
                at = end
            elif text.startswith("/*", at):
                end = text.find("*/", at + 2)
                if end < 0:
                    raise BadJson("a comment that does not end", text, at)
                at = end + 2
            else:
                return at

    def _value(self, at: int, depth: int) -> tuple[Node, int]:
        text = self.text
        if depth > _DEEPEST:
            raise BadJson(f"nested more than {_DEEPEST} deep", text, at)
        first = text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        node = Node("scalar", at)
        if first == '"':
            node.value, node.end = self._string(at)
        else:
            found = _ATOM.match(text, at)
            if found is None:
                what = f"'{first}'" if first else "the end of the file"
                raise BadJson(f"a value was expected, not {what}", text, at)
            node.end = found.end()
            try:
                node.value = json.loads(found[0])
            except ValueError:  # a number with thousands of digits
                node.value = found[0]
        return node, node.end

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self.text, at)
        if found is None:
            raise BadJson("a text that does not end on its line", self.text, at)
        try:
            return json.loads(found[0], strict=False), found.end()
        except ValueError as error:
            raise BadJson("a text with a wrong escape", self.text, at) from error

    def _object(self, at: int, depth: int) -> tuple[Node, int]:
        node, text = Node("object", at), self.text
        node.value = {}
        at = self._skip(at + 1)
        while text[at : at + 1] != "}":
            if text[at : at + 1] != '"':
                raise BadJson("a name in double quotes or '}' was expected", text, at)
            key, after = self._string(at)
            after = self._skip(after)
            if text[after : after + 1] != ":":
                raise BadJson("':' was expected", text, after)
            value, after = self._value(self._skip(after + 1), depth + 1)
            member = Member(key, at, value)
            node.members.append(member)
            node.value[key] = value.value
            at = self._comma(member, after, "}")
        node.end = at + 1
        return node, node.end

    def _array(self, at: int, depth: int) -> tuple[Node, int]:
        node, text = Node("array", at), self.text
        node.value = []
        at = self._skip(at + 1)
        while text[at : at + 1] != "]":
            value, after = self._value(at, depth + 1)
            member = Member(len(node.members), at, value)
            node.members.append(member)
            node.value.append(value.value)
            at = self._comma(member, after, "]")
        node.end = at + 1
        return node, node.end

    def _comma(self, member: Member, at: int, close: str) -> int:
        at = self._skip(at)
        if self.text[at : at + 1] == ",":
            member.comma = at
            return self._skip(at + 1)
        if self.text[at : at + 1] != close:
            raise BadJson(f"',' or '{close}' was expected", self.text, at)
        return at


def parse_jsonc(text: str) -> Any:
    """The value of `text`; an empty text is an empty object. Raises `Malformed`."""
    root = Document(text).root
    return {} if root is None else root.value


def salvage_members(text: str) -> dict[str, Any]:
    """The members at the top of an object that may be cut off or broken further on."""
    found: dict[str, Any] = {}
    reader = Document("")
    reader.text = text
    try:
        at = reader._skip(0)
        while text[at : at + 1] in ("{", ","):
            key, after = reader._string(reader._skip(at + 1))
            after = reader._skip(after)
            if text[after : after + 1] != ":":
                break
            node, after = reader._value(reader._skip(after + 1), 1)
            found[key] = node.value
            at = reader._skip(after)
    except BadJson:
        pass
    return found


_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class WrongShape(Unfit):
    """A part of the file is not what the addition needs: which part, and what it is."""

    def __init__(self, path: tuple[str, ...], found: str, wanted: str) -> None:
        where = ".".join(path) or "the whole file"
        super().__init__(f"{where} is {found}, {wanted} was expected")


def add_to_jsonc(text: str, addition: dict[str, Any]) -> tuple[Splice, ...]:
    """What to splice in so that `text` also says `addition`.

    Objects are joined by their keys, lists grow at their end, and a null gives way. Anything else
    that stands in the way raises `WrongShape`; a broken text raises `Malformed`.
    """
    document = Document(text)
    layout = _Layout(document)
    if document.root is None:
        return (Splice(len(text), "", layout.render(addition, "") + layout.newline),)
    splices: list[Splice] = []
    _join(layout, document.root, addition, (), splices)
    return tuple(splices)


def remove_from_jsonc(text: str, path: tuple[str | int, ...]) -> str:
    """`text` without the member at `path`. What the user wrote around it stays."""
    document = Document(text)
    holder = document.root
    for key in path[:-1]:
        found = holder.find(key) if holder else None
        holder = found.node if found else None
    member = holder.find(path[-1]) if holder else None
    if holder is None or member is None:
        raise KeyError(path)
    return _without(document, holder, member)


class _Layout:
    """How the file is laid out: its indentation, its line ends, whether it has any."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.text = document.text
        found = _INDENT.search(self.text)
        self.unit = found[1] if found else "  "
        self.newline = "\r\n" if "\r\n" in self.text else "\n"
        root = document.root
        inside = self.text[root.start : root.end] if root else ""
        self.lines = "\n" in inside or root is None or not root.members

    def render(self, value: Any, indent: str) -> str:
        if not self.lines:
            return json.dumps(value, ensure_ascii=False)
        text = json.dumps(value, ensure_ascii=False, indent=self.unit)
        return text.replace("\n", self.newline + indent)

    def indent_at(self, at: int) -> str:
        """The white space at the beginning of the line that `at` is on."""
        begin = self.text.rfind("\n", 0, at) + 1
        return re.match(r"\ufeff?([ \t]*)", self.text[begin:at])[1]  # type: ignore[index]

    def child_indent(self, node: Node) -> str:
        if node.members:
            begin = self.text.rfind("\n", 0, node.members[0].start) + 1
            before = self.text[begin : node.members[0].start]
            if not before.strip():
                return before
        return self.indent_at(node.start) + self.unit


def _join(
    layout: _Layout, node: Node, addition: Any, path: tuple[str, ...], splices: list[Splice]
) -> None:
    if node.kind == "scalar" and node.value is None and path:
        new = layout.render(addition, layout.indent_at(node.start))
        splices.append(Splice(node.start, layout.text[node.start : node.end], new))
        return
    wanted = "object" if isinstance(addition, dict) else "array"
    if node.kind != wanted:
        found = json.dumps(node.value) if node.kind == "scalar" else f"an {node.kind}"
        raise WrongShape(path, found, f"an {wanted}")
    if isinstance(addition, dict):
        new_keys = {}
        for key, value in addition.items():
            member = node.find(key)
            if member is None:
                new_keys[key] = value
            else:
                _join(layout, member.node, value, (*path, key), splices)
        if new_keys:
            _insert(layout, node, list(new_keys.items()), splices)
    elif addition:
        _insert(layout, node, [("", value) for value in addition], splices)


def _insert(
    layout: _Layout, node: Node, items: list[tuple[str, Any]], splices: list[Splice]
) -> None:
    """Put new members at the end of `node`."""
    text, close = layout.text, node.end - 1
    last = node.members[-1] if node.members else None
    after = node.start + 1 if last is None else max(last.node.end, last.comma + 1)
    gap = text[after:close]
    # In one line, unless the file, or a comment that needs its line end, says otherwise.
    spread = layout.lines and (last is None or "\n" in text[node.start : node.end])
    indent = layout.child_indent(node) if spread else ""
    begin = layout.newline + indent if spread else ("" if last is None else " ")
    rendered = [
        (f"{json.dumps(key, ensure_ascii=False)}: " if node.kind == "object" else "")
        + (layout.render(value, indent) if spread else json.dumps(value, ensure_ascii=False))
        for key, value in items
    ]
    body = begin + ("," + (begin or " ")).join(rendered)
    if last is None:
        if spread and "\n" not in gap[len(gap.rstrip()) :]:
            body += layout.newline + layout.indent_at(node.start)
        if not gap.strip():
            if "\n" in gap:
                splices.append(Splice(after, "", body))
            else:
                splices.append(Splice(after, gap, body))
            return
    elif last.comma < 0:
        splices.append(Splice(last.node.end, "", ","))
    else:
        body += ","
    splices.append(Splice(after + len(gap.rstrip()), "", body))


def _without(document: Document, holder: Node, member: Member) -> str:
    text = document.text
    index = holder.members.index(member)
    begin, end = member.start, member.node.end
    lead = len(text[:begin].rstrip(" \t\r\n"))
    cuts: list[tuple[int, int]] = []
    if member.comma >= 0:
        cuts.append((member.comma, member.comma + 1))
        if index == 0 and "\n" not in text[lead:begin]:
            lead = begin
            after = member.comma + 1
            cuts.append((after, after + len(text[after:]) - len(text[after:].lstrip(" \t"))))
    elif index > 0:
        comma = holder.members[index - 1].comma
        cuts.append((comma, comma + 1))
    elif not (text[holder.start + 1 : begin] + text[end : holder.end - 1]).strip():
        return text[: holder.start + 1] + text[holder.end - 1 :]
    behind = member.comma + 1 if member.comma >= 0 and not text[end : member.comma].strip() else end
    in_comment = any(start < lead <= stop for start, stop in document.line_comments)
    if in_comment and not re.match(r"[ \t]*\r?\n", text[behind:]):
        lead = begin  # what follows must not become part of the comment
    cuts.append((lead, end))
    return apply_splices(text, [Splice(start, text[start:stop], "") for start, stop in cuts])
