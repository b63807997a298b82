"""Whether what a repaired skill says is so: tools, files and scripts that it names exist and parse.

Three answers: a problem goes back to the improver, what holds is said, and so is what could not be
looked into. Nothing is run here but parsers, those of shells and of Node in the sandbox.
"""

import ast
import json
import os
import re
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from tacit.changes.change import SKILL_FILE
from tacit.changes.files import File
from tacit.skills import frontmatter
from tacit.traces.kinds import TOOLS
from tacit.traces.trace import Trace

if TYPE_CHECKING:
    from tacit.learn.improve.trying import Bench

OWN_HOST = "tacit"
_NAMES = frozenset(name for tool in TOOLS for name in (tool.ours, *tool.names))
# A tool is named in code marks, or with the word after it. Plain words such as `edit` or `list`
# are too often just that.
_MARKED = re.compile(r"`([A-Za-z][A-Za-z0-9_]*)(?:\([^`\n]{0,80}\))?`")
_SAID = re.compile(r"\b([A-Z][A-Za-z]+|[a-z]+_[a-z_]+)`?\s+tool\b")
_INSIDE = re.compile(
    r"(?<![\w/.~$}>-])(?:\./)?((?:scripts|references|assets|templates)/[\w./-]*\w)(?![*<{\w/])"
)
_LINKED = re.compile(r"\]\(([^)\s#?]+)[^)]*\)")
_SHELLS = re.compile(rb"#!.*\b(ba|da|z)?sh\b")
_PYTHONS = re.compile(rb"#!.*\bpython")


class Tools(msgspec.Struct, frozen=True):
    """The tools that there were in a run."""

    host: str
    names: frozenset[str]
    complete: bool
    """Whether these are all; else a name that is not among them may exist all the same."""


class Checked(msgspec.Struct, frozen=True):
    """What the look at a repaired skill gave."""

    problems: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    """What could not be looked into."""
    doubts: tuple[str, ...] = ()
    """Names that stood there before: tools that do not exist, or words that only look like one."""


def tools_of(trace: Trace) -> Tools:
    """Our own tools for our own chat; of another host, those that did not fail to exist."""
    called = {call.name for call in trace.each_call() if not call.failed}
    if trace.host != OWN_HOST:
        return Tools(trace.host, frozenset(called), complete=False)
    from tacit.agent.tools import TOOLS as OURS

    ours = {tool.name for tool in OURS}
    # What MCP servers add carries a name that is in no table; what others call ours is served, but
    # it is not what the model sees.
    return Tools(OWN_HOST, frozenset(ours | (called - _NAMES)), complete=True)


def check(
    old: Mapping[str, File],
    new: Mapping[str, File],
    tools: Tools,
    project: str,
    bench: "Bench | None",
) -> Checked:
    """Look at `new`, which is to take the place of `old`."""
    found = _Findings()
    _check_head(old, new, found)
    before = {name for path, file in old.items() if path.endswith(".md") for name in _marked(file)}
    for path, file in sorted(new.items()):
        if path.endswith(".md"):
            _check_tools(path, file, tools, before, found)
            _check_files(path, _text(file), new, project, found)
        else:
            _check_script(path, file, new, bench, found)
    return found.checked()


class _Findings:
    def __init__(self) -> None:
        self.problems: dict[str, None] = {}
        self.holds: dict[str, None] = {}
        self.open: dict[str, None] = {}
        self.doubts: dict[str, None] = {}

    def checked(self) -> Checked:
        parts = (self.problems, self.holds, self.open, self.doubts)
        return Checked(*(tuple(part) for part in parts))


def _check_head(old: Mapping[str, File], new: Mapping[str, File], found: _Findings) -> None:
    """A repair keeps what the skill is for, and what else its frontmatter says."""
    if SKILL_FILE not in new:
        found.problems["SKILL.md is missing"] = None
        return
    before, after = (_head(files.get(SKILL_FILE)) for files in (old, new))
    if before != after:
        found.problems["the frontmatter of SKILL.md differs; put it back as it was"] = None


def _head(file: File | None) -> str | None:
    if file is None:
        return None
    text = _text(file).lstrip("\ufeff").replace("\r\n", "\n")
    return frontmatter.split(text).head


def _check_tools(path: str, file: File, tools: Tools, before: set[str], found: _Findings) -> None:
    said = {name for name in _SAID.findall(_text(file)) if name in _NAMES}
    for name in sorted(said | _marked(file)):
        there = ", ".join(sorted(tools.names))
        told = f"{path} names the tool '{name}'; the tools are: {there}"
        if name in tools.names:
            found.holds[f"the tool {name} exists"] = None
        elif not tools.complete:
            found.open[f"whether {tools.host} has a tool {name}"] = None
        elif name in before and name not in said:
            found.doubts[told] = None
        else:
            found.problems[told] = None


def _marked(file: File) -> set[str]:
    """Names of tools in code marks."""
    found = _MARKED.findall(_text(file))
    return {name for name in found if name in _NAMES and (not name.islower() or "_" in name)}


def _text(file: File) -> str:
    return file.data.decode("utf-8", "replace")


def _check_files(
    path: str, text: str, new: Mapping[str, File], project: str, found: _Findings
) -> None:
    here = os.path.dirname(path)
    named = {name: name for name in _INSIDE.findall(text)}
    for target in _LINKED.findall(text):
        if not re.match(r"[a-z][a-z0-9+.-]*:|[/~#<{$]", target) and "." in target:
            named[target] = os.path.normpath(os.path.join(here, target))
    for name, inside in sorted(named.items()):
        if inside in new or any(other.startswith(f"{inside}/") for other in new):
            found.holds[f"{name} exists"] = None
        elif project and os.path.exists(os.path.join(project, name)):
            found.holds[f"{name} exists in the project"] = None
        else:
            found.problems[f"{path} names '{name}', which does not exist"] = None


def _check_script(
    path: str, file: File, new: Mapping[str, File], bench: "Bench | None", found: _Findings
) -> None:
    kind = _kind(path, file)
    if not kind:
        return
    if kind in ("sh", "js"):
        wrong = bench.parse(kind, path, new) if bench is not None else None
    else:
        wrong = _parse(kind, file.data)
    if wrong is None:
        found.open[f"whether {path} parses"] = None
    elif wrong:
        found.problems[f"{path} does not parse: {wrong}"] = None
    else:
        found.holds[f"{path} parses"] = None


def _kind(path: str, file: File) -> str:
    """How a file is to be parsed; empty when it is none that is run or read by a program."""
    ending = os.path.splitext(path)[1].lower()
    known = {
        ".py": "py", ".sh": "sh", ".bash": "sh", ".js": "js", ".mjs": "js", ".cjs": "js",
        ".json": "json", ".toml": "toml",
    }  # fmt: skip
    if ending in known:
        return known[ending]
    if _PYTHONS.match(file.data):
        return "py"
    if _SHELLS.match(file.data):
        return "sh"
    return "other" if file.kind == "program" else ""


def _parse(kind: str, data: bytes) -> str | None:
    """What is wrong with it, nothing, or None when there is no parser here."""
    try:
        if kind == "py":
            ast.parse(data)
        elif kind == "json":
            json.loads(data)
        elif kind == "toml":
            tomllib.loads(data.decode("utf-8"))
        else:
            return None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return str(error)[:200] or type(error).__name__
    return ""
