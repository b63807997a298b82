"""Whether what a repaired skill says holds: the tools, files and scripts it names exist.

Also runs commands that failed, before and after the repair, on a copy of the skill in the sandbox
without a network: the project can be read and not written, and what a command writes is gone
afterwards. Where there is no sandbox nothing is run. A problem goes back to the improver; what
holds, and what could not be checked, is reported.
"""

import ast
import asyncio
import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from tacit.agent import sandbox
from tacit.agent.command_limits import limits_of
from tacit.agent.off_limits import CommandRules
from tacit.agent.sandbox import CommandOutcome, Sandbox, run_sandboxed
from tacit.base import paths
from tacit.base.atomic_files import TemporaryFolder
from tacit.base.display import shorten, shorten_start
from tacit.base.errors import Refused
from tacit.base.setting_sections import AgentSettings
from tacit.changes.change import SKILL_FILE, File
from tacit.learn.background import child_process
from tacit.skills import frontmatter
from tacit.traces.tool_calls import TOOL_NAMES
from tacit.traces.trace import OWN_HOST, Trace

COMMAND_SECONDS = 20.0
MOST_COMMANDS = 3
"""Commands that are run again."""
_PARSERS = {"sh": ("bash", "bash -n"), "js": ("node", "node --check")}
_NO_PARSER = 64

TriedState = Literal["fixed", "still fails", "fails now", "does not fail here"]


class TriedCommand(msgspec.Struct, frozen=True):
    """One failed command, run before and after."""

    command: str
    state: TriedState
    output: str = ""
    """The end of its output after the repair."""


class Bench:
    """A place to run commands. Each gets a fresh copy, so none finds what another left."""

    def __init__(self, box: Sandbox, project: str, folder: str, name: str) -> None:
        """`folder` is where the skill really lies, `name` what its copy is called."""
        self._box = box
        self._folder = folder
        self._name = name
        self._project = os.path.realpath(project) if os.path.isdir(project) else ""

    def run(
        self, command: str, files: Mapping[str, File], seconds: float = COMMAND_SECONDS
    ) -> CommandOutcome:
        """Run `command` in the project with `files` for the skill; `$SKILL_DIR` is their folder.

        What it writes is gone afterwards.
        """
        with TemporaryFolder("bench") as temporary:
            lay_out(os.path.join(temporary, self._name), files)
            rules = CommandRules(
                project=self._project or temporary,
                temporary=temporary,
                read_only_project=bool(self._project),
                limits=limits_of(AgentSettings()),
            )
            place = self.place if self._box.name == "bubblewrap" else f"{temporary}/{self._name}"
            text = f"export SKILL_DIR={shlex.quote(place)}\n{command}"
            return asyncio.run(run_sandboxed(text, self._box, rules, seconds))

    @property
    def place(self) -> str:
        """The copy's folder, as a command sees it."""
        # Only in bubblewrap is /tmp a folder of its own; elsewhere the place differs each time.
        return f"/tmp/{self._name}" if self._box.name == "bubblewrap" else "$SKILL_DIR"  # noqa: S108

    def parse(self, kind: str, path: str, files: Mapping[str, File]) -> str | None:
        """What is wrong with the script; empty for nothing; None when nothing here can tell."""
        program, parser = _PARSERS[kind]
        there = f"command -v {program} >/dev/null || exit {_NO_PARSER}"
        done = self.run(f'{there}\ncd "$SKILL_DIR" && {parser} {shlex.quote(path)}', files)
        if done.timed_out or done.exit_code == _NO_PARSER:
            return None
        return shorten_start(done.output.strip(), 300) or "it does not" if done.exit_code else ""

    def compare(
        self, commands: Iterable[str], old: Mapping[str, File], new: Mapping[str, File]
    ) -> tuple[TriedCommand, ...]:
        """Run commands that failed on the old files and on the new ones."""
        found = []
        for command in list(dict.fromkeys(commands))[:MOST_COMMANDS]:
            moved = self.moved(command, old.keys() | new.keys())
            before, after = self.run(moved, old), self.run(moved, new)
            state: TriedState = "still fails" if after.failed else "fixed"
            if not before.failed:
                state = "fails now" if after.failed else "does not fail here"
            found.append(TriedCommand(command, state, shorten_start(after.output.strip(), 500)))
        return tuple(found)

    def moved(self, command: str, files: Iterable[str]) -> str:
        """`command` with the skill's own folder replaced by the copy's."""
        home = paths.user_home()
        spellings = {self._folder, os.path.realpath(self._folder)}
        for spelling in tuple(spellings):
            if spelling.startswith(f"{home}/"):
                spellings |= {f"{start}{spelling[len(home) :]}" for start in ("~", "$HOME")}
        for spelling in sorted(spellings, key=len, reverse=True):
            command = command.replace(spelling, self.place)
        for path in sorted(files, key=len, reverse=True):
            if "/" in path and not os.path.exists(os.path.join(self._project, path)):
                relative = rf"(?<![\w/.~$}}-])(?:\./)?{re.escape(path)}(?![\w/])"
                place = f"{self.place}/{path}".replace("\\", r"\\")
                command = re.sub(relative, place, command)
        return command


