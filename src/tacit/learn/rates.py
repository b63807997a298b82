"""How often commands worked and failed, why, and what then worked.

Counted over the runs of one project whose outcome is known. A failure says something about how a
program is called, and so is worth telling, when it is about the call and not about the work: the
program is missing, an option is unknown, a task does not exist; or another form of the call worked
with nothing changed in between; or the program fails nearly always. What mends it is what then
worked for the same purpose or the same class (see `observations.recoveries`).
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tacit.base.display import one_line, shorten
from tacit.base.secrets import clean
from tacit.traces.command_purposes import (
    WorkClass,
    joined_commands,
    plain_form,
    purpose_of,
    work_class,
)
from tacit.traces.observations import paths_of, recoveries
from tacit.traces.outcomes import Outcome, call_outcome, failed_check, purpose_outcomes
from tacit.traces.tool_calls import command_of, our_tool
from tacit.traces.trace import REFUSED, ToolCall, Trace

FEWEST = 2
"""Sessions that must show a thing, unless the user's own words say that it is to last."""
_MOST_LETTERS = 2000
"""A longer command is a program that was typed in, not a way to run one."""


class Run(msgspec.Struct, frozen=True):
    """One purpose of one shell call."""

    session: str
    turn: int
    purpose: str
    form: str
    """The simple command that serves the purpose, without pipes and folders around it."""
    outcome: Outcome
    call: ToolCall
    project: str = ""

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
    hooked: bool = False
    """Whether it failed because a hook ran checks."""
    rules: tuple[tuple[str, str], ...] = ()
    """The rules that a linter named, each with what it said."""
    instead: tuple[str, ...] = ()
    """The commands for the same end that then worked."""
    by_form: bool = False
    """Whether another form of the call then worked with nothing changed in between."""

    @property
    def work(self) -> WorkClass | None:
        return work_class(self.purpose)


class Rate(msgspec.Struct, frozen=True):
    """How often one purpose was tried and how that went."""

    purpose: str
    form: str
    """The form that worked in most sessions, or that most have where it seldom works."""
    runs: int
    failed: int
    sessions: tuple[str, ...]
    says: str = ""
    """The line by which it most often says that all is well."""

    @property
    def worked(self) -> int:
        return self.runs - self.failed

    @property
    def work(self) -> WorkClass | None:
        return work_class(self.purpose)


class RuleCount(msgspec.Struct, frozen=True):
    """A rule that a linter named, and how often."""

    rule: str
    count: int
    sessions: tuple[str, ...]
    example: str


class Trouble(msgspec.Struct, frozen=True):
    """One way in which a program fails as it is called."""

    program: str
    form: str
    error: str
    failed: int
    runs: int
    sessions: tuple[str, ...]
    instead: tuple[tuple[str, int], ...] = ()
    """What then worked, and in how many sessions it followed."""

    @property
    def work(self) -> WorkClass | None:
        return work_class(self.form)

    @property
    def mended(self) -> bool:
        """Whether several sessions show what works: the same, or of what was called wrongly any."""
        counts = [count for _, count in self.instead]
        wrongly = CALLED_WRONGLY.search(self.error) and self.program not in _CARRIES
        return (sum(counts) if wrongly else max(counts, default=0)) >= FEWEST


def runs_by_call(trace: Trace) -> list[tuple[ToolCall, list[Run]]]:
    """Every call of a session, with what it ran: commands by their purpose, other tools by their
    name."""
    return [
        (call, list(runs_of_call(call, trace.id, turn.number, trace.project)))
        for turn in trace.turns
        for call in turn.calls
    ]


def lasting_runs(
    trace: Trace, by_call: Iterable[tuple[ToolCall, list[Run]]] | None = None
) -> list[Run]:
    """The runs of a session, in order, that are not about a file which the agent wrote itself in
    it: nobody has that."""
    written = _files_written(trace)
    return [
        run
        for _, runs in (runs_by_call(trace) if by_call is None else by_call)
        for run in runs
        if run.purpose not in written
        and not any(os.path.basename(word) in written for word in run.form.split())
    ]


_HOOKED = ("git commit", "git push")


def counted_runs(trace: Trace, runs: Iterable[Run]) -> tuple[CountedRun, ...]:
    """The `runs` of a session with what counting over several needs of their calls."""
    mends = {id(mend.failed): mend for mend in recoveries(trace)}

    def counted(run: Run) -> CountedRun:
        mend, shell = mends.get(id(run.call)), run.call.kind == "shell"
        return CountedRun(
            run.session, run.turn, run.purpose, run.form, run.outcome, not shell, run.call.reply,
            _error(run) if run.outcome.state == "failed" else "",
            run.purpose in _HOOKED and run.outcome.failed and failed_check(run.call) is not None,
            tuple(rules_named(run)),
            tuple(forms_for(run, mend.succeeded)) if mend is not None and shell else (),
            mend is not None and not mend.edited,
        )  # fmt: skip

    return tuple(map(counted, runs))


