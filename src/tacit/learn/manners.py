"""The same command in two manners of which one fails and one works: behind a runner or without it,
with something set before, in another folder, with an option or without.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tacit.base.secrets import clean
from tacit.learn.rates import (
    FEWEST,
    SET_BEFORE,
    Trouble,
    error_signature,
    program_name,
    whole_form,
)
from tacit.learn.runs import ESCALATED, CountedRun
from tacit.traces.command_purposes import is_everybodys, work_class
from tacit.traces.observations import gets_around
from tacit.traces.outcomes import CALLED_WRONGLY

REFUSED_FOR = "refused: "
"""Before what the user said in refusing a call, in the place of an error."""
_SAID_MOST = 2
_MOSTLY = 0.75


def by_manner(runs: Sequence[CountedRun]) -> tuple[list[Trouble], set[int]]:
    """Commands that fail in one manner of calling them and work in another, and the runs, by
    identity, that are told by it."""
    by_purpose: dict[str, list[CountedRun]] = {}
    for run in runs:
        known = run.outcome.state == "worked" or run.outcome.failed or run.reply
        if known and run.purpose and not run.tool and not run.rules and not run.hooked:
            by_purpose.setdefault(run.purpose, []).append(run)
    found: list[Trouble] = []
    told: set[int] = set()
    for purpose, own in by_purpose.items():
        if not any(run.reply or (run.error and CALLED_WRONGLY.search(run.error)) for run in own):
            continue
        sides = [side for how in _manners(own) for side in _sides(how, own)]
        for side in sorted(sides, key=lambda s: (-len(s.good), -len(s.bad), s.how)):
            left = [run for run in side.failed if id(run) not in told]
            if left and side.is_clean:
                found.append(side.trouble(purpose, left))
                told |= {id(run) for run in side.failed}
    return found, told


class _Side(NamedTuple):
    """A command in the manner that fails and in the one that works, which differ in `how`."""

    how: str
    needed: bool
    bad: list[CountedRun]
    good: list[CountedRun]

    @property
    def failed(self) -> list[CountedRun]:
        return [run for run in self.bad if run.outcome.failed or self._refused(run)]

    @property
    def worked(self) -> list[CountedRun]:
        return [run for run in self.good if run.outcome.state == "worked"]

    def _refused(self, run: CountedRun) -> bool:
        """Whether the user refused it and named what it lacks."""
        return self.needed and run.outcome.state == "refused" and self.how in run.reply.casefold()

    @property
    def is_clean(self) -> bool:
        """Whether the one manner fails nearly always, for how it is called, and the other works."""
        failed, worked = self.failed, self.worked
        meant = [run for run in self.bad if run.outcome.state != "refused" or self._refused(run)]
        if SET_BEFORE.match(self.how):  # elsewhere the same may be set already
            here = {run.session for run in failed if CALLED_WRONGLY.search(run.error)}
            meant = [run for run in meant if run.session in here]
            failed = [run for run in failed if run.session in here]
        if not failed or not worked or len(failed) < _MOSTLY * len(meant):
            return False
        if any(map(self._refused, failed)):
            return True
        of_work = failed[0].work is not None or self._is_terminal or self._is_its_error
        share = 0.5 if of_work else _MOSTLY  # a check also fails for the work
        if len(worked) < share * len(self.good) or len(worked) <= len(failed) // _SAID_MOST:
            return False
        sessions, others = ({run.session for run in some} for some in (failed, worked))
        habit = self.needed and self.how[0] != "-" and not self.how.startswith("in ")
        enough = len(sessions) >= FEWEST or (habit and len(others) > FEWEST)
        wrongly = [run for run in failed if CALLED_WRONGLY.search(run.error)]
        return enough and len(worked) >= FEWEST and 2 * len(wrongly) > len(failed) and self._named

    @property
    def _named(self) -> bool:
        """An option is what fails where the error names it or what it is given."""
        words = re.findall(r"\w+", self.how) if self.how.startswith("-") else []
        errors = " ".join(run.error for run in self.failed).casefold()
        named = not words or any(word.casefold() in errors for word in words if len(word) > 1)
        return named or self._is_terminal or self._is_its_error

    @property
    def _is_terminal(self) -> bool:
        """Whether what fails is that a terminal was asked for."""
        errors = (run.error for run in self.failed)
        return self.how in ("-it", "-ti", "-t", "--tty") and all("TTY" in e for e in errors)

    @property
    def _is_its_error(self) -> bool:
        """Whether it fails with one error, again and again, that is never seen without it."""
        signs = Counter(error_signature(run.error) for run in self.failed)
        sign, count = signs.most_common(1)[0]
        seen = any(error_signature(run.error) == sign for run in self.good if run.error)
        return count > FEWEST and count >= _MOSTLY * len(self.failed) and not seen

    def trouble(self, purpose: str, left: list[CountedRun]) -> Trouble:
        """What fails, over the runs of `left`, and how it works."""
        said = [run.error or f"{REFUSED_FOR}{run.reply}" for run in reversed(left)]
        error = Counter([e for e in said if CALLED_WRONGLY.search(e)] or said).most_common(1)[0][0]
        alike = [_shown(run) for run, e in zip(reversed(left), said, strict=True) if e == error]
        form = Counter(alike).most_common(1)[0][0]
        works = whole_form(purpose, self.worked)
        if self.how.startswith("in "):
            form, works = f"{_entered(left)}{form}", f"{_entered(self.worked)}{works}"
        elif self.needed and self.how.startswith("export "):
            works = f"{self.how}… && {works}"
        bad = sum(run.outcome.state == "worked" for run in self.bad) + len(left)
        sessions = tuple(dict.fromkeys(run.session for run in left))
        other = (works, len(self.worked), len(self.good))
        everybodys = is_everybodys(purpose.partition(" ")[0])
        own = purpose if purpose.split(maxsplit=1)[0] != "docker" else " ".join(purpose.split()[:2])
        program = own if everybodys and not work_class(purpose) else program_name(purpose)
        return Trouble(program, clean(form), clean(error), len(left), bad, sessions, other=other)


def _shown(run: CountedRun) -> str:
    return run.form.replace("<message>", "\"$(cat <<'EOF' …)\"") if "<<" in run.manner else run.form


_NO_WAY = re.compile(r"sudo\b")
"""What is no answer to a failure: that is the user's to say."""


