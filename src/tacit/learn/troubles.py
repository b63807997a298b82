"""What fails as it is called, by counting, and what then worked or why nothing did.

A failure says something about how a program is called, and so is worth telling, when it is about
the call and not about the work: the program is missing, an option is unknown, a task is not there;
or another form of the call worked with nothing changed in between; or the program fails nearly
always. It is told by the program and the error, over all the ways in which it was typed; where one
manner fails and another works, that is `manners.py`'s. What mends it is what then worked for the
same purpose or class (see `observations.recoveries`). What lies in how the project is set up, a
hook that stops commits or files that git ignores, is told without a mend, and never with a way
around it; what lies in the machine, over all projects that show it.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from tacit.base.secrets import clean
from tacit.learn.counted_session import CountedSession, ToolUse, is_home, repository_name, system_of
from tacit.learn.lint_rules import HOOKED
from tacit.learn.manners import by_manner
from tacit.learn.rates import (
    FEWEST,
    SANDBOX,
    SHELL,
    TOOL,
    Rate,
    Trouble,
    error_signature,
    program_name,
    usual_form,
)
from tacit.learn.runs import ESCALATED, CountedRun
from tacit.learn.shells import ASKS_AT_TIMES, SHELL_TAKES
from tacit.traces.observations import is_unsafe
from tacit.traces.outcomes import CALLED_WRONGLY, SANDBOXED, absent_program

_ALWAYS = 0.75
"""Of the runs of a purpose that fail, from which it is said to fail nearly always."""
_MANY = 4
_SELDOM_GONE = 3
"""A program that is there in so many times the sessions where it is missing is not missing."""
_SELDOM = 10
"""What fails less often than once in so many runs is an accident."""


def troubles(sessions: Sequence[CountedSession], rates: dict[str, Rate]) -> list[Trouble]:
    """What fails as it is called, in at least two sessions, with what then worked."""
    runs = [run for session in sessions for run in session.runs]
    hooks = {run.error for run in runs if run.hooked == "itself"}
    ran = {session.id: session.ran for session in sessions}
    sandbox = _in_sandbox(runs)
    held = {id(run) for run in runs if sandbox and _is_held(run)}
    manners, told = by_manner([run for run in runs if id(run) not in held])
    left = [run for run in runs if id(run) not in told | held]
    of_host = (*_of_shell(runs, ran), *_of_tools(sessions))
    return [*sandbox, *of_host, *manners, *_of_calls(left, rates, ran, hooks)]


def machine_troubles(projects: Mapping[str, Sequence[CountedSession]]) -> dict[str, list[Trouble]]:
    """For each system: what is not there or not taken, as several projects show, or a home."""
    found: dict[str, list[Trouble]] = {}
    named = {repository_name(project).casefold() for project in projects}
    for system in dict.fromkeys(map(system_of, filter(None, projects))):
        own = {p: some for p, some in projects.items() if p and system_of(p) == system}
        place = {one.id: one.id if is_home(p) else p for p, some in own.items() for one in some}
        every = (session for some in own.values() for session in some)
        sessions = sorted(every, key=lambda one: (one.ended, one.id))
        left: list[CountedRun] = []
        for some in own.values():
            runs = [run for session in some for run in session.runs]
            told = by_manner(runs)[1] if any(absent_program(run.error) for run in runs) else ()
            left += [run for run in runs if id(run) not in told]
        ran = {session.id: session.ran for session in sessions}
        missing = (t for t in _of_calls(left, {}, ran) if t.of_machine and t.program not in named)
        lacks = (*_of_shell(left, ran), *_of_tools(sessions), *missing)
        if spread := [t for t in lacks if len({place[s] for s in t.sessions}) > 1]:
            found[system] = spread
    return found


def _of_calls(
    runs: Sequence[CountedRun],
    rates: dict[str, Rate],
    ran: Mapping[str, Collection[str]],
    hooks: Collection[str] = (),
) -> Iterator[Trouble]:
    """What fails alike; `ran` has the programs that each session found there."""
    tries = Counter(run.purpose for run in runs)
    for (program, signature), own in _failures_alike(runs, rates, hooks).items():
        sessions = tuple(dict.fromkeys(run.session for run in own))
        lacks = signature is None or _NO_CONTAINER.search(own[0].error)
        form, by = _in_its_place(own, runs) if lacks else ("", 0)
        having = [s for s in ran if program in ran[s] and s not in sessions]
        there = len(having) if signature is None else 0
        since = there and [s for s in ran if s in having or s in sessions][-1] in having
        if there > _SELDOM_GONE * len(sessions) or (
            signature is None
            and not (form or any(run.instead for run in own))
            and (since or _SELDOM_GONE * there > len(sessions) or _works_elsewhere(program, runs))
        ):
            continue  # it is missing in another shell, or on another machine, or was installed
        typed = any(run.purpose and _is_typed(run, program) for run in own)
        if max(len(sessions), by * typed) < FEWEST:
            continue
        tried = sum(tries[purpose] for purpose in {run.purpose for run in own})
        if signature is None:  # it may be there on another machine
            purposes = {run.purpose for run in own} - {""}
            tried = sum(run.purpose in purposes and run.session in sessions for run in runs)
            tried = len(own) if all(_is_typed(run, program) for run in own) else tried
        standing = _is_standing(own, rates, sessions) or _against(own[0], hooks)
        trouble = _trouble(program, own, tried, standing=standing)
        if form and (not trouble.instead or by > trouble.instead[0][1]):
            trouble = msgspec.structs.replace(trouble, instead=((form, by),))
        trouble = msgspec.structs.replace(trouble, there=there)
        tells = signature is None or trouble.mended or standing
        tells = tells or bool(CALLED_WRONGLY.search(trouble.error))
        if own[0].tool or (tells and trouble.failed * _SELDOM >= trouble.runs):
            yield trouble


def _is_typed(run: CountedRun, program: str) -> bool:
    return run.form.partition(" ")[0] == program


def _works_elsewhere(program: str, runs: Sequence[CountedRun]) -> bool:
    worked = (run.form for run in runs if run.outcome.state == "worked")
    return any(form.partition(" ")[0].rpartition("/")[2] == program for form in worked)


def _failures_alike(
    runs: Sequence[CountedRun], rates: dict[str, Rate], hooks: Collection[str]
) -> dict[tuple[str, str | None], list[CountedRun]]:
    """The failures that are about the call, by program and error; None for the error where the
    program is nowhere there."""
    groups: dict[tuple[str, str | None], list[CountedRun]] = {}
    present = {
        (run.session, run.form.partition(" ")[0]) for run in runs if run.outcome.state == "worked"
    }
    for run in runs:
        if run.outcome.state != "failed" or run.rules or _is_answer(run) or run.form in SHELL_TAKES:
            continue  # what names rules was called well, and found fault with the code
        another_form = run.by_form and run.work in (None, "build")
        absent = absent_program(run.error)
        about_the_call = absent or CALLED_WRONGLY.search(run.error) or another_form
        own = run.hooked == "itself" or _IGNORED.search(run.error) or _against(run, hooks)
        if run.tool or about_the_call or own or _fails_always(run.purpose, rates):
            gone = absent if (run.session, absent) not in present else ""
            program = run.purpose if own else program_name(run.purpose)
            if program.startswith("git ") and _OF_REMOTE.search(run.error):
                program = "git"  # whatever it was to do there
            key = (gone, None) if gone else (program, error_signature(run.error))
            groups.setdefault(key, []).append(run)
    return groups


_OF_REMOTE = re.compile(
    r"Permission denied \(publickey|Could not read from remote|Authentication failed for"
)
_ASKED = re.compile(
    r"(?:gh|glab|bd|docker|kubectl) .*\b(?:view|show|status|inspect|get|checks)\b"
    r"|[a-z][\w-]* (?:[a-z]+ )?(?:find|search|info|show|view|which|locate|query)\b"
)
_NOT_THERE = re.compile(
    r"(?i)not found|does not exist|no (?:such|open|pull|issue|default)|could not (?:find|resolve)"
)


def _is_answer(run: CountedRun) -> bool:
    """Whether it was asked for something, and the answer is that there is none."""
    asked = _ASKED.match(" ".join(run.form.split()[:4])) and not absent_program(run.error)
    return bool(asked and _NOT_THERE.search(run.error))


MISSING = "missing programs"


def by_program(failing: Sequence[Trouble], left: Iterable[Trouble]) -> dict[str, list[Trouble]]:
    """Those of `failing` that are `left` to tell and tell something, by what they are told under:
    the machine's together; what was tried against a hook's failure, and failed as well, with it."""
    found: dict[str, list[Trouble]] = {}
    hooks = [t for t in failing if t.standing and t.program in HOOKED]
    for trouble in left:
        if not (trouble.mended or trouble.standing or trouble.is_absent):
            continue
        name = trouble.program.partition(" ")[0]
        tried = name != "git" and not trouble.mended
        against = (t.program for t in hooks if tried and name in t.error)
        missing = trouble.of_machine and trouble.program != SANDBOX
        under = MISSING if missing else next(against, trouble.program)
        found.setdefault(under, []).append(trouble)
    return found


# What the host's sandbox does not let pass.


def _is_held(run: CountedRun) -> bool:
    failed = run.outcome.failed and ESCALATED not in run.manner
    return bool(failed and run.purpose and not run.tool and SANDBOXED.search(run.error))


_REACHES_OUT = re.compile(
    r"(?:curl|wget|ping|ssh)\b|git (?:fetch|pull|push|clone|submodule)\b|gh \w"
    r"|\S+ (?:install|add|ci|update|upgrade|download|audit|publish|login)\b"
)
"""What is for the network by its nature."""
_NO_NETWORK = re.compile(
    r"could not resolve|error connecting|EAI_AGAIN|network is unreachable|ENOTFOUND", re.IGNORECASE
)


def _in_sandbox(runs: Sequence[CountedRun]) -> list[Trouble]:
    """What fails in the host's sandbox and works outside of it, all in one."""
    outside = [run for run in runs if ESCALATED in run.manner and run.outcome.state != "refused"]
    worked = [run for run in outside if run.outcome.state == "worked"]
    purposes = {run.purpose for run in worked}
    held = [run for run in runs if _is_held(run) and run.purpose in purposes]
    sessions = tuple(dict.fromkeys(run.session for run in held))
    if len(sessions) < FEWEST:
        return []
    names = Counter(run.purpose for run in held)
    if all(_REACHES_OUT.match(r.purpose) and _NO_NETWORK.search(r.error) for r in held):
        return []  # every host tells its agent of that
    known = [r for r in outside if r.purpose in names and r.outcome.state in ("worked", "failed")]
    tried = [r for r in runs if r.purpose in names and ESCALATED not in r.manner]
    tried = [r for r in tried if r.outcome.state in ("worked", "failed")]
    error = Counter(run.error for run in held).most_common(1)[0][0]
    form = ", ".join(clean(name) for name, _ in names.most_common(4))
    well = sum(run.outcome.state == "worked" for run in known)
    if 3 * well < 2 * len(known) or len(held) * _SELDOM < len(tried):
        return []
    other = (ESCALATED, well, len(known))
    return [Trouble(SANDBOX, form, clean(error), len(held), len(tried), sessions, other=other)]


