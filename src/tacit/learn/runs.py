"""What a session ran: each purpose of each call, with how it ended and what then worked.

A run is one purpose of one call. Counting needs of it the line that says what went wrong, the rules
that a linter or a hook named, and the form that then worked. How often runs work is `rates.py`'s,
what failures tell about how a program is called is `troubles.py`'s.
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.secrets import clean
from tacit.learn.lint_rules import HOOKED, failed_steps, rules_named, stopped_by_hook
from tacit.learn.shells import SHELL_TAKES, STUB, not_taken
from tacit.traces.command_line import SimpleCommand, joined_commands
from tacit.traces.command_purposes import (
    WorkClass,
    bare_interpreter,
    is_syntax_check,
    manner,
    plain_form,
    program_of,
    purpose_of,
    work_class,
)
from tacit.traces.observations import core, paths_of, recoveries
from tacit.traces.outcomes import (
    CALLED_WRONGLY,
    SANDBOXED,
    Outcome,
    absent_program,
    call_outcome,
    complaint,
    purpose_outcomes,
    uncoloured,
)
from tacit.traces.tool_calls import command_of, our_tool
from tacit.traces.trace import REFUSED, ToolCall, Trace

_MOST_LETTERS = 2000
"""A longer command is a program that was typed in, not a way to run one."""


class Run(msgspec.Struct, frozen=True):
    """One purpose of one shell call; none where an interpreter is only given lines to run, which
    shows whether it is there."""

    session: str
    turn: int
    purpose: str
    form: str
    """The simple command that serves the purpose, without pipes and folders around it."""
    outcome: Outcome
    call: ToolCall
    project: str = ""
    manner: tuple[str, ...] = ()
    """How it was called, beside what it is for; see `command_purposes.manner`."""
    folder: str | None = ""
    """Where it was run, as seen from the project; None where that is not known."""

    @property
    def work(self) -> WorkClass | None:
        return work_class(self.purpose)


class CountedRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run with what counting needs of its call, which may be long."""

    session: str
    turn: int
    purpose: str
    form: str
    outcome: Outcome
    tool: bool = False
    """Whether it is a call of a tool rather than a command."""
    reply: str = ""
    """What the user typed in answering the call."""
    error: str = ""
    """The line that says what went wrong, where it failed."""
    hooked: Literal["", "checks", "itself"] = ""
    """Whether a hook stopped it: because checks failed that it ran, or by its own complaint."""
    rules: tuple[tuple[str, str], ...] = ()
    """The rules that a linter named, each with what it said."""
    instead: tuple[str, ...] = ()
    """The commands for the same end that then worked."""
    by_form: bool = False
    """Whether another form of the call then worked with nothing changed in between."""
    manner: tuple[str, ...] = ()
    folder: str | None = ""
    steps: tuple[str, ...] = ()
    """What failed of that which a hook ran."""
    after: tuple[str, ...] = ()
    """The files that were changed since the session last did it."""

    @property
    def work(self) -> WorkClass | None:
        return work_class(self.purpose)


def runs_by_call(trace: Trace) -> list[tuple[ToolCall, list[Run]]]:
    """Every call of a session, with what it ran: commands by their purpose, other tools by their
    name."""
    found = []
    folder: str | None = ""
    for turn in trace.turns:
        for call in turn.calls:
            runs = list(runs_of_call(call, trace.id, turn.number, trace.project, folder))
            found.append((call, runs))
            if trace.host in _KEEPS_FOLDER and call.kind == "shell":
                folder = _left_in(call, trace.project, folder)
    return found


def lasting_runs(
    trace: Trace, by_call: Iterable[tuple[ToolCall, list[Run]]] | None = None
) -> list[Run]:
    """The runs of a session, in order, that are not about a file which the agent wrote itself in
    it, or of a program that it built: nobody has that."""
    written = _files_written(trace)
    shell = (command_of(call) for call in trace.each_call() if call.kind == "shell")
    built = {os.path.basename(path) for command in shell for path in _BUILT.findall(command)}
    return [
        run
        for _, runs in (runs_by_call(trace) if by_call is None else by_call)
        for run in runs
        if run.purpose not in written
        and program_of(run.form.split()) not in built
        and not any(os.path.basename(word) in written for word in run.form.split())
    ]


