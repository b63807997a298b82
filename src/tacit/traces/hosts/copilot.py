"""Copilot CLI: `~/.copilot/session-state/<session>/events.jsonl`.

A tool's end says `success` also when the command's exit code was not 0; the code tells. What a
helper did stands in its parent's file, marked with the call that began it.

Connected by a file of ours in `~/.copilot/hooks/`, with its own names for events.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import HOOK_SECONDS, Connector, OwnFile, is_ours
from tacit.traces.host import Hooks, JsonlHost, Signs, SkillFolders
from tacit.traces.host_folders import UserPath
from tacit.traces.program import (
    Program,
    Question,
    Said,
    Start,
    each_of,
    money,
    named_model,
    objects,
    report_file,
    reported,
    total,
)
from tacit.traces.server_entry import ServerEntry, command_and_args
from tacit.traces.settings_json import BadJson, parse_jsonc
from tacit.traces.tool_calls import kind_of
from tacit.traces.trace import REFUSED, Usage

_QUIET = (
    "abort", "assistant.", "commands.", "elicitation.", "exit_plan_mode.", "external_tool.",
    "hook.", "mcp.", "pending_messages.", "permission.", "sampling.", "session.", "subagent.",
    "system.", "tool.", "user_input.",
)  # fmt: skip
_TOKENS = (
    "inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens",
)  # fmt: skip
_REJECTED = "The user rejected this tool call"
"""As the program says it, with what the user typed behind `User feedback: ` (seen with 1.0.102)."""
_ENDING = re.compile(r"\n?<(?:shellId: [^>]*|exited) (?:completed )?with exit code -?\d+>\s*\Z")


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    data: Any = None
    timestamp: Any = None
    agentId: Any = None  # noqa: N815


class CopilotProgram(Program):
    """It has no place for instructions but the question, and no option against hooks.

    A setting of the folder that it runs in turns them off; the same in the user's own does not.
    """

    word = "copilot"
    login = "copilot login"
    paid = "the plan's AI credits (one is $0.01), or one premium request on older plans"
    leaves = True

    def start(self, question: Question) -> Start:
        words = (
            *("--output-format", "json", "-s", "--available-tools", "none"),
            *("--no-custom-instructions", "--disable-builtin-mcps", "--no-ask-user"),
            *("--no-auto-update", "--trust-folder"),
            *("--usage-output-file", os.path.join(question.folder, _USAGE)),
            *named_model("--model", question),
            *(word for name in _servers() for word in ("--disable-mcp-server", name)),
        )
        files = {".github/copilot/settings.json": '{"disableAllHooks":true}'}
        return Start(words, question.whole, files=files)

    def work(self, question: Question) -> Start:
        words = (
            *("--output-format", "json", "-s", "--allow-all", "--disable-builtin-mcps"),
            *("--no-ask-user", "--no-auto-update", "--trust-folder"),
            *named_model("--model", question),
        )
        return Start(words, question.text)

    def said(self, output: str, question: Question) -> Said:
        events = objects(output)
        texts = [
            values.string(data.get("content"))
            for data in each_of(events, "assistant.message", "data")
        ]
        failed = list(each_of(events, "session.error", "data"))
        if not texts and not failed:
            raise ValueError("it holds no answer")
        used = report_file(question.folder, _USAGE)
        models = values.mapping(used.get("modelMetrics"))
        counts = [values.mapping(values.mapping(one).get("usage")) for one in models.values()]
        sent = [one.get("inputTokens") for one in counts]
        came = [one.get("outputTokens") for one in counts]
        why = values.string(failed[-1].get("message")) if failed else ""
        return Said(
            texts[-1] if texts else "",
            error="" if texts else why or "it failed",
            input_tokens=total(*sent) if sent else None,
            output_tokens=total(*came) if came else None,
            cached_tokens=sum(reported(one.get("cacheReadTokens")) or 0 for one in counts),
            cost=_dollars(used),
            model=next(iter(models)) if len(models) == 1 else "",
        )


_USAGE = "usage.json"
_A_CREDIT, _A_PREMIUM_REQUEST = 0.01, 0.04
"""Dollars, by GitHub's list of prices."""


def _servers() -> list[str]:
    """The names of the user's MCP servers: nothing turns off all of them at once."""
    known = report_file(Copilot.home.resolve(), "mcp-config.json")
    return [name for name in values.mapping(known.get("mcpServers")) if not name.startswith("-")]


def _dollars(used: dict[str, Any]) -> float | None:
    """What the report of a run comes to: credits, or premium requests where it counts those."""
    if nano := money(used.get("totalNanoAiu")):
        return nano / 1e9 * _A_CREDIT
    requests = money(used.get("totalPremiumRequestCost"))
    return requests * _A_PREMIUM_REQUEST if requests else None  # 0: it is not counted here


