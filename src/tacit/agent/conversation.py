"""A conversation: what was said and done so far, on disk as soon as it happened.

Beside the events of the trace stand the messages exactly as they went to the provider, but for
secrets: resuming sends the same bytes again, and the provider's cache holds. In memory a secret
that the user gave stays, for it is worked with; the file has its mark instead, and so has, from the
first resume on, what is sent: the cache misses once from there, then holds. Messages are only ever
added; the one exception is a compaction, which starts over from a summary. The file and its lines
are `traces/hosts/tacit.py`'s.
"""

from typing import TYPE_CHECKING, Any

from tacit.agent import agent_events, client_library
from tacit.agent.activation import Active
from tacit.agent.agent_events import AnswerCounts
from tacit.agent.tool import Result
from tacit.base.errors import NotFound
from tacit.traces.hosts.tacit import (
    SessionWriter,
    drop_cut_off,
    find_session,
    new_session_id,
    read_whole,
)
from tacit.traces.trace import Usage
from tacit.traces.typed_words import PIPED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart

_CUT_OFF = "[no result: the session ended while this ran]"
_CALL_ID = "skill_"


class Conversation:
    """The messages, the skills that are active, and the file that both are kept in."""

    def __init__(self, instructions: str, writer: SessionWriter, session: str) -> None:
        self.instructions = instructions
        self.session = session
        self.messages: list[ModelMessage] = []
        self.active: dict[str, Active] = {}
        self.known: set[str] = set()
        """Names of skills that the model has been told of, or could have found, so far."""
        self.counts = AnswerCounts()
        self.user_words: list[str] = []
        """What the user said: messages, and answers to questions."""
        self._writer = writer
        self._returns: list[ToolReturnPart] = []
        self._user_calls = 0

    @classmethod
    def new(
        cls,
        instructions: str,
        *,
        project: str,
        model: str,
        branch: str = "",
        purpose: str = "",
        known: "Iterable[str]" = (),
        redact: bool = True,
    ) -> "Conversation":
        """A conversation with a file of its own."""
        session = new_session_id()
        about = {"purpose": purpose} if purpose else {}
        writer = SessionWriter(
            session, redact=redact, project=project, model=model, branch=branch, **about
        )
        made = cls(instructions, writer, session)
        made.known = set(known)
        with writer.together():
            writer.note({"type": "instructions", "text": instructions})
            writer.note({"type": "known", "names": sorted(made.known)})
        return made

    def close(self) -> None:
        """Let go of the file, so that another process can resume. Safe to call again."""
        self._writer.close()

    def add_user(self, text: str, *, note: str = "", known: "Iterable[str]" = ()) -> None:
        """What the user said; `note` is ours, stands before it, and told of the skills `known`."""
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        self.flush_returns()
        names = sorted(known)
        self.known.update(names)
        self.counts.asked()
        self.user_words.append(PIPED.sub("", text))
        content = f"{note}\n\n{text}" if note else text
        message = ModelRequest(
            parts=[UserPromptPart(content=content)], instructions=self.instructions
        )
        with self._writer.together():
            self._writer.prompt(text)
            self._keep(message, {"known": names} if names else {})

    def add_response(self, response: "ModelResponse", usage: agent_events.Usage) -> None:
        cost = usage.cost
        used = Usage(usage.input_tokens, usage.output_tokens, usage.cached_tokens, cost=cost)
        with self._writer.together():
            self._tell(response)
            self._writer.used(used)
            self._keep(response)
        self.counts.responded()

    def add_cut_text(self, text: str, why: str) -> None:
        """Keep what had been said of an answer that did not come to its end."""
        from pydantic_ai.messages import ModelResponse, TextPart

        response = ModelResponse(parts=[TextPart(f"{text.rstrip()}\n{why}")])
        with self._writer.together():
            self._tell(response)
            self._keep(response)

    def add_return(self, part: "ToolCallPart", result: Result, seconds: float) -> None:
        """The result of one call; it is sent with the others of its response."""
        from pydantic_ai.messages import ToolReturnPart

        self._hear_answer(part.tool_name, result.text)
        error = agent_events.last_words(result.text)[:300] if result.failed else ""
        returned = ToolReturnPart(
            tool_name=part.tool_name, content=result.text, tool_call_id=part.tool_call_id
        )
        note: dict[str, Any] = {"type": "return", "part": _dump_part(returned)}
        with self._writer.together():
            self._writer.returned(
                part.tool_call_id, result.text, failed=result.failed, error=error, seconds=seconds
            )
            if result.activated is not None:
                self.active[result.activated.name] = result.activated
                self._writer.activated(result.activated.name)
                note["active"] = result.activated
            if result.changed:
                self.counts.changed(result.changed)
                note["changed"] = result.changed
            self._writer.note(note)
        self._returns.append(returned)

    def flush_returns(self) -> None:
        """Make one request of the results so far."""
        from pydantic_ai.messages import ModelRequest

        if self._returns:
            parts = list(self._returns)
            self._returns.clear()
            self.messages.append(ModelRequest(parts=parts, instructions=self.instructions))

    def open_calls(self) -> "list[ToolCallPart]":
        """Calls of the last response that have no result yet."""
        done = {part.tool_call_id for part in self._returns}
        response = self.messages[-1] if self.messages else None
        if response is None or response.kind != "response":
            return []
        return [
            part
            for part in response.parts
            if part.part_kind == "tool-call" and part.tool_call_id not in done
        ]

    def close_open_calls(self, text: str, *, running: str = "", instead: str = "") -> None:
        """Give every call without a result this one: providers refuse a history with open calls.

        The call with the id `running` gets `instead`.
        """
        for part in self.open_calls():
            shown = instead if running and part.tool_call_id == running else text
            self.add_return(part, Result(shown, failed=True), 0.0)
        self.flush_returns()

    def next_call_ids(self, count: int) -> list[str]:
        """Ids for the user's own calls: the same for the same place in a conversation."""
        return [f"{_CALL_ID}{self._user_calls + number}" for number in range(1, count + 1)]

    def add_user_calls(self, calls: "list[tuple[ToolCallPart, Result]]") -> None:
        """Calls that the user made by `/name`, as if the model had made them."""
        from pydantic_ai.messages import ModelResponse

        self._user_calls += len(calls)
        response = ModelResponse(parts=[part for part, _ in calls])
        with self._writer.together():
            self._tell(response)
            self._keep(response)
            for part, result in calls:
                self.add_return(part, result, 0.0)
        self.flush_returns()

    def compact(self, summary: str, messages: "list[ModelMessage]") -> None:
        """Begin anew with `messages`, which carry the summary."""
        with self._writer.together():
            self._writer.compacted(summary)
            self._writer.note({"type": "compacted", "messages": [_dump(m) for m in messages]})
        self.messages[:] = messages

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

    def switched(self, model: str) -> None:
        """From here on another model answers."""
        self._writer.note({"type": "model", "name": model})

    def review_begun(self, *, skills: bool, facts: bool) -> None:
        """A review for these begins; what is counted for them begins anew."""
        self.counts.review_begun(skills=skills, facts=facts)
        self._writer.note({"type": "looked", "skills": skills, "facts": facts})

    def _tell(self, response: "ModelResponse") -> None:
        """The events of a response."""
        for part in response.parts:
            if part.part_kind == "text" and part.content:
                self._writer.said(part.content)
            elif part.part_kind == "tool-call":
                self._writer.called(part.tool_call_id, part.tool_name, _as_dict(part))

    def _keep(self, message: "ModelMessage", more: dict[str, Any] | None = None) -> None:
        self.messages.append(message)
        self._writer.note({"type": "message", "message": _dump(message)} | (more or {}))

    def _hear_answer(self, tool: str, text: str) -> None:
        if tool == "ask_user":
            self.user_words.append(text)

    def _read_back(self, line: dict[str, Any]) -> None:
        kind = line["type"]
        if kind == "known":
            self.known.update(line["names"])
        elif kind == "prompt":
            self.user_words.append(PIPED.sub("", line["text"]))
        elif kind == "message":
            self.flush_returns()
            message = _load(line["message"])
            self.messages.append(message)
            self.known.update(line.get("known", ()))
            if message.kind == "request":
                self.counts.asked()  # results of tools have notes of another kind
            elif message.model_name:
                self.counts.responded()
            if message.kind == "response":
                ids = [p.tool_call_id for p in message.parts if p.part_kind == "tool-call"]
                self._user_calls += sum(call_id.startswith(_CALL_ID) for call_id in ids)
        elif kind == "return":
            part = _load_part(line["part"])
            self._returns.append(part)
            self._hear_answer(part.tool_name, part.content)
            if active := line.get("active"):
                self.active[active["name"]] = Active(**active)
            self.counts.changed(line.get("changed", ""), line.get("at"))
        elif kind == "looked":
            self.counts.review_begun(skills=bool(line["skills"]), facts=bool(line["facts"]))
        elif kind == "compacted":
            self._returns.clear()
            self.messages[:] = [_load(message) for message in line["messages"]]