# What the shell does not take.


def _of_shell(runs: Sequence[CountedRun], ran: Mapping[str, Collection[str]]) -> Iterator[Trouble]:
    """What the shell of that system does not take, where it was tried three times, in two sessions
    or as many turns, and no more show that it was taken; `ran` has the programs that each ran."""
    for name, (_, works) in SHELL_TAKES.items():
        own = [run for run in runs if run.form == name]
        sessions = tuple(dict.fromkeys(run.session for run in own))
        other = [s for s in ran if ASKS_AT_TIMES.get(name) in ran[s] and s not in sessions]
        times = own if len(sessions) >= FEWEST else {run.turn for run in own}
        if len(times) > FEWEST and len(other) < len(sessions):
            error = Counter(run.error for run in own).most_common(1)[0][0]
            instead = ((works, len(sessions)),)
            yield Trouble(SHELL, name, clean(error), len(own), len(own), sessions, instead)


# What the host's own tools do not do.

_UNUSABLE = 4
"""A tool that fails in one way in one of so many calls, where it does, is not usable as it is."""
_OF_THE_CALL = re.compile(
    rf"{_NOT_THERE.pattern}|unknown skill|InputValidation|required parameter|invalid (?:in|arg)"
    r"|status code|timed? ?out|rate limit|overloaded|user (?:chose|declined|rejected|cancel)"
)
"""What a tool says of what it was given, of another machine, or of the user's answer."""


