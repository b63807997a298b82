"""A conversation: what was said and done so far, on disk as soon as it is so.

The file is Tacit's own trace format, so a session is read by `tacit session` like any other host's.
Beside the events stand the messages exactly as they went to the provider: resuming sends the same
bytes again, and the provider's cache holds. Messages are only ever added.
"""

import json
import os
import secrets
import time
from typing import TYPE_CHECKING, Any

from tacit.agent import events
from tacit.agent.activation import Active
from tacit.agent.tools.tool import Result
from tacit.base import paths
from tacit.base.errors import NotFound
from tacit.traces.hosts.tacit import SessionWriter
from tacit.traces.trace import Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart

_CUT_OFF = "[no result: the session ended while this ran]"


class Conversation:
    """The messages, the skills that are active, and the file that both are kept in."""

    def __init__(
        self,
        instructions: str,
        writer: SessionWriter,
        session: str,
        *,
        messages: "list[ModelMessage] | None" = None,
        active: dict[str, Active] | None = None,
    ) -> None:
        self.instructions = instructions
        self.session = session
        self.messages: list[ModelMessage] = messages if messages is not None else []
        self.active: dict[str, Active] = active if active is not None else {}
        self._writer = writer
        self._returns: list[ToolReturnPart] = []

    @classmethod
    def new(
        cls, instructions: str, *, project: str, model: str, branch: str = ""
    ) -> "Conversation":
        """A conversation with a file of its own."""
        session = new_session_id()
        writer = SessionWriter(session, project=project, model=model, branch=branch)
        writer.note({"type": "instructions", "text": instructions})
        return cls(instructions, writer, session)

    def model_settings(self) -> Any:
        """Prompt caching wherever the provider has it."""
        return {"cache": True}

    def add_user(self, text: str) -> None:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        self.flush_returns()
        self._writer.prompt(text)
        self._keep(
            ModelRequest(parts=[UserPromptPart(content=text)], instructions=self.instructions)
        )

    def add_response(self, response: "ModelResponse", usage: events.Usage) -> None:
        for part in response.parts:
            if part.part_kind == "text" and part.content:
                self._writer.said(part.content)
            elif part.part_kind == "tool-call":
                self._writer.called(part.tool_call_id, part.tool_name, _as_dict(part))
        cost = usage.cost
        told = Usage(usage.input_tokens, usage.output_tokens, usage.cached_tokens, cost=cost)
        self._writer.used(told)
        self._keep(response)

    def add_return(self, part: "ToolCallPart", result: Result, seconds: float) -> None:
        """The result of one call; it is sent with the others of its response."""
        from pydantic_ai.messages import ToolReturnPart

        error = result.text.strip().rsplit("\n", 1)[-1][:300] if result.failed else ""
        self._writer.returned(
            part.tool_call_id, result.text, failed=result.failed, error=error, seconds=seconds
        )
        returned = ToolReturnPart(
            tool_name=part.tool_name, content=result.text, tool_call_id=part.tool_call_id
        )
        self._returns.append(returned)
        self._writer.note({"type": "return", "part": _dump_part(returned)})

    def flush_returns(self) -> None:
        """Make one request of the results so far."""
        from pydantic_ai.messages import ModelRequest

        if self._returns:
            parts = list(self._returns)
            self._returns.clear()
            self.messages.append(ModelRequest(parts=parts, instructions=self.instructions))

    def close_open_calls(self, text: str) -> None:
        """Give every call without a result this one: providers refuse a history with open calls."""
        done = {part.tool_call_id for part in self._returns}
        response = self.messages[-1] if self.messages else None
        if response is not None and response.kind == "response":
            for part in response.parts:
                if part.part_kind == "tool-call" and part.tool_call_id not in done:
                    self.add_return(part, Result(text, failed=True), 0.0)
        self.flush_returns()

    def activate(self, skill: Active) -> None:
        self.active[skill.name] = skill
        self._writer.activated(skill.name)
        self._writer.note(
            {"type": "active", "name": skill.name, "digest": skill.digest, "folder": skill.folder}
        )

    def add_user_calls(self, calls: "list[tuple[ToolCallPart, Result]]") -> None:
        """Calls that the user made by `/name`, as if the model had made them."""
        from pydantic_ai.messages import ModelResponse

        parts = [part for part, _ in calls]
        for part in parts:
            self._writer.called(part.tool_call_id, part.tool_name, _as_dict(part))
        self._keep(ModelResponse(parts=parts))
        for part, result in calls:
            self.add_return(part, result, 0.0)
        self.flush_returns()

    def is_unanswered(self) -> bool:
        return bool(self.messages) and self.messages[-1].kind == "request"

    def last_text(self) -> str:
        """What the model said last."""
        for message in reversed(self.messages):
            if message.kind == "response":
                return "".join(p.content for p in message.parts if p.part_kind == "text")
        return ""

    def end(self, reason: str) -> None:
        self._writer.note({"type": "ended", "name": reason})

    def _keep(self, message: "ModelMessage") -> None:
        self.messages.append(message)
        self._writer.note({"type": "message", "message": _dump(message)})


