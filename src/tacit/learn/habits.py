"""What is done along with the work of a project: how its changes are made, by counting.

Files that go together (counterparts under names that differ in one word, or files that are hardly
ever changed apart), changed files that are always left out of commits, how commit messages begin,
and commands of the project that are no checks; each with the sessions that show it. Checks,
failures and procedures are `findings.py`'s, `rates.py`'s and `troubles.py`'s.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import combinations, pairwise

import msgspec

from tacit.base.patterns import Alternatives
from tacit.base.secrets import clean
from tacit.learn.lint_rules import HOOKED, RuleCount, count_rules
from tacit.learn.rates import FEWEST, Rate, usual_form
from tacit.learn.runs import CountedRun, path_within
from tacit.traces.command_line import joined_commands
from tacit.traces.command_purposes import is_everybodys, purpose_of
from tacit.traces.observations import paths_of
from tacit.traces.outcomes import call_outcome
from tacit.traces.tool_calls import command_of
from tacit.traces.trace import ToolCall, Trace
from tacit.traces.typed_words import Typed, telling_words, typed


class Pair(msgspec.Struct, frozen=True):
    """Two files that are changed together."""

    one: str
    other: str
    """The one that is changed less often, or that the user had to name."""
    sessions: tuple[str, ...]
    of: int
    """Sessions in which the rarer was changed."""
    counterparts: bool
    """Whether their names differ in one word."""
    told: bool = False
    """Whether the user had to name `other`."""


class Hook(msgspec.Struct, frozen=True):
    """How often a commit or a push failed because a hook ran checks, and at what."""

    rate: Rate
    steps: tuple[str, ...]
    """What failed of that which it ran, the commonest first."""
    rules: tuple[RuleCount, ...]


class LeftOut(msgspec.Struct, frozen=True):
    """A file that was changed when something else was committed, and never was itself."""

    path: str
    sessions: tuple[str, ...]


class Messages(msgspec.Struct, frozen=True):
    """How commit messages begin."""

    shape: str
    kinds: tuple[str, ...]
    """What stands in its place in several sessions, the commonest first."""
    scopes: tuple[str, ...]
    """Likewise of scopes, where most messages have one."""
    example: str
    count: int
    of: int
    sessions: tuple[str, ...]
    most: bool = True
    """Whether most have one of `kinds`."""


class SessionChanges(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one session changed in its project, and what it committed."""

    session: str
    edited: tuple[str, ...] = ()
    """The files, by their paths within the project."""
    named: tuple[str, ...] = ()
    """Those that the user, after work had been done, said need the same."""
    commits: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()
    """For each commit: the changed files that git had named, and what was staged."""
    subjects: tuple[str, ...] = ()
    """The first lines of commit messages."""
    day: str = ""


def changes_of(trace: Trace, words: Sequence[Typed] | None = None) -> SessionChanges:
    """What a session changed and committed; `words` are what the user typed, where known."""
    edited = sorted(edited_files(trace))
    named = sorted(_named_later(typed(trace) if words is None else words, edited))
    commits, subjects = _commits(trace)
    day = str(trace.head.ended or trace.head.started or "")[:10]
    return SessionChanges(trace.id, tuple(edited), tuple(named), commits, subjects, day)


_MOST = 5
_MOSTLY = 3 / 4


def edited_files(trace: Trace) -> set[str]:
    """The files of the project that a session changed, by their paths within it."""
    calls = (call for call in trace.each_call() if call.kind in ("write", "edit"))
    done = (call for call in calls if call.finished and not call.failed and trace.project)
    paths = (path_within(path, trace.project) for call in done for path in paths_of(call))
    return {path for path in paths if path and not _AGENTS_OWN.search(path)}


# Where agents keep sessions, and what they noted for themselves.
_AGENTS_OWN = re.compile(
    r"(?:^|/)\.(?:claude/(?:projects|sessions|todos)|codex/sessions|gemini/tmp|qwen/(?:projects|tmp))/"
)


# Files that go together.

_WORDS = re.compile(r"[^\W_]+")
_TEST = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__|mocks?)(?=[/_.-]|$)", re.IGNORECASE)
_DAYS = 3
"""Days on which counterparts must be changed together, others on more: those of one day are of one
piece of work."""
_TOO_MANY = 40
"""A session that changes more files than this was a sweep, and says nothing of pairs."""


