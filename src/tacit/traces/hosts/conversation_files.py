"""Conversations in files that a person names; nothing is looked for.

OpenAI-style lists of messages (`{"messages": […]}`, a bare list, or JSONL of either; Anthropic's
content blocks are read as well), ShareGPT's `{"conversations": [{"from": "human", "value": …}]}`
with calls in `<tool_call>` tags or by role, and the runs of SWE-agent (`.traj`) and mini-swe-agent
(`.traj.json`).
"""

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.host import (
    Host,
    Source,
    decode_lines,
    ignore,
    plain_files,
    read_document,
    stated_outcome,
)

MAX_DOCUMENT = 64 * 1024 * 1024
"""One JSON document has to be read whole; JSONL has no such limit."""


class _Conversation(msgspec.Struct, gc=False):
    messages: Any = None
    traj: Any = None
    conversations: Any = None
    conversation: Any = None
    role: Any = None
    content: Any = None
    tool_calls: Any = None
    function_call: Any = None
    tool_call_id: Any = None
    is_error: Any = None
    id: Any = None
    session_id: Any = None
    model: Any = None
    usage: Any = None
    timestamp: Any = None
    created_at: Any = None
    reward: Any = None
    resolved: Any = None


class Conversations(Host):
    """A host whose sessions are conversations in JSON or JSONL files, several in one if need be.

    A subclass says what a conversation is, and what a message in it means.
    """

    endings: tuple[str, ...] = (".json", ".jsonl")

    def messages(self, value: _Conversation) -> list[Any] | None:
        """The messages of a conversation; None when `value` is not one."""
        raise NotImplementedError

    def tell(self, message: dict[str, Any], into: Assembler) -> None:
        raise NotImplementedError

    def inside(self, path: str) -> Iterator[Source]:
        if os.path.isdir(path):
            for file in plain_files(path):
                if file.endswith(self.endings):
                    yield from self.inside(file)
            return
        modified = os.path.getmtime(path) if os.path.exists(path) else 0.0
        for key in self._keys(path):
            yield Source(self.name, path, key, 0, modified)

    def read(self, source: Source, start: int, into: Assembler) -> Iterator[None]:
        for number, message in enumerate(self._chosen(source, into)):
            into.begin(number)
            if isinstance(message, dict):
                self.tell(message, into)
            else:
                into.passed("bad-record")
            yield

    def about(self, value: _Conversation, into: Assembler) -> None:
        """Tell what stands beside the messages."""
        into.about(
            session=values.string(value.session_id) or values.string(value.id),
            model=values.string(value.model),
            verdict=_verdict(value),
        )

    def _keys(self, path: str) -> Iterator[str]:
        """What names each conversation in the file: its line, or its place in the document."""
        document = self._document(path) if not path.endswith(".jsonl") else None
        if document is not None:
            for number, value in enumerate(_conversations(document)):
                if (form := _as_conversation(value)) and self.messages(form):
                    yield f"doc{number}"
            return
        loose = False
        try:
            for position, line in decode_lines(path, 0, _Conversation, ignore):
                if self.messages(line):
                    yield f"at{position}"
                elif line.role is not None and self._loose(line):
                    loose = True
                    break
        except OSError:
            return
        if loose:
            yield "all"

    def _loose(self, line: _Conversation) -> bool:
        """Whether `line` is a single message of a conversation that is the whole file."""
        return False

    def _chosen(self, source: Source, into: Assembler) -> Iterator[Any]:
        if source.key.startswith("doc"):
            document = _conversations(self._document(source.path))
            number = int(source.key[3:])
            form = _as_conversation(document[number]) if number < len(document) else None
        elif source.key.startswith("at"):
            start = int(source.key[2:])
            found = decode_lines(source.path, start, _Conversation, into.passed)
            form = next((line for _, line in found), None)
        else:
            for _, line in decode_lines(source.path, 0, _Conversation, into.passed):
                yield msgspec.structs.asdict(line)
            return
        if form is None:
            into.passed("bad-record")
            return
        self.about(form, into)
        yield from self.messages(form) or ()

    def _document(self, path: str) -> Any:
        try:
            return read_document(path, MAX_DOCUMENT, ignore)
        except OSError:
            return None


