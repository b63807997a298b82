"""What the sessions of a project show by counting alone, without a model.

Findings, each with its support, the sessions that show this very thing: by which commands work is
checked, with rates; what fails, and what then worked; which steps lead up to something; and what
the user wants, which is `demands.py`'s. What one session shows to a reviewer is `signals.py`'s,
what a finding becomes is `drafts.py`'s.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from tacit.learn.counted_session import (
    CountedSession,
    count_session,
    is_home,
    repository_name,
    sessions_by_project,
    system_of,
)
from tacit.learn.demands import (
    Finding,
    RefusalFinding,
    RemarksFinding,
    RequestFinding,
    WishFinding,
    refusal_findings,
    request_findings,
    reserved_acts,
    unwanted_programs,
    wish_findings,
)
from tacit.learn.habits import (
    Hook,
    LeftOut,
    Messages,
    Pair,
    Pushed,
    hook_of,
    left_out,
    messages,
    own_commands,
    pairs,
    pushed,
)
from tacit.learn.lint_rules import RuleCount, count_rules
from tacit.learn.rates import (
    FEWEST,
    OWN_TASK,
    Rate,
    Trouble,
    abstracted,
    count_rates,
    of_late,
    usual_form,
)
from tacit.learn.runs import CountedRun, Done
from tacit.learn.troubles import MISSING, by_program, machine_troubles, troubles
from tacit.learn.worth import Voices
from tacit.traces.command_purposes import purpose_of, work_class
from tacit.traces.observations import is_unsafe
from tacit.traces.outcomes import CALLED_WRONGLY
from tacit.traces.trace import Trace


class ChecksFinding(Finding, frozen=True, kw_only=True):
    """By which commands work is checked, how that goes, and what they object to."""

    rates: tuple[Rate, ...]
    rules: tuple[RuleCount, ...] = ()
    troubles: tuple[Trouble, ...] = ()
    hooked: Hook | None = None
    companions: tuple[tuple[str, int], ...] = ()
    """Files that are changed along with most work, and in how many sessions."""
    changing: int = 0
    """Sessions in which files were changed."""
    others: tuple[Rate, ...] = ()
    """Commands of the project that are no checks."""
    logs: tuple[tuple[str, int], ...] = ()
    """The logs that are looked into, and in how many sessions."""


class HabitsFinding(Finding, frozen=True, kw_only=True):
    """How changes are made: files that go together, what stays out of commits, messages."""

    pairs: tuple[Pair, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    messages: Messages | None = None
    pushed: Pushed | None = None


class TroubleFinding(Finding, frozen=True, kw_only=True):
    """A program that fails as it is called, and what worked in its place."""

    program: str
    troubles: tuple[Trouble, ...]
    system: str = ""
    """The system on which several projects show it; empty where it is of one."""


class Step(msgspec.Struct, frozen=True):
    """One step of a procedure: what is done, and in how many of the sessions."""

    text: str
    sessions: int
    key: str = ""


class ProcedureFinding(Finding, frozen=True, kw_only=True):
    """The steps around something that worked and that others see."""

    goal: str
    """The purpose or the tool that the steps are for."""
    steps: tuple[Step, ...]
    """In their order, the goal among them."""
    troubles: tuple[Trouble, ...] = ()
    tool: bool = False
    """Whether the steps are calls of tools rather than commands."""


def count_findings(
    sessions: Iterable[CountedSession | Trace], others: Iterable[CountedSession] = ()
) -> list[Finding]:
    """What the sessions show, the user's words first, then the best supported; `others` are asked
    only for what lies in the machine."""
    counted = [count_session(one) if isinstance(one, Trace) else one for one in sessions]
    by_project = sessions_by_project(counted)
    voices = {project: Voices(own if project else ()) for project, own in by_project.items()}
    spread = machine_troubles(sessions_by_project([*counted, *others]))
    of_machine = [_trouble_finding("", own, MISSING, system) for system, own in spread.items()]
    each = (_project_findings(p, own, voices[p], spread) for p, own in by_project.items())
    found = [finding for own in each for finding in own]
    every = [trace for own in by_project.values() for trace in own]
    wishes = wish_findings(every, found, voices)
    place = {session.id: (session.ended, session.id) for session in every}
    told = [wish for wish in wishes if not _is_taken_back(wish, found, place)]
    found = [*(f for f in found if not _is_reserved(f, by_project)), *told, *of_machine]
    said = (WishFinding, RefusalFinding, RemarksFinding)
    of = {session.project: session.repository for session in every if session.repository}
    found = [msgspec.structs.replace(f, repository=of.get(f.project, "")) for f in found]
    return sorted(found, key=lambda f: (not isinstance(f, said), -len(f.sessions), f.project))


def _is_reserved(found: Finding, sessions: Mapping[str, list[CountedSession]]) -> bool:
    """Whether an act that was asked after is one that the user once kept to themselves: then nobody
    knows whether it was forgotten."""
    if not isinstance(found, RequestFinding) or found.verb != "forgotten":
        return False
    own = (said.text for trace in sessions[found.project] for said in trace.said)
    return not reserved_acts(own).isdisjoint(found.thing.split(" and "))


def _is_taken_back(
    wish: WishFinding | RemarksFinding, found: Iterable[Finding], place: Mapping[str, Any]
) -> bool:
    """Whether an act that the user kept to themselves is asked of the agent in later sessions."""
    kept = reserved_acts(quote.text for quote in wish.quotes)
    last = max(place[session] for session in wish.sessions)
    return any(
        sum(place[session] > last for session in one.sessions) >= FEWEST
        for one in found
        if isinstance(one, RequestFinding) and kept & {one.verb, *one.thing.split(" and ")}
    )


def _project_findings(
    project: str,
    traces: list[CountedSession],
    voices: Voices,
    spread: Mapping[str, Sequence[Trouble]],
) -> list[Finding]:
    refusals = list(refusal_findings(project, traces))
    unwanted = {purpose for refusal in refusals for purpose in refusal.purposes}
    said = [wish for session in traces for wish in session.wishes if wish.strength == "rule"]
    against = {name for wish in said for name in unwanted_programs(wish.text)}
    traces = [_without(session, against) for session in traces] if against else traces
    runs = [run for session in traces for run in session.runs]
    kept = (run for run in runs if run.purpose not in unwanted and not _OF_A_KIT.search(run.form))
    rates = count_rates(kept)
    known = {trouble.of_machine for trouble in spread.get(system_of(project), ())} - {""}
    failing = [t for t in troubles(traces, rates) if t.of_machine not in known]
    rates = of_late(rates, [session.id for session in traces if session.runs])
    worked_on = "" if is_home(project) else project
    checks = [
        _with_habits(found, runs, traces, rates)
        for found in _checks(project, rates, runs, failing)
        or _only_commands(worked_on, own_commands(rates.values()), traces)
    ]
    checks = [one for one in checks if len(one.sessions) * _SELDOM >= one.changing]
    if checks:
        of_machine = [t for t in failing if t.of_machine and t not in checks[0].troubles]
        told = (*checks[0].troubles, *of_machine)
        checks[0] = msgspec.structs.replace(checks[0], troubles=told)
    return [
        *refusals,
        *(request_findings(project, traces, voices) if project else ()),
        *checks,
        *(_habits(project, traces, runs) if project else ()),
        *_other_troubles(project, failing, checks),
        *_procedures(project, traces, failing),
    ]


_OF_A_KIT = re.compile(
    r"(?:^|[\s/\\\"'])(?:\.(?:specify|claude|codex|cursor|gemini|opencode|agents?|windsurf|kiro"
    r"|qwen|roo|taskmaster)|[._]?bmad[\w-]*|get-shit-done)[/\\]",
    re.IGNORECASE,
)
"""Scripts that come with an agent or a kit for planning, and are none of the project's."""


