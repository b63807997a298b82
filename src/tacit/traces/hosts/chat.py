"""Sessions as OpenAI-style lists of messages: `{"messages": […]}`, a bare list, or JSONL of either.

An importer for files that a person names; nothing is looked for. Messages in Anthropic's form
(content blocks with tool_use and tool_result) are read as well.
"""

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from tacit.traces import lines, values
from tacit.traces.assemble import Assembler
from tacit.traces.hosts.host import Hooks, Source, file_stamp, walk
from tacit.traces.hosts.outcomes import outcome
from tacit.traces.hosts.places import Place

MAX_DOCUMENT = 64 * 1024 * 1024
"""One JSON document has to be read whole; JSONL has no such limit."""


class _Any(msgspec.Struct, gc=False):
    messages: Any = None
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


class Conversations:
    """A host whose sessions are conversations in JSON or JSONL files, several in one if need be.

    A subclass says what a conversation is, and what a message in it means.
    """

    name: str
    title: str
    tested = True
    hooks = Hooks()
    place: Place | None = None
    endings: tuple[str, ...] = (".json", ".jsonl")

    def messages(self, value: _Any) -> list[Any] | None:
        """The messages of a conversation; None when `value` is not one."""
        raise NotImplementedError

    def tell(self, message: dict[str, Any], into: Assembler) -> None:
        raise NotImplementedError

    def homes(self) -> list[str]:
        return []

    def find(self) -> Iterator[Source]:
        return iter(())

    def inside(self, path: str) -> Iterator[Source]:
        if os.path.isdir(path):
            for file in walk(path):
                if file.endswith(self.endings):
                    yield from self.inside(file)
            return
        modified = os.path.getmtime(path) if os.path.exists(path) else 0.0
        for key in self._keys(path):
            yield Source(self.name, path, key, 0, modified)

    def stamp(self, source: Source) -> str:
        return file_stamp(source.path)

    def fingerprint(self, source: Source, position: int) -> str:
        return ""  # a file of conversations is small or finished: it is read anew

    def read(self, source: Source, start: int, into: Assembler) -> Iterator[None]:
        for number, message in enumerate(self._chosen(source, into)):
            into.begin(number)
            if isinstance(message, dict):
                self.tell(message, into)
            else:
                into.passed("bad-record")
            yield

    def about(self, value: _Any, into: Assembler) -> None:
        """Tell what stands beside the messages."""
        into.about(
            session=values.string(value.session_id) or values.string(value.id),
            model=values.string(value.model),
        )

    def _keys(self, path: str) -> Iterator[str]:
        """What names each conversation in the file: its line, or its place in the document."""
        document = self._document(path) if not path.endswith(".jsonl") else None
        if document is not None:
            for number, value in enumerate(_conversations(document)):
                if (form := _as_any(value)) and self.messages(form):
                    yield f"doc{number}"
            return
        loose = False
        try:
            for position, line in lines.decode_lines(path, 0, _Any, _ignore):
                if self.messages(line):
                    yield f"at{position}"
                elif line.role is not None and self._loose(line):
                    loose = True
                    break
        except OSError:
            return
        if loose:
            yield "all"

    def _loose(self, line: _Any) -> bool:
        """Whether `line` is a single message of a conversation that is the whole file."""
        return False

    def _chosen(self, source: Source, into: Assembler) -> Iterator[Any]:
        if source.key.startswith("doc"):
            document = _conversations(self._document(source.path))
            number = int(source.key[3:])
            form = _as_any(document[number]) if number < len(document) else None
        elif source.key.startswith("at"):
            start = int(source.key[2:])
            found = lines.decode_lines(source.path, start, _Any, into.passed)
            form = next((line for _, line in found), None)
        else:
            for _, line in lines.decode_lines(source.path, 0, _Any, into.passed):
                yield msgspec.structs.asdict(line)
            return
        if form is None:
            into.passed("bad-record")
            return
        self.about(form, into)
        yield from self.messages(form) or ()

    def _document(self, path: str) -> Any:
        try:
            with lines.open_regular(path) as file:
                data = file.read(MAX_DOCUMENT + 1)
        except OSError:
            return None
        if len(data) > MAX_DOCUMENT:
            return None
        decoded = values.decoded_json(data)
        return lines.mend(data) if decoded is None else decoded


class Chat(Conversations):
    name = "openai"
    title = "OpenAI-style messages"

    def messages(self, value: _Any) -> list[Any] | None:
        found = value.messages
        if isinstance(found, list) and any(isinstance(m, dict) and "role" in m for m in found):
            return found
        return None

    def _loose(self, line: _Any) -> bool:
        return line.role in ("system", "developer", "user") and line.content is not None

    def tell(self, message: dict[str, Any], into: Assembler) -> None:
        tell_message(message, into)


def tell_message(message: dict[str, Any], into: Assembler) -> None:
    """Tell `into` what one message says."""
    at = values.when(message.get("timestamp")) or values.when(message.get("created_at"))
    role, content = message.get("role"), message.get("content")
    if role in ("tool", "function"):
        result, failed, error = outcome(content)
        call_id = values.string(message.get("tool_call_id"))
        failed = failed or message.get("is_error") is True
        into.returned(call_id, result, failed=failed, error=error, at=at)
    elif role == "user":
        for block in _blocks(content, "tool_result"):
            result, failed, error = outcome(block.get("content"))
            call_id = values.string(block.get("tool_use_id"))
            wrong = failed or block.get("is_error") is True
            into.returned(call_id, result, failed=wrong, error=error, at=at)
        into.prompt(values.text(_rest(content)), at)
    elif role == "assistant":
        into.about(model=values.string(message.get("model")))
        into.said(values.text(_rest(content)), at)
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


def _rest(content: Any) -> Any:
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


def _as_any(value: Any) -> _Any | None:
    try:
        return msgspec.convert(value, _Any)
    except msgspec.ValidationError:
        return None


def _ignore(reason: str) -> None:
    """Nothing is counted while looking at what a file is."""


host = Chat()
