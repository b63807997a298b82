"""The tools of background agents that work on staged skills, in the child.

Everything is reached by directory handles, one component at a time and never through a link, so
what a tool is told to read or write lies among the staged copies or is refused. All agents have
the same `FileTools`, under names of their own: `repair_tools` for one skill, `consolidation_tools`
for several, the reviewer's in `review_tools`. The parent reads what was written and trusts none of
it (`staging`).
"""

import os
import secrets
import stat
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from tacit.agent.tool import MOST_TEXT, Context, Failed, Result, Tool, numbered, text_of
from tacit.base.display import shorten_middle
from tacit.changes.change import SKILL_FILE, Contents, Edit, File, Unfit
from tacit.changes.containment import Escape, Folder, check_name, check_path, read_contents
from tacit.changes.file_edits import edit_file
from tacit.learn.background.task import TaskContext

SKILLS_FOLDER = "skills"
"""The folder of the staging folder that holds the copies."""
MOST_BYTES = 1024 * 1024
MOST_FILES = 500


class StagedSkills:
    """The staged skills, each a folder by its name. Every method raises `Failed` with the cause."""

    def __init__(self, staging: str) -> None:
        self.path = os.path.join(staging, SKILLS_FOLDER)

    def names(self) -> list[str]:
        """The skills that lie here."""
        with self._open() as staged:
            return [name for name in staged.names() if _is_folder(staged, name)]

    def has(self, skill: str) -> bool:
        return skill in self.names()

    def contents(self, skill: str) -> Contents:
        """All files of a skill."""
        try:
            with self._open() as staged, staged.open(skill) as folder:
                return read_contents(folder)
        except FileNotFoundError:
            raise self._missing(skill) from None
        except Escape as escape:
            raise Failed(str(escape)) from None

    def read(self, skill: str, path: str = SKILL_FILE) -> bytes:
        """The bytes of one file."""
        *parents, name = _parts(path)
        try:
            with self._open() as staged, staged.descend([skill, *parents]) as folder:
                return folder.read(name)[0]
        except FileNotFoundError:
            raise self._missing(skill, path) from None
        except Escape as escape:
            raise Failed(str(escape)) from None

    def write(self, skill: str, path: str, data: bytes, *, executable: bool | None = None) -> None:
        """Put `data` there, new or in place of the old. A skill that is not here is begun.

        `executable` None keeps what was; a new file is none, as the gate takes no new programs.
        """
        if refusal := check_name(skill):
            raise Failed(f"{refusal.reason}; {refusal.hint}")
        *parents, name = _parts(path)
        if len(data) > MOST_BYTES:
            raise Failed(f"'{path}' would have {len(data):,} bytes; at most {MOST_BYTES:,}")
        try:
            with self._open() as staged, staged.open(skill, make=True) as folder:
                if len(read_contents(folder).files) >= MOST_FILES:
                    raise Failed(f"'{skill}' has {MOST_FILES} files already, and takes no more")
                with folder.descend(parents, make=True) as below:
                    _put(below, name, data, executable)
        except Escape as escape:
            raise Failed(str(escape)) from None
        except OSError as error:
            raise Failed(f"'{path}' cannot be written: {error.strerror}") from None

    def remove(self, skill: str, path: str) -> None:
        """Take a support file away; never SKILL.md."""
        if path.casefold() == SKILL_FILE.casefold():
            raise Failed("SKILL.md cannot be removed: a skill needs it")
        *parents, name = _parts(path)
        try:
            with self._open() as staged, staged.descend([skill, *parents]) as folder:
                os.unlink(name, dir_fd=folder.fd)
        except FileNotFoundError:
            raise self._missing(skill, path) from None
        except Escape as escape:
            raise Failed(str(escape)) from None
        except OSError as error:
            raise Failed(f"'{path}' cannot be removed: {error.strerror}") from None

    def _open(self) -> Folder:
        return Folder.at(self.path)

    def _missing(self, skill: str, path: str = "") -> Failed:
        if path and self.has(skill):
            there = ", ".join(sorted(self.contents(skill).files)[:20])
            return Failed(f"there is no file '{path}' in '{skill}'; there are: {there}")
        there = ", ".join(self.names()) or "none"
        return Failed(f"'{skill}' is not here to be changed; here are: {there}")