def _verdict(value: _Conversation) -> str:
    """What a verifier made of the run, where the file says so."""
    if isinstance(value.resolved, bool):
        return f"resolved: {str(value.resolved).lower()}"
    if isinstance(value.reward, int | float) and not isinstance(value.reward, bool):
        return f"reward: {value.reward:g}"
    return ""


class Chat(Conversations):
    name = "openai"
    title = "OpenAI-style messages"
    precedence = 91

    def messages(self, value: _Conversation) -> list[Any] | None:
        found = value.traj if value.messages is None else value.messages
        if isinstance(found, list) and any(isinstance(m, dict) and "role" in m for m in found):
            return found
        return None

    def _loose(self, line: _Conversation) -> bool:
        return line.role in ("system", "developer", "user") and line.content is not None

    def tell(self, message: dict[str, Any], into: Assembler) -> None:
        tell_message(message, into)


def tell_message(message: dict[str, Any], into: Assembler) -> None:
    """Tell `into` what one message says."""
    at = values.when(message.get("timestamp")) or values.when(message.get("created_at"))
    role, content = message.get("role"), message.get("content")
    if role in ("tool", "function"):
        result, failed, error = stated_outcome(content)
        call_id = values.string(message.get("tool_call_id"))
        failed = failed or message.get("is_error") is True
        into.returned(call_id, result, failed=failed, error=error, at=at)
    elif role == "user":
        for block in _blocks(content, "tool_result"):
            result, failed, error = stated_outcome(block.get("content"))
            call_id = values.string(block.get("tool_use_id"))
            wrong = failed or block.get("is_error") is True
            into.returned(call_id, result, failed=wrong, error=error, at=at)
        into.prompt(values.text(_spoken_content(content)), at)
    elif role == "assistant":
        into.about(model=values.string(message.get("model")))
        into.said(values.text(_spoken_content(content)), at)
        for block in _blocks(content, "tool_use"):
            name = values.string(block.get("name"))
            into.called(values.string(block.get("id")), name, block.get("input"), at)
        calls = values.items(message.get("tool_calls"))
        for call in calls or [{"function": message.get("function_call")}]:
            function = values.mapping(values.mapping(call).get("function"))
            if name := values.string(function.get("name")):
                into.called(values.string(call.get("id")), name, function.get("arguments"), at)
    elif role not in ("system", "developer"):
        into.passed("unknown-record")


def _blocks(content: Any, kind: str) -> list[dict[str, Any]]:
    return [b for b in values.items(content) if isinstance(b, dict) and b.get("type") == kind]


def _spoken_content(content: Any) -> Any:
    """`content` without the blocks that are calls, results or thoughts."""
    if not isinstance(content, list):
        return content
    apart = ("tool_use", "tool_result", "thinking", "redacted_thinking")
    return [b for b in content if not (isinstance(b, dict) and b.get("type") in apart)]


def _conversations(document: Any) -> list[Any]:
    """The conversations in a document: one, or a list of them; a bare list of messages is one."""
    if isinstance(document, list):
        if any(isinstance(value, dict) and "role" in value for value in document):
            return [{"messages": document}]
        if any(isinstance(value, dict) and "from" in value for value in document):
            return [{"conversations": document}]
        return document
    return [document]


def _as_conversation(value: Any) -> _Conversation | None:
    try:
        return msgspec.convert(value, _Conversation)
    except msgspec.ValidationError:
        return None


_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


class ShareGPT(Conversations):
    name = "sharegpt"
    title = "ShareGPT"
    precedence = 90

    def messages(self, value: _Conversation) -> list[Any] | None:
        for found in (value.conversations, value.conversation):
            if isinstance(found, list) and any(isinstance(m, dict) and "from" in m for m in found):
                return found
        return None

    def tell(self, message: dict[str, Any], into: Assembler) -> None:
        role, value = message.get("from"), values.text(message.get("value"))
        if role in ("human", "user"):
            into.prompt(value)
        elif role in ("gpt", "assistant", "model", "bot", "chatgpt"):
            into.said(values.unquote_tags(_CALL.sub("", _THOUGHT.sub("", value)).strip()))
            for call in _CALL.findall(value):
                self._call(call, into)
        elif role == "function_call":
            self._call(value, into)
        elif role in ("tool", "observation", "function_response"):
            for response in _RESPONSE.findall(value) or [value]:
                self._response(response, into)
        elif role != "system":
            into.passed("unknown-record")

    def _call(self, text: str, into: Assembler) -> None:
        call = values.mapping(values.decoded_json(text))
        if not call:
            into.passed("bad-record")
            return
        given = call.get("arguments", call.get("parameters"))
        call_id = values.string(call.get("id")) or _next_id(into, "asked")
        into.called(call_id, values.string(call.get("name")), given)

    def _response(self, text: str, into: Assembler) -> None:
        inner = values.mapping(values.decoded_json(text))
        result, failed, error = stated_outcome(inner.get("content", text) if inner else text)
        call_id = values.string(inner.get("tool_call_id")) or _next_id(into, "answered")
        into.returned(call_id, result, failed=failed, error=error)


