"""A host's own program, run for one answer: started, watched, ended with all that it started.

`cli:claude` and the like name the user's own program, with its own login; Tacit reads, copies and
forwards no credential. It runs in a folder of Tacit's own, so that a session which it leaves is
known for ours and never learned from (`learn/review/review_triggers.py`), and with the variable
that has our hook do nothing. One question at a time a program. How each is asked is its host's
(`traces/program.py`); what is asked, and what is done with the answer, is `program_model.py`'s.
"""

import contextlib
import fcntl
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import msgspec

from tacit.agent.model_client import RequestFailed
from tacit.base import paths
from tacit.base.atomic_files import open_private
from tacit.base.display import shorten
from tacit.base.errors import NotFound, Unwritable, did_you_mean
from tacit.traces import host_registry
from tacit.traces.connector import program_of
from tacit.traces.host import Host
from tacit.traces.program import Program, Question, Said, Start

PREFIX = "cli"
"""What stands before the colon in the name of such a model."""
LONGEST = 1800.0
"""Seconds that an answer may take where nothing else limits it."""
_ASSUMED = (3e-6, 15e-6)
"""Dollars a token, sent and answered, where a program names none: what large models cost by list.
A plan has no such price; but a budget in dollars has to hold for it too."""
_MOST_OUTPUT = 16 * 1024 * 1024
_TICK = 0.2
"""Seconds between looks whether it has ended, or is to."""
_LATER = 600.0
"""Seconds after which a program that said something else is worth another try."""
_STATUS_SECONDS = 15.0
_CHUNK = 65_536
_COMMANDS = ("/", "!", "#", "@", "?")
"""How a text begins that programs take for a command to themselves."""
_MOST_WORDS = 20_000
"""Characters of what it printed that are looked through for what is wrong."""
_CAN_SEE_END = hasattr(os, "waitid")
"""Not on older macOS: there its closed pipes tell."""
# `TACIT_WORKER`: our hook does nothing then.
_GUARD = {"TACIT_WORKER": "1", "NO_COLOR": "1"}


class HostProgram(msgspec.Struct, frozen=True):
    """A program that can answer, and the host that it belongs to."""

    host: Host
    program: Program

    @property
    def name(self) -> str:
        """The model's name without a model of the program's: `cli:claude`."""
        return f"{PREFIX}:{self.program.word}"

    @property
    def path(self) -> str:
        """Where it is installed; empty where it is not."""
        return program_of(self.host)

    def is_logged_in(self) -> bool | None:
        """Whether somebody is logged in, as the program says; None where it cannot tell."""
        if not self.program.status:
            return None
        try:
            return not subprocess.run(
                [self.path, *self.program.status],
                check=False,
                capture_output=True,
                stdin=subprocess.DEVNULL,
                timeout=_STATUS_SECONDS,
                env=_environment(),
            ).returncode
        except (OSError, subprocess.TimeoutExpired):
            return None


def host_programs(*, tasks: bool = False) -> Iterator[HostProgram]:
    """Every program that could answer, or do `tasks`, installed or not."""
    how = "work" if tasks else "start"
    for host in host_registry.each():
        program = host.program
        if program is not None and getattr(type(program), how) is not getattr(Program, how):
            yield HostProgram(host, program)


def installed() -> list[HostProgram]:
    """Those that are on the PATH."""
    return [found for found in host_programs() if found.path]


def find(name: str) -> tuple[HostProgram, str]:
    """The program that `cli:word` or `cli:word:model` names, and the model.

    Raises `NotFound`.
    """
    word, _, model = name.removeprefix(f"{PREFIX}:").partition(":")
    known = {found.program.word: found for found in host_programs()}
    if word not in known:
        hint = did_you_mean(word, known, f"known: {', '.join(f'{PREFIX}:{w}' for w in known)}")
        raise NotFound(f"no program is known as '{PREFIX}:{word}'", hint)
    return known[word], model