def put_new(folder: Folder, name: str, data: bytes, *, executable: bool) -> None:
    """Write a file that is not there yet."""
    folder.write_new(name, data, 0o700 if executable else 0o600, durable=False)


def _put(folder: Folder, name: str, data: bytes, executable: bool | None) -> None:
    before = folder.status(name)
    if before is not None and not stat.S_ISREG(before.st_mode):
        raise Failed(f"'{name}' is not a plain file, and stays as it is")
    if executable is None:
        executable = before is not None and bool(before.st_mode & 0o100)
    # Under another name first: what is there may have a second name elsewhere.
    temporary = f".{secrets.token_hex(6)}.tmp"
    put_new(folder, temporary, data, executable=executable)
    os.replace(temporary, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd)


def _parts(path: str) -> list[str]:
    if refusal := check_path(path):
        raise Failed(f"{refusal.reason}; {refusal.hint}")
    return path.split("/")


def _is_folder(staged: Folder, name: str) -> bool:
    found = staged.status(name)
    return found is not None and stat.S_ISDIR(found.st_mode)


class ListFiles(msgspec.Struct, frozen=True):
    pass


class ReadFile(msgspec.Struct, frozen=True):
    path: str = SKILL_FILE
    offset: int = 1
    limit: int = 2000


class WriteFile(msgspec.Struct, frozen=True):
    path: str
    content: str


class EditFile(msgspec.Struct, frozen=True):
    path: str
    old: str
    new: str


class RemoveFile(msgspec.Struct, frozen=True):
    path: str


Locate: TypeAlias = Callable[[Any], tuple[str, str]]
"""The skill and the file in it that a call means. Raises `Failed`."""
Admit: TypeAlias = Callable[[str, str, bool], Awaitable[None]]
"""Sees to it that a file of a skill may be written, as a whole or not. Raises `Failed`."""


class FileTools:
    """What agents do with staged files; they differ in how a call names a file, and what it may."""

    def __init__(
        self,
        staged: StagedSkills,
        locate: Locate,
        admit: Admit | None = None,
        *,
        programs: bool = False,
    ) -> None:
        """`programs`: a file that can be run stays one when it is written anew."""
        self.staged = staged
        self._locate = locate
        self._admit = admit
        self._executable = None if programs else False

    async def list(self, call: Any, context: Context) -> Result:
        files = self.staged.contents(self._locate(call)[0]).files
        return Result("\n".join(f"{path}  {len(files[path].data):,}" for path in sorted(files)))

    async def read(self, call: Any, context: Context) -> Result:
        """Some lines with their numbers."""
        lines = text_of(self.staged.read(*self._locate(call))).splitlines()
        first = max(call.offset, 1)
        chosen = lines[first - 1 : first - 1 + max(call.limit, 1)]
        if not chosen:
            return Result(f"(nothing there: the file has {len(lines)} lines)")
        return Result(context.shorten(numbered(chosen, first)))

    async def show(self, call: Any, context: Context) -> Result:
        """A whole file as it is, and what other files there are."""
        skill, path = self._locate(call)
        text = text_of(self.staged.read(skill, path))
        others = sorted(p for p in self.staged.contents(skill).files if p != path)
        tail = f"\n\n[other files of '{skill}': {', '.join(others)}]" if others else ""
        return Result(shorten_middle(text, MOST_TEXT, tail=0) + tail)

    async def write(self, call: Any, context: Context | None = None) -> Result:
        skill, path = await self._admitted(call, whole=True)
        self.staged.write(skill, path, call.content.encode(), executable=self._executable)
        lines = len(call.content.splitlines())
        return Result(f"{skill}/{path} is written ({lines} lines), to be checked when you are done")

    async def edit(self, call: Any, context: Context | None = None) -> Result:
        skill, path = await self._admitted(call, whole=False)
        name = f"{skill}/{path}"
        data = self.staged.read(skill, path)
        try:
            after = edit_file({name: File(data)}, Edit(call.old, call.new, name))
        except Unfit as unfit:
            raise Failed(f"{unfit.refusal.reason}; {unfit.refusal.hint}") from None
        self.staged.write(skill, path, after.data)
        return Result(f"{name} is edited, to be checked when you are done")

    async def remove(self, call: Any, context: Context) -> Result:
        skill, path = self._locate(call)
        self.staged.remove(skill, path)
        return Result(f"{skill}/{path} is removed")

    async def _admitted(self, call: Any, *, whole: bool) -> tuple[str, str]:
        skill, path = self._locate(call)
        if self._admit is not None:
            await self._admit(skill, path, whole)
        return skill, path