def _server(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", **command_and_args(words), "tools": ["*"]}


class Copilot(JsonlHost):
    name = "copilot"
    title = "Copilot CLI"
    asks = ("ask_user",)
    aliases = ("copilot-cli",)
    precedence = 5
    home = UserPath(".copilot", "COPILOT_HOME")
    programs = ("copilot",)
    program = CopilotProgram()
    hooks = Hooks(("agentStop",), ("sessionEnd",), opening="sessionStart", form="additionalContext")
    signs = Signs(
        variable="COPILOT_CLI",
        transcript=r"/session-state/[^/]+/events\.jsonl",
        key="sessionId",
    )
    skills = SkillFolders((".github/skills",), ("skills",))
    secrets = (
        "config.json",
        UserPath(".config/github-copilot", "XDG_CONFIG_HOME/github-copilot"),
    )
    obeys = (
        ".copilot", ".github/copilot-instructions.md", ".github/instructions", ".github/prompts",
        ".github/agents", ".github/hooks", ".github/copilot", ".github/mcp.json",
    )  # fmt: skip
    folder = "session-state"
    files = r"(?:[^/]+/events|[^/]+)\.jsonl"
    form = _Line

    def connector(self) -> Connector:
        return OwnFile(self, "hooks/tacit.json", self._hooks_file, self._hooks_in)

    def server_entry(self) -> Connector:
        return ServerEntry(self, "mcp-config.json", entry=_server)

    def _hooks_file(self, calls: Mapping[str, str]) -> str:
        hooks = {
            event: [{"type": "command", "bash": command, "timeoutSec": HOOK_SECONDS}]
            for event, command in calls.items()
        }
        return json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False) + "\n"

    def _hooks_in(self, text: str) -> dict[str, str]:
        try:
            hooks = parse_jsonc(text)["hooks"]
            events = (*self.hooks.events, self.hooks.opening)
            found = {event: hooks[event][0]["bash"] for event in events if event in hooks}
        except (BadJson, LookupError, TypeError):
            return {}
        return {event: command for event, command in found.items() if is_ours(command)}

    def recognises(self, line: dict[str, Any]) -> bool:
        return line.get("type") == "session.start" and "sessionId" in values.mapping(
            line.get("data")
        )

    def tell(self, line: _Line, into: Assembler) -> None:
        data, kind = values.mapping(line.data), line.type
        at = values.when(line.timestamp)
        helper = bool(data.get("parentToolCallId") or line.agentId)
        if kind in ("session.start", "session.resume"):
            self._session(data, into)
        elif kind == "user.message":
            if not helper:  # what a helper was told stands in the call that began it
                self._user(data, at, into)
        elif kind == "assistant.message":
            self._assistant(data, at, into, helper)
        elif kind == "tool.execution_start":
            name = values.string(data.get("toolName"))
            into.called(values.string(data.get("toolCallId")), name, data.get("arguments"), at)
        elif kind == "tool.execution_complete":
            self._result(data, at, into)
        elif kind == "session.usage_record":
            self._usage(values.mapping(data.get("usage")), into)
        elif kind == "session.model_change":
            into.about(model=values.string(data.get("newModel")))
        elif kind == "session.compaction_complete":
            into.compacted(values.text(data.get("summaryContent")), at)
        elif kind == "skill.invoked":
            into.activated(values.string(data.get("name")), at)
        elif not isinstance(kind, str) or not kind.startswith(_QUIET):
            into.passed("unknown-record")

    def _session(self, data: dict[str, Any], into: Assembler) -> None:
        context = values.mapping(data.get("context"))
        into.about(
            session=values.string(data.get("sessionId")),
            version=values.string(data.get("copilotVersion")),
            model=values.string(data.get("selectedModel")),
            project=values.string(context.get("cwd")),
            branch=values.string(context.get("branch")),
        )

    def _user(self, data: dict[str, Any], at: Any, into: Assembler) -> None:
        source, text = values.string(data.get("source")), values.text(data.get("content"))
        if source in ("", "user"):
            into.prompt(text, at)
        elif not source.startswith(("skill-", "system")):
            into.told(text, "teammate", at)

    def _assistant(self, data: dict[str, Any], at: Any, into: Assembler, helper: bool) -> None:
        if not helper:
            into.about(model=values.string(data.get("model")))
        into.said(values.text(data.get("content")), at, values.string(data.get("messageId")))
        for call in values.objects(data.get("toolRequests")):
            name = values.string(call.get("name"))
            into.called(values.string(call.get("toolCallId")), name, call.get("arguments"), at)
        if "outputTokens" in data:  # older versions: no records of usage
            key = values.string(data.get("apiCallId")) or values.string(data.get("messageId"))
            into.used(Usage(output=values.count(data.get("outputTokens"))), key)

    def _usage(self, usage: dict[str, Any], into: Assembler) -> None:
        into.used(values.usage(usage, *_TOKENS), values.string(usage.get("apiCallId")))

    def _result(self, data: dict[str, Any], at: Any, into: Assembler) -> None:
        code = values.mapping(data.get("shellExecution")).get("exitCode")
        result = values.text(values.mapping(data.get("result")).get("content"))
        call = values.string(data.get("toolCallId"))
        error, reply = values.text(values.mapping(data.get("error")).get("message")), ""
        # A tool of somebody else's may say so too; ours are known by their names.
        if error.startswith(_REJECTED) and kind_of(into.tool_of(call)) != "other":
            result, error, reply = error, REFUSED, error.partition("feedback: ")[2]
        into.returned(
            call,
            _ENDING.sub("", result),
            failed=data.get("success") is False or (isinstance(code, int | float) and code != 0),
            error=error,
            reply=reply,
            at=at,
        )


HOSTS = (Copilot(),)