def ask(
    name: str,
    instructions: str,
    text: str,
    *,
    until: float = 0.0,
    stop: Callable[[], bool] = lambda: False,
) -> Said:
    """What the program called `name` answers. Raises `RequestFailed` with what is wrong.

    `until` is a time of `time.monotonic`, at which it is ended in mid-answer; so it is when `stop`
    says so. Whatever happens, nothing of its group of processes is left.
    """
    found, model = find(name)
    path = found.path
    if not path:
        hint = f"install {found.host.title}, or choose another model: tacit setup"
        raise RequestFailed(f"{found.program.word} is not on the PATH", hint)
    if text.lstrip().startswith(_COMMANDS):
        text = f"Question:\n{text}"
    until = min(until or time.monotonic() + LONGEST, time.monotonic() + LONGEST)
    with _alone(found, until, stop) as folder:
        question = Question(text, instructions, model, folder)
        run = _Run(found, path, found.program.start(question), folder)
        return _understand(found, run.to_end(until, stop), question)


class _Printed(msgspec.Struct, frozen=True):
    """What came of a run."""

    code: int
    out: str
    err: str


class _Run:
    """One run of the program."""

    def __init__(self, found: HostProgram, path: str, start: Start, folder: str) -> None:
        self._word = found.program.word
        self._command = [path, *start.words]
        self._start = start
        self._folder = folder
        self._out, self._err = bytearray(), bytearray()
        self._unsent = memoryview(start.stdin.encode("utf-8", "replace"))

    def to_end(self, until: float, stop: Callable[[], bool]) -> _Printed:
        began = time.monotonic()
        try:
            _write_files(self._folder, self._start.files)
            process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=_environment() | self._start.variables | {"PWD": self._folder},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            why = f"{self._word} could not be started: {error.strerror or error}"
            raise RequestFailed(why, f"see that it runs: {self._word} --version") from None
        try:
            with process, selectors.DefaultSelector() as selector:
                try:
                    self._exchange(process, selector, began, until, stop)
                finally:
                    end_group(process)
        except BrokenPipeError:  # in closing its stdin, which it never read
            pass
        out, err = (bytes(part).decode("utf-8", "replace") for part in (self._out, self._err))
        return _Printed(process.returncode, out, err)

    def _exchange(
        self,
        process: "subprocess.Popen[bytes]",
        selector: selectors.BaseSelector,
        began: float,
        until: float,
        stop: Callable[[], bool],
    ) -> None:
        """Write the question and read what comes, until it has ended or must."""
        for pipe, event in (
            (process.stdin, selectors.EVENT_WRITE),
            (process.stdout, selectors.EVENT_READ),
            (process.stderr, selectors.EVENT_READ),
        ):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, event)
        over = False
        while not over:
            # A process that it left behind may hold the pipes open: its own end is what counts.
            over = has_ended(process.pid) or not (_CAN_SEE_END or selector.get_map())
            while self._move(process, selector, 0.0 if over else _TICK):
                self._check(began, until, stop)
            self._check(began, until, stop)

    def _check(self, began: float, until: float, stop: Callable[[], bool]) -> None:
        """Raise where it must come to its end."""
        if len(self._out) + len(self._err) > _MOST_OUTPUT:
            why = f"{self._word} printed more than {_MOST_OUTPUT >> 20} MB and was stopped"
            raise RequestFailed(why, "try it by hand", may_pass=True, retry_after=_LATER)
        if time.monotonic() >= until:
            why = f"{self._word} gave no answer within {time.monotonic() - began:.0f} s"
            raise OutOfTime(f"{why} and was stopped", "try again later", may_pass=True)
        if stop():
            raise RequestFailed(f"{self._word} was stopped", may_pass=True, retry_after=_LATER)

    def _move(
        self, process: "subprocess.Popen[bytes]", selector: selectors.BaseSelector, wait: float
    ) -> bool:
        """Move what can be moved between us and it; whether something was."""
        if not selector.get_map():
            time.sleep(wait)
            return False
        moved = False
        for key, _ in selector.select(wait):
            if key.fileobj is process.stdin:
                self._send(key, selector)
                moved = True
                continue
            with contextlib.suppress(BlockingIOError):
                part = os.read(key.fd, _CHUNK)
                moved = moved or bool(part)
                (self._out if key.fileobj is process.stdout else self._err).extend(part)
                if not part:
                    selector.unregister(key.fileobj)
        return moved

    def _send(self, key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
        try:
            self._unsent = self._unsent[os.write(key.fd, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it reads no more; what it prints says why
            self._unsent = self._unsent[:0]
        if not self._unsent:
            selector.unregister(key.fileobj)
            with contextlib.suppress(BrokenPipeError):
                key.fileobj.close()  # type: ignore[union-attr]


def assumed_cost(sent: int, came: int) -> float:
    """Dollars that so many tokens count as, where the program does not say."""
    return sent * _ASSUMED[0] + came * _ASSUMED[1]


class OutOfTime(RequestFailed):
    """The program was ended in mid-answer, because its time was up."""


def _understand(found: HostProgram, printed: _Printed, question: Question) -> Said:
    """What was said; raises `RequestFailed` where that is no answer."""
    program = found.program
    try:
        said = program.said(printed.out, question)
    except ValueError as error:
        raise _fault(found, printed.err.strip() or printed.out, printed.code, str(error)) from None
    if said.text.strip():
        return said
    raise _fault(found, said.error or printed.err.strip(), printed.code, "its answer is empty")


def _fault(found: HostProgram, words: str, code: int, otherwise: str) -> RequestFailed:
    """What is wrong with a run that gave no answer, by the program's own words."""
    program, word = found.program, found.program.word
    words = words[-_MOST_WORDS:]
    if at := program.changed.search(words):
        hint = f"this version of {word} does not know what Tacit asks of it; see: {word} --help"
        return RequestFailed(f"{word} does not take its options{_quoted(words, at.start())}", hint)
    if at := program.limited.search(words):
        why = f"{word} is at its limit{_quoted(words, at.start())}"
        return RequestFailed(why, "it is tried again later", may_pass=True, retry_after=_LATER)
    if at := program.logged_out.search(words):
        why = f"{word} is not logged in{_quoted(words, at.start())}"
        return RequestFailed(why, f"log in: {program.login}")
    what = f"failed with code {code}" if code else f"answered with something else ({otherwise})"
    why = f"{word} {what}{_quoted(words.rstrip(), -1)}"
    return RequestFailed(why, f"try it by hand: {word}", may_pass=True, retry_after=_LATER)


def _quoted(words: str, at: int) -> str:
    """The line of `words` at that place, as it can be shown, behind a colon."""
    at = at if at >= 0 else len(words)
    line = words[words.rfind("\n", 0, at) + 1 :].partition("\n")[0]
    shown = "".join(sign if sign.isprintable() else " " for sign in line)
    return f": {shorten(' '.join(shown.split()), 200)}" if shown.strip() else ""


@contextlib.contextmanager
def _alone(found: HostProgram, until: float, stop: Callable[[], bool]) -> Iterator[str]:
    """The empty folder that the program runs in, while nobody else asks it."""
    above = os.path.join(paths.folders().data, "programs")
    folder = os.path.join(above, found.program.word)
    try:
        paths.make_private(above)
        lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise Unwritable(
            f"cannot write in {above}: {error.strerror}", "see: tacit doctor"
        ) from None
    try:
        while not _took(lock):
            if stop() or time.monotonic() >= until:
                why = f"{found.program.word} is busy with another request of Tacit's"
                raise RequestFailed(why, "try again later", may_pass=True, retry_after=_LATER)
            time.sleep(_TICK)
        shutil.rmtree(folder, ignore_errors=True)
        paths.make_private(folder)
        yield folder
    finally:
        os.close(lock)


def _took(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_files(folder: str, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = os.path.join(folder, name)
        paths.make_private(os.path.dirname(path))
        with open(path, "wb", opener=open_private) as file:
            file.write(text.encode("utf-8", "replace"))


def _environment() -> dict[str, str]:
    """The user's own, without what says that we were started by an agent."""
    signs = {host.signs.variable for host in host_registry.each()} | {"PWD", "OLDPWD"}
    return {name: value for name, value in os.environ.items() if name not in signs} | _GUARD


def has_ended(pid: int) -> bool:
    """Whether a child has ended. It is not reaped, so its group's number stays its own."""
    if not _CAN_SEE_END:
        return False
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    return os.waitid(os.P_PID, pid, options) is not None


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a child and all of its group; nothing of it is left when this returns."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
    process.wait()
