"""How often commands worked and failed, over the runs of one project whose outcome is known.

A run is one purpose of one call, with the line that says what went wrong, the rules that a linter
named and the form that then worked. What failures tell about how a program is called is
`troubles.py`'s.
"""

import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.patterns import Alternatives
from tacit.base.secrets import clean
from tacit.learn.lint_rules import rules_named
from tacit.traces.command_purposes import (
    SimpleCommand,
    WorkClass,
    bare_interpreter,
    joined_commands,
    manner,
    plain_form,
    program_of,
    purpose_of,
    work_class,
)
from tacit.traces.observations import paths_of, recoveries
from tacit.traces.outcomes import (
    Outcome,
    absent_program,
    call_outcome,
    complaint,
    failed_check,
    purpose_outcomes,
    says_well,
    uncoloured,
)
from tacit.traces.tool_calls import command_of, our_tool
from tacit.traces.trace import REFUSED, ToolCall, Trace

FEWEST = 2
"""Sessions that must show a thing, unless the user's own words say that it is to last."""
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

    @property
    def work(self) -> WorkClass | None:
        return work_class(self.purpose)


class Rate(msgspec.Struct, frozen=True):
    """How often one purpose was tried and how that went."""

    purpose: str
    form: str
    """The form that worked in most sessions, or that most have where it seldom works; the purpose
    where one session alone shows it."""
    runs: int
    failed: int
    sessions: tuple[str, ...]
    says: str = ""
    """The line by which it most often says that all is well."""
    folder: str = ""
    """Where in the project it is mostly run."""

    @property
    def worked(self) -> int:
        return self.runs - self.failed

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


HOOKED = ("git commit", "git push")


def counted_runs(trace: Trace, runs: Iterable[Run]) -> tuple[CountedRun, ...]:
    """The `runs` of a session with what counting over several needs of their calls."""
    mends = {id(mend.failed): mend for mend in recoveries(trace)}
    runs = list(runs)
    built = _mended_by_build(runs)

    def counted(run: Run) -> CountedRun:
        mend, shell = mends.get(id(run.call)), run.call.kind == "shell"
        return CountedRun(
            run.session, run.turn, run.purpose, run.form, run.outcome, not shell, run.call.reply,
            _error(run) if run.outcome.state == "failed" else "",
            _hooked(run),
            tuple(rules_named(run.work, run.call.result)),
            built.get(id(run))
            or (tuple(forms_for(run, mend.succeeded)) if mend is not None and shell else ()),
            mend is not None and not mend.edited,
            run.manner, run.folder,
        )  # fmt: skip

    return tuple(map(counted, runs))


_STALE = re.compile(r"not found in module|not provide an export|cannot find module.*dist/", re.I)


def _mended_by_build(runs: Iterable[Run]) -> dict[int, tuple[str]]:
    """Runs, by identity, that failed on what an older build had left and worked once it was built
    again, with the two commands one after the other."""
    found: dict[int, tuple[str]] = {}
    stale: dict[str, Run] = {}
    build: Run | None = None
    for run in runs:
        if run.outcome.state == "failed" and _STALE.search(f"{run.call.error}\n{run.call.result}"):
            stale[run.purpose], build = run, None
        elif run.outcome.state == "worked" and run.work == "build" and stale:
            build = run
        elif run.outcome.state == "worked" and build and run.purpose in stale:
            failed = stale.pop(run.purpose)
            words = run.form.split()
            own = " ".join(
                words[: next((n for n in range(1, 4) if purpose_of(words[:n]) == run.purpose), 1)]
            )
            found[id(failed)] = (clean(f"{build.form} && {own} …"),)
    return found


