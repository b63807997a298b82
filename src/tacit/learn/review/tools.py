"""The reviewer's tools, and nothing else: what the model in the closed room can call.

`read_file`, `ls`, and the staged copies are reached here, in the child. The library, the session
and the memory are the parent's, which is asked for them and checks on its side whatever is said
here (`serving.py`). Nothing here changes a skill: the gate does, when the review is over.
"""

from typing import Literal

import msgspec

from tacit.agent.tools.tool import Context, Failed, Result, Tool
from tacit.changes.change import SKILL_FILE
from tacit.learn.background.desk import Desk
from tacit.learn.background.task import TaskContext
from tacit.learn.review import reading

SKILLS, FACTS = "skills", "facts"
"""Keys of the task's data: what is under review."""


class ReadFile(msgspec.Struct, frozen=True):
    path: str
    offset: int = 1
    limit: int = 200


class Ls(msgspec.Struct, frozen=True):
    path: str = "."


class ReadTrace(msgspec.Struct, frozen=True):
    page: int


class SearchSkills(msgspec.Struct, frozen=True):
    query: str


class ViewSkill(msgspec.Struct, frozen=True):
    name: str
    path: str = SKILL_FILE


class WriteFile(msgspec.Struct, frozen=True):
    path: str
    content: str


class Edit(msgspec.Struct, frozen=True):
    path: str
    old: str
    new: str


class Remember(msgspec.Struct, frozen=True):
    name: str
    says: str
    kind: Literal["user", "feedback", "project", "reference"]
    detail: str = ""


def tools(context: TaskContext) -> tuple[Tool, ...]:
    """The tools for what is under review: skills, facts, or both."""
    made = _Tools(context)
    found = [*made.looking()]
    if context.task.data.get(SKILLS, True):
        found += made.changing()
    if context.task.data.get(FACTS):
        found += made.remembering()
    return tuple(found)


class _Tools:
    """One review's tools."""

    def __init__(self, context: TaskContext) -> None:
        self._project = context.task.project
        self._desk: Desk = context.desk
        self._serve = context.serve

    def looking(self) -> tuple[Tool, ...]:
        return (
            Tool("read_trace", "A page of the session in full.", ReadTrace, self.read_trace),
            Tool("read_file", "Lines of a file of the project.", ReadFile, self.read_file),
            Tool("ls", "What lies in a folder of the project.", Ls, self.ls),
        )

    def changing(self) -> tuple[Tool, ...]:
        return (
            Tool("search_skills", "Skills that fit some words.", SearchSkills, self.search_skills),
            Tool("view_skill", "A skill, or a file of it.", ViewSkill, self.view_skill),
            Tool(
                "write_file",
                "Make NAME/SKILL.md, which must not exist yet, or a new file of a learned skill, "
                "as NAME/references/x.md.",
                WriteFile,
                self.write_file,
            ),
            Tool(
                "edit",
                "Replace text that stands once in NAME/SKILL.md or another file of a skill that "
                "says source: auto-skill.",
                Edit,
                self.edit,
            ),
        )

    def remembering(self) -> tuple[Tool, ...]:
        return (Tool("remember", "Keep one fact.", Remember, self.remember),)

    async def read_file(self, call: ReadFile, context: Context) -> Result:
        return Result(reading.read_text(self._project, call.path, call.offset, call.limit))

    async def ls(self, call: Ls, context: Context) -> Result:
        return Result(reading.list_names(self._project, call.path))

    async def read_trace(self, call: ReadTrace, context: Context) -> Result:
        return await self._serve("read_trace", {"page": call.page})

    async def search_skills(self, call: SearchSkills, context: Context) -> Result:
        return await self._serve("search_skills", {"query": call.query})

    async def view_skill(self, call: ViewSkill, context: Context) -> Result:
        if self._desk.has(call.name):  # as it stands on the desk, edits and all
            data = self._desk.read(call.name, call.path)
            return Result(data.decode("utf-8", "replace"))
        return await self._serve("view_skill", {"name": call.name, "path": call.path})

    async def write_file(self, call: WriteFile, context: Context) -> Result:
        skill, path = _split(call.path)
        if path == SKILL_FILE:
            if self._desk.has(skill):
                raise Failed(f"{skill}/SKILL.md is there already; edit changes it")
            await self._ask("begin_skill", skill)
        else:
            await self._opened(skill)
            if path in self._desk.contents(skill).files:
                raise Failed(f"{call.path} is there already; edit changes it")
        self._desk.write(skill, path, call.content.encode(), executable=False)
        return Result(f"{call.path} is written, to be checked when you are done")

    async def edit(self, call: Edit, context: Context) -> Result:
        skill, path = _split(call.path)
        await self._opened(skill)
        before = self._desk.read(skill, path).decode("utf-8", "replace")
        count = before.count(call.old) if call.old else 0
        if count != 1:
            where = "does not stand" if not count else f"stands {count} times"
            raise Failed(f"`old` {where} in {call.path}; give text that stands there once")
        after = before.replace(call.old, call.new)
        self._desk.write(skill, path, after.encode())
        return Result(f"{call.path} is edited, to be checked when you are done")

    async def remember(self, call: Remember, context: Context) -> Result:
        return await self._serve("remember", msgspec.structs.asdict(call))

    async def _opened(self, skill: str) -> None:
        """See that `skill` lies on the desk; the parent copies it, if it may be changed."""
        if not self._desk.has(skill):
            await self._ask("open_skill", skill)

    async def _ask(self, what: str, skill: str) -> None:
        result = await self._serve(what, {"name": skill})
        if result.failed:
            raise Failed(result.text)


def _split(path: str) -> tuple[str, str]:
    """`NAME/references/x.md` as the skill and the file. Raises `Failed`."""
    skill, _, rest = path.strip().removeprefix("./").partition("/")
    if not skill or not rest:
        raise Failed(f"'{path}' names no file of a skill; write it as NAME/SKILL.md")
    return skill, rest
