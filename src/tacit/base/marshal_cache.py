"""Cache files that are quick to read: plain values in Python's marshal format, behind a checksum.

The head of a file names its format and whatever else must be the same for it to be used. A file
that is missing, damaged or of another head reads as None, and its owner makes it again. Also the
stamps by which a cache knows that the files it was made from have not changed. `tacit list` waits
for this module, so it imports little.
"""

import marshal
import os
import sys
from binascii import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TAG = sys.implementation.cache_tag
"""What marshalled bytes hang on: the interpreter and its version."""
Stamp = tuple[int, int, int, int]

_RACY_NS = 2_000_000_000
_NEVER = (0, 0, 0, 0)


def read_cache(path: str, head: bytes) -> "Any":
    """The value in the file at `path`; None where there is none to be trusted."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return None
    start = len(head) + 4
    payload = memoryview(data)[start:]
    if not data.startswith(head) or crc32(payload).to_bytes(4, "big") != data[len(head) : start]:
        return None
    try:
        # The checksum held, so these are bytes that this program wrote for this interpreter.
        return marshal.loads(payload)  # noqa: S302
    except (ValueError, TypeError, EOFError):
        return None


def write_cache(path: str, head: bytes, value: "Any") -> None:
    """Put `value` into the file at `path`, whole. Raises `Unwritable`."""
    from tacit.base.atomic_files import write_atomic

    payload = marshal.dumps(value)
    write_atomic(path, head + crc32(payload).to_bytes(4, "big") + payload, durable=False)


def stamp(status: os.stat_result) -> Stamp:
    """What must be the same for a file to count as unchanged."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def trusted_stamp(status: os.stat_result, looked_at: int) -> Stamp:
    """The stamp to remember: none that matches, if the file changed just before we looked.

    Time stamps do not show an edit within the same tick of the clock as our look.
    """
    if max(status.st_mtime_ns, status.st_ctime_ns) > looked_at - _RACY_NS:
        return _NEVER
    return stamp(status)
