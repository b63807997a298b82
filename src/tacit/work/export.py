"""Writing trajectories out: many sessions into a file, a folder or a stream, one at a time.

Owns the files and the report that lies beside them. A session is in memory while it is written and
no longer, and its rows go out whole or not at all. What does not fit, and what fails twice, is
named in the report with the reason. A file has its name only when it is complete.

Also saves each session as it ends, where `traces.save` asks for that.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol

import msgspec

from tacit.base.atomic_files import write_atomic
from tacit.base.errors import NotFound, TacitError, Unwritable
from tacit.base.paths import make_private
from tacit.traces.copied_turns import CopiedTurns
from tacit.traces.privacy import Privacy
from tacit.traces.store import Store
from tacit.traces.token_limit import Summarise, TooLarge, fit_tokens, no_summary, tokens_of
from tacit.traces.trace import REASONS
from tacit.traces.trajectory import StandsFor, Trajectory
from tacit.traces.trajectory_forms import (
    FORMS,
    Form,
    count_losses,
    labels_row,
    own_steps,
    saved_path,
)
from tacit.traces.trajectory_source import TrajectorySource

_TRIES = 2
_encode = msgspec.json.Encoder().encode


class Missing(msgspec.Struct, frozen=True):
    """A session that is not in the data, and why."""

    id: str
    reason: str


class Compressed(msgspec.Struct, frozen=True):
    """Steps of a session that one step stands for."""

    id: str
    stands_for: StandsFor


class ExportReport(msgspec.Struct):
    """What was written, counted; grows while it is."""

    form: str
    sessions: int = 0
    helpers: int = 0
    rows: int = 0
    steps: int = 0
    tokens: int = 0
    """As estimated, by characters."""
    bytes: int = 0
    copied_turns: int = 0
    """Turns that stand in an earlier session; marked, or left out where a form has no mark."""
    outcomes: dict[str, int] = {}
    corrections: int = 0
    skills: dict[str, int] = {}
    """Loads, by name and the beginning of the version."""
    models: dict[str, int] = {}
    cost: float = 0.0
    """Dollars that the sessions took, of those whose cost is known."""
    without_cost: int = 0
    redacted: dict[str, int] = {}
    """Secrets and private names that were taken out, by kind."""
    passed_over: dict[str, int] = {}
    """What could not be read of the agents' files when the sessions were taken in."""
    cannot_say: dict[str, int] = {}
    """What the form, or the trace, cannot say, and how often that is."""
    compressed: list[Compressed] = []
    left_out: list[Missing] = []
    failed: list[Missing] = []
    summaries: dict[str, Any] = {}
    """The model, how many it wrote, what they cost, and why others are missing."""

    def count(self, one: Trajectory) -> None:
        """Count a trajectory that is written, without its helpers."""
        labels = one.labels
        self.steps += len(one.entries)
        self.tokens += sum(tokens_of(entry) for entry in one.entries)
        self.copied_turns += len(labels.copied_turns)
        self.corrections += len(labels.corrections)
        self.cost += labels.cost or 0.0
        self.without_cost += labels.cost is None
        _add(self.models, {labels.model or "unknown": 1})
        _add(self.skills, Counter(f"{s.name} {s.version[:12]}".strip() for s in labels.skills))
        _add(self.passed_over, {REASONS.get(r, r): n for r, n in one.head.skipped.items()})


def _add(into: dict[str, int], more: dict[str, int]) -> None:
    for key, number in more.items():
        into[key] = into.get(key, 0) + number


class Sink(Protocol):
    """Takes the encoded rows of one trajectory after the other. Raises `OSError`, `TacitError`."""

    def put(self, trajectory: Trajectory, rows: list[bytes], labels: list[bytes]) -> None: ...


