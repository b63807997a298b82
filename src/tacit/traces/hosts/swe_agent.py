"""SWE-agent (`.traj`) and mini-swe-agent (`.traj.json`), each run a JSON document.

SWE-agent holds a list `trajectory` of thoughts, actions and observations (beside `history`; `query`
was called `messages` before 1.1), mini-swe-agent a list `messages`, in which a command stands in a
fence or is a tool call. Whether a run was resolved stands in other files: a map from instance to
true or false, or the evaluation's report with `resolved_ids`, which is read where it lies beside.
"""

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.chat_message import message_of, messages_of
from tacit.traces.conversation_files import ConversationFiles, verdict
from tacit.traces.host import Source, file_stamp, ignore, read_document, stated_outcome

# The tools of SWE-agent that are not shell commands, though they are written like them.
_TOOLS = frozenset({
    "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "str_replace_editor",
    "search_dir", "search_file", "find_file", "submit",
})  # fmt: skip
_FENCED = re.compile(r"```(?:bash|sh|mswea_bash_command)?\n(.*?)\n?```", re.DOTALL)
_MAX_REPORT = 16 * 1024 * 1024
_REPORTS = 20
"""Files beside a run, or above it, that may say which runs were resolved."""


class SweAgent(ConversationFiles):
    name = "swe-agent"
    title = "SWE-agent"
    precedence = 63

    def claims(self, record: Any) -> bool:
        if isinstance(record, list):  # mini-swe-agent, before it wrote more than the messages
            said = [values.text(message.get("content")) for message in values.objects(record)[:20]]
            return any(text.startswith("<returncode>") for text in said)
        run = values.mapping(record)
        steps = values.objects(run.get("trajectory"))
        history = values.objects(run.get("history"))
        if any("action" in step and "observation" in step for step in steps[:5]):
            return True
        if any("message_type" in message for message in history[:20]):
            return True
        info = values.mapping(run.get("info"))
        mini = values.string(run.get("trajectory_format")).startswith("mini-swe-agent")
        return "messages" in run and (mini or "mini_version" in info or "exit_status" in info)

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        for record in records:
            run = {"messages": record} if isinstance(record, list) else values.mapping(record)
            name = os.path.basename(source.path).removesuffix(".json").removesuffix(".traj")
            instance = values.string(run.get("instance_id")) or name
            into.about(session=name, verdict=_resolved(os.path.dirname(source.path), instance))
            self._info(values.mapping(run.get("info")), into)
            if "trajectory" in run:
                yield from self._steps(run, into)
            else:  # of a demonstration there is only the history
                yield from self._mini(values.objects(run.get("messages", run.get("history"))), into)

    def _info(self, info: dict[str, Any], into: Assembler) -> None:
        stats = values.mapping(info.get("model_stats"))
        config = values.mapping(values.mapping(info.get("config")).get("model"))
        into.about(
            version=values.string(info.get("swe_agent_version"))
            or values.string(info.get("mini_version")),
            model=values.string(config.get("model_name")),
            verdict=verdict("resolved", info.get("resolved")),
        )
        if stats:
            cost = stats.get("instance_cost")
            into.used_in_all(values.usage(stats, "tokens_sent", "tokens_received", cost=cost))

    def _steps(self, run: dict[str, Any], into: Assembler) -> Iterator[None]:
        into.given(_first_words(run, "system"))
        into.prompt(_first_words(run, "user"))
        for number, step in enumerate(values.objects(run.get("trajectory"))):
            into.said(values.text(step.get("thought")))
            if action := values.text(step.get("action")).strip():
                into.called(f"#{number}", *_call_of_action(action))
                result, failed, error = stated_outcome(step.get("observation"))
                took = values.amount(step.get("execution_time"))
                into.returned(f"#{number}", result, failed=failed, error=error, duration=took)
            yield

    def _mini(self, messages: list[dict[str, Any]], into: Assembler) -> Iterator[None]:
        """mini-swe-agent: messages; without tool calls, commands in fences and results as user."""
        waiting = False
        for message in messages:
            text = values.text(message.get("content"))
            if message.get("role") == "user" and waiting:
                result, failed, error = stated_outcome(text)
                into.returned("", result, failed=failed, error=error)
                waiting = False
            elif message.get("role") == "exit":
                continue  # how the run ended, which `info` says too
            elif _interrupt(message) not in ("", "UserInterruption"):
                into.told(text, "system")  # an answer that the program could not use
            elif (said := message_of(message)) is not None:
                _actions(message, said)
                said.tell(into)
                command = _FENCED.search(text)
                if said.role == "assistant" and not said.calls and command:
                    into.called("", "bash", {"command": command.group(1)})
                    waiting = True
            elif answers := list(messages_of(message, "assistant")):  # of OpenAI's responses
                for answer in answers:
                    _actions(message, answer)
                    answer.tell(into)
            else:
                into.passed("bad-record")
            yield


def _interrupt(message: dict[str, Any]) -> str:
    return values.string(values.mapping(message.get("extra")).get("interrupt_type"))


def _actions(message: dict[str, Any], said: Any) -> None:
    """Take the answer's model, and the time, from what the agent keeps beside a message."""
    extra = values.mapping(message.get("extra"))
    said.at = values.when(extra.get("timestamp"))
    said.model = values.string(values.mapping(extra.get("response")).get("model"))


def _call_of_action(action: str) -> tuple[str, dict[str, Any]]:
    """The tool and the arguments of an action: a tool's name and words, or a shell command."""
    name, _, rest = action.partition(" ")
    if name not in _TOOLS:
        return "bash", {"command": action}
    if name == "str_replace_editor":
        command, _, rest = rest.partition(" ")
        return name, {"command": command, "path": rest.split(" ", 1)[0], "input": rest}
    return name, {"path": rest.split(" ", 1)[0], "input": rest}


def _first_words(run: dict[str, Any], role: str) -> str:
    """The first message by `role` that is not a demonstration."""
    for message in values.objects(run.get("history")):
        if message.get("role") == role and not message.get("is_demo"):
            return values.text(message.get("content"))
    return ""


def _resolved(folder: str, instance: str) -> str:
    """What the evaluation beside the runs in `folder` says of one of them."""
    for near in (folder, os.path.dirname(folder)):
        for path in _may_report(near, file_stamp(near)):
            if (found := _report(path, file_stamp(path)).get(instance)) is not None:
                return verdict("resolved", found)
    return ""


@lru_cache(maxsize=64)
def _may_report(folder: str, stamp: str) -> tuple[str, ...]:
    """The files in a folder that may say which runs were resolved."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError:
        return ()
    found = [name for name in names if not name.endswith(".traj.json")][:_REPORTS]
    return tuple(os.path.join(folder, name) for name in found)


@lru_cache(maxsize=64)
def _report(path: str, stamp: str) -> dict[str, bool]:
    """Which runs a file says were resolved, or not; empty where it is no such file."""
    try:
        report = values.mapping(read_document(path, _MAX_REPORT, ignore))
    except OSError:
        return {}
    if isinstance(report.get("resolved_ids"), list):
        bad = values.items(report.get("unresolved_ids")) + values.items(report.get("error_ids"))
        good = dict.fromkeys(map(str, report["resolved_ids"]), True)
        return dict.fromkeys(map(str, bad), False) | good
    if report and all(isinstance(value, bool) for value in report.values()):
        return report
    return {}


HOSTS = (SweAgent(),)
