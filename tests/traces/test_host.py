"""JSONL: line by line, in constant memory, whatever the bytes are."""

import os
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.traces import host


class Line(msgspec.Struct):
    a: Any = None


def decoded(path: Path, start: int = 0) -> tuple[list[tuple[int, Any]], list[str]]:
    passed: list[str] = []
    found = [(at, line.a) for at, line in host.decode_lines(str(path), start, Line, passed.append)]
    return found, passed


@pytest.mark.parametrize(
    ("data", "values", "passed"),
    [
        (b'{"a": 1}\n{"a": 2}\n', [1, 2], []),
        (b'{"a": 1}\n{"a": 2}', [1, 2], []),
        (b'{"a": 1}\n{"a": ', [1], ["cut-off"]),
        (b'{"a": 1}\r\n\r\n\n  \n{"a": 2}\r\n', [1, 2], []),
        (b'{"a": 1}\n{"a": }\n{"a": 2}\n', [1, 2], ["not-json"]),
        (b'{"a": 1}\n[1]\nnull\n3\n', [1], ["bad-record"] * 3),
        (b'{"a": "\xff"}\n', ["\ufffd"], ["mended"]),
        (b'{"a": "\\ud83d"}\n', ["\ufffd\ufffd\ufffd"], ["mended"]),
        (b'\xef\xbb\xbf{"a": 1}\n', [1], ["mended"]),
        (b'{"b": "\xff", "a": 1}\n', [1], []),
        (b"[" * 100_000 + b"\n" + b'{"a": 1}\n', [1], ["bad-record"]),
        (b'{"a": ' + b"[" * 100_000 + b'\n{"a": 1}\n', [1], ["not-json"]),
        (b"\x00" * 5000 + b'\n{"a": 1}\n', [1], []),
        (b"", [], []),
    ],
)
def test_each_line_on_its_own(
    data: bytes, values: list[Any], passed: list[str], tmp_path: Path
) -> None:
    """Whole lines are read, broken ones counted by reason, and none disturbs the next."""
    (tmp_path / "x").write_bytes(data)
    found, counted = decoded(tmp_path / "x")
    assert [value for _, value in found] == values
    assert counted == passed


@settings(max_examples=60, deadline=None)
@given(
    parts=st.lists(st.binary(max_size=30).filter(lambda b: b"\n" not in b), max_size=20),
    ended=st.booleans(),
    chunk=st.integers(1, 12),
)
def test_lines_and_places_do_not_depend_on_chunks(
    parts: list[bytes], ended: bool, chunk: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """However the file is cut into chunks, the lines and their places are the same."""
    data = b"\n".join(parts) + (b"\n" if ended else b"")
    path = tmp_path_factory.mktemp("x") / "x"
    path.write_bytes(data)
    before, host.CHUNK = host.CHUNK, chunk
    try:
        with path.open("rb", buffering=0) as file:
            found = list(host.split_lines(file, 0, lambda _: None))
    finally:
        host.CHUNK = before
    for place, line, _ in found:
        assert data[place : place + len(line)] == line
    assert [line for _, line, _ in found if line] == [part for part in data.split(b"\n") if part]


def test_a_huge_line_is_passed_over_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line of 40 MB with a limit of 1 MB is never held; those around it are read."""
    monkeypatch.setattr(host, "MAX_LINE", 1024 * 1024)
    with (tmp_path / "x").open("wb") as file:
        file.write(b'{"a": 1}\n{"a": "')
        for _ in range(40):
            file.write(b"x" * 1024 * 1024)
        file.write(b'"}\n{"a": 2}\n')
    tracemalloc.start()
    found, passed = decoded(tmp_path / "x")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [value for _, value in found] == [1, 2]
    assert passed == ["too-long"]
    assert peak < 8 * 1024 * 1024


def test_a_huge_last_line_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also at the end of the file, without a line end."""
    monkeypatch.setattr(host, "MAX_LINE", 1000)
    (tmp_path / "x").write_bytes(b'{"a": 1}\n' + b"x" * 600_000)
    found, passed = decoded(tmp_path / "x")
    assert ([value for _, value in found], passed) == ([1], ["too-long"])


def test_reading_can_begin_at_any_line(tmp_path: Path) -> None:
    """The place that comes with a line is where a later reading can begin."""
    (tmp_path / "x").write_bytes(b'{"a": 1}\n{"a": "\xc3\xa4"}\n{"a": 3}\n')
    places = [place for place, _ in decoded(tmp_path / "x")[0]]
    assert [value for _, value in decoded(tmp_path / "x", places[1])[0]] == ["ä", 3]


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused_without_waiting(kind: str, tmp_path: Path) -> None:
    """A pipe that nobody writes to, or a folder, is an error at once."""
    path = tmp_path / "x"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    failed: list[BaseException] = []

    def read() -> None:
        try:
            decoded(path)
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(120)
    assert len(failed) == 1
