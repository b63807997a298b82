"""Claude Code: `~/.claude/projects/<folder>/<session>.jsonl`, a record a content block.

Records form a tree by uuid and parentUuid. They are read in the order of the file, and the links
are not followed: a branch that the user took back did happen, and a circle cannot hurt.

Connected by `hooks` in `~/.claude/settings.json`, timeouts in seconds.
"""

import re
from typing import Any

import msgspec

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import Connector, JsonHooks
from tacit.traces.host import Hooks, JsonlHost, Signs, SkillFolders, Source
from tacit.traces.host_folders import UserPath
from tacit.traces.trace import REFUSED

# Bookkeeping that says nothing about what was done.
_QUIET = (
    "attachment", "api-request", "api-request-shape", "api-request-blob", "queue-operation",
    "last-prompt", "mode", "atis-latch", "tools-used", "file-history-snapshot", "progress",
    "permission-mode", "agent-name", "agent-color", "tag", "pr-link", "worktree-state",
)  # fmt: skip
# User records that the program wrote itself.
_NOT_SAID = (
    "<local-command-", "<bash-input>", "<bash-stdout>", "<bash-stderr>", "<task-notification>",
    "[Request interrupted", "Caveat: ",
)  # fmt: skip
_BUILT_IN = frozenset({
    "add-dir", "agents", "bug", "clear", "compact", "config", "context", "copy", "cost", "doctor",
    "effort", "exit", "export", "fast", "help", "hooks", "ide", "login", "logout", "mcp", "memory",
    "model", "output-style", "permissions", "plan", "plugin", "privacy-settings", "quit", "rename",
    "resume", "rewind", "sandbox", "status", "statusline", "terminal-setup", "theme", "todos",
    "usage", "vim",
})  # fmt: skip
_COMMAND = re.compile(r"<command-name>/?([^<]{1,200})</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_TOKENS = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
)  # fmt: skip
_REFUSED = "The user doesn't want to"


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


class ClaudeCode(JsonlHost):
    name = "claude-code"
    title = "Claude Code"
    aliases = ("claude",)
    precedence = 1
    home = UserPath(".claude", "CLAUDE_CONFIG_DIR")
    programs = ("claude",)
    hooks = Hooks(("Stop",), ("SessionEnd",), shared=True, opening="SessionStart", form="hook")
    signs = Signs(
        variable="CLAUDE_CODE_SESSION_ID",
        session="CLAUDE_CODE_SESSION_ID",
        transcript=r"/projects/[^/]+/[^/]+\.jsonl",
    )
    skills = SkillFolders((".claude/skills",), ("skills",), shared="linked")
    secrets = (".credentials.json", ".claude.json", UserPath(".claude.json"))
    folder = "projects"
    files = r"[^/]+/(?:[^/]+|[^/]+/subagents/agent-[^/]+)\.jsonl"
    form = _Line

    def connector(self) -> Connector:
        return JsonHooks(self, "settings.json")

    def recognises(self, line: dict[str, Any]) -> bool:
        return "sessionId" in line and "provenance" not in line and "projectHash" not in line

    def start(self, source: Source, into: Assembler) -> None:
        # A subagent's own file holds nothing but side chains; elsewhere they are left to it.
        into.state["side"] = "/subagents/" in source.path.replace("\\", "/")

    def tell(self, line: _Line, into: Assembler) -> None:
        if line.type in ("user", "assistant"):
            if line.isSidechain and not into.state["side"]:
                return
            self._about(line, into)
            message = values.mapping(line.message)
            if line.type == "user":
                self._user(line, message, into)
            else:
                self._assistant(line, message, into)
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
                result = values.text(block.get("content"))
                into.returned(
                    values.string(block.get("tool_use_id")),
                    result,
                    failed=block.get("is_error") is True,
                    error=REFUSED if result.startswith(_REFUSED) else "",
                    at=at,
                )
            elif block.get("type") == "text":
                texts.append(values.string(block.get("text")))
            elif block.get("type") == "image":
                texts.append("[image]")
        text = _REMINDER.sub("", "\n".join(texts)).strip()
        if line.isCompactSummary:
            into.compacted(text, at)
        elif text and not line.isMeta and not text.startswith(_NOT_SAID):
            if command := _COMMAND.search(text):
                self._command(command.group(1), text, into, at)
            else:
                into.prompt(text, at)

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
        if usage := values.mapping(message.get("usage")):
            into.used(values.usage(usage, *_TOKENS), values.string(message.get("id")))


HOSTS = (ClaudeCode(),)