def _without(session: CountedSession, programs: set[str]) -> CountedSession:
    """A session without what was done by programs that the user does not want."""
    return msgspec.structs.replace(
        session,
        runs=tuple(run for run in session.runs if run.purpose.partition(" ")[0] not in programs),
        done=tuple(done for done in session.done if done.key.partition(" ")[0] not in programs),
    )


# Checks, and what fails.

EVERYBODYS_CHECKS = re.compile(
    r"pytest|make|go (?:test|build|vet)|cargo (?:test|build|check)|(?:npm|pnpm|yarn|bun) (?:run )?"
    r"(?:test|build)|(?:dotnet|flutter|mvn) (?:test|build)"
)
"""What any agent tries first."""


_BEHIND = re.compile(r"corepack |fnm |mise ")
_OF_THE_FORGE = ("gh ", "glab ", "mcp__")
"""What runs elsewhere is looked at after the work, and checks nothing before it."""


def _only_commands(
    project: str, others: Sequence[Rate], traces: Sequence[CountedSession]
) -> list[ChecksFinding]:
    """The commands and the logs of a project of whose checks there is nothing to tell."""
    logs = dict(_logs(traces))
    sessions = dict.fromkeys(session for rate in others for session in rate.sessions)
    sessions |= dict.fromkeys(one.id for one in traces if not logs.keys().isdisjoint(one.logs))
    shown = [(r.failed or "|" in r.form, r.after, len(r.sessions)) for r in others]
    telling = len(others) > 1 or any(tells or (after and n > _OFTEN) for tells, after, n in shown)
    often = telling and max(n for _, _, n in shown) > FEWEST
    if not project or not (often or max(logs.values(), default=0) > _OFTEN + 1):
        return []
    return [ChecksFinding(project=project, sessions=tuple(sessions), rates=())]


