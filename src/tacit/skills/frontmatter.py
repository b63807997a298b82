"""The head of a SKILL.md: finding it, and getting values out of it however it is written.

Strict YAML first. Where that fails, each top-level key is parsed on its own, and a value that YAML
still refuses is taken as the text that stands there. Nothing raises; whatever had to be guessed is
reported as a problem. Scalars stay strings, so `version: 1.0` and `name: no` keep their spelling.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.base.patterns import late_pattern
from tacit.skills.skill import Problem, problem

if TYPE_CHECKING:  # its import takes as long as a start of Python
    import yaml

# Possessive, so that a long line without a colon is looked at once.
_KEY = late_pattern(r"^([^\s#:'\"\[\]{},&*!|>%@`-][^:\n]*+):(?=[ \t]|$)", re.M)
_BLOCK = late_pattern(r"^[|>][+-]?[1-9]?[+-]?[ \t]*$")

# Of a head as most are written: a key or an item of a list, and a value on the same line; or a key
# and, from the next line on, a block of text.
_PLAIN_LINES = late_pattern(
    r"""^(?:( *)(?:(-) +|([A-Za-z_][\w.-]{0,99}):(?: +|$))"""
    r"""("[^"\\\n]*"|'[^'\n]*'|[^\s\-?:,\[\]{}#&*!|>'"%@`].*)? *"""
    r"""|([A-Za-z_][\w.-]{0,99}): +\|(-?) *\n(( +)[^ \n].*(?:\n\8 *[^ \n].*)*))$""",
    re.A | re.M,
)
_NOT_PLAIN = late_pattern("[\0-\x09\x0b-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_QUOTES = ("'", '"')

MAX_HEAD = 64 * 1024
MAX_NODES = 20_000
MAX_DEPTH = 64
# Characters that aliases may add to a head, beyond doubling it.
_ALIAS_ALLOWANCE = 20_000
# No nesting without one of these for each level; with fewer, the depth needs no second look.
_OPENERS, _FEW_OPENERS = "[{-?:", 500


class Split(NamedTuple):
    """A file cut in two: the head's text, its first line, the body and its first line."""

    head: str | None
    head_line: int
    body: str
    body_line: int
    problems: list[Problem]


def split(text: str) -> Split:
    """Cut `text` (line ends already `\\n`, no BOM) at its fences."""
    problems: list[Problem] = []
    start = 0
    if not text.startswith("---"):
        stripped = text.lstrip()
        start = len(text) - len(stripped)
        if not stripped.startswith("---"):
            start = -1
    first_end = text.find("\n", start) if start >= 0 else -1
    first = text[start : first_end if first_end >= 0 else len(text)] if start >= 0 else ""
    if start < 0 or first.rstrip() != "---":
        problems.append(problem("no-frontmatter", 1))
        return Split(None, 1, text, 1, problems)
    line = text.count("\n", 0, start) + 1
    if start:
        problems.append(problem("space-before-frontmatter", 1))
    if first_end < 0:
        problems.append(problem("unclosed-frontmatter", line))
        return Split("", line + 1, "", line, problems)
    at, end = _closing_fence(text, first_end)
    if at < 0:
        problems.append(problem("unclosed-frontmatter", line))
        return _without_closing(text, first_end + 1, line + 1, problems)
    head = text[first_end + 1 : max(at, first_end + 1)]
    body_line = text.count("\n", 0, end) + (1 if end == len(text) else 2)
    return Split(head, line + 1, text[end + 1 :], body_line, problems)


def _closing_fence(text: str, at: int) -> tuple[int, int]:
    """From the end of the line before it to its own end: the next line of nothing but `---`."""
    while (at := text.find("\n---", at)) >= 0:
        end = text.find("\n", at + 4)
        end = end if end >= 0 else len(text)
        if not text[at + 4 : end].strip(" \t"):
            return at, end
        at = end
    return -1, -1


def _without_closing(text: str, start: int, line: int, problems: list[Problem]) -> Split:
    """The head ends where the keys do: at the first empty line or heading."""
    end = re.compile(r"^(?:[ \t]*$|#)", re.M).search(text, start)
    cut = end.start() if end else len(text)
    return Split(text[start:cut], line, text[cut:], line + text.count("\n", start, cut), problems)


def parse(head: str, line: int) -> tuple[dict[str, Any], list[Problem]]:
    """The values of `head`, whose first line is `line` of the file."""
    problems: list[Problem] = []
    if len(head) > MAX_HEAD:
        problems.append(problem("long-head", line, n=len(head), most=MAX_HEAD))
        end = head.rfind("\n", 0, MAX_HEAD)
        head = head[: end if end > 0 else MAX_HEAD]
    if (plain := _plain_values(head)) is not None:
        return plain, problems
    try:
        values = _load(head)
    except _YamlFault as bad:
        problems.append(_bad_yaml(bad, line))
        return _by_key(head), problems
    if isinstance(values, dict):
        problems.extend(_repeated(head, line))
        return {str(key): value for key, value in values.items()}, problems
    if values not in (None, ""):
        problems.append(problem("not-a-mapping", line, what="the frontmatter"))
    return {}, problems


class _YamlFault(Exception):
    """YAML that cannot be used, with the line (from 0) in the head."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def _load(text: str) -> Any:
    import yaml

    openers = sum(map(text.count, _OPENERS))
    try:
        if openers > _FEW_OPENERS and _is_deep(text):
            raise _YamlFault("it is nested too deep", 0)
        values = _values(text)
    except yaml.MarkedYAMLError as error:
        why = error.problem or error.context or "cannot be parsed"
        raise _YamlFault(why, _yaml_line(text, error)) from None
    except yaml.reader.ReaderError as error:
        at = text.find(chr(error.character)) if isinstance(error.character, int) else 0
        why = f"the character U+{ord(text[at]):04X} is not allowed"
        raise _YamlFault(why, text.count("\n", 0, at)) from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise _YamlFault(str(error).split("\n")[0] or type(error).__name__, 0) from None
    # Each level needs an opener, each value a character, and nothing is shared without an anchor.
    bounded = len(text) <= MAX_NODES and "&" not in text and openers <= MAX_DEPTH
    if not bounded and not _is_small(values, 2 * len(text) + _ALIAS_ALLOWANCE):
        raise _YamlFault("it unfolds to too many values (aliases inside aliases)", 0)
    return values


def _plain_values(text: str) -> dict[str, Any] | None:
    """The values of a head of the usual form, as YAML has them; None where it has another.

    Single lines of keys, none twice, with a list or a mapping of single lines below a key without a
    value, or with a block of text. It takes half of the time, and YAML, whose import takes as long
    as a start of Python, is not needed. Whatever has a meaning of its own in YAML is left to that.
    """
    lines = _plain_lines(text)
    if lines is None:
        return None
    values: dict[str, Any] = {}
    below, form = "", (0, False)  # the key without a value, and how what stands below it is written
    for space, item, key, value, is_empty in lines:
        if key and not space:
            if key in values:
                return None
            below = key if is_empty else ""
            values[key] = value
            continue
        if not below or (item and not value):
            return None
        if values[below] == "":
            form = (len(space), not item)
            values[below] = [] if item else {}
        if form != (len(space), not item):
            return None
        if item:
            values[below].append(value)
        else:
            values[below][key] = value
    return values


def _plain_lines(text: str) -> list[tuple[str, str, str, str, bool]] | None:
    """The space before each item or key, the item's sign, the key, the value, whether none stands
    there; None where a line has another form."""
    if len(text) > MAX_NODES or _NOT_PLAIN.search(text):
        return None
    found = _PLAIN_LINES.findall(text)
    blocks = [part[6].count("\n") + 1 for part in found if part[6]]
    if len(found) + sum(blocks) != text.count("\n") + 1:
        return None
    lines = []
    for part in found:
        space, item, key, value, title, chomped, block, indent = part
        is_empty = not value and not title
        if title:
            key, value = title, block[len(indent) :].replace("\n" + indent, "\n")
            # A block at the end of the text has no end of a line to keep.
            value += "" if chomped or part is found[-1] else "\n"
        elif value[:1] in _QUOTES:
            value = value[1:-1]
        elif value:
            value = value.rstrip(" ")
            if ": " in value or " #" in value or value[-1] == ":":
                return None
        lines.append((space, item, key, value, is_empty))
    return lines


def yaml_loader() -> Any:
    """The quickest loader there is that keeps every value a string."""
    import yaml

    return getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@cache
def _tree_loader() -> Any:
    """Reads YAML as far as its tree. Every value stays a string, so no tag is worked out."""

    class Nodes(yaml_loader()):  # type: ignore[misc]
        def resolve(self, *_: Any) -> str:
            return ""

        def descend_resolver(self, *_: Any) -> None:
            pass

        def ascend_resolver(self) -> None:
            pass

    return Nodes


def _values(text: str) -> Any:
    """Strings, lists and dicts: what the base loader makes, in two thirds of its time."""
    loader = _tree_loader()(text)
    try:
        tree = loader.get_single_node()
    finally:
        loader.dispose()
    return None if tree is None else _value(tree, {})


def _value(node: Any, made: dict[int, Any]) -> Any:
    """The value of `node`. One that aliases lead to again is made once, and shared."""
    content = node.value
    if isinstance(content, str):
        return content
    if id(node) in made:
        if made[id(node)] is None:
            raise _marked("found unconstructable recursive node", node)
        return made[id(node)]
    made[id(node)] = None
    value: Any
    if node.id == "sequence":
        value = [_value(part, made) for part in content]
    else:
        value = {}
        for key, part in content:
            if not isinstance(key.value, str):
                raise _marked("found unhashable key", key)
            value[key.value] = _value(part, made)
    made[id(node)] = value
    return value


def _marked(why: str, node: Any) -> "yaml.MarkedYAMLError":
    import yaml

    return yaml.MarkedYAMLError(problem=why, problem_mark=node.start_mark)


def _yaml_line(text: str, error: "yaml.MarkedYAMLError") -> int:
    """The line (from 0) of `text` where `error` lies. YAML also counts characters as line ends
    that no editor does, so its own line is not to be used."""
    mark: Any = error.problem_mark or error.context_mark
    return text.count("\n", 0, mark.index) if mark else 0


def _is_deep(text: str) -> bool:
    """Whether `text` nests deeper than any head should: the loader recurses on the C stack, and
    100,000 brackets would take the whole process down."""
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=yaml_loader()):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return False


def _is_small(value: Any, longest: int) -> bool:
    """Whether `value`, aliases unfolded, has a sane size: a few lines can stand for billions."""
    if isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return True
    left = MAX_NODES
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        left -= 1
        if isinstance(item, str):
            longest -= len(item)
        if left < 0 or longest < 0 or depth > MAX_DEPTH:
            return False
        if isinstance(item, dict):
            stack.extend((v, depth + 1) for v in item.values())
        elif isinstance(item, list):
            stack.extend((v, depth + 1) for v in item)
    return True


def _by_key(head: str) -> dict[str, Any]:
    """Each top-level key parsed alone; a value that YAML refuses is the text itself."""
    values: dict[str, Any] = {}
    found = list(_KEY.finditer(head))
    ends = [*(match.start() for match in found[1:]), len(head)]
    for match, end in zip(found, ends, strict=False):
        chunk = head[match.start() : end]
        key = match.group(1).strip("'\" ")
        for candidate in (chunk, chunk.replace("\t", "  ")):
            try:
                loaded = _load(candidate)
            except _YamlFault:
                continue
            if isinstance(loaded, dict) and len(loaded) == 1:
                values[key] = next(iter(loaded.values()))
                break
        else:
            values[key] = _raw(chunk[match.end() - match.start() :])
    return values


def _raw(text: str) -> str:
    """A value as it stands, without its quotes or block mark, its lines joined."""
    first, *rest = text.strip("\n").split("\n")
    first = first.strip()
    lines = [line.strip() for line in rest]
    if _BLOCK.match(first):
        return ("\n" if first.startswith("|") else " ").join(lines).strip()
    joined = " ".join([first, *lines]).strip()
    if len(joined) > 1 and joined[0] == joined[-1] and joined[0] in "'\"":
        joined = joined[1:-1]
    elif joined[:1] in ("'", '"') and joined.count(joined[0]) == 1:
        joined = joined[1:]
    return joined


def _repeated(head: str, line: int) -> list[Problem]:
    """A problem a key that stands more than once, at its second place."""
    times: dict[str, int] = {}
    problems = []
    last = 0
    for match in _KEY.finditer(head):
        key = match.group(1).rstrip()
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            line += head.count("\n", last, match.start())
            last = match.start()
            problems.append(problem("repeated-key", line, key=key))
    return problems


def _bad_yaml(bad: _YamlFault, line: int) -> Problem:
    advice = {
        "mapping values are not allowed": "put the value in quotes: it holds ': '",
        "cannot start any token": "put the value in quotes, or indent with spaces instead of tabs",
        "alias": "put the value in quotes: '*' and '&' have a meaning of their own at its start",
        "unhashable": "write the key as plain text",
        "too many values": "write the values out instead of repeating them by aliases",
        "too deep": "write the value out in a few levels",
        "is not allowed": "delete that character",
    }
    usual = "put the value in quotes, or write it as a block: 'key: |'"
    fix = next((text for word, text in advice.items() if word in bad.message), usual)
    return problem("bad-yaml", line + bad.line, why=bad.message, fix=fix)
