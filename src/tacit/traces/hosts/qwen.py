"""Qwen Code: `~/.qwen/projects/<folder>/chats/<session>.jsonl`.

The envelope is like Claude Code's, the messages like Gemini CLI's. What the user typed has the
provenance `real_user`; older versions do not say. A helper has a file of its own, in
`<folder>/subagents/<session>/`.

Connected by `hooks` in `~/.qwen/settings.json`, timeouts in milliseconds. SessionEnd never fires
without a terminal; the quiet after the last Stop ends such a session.
"""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import Connector, JsonHooks
from tacit.traces.host import Hooks, JsonlHost, Signs, SkillFolders, Source, plain_files
from tacit.traces.host_folders import UserPath
from tacit.traces.hosts import gemini
from tacit.traces.program import (
    DO,
    GO,
    Program,
    Question,
    Said,
    Start,
    last,
    named_model,
    reported,
)
from tacit.traces.server_entry import ServerEntry

_TOKENS = (
    "promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "", "thoughtsTokenCount",
)  # fmt: skip


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    subtype: Any = None
    provenance: Any = None
    uuid: Any = None
    timestamp: Any = None
    sessionId: Any = None  # noqa: N815
    cwd: Any = None
    version: Any = None
    gitBranch: Any = None  # noqa: N815
    model: Any = None
    message: Any = None
    usageMetadata: Any = None  # noqa: N815
    toolCallResult: Any = None  # noqa: N815
    systemPayload: Any = None  # noqa: N815
    isSidechain: Any = None  # noqa: N815


class QwenProgram(Program):
    """`--safe-mode` alone keeps its tools: they are left out by name.

    One stays, which only reads: it would send an empty list of tools, which providers refuse.
    """

    word = "qwen"
    login = "qwen, and in it /auth"
    paid = "the login or key that Qwen Code has"

    def start(self, question: Question) -> Start:
        words = (
            *("-p", GO, "-o", "json", "--bare", "--safe-mode", "--chat-recording=false"),
            *("--exclude-tools", *_TOOLS, "--system-prompt", question.instructions or GO),
            *named_model("-m", question),
        )
        return Start(words, question.text)

    def work(self, question: Question) -> Start:
        words = (
            *("-p", DO, "-o", "json", "--auth-type", "openai", "--approval-mode", "yolo"),
            *named_model("-m", question),
        )
        return Start(words, question.text)

    def said(self, output: str, question: Question) -> Said:
        found = values.decoded_json(output[max(output.find("["), 0) :])
        result = last(values.objects(found), "result")
        if not result:
            raise ValueError("it has no result")
        usage = values.mapping(result.get("usage"))
        failed = result.get("is_error") is True
        error = values.mapping(result.get("error")).get("message") or result.get("error")
        why = values.string(error) or values.string(result.get("result"))
        return Said(
            "" if failed else values.string(result.get("result")),
            error=why or "it failed" if failed else "",
            input_tokens=reported(usage.get("input_tokens")),
            output_tokens=reported(usage.get("output_tokens")),
            cached_tokens=reported(usage.get("cache_read_input_tokens")) or 0,
        )


_TOOLS = ("read_file", "notebook_edit", "run_shell_command", "update_goal", "edit")


class Qwen(JsonlHost):
    name = "qwen"
    title = "Qwen Code"
    asks = ("ask_user_question",)
    aliases = ("qwen-code",)
    precedence = 4
    home = UserPath(".qwen")
    programs = ("qwen",)
    program = QwenProgram()
    hooks = Hooks(("Stop",), ("SessionEnd",), opening="SessionStart", form="hook each")
    signs = Signs(
        variable="QWEN_CODE_SESSION_ID",
        session="QWEN_CODE_SESSION_ID",
        transcript=r"/projects/[^/]+/chats/[^/]+\.jsonl",
    )
    skills = SkillFolders((".qwen/skills",), ("skills",))
    secrets = ("oauth_creds.json",)
    obeys = (".qwen", "QWEN.md")
    folder = "projects"
    files = r"[^/]+/(?:chats/[^/]+|subagents/[^/]+/agent-[^/]+)\.jsonl"
    form = _Line

    def connector(self) -> Connector:
        return JsonHooks(self, "settings.json", milliseconds=True)

    def server_entry(self) -> Connector:
        return ServerEntry(self, "settings.json")

    def recognises(self, line: dict[str, Any]) -> bool:
        message = line.get("message")
        return "sessionId" in line and (
            "provenance" in line or (isinstance(message, dict) and "parts" in message)
        )

    def helpers(self, source: Source) -> Iterator[Source]:
        project, name = os.path.dirname(os.path.dirname(source.path)), os.path.basename(source.path)
        folder = os.path.join(project, "subagents", name.removesuffix(".jsonl"))
        yield from self._sources([p for p in plain_files(folder, 0) if p.endswith(".jsonl")])

    def start(self, source: Source, into: Assembler) -> None:
        name = os.path.basename(source.path)
        if name.startswith("agent-"):  # a helper's own file
            into.state["side"] = name.removesuffix(".jsonl")

    def tell(self, line: _Line, into: Assembler) -> None:
        side = into.state.get("side")
        if line.isSidechain and not side:
            return
        at = values.when(line.timestamp)
        into.about(
            session=values.string(side) or values.string(line.sessionId),
            parent=values.string(line.sessionId) if side else "",
            version=values.string(line.version),
            project=values.string(line.cwd),
            branch=values.string(line.gitBranch),
        )
        said = values.mapping(line.message).get("parts")
        if line.type == "user":
            if line.provenance in (None, "real_user"):
                gemini.tell_prompt(gemini.parts_text(said), at, into)
        elif line.type == "assistant":
            into.about(model=values.string(line.model))
            into.said(gemini.parts_text(said), at)
            for call in gemini.function_calls(said):
                name = values.string(call.get("name"))
                into.called(values.string(call.get("id")), name, call.get("args"), at)
            if tokens := values.mapping(line.usageMetadata):
                used = values.usage(tokens, *_TOKENS, cached_in_input=True)
                into.used(used, values.string(line.uuid))
        elif line.type == "tool_result":
            self._result(line, said, at, into)
        elif line.type == "system":
            self._system(line, at, into)
        else:
            into.passed("unknown-record")

    def _result(self, line: _Line, said: Any, at: Any, into: Assembler) -> None:
        told = values.mapping(line.toolCallResult)
        shown = values.mapping(told.get("resultDisplay"))
        code = shown.get("exitCode")
        wrong = told.get("status") in ("error", "cancelled") or (
            isinstance(code, int) and code != 0
        )
        for response in gemini.function_responses(said):
            result, failed = gemini.response_outcome(response)
            call_id = values.string(response.get("id")) or values.string(told.get("callId"))
            into.returned(call_id, result, failed=failed or wrong, at=at)

    def _system(self, line: _Line, at: Any, into: Assembler) -> None:
        payload = values.mapping(line.systemPayload)
        event = values.mapping(payload.get("uiEvent"))
        if str(event.get("event.name", "")).endswith(".tool_call") and event.get("call_id"):
            took = values.amount(event.get("duration_ms"))
            into.returned(
                values.string(event.get("call_id")),
                failed=event.get("success") is False,
                error=values.text(event.get("error")),
                duration=None if took is None else took / 1000,
            )
        elif line.subtype == "chat_compression":
            into.compacted(values.text(values.mapping(payload.get("info")).get("summary")), at)


HOSTS = (Qwen(),)
