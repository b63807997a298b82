"""Searching the contents of files, in a process of its own.

A regular expression from a model may take exponential time, and a thread cannot be stopped. Run as
a script by its path, with the standard library alone: the question is JSON on standard input, the
answer a line of text for each hit.
"""

import json
import os
import re
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


def _lines(path: str) -> list[str]:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
            return []
        with open(path, "rb") as file:
            data = file.read()
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