def lay_out(folder: str, files: Mapping[str, File]) -> None:
    """Write `files` into a new folder; links are left out."""
    os.makedirs(folder)
    for path, file in files.items():
        if file.kind == "link":
            continue
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb") as out:
            out.write(file.data)
        if file.kind == "program":
            os.chmod(target, 0o700)


def open_bench(project: str, folder: str, name: str) -> Bench | None:
    """A bench where commands see of people's files the project alone; None where that cannot be."""
    box = find_sandbox()
    project = child_process.readable_project(project)
    return Bench(box, project, folder, name) if box else None


def find_sandbox() -> Sandbox | None:
    """The sandbox of this machine, or None."""
    try:
        return sandbox.find_sandbox()
    except Refused:
        return None


_NAMES = frozenset(name for tool in TOOL_NAMES for name in (tool.ours, *tool.names))
# A tool is named in backticks, or with the word after it. Plain words such as `edit` or `list`
# are too often just that.
_QUOTED = re.compile(r"`([A-Za-z][A-Za-z0-9_]*)(?:\([^`\n]{0,80}\))?`")
_NAMED = re.compile(r"\b([A-Z][A-Za-z]+|[a-z]+_[a-z_]+)`?\s+tool\b")
_INSIDE = re.compile(
    r"(?<![\w/.~$}>-])(?:\./)?((?:scripts|references|assets|templates)/[\w./-]*\w)(?![*<{\w/])"
)
_LINKED = re.compile(r"\]\(([^)\s#?]+)[^)]*\)")
_SHELLS = re.compile(rb"#!.*\b(ba|da|z)?sh\b")
_PYTHONS = re.compile(rb"#!.*\bpython")


class KnownTools(msgspec.Struct, frozen=True):
    """The tools that there were in a run."""

    host: str
    names: frozenset[str]
    complete: bool
    """Whether these are all; else a name that is not among them may exist all the same."""


class CheckedSkill(msgspec.Struct, frozen=True):
    """The result of checking a repaired skill."""

    problems: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    """What could not be checked."""
    doubts: tuple[str, ...] = ()
    """Names that stood there before: tools that do not exist, or words that only look like one."""


def tools_in(trace: Trace) -> KnownTools:
    """Our own tools for our own chat; of another host, those that did not fail to exist."""
    called = {call.name for call in trace.each_call() if not call.failed}
    if trace.host != OWN_HOST:
        return KnownTools(trace.host, frozenset(called), complete=False)
    from tacit.agent.session_tools import TOOLS as OURS

    ours = {tool.name for tool in OURS}
    # What MCP servers add carries a name that is in no table; what others call ours is served, but
    # it is not what the model sees.
    return KnownTools(OWN_HOST, frozenset(ours | (called - _NAMES)), complete=True)


def check_repair(
    old: Mapping[str, File],
    new: Mapping[str, File],
    tools: KnownTools,
    project: str,
    bench: "Bench | None",
) -> CheckedSkill:
    """Look at `new`, which is to take the place of `old`."""
    found = _Findings()
    _check_head(old, new, found)
    before = {name for path, file in old.items() if path.endswith(".md") for name in _quoted(file)}
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

    def checked(self) -> CheckedSkill:
        parts = (self.problems, self.holds, self.open, self.doubts)
        return CheckedSkill(*(tuple(part) for part in parts))


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


def _check_tools(
    path: str, file: File, tools: KnownTools, before: set[str], found: _Findings
) -> None:
    named = {name for name in _NAMED.findall(_text(file)) if name in _NAMES}
    for name in sorted(named | _quoted(file)):
        there = ", ".join(sorted(tools.names))
        problem = f"{path} names the tool '{name}'; the tools are: {there}"
        if name in tools.names:
            found.holds[f"the tool {name} exists"] = None
        elif not tools.complete:
            found.open[f"whether {tools.host} has a tool {name}"] = None
        elif name in before and name not in named:
            found.doubts[problem] = None
        else:
            found.problems[problem] = None


def _quoted(file: File) -> set[str]:
    """Names of tools in backticks."""
    found = _QUOTED.findall(_text(file))
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
        return shorten(str(error), 200) or type(error).__name__
    return ""
