"""JSON with comments and trailing commas, read with the place of every part.

Settings files of agents are written by people. They are read here as the agents read them, and
`jsonc_edit.py` changes them without touching a byte that is not its own.
"""

import json
import re
from typing import Any

_DEEPEST = 200
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*"')
_ATOM = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class Malformed(Exception):
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
                raise Malformed("more text after the end of the value", text, at)

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
                    raise Malformed("a comment that does not end", text, at)
                at = end + 2
            else:
                return at

    def _value(self, at: int, depth: int) -> tuple[Node, int]:
        text = self.text
        if depth > _DEEPEST:
            raise Malformed(f"nested more than {_DEEPEST} deep", text, at)
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
                raise Malformed(f"a value was expected, not {what}", text, at)
            node.end = found.end()
            try:
                node.value = json.loads(found[0])
            except ValueError:  # a number with thousands of digits
                node.value = found[0]
        return node, node.end

    def _string(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self.text, at)
        if found is None:
            raise Malformed("a text that does not end on its line", self.text, at)
        try:
            return json.loads(found[0], strict=False), found.end()
        except ValueError as error:
            raise Malformed("a text with a wrong escape", self.text, at) from error

    def _object(self, at: int, depth: int) -> tuple[Node, int]:
        node, text = Node("object", at), self.text
        node.value = {}
        at = self._skip(at + 1)
        while text[at : at + 1] != "}":
            if text[at : at + 1] != '"':
                raise Malformed("a name in double quotes or '}' was expected", text, at)
            key, after = self._string(at)
            after = self._skip(after)
            if text[after : after + 1] != ":":
                raise Malformed("':' was expected", text, after)
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
            raise Malformed(f"',' or '{close}' was expected", self.text, at)
        return at


def parse(text: str) -> Any:
    """The value of `text`; an empty text is an empty object. Raises `Malformed`."""
    root = Document(text).root
    return {} if root is None else root.value


def salvage(text: str) -> dict[str, Any]:
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
    except Malformed:
        pass
    return found
