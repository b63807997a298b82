"""Which projects the user trusts, as editors ask it, and what in the others is their own.

A folder that came with a clone can carry skills and settings; they are shown, but they do not
count until the user says so. Trust holds for one project, by real path, and for every other
checkout of the same repository: not for another project below it, nor for a folder that merely lies
in one that was trusted. The list is a text file, a path a line, so that a person can read and edit
it. An MCP server that a project proposes is allowed for its settings file, and the files of the
project that it is started with, as they are: when one changes, the user is asked again.

A skill or a fact that was made through the gate is the user's own also where the project is not
trusted. The gate notes its path and a digest of all its files; what was changed since by anybody
else, as by a pull, has another digest and is not covered. Nothing inside a project can say so.
"""

import os

from tacit.base import paths
from tacit.base.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
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
    with _lock(trust_file(), "the list of trusted folders"):
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
    """Whether the project that `folder` lies in, or another checkout of it, is trusted."""
    known = trusted()
    if not known:
        return False
    project = paths.project_root(os.path.realpath(folder))
    return any(path in known for path in paths.checkouts(project))


def add(folder: str) -> bool:
    """Trust `folder`; False when that exact folder was trusted already."""
    real = os.path.realpath(folder)
    if "\n" in real:
        raise Refused(
            "a folder whose name holds a line end cannot be trusted", "rename the folder first"
        )
    with _lock(trust_file(), "the list of trusted folders"):
        known = trusted()
        if real in known:
            return False
        _write([*known, real])
    return True


def remove(folder: str) -> bool:
    """Take trust in exactly `folder` back; False when it was not there."""
    # As it stands in the list, too: what lay above it may have become a link since.
    names = (os.path.realpath(folder), folder)
    with _lock(trust_file(), "the list of trusted folders"):
        known = trusted()
        left = [path for path in known if path not in names]
        if left == known:
            return False
        _write(left)
    return True


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
    with _lock(_servers_file(), "the list of allowed servers"):
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


OWN, WAS = "own", "was"
_MOST_FILES = 10_000
_MOST_BYTES = 256 << 20
_MOST_PAST = 50
"""Earlier versions of one folder that are remembered, so that an undo can bring one back."""

OwnLine = tuple[str, str, str]
"""A mark (`OWN`, or `WAS` of an earlier version), the digest of the files, the real path."""


def own_lines(data: str = "") -> list[OwnLine]:
    """What the gate has noted as the user's own, in the order in which it was."""
    try:
        with open(
            _own_file(data), encoding="utf-8", errors="surrogateescape", newline="\n"
        ) as file:
            lines = [line.split(" ", 2) for line in file.read().split("\n")]
    except OSError:
        return []
    return [(line[0], line[1], line[2]) for line in lines if len(line) == 3]


def own_below(root: str, data: str = "") -> dict[str, set[str]]:
    """By path below the real folder `root`, the digests that make what lies there the user's."""
    start = root.rstrip(os.sep) + os.sep
    found: dict[str, set[str]] = {}
    for mark, digest, path in own_lines(data):
        if mark == OWN and path.startswith(start):
            found.setdefault(path, set()).add(digest)
    return found


def is_own(path: str, known: dict[str, set[str]]) -> bool:
    """Whether the files in the real folder `path` are, to the byte, those in `known`."""
    return path in known and folder_digest(path) in known[path]


def claim(data: str, path: str, digest: str) -> None:
    """Note that these files are the user's own at `path`, before they are put there.

    What lies there now stays the user's until `settle` says that the new files are there.
    """
    if "\n" not in path:
        _change_own(data, path, lambda lines: {**lines, digest: OWN})


def settle(data: str, path: str, digest: str = "") -> None:
    """Of the versions of `path`, only `digest` counts from now on; the others are remembered."""
    if any(line[2] == path for line in own_lines(data)):
        _change_own(data, path, lambda lines: {key: OWN if key == digest else WAS for key in lines})


def files_digest(files: "Iterable[tuple[str, str, bytes]]") -> str:
    """A digest of files, each with its path, its kind (`file`, `program`, `link`) and its bytes."""
    import hashlib

    whole = hashlib.sha256()
    for path, kind, content in sorted(files):
        whole.update(f"{kind} {len(content)} ".encode() + os.fsencode(path) + b"\0" + content)
    return whole.hexdigest()


def file_digest(path: str) -> str:
    """A digest of one file; empty where it cannot be read."""
    import hashlib

    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def folder_digest(folder: str) -> str:
    """The same of all that lies in `folder`; empty where there is what the gate would not write."""
    try:
        return files_digest(_files_in(folder))
    except OSError:
        return ""


def _files_in(top: str) -> "Iterator[tuple[str, str, bytes]]":
    """Every file below `top`. Raises OSError for a special file, or too much of it."""
    from tacit.base.atomic_files import OPEN_FILE

    files, left = 0, _MOST_BYTES
    for folder, folders, names in paths.walk_folders(top, onerror=_raise):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *links):
            full = os.path.join(folder, name)
            path = os.path.relpath(full, top).replace(os.sep, "/")
            files += 1
            if name == ".DS_Store":
                continue
            if os.path.islink(full):
                yield path, "link", os.fsencode(os.readlink(full))
                continue
            with open(os.open(full, OPEN_FILE), "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read(left + 1) if mode & 0o170000 == 0o100000 else None
            left -= len(content or b"")
            if content is None or left < 0 or files > _MOST_FILES:
                raise OSError(f"{full} is not a plain file, or there is too much")
            yield path, "program" if mode & 0o100 else "file", content


def _raise(error: OSError) -> None:
    raise error


def _own_file(data: str) -> str:
    return os.path.join(data or paths.folders().data, "own")


def _change_own(data: str, path: str, change: "Callable[[dict[str, str]], dict[str, str]]") -> None:
    from tacit.base.atomic_files import write_atomic

    file = _own_file(data)
    with _lock(file, "the list of your own skills"):
        every = own_lines(data)
        before = {digest: mark for mark, digest, where in every if where == path}
        after = list(change(before).items())[-_MOST_PAST:]
        kept = [line for line in every if line[2] != path]
        lines = [*kept, *((mark, digest, path) for digest, mark in after)]
        text = "".join(" ".join(line) + "\n" for line in lines)
        write_atomic(file, text.encode("utf-8", "surrogateescape"))


def _lock(file: str, what: str) -> "AbstractContextManager[None]":
    from tacit.base.atomic_files import locked

    return locked(file + ".lock", what=what)
