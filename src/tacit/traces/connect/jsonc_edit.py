"""Adding to a settings file and taking out again, with the user's comments and layout kept."""

import json
import re
from typing import Any

from tacit.traces.connect.jsonc import Document, Member, Node
from tacit.traces.connect.splices import Splice, apply

_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class WrongShape(Exception):
    """A part of the file is not what the addition needs: which part, and what it is."""

    def __init__(self, path: tuple[str, ...], found: str, wanted: str) -> None:
        where = ".".join(path) or "the whole file"
        super().__init__(f"{where} is {found}, {wanted} was expected")


def add(text: str, addition: dict[str, Any]) -> tuple[Splice, ...]:
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


def remove(text: str, path: tuple[str | int, ...]) -> str:
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
    return apply(text, [Splice(start, text[start:stop], "") for start, stop in cuts])