def _of_tools(sessions: Iterable[CountedSession]) -> Iterator[Trouble]:
    """Tools of the host that fail in one way again and again, in more than two sessions."""
    alike: dict[tuple[str, str], list[tuple[str, ToolUse]]] = {}
    for session in sessions:
        for use in session.tools:
            key = use.name, error_signature(use.error.partition("\n")[0])
            alike.setdefault(key, []).append((session.id, use))
    for (name, _), uses in alike.items():
        each = dict(uses)
        failed, calls = sum(u.failed for _, u in uses), sum(u.calls for u in each.values())
        error, often = uses[-1][1].error, failed * _UNUSABLE >= calls
        if len(each) > FEWEST and often and not _OF_THE_CALL.search(error):
            yield Trouble(TOOL, name, clean(error), failed, calls, tuple(each), standing=True)


_RUNS_OTHERS = (
    r"^(?:\S+=\S* )*(?:docker|podman|kubectl|nix|nix-shell|devbox|direnv|mise|asdf|distrobox"
    r"|flatpak|npx|bunx|pnpm|yarn|bun|uvx|uv|poetry|pipx|bundle|python\d?|ssh|wsl)"
)
"""Programs that run another, which need not be installed where they are."""
_IGNORED = re.compile(r"^The following paths are ignored by")