class StreamSink:
    """Rows into one stream, and labels into another where the form has no room for them."""

    def __init__(self, data: IO[bytes], labels: IO[bytes] | None = None) -> None:
        self._data, self._labels = data, labels

    def put(self, trajectory: Trajectory, rows: list[bytes], labels: list[bytes]) -> None:
        self._data.write(b"\n".join(rows) + b"\n")
        if self._labels is not None and labels:
            self._labels.write(b"\n".join(labels) + b"\n")


class FolderSink:
    """A file a session."""

    def __init__(self, folder: str, form: Form, labels: IO[bytes] | None = None) -> None:
        self._folder, self._form, self._labels = folder, form, labels

    def put(self, trajectory: Trajectory, rows: list[bytes], labels: list[bytes]) -> None:
        path = saved_path(trajectory.id, self._form, self._folder)
        write_atomic(path, b"\n".join(rows) + b"\n", durable=False)
        if self._labels is not None and labels:
            self._labels.write(b"\n".join(labels) + b"\n")


class Exporter:
    """Writes sessions in one form. One thread."""

    def __init__(
        self,
        store: Store,
        form: Form,
        *,
        tokens: int = 0,
        summarise: Summarise = no_summary,
        one_file: bool = False,
    ) -> None:
        """`tokens` a trajectory may have, 0 for any number. With `one_file` all goes into one."""
        self._form = form
        self._store = store
        self._tokens = tokens
        self._summarise = summarise
        self._one_file = one_file
        self._privacy = Privacy()
        self.report = ExportReport(form.name)

    def run(
        self,
        names: Iterable[str],
        sink: Sink,
        tell: Callable[[str], None] = lambda name: None,
        copies: CopiedTurns | None = None,
    ) -> ExportReport:
        """Write the sessions called `names` into `sink`; `tell` is called after each.

        A session that cannot be read or made is tried again and then named; what `sink` raises
        ends it all.
        """
        source = TrajectorySource(self._store, copies or CopiedTurns(self._store))
        for name in names:
            self._one(name, source, sink)
            tell(name)
        return self.report

    def _one(self, name: str, source: TrajectorySource, sink: Sink) -> None:
        for tried in range(_TRIES):
            try:
                made = self._made(name, source)
                break
            except NotFound:
                self.report.left_out.append(Missing(name, "it is not in the store any more"))
                return
            except (TooLarge, _Empty) as error:
                self.report.left_out.append(Missing(name, str(error)))
                return
            except Exception as error:  # one broken session must not keep the others waiting
                if tried + 1 == _TRIES:
                    why = error.message if isinstance(error, TacitError) else repr(error)
                    self.report.failed.append(Missing(name, why))
                    return
        for trajectory, rows, labels in made:
            sink.put(trajectory, rows, labels)
            self.report.rows += len(rows)
            self.report.bytes += sum(map(len, rows)) + len(rows)

    def _made(
        self, name: str, source: TrajectorySource
    ) -> list[tuple[Trajectory, list[bytes], list[bytes]]]:
        """The rows of a session, ready to be written; counted in the report."""
        loaded, counts = source.load(name)
        whole, unsaid, missing = self._sayable(loaded)
        cuts: list[Compressed] = []
        whole = self._fitted(whole, cuts)
        parts, made = [whole], []
        if not self._form.several:
            parts = [msgspec.structs.replace(one, helpers=()) for one in whole.family()]
        for part in parts:
            rows = [self._row(row, part, counts) for row in self._form.lines(part)]
            beside = [] if self._form.labels else [labels_row(one) for one in part.family()]
            labels = [self._row(row, part, counts) for row in beside]
            made.append((part, rows, labels))
        report = self.report
        report.sessions += 1
        report.helpers += sum(1 for _ in whole.family()) - 1
        report.compressed += cuts
        report.left_out += missing
        _add(report.redacted, counts)
        _add(report.cannot_say, count_losses(whole, self._form) | unsaid)
        _add(report.outcomes, {whole.labels.outcome.state: 1})
        for one in whole.family():
            report.count(one)
        return made

    def _sayable(self, whole: Trajectory) -> tuple[Trajectory, dict[str, int], list[Missing]]:
        """`whole` as far as the form has room for it: how much it cannot say, and whom it lacks."""
        unsaid: dict[str, int] = {}
        if text := self._form.losses.get("copied"):
            copied = sum(entry.copied for one in whole.family() for entry in one.entries)
            unsaid = {text: copied} if copied else {}
            whole = own_steps(whole)
        if not any(e.text or e.calls for e in whole.entries if e.source != "system"):
            raise _Empty("all of it is an earlier session's" if unsaid else "it holds no message")
        if self._form.several or not self._one_file:
            return whole, unsaid, []
        missing = [Missing(one.id, _ONE_A_FILE) for one in whole.family() if one is not whole]
        return msgspec.structs.replace(whole, helpers=()), unsaid, missing

    def _fitted(self, one: Trajectory, cuts: list[Compressed]) -> Trajectory:
        """`one` and its helpers, each within the limit."""
        helpers = tuple(self._fitted(helper, cuts) for helper in one.helpers)
        one = msgspec.structs.replace(one, helpers=helpers)
        if not self._tokens:
            return one
        try:
            one, cut = fit_tokens(one, self._tokens, self._summarise)
        except TooLarge as error:
            raise TooLarge(f"{one.id}: {error}" if one.head.parent else str(error)) from None
        if cut is not None:
            cuts.append(Compressed(one.id, cut))
        return one

    def _row(self, row: dict[str, Any], part: Trajectory, counts: dict[str, int]) -> bytes:
        data, struck = self._privacy.clean(_encode(row), part.head.project)
        _add(counts, struck)
        return data


