"""How often commands worked and failed, over the runs of one project whose outcome is known, in
which form they are mostly typed, and what a failure of one is told by.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from tacit.base.secrets import clean
from tacit.learn.runs import CountedRun
from tacit.traces.command_purposes import WorkClass, purpose_of, work_class
from tacit.traces.outcomes import CALLED_WRONGLY, absent_program, says_well

FEWEST = 2
"""Sessions that must show a thing, unless the user's own words say that it is to last."""


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
    after: str = ""
    """The files after whose change it is mostly run, as one would name them."""

    @property
    def worked(self) -> int:
        return self.runs - self.failed

    @property
    def work(self) -> WorkClass | None:
        return work_class(self.purpose)


SANDBOX, SHELL, TOOL = "sandbox", "shell", "tool"
"""In the place of a program: what the host's sandbox holds back, what a shell does not take, and a
tool of the host."""
_CARRIES = {"ssh", "curl", "psql", "sqlite3", "gh", "docker"}
"""What they are given is another command or a question, and that is what fails."""


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
    standing: bool = False
    """Whether it lies in how the project or the machine is set up, and so is told without a mend: a
    hook stops it, the files are ignored, or it has never worked."""
    other: tuple[str, int, int] | None = None
    """The same called in another manner, how often that worked, and of how many times."""
    there: int = 0
    """Other sessions in which a program was there that is missing in these."""

    @property
    def work(self) -> WorkClass | None:
        return work_class(self.form)

    @property
    def works(self) -> tuple[str, ...]:
        """The forms that worked in its place."""
        return (self.other[0],) if self.other else tuple(form for form, _ in self.instead)

    @property
    def is_absent(self) -> bool:
        """Whether it is a program that is not there."""
        return absent_program(self.error) == self.program

    @property
    def of_machine(self) -> str:
        """What it is about, where it lies in the machine, whatever is done there; else empty."""
        typed = self.is_absent and self.form == self.program
        return self.form if self.program in (SANDBOX, SHELL, TOOL) or typed else ""

    @property
    def mended(self) -> bool:
        """Whether several sessions show what works: the same, or of what was called wrongly any."""
        if self.other or self.program == SHELL:
            return True
        counts = [count for _, count in self.instead]
        carries = self.program.partition(" ")[0] in _CARRIES
        wrongly = CALLED_WRONGLY.search(self.error) and not carries
        return (sum(counts) if wrongly else max(counts, default=0)) >= FEWEST


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
    return Rate(
        purpose,
        whole_form(purpose, telling),
        len(runs),
        len(runs) - len(worked),
        sessions,
        clean(says),
        clean(folder) if 2 * count > folders.total() and count >= FEWEST else "",
        clean(_after(runs)),
    )


_MOSTLY, _NEARLY_ALL = 0.7, 0.9


def _after(runs: Sequence[CountedRun]) -> str:
    """The kind and the folder of files of which some were changed before nearly every run."""
    changed = [run.after for run in runs if run.after]
    sessions = {run.session for run in runs if run.after}
    if len(sessions) < FEWEST or len(changed) <= FEWEST or len(changed) < _MOSTLY * len(runs):
        return ""

    folder = _common(changed, _folders_of, _MOSTLY)
    inside = [[path for path in paths if path.startswith(folder)] for paths in changed]
    kind = _common(
        [paths for paths in inside if paths],
        lambda path: re.findall(r"\w(\.[A-Za-z]{1,5})$", path),
        _NEARLY_ALL,
    )
    return f"{folder}*{kind}" if kind else folder


def _common(
    changed: Sequence[Iterable[str]], named: Callable[[str], Iterable[str]], share: float
) -> str:
    """What `named` gives of a file in that share of the changes; of several the deepest."""
    often = Counter(
        name for paths in changed for name in {one for path in paths for one in named(path)}
    )
    enough = [name for name, count in often.items() if count >= share * len(changed)]
    return max(enough, key=lambda name: (name.count("/"), often[name]), default="")


def _folders_of(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:size]) + "/" for size in range(1, min(len(parts), _DEEP) + 1)]


_DEEP = 3


_SAYS_LITTLE = re.compile(r"^[✖✗✘×]|\w/\w|no tests? |\b0 passed|filtered out")
"""Lines that also count what is wrong, that are of one part of the whole, or of nothing."""


OWN_TASK = re.compile(
    r"(?:mise run|just|make|task|rake|nox|tox|(?:npm|pnpm|yarn|bun)(?: run)?) \S|(?:bin|scripts?)/"
)
_LONG_AGO, _TIMES = 6, 3
"""Sessions after the last that ran a command, also as many times those that did, from which it is
perhaps no longer there."""