def counted_runs(trace: Trace, runs: Iterable[Run]) -> tuple[CountedRun, ...]:
    """The `runs` of a session with what counting over several needs of their calls."""
    mends = {id(mend.failed): mend for mend in recoveries(trace)}
    runs = list(runs)
    built = _mended_by_build(runs)
    stood_in, changed = _stand_ins(trace), _changed_before(trace, runs)

    def counted(run: Run) -> CountedRun:
        mend, shell = mends.get(id(run.call)), run.call.kind == "shell"
        hooked = stopped_by_hook(run.purpose, run.call) if run.outcome.failed else ""
        return CountedRun(
            run.session, run.turn, run.purpose, run.form, run.outcome, not shell, run.call.reply,
            _error(run) if run.outcome.state == "failed" else "",
            hooked,
            tuple(rules_named("lint" if hooked else run.work, run.call.result)),
            built.get(id(run))
            or ((stood_in.get(id(run.call), ()) if not run.purpose else ())
            or (tuple(forms_for(run, mend.succeeded)) if mend is not None and shell else ())),
            mend is not None and not mend.edited,
            run.manner, run.folder,
            failed_steps(run.call.result) if hooked else (),
            changed.get(id(run), ()) if run.work is None or is_syntax_check(run.purpose) else (),
        )  # fmt: skip

    return tuple(map(counted, runs))


def _changed_before(trace: Trace, runs: Iterable[Run]) -> dict[int, tuple[str, ...]]:
    """For runs, by identity: the files of the project that were changed since the same was done."""
    by_call: dict[int, list[Run]] = {}
    for run in runs:
        by_call.setdefault(id(run.call), []).append(run)
    found: dict[int, tuple[str, ...]] = {}
    edits: list[str] = []
    seen: dict[tuple[str, str], int] = {}
    for call in trace.each_call():
        if call.kind in ("write", "edit") and call.finished and not call.failed and trace.project:
            paths = (path_within(path, trace.project) for path in paths_of(call))
            edits += [path for path in paths if path]
        for run in by_call.get(id(call), ()):
            since = dict.fromkeys(edits[seen.get((run.purpose, run.form), 0) :])
            found[id(run)] = tuple(since)[-_MOST_CHANGED:]
            seen[run.purpose, run.form] = len(edits)
    return found


_MOST_CHANGED = 12
_SOON = 3  # calls within which what was asked for is tried by another program


def _stand_ins(trace: Trace) -> dict[int, tuple[str]]:
    """For calls, by identity, of a program that is not there: the other that was then given the
    same, and worked."""
    found: dict[int, tuple[str]] = {}
    shell = [call for call in trace.each_call() if call.kind == "shell"]
    for at, call in enumerate(shell):
        if not (gone := absent_program(uncoloured(call.result))):
            continue
        wanted = _given(call, lambda program: program == gone)
        for later in shell[at + 1 : at + 1 + _SOON]:
            if call_outcome(later).state == "worked":
                other = _given(later, lambda program: program != gone)
                if shared := wanted.keys() & other.keys():
                    found[id(call)] = (f"{other[min(shared)]} …",)
                    break
    return found


def _given(call: ToolCall, wanted: Callable[[str], bool]) -> dict[str, str]:
    """The files and the like that the programs of a call are given, each with its program."""
    parts = joined_commands(command_of(call))
    named = ((program_of(part.words), part.words[1:]) for part in parts)
    return {
        word: program
        for program, words in named
        for word in words
        if re.match(r"[\w./]", program) and wanted(program) and _TARGET.search(word[1:])
    }


def ended_well(parts: Sequence[SimpleCommand]) -> list[SimpleCommand]:
    """The parts of a command line that worked if the whole did: none whose end is hidden by another
    that follows whatever came of it, or that runs only where another failed."""
    befores = [None, *parts]
    return [
        part
        for part, before, last in zip(parts, befores, range(len(parts), 0, -1), strict=False)
        if (last == 1 or part.joined not in ("||", ";", "\n"))
        and not (before and before.joined == "||")
    ]


_LACKS = re.compile(
    r"not found in module|not provide an export|cannot find (?:module|package)|no module named"
    r"|err_module_not_found|node_modules missing|did not initialize|terraform init|ECONNREFUSED"
    r"|connection refused|relation \S+ does not exist|no such table|command not found|: not found$"
    r"|no such file or directory.*(?:/dist/|/build/|node_modules)|could not find gem|unchecked dep",
    re.IGNORECASE | re.MULTILINE,
)
"""How it shows that something has to be built, installed, generated or started first."""
_BRINGS = re.compile(
    r"(?!(?:git|gh|ssh|brew|dnf|apt\S*|yum|pacman|apk) ).*\b(?:build|install|ci|sync|generate|gen"
    r"|codegen|init|up|migrate|deps\.get|restore|bootstrap|setup|start)\b"
)
_ELSEWHERE = ("", "git", "gh", "curl", "ssh")


