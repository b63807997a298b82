"""Which project folders the user trusts, as editors ask it.

A folder that came with a clone can carry skills and settings; they are shown, but they do not
count until the user says so. Trust holds for the folder and what lies below it, by real path.
The list is a text file, a path a line, so that a person can read and edit it.
"""

import os

from tacit.base import paths
from tacit.base.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def trust_file() -> str:
    return os.path.join(paths.folders().data, "trusted")


def trusted() -> list[str]:
    """The trusted folders, in the order in which they were added."""
    return [line for line in _lines()[:-1] if _is_path(line)]


def broken_lines() -> list[str]:
    """The lines that do not count: no path, or the last one without its end, as a file that was
    cut has it. What is left of a path could be that of a folder above."""
    *whole, last = _lines() or [""]
    return [line for line in whole if line and not _is_path(line)] + ([last] if last else [])


def drop_broken() -> None:
    """Write the list without the lines that do not count."""
    with _lock():
        _write(trusted())


def _lines() -> list[str]:
    try:
        with open(trust_file(), encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            return file.read().split("\n")
    except OSError:  # not there, or not readable: nothing is trusted
        return []


def _is_path(line: str) -> bool:
    absolute = line.startswith(os.sep) or (len(line) > 2 and line[1] == ":")
    return absolute and "\0" not in line


def is_trusted(folder: str) -> bool:
    """Whether `folder`, or one above it, is trusted."""
    real = os.path.realpath(folder)
    return any(paths.is_inside(real, path) for path in trusted())


def add(folder: str) -> bool:
    """Trust `folder`; False when that exact folder was trusted already."""
    real = os.path.realpath(folder)
    if "\n" in real:
        raise Refused(
            "a folder whose name holds a line end cannot be trusted", "rename the folder first"
        )
    with _lock():
        known = trusted()
        if real in known:
            return False
        _write([*known, real])
    return True


def remove(folder: str) -> bool:
    """Take trust in exactly `folder` back; False when it was not there."""
    # As it stands in the list, too: what lay above it may have become a link since.
    names = (os.path.realpath(folder), folder)
    with _lock():
        known = trusted()
        left = [path for path in known if path not in names]
        if left == known:
            return False
        _write(left)
    return True


def _lock() -> "AbstractContextManager[None]":
    from tacit.base.atomic_files import locked

    return locked(trust_file() + ".lock", what="the list of trusted folders")


def _write(known: list[str]) -> None:
    from tacit.base.atomic_files import write_atomic

    write_atomic(
        trust_file(), "".join(f"{path}\n" for path in known).encode("utf-8", "surrogateescape")
    )
