"""The contract of a host, as checks that any host can be run through.

Give a `HostCase` to each of `HOST_CHECKS`; one that fails raises AssertionError. With pytest:

    @pytest.mark.parametrize("check", HOST_CHECKS, ids=lambda check: check.__name__)
    def test_contract(check, tmp_path):
        check(HostCase(MyHost(), "fixtures/session.jsonl", Expected(...), str(tmp_path)))
"""

import os
import random
import re
import shutil
from collections.abc import Callable
from typing import Any

import msgspec

from tacit.traces.assembler import Bookmark, Reading, read_trace
from tacit.traces.host import Host, Source
from tacit.traces.trace import Head, Kind, Trace, Turn

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class Expected(msgspec.Struct, frozen=True):
    """What reading the sample session must give."""

    session: str
    project: str = ""
    prompts: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    """The kind of each tool call, in order."""
    failures: int = 0
    texts: int = 0
    output_tokens: int = 0
    model: str = ""
    error: str = ""
    """What the first failure's reason must hold."""


class HostCase(msgspec.Struct, frozen=True):
    """One host, a sample that it wrote, and what stands in it."""

    host: Host
    path: str
    """The file, folder or database with the sample session."""
    expected: Expected
    scratch: str
    """An empty folder that the checks may write in."""

    def source(self) -> Source:
        found = list(self.host.inside(self.path))
        assert len(found) == 1, f"{self.path} holds one session, {len(found)} were found"
        return found[0]

    def whole(self) -> Trace:
        return read_trace(self.host, self.source())


def names_itself(case: HostCase) -> None:
    """The name fits in a command line and the host is one by the Protocol."""
    assert isinstance(case.host, Host)
    assert _NAME.fullmatch(case.host.name), case.host.name
    assert case.host.title.strip()


def recognises_its_own_file(case: HostCase) -> None:
    """The session is found when its file is named, and says which host wrote it."""
    source = case.source()
    assert source.host == case.host.name
    assert os.path.exists(source.path)


def tells_what_happened(case: HostCase) -> None:
    """Prompts, calls, failures, texts, tokens and project are those of the sample."""
    trace, expected = case.whole(), case.expected
    read = {
        "session": trace.session,
        "project": trace.project,
        "prompts": trace.prompts,
        "kinds": tuple(call.kind for call in trace.calls),
        "failures": len(trace.failures),
        "texts": len(trace.texts),
        "output_tokens": trace.usage.output,
        "model": trace.head.model if expected.model else "",
    }
    wrong = {
        n: (got, getattr(expected, n)) for n, got in read.items() if got != getattr(expected, n)
    }
    assert not wrong, f"what was read, and what was expected: {wrong}"
    assert trace.host == case.host.name, f"it says that its name is {trace.host}"
    if expected.error:
        assert expected.error in trace.failures[0].error, trace.failures[0].error
    assert trace.skipped == {}, "nothing in a whole sample is passed over"


def keeps_the_order(case: HostCase) -> None:
    """Turns are numbered from 0, calls have names and results, and time runs forward."""
    trace = case.whole()
    assert [turn.number for turn in trace.turns] == list(range(len(trace.turns)))
    for call in trace.calls:
        assert call.name
        assert call.finished
        assert call.result or call.failed or not call.error
        assert call.failed == bool(call.error)
        assert call.duration is None or call.duration >= 0
    head = trace.head
    assert head.started is None or head.ended is None or head.started <= head.ended


def reads_the_same_twice(case: HostCase) -> None:
    """Reading leaves nothing behind that changes the next reading."""
    assert case.whole() == case.whole()


def does_not_write_the_source(case: HostCase) -> None:
    """Not a byte of the host's own file is changed by reading it."""
    source = case.source()
    if os.path.isfile(source.path):
        before = _bytes(source.path)
        read_trace(case.host, source)
        assert _bytes(source.path) == before


def does_not_read_what_is_unchanged(case: HostCase) -> None:
    """With the bookmark of a finished reading, the same source gives no turns."""
    source = case.source()
    _, bookmark, _ = _read(case.host, source, None)
    again = Reading(case.host, source, bookmark)
    assert again.unchanged
    assert list(again) == []
    assert again.bookmark == bookmark


def goes_on_where_it_stopped(case: HostCase) -> None:
    """A file that grows line by line gives, piece by piece, what it gives as a whole."""
    if not _grows(case):
        return
    whole, lines = case.whole(), _bytes(case.path).splitlines(keepends=True)
    path = _copy(case, b"")
    bookmark: Bookmark | None = None
    kept: list[Turn] = []
    trace = None
    for line in lines:
        _append(path, line)
        turns, bookmark, trace = _read(case.host, _at(case, path), bookmark)
        kept = [turn for turn in kept if turn.number < trace[1]] + turns
    assert trace is not None
    assert tuple(kept) == whole.turns
    assert _without_place(trace[0]) == _without_place(whole.head)
    assert bookmark is not None
    assert bookmark.position > 0, "the last turn is read again, not the whole session"