def pairs(sessions: Iterable[SessionChanges]) -> tuple[Pair, ...]:
    """Files that go together, those first that more sessions show."""
    by_file: dict[str, dict[str, None]] = {}
    together: dict[tuple[str, str], dict[str, None]] = {}
    named: set[str] = set()
    days: dict[str, str] = {}
    for one_session in sessions:
        own = one_session.edited
        days[one_session.session] = one_session.day or one_session.session
        named.update(one_session.named)
        for path in own:
            by_file.setdefault(path, {})[one_session.session] = None
        for pair in combinations(own, 2) if len(own) <= _TOO_MANY else ():
            together.setdefault(pair, {})[one_session.session] = None
    found = []
    partners: Counter[str] = Counter()
    for pair, shown in together.items():
        one, other = sorted(pair, key=lambda path: (path in named, -len(by_file[path])))
        alike = _counterparts(one, other)
        rarer, commoner = sorted((len(by_file[one]), len(by_file[other])))
        told = alike and other in named
        lasted = len({days[session] for session in shown})
        enough = (told or lasted >= _DAYS) and len(shown) >= _MOSTLY * rarer
        always = lasted > _DAYS and len(shown) > _DAYS + 1 and len(shown) >= _MOSTLY * commoner
        if enough and (alike or always):
            partners.update(() if alike else pair)
            if alike or not _same_subject(one, other):
                found.append(Pair(one, other, tuple(shown), rarer, alike, told))
    # A file that goes with several others was one piece of work with them, and belongs to none.
    partners.update(
        path for p in found if p.counterparts and not p.told for path in (p.one, p.other)
    )
    found = [p for p in found if p.told or max(partners[p.one], partners[p.other]) == 1]
    return tuple(sorted(found, key=lambda p: (-len(p.sessions), p.one, p.other))[:_MOST])


_NEARLY = 0.9


_TOO = Alternatives(
    r"\b(?:too|also|as\s+well|same|likewise|auch|ebenso|aussi|également|también|igual|anche|também"
    r"|тоже|также)\b|也|同样|も同|도\b",
    re.IGNORECASE,
)


def _named_later(typed: Iterable[Typed], edited: list[str]) -> set[str]:
    """The files that the user, after work had been done, said need the same, perhaps misspelt."""
    names = {os.path.basename(path): path for path in edited}
    said = [one.text for one in typed if one.worked and _TOO.search(one.text)]
    words = [word.strip("`'\".,:;?!()@") for text in said for word in text.split() if "." in word]
    near = (get_close_matches(os.path.basename(word), names, 1, _NEARLY) for word in words)
    return {names[name] for found in near for name in found}