_OF_GIT = re.compile(
    r"^(?:error: (?:failed to push|cannot |could not|pathspec|src refspec|unable|Your local|Please "
    r"|RPC|The |remote|Signing |gpg )|fatal: |hint: |remote: ).*$",
    re.MULTILINE,
)
_OF_HOOK = re.compile(
    r"pre-commit|husky|lefthook|commitlint|commitizen|lint-staged|commit-msg|pre-push|\bhook\b"
    r"|\.{4,}(?:Passed|Failed)",
    re.IGNORECASE,
)
_NO_HOOK = re.compile(r"nothing (?:added )?to commit|no changes added|\[rejected\]", re.IGNORECASE)


def _hooked(run: Run) -> Literal["", "checks", "itself"]:
    """What a hook has to do with the failure of a commit or a push; git's own words are none."""
    if run.purpose not in HOOKED or not run.outcome.failed:
        return ""
    said = _OF_GIT.sub("", run.call.result)
    if failed_check(msgspec.structs.replace(run.call, result=said)) is not None:
        return "checks"
    own = run.purpose == "git commit" and _OF_HOOK.search(said) and not _NO_HOOK.search(said)
    return "itself" if own else ""


def hook_rate(runs: Sequence[CountedRun]) -> Rate | None:
    """How often a commit or a push, whichever did more, failed because a hook ran checks, where
    several sessions show it."""
    found = []
    for purpose in HOOKED:
        tried = [run for run in runs if run.purpose == purpose and run.outcome.state != "unclear"]
        failed = [run for run in tried if run.hooked == "checks"]
        sessions = tuple(dict.fromkeys(run.session for run in failed))
        if len(sessions) >= FEWEST:
            found.append(Rate(purpose, purpose, len(tried), len(failed), sessions))
    return max(found, key=lambda rate: rate.failed, default=None)


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
    yield from _bare_runs(call, parts, session, turn, project)
    if len(command) > _MOST_LETTERS:
        return
    asked = (ESCALATED,) if _is_escalated(call) else ()
    folders = _folders(call, parts, project, folder)
    places = {purpose_of(part.words): at for at, part in enumerate(parts)}
    for purpose, outcome in purpose_outcomes(call):
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
    gone = absent_program(call.result)
    found = [bare_interpreter(part.words) for part in parts]
    found += [gone for part in parts if part.words[0] == gone and not purpose_of(part.words)]
    for name in dict.fromkeys(filter(None, found)):
        outcome = Outcome("failed", "output") if gone == name else call_outcome(call)
        if gone in ("", name) and (gone or outcome.state == "worked"):
            yield Run(session, turn, "", name, outcome, call, project)


_KEEPS_FOLDER = {"claude-code"}
"""Agents whose shell stays where a command went."""
_GOES = {"cd", "pushd", "Set-Location"}
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
            name = os.path.relpath(path, project) if _inside(path, project) else ""
            if name:
                yield Done(f"edit {name}", name)
    for run in runs:
        if run.outcome.state == "worked" and run.purpose:
            yield Done(run.purpose, run.form, call.kind == "other")


def _inside(path: str, project: str) -> bool:
    return bool(project) and path.startswith(project.rstrip("/") + "/")


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


def count_rates(runs: Iterable[CountedRun]) -> dict[str, Rate]:
    """The rate of each purpose, over the runs of which the outcome is known."""
    by_purpose: dict[str, list[CountedRun]] = {}
    for run in runs:
        if run.purpose and (run.outcome.state == "worked" or run.outcome.failed):
            by_purpose.setdefault(run.purpose, []).append(run)
    return {purpose: _rate(purpose, own) for purpose, own in by_purpose.items()}