def _mended_by_build(runs: Iterable[Run]) -> dict[int, tuple[str]]:
    """Runs, by identity, that failed for what was not built, installed or started yet and worked
    once it was, with the two commands one after the other."""
    found: dict[int, tuple[str]] = {}
    stale: dict[str, Run] = {}
    build: Run | None = None
    for run in runs:
        worked, words = run.outcome.state == "worked", run.form.split()
        said = f"{run.call.error}\n{run.call.result[:_MOST_LETTERS]}"
        if run.outcome.state == "failed" and run.purpose.split(" ")[0] not in _ELSEWHERE:
            stale |= {run.purpose: run} if _LACKS.search(said) else {}
            build = build if run.purpose not in stale else None
        elif worked and stale and run.purpose not in stale and _BRINGS.match(" ".join(words[:3])):
            build = run
        elif worked and build and run.purpose in stale:
            failed = stale.pop(run.purpose)
            if failed.form.split()[0] != words[0]:
                continue  # it was called otherwise
            own = " ".join(
                words[: next((n for n in range(1, 4) if purpose_of(words[:n]) == run.purpose), 1)]
            )
            found[id(failed)] = (clean(f"{build.form} && {own} …"),)
    return found


def runs_of_call(
    call: ToolCall, session: str, turn: int = 0, project: str = "", folder: str | None = ""
) -> Iterator[Run]:
    """The purposes of one call, each with its outcome; `folder` is where the shell was."""
    if is_own_tool(call):
        given = ", ".join(shorten(one_line(key), 40) for key in call.arguments)
        form = f"{call.name} ({given})" if given else call.name
        yield Run(session, turn, call.name, shorten(form, 200), call_outcome(call), call, project)
    if call.kind != "shell":
        return
    parts = joined_commands(command := command_of(call))
    refused = [
        Run(session, turn, "", name, Outcome("failed", "output", line), call, project)
        for name, line in not_taken(call, folder)
    ]
    yield from refused
    if not refused:
        yield from _bare_runs(call, parts, session, turn, project)
    if len(command) > _MOST_LETTERS:
        return
    asked = (ESCALATED,) if _is_escalated(call) else ()
    folders = _folders(call, parts, project, folder)
    places = {purpose_of(part.words): at for at, part in enumerate(parts)}
    for purpose, outcome in purpose_outcomes(call):
        if refused and outcome.failed:
            continue  # it was not the program that failed
        at = places.get(purpose)
        words = (purpose,) if at is None else parts[at].words
        form = shorten(one_line(plain_form(words, project)), 200)
        if at is None:
            yield Run(session, turn, purpose, form, outcome, call, project, asked)
        else:
            how, place = (*manner(parts, at, project), *asked), folders[at]
            yield Run(session, turn, purpose, form, outcome, call, project, how, place)


ESCALATED = "escalated permissions"
"""The manner of a call that was run outside of the host's sandbox."""


def _is_escalated(call: ToolCall) -> bool:
    given = call.arguments
    asked = given.get("sandbox_permissions") == "require_escalated"
    return asked or given.get("with_escalated_permissions") is True


def _bare_runs(
    call: ToolCall, parts: Sequence[SimpleCommand], session: str, turn: int, project: str
) -> Iterator[Run]:
    """The interpreters that a call typed a program into, where they ran or are not there, and
    what it asked only for its version, where that is not there."""
    gone = absent_program(uncoloured(call.result))
    found = [bare_interpreter(part.words) for part in parts]
    if call.failed and STUB.search(call.result):
        gone = next((p.words[0] for p in parts if re.match(r"python|py$", p.words[0])), gone)
        found = [gone]
    elif not gone:
        found = [bare_interpreter(part.words) for part in ended_well(parts)]
    found += [gone for part in parts if part.words[0] == gone and not purpose_of(part.words)]
    for name in dict.fromkeys(filter(None, found)):
        outcome = Outcome("failed", "output") if gone == name else call_outcome(call)
        if gone in ("", name) and (gone or outcome.state == "worked"):
            yield Run(session, turn, "", name, outcome, call, project)


_KEEPS_FOLDER = {"claude-code"}
"""Agents whose shell stays where a command went."""
_GOES = {"cd", "pushd", "Set-Location"}
_SAYS = {"echo", "printf", "sleep", "pwd", "ls", "date", "Write-Host"}
_IN_WORKTREE = re.compile(r"^(?:.*/)?worktrees/[^/]+(?:/|$)")