def resume(session: str) -> Conversation:
    """The conversation of an earlier session, as it was when it was last written."""
    from pydantic_ai.messages import ModelRequest

    path = session_file(session)
    instructions = ""
    messages: list[ModelMessage] = []
    active: dict[str, Active] = {}
    returns: list[ToolReturnPart] = []

    def flush() -> None:
        if returns:
            messages.append(ModelRequest(parts=list(returns), instructions=instructions))
            returns.clear()

    for line in _lines(path):
        kind = line.get("type")
        if kind == "instructions":
            instructions = line["text"]
        elif kind == "message":
            flush()
            messages.append(_load(line["message"]))
        elif kind == "return":
            returns.append(_load_part(line["part"]))
        elif kind == "active":
            active[line["name"]] = Active(line["name"], line["digest"], line["folder"])
    conversation = Conversation(
        instructions, SessionWriter(session), session, messages=messages, active=active
    )
    conversation._returns = returns
    conversation.close_open_calls(_CUT_OFF)
    return conversation


def session_file(session: str) -> str:
    """The file of the session whose id begins with `session`. Raises `NotFound`."""
    folder = sessions_folder()
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = [name for name in names if name.startswith(session) and name.endswith(".jsonl")]
    if len(found) != 1:
        many = f"{len(found)} sessions begin" if found else "no session begins"
        raise NotFound(f"{many} with '{session}'", "see them: tacit sessions")
    return os.path.join(folder, found[0])


def latest_session(project: str) -> str:
    """The id of the last session in `project`. Raises `NotFound`."""
    folder = sessions_folder()
    names = [n for n in os.listdir(folder) if n.endswith(".jsonl")] if os.path.isdir(folder) else []
    for name in sorted(names, reverse=True):
        first = next(iter(_lines(os.path.join(folder, name))), {})
        if first.get("project") == project:
            return name.removesuffix(".jsonl")
    raise NotFound(f"there is no earlier session in {project}", "start one: tacit chat")


def sessions_folder() -> str:
    return os.path.join(paths.folders().data, "sessions")


def new_session_id() -> str:
    """An id that sorts by time."""
    return time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(4)


def _lines(path: str) -> "list[dict[str, Any]]":
    found = []
    with open(path, encoding="utf-8", errors="replace") as file:
        for text in file:
            try:
                line = json.loads(text)
            except ValueError:
                continue  # cut off by a kill
            if isinstance(line, dict):
                found.append(line)
    return found


def _dump(message: "ModelMessage") -> Any:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


def _load(data: Any) -> "ModelMessage":
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.validate_python([data])[0]


def _dump_part(part: "ToolReturnPart") -> Any:
    from pydantic_ai.messages import ModelRequest

    return _dump(ModelRequest(parts=[part]))["parts"][0]


def _load_part(data: Any) -> Any:
    return _load({"kind": "request", "parts": [data]}).parts[0]


def _as_dict(part: "ToolCallPart") -> dict[str, Any]:
    try:
        return part.args_as_dict()
    except Exception:  # what the model wrote is no JSON
        return {"unreadable": str(part.args)}