def _counterparts(one: str, other: str) -> bool:
    """Whether two paths are the same but for one word, with more of a name in common than that
    they are tests."""
    a, b = _WORDS.findall(one), _WORDS.findall(other)
    if one.partition(".")[0] == other.partition(".")[0]:
        return False  # parts of one module: `x.service`, `x.controller`
    if len(a) != len(b) or bool(_TEST.search(one)) != bool(_TEST.search(other)):
        return False
    differ = [at for at, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
    if len(differ) != 1 or a[differ[0]].isdigit() or b[differ[0]].isdigit():
        return False
    name = len(_WORDS.findall(os.path.dirname(one)))
    stem = [at for at in range(name, len(a) - 1) if at != differ[0]]
    return any(not _TEST.fullmatch(a[at]) for at in stem)


def _same_subject(one: str, other: str) -> bool:
    """Whether nobody needs to be told: a file and its test, or its neighbour of the same stem."""
    if bool(_TEST.search(one)) != bool(_TEST.search(other)):
        return True
    return os.path.dirname(one) == os.path.dirname(other)


# What stays out of commits.

_STATUS = re.compile(
    r"^\s+(?:modified|new file):\s+(\S.*)$|^(?: M|M |MM|\?\?|A ) (\S.*)$", re.MULTILINE
)
"""Files that are there; one that was deleted is left out only until that is committed."""
_DATED = re.compile(r"\d{4}-?\d\d-?\d\d")
_UNTRACKED = re.compile(r"^Untracked files:\n(?:\s+\(use .*\n)?((?:\t.+\n?)+)", re.MULTILINE)
_NUMBER = re.compile(r"\d+(?:[-_:T.]\d+)*")
_EVERYTHING = {".", "-A", "--all", "-u", "--update", ":/", "*"}


def left_out(sessions: Iterable[SessionChanges]) -> tuple[LeftOut, ...]:
    """Files that were seen changed at a commit in several sessions, not all of one day, and went
    into none."""
    left: dict[str, dict[str, None]] = {}
    added: set[str] = set()
    days: dict[str, str] = {}
    for one_session in sessions:
        days[one_session.session] = one_session.day or one_session.session
        for pending, staged in one_session.commits:
            added |= staged
            for path in pending - staged if staged else ():
                left.setdefault(path, {})[one_session.session] = None
    left = {path: own for path, own in left.items() if not any(_covers(n, path) for n in added)}
    alike = Counter(_NUMBER.sub("…", path) for path in left)
    for path in list(left):  # of many that differ in a day or a number, one
        if alike[one := _NUMBER.sub("…", path)] > FEWEST:
            left.setdefault(one, {}).update(left.pop(path))
    found = [
        LeftOut(clean(path), tuple(shown))
        for path, shown in left.items()
        if len(shown) > FEWEST
        and len({days[session] for session in shown}) >= FEWEST
        and not _DATED.search(path)
    ]
    return tuple(sorted(found, key=lambda one: (-len(one.sessions), one.path))[:_MOST])


def _covers(staged: str, path: str) -> bool:
    """Whether staging `staged` stages `path`."""
    return staged in _EVERYTHING or path == staged or path.startswith(staged.rstrip("/") + "/")


def _commits(
    trace: Trace,
) -> tuple[tuple[tuple[frozenset[str], frozenset[str]], ...], tuple[str, ...]]:
    """The commits of a session, as `SessionChanges` has them, and how their messages begin."""
    pending: set[str] = set()
    staged: set[str] = set()
    made: list[tuple[frozenset[str], frozenset[str]]] = []
    subjects: list[str] = []
    for call in trace.each_call():
        for name, words in _git_parts(call):
            if name == "git add":
                staged |= {word for word in words if not word.startswith("-")}
                staged |= _EVERYTHING.intersection(words)
            elif name == "git commit":
                every = any(re.fullmatch(r"-[a-z]*a[a-z]*|--all", word) for word in words)
                made.append((frozenset(pending), frozenset(staged | ({"."} if every else set()))))
                pending, staged = set(), set()
                subjects += [subject] if (subject := _subject(words, command_of(call))) else []
        if "git" in command_of(call) and "status" in command_of(call):
            pending = _pending(call.result)
    return tuple(made), tuple(subjects)


def _git_parts(call: ToolCall) -> Iterator[tuple[str, list[str]]]:
    """The commands of git in a call that worked, each with its words behind the name."""
    if call.kind != "shell" or "git" not in command_of(call):
        return
    named = ((purpose_of(part.words), part.words) for part in joined_commands(command_of(call)))
    staging = [(name, words) for name, words in named if name in ("git add", "git commit")]
    for name, words in staging if staging and call_outcome(call).state == "worked" else ():
        verb = name.removeprefix("git ")
        if verb in words:  # not within another's quotes
            yield name, list(words[words.index(verb) + 1 :])


def _pending(printed: str) -> set[str]:
    named = {(long or short).strip() for long, short in _STATUS.findall(printed)}
    for block in _UNTRACKED.findall(printed):
        named |= {line.strip() for line in block.splitlines()}
    named = {re.sub(r" \((?:modified|new|untracked) [^)]*\)$", "", name) for name in named}
    return {n for n in named if n and not n.endswith("/") and not _AGENTS_OWN.search(n)}


# Commit messages.

_SHAPES = (
    ("type: subject", re.compile(r"([A-Za-z][A-Za-z-]{1,15})(?:\([^)]{1,40}\))?!?: \S")),
    ("[tag] subject", re.compile(r"\[([^\]]{1,20})\] ?\S")),
    ("TICKET-1 subject", re.compile(r"([A-Z]{2,10})-\d+\b")),
    ("an emoji and the subject", re.compile(
        r"(:[a-z_]+:|[\u2600-\u27bf\U0001f300-\U0001faff]\ufe0f?) ?\S"
    )),
)  # fmt: skip
_SCOPE = re.compile(r"^[a-z]{2,10}\(([\w./-]{1,30})\)!?: ")
_TYPES = {
    "build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test",
}  # fmt: skip
_FEWEST_COMMITS = 5
_HEREDOC = re.compile(r"\$\(cat <<-?\s*[\"']?(\w+)[\"']?\n\s*(.+)")


def messages(changes: Iterable[SessionChanges]) -> Messages | None:
    """How the commit messages of a project begin, where nearly all begin alike."""
    subjects = [(subject, one.session) for one in changes for subject in one.subjects]
    for shape, pattern in _SHAPES:
        own = [
            (found[1], subject, s) for subject, s in subjects if (found := pattern.match(subject))
        ]
        sessions = tuple(dict.fromkeys(session for _, _, session in own))
        if (
            len(own) < _FEWEST_COMMITS
            or len(own) < _MOSTLY * len(subjects)
            or len(sessions) < FEWEST
        ):
            continue
        scoped = [
            (scope[1], subject, s) for _, subject, s in own if (scope := _SCOPE.match(subject))
        ]
        made = Counter(session for _, _, session in own)
        parts = sum(1 / made[session] for _, _, session in scoped)
        most = 3 * len(scoped) >= 2 * len(subjects) and 2 * parts > len(made)  # also by session
        scoped = scoped if most else []
        begins = "type(scope): subject" if scoped else shape
        plain = [subject for _, subject, _ in own if not _SCOPE.match(subject)]
        shown = [subject for _, subject, _ in scoped] or plain
        kinds, scopes = _in_several(own), _in_several(scoped)
        if 2 * sum(kind.casefold() in _TYPES for kind, _, _ in own) < len(own):
            begins = begins.replace("type", "part")
            often = Counter(kind.casefold() for kind, _, _ in own).most_common(_MOST)
            kinds = tuple(clean(kind) for kind, times in often if times > FEWEST)
            shown = [one for one in shown if one.partition(":")[0] not in _TYPES] or shown
        example = clean(min(shown, key=len))
        covered = sum(kind.casefold() in kinds for kind, _, _ in own)
        count = len(scoped or own)
        return Messages(
            begins, kinds, scopes, example, count, len(subjects), sessions, 2 * covered > len(own)
        )
    return None


def _in_several(found: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """What stands in messages of several sessions, that of most sessions first; no numbers."""
    shown: dict[str, list[str]] = {}
    for word, _, session in found:
        shown.setdefault(word.casefold(), []).append(session)
    kept = [w for w, by in shown.items() if len(set(by)) >= FEWEST and not w[:1].isdigit()]
    often = sorted(kept, key=lambda word: (-len(set(shown[word])), -len(shown[word]), word))
    return tuple(map(clean, often[:_MOST]))


def _subject(words: Sequence[str], command: str) -> str:
    """The first line of the message that a commit was given on the command line."""
    given = next(
        (value for flag, value in pairwise(words)
         if re.fullmatch(r"-[a-z]*m|--message", flag)), "",
    )  # fmt: skip
    if given.startswith("$(") and (found := _HEREDOC.search(command)):
        given = found[2]
    return given.strip().partition("\n")[0][:200]


# What follows a push.

_FOLLOWS = re.compile(
    r"(?:gh pr|glab mr|hub pull-request)(?: create)?$|gh run (?:list|watch|view)$|gh pr checks$"
    r"|glab ci \S+$|(?!release)\S+\.(?:sh|ps1)$"
    r"|(?:vercel|netlify|wrangler|fly|flyctl) \S*deploy\S*$"
)
_NEXT = 4
"""Runs behind a push that may belong to it."""


class Pushed(msgspec.Struct, frozen=True):
    """What is done after a push: each with the sessions, of those that pushed."""

    then: tuple[tuple[str, int], ...]
    sessions: tuple[str, ...]


def pushed(runs: Iterable[CountedRun]) -> Pushed | None:
    """What is done right after a push in at least half of the sessions that pushed."""
    by_session: dict[str, list[CountedRun]] = {}
    for run in runs:
        by_session.setdefault(run.session, []).append(run)
    then: dict[str, list[CountedRun]] = {}
    pushing = []
    for session, own in by_session.items():
        done = [r.purpose == "git push" and r.outcome.state == "worked" for r in own]
        pushing += [session] if any(done) else []
        near = (run for at, run in enumerate(own) if any(done[max(0, at - _NEXT) : at]))
        for run in near:
            if _FOLLOWS.match(run.purpose) and not run.outcome.failed:
                then.setdefault(re.sub(r"^(gh run) .*", r"\1", run.purpose), []).append(run)
    counts = {name: len({run.session for run in own}) for name, own in then.items()}
    often = [name for name, n in counts.items() if n > FEWEST and 2 * n >= len(pushing)]
    found = [(_form(then[name]), counts[name]) for name in often]
    found.sort(key=lambda one: -one[1])
    return Pushed(tuple(found), tuple(pushing)) if found else None


def _form(runs: Sequence[CountedRun]) -> str:
    """How what most of `runs` are for is mostly typed."""
    purpose = Counter(run.purpose for run in runs).most_common(1)[0][0]
    return usual_form(purpose, [run.form for run in runs if run.purpose == purpose])


# Commands of the project that are no checks.

_RUNNERS = re.compile(
    r"^(?:(?:npm|pnpm|yarn|bun|mise|poe|pdm|hatch|uv|rye|cargo|composer) run "
    r"(?!(?:dev|start|serve|preview)$)"
    r"|(?:pnpm|yarn) (?!add|ci|create|dedupe|dev\b|dlx|exec|i\b|init|install|link|list|ls|outdated"
    r"|remove|start\b|up|why)\S"
    r"|(?:make|just|task|deno task|rake|nx|turbo|invoke|tox|nox) \S"
    r"|(?:docker compose|docker-compose) (?:up|run|exec)\b|\S*\.sh\b|(?:bin|scripts?)/\S)"
)  # fmt: skip


_CUT = re.compile(r"\.sh …$")
"""A script of which nobody could tell what it is given: that may be what makes it harmless."""


def own_commands(rates: Iterable[Rate]) -> tuple[Rate, ...]:
    """Tasks, scripts and programs of the project, beside the checks, that worked in several
    sessions."""
    others = [rate for rate in rates if rate.work is None and len(rate.sessions) >= FEWEST]
    well = (rate for rate in others if rate.worked >= max(FEWEST, rate.failed))
    own = [rate for rate in well if _RUNNERS.match(rate.purpose) and not _CUT.search(rate.form)]
    found = sorted([*own, *_own_programs(others)], key=lambda rate: -len(rate.sessions))
    return tuple(found[:_MOST])


_NAME = re.compile(r"[a-z][a-z0-9._-]*(?: [a-z][a-z0-9:_-]*)+")


def _own_programs(rates: Iterable[Rate]) -> Iterator[Rate]:
    """Programs that not everybody has, such as one for tickets, with what they are told to do."""
    by_program: dict[str, list[Rate]] = {}
    for rate in rates:
        program, _, told = rate.purpose.partition(" ")
        plain = _NAME.fullmatch(rate.purpose) and len(telling_words(rate.purpose)) > 1  # no prose
        if told and plain and rate.worked and not is_everybodys(program):
            by_program.setdefault(program, []).append(rate)
    for program, own in by_program.items():
        sessions = tuple(dict.fromkeys(session for rate in own for session in rate.sessions))
        often = (one for one in own if len(one.sessions) > FEWEST and _does(one))
        looks = all(_LOOKS.search(one.purpose) for one in own)
        if telling := [one for one in often if one.after or "|" in one.form]:
            yield from telling
        elif len(own) >= FEWEST and len(sessions) > FEWEST and not looks:
            most = sorted(own, key=lambda rate: -len(rate.sessions))[: _MOST + 1]
            told = "|".join(sorted(rate.purpose.partition(" ")[2] for rate in most))
            runs, failed = sum(rate.runs for rate in own), sum(rate.failed for rate in own)
            yield Rate(program, f"{program} {told}", runs, failed, sessions)


def _does(rate: Rate) -> bool:
    return not _LOOKS.search(rate.purpose) and 3 * rate.failed <= rate.runs


_LOOKS = re.compile(
    r" (?:status|list|ls|show|view|logs?|info|help|version|eval|search|get|describe|diff|watch"
    r"|auth|login|logout|whoami|models)\b| (?:dev|start|serve|preview)$"
)


_MOST_NAMED = 4


def hook_of(runs: Sequence[CountedRun]) -> Hook | None:
    """The hook at a commit or a push, whichever did more, that runs checks, where several sessions
    show it."""
    found = []
    for purpose in HOOKED:
        tried = [run for run in runs if run.purpose == purpose and run.outcome.state != "unclear"]
        failed = [run for run in tried if run.hooked == "checks"]
        sessions = tuple(dict.fromkeys(run.session for run in failed))
        if len(sessions) >= FEWEST:
            steps = Counter(step for run in failed for step in run.steps).most_common(_MOST_NAMED)
            rules = count_rules(((run.session, run.rules) for run in failed), fewest=1)
            rate = Rate(purpose, purpose, len(tried), len(failed), sessions)
            found.append(Hook(rate, tuple(step for step, _ in steps), rules[:_MOST_NAMED]))
    return max(found, key=lambda hook: hook.rate.failed, default=None)
