"""Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, a record a content block.

Records form a tree by uuid and parentUuid. They are read in the order of the file, and the links
are not followed: a branch that the user took back did happen, and a circle cannot hurt.

A helper has a file of its own, below its session's folder or beside the session's file; older
versions wrote what it did into the session's file, as side chains. In the user's place stand also
plans that were accepted, messages of other agents, what hooks said and what commands printed: each
is known by its form. What the user typed in refusing a call stands in the call's result.

Connected by `hooks` in `~/.claude/settings.json`, timeouts in seconds.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tacit.base.patterns import late_pattern
from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import Connector, JsonHooks
from tacit.traces.host import (
    Hooks,
    JsonlHost,
    Signs,
    SkillFolders,
    Source,
    first_object,
    plain_files,
)
from tacit.traces.host_folders import UserPath
from tacit.traces.program import (
    GO,
    Program,
    Question,
    Said,
    Start,
    money,
    named_model,
    one_object,
    reported,
    total,
)
from tacit.traces.server_entry import ServerEntry, command_and_args
from tacit.traces.trace import REFUSED

# Bookkeeping that says nothing about what was done.
_QUIET = (
    "api-request", "api-request-shape", "api-request-blob", "queue-operation",
    "last-prompt", "mode", "atis-latch", "tools-used", "file-history-snapshot", "progress",
    "permission-mode", "agent-name", "agent-color", "agent-setting", "tag", "pr-link",
    "worktree-state",
)  # fmt: skip
_FOREIGN = {"provenance", "projectHash", "traceId", "trace_id"}
"""Names that lines of Qwen Code, of Gemini CLI and of traces have, beside the same session's."""
# Of the model's blocks, those that say nothing about it either.
_QUIET_BLOCKS = ("thinking", "_tool_result", "fallback", "image", "document")
# User records that the program wrote itself.
_NOT_SAID = ("<local-command-", "<bash-input>", "[Request interrupted", "Caveat: ")
# What others said, in the user's place.
_OTHERS = late_pattern(
    r"<(?:teammate-message|agent-message|cross-session-message|task-notification|channel"
    r"|coordinator-relay|slack-[a-z-]+)[\s>]|Another Claude session sent a message"
    r"|A peer session sent a message|\[SYSTEM NOTIFICATION - NOT USER INPUT\]"
)
_HOOK = late_pattern(r"<user-prompt-submit-hook>|[A-Za-z]+ hook feedback:")
_PRINTED = late_pattern(r"<bash-std(?:out|err)>")
_PLAN = "Implement the following plan:"
_ON_PLAN = "User feedback on this plan: "
_BUILT_IN = frozenset({
    "add-dir", "agents", "bug", "clear", "compact", "config", "context", "copy", "cost", "doctor",
    "effort", "exit", "export", "fast", "help", "hooks", "ide", "login", "logout", "mcp", "memory",
    "model", "output-style", "permissions", "plan", "plugin", "privacy-settings", "quit", "rename",
    "resume", "rewind", "sandbox", "status", "statusline", "terminal-setup", "theme", "todos",
    "usage", "vim",
})  # fmt: skip
_COMMAND = late_pattern(r"<command-name>/?([^<]{1,200})</command-name>")
_ARGUMENTS = late_pattern(r"<command-args>(.*?)</command-args>", re.DOTALL)
_REMINDER = late_pattern(
    r"<(system-reminder|system_reminder|system_instruction|ide_opened_file|ide_selection)"
    r"(?:\s[^>]*)?>.*?</\1>\n?",
    re.DOTALL,
)
"""What the program or one around it, such as Conductor, put beside the user's words."""
_TOKENS = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
)  # fmt: skip
_REFUSED = ("The user doesn't want to", "The agent proposed a plan that was rejected by the user")
_REPLY = late_pattern(
    r"\A(?:The user doesn't want to|Permission for this tool use was denied)[^\n]*"
    r"(?:[Tt]he user said:\n|The user provided the following reason for the rejection:\s*)"
    r"(?P<said>.*?)(?:\n\nNote: The user's next message may contain [^\n]*)?\Z",
    re.DOTALL,
)
_CLARIFIES = "The user wants to clarify these questions."
_ANSWERED = late_pattern(r"\A(?:User|The user) has answered your questions: ")
_ANSWER = late_pattern(
    r'"="(.*?)"(?=, "|\. You can now| user notes: | selected preview)|'
    r' user notes: (.*?)(?=, "|\. You can now|\Z)',
    re.DOTALL,
)


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    message: Any = None
    timestamp: Any = None
    isSidechain: Any = None  # noqa: N815
    isMeta: Any = None  # noqa: N815
    isCompactSummary: Any = None  # noqa: N815
    sessionId: Any = None  # noqa: N815
    agentId: Any = None  # noqa: N815
    cwd: Any = None
    version: Any = None
    gitBranch: Any = None  # noqa: N815
    totalCostUSD: Any = None  # noqa: N815
    summary: Any = None
    customTitle: Any = None  # noqa: N815
    planContent: Any = None  # noqa: N815
    origin: Any = None
    toolDenialKind: Any = None  # noqa: N815
    attachment: Any = None


