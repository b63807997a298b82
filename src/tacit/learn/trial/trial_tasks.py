"""The tasks of a trial: where they are read from, how they are written, and what each one needs.

Three forms are read. `evals/evals.json` in a skill's folder, as skill-creator has it, where a task
may also carry `checks` of ours, by code: a command, a file, a text. A folder of Harbor's, with
`task.toml`, `instruction.md` and `tests/test.sh`. One of terminal-bench's, with `task.yaml` and
`run-tests.sh`. Images are not built: of a task that needs one it is said so, and it is not run.
What is in evals.json and not ours is kept as it was. Checking a run is `verifier.py`'s.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from tacit.base.atomic_files import open_plain
from tacit.base.errors import NotFound, Usage
from tacit.base.paths import walk_folders
from tacit.changes.change import File
from tacit.traces import values

EVALS = "evals/evals.json"
EVALS_FOLDER = "evals/"
"""What of a skill's folder no agent under test sees: the tasks, and what solves them."""
EVAL_FILES = "evals/files/"
SECONDS = 600.0
"""How long a run may take where the task does not say."""
_MOST_BYTES = 50_000_000
_WORKDIR = re.compile(r"^\s*WORKDIR\s+(\S+)", re.M | re.I)
_BUILDS = re.compile(r"^\s*(RUN|ADD)\s", re.M | re.I)
_IMAGE_FILES = ("Dockerfile", "docker-compose.yaml", "docker-compose.yml", ".dockerignore")
_ROOT = "/app"
"""Where a task of Harbor's works, if its Dockerfile does not say."""