def of_late(rates: dict[str, Rate], sessions: list[str]) -> dict[str, Rate]:
    """The rates of what was still run lately, seen from how often it was; `sessions` in order."""
    place = {session: at for at, session in enumerate(sessions)}

    def since(rate: Rate) -> int:
        return len(sessions) - 1 - max(place.get(session, 0) for session in rate.sessions)

    return {
        purpose: rate
        for purpose, rate in rates.items()
        if since(rate) < max(_LONG_AGO, _TIMES * len(rate.sessions)) or OWN_TASK.match(rate.purpose)
    }


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
    if words not in forms and (choices := _choices(words, forms)):
        return clean(" ".join([*words, choices]))
    whole = Counter(" ".join(form) for form in forms if not any(map(_NARROWS.search, form[1:])))
    if varied := _varied(whole, len(words)):
        return clean(varied)
    often = [form for form, count in whole.most_common(3) if count >= FEWEST]
    often = [form for form in often if form.split()[: len(words)] == words]
    if often:
        return clean(often[0])
    return " ".join(words) + ("" if words in forms else " …")


def _varied(whole: Counter[str], begins: int) -> str:
    """The form that most have but for one word behind the first `begins`, with that as a variable:
    at least three stand there, and no one is typed as often as the others together."""
    alike: dict[tuple[str, ...], Counter[str]] = {}
    for form, count in whole.items():
        words = form.split()
        for at in range(begins, len(words)):
            if re.fullmatch(r"[\w.@/:-]*\w", words[at]) and words[at][0] != "-":
                key = (*words[:at], "<value>", *words[at + 1 :])
                alike.setdefault(key, Counter())[words[at]] += count
    best, values = max(alike.items(), key=lambda one: one[1].total(), default=((), Counter[str]()))
    several = len(values) > FEWEST and 2 * max(values.values()) <= values.total()
    return " ".join(best) if several and values.total() >= 2 * max(whole.values()) else ""


_FEW_CHOICES = 4


def _choices(words: list[str], forms: list[list[str]]) -> str:
    """What stands behind `words`, where that is one of a few names, such as of services."""
    named = Counter(" ".join(form[len(words) :]) for form in forms)
    several = 1 < len(named) <= _FEW_CHOICES and len(forms) > len(named)
    plain = all(re.fullmatch(r"[a-z][a-z_-]{2,30}", name) for name in named)
    return "|".join(sorted(named)) if several and plain else ""


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
    return 9 if form[0] in _LONG_RUNNERS else 4


_LONG_RUNNERS = {"corepack", "fnm", "docker", "docker-compose", "podman", "kubectl", "ssh", "nix"}


_RAW = re.compile(r"(?:[^\s\"']|\"(?:\\.|[^\"\\])*\"|'[^']*'|[\"'])+")


def abstracted(commands: list[str]) -> str:
    """One command for several with the same purpose: words in which they differ become `<…>`."""
    if len(set(commands)) == 1:
        return commands[0]
    split = [_RAW.findall(command) for command in commands]
    if any(len(words) != len(split[0]) for words in split) or "\n" in "".join(commands):
        return commands[-1]
    return " ".join(_common_word(words) for words in zip(*split, strict=True))


def _common_word(words: tuple[str, ...]) -> str:
    """The word that stands in the same place everywhere, or what stands for it."""
    if len(set(words)) == 1:
        return words[0]
    names = {word.partition("=")[0] for word in words}
    name = names.pop()
    if not names and re.fullmatch(r"-{0,2}[A-Za-z_][\w-]*", name) and all("=" in w for w in words):
        return f"{name}=<value>"
    quotes = {word[0] for word in words}
    quote = quotes.pop() if len(quotes) == 1 and quotes <= {'"', "'"} else ""
    return f"{quote}<value>{quote}"


def program_name(purpose: str) -> str:
    """What fails, without what it was told to do: `x npm run a` and `x npm run b` are one."""
    words = purpose.split() or [purpose]
    if len(words) > 2 or words[0] in ("git", "gh"):
        return " ".join(words[:2])
    return purpose if work_class(purpose) else words[0]


def error_signature(error: str) -> str:
    """An error without what differs from time to time."""
    text = re.sub(
        r"(?:/[\w.@+-]+)+|\b[\w.-]+\.\w{1,5}(?::\d+)*|\d+|0x[0-9a-f]+", "·", error.casefold()
    )
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "·", text)[:80]
