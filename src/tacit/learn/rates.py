"""How often commands worked and failed, over the runs of one project whose outcome is known, and in
which form they are mostly typed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from tacit.base.secrets import clean
from tacit.learn.runs import CountedRun
from tacit.traces.command_purposes import WorkClass, purpose_of, work_class
from tacit.traces.outcomes import says_well

FEWEST = 2
"""Sessions that must show a thing, unless the user's own words say that it is to last."""


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
    folder: str = ""
    """Where in the project it is mostly run."""

    @property
    def worked(self) -> int:
        return self.runs - self.failed

    @property
    def work(self) -> WorkClass | None:
        return work_class(self.purpose)


def count_rates(runs: Iterable[CountedRun]) -> dict[str, Rate]:
    """The rate of each purpose, over the runs of which the outcome is known."""
    by_purpose: dict[str, list[CountedRun]] = {}
    for run in runs:
        if run.purpose and (run.outcome.state == "worked" or run.outcome.failed):
            by_purpose.setdefault(run.purpose, []).append(run)
    return {purpose: _rate(purpose, own) for purpose, own in by_purpose.items()}


def _rate(purpose: str, runs: list[CountedRun]) -> Rate:
    worked = [run for run in runs if run.outcome.state == "worked"]
    said = Counter(
        re.sub(r"\d{2,}|[1-9]", "…", r.outcome.evidence)
        for r in worked
        if r.outcome.reason == "output"
        and r.outcome.evidence
        and not r.outcome.evidence.startswith(("exit code", "nothing"))
    )
    says = next((line for line, count in said.most_common(1) if count >= FEWEST), "")
    says = says if says_well(work_class(purpose), says) and not _SAYS_LITTLE.search(says) else ""
    sessions = tuple(dict.fromkeys(run.session for run in runs))
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
    )


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
    return 9 if form[0] in _LONG_RUNNERS else 4


_LONG_RUNNERS = {"corepack", "fnm", "docker", "docker-compose", "podman", "kubectl", "ssh", "nix"}
