"""SWE-agent's `.traj` files, and mini-swe-agent's `.traj.json`: one JSON document a run."""

import os
import re
from collections.abc import Iterator
from typing import Any

from tacit.traces import lines, values
from tacit.traces.assemble import Assembler
from tacit.traces.hosts.chat import MAX_DOCUMENT, tell_message
from tacit.traces.hosts.host import Hooks, Source, file_stamp, walk
from tacit.traces.hosts.outcomes import outcome
from tacit.traces.hosts.places import Place
from tacit.traces.trace import Usage

# The tools of SWE-agent that are not shell commands, though they are written like them.
_TOOLS = frozenset({
    "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "str_replace_editor",
    "search_dir", "search_file", "find_file", "submit",
})  # fmt: skip
_FENCED = re.compile(r"```(?:bash|sh|mswea_bash_command)?\n(.*?)\n?```", re.DOTALL)
_ENDINGS = (".traj", ".traj.json")


class SweAgent:
    name = "swe-agent"
    title = "SWE-agent"
    tested = False
    hooks = Hooks()
    place: Place | None = None

    def homes(self) -> list[str]:
        return []

    def find(self) -> Iterator[Source]:
        return iter(())

    def inside(self, path: str) -> Iterator[Source]:
        found = walk(path) if os.path.isdir(path) else iter((path,))
        for file in found:
            if file.endswith(_ENDINGS) and os.path.isfile(file):
                yield Source(self.name, file, "", os.path.getsize(file), os.path.getmtime(file))

    def stamp(self, source: Source) -> str:
        return file_stamp(source.path)

    def fingerprint(self, source: Source, position: int) -> str:
        return ""

    def read(self, source: Source, start: int, into: Assembler) -> Iterator[None]:
        with lines.open_regular(source.path) as file:
            data = file.read(MAX_DOCUMENT + 1)
        if len(data) > MAX_DOCUMENT:
            into.passed("too-long")
            return
        decoded = values.decoded_json(data)
        run = values.mapping(lines.mend(data) if decoded is None else decoded)
        if not run:
            into.passed("not-json")
            return
        name = os.path.basename(source.path)
        into.about(session=name.removesuffix(".json").removesuffix(".traj"))
        self._info(values.mapping(run.get("info")), into)
        steps = self._mini(run, into) if "trajectory" not in run else self._steps(run, into)
        for number, _ in enumerate(steps):
            into.begin(number)
            yield

    def _info(self, info: dict[str, Any], into: Assembler) -> None:
        stats = values.mapping(info.get("model_stats"))
        config = values.mapping(values.mapping(info.get("config")).get("model"))
        into.about(
            version=values.string(info.get("swe_agent_version"))
            or values.string(info.get("mini_version")),
            model=values.string(config.get("model_name")),
        )
        if stats:
            into.used_in_all(
                Usage(
                    values.count(stats.get("tokens_sent")),
                    values.count(stats.get("tokens_received")),
                    cost=values.amount(stats.get("instance_cost")),
                )
            )

    def _steps(self, run: dict[str, Any], into: Assembler) -> Iterator[None]:
        into.prompt(_task(run))
        for number, step in enumerate(values.objects(run.get("trajectory"))):
            into.said(values.text(step.get("thought")))
            if action := values.text(step.get("action")).strip():
                into.called(f"#{number}", *_call(action))
                result, failed, error = outcome(step.get("observation"))
                took = values.amount(step.get("execution_time"))
                into.returned(f"#{number}", result, failed=failed, error=error, duration=took)
            yield

    def _mini(self, run: dict[str, Any], into: Assembler) -> Iterator[None]:
        """mini-swe-agent: messages; without tool calls, commands in fences and results as user."""
        waiting = False
        for message in values.objects(run.get("messages")):
            text = values.text(message.get("content"))
            if message.get("role") == "user" and waiting:
                result, failed, error = outcome(text)
                into.returned("", result, failed=failed, error=error)
                waiting = False
            else:
                tell_message(message, into)
                command = _FENCED.search(text)
                if message.get("role") == "assistant" and not message.get("tool_calls") and command:
                    into.called("", "bash", {"command": command.group(1)})
                    waiting = True
            yield


def _call(action: str) -> tuple[str, dict[str, Any]]:
    """The tool and the arguments of an action: a tool's name and words, or a shell command."""
    name, _, rest = action.partition(" ")
    if name not in _TOOLS:
        return "bash", {"command": action}
    if name == "str_replace_editor":
        command, _, rest = rest.partition(" ")
        return name, {"command": command, "path": rest.split(" ", 1)[0], "input": rest}
    return name, {"path": rest.split(" ", 1)[0], "input": rest}


def _task(run: dict[str, Any]) -> str:
    """The first message of the user's that is not a demonstration."""
    for message in values.objects(run.get("history")):
        if message.get("role") == "user" and not message.get("is_demo"):
            return values.text(message.get("content"))
    return ""


host = SweAgent()