def _rate(purpose: str, runs: list[CountedRun]) -> Rate:
    worked = [run for run in runs if run.outcome.state == "worked"]
    sessions = tuple(dict.fromkeys(run.session for run in runs))
    counts = len(runs), len(runs) - len(worked), sessions
    if len(sessions) < FEWEST:  # nobody is told how it is called
        return Rate(purpose, purpose, *counts)
    said = Counter(
        re.sub(r"\d{2,}|[1-9]", "…", r.outcome.evidence)
        for r in worked
        if r.outcome.reason == "output"
        and r.outcome.evidence
        and not r.outcome.evidence.startswith(("exit code", "nothing"))
    )
    says = next((line for line, count in said.most_common(1) if count >= FEWEST), "")
    says = says if says_well(work_class(purpose), says) and not _SAYS_LITTLE.search(says) else ""
    telling = worked if len({run.session for run in worked}) >= FEWEST else runs
    folders = Counter(f for f, _ in {(r.folder, r.session): 0 for r in telling} if f is not None)
    folder, count = max(folders.items(), key=lambda item: item[1], default=("", 0))
    place = clean(folder) if 2 * count > folders.total() and count >= FEWEST else ""
    return Rate(purpose, whole_form(purpose, telling), *counts, clean(says), place)


_SAYS_LITTLE = re.compile(r"^[✖✗✘×]|\w/\w|no tests? |\b0 passed|filtered out")
"""Lines that also count what is wrong, that are of one part of the whole, or of nothing."""


def whole_form(purpose: str, runs: Sequence[CountedRun]) -> str:
    """How a command is mostly called: its usual form, behind what most set before it."""
    form = usual_form(purpose, [form for form, _ in {(run.form, run.session): 0 for run in runs}])
    before = Counter(how for run in runs for how in run.manner if SET_BEFORE.match(how))
    sets = [how for how, count in before.items() if 2 * count > len(runs)]
    return " && ".join([*map(clean, sets), form])


SET_BEFORE = re.compile(r"source |(?:nvm|fnm) use|conda activate")


def usual_form(purpose: str, worked: Iterable[str]) -> str:
    """How most commands that worked begin, with `…` where each went on in its own way; where one
    stands for the whole project, that."""
    forms = [form.split() for form in worked]
    if len(of_all := [form for form in forms if "-p" not in form]) >= FEWEST:
        forms = of_all if purpose.startswith("cargo ") else forms
    begins = _usual_beginning(purpose, forms)
    words = begins.removesuffix(" …").split()
    narrow = (at for at, word in enumerate(words) if _NARROWS.search(word) and "<" not in word)
    if at := next((at for at in narrow if at and purpose_of(words[:at]) == purpose), 0):
        words = words[:at]
    elif not begins.endswith(" …"):
        return begins
    whole = Counter(" ".join(form) for form in forms if not any(map(_NARROWS.search, form[1:])))
    often = [form for form, count in whole.most_common(3) if count >= FEWEST]
    often = [form for form in often if form.split()[: len(words)] == words]
    if often:
        return clean(often[0])
    return " ".join(words) + ("" if words in forms else " …")


_NARROWS = re.compile(
    r"\w\.[a-z]{1,4}(?::.*)?$|[<>]|^-(?:[kt]|run|bench)$|::|^\./\w|^[\w.-]+/\w"
    r"|(?i:pattern|filter|grep|match|only)=|[\^$*]"
)
"""What narrows a command down to a file, a folder, a test or a value of the moment."""


def _usual_beginning(purpose: str, forms: list[list[str]]) -> str:
    for size in range(max(map(len, forms), default=0), 0, -1):
        begins, count = Counter(tuple(form[:size]) for form in forms).most_common(1)[0]
        if 2 * count > len(forms) and purpose_of(begins) == purpose:
            whole = sum(tuple(form) == begins for form in forms)
            return clean(" ".join(begins)) + ("" if 2 * whole > count else " …")
    short = [
        next((form[:n] for n in range(1, _reach(form)) if purpose_of(form[:n]) == purpose), [])
        for form in forms
    ]
    common = Counter(tuple(form) for form in short if form).most_common(1)
    return f"{clean(' '.join(common[0][0]))} …" if common else purpose


def _reach(form: list[str]) -> int:
    return 9 if form[0] in ("corepack", "fnm") else 4