_ONE_A_FILE = "a helper's session: this form holds one a file, and a folder takes all"


class _Empty(Exception):
    """There is nothing to write."""


@contextmanager
def open_sink(path: str, form: Form) -> Iterator[Sink]:
    """Where a run writes to: the folder `path`, if it is one or ends in a slash, else a file.

    A file, and the labels beside it, get their names at the end of the `with` block, and none where
    it raises.
    """
    into_folder = is_folder(path)
    place = path.rstrip("/") if into_folder else path
    wanted = [] if into_folder else [place]
    if not form.labels:
        wanted.append(f"{place}.labels.jsonl")
    files: dict[str, IO[bytes]] = {}
    try:
        make_private(place if into_folder else os.path.dirname(os.path.abspath(place)))
        for name in wanted:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            files[name] = os.fdopen(os.open(f"{name}.part", flags, 0o600), "wb", 1 << 20)
        labels = None if form.labels else files[wanted[-1]]
        yield FolderSink(place, form, labels) if into_folder else StreamSink(files[place], labels)
        for name, file in files.items():
            file.close()
            os.replace(f"{name}.part", name)
    except OSError as error:
        why = f"cannot write {path}: {error.strerror or error}"
        raise Unwritable(why, "check the free space and the permissions there") from error
    finally:
        for name, file in files.items():
            _drop(file, f"{name}.part")


def _drop(file: IO[bytes], path: str) -> None:
    """Close and remove what did not become complete."""
    try:
        file.close()
        os.unlink(path)
    except OSError:
        pass  # complete, and moved to its place; or the disk is full and it is empty


def is_folder(path: str) -> bool:
    return path.endswith("/") or os.path.isdir(path)


def write_report(path: str, report: ExportReport) -> str:
    """Write `report` beside the data at `path`; where it is."""
    place = f"{path.rstrip('/')}.report.json"
    data = msgspec.json.format(_encode(report), indent=2) + b"\n"
    write_atomic(place, data, durable=False)
    return place


def save_session(store: Store, name: str) -> ExportReport:
    """Write one session as ATIF, in place of what was saved of it, to where sessions are saved."""
    form = FORMS["atif"]
    copies = CopiedTurns(store, store.find(name).head)
    sink = FolderSink(os.path.dirname(saved_path(name, form)), form)
    return Exporter(store, form).run([name], sink, copies=copies)
