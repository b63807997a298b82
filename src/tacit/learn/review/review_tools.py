"""The reviewer's tools, in the child: for the project, the session and the staged skills.

Files of the project are read inside its real path, by handles and without links, and secrets are
masked. The library, the session and the memory are the parent's, which is asked for them and
checks everything on its side (`review_broker`).
"""

import os
import stat
from typing import Literal

import msgspec

from tacit.agent.off_limits import is_secret_path
from tacit.agent.project_survey import is_secret_file
from tacit.agent.tool import Context, Failed, Result, Tool, numbered, text_of
from tacit.base import paths
from tacit.base.display import shorten_middle
from tacit.base.paths import is_inside
from tacit.base.secrets import clean
from tacit.changes.change import SKILL_FILE
from tacit.changes.containment import Escape, Folder
from tacit.learn.background.task import Serve, TaskContext
from tacit.learn.background.toolset import EditFile, FileTools, StagedSkills, WriteFile

_MOST_BYTES = 2_000_000
_MOST_NAMES = 300
MOST_TEXT = 12_000
MOST_LINES = 400


def read_project_file(project: str, path: str, first: int, count: int) -> str:
    """Some lines of a file in `project`, numbered. Raises `Failed`."""
    *parents, name = _parts(project, path)
    try:
        with _root(project) as root, root.descend(parents) as folder:
            found = folder.status(name)
            if found is not None and stat.S_ISDIR(found.st_mode):
                raise Failed(f"{path} is a folder; use ls")
            if found is not None and found.st_size > _MOST_BYTES:
                raise Failed(f"{path} has {found.st_size:,} bytes, too many to be read here")
            data, _ = folder.read(name)
    except (Escape, OSError) as error:
        raise _failed(path, error) from None
    lines = clean(text_of(data)).splitlines()
    first = max(first, 1)
    chosen = lines[first - 1 : first - 1 + max(1, min(count, MOST_LINES))]
    if not chosen:
        return f"(nothing there: the file has {len(lines)} lines)" if lines else "(empty)"
    rest = len(lines) - (first - 1 + len(chosen))
    more = f"\n({rest} more lines; go on with offset={first + len(chosen)})" if rest > 0 else ""
    return shorten_middle(numbered(chosen, first), MOST_TEXT) + more


def list_project_folder(project: str, path: str) -> str:
    """What lies in a folder of `project`. Raises `Failed`."""
    try:
        with _root(project) as root, root.descend(_parts(project, path)) as folder:
            names = folder.names()
            rows = [_row(folder, name) for name in names[:_MOST_NAMES]]
    except (Escape, OSError) as error:
        raise _failed(path, error) from None
    more = f"\n({len(names) - _MOST_NAMES} more)" if len(names) > _MOST_NAMES else ""
    return clean("\n".join(rows)) + more or "(empty)"


def _row(folder: Folder, name: str) -> str:
    found = folder.status(name)
    if found is None or stat.S_ISLNK(found.st_mode):
        return f"{name} (a link)"
    if stat.S_ISDIR(found.st_mode):
        return f"{name}/"
    return f"{name} (masked)" if is_secret_file(name) else f"{name}  {found.st_size:,}"


def _parts(project: str, path: str) -> list[str]:
    """The way from the project's root to `path`, links resolved. Raises `Failed`."""
    if not project or not os.path.isdir(project):
        raise Failed("the project of this session is not on this machine")
    if "\0" in path:
        raise Failed("a path cannot hold a NUL character")
    root = os.path.realpath(project)
    real = os.path.realpath(os.path.join(root, path))
    if not is_inside(real, root):
        raise Failed(f"{path} is outside the project")
    if is_secret_path(real, paths.user_home()) or is_secret_path(
        os.path.join(root, path), paths.user_home()
    ):
        raise Failed(f"{path} may hold secrets and is masked")
    relative = os.path.relpath(real, root)
    return [] if relative == "." else relative.split(os.sep)


def _root(project: str) -> Folder:
    return Folder.at(os.path.realpath(project))


def _failed(path: str, error: Exception) -> Failed:
    if isinstance(error, FileNotFoundError):
        return Failed(f"there is no {path}")
    why = error.strerror if isinstance(error, OSError) else str(error)
    return Failed(f"cannot read {path}: {why}")


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


class Remember(msgspec.Struct, frozen=True):
    name: str
    says: str
    kind: Literal["user", "feedback", "project", "reference"]
    detail: str = ""


def reviewer_tools(context: TaskContext) -> tuple[Tool, ...]:
    """The tools for what is under review: skills, facts, or both."""
    made = ReviewTools(context.staged, context.serve)
    found = [*made.looking()]
    if context.task.data.get(SKILLS, True):
        found += made.changing()
    if context.task.data.get(FACTS):
        found += made.remembering()
    return tuple(found)


def no_tools(context: TaskContext) -> tuple[Tool, ...]:
    """For the short form, in which the parent does what the answer asks for."""
    return ()


class ReviewTools:
    """One review's tools."""

    def __init__(self, staged: StagedSkills, serve: Serve) -> None:
        self._staged = staged
        self._serve = serve
        self.files = FileTools(staged, _locate, self._admit)

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
                self.files.write,
            ),
            Tool(
                "edit",
                "Replace text that stands once in NAME/SKILL.md or another file of a skill that "
                "says source: auto-skill.",
                EditFile,
                self.files.edit,
            ),
        )

    def remembering(self) -> tuple[Tool, ...]:
        return (Tool("remember", "Keep one fact.", Remember, self.remember),)

    async def read_file(self, call: ReadFile, context: Context) -> Result:
        return await self._serve("read_file", msgspec.structs.asdict(call))

    async def ls(self, call: Ls, context: Context) -> Result:
        return await self._serve("ls", {"path": call.path})

    async def read_trace(self, call: ReadTrace, context: Context) -> Result:
        return await self._serve("read_trace", {"page": call.page})

    async def search_skills(self, call: SearchSkills, context: Context) -> Result:
        return await self._serve("search_skills", {"query": call.query})

    async def view_skill(self, call: ViewSkill, context: Context) -> Result:
        if self._staged.has(call.name):  # with the edits so far
            return Result(text_of(self._staged.read(call.name, call.path)))
        return await self._serve("view_skill", {"name": call.name, "path": call.path})

    async def remember(self, call: Remember, context: Context | None = None) -> Result:
        return await self._serve("remember", msgspec.structs.asdict(call))

    async def _admit(self, skill: str, path: str, whole: bool) -> None:
        """See that `skill` is staged and the file may be written; a whole file only where none is.

        The parent stages it, if it may be changed, and says whether a new one may be begun.
        """
        begins = whole and path == SKILL_FILE
        is_staged = self._staged.has(skill)
        if not is_staged:
            result = await self._serve("begin_skill" if begins else "open_skill", {"name": skill})
            if result.failed:
                raise Failed(result.text)
        if is_staged if begins else whole and path in self._staged.contents(skill).files:
            raise Failed(f"{skill}/{path} is there already; edit changes it")


def _locate(call: WriteFile | EditFile) -> tuple[str, str]:
    """The skill and the file of `NAME/references/x.md`. Raises `Failed`."""
    skill, _, path = call.path.strip().removeprefix("./").partition("/")
    if not skill or not path:
        raise Failed(f"'{call.path}' names no file of a skill; write it as NAME/SKILL.md")
    return skill, path