RUN_COMMAND = "run_command"
_RUN_COMMAND_DESCRIPTION = (
    "Run a shell command in the project, in a sandbox without network where nothing it writes is"
    " kept. $SKILL_DIR is a copy of the skill as you have it now. A non-zero exit is a failure."
)
_WRITE_DESCRIPTION = "Write a whole file of the skill: a new one, or in place of the old."
_EDIT_DESCRIPTION = (
    "In a file of the skill, replace `old`, which must stand there exactly once, by `new`."
)


class RunCommand(msgspec.Struct, frozen=True):
    command: str


def repair_tools(context: TaskContext) -> tuple[Tool, ...]:
    """The improver's tools, for one skill; `data` says which."""
    skill = context.task.data["skill"]

    def locate(call: Any) -> tuple[str, str]:
        path = getattr(call, "path", "").removeprefix("./")
        return skill, path.removeprefix(f"{skill}/")  # models like to name the folder too

    async def run_command(call: RunCommand, _: Context) -> Result:
        return await context.serve(RUN_COMMAND, {"command": call.command})

    files = FileTools(context.staged, locate, programs=True)
    own = (
        Tool("list_files", "List the files of the skill.", ListFiles, files.list),
        Tool("read_file", "Read a file of the skill, with line numbers.", ReadFile, files.read),
        Tool("write_file", _WRITE_DESCRIPTION, WriteFile, files.write, "write"),
        Tool("edit_file", _EDIT_DESCRIPTION, EditFile, files.edit, "write"),
        Tool("remove_file", "Remove a support file.", RemoveFile, files.remove, "write"),
    )
    if not context.task.data.get("commands"):
        return own
    return (*own, Tool(RUN_COMMAND, _RUN_COMMAND_DESCRIPTION, RunCommand, run_command, "command"))


class ReadSkill(msgspec.Struct, frozen=True):
    skill: str
    path: str = SKILL_FILE


class WriteSkillFile(msgspec.Struct, frozen=True):
    skill: str
    content: str
    path: str = SKILL_FILE


class EditSkillFile(msgspec.Struct, frozen=True):
    skill: str
    old: str
    new: str
    path: str = SKILL_FILE


class CopyFile(msgspec.Struct, frozen=True):
    skill: str
    path: str
    to: str
    to_path: str = ""


class Join(msgspec.Struct, frozen=True):
    umbrella: str
    absorbs: tuple[str, ...]
    why: str


def consolidation_tools(context: TaskContext) -> tuple[Tool, ...]:
    """The curator's tools, for several skills, of which each call names one."""
    staged = context.staged
    # A learned skill holds no programs: a script is named with its interpreter.
    files = FileTools(staged, lambda call: (call.skill, call.path))

    async def copy_file(call: CopyFile, _: Context) -> Result:
        to_path = call.to_path or call.path
        file = staged.contents(call.skill).files.get(call.path)
        if file is None or file.kind == "link":
            raise Failed(f"there is no file '{call.path}' in '{call.skill}'")
        staged.write(call.to, to_path, file.data, executable=False)
        return Result(f"copied: {call.to}/{to_path}")

    async def join(call: Join, _: Context) -> Result:
        return await context.serve("join", msgspec.to_builtins(call))

    shows = "Read a file of a skill; SKILL.md without a path."
    return (
        Tool("read_skill", shows, ReadSkill, files.show),
        Tool("write_file", "Write a file of an umbrella.", WriteSkillFile, files.write),
        Tool("edit_file", "Replace `old`, which stands once, by `new`.", EditSkillFile, files.edit),
        Tool("copy_file", "Bring a file of one skill over to another.", CopyFile, copy_file),
        Tool("join", "Say which skills an umbrella takes in, and why.", Join, join),
    )
