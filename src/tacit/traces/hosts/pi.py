"""pi: `~/.pi/agent/sessions/--<folder>--/*.jsonl`, one entry a line, a tree by id and parentId.

Entries are read in the order of the file; the links are not followed.

Connected by an extension of ours in `~/.pi/agent/extensions/`.
"""

import re
from typing import Any

import msgspec

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import Connector, OwnFile
from tacit.traces.host import Hooks, JsonlHost, Signs, SkillFolders
from tacit.traces.host_folders import UserPath
from tacit.traces.plugin import shim, shim_calls, shown_folder
from tacit.traces.program import (
    GO,
    Program,
    Question,
    Said,
    Start,
    each_of,
    money,
    named_model,
    objects,
    reported,
    total,
)

_QUIET = (
    "thinking_level_change", "custom", "custom_message", "label", "leaf", "active_tools_change",
)  # fmt: skip
# What `/skill:name` in the user's text is replaced by.
_SKILL = re.compile(r'\A<skill name="([^"]{1,200})"[^>]*>.*?</skill>\s*', re.DOTALL)


# Files that were named on the command line come before what the user typed.
_FILES = re.compile(r"\A(?:<file name=\"[^\"]*\">.*?</file>\n?)+", re.DOTALL)


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    cwd: Any = None
    message: Any = None
    modelId: Any = None  # noqa: N815
    summary: Any = None
    name: Any = None


class PiProgram(Program):
    word = "pi"
    login = "pi, and in it /login"
    paid = "the login or key that pi has for its provider"

    def start(self, question: Question) -> Start:
        words = (
            *("-p", "--mode", "json", "--no-tools", "--no-extensions", "--no-skills"),
            *("--no-context-files", "--no-prompt-templates", "--no-session"),
            *("--system-prompt", question.instructions or GO),
            *named_model("--model", question),
        )
        return Start(words, question.text)

    def work(self, question: Question) -> Start:
        model, files = question.model, {}
        if question.server and model:
            named = {
                "baseUrl": question.server,
                "api": "openai-completions",
                "apiKey": "$OPENAI_API_KEY",
                "models": [{"id": model}],
            }
            file = {"providers": {_SERVER: named}}
            files = {".pi/agent/models.json": msgspec.json.encode(file).decode()}
            model = f"{_SERVER}/{model}"
        words = ("-p", "--mode", "json", *(("--model", model) if model else ()))
        return Start(words, question.text, files=files)

    def said(self, output: str, question: Question) -> Said:
        ended = list(each_of(objects(output), "message_end", "message"))
        message = next((m for m in reversed(ended) if m.get("role") == "assistant"), None)
        if message is None:
            raise ValueError("it holds no answer")
        usage = values.mapping(message.get("usage"))
        blocks = values.objects(message.get("content"))
        text = "".join(values.string(b.get("text")) for b in blocks if b.get("type") == "text")
        failed = message.get("stopReason") in ("error", "aborted")
        why = values.string(message.get("errorMessage"))
        return Said(
            "" if failed else text,
            error=why or "it failed" if failed else "",
            input_tokens=total(*(usage.get(name) for name in ("input", "cacheRead", "cacheWrite"))),
            output_tokens=reported(usage.get("output")),
            cached_tokens=reported(usage.get("cacheRead")) or 0,
            cost=money(values.mapping(usage.get("cost")).get("total")) or None,  # 0: not known
            model=values.string(message.get("model")),
        )


_SERVER = "server"


class Pi(JsonlHost):
    name = "pi"
    title = "pi"
    asks = ()
    precedence = 7
    home = UserPath(".pi/agent", "PI_CODING_AGENT_DIR")
    programs = ("pi",)
    program = PiProgram()
    hooks = Hooks(("agent_end",), ("session_shutdown",), opening="session_start", form="pair each")
    signs = Signs(transcript=r"/sessions/--[^/]*--/[^/]+\.jsonl")
    skills = SkillFolders((".pi/skills",), ("skills",), apart=True)
    secrets = ("auth.json",)
    obeys = (".pi",)
    folder = "sessions"
    files = r"[^/]+/[^/]+\.jsonl"
    form = _Line

    def connector(self) -> Connector:
        return OwnFile(
            self,
            "extensions/tacit.ts",
            lambda calls: shim("pi/tacit.ts", calls, shown_folder("\0").split("\0")),
            shim_calls,
        )

    def session_of(self, transcript: str) -> str:
        return super().session_of(transcript).rpartition("_")[2]  # a time stands before it

    def recognises(self, line: dict[str, Any]) -> bool:
        return line.get("type") == "session" and "cwd" in line and "id" in line

    def tell(self, line: _Line, into: Assembler) -> None:
        at = values.when(line.timestamp)
        if line.type == "message":
            self._message(values.mapping(line.message), at, into)
        elif line.type == "session":
            into.about(
                session=values.string(line.id),
                project=values.string(line.cwd),
            )
        elif line.type == "model_change":
            into.about(model=values.string(line.modelId))
        elif line.type == "session_info":
            into.about(title=values.string(line.name))
        elif line.type in ("compaction", "branch_summary"):
            into.compacted(values.text(line.summary), at)
        elif line.type not in _QUIET:
            into.passed("unknown-record")

    def _message(self, message: dict[str, Any], at: Any, into: Assembler) -> None:
        role = message.get("role")
        if role == "user":
            self._prompt(values.text(message.get("content")), at, into)
        elif role == "assistant":
            self._assistant(message, at, into)
        elif role == "toolResult":
            into.returned(
                values.string(message.get("toolCallId")),
                values.text(message.get("content")),
                failed=message.get("isError") is True,
                at=at,
            )
        elif role == "compactionSummary":
            into.compacted(values.text(message.get("summary")), at)
        elif role == "bashExecution":  # by the user, with `!`
            command, output = message.get("command"), message.get("output")
            into.told(f"$ {values.text(command)}\n{values.text(output)}", "output", at)
        elif role not in ("system", "custom", "hookMessage", "branchSummary"):
            into.passed("unknown-record")

    def _prompt(self, text: str, at: Any, into: Assembler) -> None:
        if skill := _SKILL.match(text):
            into.prompt(f"/skill:{skill.group(1)} {text[skill.end() :]}", at)
            into.activated(skill.group(1), at)
        else:
            files = _FILES.match(text)
            into.prompt(text[files.end() :] if files else text, at)
            into.told(files.group() if files else "", "file", at)

    def _assistant(self, message: dict[str, Any], at: Any, into: Assembler) -> None:
        into.about(model=values.string(message.get("model")))
        content = message.get("content")
        if isinstance(content, str):
            into.said(content, at)
        for block in values.objects(content):
            if block.get("type") == "text":
                into.said(values.string(block.get("text")), at)
            elif block.get("type") == "toolCall":
                name = values.string(block.get("name"))
                into.called(values.string(block.get("id")), name, block.get("arguments"), at)
            elif block.get("type") not in ("thinking", "image"):
                into.passed("unknown-record")
        if usage := values.mapping(message.get("usage")):
            names = ("input", "output", "cacheRead", "cacheWrite", "reasoning")
            cost = values.mapping(usage.get("cost")).get("total")
            into.used(values.usage(usage, *names, cost=cost))


HOSTS = (Pi(),)