def _against(run: CountedRun, hooks: Iterable[str]) -> bool:
    """Whether a command is of the program that a hook's complaint names: tried against it."""
    name = run.purpose.partition(" ")[0]
    return name != "git" and any(re.search(rf"\b{re.escape(name)}\b", error) for error in hooks)


_OF_THE_MOMENT = re.compile(
    r"\b40[13]\b|unauthori[sz]ed|forbidden|\blog ?in\b|token|credential|quota|limit|network|connect"
    r"|time[d ]?out|^usage\b",
    re.IGNORECASE,
)
_NEVER = 3
"""Sessions from which what has never worked is told."""


def _is_standing(
    own: Sequence[CountedRun], rates: dict[str, Rate], sessions: Sequence[str]
) -> bool:
    run = own[0]
    rate = rates.get(run.purpose)
    never = rate is not None and run.work is None and not rate.worked and len(sessions) >= _NEVER
    never = never and not run.tool and not _OF_THE_MOMENT.search(run.error)
    return run.hooked == "itself" or bool(_IGNORED.search(run.error)) or never


_NO_CONTAINER = re.compile(r"no such container", re.IGNORECASE)
_SIBLINGS = {
    "pnpm": "npm|yarn|bun", "yarn": "npm|pnpm|bun", "npm": "pnpm|yarn|bun", "docker-compose":
    "docker compose", "pip": r"pip3|python3? -m pip|uv pip", "python": r"python3(?:\.\d+)?",
    "python3": "python|py", "fd": "fdfind", "bat": "batcat", "pip3": r"python3? -m pip|uv pip|pip",
}  # fmt: skip
"""What does the same work as a program that is not there."""


