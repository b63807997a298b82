"""Whether a run did its task, as far as code can say: a command, files, texts, a verifier script.

Commands and scripts run in the sandbox, in the folder that the agent left. A script of Harbor's or
terminal-bench's finds its tests and the place for its reward under the paths that it names; the
folders of this run are put in for those. What only a judge can say is `judge.py`'s.
"""

import asyncio
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from tacit.agent.command_limits import limits_of
from tacit.agent.off_limits import CommandRules
from tacit.agent.sandbox import CommandOutcome, Sandbox, run_sandboxed
from tacit.base.atomic_files import TemporaryFolder, open_plain
from tacit.base.display import shorten_start
from tacit.base.setting_sections import AgentSettings
from tacit.learn.trial.trial_tasks import Check, Task
from tacit.traces import values

CHECK_SECONDS = 300.0
_MOST_READ = 5_000_000
_MOST_EVIDENCE = 300
_TESTS, _LOGS, _SOLUTION = "/tests", "/logs/verifier", "/solution"
SOLVERS = {"solve.sh", "solution.sh"}
"""The scripts that do a task of Harbor's or terminal-bench's."""
_NOT_RUN = ("exit code 126", "exit code 127")


class Graded(msgspec.Struct, frozen=True):
    """One check or expectation, and whether it is met; as a grading of skill-creator's has it."""

    text: str
    passed: bool
    evidence: str = ""

    @property
    def not_run(self) -> bool:
        """Whether its command could not even be started."""
        return self.evidence.startswith(_NOT_RUN)


class Verifier:
    """Checks runs in one sandbox."""

    def __init__(self, box: Sandbox, settings: AgentSettings) -> None:
        self._box = box
        self._settings = settings

    def verify(self, task: Task, work: str, answer: str) -> tuple[Graded, ...]:
        """How each check of `task` ended, in the folder `work` after an agent's `answer`."""
        found = [self._checked(check, work, answer) for check in task.checks]
        if task.script:
            found.append(self._scripted(task, work))
        return tuple(found)

    def _checked(self, check: Check, work: str, answer: str) -> Graded:
        text = check.describe()
        if check.command:
            with self._temporary() as (temporary, _):
                done = self._run(check.command, work, temporary)
            return Graded(text, not done.failed, _evidence(done))
        if check.file:
            return _in_file(check, text, work)
        return Graded(text, check.answer.casefold() in answer.casefold(), "")

    def solve(self, task: Task, work: str) -> None:
        """Have the task's own solution do it in the folder `work`."""
        with self._temporary() as (temporary, seen):
            places = {_SOLUTION: f"{seen}/solution", task.root: work}
            lay_out_texts(os.path.join(temporary, "solution"), task.solution, places)
            for script in SOLVERS & task.solution.keys():
                self._run(f"bash {shlex.quote(f'{seen}/solution/{script}')}", work, temporary)

    def _scripted(self, task: Task, work: str) -> Graded:
        """Run the verifier script with its tests beside it."""
        with self._temporary() as (temporary, seen):
            places = {_TESTS: f"{seen}/tests", _LOGS: f"{seen}/logs", task.root: work}
            lay_out_texts(os.path.join(temporary, "tests"), task.tests, places)
            logs = os.path.join(temporary, "logs")
            os.mkdir(logs)
            script = shlex.quote(f"{seen}/tests/{task.script}")
            command = f"export TEST_DIR={shlex.quote(seen + '/tests')}\nbash {script}"
            done = self._run(command, work, temporary)
            reward = _reward(logs)
            passed = reward >= 1 if reward is not None else not done.failed
            said = f"reward {reward:g}; " if reward is not None else ""
            return Graded(f"{task.script} is content", passed, said + _evidence(done))

    @contextmanager
    def _temporary(self) -> Iterator[tuple[str, str]]:
        """A temporary folder, and the path under which commands see it."""
        with TemporaryFolder("verify") as folder:
            # Only in bubblewrap is it seen under another name.
            yield folder, "/tmp" if self._box.name == "bubblewrap" else folder  # noqa: S108

    def _run(self, command: str, work: str, temporary: str) -> CommandOutcome:
        rules = CommandRules(
            project=os.path.realpath(work),
            temporary=temporary,
            network=self._settings.network,
            limits=limits_of(self._settings),
        )
        return asyncio.run(run_sandboxed(command, self._box, rules, CHECK_SECONDS))


def lay_out_texts(folder: str, files: Mapping[str, bytes], places: Mapping[str, str]) -> None:
    """Write `files` below `folder`; in those that are text the paths of `places` are replaced."""
    for path, data in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(_placed_bytes(data, places))
        if data.startswith(b"#!"):
            os.chmod(target, 0o700)


def placed(text: str, places: Mapping[str, str]) -> str:
    """`text` with absolute paths of a task replaced by those of this run."""
    known = sorted(filter(None, places), key=len, reverse=True)
    if not known:
        return text
    either = "|".join(map(re.escape, known))
    return re.sub(rf"(?<![\w/.~-])({either})(?![\w.-])", lambda found: places[found[1]], text)


def _placed_bytes(data: bytes, places: Mapping[str, str]) -> bytes:
    try:
        return placed(data.decode("utf-8"), places).encode()
    except UnicodeDecodeError:
        return data


def _in_file(check: Check, text: str, work: str) -> Graded:
    path = os.path.join(work, check.file)
    inside = os.path.realpath(path).startswith(os.path.realpath(work) + os.sep)
    if not inside or not os.path.isfile(path):
        return Graded(text, False, "there is no such file")
    if not check.contains:
        return Graded(text, True)
    with open(path, "rb") as file:
        held = file.read(_MOST_READ).decode("utf-8", "replace")
    return Graded(text, check.contains in held, shorten_start(held.strip(), _MOST_EVIDENCE))


def _reward(logs: str) -> float | None:
    """What a script wrote of its reward, in either of the two forms."""
    for name in ("reward.txt", "reward.json"):
        try:
            path = os.path.join(logs, name)  # the script may have made anything of it
            with open(path, encoding="utf-8", errors="replace", opener=open_plain) as file:
                text = file.read(10_000).strip()
        except OSError:
            continue
        said = values.mapping(values.decoded_json(text)).get("reward", text)
        try:
            return float(said)
        except (TypeError, ValueError):
            return 0.0
    return None


def _evidence(done: CommandOutcome) -> str:
    how = done.excess or ("out of time" if done.timed_out else f"exit code {done.exit_code}")
    return f"{how}: {shorten_start(done.output.strip(), _MOST_EVIDENCE)}".rstrip(": ")
