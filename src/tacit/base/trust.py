"""Which projects the user trusts, as editors ask it, and which of their MCP servers may start.

A folder that came with a clone can carry skills and settings; they are shown, but they do not
count until the user says so. Trust holds for one project, by real path: not for another project
below it, nor for a folder that merely lies in one that was trusted. The list is a text file, a path
a line, so that a person can read and edit it. A server is allowed for a settings file as it is:
when the file changes, the user is asked again.
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
    """Whether the project that `folder` lies in is trusted."""
    known = trusted()
    return bool(known) and os.path.realpath(paths.project_root(os.path.realpath(folder))) in known


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


def _servers_file() -> str:
    return os.path.join(paths.folders().data, "allowed-servers.json")


def allowed_servers(file: str, digest: str) -> frozenset[str]:
    """The MCP servers that may start of those in the settings file `file`, if it is that one."""
    kept = _read_servers().get(os.path.realpath(file))
    if not isinstance(kept, dict) or kept.get("sha256") != digest:
        return frozenset()
    names = kept.get("servers")
    return (
        frozenset(n for n in names if isinstance(n, str))
        if isinstance(names, list)
        else frozenset()
    )


def allow_server(file: str, digest: str, name: str) -> None:
    """Let the server `name` start that `file` proposes, for as long as it is as it is now."""
    import json

    from tacit.base.atomic_files import write_atomic

    real = os.path.realpath(file)
    with _lock():
        names = sorted({*allowed_servers(file, digest), name})
        kept = _read_servers() | {real: {"sha256": digest, "servers": names}}
        write_atomic(_servers_file(), json.dumps(kept, indent=1).encode() + b"\n")


def _read_servers() -> "dict[str, object]":
    import json

    try:
        with open(_servers_file(), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