class ClaudeProgram(Program):
    """`--safe-mode` keeps the login and leaves hooks, skills, memory and plugins out.

    `--bare` sends less, but knows no login other than a key.
    """

    word = "claude"
    login = "claude, and in it /login"
    status = ("auth", "status")
    paid = "the limits of the Claude plan that it is logged in with, or its key"

    def start(self, question: Question) -> Start:
        words = (
            *("-p", "--output-format", "json", "--safe-mode", "--tools", "", "--strict-mcp-config"),
            *("--no-session-persistence", "--system-prompt", question.instructions or GO),
            *named_model("--model", question),
        )
        # Else it reads every file that the question names as @path, wherever it lies.
        return Start(words, question.text, {"CLAUDE_CODE_DISABLE_ATTACHMENTS": "1"})

    def work(self, question: Question) -> Start:
        words = (
            *("-p", "--output-format", "json", "--strict-mcp-config", "--allowedTools", _WORKS),
            *named_model("--model", question),
        )
        quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER")
        return Start(words, question.text, dict.fromkeys(quiet, "1"))

    def said(self, output: str, question: Question) -> Said:
        found = one_object(output)
        if found.get("type") != "result":
            raise ValueError("it is no result")
        text, usage = values.string(found.get("result")), values.mapping(found.get("usage"))
        failed = found.get("is_error") is True or found.get("subtype") != "success"
        models = list(values.mapping(found.get("modelUsage")))
        return Said(
            "" if failed else text,
            error=(text or values.string(found.get("subtype")) or "it failed") if failed else "",
            input_tokens=total(*(usage.get(name) for name in (_TOKENS[0], *_TOKENS[2:]))),
            output_tokens=reported(usage.get("output_tokens")),
            cached_tokens=reported(usage.get("cache_read_input_tokens")) or 0,
            cost=money(found.get("total_cost_usd")),
            model=models[0] if len(models) == 1 else "",
        )


_WORKS = "Bash Read Write Edit MultiEdit Glob Grep Skill Task TodoWrite NotebookEdit"
"""The tools that a task may need; to leave all checks out is refused to root."""


def _server(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "stdio", **command_and_args(words)}


