"""Tools for files: reading, writing, editing, listing, finding.

Reading outside the project, or a file of secrets, is refused; writing is confined to the project.
A skill folder is never written from here: only the gate writes there.
"""

import asyncio
import difflib
import json
import os
import re
import sys
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from tacit.agent import file_search
from tacit.agent.off_limits import (
    is_guarded,
    is_obeyed_path,
    is_own_path,
    is_secret_path,
    walk_files,
)
from tacit.agent.tool import Context, Failed, Result, Tool, numbered, text_of
from tacit.base import paths
from tacit.base.atomic_files import CREATE_FILE
from tacit.base.display import unified_diff
from tacit.base.paths import is_inside
from tacit.changes.containment import Escape, Folder
from tacit.skills.fact import MEMORY_FOLDER
from tacit.skills.file_globs import matches_glob
from tacit.traces.host_folders import host_folders

_MOST_BYTES = 20_000_000
_MOST_FOUND = file_search.MOST_FOUND
_MOST_WALKED = 100_000


class ReadFile(msgspec.Struct, frozen=True):
    path: str
    offset: int = 1
    limit: int = 2000


class WriteFile(msgspec.Struct, frozen=True):
    path: str
    content: str


class Replacement(msgspec.Struct, frozen=True):
    old: str
    new: str
    all: bool = False


class EditFile(msgspec.Struct, frozen=True):
    path: str
    old: str = ""
    new: str = ""
    all: bool = False
    edits: list[dict[str, str | bool]] = []
    """Each with `old`, `new` and perhaps `all`."""


class ListFiles(msgspec.Struct, frozen=True):
    path: str = "."


class GlobFiles(msgspec.Struct, frozen=True):
    pattern: str
    path: str = "."


class SearchFiles(msgspec.Struct, frozen=True):
    pattern: str
    path: str = "."
    glob: str = "**"
    ignore_case: bool = False


async def read_file(call: ReadFile, context: Context) -> Result:
    path = readable(call.path, context)
    text = text_of(_read(path))
    lines = text.splitlines()
    first = max(call.offset, 1)
    chosen = lines[first - 1 : first - 1 + max(call.limit, 1)]
    if not chosen:
        return Result(f"(nothing there: the file has {len(lines)} lines)" if lines else "(empty)")
    rest = len(lines) - (first - 1 + len(chosen))
    more = f"\n({rest} more lines; go on with offset={first + len(chosen)})" if rest > 0 else ""
    return Result(context.shorten(numbered(chosen, first)) + more)


def _written(call: WriteFile, context: Context) -> tuple[str, str]:
    """The path that a call would write, and what stands there. Raises `Failed`."""
    path = writable(call.path, context)
    return path, text_of(_read(path)) if os.path.exists(path) else ""


async def refuse_writing(call: WriteFile, context: Context) -> None:
    _written(call, context)


async def write_file(call: WriteFile, context: Context) -> Result:
    path, before = _written(call, context)
    _save(path, call.content, context)
    verb = "wrote" if before else "created"
    shown = os.path.relpath(path, context.project)
    count = len(call.content.splitlines())
    diff = unified_diff(before, call.content, shown, shown)
    return Result(f"{verb} {shown} ({count} lines)", diff=diff)


def _edited(call: EditFile, context: Context) -> tuple[str, str, str, int]:
    """The path that a call would edit, the text before and after, the places. Raises `Failed`."""
    path = writable(call.path, context)
    if not os.path.exists(path):
        raise Failed(f"there is no file {call.path}; write_file makes one")
    before = after = text_of(_read(path))
    places = 0
    for edit in _replacements(call):
        found = after.count(edit.old) if edit.old else 0
        if found == 0:
            raise Failed(f"`old` does not stand in {call.path}{_nearest(after, edit.old)}")
        if found > 1 and not edit.all:
            raise Failed(f"`old` stands {found} times in {call.path}; take more lines, or set all")
        after = after.replace(edit.old, edit.new)
        places += found
    return path, before, after, places


def _replacements(call: EditFile) -> list[Replacement]:
    if not call.edits:
        return [Replacement(call.old, call.new, call.all)]
    if call.old:
        raise Failed("edit_file takes `old` and `new`, or `edits`; send one of them")
    try:
        return msgspec.convert(call.edits, list[Replacement])
    except msgspec.ValidationError as error:
        raise Failed(f"edits: {error}. Each takes old, new and all.") from None