def _logs(traces: Iterable[CountedSession]) -> tuple[tuple[str, int], ...]:
    """The logs that more than two sessions looked into, the commonest first."""
    often = Counter(name for one in traces for name in one.logs)
    return tuple((name, count) for name, count in often.most_common(_OFTEN) if count > FEWEST)


def _checks(
    project: str, rates: dict[str, Rate], runs: Sequence[CountedRun], failing: Sequence[Trouble]
) -> list[ChecksFinding]:
    """The checks of a project, where there is more to say than any agent would try first."""
    own = [
        rate
        for rate in rates.values()
        if rate.work and len(rate.sessions) >= FEWEST
        and not rate.purpose.startswith(_OF_THE_FORGE)
        and not (rate.work == "build" and rate.form.endswith(" …"))  # of what, nobody could tell
    ]  # fmt: skip
    usual = _usual(own, runs if project else ())  # what is not a project's own may be the work
    if not usual:
        return []
    programs = {rate.purpose.split()[0] for rate in usual}
    near = tuple(
        t for t in failing
        if not t.standing and (t.work or (t.program in programs and t.mended))
    )  # fmt: skip
    usual = [_as_it_works(rate, near, runs) for rate in usual]
    told = {rate.purpose for rate in usual}
    rules = count_rules((run.session, run.rules) for run in runs if run.purpose in told)
    known = all(
        EVERYBODYS_CHECKS.fullmatch(rate.purpose) and not _BEHIND.match(rate.form) for rate in usual
    )
    if known and not near and not rules:
        return []
    sessions = tuple(dict.fromkeys(session for rate in usual for session in rate.sessions))
    checks = ChecksFinding(
        project=project, sessions=sessions, rates=tuple(usual), rules=rules, troubles=near
    )
    return [checks]


def _as_it_works(rate: Rate, failing: Iterable[Trouble], runs: Iterable[CountedRun]) -> Rate:
    """A check in the manner that works, where another is told to fail."""
    others = (t.other for t in failing if t.other and purpose_of(t.form.split()) == rate.purpose)
    form, worked, tried = next(others, ("", 0, 0))
    if not form or " && " in form:
        return rate
    begins = form.partition(" …")[0].partition("<")[0]
    own = dict.fromkeys(r.session for r in runs if begins in r.form and r.purpose == rate.purpose)
    sessions = tuple(own) or rate.sessions
    return msgspec.structs.replace(
        rate, form=form, runs=tried, failed=tried - worked, sessions=sessions
    )


_COMPANION = re.compile(
    r"\.(?:md|mdx|rst|txt|ya?ml|toml|json|lock)$|CHANGELOG|VERSION", re.IGNORECASE
)
_OF_ONE_TASK = re.compile(r"(?:^|/)[A-Za-z]{0,8}-?\d+[-_.]")
"""Files of one story or ticket: `specs/001-login/tasks.md`."""
_SELDOM = 10
"""Checks that not even one in so many sessions with changes ran are not the project's."""
_OFTEN = 3
"""A file that is changed in one of so many sessions, and in as many, belongs to much work."""