def _in_its_place(missing: Sequence[CountedRun], runs: Sequence[CountedRun]) -> tuple[str, int]:
    """For a program that is not there: the command by which it was run all the same, within another
    (`docker exec db psql`).

    With the number of sessions that did so: that a program is missing is no accident of one.
    """
    program = absent_program(missing[0].error) or missing[0].form.split()[-1]
    worked = [run for run in runs if run.outcome.state == "worked"]
    plain, other = re.escape(program), _SIBLINGS.get(program, rf"{re.escape(program)}\d")
    name = re.compile(
        rf"{_RUNS_OTHERS}\b.*?(?<![\w./-]){plain}(?![\w.-])|^\S+[\\/]{plain}(?:\.\w{{2,4}})?(?= |$)"
        rf"|^(?:{other})(?= |$)|^(?:\w+ )?{plain}\.(?:py|[cm]?[jt]s|sh|rb|ps1)(?= |$)"
    )
    if _NO_CONTAINER.search(missing[0].error):
        given = (word for word in missing[0].form.split()[2:] if word[0] != "-")
        inside = re.escape(next(islice(given, 1, 2), "sh"))
        name = re.compile(rf"^(?:docker|podman) exec \S+ {inside}(?= |$)")
    by_form: dict[str, list[CountedRun]] = {}
    for run in worked:
        if (way := name.search(run.form)) and not _ONLY_ASKS.search(run.form):
            by_form.setdefault(way[0], []).append(run)
    ways = {form: {run.session for run in own} for form, own in by_form.items()}
    best = max(ways, key=lambda form: len(ways[form]), default="")
    if not best:
        return "", 0
    purposes = {run.purpose for run in by_form[best]}
    one = (
        usual_form(purposes.pop(), [run.form for run in by_form[best]])
        if len(purposes) == 1
        else ""
    )
    alone = not any(run.purpose for run in by_form[best])
    return one if best in one else clean(best) + ("" if alone else " …"), len(ways[best])


_ONLY_ASKS = re.compile(r"^(?:\./)?(?:target|build|out|dist)/|\b(?:which|command -v|type) ")
"""Where builds put what is worked on, and words by which one only asks whether it is there."""


def _fails_always(purpose: str, rates: dict[str, Rate]) -> bool:
    rate = rates.get(purpose)
    return rate is not None and rate.runs >= _MANY and rate.failed >= _ALWAYS * rate.runs


def _trouble(program: str, own: list[CountedRun], tried: int, *, standing: bool) -> Trouble:
    followed: dict[str, set[str]] = {}
    failed = {run.form for run in own}
    for run in own:
        for form in run.instead:
            if not _BUILT.match(form) and form not in failed and not is_unsafe(form):
                followed.setdefault(form, set()).add(run.session)
    instead = sorted(((form, len(by)) for form, by in followed.items()), key=lambda item: -item[1])
    often = [one for one in instead if one[1] >= FEWEST]
    if often or standing:  # what differs from one session to the next mends nothing that lasts
        instead = often
    form = Counter(run.form for run in own).most_common(1)[0][0]
    absent = absent_program(own[0].error) == program and program in form.split()
    form = program if absent else form  # what it is told to do is no part of that
    error = Counter(run.error for run in own).most_common(1)[0][0]
    sessions = tuple(dict.fromkeys(run.session for run in own))
    kept = tuple(instead[: 3 if often else FEWEST])
    return Trouble(program, clean(form), clean(error), len(own), tried, sessions, kept, standing)


_BUILT = re.compile(r"(?:\./)?(?:target|build|out|dist)/")
"""Where builds put the program that is worked on: to try it mends nothing."""