async def refuse_editing(call: EditFile, context: Context) -> None:
    _edited(call, context)


async def edit_file(call: EditFile, context: Context) -> Result:
    path, before, after, found = _edited(call, context)
    _save(path, after, context)
    shown = os.path.relpath(path, context.project)
    diff = unified_diff(before, after, shown, shown)
    return Result(f"edited {shown} ({found} places)", diff=diff)


async def list_files(call: ListFiles, context: Context) -> Result:
    folder = readable(call.path, context)
    if not os.path.isdir(folder):
        raise Failed(f"{call.path} is not a folder")
    entries = sorted(os.scandir(folder), key=lambda e: (not e.is_dir(), e.name))
    rows = [
        f"{e.name}/" if e.is_dir() else f"{e.name}  {e.stat(follow_symlinks=False).st_size:,}"
        for e in entries
    ]
    return Result(context.shorten("\n".join(rows)) or "(empty)")


async def glob_files(call: GlobFiles, context: Context) -> Result:
    folder = readable(call.path, context)

    def find() -> list[str]:
        fitting = (p for p in walk_files(folder, _MOST_WALKED) if matches_glob(p, call.pattern))
        return list(islice(fitting, _MOST_FOUND + 1))

    found = await asyncio.to_thread(find)
    more = f"\n(more than {_MOST_FOUND}; narrow the pattern)" if len(found) > _MOST_FOUND else ""
    return Result("\n".join(found[:_MOST_FOUND]) + more if found else "(no file fits)")


async def search_files(call: SearchFiles, context: Context) -> Result:
    try:
        re.compile(call.pattern)
    except re.error as error:
        raise Failed(f"the pattern is not a regular expression: {error}") from None
    paths_ = await asyncio.to_thread(_to_search, readable(call.path, context), call.glob, context)
    asked = {"paths": paths_, "pattern": call.pattern, "ignore_case": call.ignore_case}
    rows = await _ask_searcher(asked, context.options.search_seconds)
    more = f"\n(more than {_MOST_FOUND}; narrow the search)" if len(rows) > _MOST_FOUND else ""
    found = "\n".join(rows[:_MOST_FOUND])
    return Result(context.shorten(found) + more if rows else "(nothing found)")