def _with_habits(
    found: ChecksFinding,
    runs: Sequence[CountedRun],
    traces: Sequence[CountedSession],
    rates: dict[str, Rate],
) -> ChecksFinding:
    """The checks together with what is done along with them: hooks that run them, files."""
    changed: Counter[str] = Counter()
    changing = 0
    for trace in traces:
        own = trace.changes.edited
        changing += bool(own)
        changed.update(p for p in own if _COMPANION.search(p) and not _OF_ONE_TASK.search(p))
    enough = max(_OFTEN, changing // _OFTEN)
    companions = tuple((path, n) for path, n in changed.most_common(3) if n >= enough)
    return msgspec.structs.replace(
        found,
        hooked=hook_of(runs),
        companions=companions,
        changing=changing,
        others=own_commands(rates.values()),
        logs=_logs(traces),
    )


def _habits(
    project: str, traces: Sequence[CountedSession], runs: Sequence[CountedRun]
) -> Iterator[HabitsFinding]:
    changes = [one.changes for one in traces]
    together, left, said, then = pairs(changes), left_out(changes), messages(changes), pushed(runs)
    shown = [one.sessions for one in (*together, *left, said, then) if one is not None]
    if sessions := tuple(dict.fromkeys(session for own in shown for session in own)):
        yield HabitsFinding(
            project=project, sessions=sessions, pairs=together, left_out=left, messages=said,
            pushed=then,
        )  # fmt: skip


_ORDER = ("format", "lint", "types", "build", "test", "check")
_SHARE, _SHARE_OF_TASKS = 5, 15
"""Checks that fewer run than one in so many sessions that check are not the project's; of tasks
that somebody wrote for it, fewer."""
_FIND_FAULT = ("format", "lint", "types", "check")


def _usual(rates: list[Rate], runs: Sequence[CountedRun]) -> list[Rate]:
    """The checks that are run often enough to be the project's own, in the order of their use.

    What mostly fails is one too where it finds fault with the code, and nothing else that does the
    same works.
    """
    most = max((len(rate.sessions) for rate in rates if rate.worked), default=0)
    often = [
        rate for rate in rates
        if len(rate.sessions) * (_SHARE_OF_TASKS if OWN_TASK.match(rate.purpose) else _SHARE)
        >= most
    ]  # fmt: skip
    kept = [rate for rate in often if rate.worked and rate.worked * 3 >= rate.runs]
    served = {rate.work for rate in kept}
    kept += [r for r in often if r.work not in served and r not in kept and _objects(r, runs)]
    return sorted(kept, key=lambda r: (_ORDER.index(r.work or "check"), -len(r.sessions)))


def _objects(rate: Rate, runs: Sequence[CountedRun]) -> bool:
    """Whether a check fails for what it finds in the code, and not for how it is called."""
    failed = [run for run in runs if run.purpose == rate.purpose and run.outcome.failed]
    found = [run for run in failed if run.rules or not CALLED_WRONGLY.search(run.error)]
    return rate.work in _FIND_FAULT and 2 * len(found) > len(failed)


def _other_troubles(
    project: str, failing: Sequence[Trouble], checks: Sequence[ChecksFinding]
) -> Iterator[TroubleFinding]:
    """What fails beside the checks, by program; one of the project's name is built there."""
    told = {id(t) for check in checks for t in check.troubles}
    own_name = repository_name(project).casefold()
    left = (t for t in failing if not ((t.is_absent and t.program == own_name) or id(t) in told))
    for program, own in by_program(failing, left).items():
        yield _trouble_finding(project, own, program)


def _trouble_finding(
    project: str, own: Sequence[Trouble], program: str, system: str = ""
) -> TroubleFinding:
    sessions = tuple(dict.fromkeys(session for trouble in own for session in trouble.sessions))
    return TroubleFinding(
        project=project, sessions=sessions, program=program, troubles=tuple(own), system=system
    )


# Procedures.

KNOWN_TO_ALL = {
    "git add", "git commit", "git push", "git checkout", "git switch", "git pull", "git fetch",
    "git stash", "git rebase", "git merge", "git restore", "git reset", "git rm", "git mv",
    "npm install", "pip install", "gh api", "gh pr view", "curl", "python", "node",
}  # fmt: skip
_LOOKING = re.compile(
    r"(?:^|_)(?:get|list|find|search|read|view|show|fetch|query|look|describe|think|calculate|count"
    r"|check|status|browser|navigate|click|hover|scroll|wait|snapshot|screenshot|ask|resolve|browse)",
    re.IGNORECASE,
)
_ONLY_LOOKS = re.compile(
    r"[ :-](?:list|get|view|show|status|describe|logs?|diff|watch|search|eval|whoami|login|help)\b"
    r"|[ -](?:version|help|ls)$|^command -v|^nl |^\S+ tasks\b"
    r"|^git (?:ls-\w+|merge-base|describe|rev-list|cat-file|show-ref|reflog|name-rev)\b"
    r"|^(?:\S+=\S* )*(?:ssh|curl|wget|base64|open|xdg-open|gh (?:auth|api|browse|run)|git fetch)\b"
)
_ASKS = re.compile(r"\((?:.*, )?query\b|--points-at|--list\b|--contains\b| -l\b")
"""Forms of calls and commands that only ask."""
_MOST_STEPS, _SHORTEST = 11, 3
_MANY_LED = 4
"""Sessions from which a tool that may only serve the agent is worth a procedure."""
_SHARED_WORK = re.compile(
    r"(?:^|_)(?:pull_request|release|deploy|publish|issue|merge)", re.IGNORECASE
)
_AFTER = 4
"""Steps after the goal that may belong to it."""
_HALF = 2


def _procedures(
    project: str, traces: list[CountedSession], failing: Sequence[Trouble]
) -> Iterator[ProcedureFinding]:
    """For each thing that is worth a procedure: what was done around it in most sessions."""
    goals: dict[str, _Led] = {}
    for trace in traces:
        way = [done for done in trace.done if is_step(done)]
        for goal, own in _episodes(way).items():
            goals.setdefault(goal, {})[trace.id] = own
    told: set[tuple[str, str]] = set()
    for goal, led in goals.items():
        steps = _steps_around(goal, led) if len(led) >= FEWEST else ()
        telling = [step for step in steps if step.key != goal and _is_telling(step, project)]
        if all((session, goal) in told for session in led):
            continue  # it is a step of another procedure
        tool = any(done.tool for ways in led.values() for way in ways for done in way
                   if done.key == goal)  # fmt: skip
        if tool and project and len(led) < _MANY_LED and not _SHARED_WORK.search(goal):
            continue  # how the agent works, perhaps
        few = len(led) > FEWEST or _CHANGES.match(goal)
        if len(steps) >= _SHORTEST and len(telling) >= (1 if few else FEWEST):
            told |= {(session, step.key) for session in led for step in steps if step.key != goal}
            yield ProcedureFinding(
                project=project,
                sessions=tuple(led),
                goal=goal,
                steps=steps,
                tool=tool,
                troubles=tuple(t for t in failing if t.program == goal),
            )


def _is_telling(step: Step, project: str) -> bool:
    """Whether a step is none that everybody knows, and no check, which is told with the checks."""
    looks = bool(project) and _LOOKING.search(step.key.rpartition("__")[2])
    return not looks and step.key not in KNOWN_TO_ALL and work_class(step.key) is None


def _episodes(way: list[Done]) -> dict[str, list[list[Done]]]:
    """For each goal what was done since it was last reached, and shortly after it; of what was
    done several times before it the last, of what was done only after it the first."""
    found: dict[str, list[list[Done]]] = {}
    told: dict[str, set[int]] = {}
    for at, goal in enumerate(way):
        if not is_goal(goal):
            continue
        own: dict[str, Done] = {}
        earlier = told.get(goal.key, set())
        for number in sorted(set(range(at + 1)) - earlier):
            own.pop(way[number].key, None)
            own[way[number].key] = way[number]
        told[goal.key] = set(range(at + 1))
        for number in range(at + 1, min(at + 1 + _AFTER, len(way))):
            if way[number].key == goal.key:
                break
            if way[number].key not in own:
                own[way[number].key] = way[number]
                told[goal.key].add(number)
        found.setdefault(goal.key, []).append(list(own.values()))
    return found


_Led = dict[str, list[list[Done]]]
"""By session: what was done around a goal, each time that it was reached."""


def _steps_around(goal: str, led: _Led) -> tuple[Step, ...]:
    """The goal and what stands around it in most of the sessions, in their order.

    Nothing where a step was mostly done in a way that skips a guard or destroys something: without
    it the others are not what was seen to work.
    """
    shown: dict[str, set[str]] = {}
    safe: dict[str, dict[str, list[str]]] = {}
    first: Counter[tuple[str, str]] = Counter()
    for session, ways in led.items():
        for way in ways:
            keys = [done.key for done in way if done.key == goal or _leads_to(done, goal, way)]
            first.update(combinations(keys, 2))
            for done in way:
                shown.setdefault(done.key, set()).update([session] if done.key in keys else ())
                if not is_unsafe(done.form):
                    safe.setdefault(done.key, {}).setdefault(session, []).append(done.form)
    kept = [key for key, by in shown.items() if len(by) * _HALF > len(led)]
    if any(len(safe.get(key, ())) * _HALF <= len(led) for key in kept):
        return ()
    forms = {key: [form for own in safe[key].values() for form in own] for key in kept}
    kept = [key for key in kept if key == goal or not all(map(_OF_A_MACHINE.search, forms[key]))]
    order = sorted(kept, key=lambda a: -sum(_comes_first(a, b, first) for b in kept))
    middle = order.index(goal)
    return tuple(
        Step(
            _common_form(key, forms[key]),
            len(safe[key]),
            key,
        )
        for key in order[max(0, middle - _MOST_STEPS) : middle + _AFTER]
    )


def _comes_first(one: str, other: str, first: Counter[tuple[str, str]]) -> int:
    """1 where `one` is done before `other`, -1 where after it, by most sessions; where these do not
    agree files are changed first, then checked."""
    before, after = first[one, other], first[other, one]
    if 3 * max(before, after) >= 2 * (before + after):
        return (before > after) - (before < after)
    places = [0 if key.startswith("edit ") else 1 if work_class(key) else 2 for key in (one, other)]
    return (places[0] < places[1]) - (places[0] > places[1])


def _leads_to(done: Done, goal: str, way: Sequence[Done]) -> bool:
    """Whether it changes or checks something; with tools, looking at what the goal is about is a
    check, done by the same server."""
    if not done.tool or not _LOOKING.search(done.key.rpartition("__")[2]):
        return True
    tool = any(other.tool for other in way if other.key == goal)
    return tool and done.key.rpartition("__")[0] == goal.rpartition("__")[0]


def is_step(done: Done) -> bool:
    """Whether it can lead to something: code is the work itself, and looking changes nothing."""
    if done.key.startswith("edit "):
        return bool(_COMPANION.search(done.key))
    begins = " ".join(done.form.split()[:4])
    if _CHANGES.match(done.key):
        return True
    return not _ASKS.search(done.form) and (done.tool or not _ONLY_LOOKS.search(begins))


def is_goal(done: Done) -> bool:
    """Whether it changes something that others see, and is no check and no daily chore."""
    if done.tool:
        return not _LOOKING.search(done.key)
    if done.key.startswith("edit "):
        return False
    lasting = _LASTING.search(done.key) or _CHANGES.match(done.key)
    return done.key not in KNOWN_TO_ALL and bool(lasting)


_CHANGES = re.compile(r"gh api ([a-z]+[A-Z]\w+)")
"""What is changed at the forge, where others see it."""
_OF_A_MACHINE = re.compile(r"(?:^|[\s=\"'])(?:~|/Users|/home|/tmp|/var|/private|[A-Za-z]:[\\/])\S")
_LASTING = re.compile(
    r"\b(?:tag|release|publish|deploy|push|apply|(?:pr|release) create|upload|migrate|migration"
    r"|rollout|submit|bump|(?:npm|pnpm|yarn|poetry|hatch) version|install-service|provision)\b",
    re.IGNORECASE,
)  # fmt: skip


def _common_form(key: str, forms: list[str]) -> str:
    """One form for several: the one that most have, with what differs as a variable."""
    common, count = Counter(forms).most_common(1)[0]
    if changes := _CHANGES.match(key):
        return f"gh api graphql -f query='mutation {{ {changes[1]} … }}' …"
    if 2 * count > len(forms):
        return common
    alike = len({len(form.split()) for form in forms}) == 1
    return abstracted(forms) if alike else usual_form(key, forms)