def _next_id(into: Assembler, what: str) -> str:
    """A name for the next call, or answer, that has none: they come in the same order."""
    into.state[what] = into.state.get(what, 0) + 1
    return f"#{into.state[what]}"


# The tools of SWE-agent that are not shell commands, though they are written like them.
_TOOLS = frozenset({
    "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "str_replace_editor",
    "search_dir", "search_file", "find_file", "submit",
})  # fmt: skip
_FENCED = re.compile(r"```(?:bash|sh|mswea_bash_command)?\n(.*?)\n?```", re.DOTALL)
_ENDINGS = (".traj", ".traj.json")


class SweAgent(Host):
    name = "swe-agent"
    title = "SWE-agent"
    tested = False
    precedence = 70

    def inside(self, path: str) -> Iterator[Source]:
        found = plain_files(path) if os.path.isdir(path) else iter((path,))
        for file in found:
            if file.endswith(_ENDINGS) and os.path.isfile(file):
                yield Source(self.name, file, "", os.path.getsize(file), os.path.getmtime(file))

    def read(self, source: Source, start: int, into: Assembler) -> Iterator[None]:
        run = read_document(source.path, MAX_DOCUMENT, into.passed, dict)
        if not run:
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
            cost = stats.get("instance_cost")
            into.used_in_all(values.usage(stats, "tokens_sent", "tokens_received", cost=cost))

    def _steps(self, run: dict[str, Any], into: Assembler) -> Iterator[None]:
        into.prompt(_first_task(run))
        for number, step in enumerate(values.objects(run.get("trajectory"))):
            into.said(values.text(step.get("thought")))
            if action := values.text(step.get("action")).strip():
                into.called(f"#{number}", *_call_of_action(action))
                result, failed, error = stated_outcome(step.get("observation"))
                took = values.amount(step.get("execution_time"))
                into.returned(f"#{number}", result, failed=failed, error=error, duration=took)
            yield

    def _mini(self, run: dict[str, Any], into: Assembler) -> Iterator[None]:
        """mini-swe-agent: messages; without tool calls, commands in fences and results as user."""
        waiting = False
        for message in values.objects(run.get("messages")):
            text = values.text(message.get("content"))
            if message.get("role") == "user" and waiting:
                result, failed, error = stated_outcome(text)
                into.returned("", result, failed=failed, error=error)
                waiting = False
            else:
                tell_message(message, into)
                command = _FENCED.search(text)
                if message.get("role") == "assistant" and not message.get("tool_calls") and command:
                    into.called("", "bash", {"command": command.group(1)})
                    waiting = True
            yield


def _call_of_action(action: str) -> tuple[str, dict[str, Any]]:
    """The tool and the arguments of an action: a tool's name and words, or a shell command."""
    name, _, rest = action.partition(" ")
    if name not in _TOOLS:
        return "bash", {"command": action}
    if name == "str_replace_editor":
        command, _, rest = rest.partition(" ")
        return name, {"command": command, "path": rest.split(" ", 1)[0], "input": rest}
    return name, {"path": rest.split(" ", 1)[0], "input": rest}


def _first_task(run: dict[str, Any]) -> str:
    """The first message of the user's that is not a demonstration."""
    for message in values.objects(run.get("history")):
        if message.get("role") == "user" and not message.get("is_demo"):
            return values.text(message.get("content"))
    return ""


HOSTS = (SweAgent(), ShareGPT(), Chat())
