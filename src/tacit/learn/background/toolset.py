"""The tools of background agents that work on staged skills, in the child.

Everything is reached by directory handles, one component at a time and never through a link, so
what a tool is told to read or write lies among the staged copies or is refused. `repair_tools` is
for one skill, `consolidation_tools` for several; the reviewer's are in `review_tools`. What comes
of it is read by the parent, which trusts none of it (`staging`).
"""

import os
import secrets
import stat

import msgspec

from tacit.agent.tool import MOST_TEXT, Context, Failed, Result, Tool, numbered, text_of
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
        with self._open() as desk:
            return [name for name in desk.names() if _is_folder(desk, name)]

    def has(self, skill: str) -> bool:
        return skill in self.names()

    def contents(self, skill: str) -> Contents:
        """All files of a skill."""
        try:
            with self._open() as desk, desk.open(skill) as folder:
                return read_contents(folder)
        except FileNotFoundError:
            raise self._missing(skill) from None
        except Escape as escape:
            raise Failed(str(escape)) from None

    def read(self, skill: str, path: str = SKILL_FILE) -> bytes:
        """The bytes of one file."""
        *parents, name = _parts(path)
        try:
            with self._open() as desk, desk.descend([skill, *parents]) as folder:
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
            with self._open() as desk, desk.open(skill, make=True) as folder:
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
            with self._open() as desk, desk.descend([skill, *parents]) as folder:
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


def _is_folder(desk: Folder, name: str) -> bool:
    found = desk.status(name)
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


def file_tools(desk: StagedSkills, skill: str) -> tuple[Tool, ...]:
    """The tools for the skill of this name on the desk, and no other."""
    own = _Files(desk, skill)
    return (
        Tool("list_files", "List the files of the skill.", ListFiles, own.list),
        Tool("read_file", "Read a file of the skill, with line numbers.", ReadFile, own.read),
        Tool(
            "write_file",
            "Write a whole file of the skill: a new one, or in place of the old.",
            WriteFile,
            own.write,
            "write",
        ),
        Tool(
            "edit_file",
            "In a file of the skill, replace `old`, which must stand there exactly once, by `new`.",
            EditFile,
            own.edit,
            "write",
        ),
        Tool("remove_file", "Remove a support file.", RemoveFile, own.remove, "write"),
    )


class _Files:
    def __init__(self, desk: StagedSkills, skill: str) -> None:
        self._desk = desk
        self._skill = skill

    async def list(self, call: ListFiles, context: Context) -> Result:
        files = self._desk.contents(self._skill).files
        return Result("\n".join(f"{path}  {len(files[path].data):,}" for path in sorted(files)))

    async def read(self, call: ReadFile, context: Context) -> Result:
        lines = text_of(self._desk.read(self._skill, self._inside(call.path))).splitlines()
        first = max(call.offset, 1)
        chosen = lines[first - 1 : first - 1 + max(call.limit, 1)]
        if not chosen:
            return Result(f"(nothing there: the file has {len(lines)} lines)")
        return Result(context.shorten(numbered(chosen, first)))

    async def write(self, call: WriteFile, context: Context) -> Result:
        path = self._inside(call.path)
        self._desk.write(self._skill, path, call.content.encode())
        return Result(f"wrote {path} ({len(call.content.splitlines())} lines)")

    async def edit(self, call: EditFile, context: Context) -> Result:
        path = self._inside(call.path)
        data = self._desk.read(self._skill, path)
        try:
            after = edit_file({path: File(data)}, Edit(call.old, call.new, path))
        except Unfit as unfit:
            raise Failed(f"{unfit.refusal.reason}; {unfit.refusal.hint}") from None
        self._desk.write(self._skill, path, after.data)
        return Result(f"edited {path}")

    async def remove(self, call: RemoveFile, context: Context) -> Result:
        path = self._inside(call.path)
        self._desk.remove(self._skill, path)
        return Result(f"removed {path}")

    def _inside(self, path: str) -> str:
        """Models like to name the skill's folder too."""
        path = path.removeprefix("./")
        return path.removeprefix(f"{self._skill}/")


RUN_COMMAND = "run_command"
_RUN_COMMAND_DESCRIPTION = (
    "Run a shell command in the project, in a sandbox without network where nothing it writes is"
    " kept. $SKILL_DIR is a copy of the skill as you have it now. A non-zero exit is a failure."
)


class RunCommand(msgspec.Struct, frozen=True):
    command: str


def repair_tools(context: TaskContext) -> tuple[Tool, ...]:
    """The improver's tools; `data` says which skill it is."""

    async def run_command(call: RunCommand, _: Context) -> Result:
        return await context.serve(RUN_COMMAND, {"command": call.command})

    own = file_tools(context.desk, context.task.data["skill"])
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
    """The whole toolset, over the staged copies."""
    desk = context.desk

    async def read_skill(call: ReadSkill, _: Context) -> Result:
        text = text_of(desk.read(call.skill, call.path))
        others = sorted(p for p in desk.contents(call.skill).files if p != call.path)
        tail = f"\n\n[other files of '{call.skill}': {', '.join(others)}]" if others else ""
        if len(text) > MOST_TEXT:
            text = f"{text[:MOST_TEXT]}\n[… {len(text) - MOST_TEXT:,} characters left out …]"
        return Result(text + tail)

    async def write_file(call: WriteSkillFile, _: Context) -> Result:
        # A learned skill holds no programs: a script is named with its interpreter.
        desk.write(call.skill, call.path, call.content.encode(), executable=False)
        return Result(f"written: {call.skill}/{call.path}")

    async def edit_file(call: EditSkillFile, _: Context) -> Result:
        text = text_of(desk.read(call.skill, call.path))
        count = text.count(call.old) if call.old else 0
        if count != 1:
            raise Failed(f"`old` stands {count} times in {call.skill}/{call.path}; it must be once")
        desk.write(call.skill, call.path, text.replace(call.old, call.new).encode())
        return Result(f"edited: {call.skill}/{call.path}")

    async def copy_file(call: CopyFile, _: Context) -> Result:
        to_path = call.to_path or call.path
        file = desk.contents(call.skill).files.get(call.path)
        if file is None or file.kind == "link":
            raise Failed(f"there is no file '{call.path}' in '{call.skill}'")
        desk.write(call.to, to_path, file.data, executable=False)
        return Result(f"copied: {call.to}/{to_path}")

    async def join(call: Join, _: Context) -> Result:
        return await context.serve("join", msgspec.to_builtins(call))

    return (
        Tool(
            "read_skill", "Read a file of a skill; SKILL.md without a path.", ReadSkill, read_skill
        ),
        Tool("write_file", "Write a file of an umbrella.", WriteSkillFile, write_file),
        Tool("edit_file", "Replace `old`, which stands once, by `new`.", EditSkillFile, edit_file),
        Tool("copy_file", "Bring a file of one skill over to another.", CopyFile, copy_file),
        Tool("join", "Say which skills an umbrella takes in, and why.", Join, join),
    )
