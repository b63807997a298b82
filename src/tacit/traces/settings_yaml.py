"""YAML settings files of agents: entries added and taken out again, line by line.

Only what can be done by whole lines in block style is done; every result is read back and compared
with what it should say. Anything odder is refused with `TooOdd`, and the user gets the lines to add
by hand. PyYAML tells where things stand; it never writes.
"""

import json
import re
from typing import TYPE_CHECKING, Any

from tacit.traces.settings_json import Malformed, Splice, Unfit, apply_splices

if TYPE_CHECKING:  # its import takes as long as a start of Python
    from yaml.nodes import Node

MARK = "# tacit-hook"
"""Stands behind entries of ours that do not name the program themselves."""

_NULLS = ("", "~", "null", "Null", "NULL")


class TooOdd(Unfit):
    """The file is not written in a way that can be edited safely."""


def parse(text: str) -> Any:
    """What `text` says; an empty file says `{}`."""
    import yaml

    try:
        value = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise Malformed(f"{line}{error.problem or error.context or 'cannot be read'}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Malformed(str(error).partition("\n")[0] or "nested too deep") from error
    return {} if value is None else value


def lines(value: Any) -> str:
    """`value` in block style, as it is added, or shown to be added by hand."""
    return "\n".join(_render(value, "")) + "\n"


def add(text: str, addition: dict[str, Any]) -> tuple[Splice, ...]:
    """What to splice in so that `text` also says `addition`: keys are joined, lists grow."""
    import yaml

    wanted = _joined(parse(text), addition, ())
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    editor = _Editor(text)
    if root is None or _is_null(root):
        editor.at_end(_render(addition, ""))
    else:
        editor.join(root, addition)
    _check(apply_splices(text, editor.splices), wanted)
    return tuple(editor.splices)


def remove(text: str, path: tuple[str | int, ...]) -> str:
    """`text` without the lines of the entry at `path`."""
    wanted = parse(text)
    holder = wanted
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    begin, end = _span(text, path)
    if end == len(text) and not text.endswith("\n"):
        begin = len(text[:begin].removesuffix("\n").removesuffix("\r"))
    after = text[:begin] + text[end:]
    _check(after, wanted)
    return after


def source(text: str, path: tuple[str | int, ...]) -> str:
    """The lines on which the entry at `path` stands."""
    begin, end = _span(text, path)
    return text[begin:end]


def _check(text: str, wanted: Any) -> None:
    try:
        found = parse(text)
    except Malformed as error:
        raise TooOdd("its layout does not allow a safe change") from error
    if _bare(found) != _bare(wanted):
        raise TooOdd("its layout does not allow a safe change")


def _bare(value: Any) -> Any:
    """`value` where a key without a value and an empty one are the same."""
    if isinstance(value, dict):
        return {key: _bare(part) for key, part in value.items()} or None
    return [_bare(part) for part in value] or None if isinstance(value, list) else value


def _joined(before: Any, addition: Any, path: tuple[str, ...]) -> Any:
    if before is None or before in ({}, []):
        return addition
    where = ".".join(path) or "the whole file"
    if isinstance(addition, dict):
        if not isinstance(before, dict):
            raise TooOdd(f"{where} is not a mapping")
        joined = {k: _joined(before.get(k), v, (*path, k)) for k, v in addition.items()}
        return {**before, **joined}
    if not isinstance(before, list):
        raise TooOdd(f"{where} is not a list")
    return [*before, *addition]


class _Editor:
    """Collects the lines to put in, from the top of the file down."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.splices: list[Splice] = []

    def join(self, node: "Node", addition: Any) -> None:
        """Add to a block; what is there already comes first, so that offsets stay in order."""
        from yaml.nodes import MappingNode, SequenceNode

        if isinstance(addition, list):
            if not isinstance(node, SequenceNode) or node.flow_style:
                raise TooOdd("a list is written in brackets")
            self.after(node, _render(addition, " " * node.start_mark.column))
            return
        if not isinstance(node, MappingNode) or node.flow_style:
            raise TooOdd("a mapping is written in braces")
        new = {}
        for key, value in addition.items():
            found = next(((k, v) for k, v in reversed(node.value) if k.value == key), None)
            if found is None:
                new[key] = value
            elif found[1].start_mark.index < found[0].end_mark.index:
                raise TooOdd(f"'{key}' is an alias")
            elif _is_null(found[1]):
                self.fill(*found, value)
            else:
                self.join(found[1], value)
        if new:
            indent = " " * node.start_mark.column
            if node.start_mark.column == 0:
                self.at_end(_render(new, ""))
            else:
                self.after(node, _render(new, indent))

    def fill(self, key: "Node", value: "Node", addition: Any) -> None:
        """Give a key without a value, or with an empty one, a block of its own."""
        start, end = value.start_mark.index, value.end_mark.index
        if end > start:
            begin = len(self.text[:start].rstrip(" "))
            self.splices.append(Splice(begin, self.text[begin:end], ""))
        self.put(_line_end(self.text, end), _render(addition, " " * (key.start_mark.column + 2)))

    def after(self, node: "Node", new: list[str]) -> None:
        self.put(_line_end(self.text, _last(self.text, node)), new)

    def at_end(self, new: list[str]) -> None:
        self.put(len(self.text), new)

    def put(self, at: int, new: list[str]) -> None:
        """`at` is the beginning of a line, or the end of a file whose last line is not ended."""
        block = self.newline.join(new)
        open_line = at > 0 and self.text[at - 1] != "\n"
        inserted = self.newline + block if open_line else block + self.newline
        self.splices.append(Splice(at, "", inserted))


def _is_null(node: "Node") -> bool:
    from yaml.nodes import MappingNode, ScalarNode, SequenceNode

    if isinstance(node, ScalarNode):
        return node.style is None and node.value in _NULLS
    return isinstance(node, MappingNode | SequenceNode) and bool(node.flow_style) and not node.value


def _last(text: str, node: "Node") -> int:
    """Where the last thing in a block ends; PyYAML's own mark lies behind comments and blanks."""
    from yaml.nodes import MappingNode, SequenceNode

    last = node
    while isinstance(last, MappingNode | SequenceNode) and not last.flow_style and last.value:
        last = last.value[-1][1] if isinstance(last, MappingNode) else last.value[-1]
    end = len(text[: last.end_mark.index].rstrip())
    if end < node.start_mark.index:
        raise TooOdd("it ends in an alias")
    return end


def _line_end(text: str, at: int) -> int:
    """The beginning of the next line, if nothing but a comment comes before it."""
    end = text.find("\n", at)
    rest = text[at:] if end < 0 else text[at:end]
    if rest.strip() and not re.match(r"\s+#|\s*\r?$", rest):
        raise TooOdd("more than one thing stands on a line")
    return len(text) if end < 0 else end + 1


def _span(text: str, path: tuple[str | int, ...]) -> tuple[int, int]:
    """The whole lines of the entry at `path`."""
    import yaml
    from yaml.nodes import MappingNode, SequenceNode

    node = yaml.compose(text, Loader=yaml.SafeLoader)
    start = 0
    for step in path:
        if node is None or getattr(node, "flow_style", False):
            raise TooOdd("it is written in braces")
        if isinstance(node, MappingNode):
            key, node = next((k, v) for k, v in reversed(node.value) if k.value == step)
            start, lead = key.start_mark.index, ""
        else:
            assert isinstance(node, SequenceNode)
            node = node.value[step]
            start, lead = node.start_mark.index, "-"
    begin = text.rfind("\n", 0, start) + 1
    if text[begin:start].strip() != lead or node is None:
        raise TooOdd("more than one thing stands on a line")
    return begin, _line_end(text, max(_last(text, node), start))


def _render(value: Any, indent: str) -> list[str]:
    if isinstance(value, dict):
        found = []
        for key, part in value.items():
            if isinstance(part, dict | list) and part:
                found += [f"{indent}{key}:", *_render(part, indent + "  ")]
            else:
                found.append(f"{indent}{key}: {json.dumps(part, ensure_ascii=False)}")
        return found
    found = []
    for item in value:
        if isinstance(item, dict):
            first, *rest = _render(item, indent + "  ")
            found += [f"{indent}- {first.strip()}", *rest]
        else:
            found.append(f"{indent}- {json.dumps(item, ensure_ascii=False)}  {MARK}")
    return found
