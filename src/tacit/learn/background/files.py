"""Tools on the desk: list, read, write, edit and remove the files of one staged skill.

For agents that work on a skill that was given to them. They are named like the chat's own, so that
a model finds what it knows; a path is one inside the skill.
"""

import msgspec

from tacit.agent.tools.tool import Context, Failed, Result, Tool, numbered, text_of
from tacit.changes.change import SKILL_FILE, Edit
from tacit.changes.edits import Unfit, edit
from tacit.changes.files import File
from tacit.learn.background.desk import Desk


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


def tools(desk: Desk, skill: str) -> tuple[Tool, ...]:
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
    def __init__(self, desk: Desk, skill: str) -> None:
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
            after = edit({path: File(data)}, Edit(call.old, call.new, path))
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