class Check(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing that code can find out. Exactly one of the first three says what kind it is."""

    command: str = ""
    """A shell command that must end with 0, run in the task's folder."""
    file: str = ""
    """A file that must be there, below the task's folder."""
    answer: str = ""
    """A text that the last answer must hold, whatever the case of its letters."""
    contains: str = ""
    """What `file` must hold."""

    def describe(self) -> str:
        """In words, as a grading has it."""
        if self.command:
            return f"the command succeeds: {self.command}"
        if self.file:
            return (
                f"{self.file} holds {self.contains!r}" if self.contains else f"{self.file} is there"
            )
        return f"the answer holds {self.answer!r}"


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task, ready to be run."""

    id: str
    prompt: str
    owner: str = ""
    """The skill that it belongs to."""
    files: dict[str, bytes] = {}
    """What stands in its folder at the beginning."""
    programs: tuple[str, ...] = ()
    """Those of `files` that may be run."""
    checks: tuple[Check, ...] = ()
    expectations: tuple[str, ...] = ()
    """What only a judge can say."""
    expected: str = ""
    tests: dict[str, bytes] = {}
    """The files of a verifier script, which the agent never sees."""
    script: str = ""
    """The one of `tests` that is run; it says how it went by its exit code or by a reward."""
    solution: dict[str, bytes] = {}
    """A script that does the task, by which its verifier can be tried, and what goes with it."""
    root: str = ""
    """The absolute folder that its texts speak of; the real one is put in its place."""
    seconds: float = SECONDS
    learned_from: tuple[str, ...] = ()
    """Sessions that it was drafted from; the skill may have been written from the same ones."""

    @property
    def by_code(self) -> bool:
        """Whether code can say that it was done."""
        return bool(self.checks or self.script)

    @property
    def digest(self) -> str:
        """The same for a task that is the same in all that matters."""
        told = msgspec.structs.replace(self, solution={})
        return hashlib.sha256(msgspec.msgpack.encode(told, order="deterministic")).hexdigest()[:16]


class Left(msgspec.Struct, frozen=True):
    """A task that is there and not run, and why."""

    id: str
    why: str


class TaskSet(msgspec.Struct, frozen=True):
    """What was found."""

    tasks: tuple[Task, ...] = ()
    left: tuple[Left, ...] = ()


class _Eval(msgspec.Struct):
    """One entry of evals.json; what else stands there is kept when it is written again."""

    prompt: str
    id: int | str = ""
    expected_output: str = ""
    files: tuple[str, ...] = ()
    expectations: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    seconds: float = SECONDS
    learned_from: tuple[str, ...] = ()


class _Evals(msgspec.Struct):
    evals: tuple[_Eval, ...]


def evals_of(files: Mapping[str, File], skill: str) -> TaskSet:
    """The tasks in a skill's own files; none where it has no evals.json.

    Raises `Usage` with what is wrong in it.
    """
    file = files.get(EVALS)
    if file is None:
        return TaskSet()
    try:
        found = msgspec.json.decode(file.data, type=_Evals).evals
    except msgspec.DecodeError as error:
        raise Usage(f"{EVALS} of '{skill}' cannot be read: {error}", "mend it by hand") from None
    return _sorted_out(
        _task_of(entry, f"{skill}/{entry.id or number}", skill, files)
        for number, entry in enumerate(found, 1)
    )


def _sorted_out(found: Iterable[Task | Left]) -> TaskSet:
    every = tuple(found)
    tasks = tuple(one for one in every if isinstance(one, Task))
    return TaskSet(tasks, tuple(one for one in every if isinstance(one, Left)))


def _task_of(entry: _Eval, name: str, skill: str, files: Mapping[str, File]) -> Task | Left:
    missing = [path for path in entry.files if path not in files]
    if missing:
        return Left(name, f"the file {missing[0]} is not in the skill's folder")
    if not entry.checks and not entry.expectations:
        return Left(name, "nothing says how to tell that it was done: add checks or expectations")
    bare = [
        c for c in entry.checks if [bool(c.command), bool(c.file), bool(c.answer)].count(True) != 1
    ]
    if bare:
        return Left(name, "a check needs one of: command, file, answer")
    placed = {path: _place(path) for path in entry.files}
    return Task(
        id=name,
        prompt=entry.prompt,
        owner=skill,
        files={placed[path]: files[path].data for path in entry.files},
        programs=tuple(placed[path] for path in entry.files if files[path].kind == "program"),
        checks=entry.checks,
        expectations=entry.expectations,
        expected=entry.expected_output,
        seconds=entry.seconds,
        learned_from=entry.learned_from,
    )


def _place(path: str) -> str:
    """Where a file of the skill's folder stands in the task's: below `evals/files/` as it is."""
    if not path.startswith(EVAL_FILES):
        return os.path.basename(path)
    below = path.removeprefix(EVAL_FILES)
    first, _, rest = below.partition("/")
    return rest if first.startswith("task-") and rest else below


def with_evals(
    old: bytes | None, skill: str, drafts: Iterable[Mapping[str, Any]]
) -> tuple[bytes, list[str]]:
    """evals.json with `drafts` added to it, and their ids. One of the same prompt is not repeated.

    All else stays as it is. Raises `Usage` where what stands there is not in its form.
    """
    try:
        whole: Any = msgspec.json.decode(old) if old is not None else {}
        if not isinstance(whole, dict) or not isinstance(whole.get("evals", []), list):
            raise ValueError("it is no object with a list of evals")
    except ValueError as error:
        raise Usage(f"{EVALS} of '{skill}' cannot be read: {error}", "mend it by hand") from None
    known = [values.mapping(entry) for entry in whole.get("evals", [])]
    prompts = {entry.get("prompt") for entry in known}
    taken = [entry["id"] for entry in known if isinstance(entry.get("id"), int)]
    number, made = max(taken, default=0), []
    for draft in drafts:
        if draft["prompt"] not in prompts:
            number += 1
            known.append({"id": number, **draft})
            made.append(f"{skill}/{number}")
    whole = {"skill_name": skill} | whole | {"evals": known}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n", made


def tasks_in(folder: str) -> TaskSet:
    """The tasks in a folder: one task, or a folder of tasks. Raises `NotFound` or `Usage`."""
    folder = os.path.abspath(os.path.expanduser(folder))
    if not os.path.isdir(folder):
        raise NotFound(f"there is no folder {folder}", "name a folder of tasks")
    below = [folder, *(os.path.join(folder, name) for name in sorted(os.listdir(folder)))]
    found: list[Task | Left] = []
    if os.path.isfile(os.path.join(folder, EVALS)):
        files = {path: File(data) for path, data in _tree(folder)}
        evals = evals_of(files, os.path.basename(folder))
        found += [msgspec.structs.replace(task, owner="") for task in evals.tasks] + [*evals.left]
    for place in below:
        reader = next(
            (read for name, read in _FORMS if os.path.isfile(os.path.join(place, name))), None
        )
        if reader is not None:
            found.append(reader(place, os.path.basename(place)))
    if not found:
        raise NotFound(
            f"no task is in {folder}",
            f"a task is a folder with task.toml and instruction.md, or with task.yaml; or {EVALS}",
        )
    return _sorted_out(found)


def _harbor(place: str, name: str) -> Task | Left:
    try:
        head = tomllib.loads(_text(place, "task.toml"))
        prompt = _text(place, "instruction.md")
    except (OSError, ValueError) as error:
        return Left(name, f"it cannot be read: {error}")
    seconds = values.mapping(head.get("agent")).get("timeout_sec")
    return _with_script(place, name, prompt, seconds, "environment", "tests", "test.sh")


def _terminal_bench(place: str, name: str) -> Task | Left:
    import yaml

    try:
        head = values.mapping(yaml.safe_load(_text(place, "task.yaml")))
    except (OSError, ValueError, yaml.YAMLError) as error:
        return Left(name, f"it cannot be read: {error}")
    prompt = values.string(head.get("instruction"))
    return _with_script(
        place, name, prompt, head.get("max_agent_timeout_sec"), ".", ".", "run-tests.sh"
    )


def _text(place: str, name: str) -> str:
    """What a file of a task says; a link may lead to what is nobody's task, and is not followed."""
    with open(os.path.join(place, name), encoding="utf-8", opener=open_plain) as file:
        return file.read(_MOST_BYTES)


_FORMS = (("task.toml", _harbor), ("task.yaml", _terminal_bench))


def _with_script(
    place: str, name: str, prompt: str, seconds: Any, begin: str, tests: str, script: str
) -> Task | Left:
    """A task whose verifier is a script, with what its folders hold."""
    if not prompt.strip():
        return Left(name, "it says nothing to do")
    image = os.path.join(place, begin, "Dockerfile")
    told = ""
    if os.path.isfile(image):
        with open(image, encoding="utf-8", errors="replace") as file:
            told = file.read()
    if _BUILDS.search(told):
        return Left(name, "its Dockerfile builds an image, and tasks run here without one")
    try:
        files = dict(_tree(os.path.join(place, begin)))
        checking = dict(_tree(os.path.join(place, tests)))
        solution = dict(_tree(os.path.join(place, "solution")))
    except (OSError, ValueError) as error:
        return Left(name, f"it cannot be read: {error}")
    if script not in checking:
        return Left(name, f"it has no {os.path.normpath(os.path.join(tests, script))}")
    if begin == tests:  # terminal-bench keeps all in one folder
        own = ("task.yaml", "solution.sh", "solution.yaml", script)
        solution = {name: data for name, data in files.items() if name == "solution.sh"}
        files = {
            path: data
            for path, data in files.items()
            if path not in own and not path.startswith("tests/")
        }
    kept = {path: data for path, data in files.items() if path not in _IMAGE_FILES}
    found = _WORKDIR.findall(told)
    limit = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else SECONDS
    return Task(
        id=name, prompt=prompt, files=kept, tests=checking, script=script, seconds=limit,
        solution=solution, root=found[-1].rstrip("/") if found else _ROOT,
    )  # fmt: skip


def _tree(folder: str) -> Iterator[tuple[str, bytes]]:
    """Every plain file below `folder`. Raises `ValueError` where they are too large."""
    size = 0
    for here, folders, names in walk_folders(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(here, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            size += os.path.getsize(path)
            if size > _MOST_BYTES:
                raise ValueError(f"its files are larger than {_MOST_BYTES // 1_000_000} MB")
            with open(path, "rb") as file:
                yield os.path.relpath(path, folder), file.read()