def hook_rate(runs: Sequence[CountedRun]) -> Rate | None:
    """How often a commit or a push failed because a hook ran checks, where several sessions show
    it."""
    tried = [run for run in runs if run.purpose in _HOOKED and run.outcome.state != "unclear"]
    failed = [run for run in tried if run.hooked]
    sessions = tuple(dict.fromkeys(run.session for run in failed))
    if len(sessions) < FEWEST:
        return None
    return Rate(failed[0].purpose, failed[0].purpose, len(tried), len(failed), sessions)


def runs_of_call(call: ToolCall, session: str, turn: int = 0, project: str = "") -> Iterator[Run]:
    """The purposes of one call, each with its outcome."""
    if is_own_tool(call):
        given = ", ".join(shorten(one_line(key), 40) for key in call.arguments)
        form = f"{call.name} ({given})" if given else call.name
        yield Run(session, turn, call.name, shorten(form, 200), call_outcome(call), call, project)
    if call.kind != "shell" or len(command := command_of(call)) > _MOST_LETTERS:
        return
    forms = {purpose_of(part.words): part.words for part in joined_commands(command)}
    for purpose, outcome in purpose_outcomes(call):
        words = forms.get(purpose, (purpose,))
        form = shorten(one_line(plain_form(words, project)), 200)
        yield Run(session, turn, purpose, form, outcome, call, project)


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
        if run.outcome.state == "worked":
            yield Done(run.purpose, run.form, call.kind == "other")


def _inside(path: str, project: str) -> bool:
    return bool(project) and path.startswith(project.rstrip("/") + "/")


# Tools by which a host works its own agent, rather than the user's things.
_OF_THE_HOST = re.compile(
    r"^[A-Z][A-Za-z]*$|(?i:plan_?mode|^think|topic|subagent|(?:^|_)agent$|spawn|delegate|todo|^(?:submit|finish|done|exit|respond))"
)


def is_own_tool(call: ToolCall) -> bool:
    """Whether a call is of a tool that the user gave the agent, e.g. by an MCP server."""
    if call.kind != "other" or our_tool(call.name) is not None:
        return False
    return not _OF_THE_HOST.search(call.name)


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
        if run.outcome.state == "worked" or run.outcome.failed:
            by_purpose.setdefault(run.purpose, []).append(run)
    return {purpose: _rate(purpose, own) for purpose, own in by_purpose.items()}


def _rate(purpose: str, runs: list[CountedRun]) -> Rate:
    worked = [run for run in runs if run.outcome.state == "worked"]
    said = Counter(
        re.sub(r"\d{2,}|[1-9]", "…", r.outcome.evidence)
        for r in worked
        if r.outcome.reason == "output"
        and not r.outcome.evidence.startswith(("exit code", "nothing"))
    )
    says = next((line for line, count in said.most_common(1) if count >= FEWEST), "")
    says = "" if re.match(r"[✖✗✘×]", says) else says  # that line also counts what is wrong
    sessions = tuple(dict.fromkeys(run.session for run in runs))
    telling = worked if len({run.session for run in worked}) >= FEWEST else runs
    return Rate(
        purpose,
        usual_form(purpose, [form for form, _ in {(run.form, run.session): 0 for run in telling}]),
        len(runs),
        len(runs) - len(worked),
        sessions,
        clean(says),
    )


def usual_form(purpose: str, worked: Iterable[str]) -> str:
    """How most commands that worked begin, with `…` where each went on in its own way."""
    forms = [form.split() for form in worked]
    for size in range(max(map(len, forms), default=0), 0, -1):
        begins, count = Counter(tuple(form[:size]) for form in forms).most_common(1)[0]
        if 2 * count > len(forms) and purpose_of(begins) == purpose:
            whole = sum(tuple(form) == begins for form in forms)
            return clean(" ".join(begins)) + ("" if 2 * whole > count else " …")
    short = [
        next((form[:n] for n in range(1, 4) if purpose_of(form[:n]) == purpose), [])
        for form in forms
    ]
    common = Counter(tuple(form) for form in short if form).most_common(1)
    return f"{clean(' '.join(common[0][0]))} …" if common else purpose