class ClaudeCode(JsonlHost):
    name = "claude-code"
    title = "Claude Code"
    asks = ("AskUserQuestion",)
    aliases = ("claude",)
    precedence = 1
    home = UserPath(".claude", "CLAUDE_CONFIG_DIR")
    programs = ("claude",)
    program = ClaudeProgram()
    hooks = Hooks(("Stop",), ("SessionEnd",), shared=True, opening="SessionStart", form="hook")
    signs = Signs(
        variable="CLAUDE_CODE_SESSION_ID",
        session="CLAUDE_CODE_SESSION_ID",
        transcript=r"/projects/[^/]+/[^/]+\.jsonl",
    )
    skills = SkillFolders((".claude/skills",), ("skills",), shared="linked")
    secrets = (".credentials.json", ".claude.json", UserPath(".claude.json"))
    obeys = (".claude", "CLAUDE.md", "CLAUDE.local.md")
    folder = "projects"
    files = r"[^/]+/(?:[^/]+|[^/]+/subagents/agent-[^/]+)\.jsonl"
    form = _Line

    def connector(self) -> Connector:
        return JsonHooks(self, "settings.json")

    def server_entry(self) -> Connector:
        moved = os.environ.get("CLAUDE_CONFIG_DIR")
        return ServerEntry(self, ".claude.json" if moved else "../.claude.json", entry=_server)

    def recognises(self, line: dict[str, Any]) -> bool:
        return {"sessionId", "type"} <= line.keys() and not line.keys() & _FOREIGN

    def helpers(self, source: Source) -> Iterator[Source]:
        folder, name = os.path.split(source.path)
        session = name.removesuffix(".jsonl")
        for path in plain_files(os.path.join(folder, session, "subagents"), 0):
            if path.endswith(".jsonl"):
                yield from self._sources([path])
        for path in plain_files(folder, 0):
            if os.path.basename(path).startswith("agent-") and path.endswith(".jsonl"):
                first = first_object(path)
                if first is not None and first.get("sessionId") == session:
                    yield from self._sources([path])

    def start(self, source: Source, into: Assembler) -> None:
        # A helper's own file holds nothing but side chains.
        into.state["side"] = os.path.basename(source.path).startswith("agent-")

    def tell(self, line: _Line, into: Assembler) -> None:
        if line.type in ("user", "assistant"):
            self._about(line, into)
            message = values.mapping(line.message)
            if line.type == "user":
                self._user(line, message, into)
            else:
                self._assistant(line, message, into)
        elif line.type == "attachment":
            self._attachment(values.mapping(line.attachment), values.when(line.timestamp), into)
        elif line.type == "cost-state":
            into.cost_in_all(values.amount(line.totalCostUSD))
        elif line.type in ("summary", "custom-title", "ai-title"):
            into.about(title=values.string(line.summary) or values.string(line.customTitle))
        elif line.type != "system" and line.type not in _QUIET:
            into.passed("unknown-record")

    def _about(self, line: _Line, into: Assembler) -> None:
        session, parent = values.string(line.sessionId), ""
        if into.state["side"] and line.agentId:
            session, parent = f"agent-{values.string(line.agentId)}", session
        into.about(
            session=session,
            parent=parent,
            version=values.string(line.version),
            project=values.string(line.cwd),
            branch=values.string(line.gitBranch),
        )

    def _user(self, line: _Line, message: dict[str, Any], into: Assembler) -> None:
        at = values.when(line.timestamp)
        content = message.get("content")
        texts = [content] if isinstance(content, str) else []
        for block in values.objects(content):
            if block.get("type") == "tool_result":
                self._result(block, line, at, into)
            elif block.get("type") == "text":
                texts.append(values.string(block.get("text")))
            elif block.get("type") == "image":
                texts.append("[image]")
        text = _REMINDER.sub("", "\n".join(texts)).strip()
        if line.isCompactSummary:
            into.compacted(text, at)
        elif line.isSidechain and not into.state["side"]:
            return  # what a helper was told stands in the call that began it
        elif line.isMeta:
            if _HOOK.match(text):
                into.told(text, "hook", at)
        elif text:
            self._words(text, line, at, into)

    def _words(self, text: str, line: _Line, at: Any, into: Assembler) -> None:
        """A text in the user's place, by whoever said it."""
        if _is_others(line.origin) or _OTHERS.match(text):
            into.told(text, "teammate", at)
        elif line.planContent or text.startswith(_PLAN):
            plan, _, said = text.partition(_ON_PLAN)
            into.prompt(said, at)
            into.told(values.string(line.planContent) or plan, "plan", at)
        elif _HOOK.match(text):
            into.told(text, "hook", at)
        elif _PRINTED.match(text):
            into.told(text, "output", at)
        elif not text.startswith(_NOT_SAID):
            if command := _COMMAND.search(text):
                self._command(command.group(1), text, into, at)
            else:
                into.prompt(text, at)

    def _attachment(self, given: dict[str, Any], at: Any, into: Assembler) -> None:
        """What came beside a prompt. A message typed while the agent worked is the user's."""
        kind = given.get("type")
        if kind == "queued_command":
            text = _REMINDER.sub("", values.text(given.get("prompt"))).strip()
            others = _is_others(given.get("origin")) or given.get("isMeta")
            if others or _OTHERS.match(text) or given.get("commandMode") == "task-notification":
                into.told(text, "teammate", at)
            else:
                into.prompt(text, at)
        elif kind == "teammate_mailbox":
            said = [values.text(m.get("text")) for m in values.objects(given.get("messages"))]
            into.told("\n\n".join(said), "teammate", at)
        elif kind == "hook_additional_context":
            into.told(values.text(given.get("content")), "hook", at)
        elif kind == "file":
            content = values.mapping(given.get("content"))
            into.told(values.text(values.mapping(content.get("file")).get("content")), "file", at)

    def _result(self, block: dict[str, Any], line: _Line, at: Any, into: Assembler) -> None:
        call = values.string(block.get("tool_use_id"))
        result = values.text(block.get("content"))
        failed = block.get("is_error") is True
        error = reply = ""
        # A server of somebody else's may print these words too.
        if line.toolDenialKind or not into.tool_of(call).startswith("mcp__"):
            said = _REPLY.match(result) if failed else None
            if said is not None:
                error, reply = REFUSED, said["said"]
                if reply.startswith(_CLARIFIES):
                    reply = ""  # the program's words around the agent's own questions
            elif result.startswith(_REFUSED):
                error = REFUSED
            elif _ANSWERED.match(result):
                reply = "\n".join(one or other for one, other in _ANSWER.findall(result))
        into.returned(call, result, failed=failed, error=error, reply=reply, at=at)

    def _command(self, name: str, text: str, into: Assembler, at: Any) -> None:
        """A slash command of the user's: one that is not the program's own loads a skill."""
        if name in _BUILT_IN:
            return
        said = _ARGUMENTS.search(text)
        into.prompt(f"/{name} {said.group(1) if said else ''}".strip(), at)
        into.activated(name, at)

    def _assistant(self, line: _Line, message: dict[str, Any], into: Assembler) -> None:
        model = values.string(message.get("model"))
        if model == "<synthetic>":  # the program speaks, not the model
            return
        at = values.when(line.timestamp)
        if not line.isSidechain or into.state["side"]:
            into.about(model=model)
        for block in values.objects(message.get("content")):
            if block.get("type") == "text":
                into.said(values.string(block.get("text")), at)
            elif block.get("type") in ("tool_use", "server_tool_use"):
                into.called(
                    values.string(block.get("id")),
                    values.string(block.get("name")),
                    block.get("input"),
                    at,
                )
            elif not values.string(block.get("type")).endswith(_QUIET_BLOCKS):
                into.passed("unknown-record")
        if usage := values.mapping(message.get("usage")):
            into.used(values.usage(usage, *_TOKENS), values.string(message.get("id")))


def _is_others(origin: Any) -> bool:
    """Whether a record says that somebody else than the user wrote it."""
    kind = values.mapping(origin).get("kind")
    return kind is not None and kind != "human"


HOSTS = (ClaudeCode(),)
