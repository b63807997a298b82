"""JSONL in constant memory: lines with their places in the file, each decoded on its own.

Owns bytes: chunks, overlong lines, bytes that are not UTF-8, a last line that is not finished.
What a line means is the host's business.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from json import JSONDecodeError, loads
from typing import Any, BinaryIO, TypeVar

import msgspec

MAX_LINE = 16 * 1024 * 1024
CHUNK = 256 * 1024

L = TypeVar("L")
Passed = Callable[[str], None]


def open_regular(path: str) -> BinaryIO:
    """Open the file at `path` for reading; pipes and devices are refused without waiting."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(descriptor, "rb", buffering=0)


def split_lines(file: BinaryIO, start: int, passed: Passed) -> Iterator[tuple[int, bytes, bool]]:
    """The lines of `file` from `start`: place, bytes without the line end, whether it had one.

    A line longer than `MAX_LINE` is passed over, and never held in memory.
    """
    file.seek(start)
    position, rest, dropping = start, 0, False
    parts: list[bytes] = []
    while chunk := file.read(CHUNK):
        lines = chunk.split(b"\n")
        if len(lines) == 1:
            rest += len(chunk)
            if rest > MAX_LINE:
                parts, dropping = [], True
            elif not dropping:
                parts.append(chunk)
            continue
        parts.append(lines[0])
        length = rest + len(lines[0])
        if dropping or length > MAX_LINE:
            passed("too-long")
        else:
            yield position, b"".join(parts) if rest else lines[0], True
        position += length + 1
        for line in lines[1:-1]:
            if line:
                yield position, line, True
            position += len(line) + 1
        parts, rest, dropping = [lines[-1]], len(lines[-1]), False
    if dropping:
        passed("too-long")
    elif rest:
        yield position, b"".join(parts), False


def decode_lines(path: str, start: int, form: type[L], passed: Passed) -> Iterator[tuple[int, L]]:
    """Each line of the file at `path` as a `form`, with its place.

    What cannot be decoded is passed over and counted. A last line without an end is taken when it
    is whole, and left for the next reading when it is not.
    """
    decoder = msgspec.json.Decoder(form)
    decode = decoder.decode
    with open_regular(path) as file:
        for position, line, ended in split_lines(file, start, passed):
            try:
                yield position, decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                if not line.strip(b" \t\r\0"):
                    continue
                if isinstance(error, msgspec.ValidationError):
                    passed("bad-record")
                    continue
                mended = mend(line)
                try:
                    value = msgspec.convert(mended, form)
                except (msgspec.MsgspecError, RecursionError):
                    passed("not-json" if ended else "cut-off")
                else:
                    yield position, value
                    # Counted once the line was dealt with: it may be where a later reading begins.
                    passed("mended")


def mend(line: bytes) -> Any:
    """What `line` holds if only its characters are wrong (bytes, halves of pairs), else None."""
    try:
        return _clean(loads(line.decode("utf-8-sig", "replace")))
    except (JSONDecodeError, RecursionError, ValueError):
        return None


def _clean(value: Any) -> Any:
    """`value` with lone surrogates replaced: no database and no terminal takes them."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return value