def _entered(runs: Sequence[CountedRun]) -> str:
    """The folder that most of `runs` were in, as one goes there."""
    folder = Counter(run.folder for run in runs).most_common(1)[0][0]
    return f"cd {folder} && " if folder else ""


def _manners(runs: Sequence[CountedRun]) -> list[str]:
    every = dict.fromkeys(how for run in runs for how in _manner(run) if how)
    return [how for how in every if how != ESCALATED]


def _manner(run: CountedRun) -> tuple[str, ...]:
    return run.manner if run.folder is None else (*run.manner, f"in {run.folder or '.'}")


def _sides(how: str, runs: Sequence[CountedRun]) -> Iterator[_Side]:
    """The runs with `how` and without it, either way around; what gets around a failure, or is
    unsafe, is no way in which it works."""
    runs = [run for run in runs if run.folder is not None or not how.startswith("in ")]
    having = [run for run in runs if how in _manner(run)]
    lacking = [run for run in runs if how not in _manner(run)]
    for needed, bad, other in ((False, having, lacking), (True, lacking, having)):
        good = [run for run in other if run.outcome.state != "refused"]
        failed = (
            any(run.outcome.state != "worked" for run in bad) and good and not _NO_WAY.match(how)
        )
        if failed and not any(gets_around(run.form) for run in good):
            yield _Side(how, needed, bad, good)