async def _ask_searcher(asked: dict[str, Any], seconds: float) -> list[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",  # it needs nothing but the standard library, and starts faster without the rest
        "-S",
        file_search.__file__,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            told, _ = await process.communicate(json.dumps(asked).encode())
    except TimeoutError:
        raise Failed(f"the search took too long (over {seconds:g} s); narrow it") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise Failed("the search failed")
    return told.decode("utf-8", "replace").splitlines()


def readable(path: str, context: Context) -> str:
    """The real path, if the agent may read it."""
    real = _resolve(path, context)
    if not context.options.show_secrets and is_secret_path(real, paths.user_home()):
        raise Failed(f"{path} may hold secrets and is masked; ask the user for what is needed")
    if not _is_open(real, context):
        if is_own_path(real, context.project):
            raise Failed(f"{path} is Tacit's own; ask the user for what is needed")
        raise Failed(f"{path} is outside the project; the user can start in a folder above it")
    if not os.path.exists(real):
        raise Failed(f"there is no {path}")
    return real


def _is_open(real: str, context: Context) -> bool:
    """Whether the real path lies in the project, the session's own folder, or a skill."""
    if is_inside(real, context.temporary):
        return True
    if is_inside(real, context.project) and not is_own_path(real, context.project):
        return True
    return any(is_inside(real, entry.real) for entry in context.library.active())


def writable(path: str, context: Context) -> str:
    """The real path, if the agent may write it."""
    real = _resolve(path, context)
    inside = any(real.startswith(p + os.sep) for p in (context.project, context.temporary))
    if not inside or context.options.read_only_project:
        raise Failed(f"{path} is outside the project and cannot be written")
    if not context.options.show_secrets and is_secret_path(real, paths.user_home()):
        raise Failed(f"{path} may hold secrets and is masked")
    below = f"/{os.path.relpath(real, context.project).casefold()}/"
    if any(f"/{folder}/" in below for place in host_folders() for folder in place.project):
        raise Failed(f"{path} lies in a skill folder; use manage_skill")
    if f"/{MEMORY_FOLDER}/" in below:
        raise Failed(f"{path} lies in the folder of facts; use remember")
    if "/.git/" in below or is_guarded(real, context.rules()):
        raise Failed(f"{path} is not a file of the project's own work")
    if is_obeyed_path(real, context.rules()) and not context.approved_by_person:
        shown = os.path.relpath(real, context.project)
        raise Failed(
            f"{path} is obeyed by other programs, and nobody said yes to this very change; the user"
            f" can allow it: tacit config set agent.allow_write {shown}"
        )
    return real


def _resolve(path: str, context: Context) -> str:
    if "\x00" in path:
        raise Failed("a path cannot hold a NUL character")
    return os.path.realpath(os.path.join(context.project, os.path.expanduser(path)))


def _read(path: str) -> bytes:
    if os.path.isdir(path):
        raise Failed(f"{path} is a folder; use list_files")
    if not os.path.isfile(path):
        raise Failed(f"{path} is not a plain file")  # reading a pipe would wait for ever
    try:
        with open(path, "rb", opener=file_search.open_judged) as file:
            if (size := os.fstat(file.fileno()).st_size) > _MOST_BYTES:
                raise Failed(f"the file has {size:,} bytes; use run_command with head or grep")
            return file.read(_MOST_BYTES)
    except OSError as error:
        raise Failed(f"cannot read {path}: {error.strerror}") from None


def _save(path: str, text: str, context: Context) -> None:
    """Replace the file at `path`, which was resolved and judged, in one step.

    By handles of the folders on the way: a command that runs at the same time could exchange one
    of them for a link.
    """
    root = context.project if is_inside(path, context.project) else context.temporary
    *above, name = os.path.relpath(path, root).split(os.sep)
    temporary = f".{name}.{os.urandom(6).hex()}.tmp"
    try:
        with Folder.at(root) as top, top.descend(above, make=True) as folder:
            before = folder.status(name)
            descriptor = os.open(temporary, CREATE_FILE, 0o666, dir_fd=folder.fd)
            try:
                with open(descriptor, "wb") as file:
                    file.write(text.encode("utf-8", "replace"))
                    if before is not None:
                        os.fchmod(descriptor, before.st_mode & 0o777)
                    file.flush()
                    os.fsync(descriptor)
                os.replace(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder.fd)
                raise
    except Escape as escape:
        raise Failed(f"cannot write {path}: {escape}") from None
    except OSError as error:
        raise Failed(f"cannot write {path}: {error.strerror}") from None


def _nearest(text: str, wanted: str) -> str:
    """The line that comes nearest to the first line of `wanted`."""
    first = next((line.strip() for line in wanted.splitlines() if line.strip()), "")
    lines = text.splitlines()
    near = difflib.get_close_matches(first, [line.strip() for line in lines], 1, 0.5)
    if not near:
        return ""
    number = next(n for n, line in enumerate(lines, 1) if line.strip() == near[0])
    return f"; the nearest is line {number}: {lines[number - 1]}"


def _to_search(place: str, glob: str, context: Context) -> list[tuple[str, str]]:
    """The files to look into, each by its name and its real path; masked ones are left out."""
    if not os.path.isdir(place):
        return [(os.path.basename(place), place)]
    found = []
    for name in walk_files(place, _MOST_WALKED):
        if matches_glob(name, glob):
            try:
                found.append((name, readable(os.path.join(place, name), context)))
            except Failed:
                continue  # a name in the project may be a link to anywhere
    return found


FILE_TOOLS = (
    Tool("read_file", "Read a text file, with line numbers.", ReadFile, read_file),
    Tool(
        "write_file",
        "Create a file or replace its whole content.",
        WriteFile,
        write_file,
        "write",
        refuse_writing,
    ),
    Tool(
        "edit_file",
        "Replace exact text in a file. `old` must stand there once, unless `all` is set."
        " Several `edits` are made together or not at all.",
        EditFile,
        edit_file,
        "write",
        refuse_editing,
    ),
    Tool("list_files", "List a folder.", ListFiles, list_files),
    Tool("glob_files", "Find files by pattern, such as src/**/*.py.", GlobFiles, glob_files),
    Tool(
        "search_files",
        "Search file contents by regular expression; gives file, line and text.",
        SearchFiles,
        search_files,
    ),
)
