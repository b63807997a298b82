"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`.

A message is written again under its id when more is known of it: the last one counts. On resume
the whole history is written again, poorer, in one record (`$set.messages`): it is passed over,
unless the file holds nothing else. The folder of the project stands in `~/.gemini/projects.json`.
"""

import os
from typing import Any

import msgspec

from tacit.traces import values
from tacit.traces.assemble import Assembler
from tacit.traces.hosts import parts
from tacit.traces.hosts.host import Hooks, JsonlHost, Source

_TOKENS = ("input", "output", "cached", "thoughts")
_CONTEXT = ("<session_context>", "<hook_context>", "This is the Gemini CLI. We are setting up")


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    content: Any = None
    toolCalls: Any = None  # noqa: N815
    tokens: Any = None
    model: Any = None
    sessionId: Any = None  # noqa: N815
    summary: Any = None
    set: Any = msgspec.field(name="$set", default=None)
    rewind: Any = msgspec.field(name="$rewindTo", default=None)


class Gemini(JsonlHost):
    name = "gemini"
    title = "Gemini CLI"
    hooks = Hooks(("AfterAgent",), ("SessionEnd",))
    folder = ".gemini/tmp"
    files = r"[^/]+/chats/session-[^/]*\.jsonl"
    form = _Line

    def recognises(self, line: dict[str, Any]) -> bool:
        return "projectHash" in line and "sessionId" in line

    def start(self, source: Source, into: Assembler) -> None:
        chats = os.path.dirname(os.path.abspath(source.path))
        folder = os.path.dirname(chats)
        into.about(project=_project(folder))

    def tell(self, line: _Line, into: Assembler) -> None:
        if line.type is not None:
            self._message(line, into)
        elif line.set is not None:
            changed = values.mapping(line.set)
            into.about(title=values.string(changed.get("summary")))
            if not into.state.get("seen"):
                for message in values.items(changed.get("messages")):
                    if isinstance(message, dict):
                        self._message(msgspec.convert(message, _Line), into)
        elif line.sessionId is not None:
            into.about(session=values.string(line.sessionId), title=values.string(line.summary))
        elif line.rewind is None:
            into.passed("unknown-record")

    def _message(self, line: _Line, into: Assembler) -> None:
        at = values.when(line.timestamp)
        message = values.string(line.id)
        if line.type == "user":
            for response in parts.responses(line.content):
                if values.string(response.get("id")) not in into.state.get("told", ""):
                    result, failed = parts.outcome(response)
                    into.returned(values.string(response.get("id")), result, failed=failed, at=at)
            text = parts.said(line.content)
            if text.strip() and not text.startswith(_CONTEXT) and into.state.get("last") != message:
                into.prompt(text, at)
                into.state.update(seen=True, last=message, told="")
        elif line.type == "gemini":
            into.state["seen"] = True
            into.about(model=values.string(line.model))
            into.said(parts.said(line.content), at, message)
            for call in parts.calls(line.content):
                name = values.string(call.get("name"))
                into.called(values.string(call.get("id")), name, call.get("args"), at)
            for call in values.items(line.toolCalls):
                self._call(values.mapping(call), at, into)
            if tokens := values.mapping(line.tokens):
                into.used(parts.usage(tokens, _TOKENS), message)
        elif line.type not in ("info", "error", "warning"):
            into.passed("unknown-record")

    def _call(self, call: dict[str, Any], at: Any, into: Assembler) -> None:
        call_id = values.string(call.get("id"))
        into.called(call_id, values.string(call.get("name")), call.get("args"), at)
        status = call.get("status")
        if status not in ("success", "error", "cancelled"):
            return
        result, failed = "", False
        for response in parts.responses(call.get("result")):
            result, failed = parts.outcome(response)
        into.returned(
            call_id,
            result or values.text(call.get("resultDisplay")),
            failed=failed or status == "error",
            error="cancelled" if status == "cancelled" else "",
            at=values.when(call.get("timestamp")),
        )
        # The same results follow once more as a message of the user's; those add nothing.
        into.state["told"] = f"{into.state.get('told', '')} {call_id}"[-4000:]


def _project(folder: str) -> str:
    """The project whose sessions lie below `folder`, from the host's own list."""
    try:
        with open(os.path.join(folder, ".project_root"), encoding="utf-8") as file:
            return file.read(4000).strip()
    except (OSError, ValueError):
        pass
    known = os.path.join(os.path.dirname(os.path.dirname(folder)), "projects.json")
    try:
        with open(known, "rb") as file:
            listed = values.mapping(values.decoded_json(file.read(8 * 1024 * 1024)))
    except OSError:
        return ""
    for project, slug in values.mapping(listed.get("projects")).items():
        if slug == os.path.basename(folder):
            return project
    return ""


host = Gemini()