# How programs say that they were called wrongly, or are not there.
CALLED_WRONGLY = re.compile(
    r"command not found|not found\b|no such (?:file|option|command|task)|unrecogni[sz]ed"
    r"|unknown (?:option|flag|command|subcommand"
    r"|argument|task|script)|unexpected argument|invalid (?:option|choice|argument)|^usage:"
    r"|no module named|cannot find module"
    r"|missing script|script not found|no task|not trusted|permission denied|not installed"
    r"|not a git repository|is not recognized"
    r"|no rule to make target|could not find|does not exist|not logged in|authentication"
    r"|is required|must be set|expected a"
    r"|can't open file|cannot open|no_script|does not contain main module|required node version"
    r"|unsupported engine",
    re.IGNORECASE,
)
_CARRIES = {"ssh", "curl", "psql", "sqlite3", "gh", "docker"}
"""What they are given is another command or a question, and that is what fails."""
_ALWAYS = 0.75
"""Of the runs of a purpose that fail, from which it is said to fail nearly always."""
_MANY = 4
_SELDOM = 10
"""What fails less often than once in so many runs is an accident."""


def troubles(runs: Sequence[CountedRun], rates: dict[str, Rate]) -> list[Trouble]:
    """What fails as it is called, in at least two sessions, with what then worked."""
    groups: dict[tuple[str, str], list[CountedRun]] = {}
    present = {run.form.partition(" ")[0] for run in runs if run.outcome.state == "worked"}
    for run in runs:
        if run.outcome.state != "failed" or run.rules:
            continue  # what names rules was called well, and found fault with the code
        another_form = run.by_form and run.work in (None, "build")
        about_the_call = CALLED_WRONGLY.search(run.error) or another_form
        if run.tool or about_the_call or _fails_always(run.purpose, rates):
            absent = absent_program(run.error)
            absent = "" if absent in present else absent
            key = (absent, "") if absent else (_program(run.purpose), _signature(run.error))
            groups.setdefault(key, []).append(run)
    tries = Counter(run.purpose for run in runs)
    found = []
    for (program, _), own in groups.items():
        sessions = tuple(dict.fromkeys(run.session for run in own))
        there = _in_its_place(own[0], rates)
        if len(sessions) < FEWEST and not there:
            continue
        tried = sum(tries[purpose] for purpose in {run.purpose for run in own})
        trouble = _trouble(program, own, tried)
        if there and not trouble.instead:
            trouble = msgspec.structs.replace(trouble, instead=there)
        tells = trouble.mended or CALLED_WRONGLY.search(trouble.error)
        if own[0].tool or (tells and trouble.failed * _SELDOM >= trouble.runs):
            found.append(trouble)
    return found


_MISSING = re.compile(r"command not found|not found in PATH|is not recognized as", re.IGNORECASE)
_ABSENT = re.compile(
    r"command not found: ([\w.+-]+)|([\w.+-]+): (?:command not found(?!:)|not found$)",
    re.IGNORECASE,
)


def absent_program(error: str) -> str:
    """The program that a shell did not find."""
    found = _ABSENT.search(error)
    return (found[1] or found[2]) if found else ""


def _in_its_place(run: CountedRun, rates: dict[str, Rate]) -> tuple[tuple[str, int], ...]:
    """For a program that is not there: what worked for the same class of work in several sessions.

    That a program is missing is no accident of one session.
    """
    if run.work is None or not _MISSING.search(run.error):
        return ()
    others = [r for r in rates.values() if r.work == run.work and len(r.sessions) >= FEWEST]
    best = max(others, key=lambda rate: rate.worked, default=None)
    return ((best.form, len(best.sessions)),) if best and best.worked else ()


def _fails_always(purpose: str, rates: dict[str, Rate]) -> bool:
    rate = rates.get(purpose)
    return rate is not None and rate.runs >= _MANY and rate.failed >= _ALWAYS * rate.runs


def _trouble(program: str, own: list[CountedRun], tried: int) -> Trouble:
    followed: dict[str, set[str]] = {}
    for run in own:
        for form in run.instead:
            followed.setdefault(form, set()).add(run.session)
    instead = sorted(((form, len(by)) for form, by in followed.items()), key=lambda item: -item[1])
    instead = [one for one in instead if one[1] >= FEWEST] or instead[:FEWEST]
    form = Counter(run.form for run in own).most_common(1)[0][0]
    error = Counter(run.error for run in own).most_common(1)[0][0]
    sessions = tuple(dict.fromkeys(run.session for run in own))
    return Trouble(
        program, clean(form), clean(error), len(own), tried, sessions, tuple(instead[:3])
    )