def _folders(
    call: ToolCall, parts: Sequence[SimpleCommand], project: str, folder: str | None
) -> list[str | None]:
    """Where each part of a command line runs."""
    if isinstance(given := call.arguments.get("workdir"), str):
        folder = _gone_to(given, project, "")
    found = []
    for part in parts:
        if part.words[0] in _GOES:
            folder = _gone_to(part.words[1] if len(part.words) > 1 else "~", project, folder)
        found.append(folder)
    return found


def _left_in(call: ToolCall, project: str, folder: str | None) -> str | None:
    """Where a shell is after a call."""
    if call.error == REFUSED or "Shell cwd was reset" in call.result[-300:]:
        return folder if call.error == REFUSED else ""
    command = command_of(call)
    parts = joined_commands(command) if "(" not in command and "cd " in command else []
    return [folder, *_folders(call, parts, project, folder)][-1]


def _gone_to(target: str, project: str, folder: str | None) -> str | None:
    """The folder that `target` leads to from `folder`, both as seen from the project; None where
    that lies outside, or nobody can tell."""
    drive = project[1:2] == ":"

    def plain(path: str) -> str:
        path = path.replace("\\", "/") if drive else path
        return re.sub(r"^/([A-Za-z])/", r"\1:/", path).casefold() if drive else path

    path, base = plain(target), plain(project).rstrip("/")
    if path == base or (base and path.startswith(base + "/")):
        path = plain(target)[len(base) + 1 :]
    elif folder is None or re.match(r"[/~$`-]|[A-Za-z]:", path):
        return None
    else:
        path = posixpath.join(folder, path)
    path = _IN_WORKTREE.sub("", posixpath.normpath(path))
    return None if path.startswith("..") else "" if path == "." else path


class Done(msgspec.Struct, frozen=True):
    """One thing that was done and worked: its key, and the form it had."""

    key: str
    form: str
    tool: bool = False


def done_by(call: ToolCall, runs: Iterable[Run], project: str) -> Iterator[Done]:
    """What a call did and that worked; `runs` are its purposes."""
    if call.error == REFUSED or not call.finished:
        return
    if call.kind in ("write", "edit") and not call.failed:
        for path in paths_of(call):
            if project and (name := path_within(path, project)):
                yield Done(f"edit {name}", name)
    for run in runs:
        if run.outcome.state == "worked" and run.purpose:
            yield Done(run.purpose, run.form, call.kind == "other")


def path_within(path: str, project: str) -> str:
    """`path` as seen from the project, on whatever system that was; empty where it lies outside."""
    if "\\" in project:
        path, project = path.replace("\\", "/"), project.replace("\\", "/")
    base = project.rstrip("/") + "/"
    if path.startswith(base):
        path = path[len(base) :]
    path = posixpath.normpath(path)
    return "" if re.match(r"/|[A-Za-z]:|\.\.(?:/|$)", path) else path


# Tools by which a host works its own agent, rather than the user's things.
_OF_THE_HOST = re.compile(
    r"^[A-Z][A-Za-z]*$|(?i:plan_?mode|^think|topic|subagent|(?:^|_)agent$|spawn|delegate|todo|^(?:submit|finish|done|exit|exec$|wait$|respond))"
)


def is_own_tool(call: ToolCall) -> bool:
    """Whether a call is of a tool that the user gave the agent, e.g. by an MCP server."""
    if call.kind != "other" or our_tool(call.name) is not None:
        return False
    return not _OF_THE_HOST.search(call.name)


_BUILT = re.compile(r"\s-o[ =]?[\"']?([\w./-]+)")
_REDIRECTED = re.compile(r">\s*[\"']?([\w./-]+\.\w+)")


def _files_written(trace: Trace) -> set[str]:
    """The names of the files that the session made, which may be scripts that it then ran."""
    found: set[str] = set()
    for call in trace.each_call():
        if call.kind == "write":
            found |= {os.path.basename(path) for path in paths_of(call)}
        elif call.kind == "shell":
            found |= {os.path.basename(path) for path in _REDIRECTED.findall(command_of(call))}
    return found


_WHOLE = 200
"""Characters up to which a command line is told whole."""