# How programs say that they were called wrongly, or are not there.
CALLED_WRONGLY = Alternatives(
    r"command not found|not found\b|no such (?:file|option|command|task)|unrecogni[sz]ed"
    r"|unknown (?:option|flag|command|subcommand"
    r"|argument|task|script)|unexpected argument|invalid (?:option|choice|argument)|^usage:"
    r"|no module named|cannot find module"
    r"|missing script|script not found|no task|not trusted|permission denied|not installed"
    r"|not a git repository|is not recognized"
    r"|no rule to make target|could not find|does not exist|not logged in|authentication"
    r"|is required|must be set|expected a"
    r"|can't open file|cannot open|no_script|does not contain main module|required node version"
    r"|unsupported (?:engine|environment)|^The following paths are ignored by|can't create"
    r"|operation not permitted"
    r"|cannot find main module|not a tty|no such container|must (?:now )?be run as"
    r"|failed to spawn|ImproperlyConfigured",
    re.IGNORECASE,
)
SANDBOXED = Alternatives(
    r"\bEPERM\b|operation not permitted|could not resolve host|error connecting to|EAI_AGAIN"
    r"|read-only file system|network is unreachable|ENOTFOUND|token in \S+ is invalid",
    re.IGNORECASE,
)
"""How it shows that a sandbox let something not listen, write or reach the network."""
_WHOLE = 200
"""Characters up to which a command line is told whole."""


def forms_for(failed: Run, mend: ToolCall) -> Iterator[str]:
    """The parts of the command that mended it which serve the same end."""
    alike = {part.words for part in joined_commands(command_of(failed.call))}
    again = any(part.words in alike for part in joined_commands(command_of(mend)))
    for run in runs_of_call(mend, failed.session, 0, failed.project):
        if run.outcome.state != "worked" or not _same_end(failed, run):
            continue
        if run.form.split() != failed.form.split():
            yield clean(run.form)
        elif (
            again
            and command_of(mend) != command_of(failed.call)
            and len(whole := one_line(command_of(mend))) <= _WHOLE
        ):
            yield clean(whole)  # what stands before it made the difference


_TARGET = re.compile(r"\w[/.:]\w")


def _same_end(failed: Run, run: Run) -> bool:
    """Whether two runs are for the same: by their purpose, or, of one class of work, by what they
    are given, such as a file of tests, or nothing, or as one runs the other."""
    if run.purpose == failed.purpose:
        return True
    old, new = failed.form.split(), run.form.split()
    if run.work in (None, "check") or run.work != failed.work or not old:
        return False
    given, to_other = ({word for word in one[1:] if _TARGET.search(word)} for one in (old, new))
    run_by_another = old[0] != new[0] and old[0] in new
    return run_by_another or not given.isdisjoint(to_other) or not given | to_other


_DEEP = re.compile(r"(?:/[\w.@+-]+){3,}")


def _without_folders(error: str, project: str) -> str:
    """An error without the folders of that moment: of a file deep in the project the first two and
    its name, of another its name."""

    def short(found: re.Match[str]) -> str:
        base = project.rstrip("/") + "/"
        inside = bool(project) and found[0].startswith(base)
        parts = found[0].removeprefix(base if inside else "/").split("/")
        first = parts[:2] if inside else []
        return found[0] if len(parts) < 3 else "/".join([*first, "…", parts[-1]])

    return _DEEP.sub(short, error)


_WARNS = re.compile(r"[\W\d]*(?:T[\d:.]+Z?\W+)?(?:\S+ )?warn(?:ing)?\b", re.IGNORECASE)


_SOURCE = re.compile(r"\s+(?:raise|return|from|import|if|File)\b|hint: |To fix this|Run \"")
"""Lines of a program that a traceback shows, and advice: neither says why."""


_VERSIONS = re.compile(r"(?:Expected version|Got): ")


def _error(run: Run) -> str:
    """The line that says what went wrong."""
    said = uncoloured(f"{run.call.error}\n{run.call.result}")
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
    return shorten(_without_folders(one_line(telling or last), run.project), 160)
