"""The tools of the agent that joins skills: it works on copies, and says what is to become one.

Runs inside the closed room. What it writes is read by nobody but `consolidating.py`, which trusts
none of it.
"""

import msgspec

from tacit.agent.tools.tool import MOST_TEXT, Context, Failed, Result, Tool, text_of
from tacit.changes.change import SKILL_FILE
from tacit.learn.background.task import TaskContext


class ReadSkill(msgspec.Struct, frozen=True):
    skill: str
    path: str = SKILL_FILE


class WriteFile(msgspec.Struct, frozen=True):
    skill: str
    content: str
    path: str = SKILL_FILE


class EditFile(msgspec.Struct, frozen=True):
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


def tools(context: TaskContext) -> tuple[Tool, ...]:
    """The whole toolset, over the staged copies."""
    desk = context.desk

    async def read_skill(call: ReadSkill, _: Context) -> Result:
        text = text_of(desk.read(call.skill, call.path))
        others = sorted(p for p in desk.contents(call.skill).files if p != call.path)
        tail = f"\n\n[other files of '{call.skill}': {', '.join(others)}]" if others else ""
        if len(text) > MOST_TEXT:
            text = f"{text[:MOST_TEXT]}\n[… {len(text) - MOST_TEXT:,} characters left out …]"
        return Result(text + tail)

    async def write_file(call: WriteFile, _: Context) -> Result:
        # A learned skill holds no programs: a script is named with its interpreter.
        desk.write(call.skill, call.path, call.content.encode(), executable=False)
        return Result(f"written: {call.skill}/{call.path}")

    async def edit_file(call: EditFile, _: Context) -> Result:
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
        Tool("write_file", "Write a file of an umbrella.", WriteFile, write_file),
        Tool("edit_file", "Replace `old`, which stands once, by `new`.", EditFile, edit_file),
        Tool("copy_file", "Bring a file of one skill over to another.", CopyFile, copy_file),
        Tool("join", "Say which skills an umbrella takes in, and why.", Join, join),
    )
