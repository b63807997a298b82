"""Searching the contents of files, in a process of its own.

A regular expression from a model may take exponential time, and a thread cannot be stopped. Run as
a script by its path, with the standard library alone: the question is JSON on standard input, the
answer a line of text for each hit.
"""

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator

MOST_FOUND = 500
_MOST_BYTES = 20_000_000
_LONGEST = 300


def search(paths: list[tuple[str, str]], pattern: str, *, ignore_case: bool) -> Iterator[str]:
    """`name:line: text` for each line that fits, of files given as (name, path)."""
    wanted = re.compile(pattern, re.I if ignore_case else 0)
    found = 0
    for name, path in paths:
        for number, line in enumerate(_lines(path), 1):
            if wanted.search(line):
                yield f"{name}:{number}: {line.strip()[:_LONGEST]}"
                found += 1
                if found > MOST_FOUND:
                    return


def open_judged(path: str, flags: int = 0) -> int:
    """An opener for `open`: the plain file at `path`, which was resolved and judged before.

    Raises OSError where the file, or a folder on the way, was exchanged for a link since then: a
    command may be running in the project.
    """
    any_link = 0x20000000 if sys.platform == "darwin" else 0  # O_NOFOLLOW_ANY
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | any_link)
    try:
        here = f"/proc/self/fd/{descriptor}"
        real = os.readlink(here) if os.path.islink(here) else os.path.realpath(path)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or real != path:
            raise OSError(errno.ELOOP, "it is not the plain file any more that it was", path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lines(path: str) -> list[str]:
    try:
        with open(path, "rb", opener=open_judged) as file:
            if os.fstat(file.fileno()).st_size > _MOST_BYTES:
                return []
            data = file.read(_MOST_BYTES)
    except OSError:
        return []
    return [] if b"\x00" in data[:8192] else data.decode("utf-8", "replace").splitlines()


def main() -> int:
    """Answer one question."""
    asked = json.load(sys.stdin)
    out = sys.stdout.buffer
    for row in search(asked["paths"], asked["pattern"], ignore_case=asked["ignore_case"]):
        out.write(row.encode("utf-8", "replace") + b"\n")
    out.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