def forms_for(failed: Run, mend: ToolCall) -> Iterator[str]:
    """The parts of the command that mended it which serve the same end."""
    alike = {part.words for part in joined_commands(command_of(failed.call))}
    again = any(part.words in alike for part in joined_commands(command_of(mend)))
    beside = (words for words in core(command_of(mend)) if words not in alike)
    added = any(words[0] not in _GOES | _SAYS for words in beside)
    for run in runs_of_call(mend, failed.session, 0, failed.project):
        if run.outcome.state != "worked" or not _same_end(failed, run):
            continue
        if run.form.split() != failed.form.split():
            yield clean(run.form)
        elif again and added and len(whole := one_line(command_of(mend))) <= _WHOLE:
            yield clean(whole)  # what stands before it made the difference


_TARGET = re.compile(r"\w[/.:]\w")


def _same_end(failed: Run, run: Run) -> bool:
    """Whether two runs are for the same: by their purpose, or, of one class of work, by what they
    are given, such as a file of tests, or nothing, or as one runs the other."""
    old, new = failed.form.split(), run.form.split()
    if run.purpose == failed.purpose:
        names = [_named(words, run.purpose) for words in (old, new)]
        return not (_TAKES_NAMES.search(run.purpose) and all(names)) or bool(names[0] & names[1])
    if run.work in (None, "check") or run.work != failed.work or not old:
        return False
    given, to_other = ({word for word in one[1:] if _TARGET.search(word)} for one in (old, new))
    run_by_another = old[0] != new[0] and old[0] in new
    return run_by_another or not given.isdisjoint(to_other) or not given | to_other


_TAKES_NAMES = re.compile(r" (?:install|add|get|pull|download|find|search|show|info|view)\b")
"""What is for what it names: another package is another end."""


def _named(words: list[str], purpose: str) -> set[str]:
    plain = {word for word in words if word[0] not in "-<"} - set(purpose.split())
    return {re.split(r"(?<=.)[@=~^<>]", word)[0] for word in plain}


_DEEP = re.compile(r"(?:\b[A-Za-z]:|(?<![\w.)\]]))(?:[\\/][\w.@+()\[\]-]+){3,}")


def without_folders(error: str, project: str) -> str:
    """An error without the folders of that moment: of a file deep in the project the first two and
    its name, of another its name."""
    base = re.split(r"[\\/]", project.casefold().rstrip("\\/")) if project else [""]

    def short(found: re.Match[str]) -> str:
        parts = re.split(r"[\\/]", found[0])
        inside = bool(project) and [part.casefold() for part in parts[: len(base)]] == base
        parts = parts[len(base) if inside else 1 :]
        first = parts[:2] if inside else []
        return found[0] if len(parts) < 3 else "/".join([*first, "…", parts[-1]])

    return _DEEP.sub(short, error)


_WARNS = re.compile(r"[\W\d]*(?:T[\d:.]+Z?\W+)?(?:\S+ )?warn(?:ing)?\b", re.IGNORECASE)


_SOURCE = re.compile(r"\s+(?:raise|return|from|import|if|File)\b|hint: |To fix this|Run \"")
"""Lines of a program that a traceback shows, and advice: neither says why."""


_VERSIONS = re.compile(r"(?:Expected version|Got): ")


def _error(run: Run) -> str:
    """The line that says what went wrong."""
    if run.form in SHELL_TAKES:
        return shorten(without_folders(one_line(run.outcome.evidence), run.project), 160)
    said = uncoloured(f"{run.call.error}\n{run.call.result}")
    if not run.purpose and run.call.failed and (stub := STUB.search(run.call.result)):
        return f"{run.form}: {stub[0].strip()}"
    lines = [line for line in said.splitlines() if line.strip()]
    wrong = [n for n, line in enumerate(lines) if CALLED_WRONGLY.search(line)]
    wrong = [n for n in wrong if not _WARNS.match(lines[n]) and not _SOURCE.match(lines[n])]
    absent = (n for n in wrong if "command not found" in lines[n])  # nothing else comes before it
    at = next(absent, wrong[0] if wrong else None)
    telling = "" if at is None else lines[at]
    if at is not None and telling.rstrip().endswith(":"):
        telling = " ".join(lines[at : at + 2])  # what it is about stands below
    elif at is not None and "UNSUPPORTED_ENGINE" in telling:
        telling = " ".join([telling, *filter(_VERSIONS.match, lines[at : at + 6])])
    if not telling and (run.purpose in HOOKED or run.call.error.startswith("hint: ")):
        telling = complaint(run.call.result)
    telling = telling or next((line for line in lines if SANDBOXED.search(line)), "")
    last = uncoloured(run.call.error) if run.call.failed else run.outcome.evidence
    return shorten(without_folders(one_line(telling or last), run.project), 160)