_WHOLE = 200
"""Characters up to which a command line is told whole."""


def forms_for(failed: Run, mend: ToolCall) -> Iterator[str]:
    """The parts of the command that mended it which serve the same end."""
    for run in runs_of_call(mend, failed.session):
        same = run.purpose == failed.purpose or (run.work is not None and run.work == failed.work)
        if not same or run.outcome.state != "worked":
            continue
        if run.form.split() != failed.form.split():
            yield clean(run.form)
        elif len(whole := one_line(command_of(mend))) <= _WHOLE:
            yield clean(whole)  # what stands before it made the difference


def _program(purpose: str) -> str:
    """What fails, without what it was told to do: `x npm run a` and `x npm run b` are one."""
    words = purpose.split() or [purpose]
    return (
        " ".join(words[:2])
        if len(words) > 2
        else words[0]
        if work_class(purpose) is None
        else purpose
    )


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


def _error(run: Run) -> str:
    """The line that says what went wrong."""
    lines = [line for line in f"{run.call.error}\n{run.call.result}".splitlines() if line.strip()]
    telling = next((line for line in lines if CALLED_WRONGLY.search(line)), "")
    last = run.call.error if run.call.failed else run.outcome.evidence
    return shorten(_without_folders(one_line(telling or last), run.project), 160)


def _signature(error: str) -> str:
    """An error without what differs from time to time."""
    text = re.sub(
        r"(?:/[\w.@+-]+)+|\b[\w.-]+\.\w{1,5}(?::\d+)*|\d+|0x[0-9a-f]+", "·", error.casefold()
    )
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "·", text)[:80]


_RULES = (
    # golangci-lint
    re.compile(
        r"^(?:\[[^\]]+\]\s+)?\S+:\d+:\d+:?\s+(?P<says>.+?)\s+\((?P<rule>[a-z][\w-]{2,30})\)$", re.M
    ),
    # eslint
    re.compile(
        r"^\s*\d+:\d+\s+(?:error|warning)\s+(?P<says>.+?)\s{2,}(?P<rule>@?[\w/-]{3,60})$", re.M
    ),
    # ruff, flake8
    re.compile(r"^\S+:\d+:\d+:?\s+(?P<rule>[A-Z]{1,4}\d{3,4})\s+(?:\[\*\] )?(?P<says>.+)$", re.M),
    # biome
    re.compile(r"^\S+:\d+(?::\d+)?\s+(?P<rule>lint/[\w/]+)(?P<says>)", re.M),
    # TypeScript
    re.compile(
        r"^\S+?(?:\(\d+,\d+\)|:\d+:\d+)(?::| -) error (?P<rule>TS\d{4}): (?P<says>.+)$", re.M
    ),
    # mypy
    re.compile(r"^\S+:\d+: error: (?P<says>.+?)  \[(?P<rule>[a-z][\w-]+)\]$", re.M),
    # clippy
    re.compile(r"#\[(?:warn|deny)\((?P<rule>clippy::\w+)\)\](?P<says>)", re.M),
)
_NO_RULE = {"typecheck", "syntax", "misc", "typescript"}
"""What linters call it when the code does not compile."""
_MOST_RULES = 8


def rules_named(run: Run) -> Iterator[tuple[str, str]]:
    """The rules that a linter or a type checker named in one run, with what it said of each."""
    for pattern in _RULES if run.work in ("lint", "types", "build") else ():
        for found in pattern.finditer(run.call.result):
            if found["rule"] not in _NO_RULE:
                yield found["rule"], shorten(one_line(clean(found["says"])), 140)


def lint_rules(runs: Iterable[CountedRun]) -> tuple[RuleCount, ...]:
    """The rules that linters and type checkers named in two sessions, the commonest first."""
    counts: Counter[str] = Counter()
    sessions: dict[str, dict[str, None]] = {}
    examples: dict[str, str] = {}
    for run in runs:
        for rule, said in run.rules:
            counts[rule] += 1
            sessions.setdefault(rule, {})[run.session] = None
            if said and (rule not in examples or len(said) < len(examples[rule])):
                examples[rule] = said
    often = sorted(
        (rule for rule in counts if len(sessions[rule]) >= FEWEST),
        key=lambda rule: (-len(sessions[rule]), -counts[rule]),
    )
    return tuple(
        RuleCount(rule, counts[rule], tuple(sessions[rule]), examples.get(rule, ""))
        for rule in often[:_MOST_RULES]
    )