def resume(session: str, *, redact: bool = True) -> Conversation:
    """The conversation of an earlier session, as it was when it was last written.

    `session` is the beginning of its id. Raises `NotFound`, and `Busy` while it is open elsewhere.
    """
    session = find_session(session)
    writer = SessionWriter(session, redact=redact)
    drop_cut_off(writer.path)
    lines, _ = read_whole(writer.path)
    instructions = next((line["text"] for line in lines if line["type"] == "instructions"), None)
    if instructions is None:
        writer.close()
        raise NotFound(f"the session {session} ended before it began", "start one: tacit chat")
    conversation = Conversation(instructions, writer, session)
    for line in lines:
        conversation._read_back(line)
    conversation.close_open_calls(_CUT_OFF)
    return conversation


def _as_dict(part: "ToolCallPart") -> dict[str, Any]:
    try:
        return part.args_as_dict()
    except Exception:  # what the model wrote is no JSON
        return {"unreadable": str(part.args)}


def _dump(message: "ModelMessage") -> Any:
    """A message as plain data."""
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]


def _load(data: Any) -> "ModelMessage":
    """A message from plain data."""
    client_library.load()
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.validate_python([data])[0]


def _dump_part(part: Any) -> Any:
    """A part of a request as plain data."""
    from pydantic_ai.messages import ModelRequest

    return _dump(ModelRequest(parts=[part]))["parts"][0]


def _load_part(data: Any) -> Any:
    """A part of a request from plain data."""
    return _load({"kind": "request", "parts": [data]}).parts[0]
