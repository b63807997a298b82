"""Reads git's packs: many objects in one file, most of them as differences from another.

Writing packs is left to the git program; reading is done here, because a process an object would
make a packed history slower than a loose one, and a history must be readable where there is no git.
"""

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_BY_OFFSET, _BY_ID = 6, 7
_FANOUT = 8
_NAMES = _FANOUT + 256 * 4


class PackedObject(NamedTuple):
    """An object as it stands in a pack."""

    kind: str
    data: bytes


def read_packed(folder: str, oid: str) -> PackedObject | None:
    """The object `oid` from the packs in `folder`; None where they lack it.

    Raises ValueError or OSError where a pack is broken.
    """
    wanted = bytes.fromhex(oid)
    for path in _index_files(folder):
        with ExitStack() as stack:
            index = _map(path, stack)
            offset = _find(index, wanted) if index is not None else -1
            if index is None or offset < 0:
                continue
            pack = _map(path[:-4] + ".pack", stack)
            if pack is None:
                raise ValueError(f"{path} has no pack")
            try:
                return _entry(pack, index, offset)
            except (zlib.error, struct.error, IndexError, RecursionError) as error:
                raise ValueError(f"{path[:-4]}.pack is broken: {error}") from error
    return None


def packed_ids(folder: str) -> Iterator[str]:
    """The ids of all objects in the packs of `folder`."""
    for path in _index_files(folder):
        with ExitStack() as stack:
            index = _map(path, stack)
            if index is None or index[:4] != b"\377tOc":
                continue
            count = _count(index)
            table = index[_NAMES : _NAMES + count * 20]
        for start in range(0, len(table), 20):
            yield table[start : start + 20].hex()


def _index_files(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [os.path.join(folder, name) for name in sorted(names) if name.endswith(".idx")]


def _map(path: str, stack: ExitStack) -> mmap.mmap | None:
    """The file in memory; None where it is gone or empty."""
    try:
        file = stack.enter_context(open(path, "rb"))  # noqa: SIM115
    except FileNotFoundError:
        return None
    if os.fstat(file.fileno()).st_size == 0:
        return None
    return stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _count(index: mmap.mmap) -> int:
    return _number(index, _FANOUT + 255 * 4)


def _number(data: mmap.mmap, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def _find(index: mmap.mmap, wanted: bytes) -> int:
    """Where the object begins in its pack, or -1."""
    if index[:8] != b"\377tOc\0\0\0\2":
        raise ValueError("an index of packs is broken, or of a version that is not known")
    first = wanted[0]
    low = _number(index, _FANOUT + (first - 1) * 4) if first else 0
    high = _number(index, _FANOUT + first * 4)
    while low < high:
        middle = (low + high) // 2
        found = index[_NAMES + middle * 20 : _NAMES + middle * 20 + 20]
        if found == wanted:
            return _offset(index, middle)
        if found < wanted:
            low = middle + 1
        else:
            high = middle
    return -1


def _offset(index: mmap.mmap, number: int) -> int:
    count = _count(index)
    offsets = _NAMES + count * 24
    found = _number(index, offsets + number * 4)
    if not found & 0x80000000:
        return found
    at = offsets + count * 4 + (found & 0x7FFFFFFF) * 8
    return int.from_bytes(index[at : at + 8], "big")


def _entry(pack: mmap.mmap, index: mmap.mmap, at: int) -> PackedObject:
    start = at
    byte = pack[at]
    at += 1
    kind = (byte >> 4) & 7
    while byte & 0x80:  # the rest of the size, which inflating tells as well
        byte = pack[at]
        at += 1
    if kind in _KINDS:
        return PackedObject(_KINDS[kind], _inflate(pack, at))
    if kind == _BY_OFFSET:
        byte = pack[at]
        back = byte & 0x7F
        at += 1
        while byte & 0x80:
            byte = pack[at]
            at += 1
            back = ((back + 1) << 7) | (byte & 0x7F)
        base = _entry(pack, index, start - back)
    elif kind == _BY_ID:
        where = _find(index, pack[at : at + 20])
        if where < 0:
            raise ValueError("a pack lacks what one of its objects is made from")
        at += 20
        base = _entry(pack, index, where)
    else:
        raise ValueError(f"an object of kind {kind} in a pack")
    return PackedObject(base.kind, _patched(base.data, _inflate(pack, at)))


def _inflate(pack: mmap.mmap, at: int) -> bytes:
    inflater, parts = zlib.decompressobj(), []
    while not inflater.eof:
        chunk = pack[at : at + 65536]
        if not chunk:
            raise ValueError("a pack ends in the middle of an object")
        parts.append(inflater.decompress(chunk))
        at += len(chunk)
    return b"".join(parts)


def _patched(base: bytes, delta: bytes) -> bytes:
    """`base` with the copies and insertions that `delta` lists."""
    at = _past_size(delta, _past_size(delta, 0))
    parts = []
    while at < len(delta):
        command = delta[at]
        at += 1
        if not command & 0x80:
            parts.append(delta[at : at + command])
            at += command
            continue
        values = []
        for bit in range(7):
            values.append(delta[at] if command & (1 << bit) else 0)
            at += bool(command & (1 << bit))
        start = int.from_bytes(bytes(values[:4]), "little")
        size = int.from_bytes(bytes(values[4:]), "little") or 0x10000
        parts.append(base[start : start + size])
    return b"".join(parts)


def _past_size(delta: bytes, at: int) -> int:
    while delta[at] & 0x80:
        at += 1
    return at + 1