def reads_a_replaced_file_anew(case: HostCase) -> None:
    """Another file under the same name is read from its beginning."""
    if not _grows(case):
        return
    path = _copy(case, _bytes(case.path))
    _, bookmark, _ = _read(case.host, _at(case, path), None)
    replaced = path + ".new"
    with open(replaced, "wb") as file:
        file.write(_bytes(case.path) + b"\n")
    os.replace(replaced, path)
    reading = Reading(case.host, _at(case, path), bookmark)
    assert tuple(reading) == case.whole().turns
    assert reading.first == 0


def leaves_a_cut_off_line_for_later(case: HostCase) -> None:
    """Cut anywhere, the file gives a beginning of the session, and the rest later."""
    if not _grows(case):
        return
    data, whole = _bytes(case.path), case.whole()
    for cut in range(1, len(data), max(1, len(data) // 40)):
        path = _copy(case, data[:cut])
        first, bookmark, head = _read(case.host, _at(case, path), None)
        assert len(first) <= len(whole.turns)
        assert sum(head[0].skipped.values()) <= 1
        _append(path, data[cut:])
        rest, _, found = _read(case.host, _at(case, path), bookmark)
        kept = [turn for turn in first if turn.number < found[1]] + rest
        assert tuple(kept) == whole.turns
        assert found[0].skipped == {}


def passes_over_what_it_does_not_know(case: HostCase) -> None:
    """Lines that are not JSON, or not of a known kind, are counted and change nothing else."""
    if not _grows(case):
        return
    strange = b'not json\n{"type": "from-the-future", "$x": 1}\n[1, 2]\n\xff\xfe\n'
    path = _copy(case, _bytes(case.path) + strange)
    trace = read_trace(case.host, _at(case, path))
    assert trace.turns == case.whole().turns
    assert sum(trace.skipped.values()) >= 3


def stands_values_of_any_type(case: HostCase) -> None:
    """Whatever stands in the place of a value, reading ends, and the reader fails on no record."""
    source = case.source()
    if not source.path.endswith((".json", ".jsonl")) or not os.path.isfile(source.path):
        return
    lines = _bytes(source.path).splitlines() if source.path.endswith("l") else [_bytes(source.path)]
    path = _copy(case, b"")
    for seed, odd in enumerate(_ODD * 3):
        chance = random.Random(seed)  # noqa: S311
        made = [
            msgspec.json.encode(_with_odd(msgspec.json.decode(line), odd, chance)) for line in lines
        ]
        _append(path, b"\n".join(made) + b"\n")
        for found in case.host.inside(path):
            assert "host-error" not in read_trace(case.host, found).skipped, made
        os.truncate(path, 0)


_ODD: tuple[Any, ...] = (None, True, -1, 1e300, "", "\x00", [], {}, [None], {"type": []}, [[{}]])


def _with_odd(value: Any, odd: Any, chance: random.Random) -> Any:
    """`value` with `odd` in the place of some of its parts."""
    if chance.random() < 0.05:
        return odd
    if isinstance(value, dict):
        return {key: _with_odd(part, odd, chance) for key, part in value.items()}
    return [_with_odd(part, odd, chance) for part in value] if isinstance(value, list) else value


HOST_CHECKS: tuple[Callable[[HostCase], None], ...] = (
    names_itself,
    recognises_its_own_file,
    tells_what_happened,
    keeps_the_order,
    reads_the_same_twice,
    does_not_write_the_source,
    does_not_read_what_is_unchanged,
    goes_on_where_it_stopped,
    reads_a_replaced_file_anew,
    leaves_a_cut_off_line_for_later,
    passes_over_what_it_does_not_know,
    stands_values_of_any_type,
)


def _read(
    host: Host, source: Source, bookmark: Bookmark | None
) -> tuple[list[Turn], Bookmark | None, tuple[Head, int]]:
    reading = Reading(host, source, bookmark)
    turns = list(reading)
    return turns, reading.bookmark, (reading.head, reading.first)


def _without_place(head: Head) -> Head:
    """`head` without what a host may learn from where the file lies."""
    return msgspec.structs.replace(head, source="", project="")


def _grows(case: HostCase) -> bool:
    """Whether the host appends to one file, which the other checks are about."""
    return case.path.endswith(".jsonl") and bool(case.host.fingerprint(case.source(), 1))


def _copy(case: HostCase, data: bytes) -> str:
    """A file like the sample's, in a folder like its own: some hosts learn from the path."""
    tail = os.path.join(*os.path.abspath(case.path).split(os.sep)[-6:])
    path = os.path.join(case.scratch, tail)
    shutil.rmtree(case.scratch, ignore_errors=True)
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(data)
    return path


def _at(case: HostCase, path: str) -> Source:
    return msgspec.structs.replace(case.source(), path=path)


def _append(path: str, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
