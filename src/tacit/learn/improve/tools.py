"""What the improver can do: change the files of the one skill, and have commands run outside."""

import msgspec

from tacit.agent.tools.tool import Context, Result, Tool
from tacit.learn.background import files
from tacit.learn.background.task import TaskContext

RUN = "run_command"
_ABOUT = (
    "Run a shell command in the project, in a sandbox without network where nothing it writes is"
    " kept. $SKILL_DIR is a copy of the skill as you have it now. A non-zero exit is a failure."
)


class RunCommand(msgspec.Struct, frozen=True):
    command: str


def tools(context: TaskContext) -> tuple[Tool, ...]:
    """The improver's tools; `data` says which skill it is."""

    async def run_command(call: RunCommand, _: Context) -> Result:
        return await context.serve(RUN, {"command": call.command})

    own = files.tools(context.desk, context.task.data["skill"])
    if not context.task.data.get("commands"):
        return own
    return (*own, Tool(RUN, _ABOUT, RunCommand, run_command, "command"))
