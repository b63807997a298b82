"""Message lists in the form of OpenAI's or Anthropic's API, in files that a person names.

`{"messages": […]}`, a bare list, a JSONL line for each conversation, or one for each message. A
message may stand in a record about it: so in the Hub's STS form (`{"type": "session"}`, then
`{"type": "message", "message": …}`), and in what Claude's SDK gives. The most general of the forms:
it is asked last.
"""

from collections.abc import Iterator
from typing import Any

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.chat_message import message_of, messages_of
from tacit.traces.conversation_files import ConversationFiles, Record, verdict
from tacit.traces.host import Source

_WHOLE = {"messages", "traj", "chosen_messages", "body", "request", "params"}
"""What a record has that is a conversation by itself, and not one message of many."""


class Chat(ConversationFiles):
    name = "openai"
    title = "OpenAI or Anthropic messages"
    precedence = 91

    def claims(self, record: Any) -> bool:
        if values.mapping(record).get("type") == "session":
            return "harness" in record
        found = conversation(record)
        return any("role" in message for message in values.objects(found)[:20])

    def group(self, record: Record) -> list[tuple[str, str]]:
        members = record.members
        return [("" if not members or members.keys() & _WHOLE else "all", "")]

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        for record in records:
            yield from tell_conversation(record, into)


def conversation(record: Any) -> list[Any]:
    """The messages of a record: of a request, a line of training data, a list, or one message."""
    if isinstance(record, dict):
        for name in ("messages", "traj", "chosen_messages"):
            if isinstance(found := _request(record).get(name), list):
                return [_unwrapped(message) for message in found]
        found = _unwrapped(record)
        return [found] if "role" in found else []
    return [_unwrapped(message) for message in values.items(record)]


def _unwrapped(message: Any) -> Any:
    """The message in a record about one, with the time that stands there."""
    about = values.mapping(message)
    inner = values.mapping(about.get("message"))
    if "role" not in inner:
        return message
    return inner if "timestamp" in inner else inner | {"timestamp": about.get("timestamp")}


def _request(record: dict[str, Any]) -> dict[str, Any]:
    """The part of a record that holds the messages: a log of requests has them further in."""
    inner = (values.mapping(record.get(name)) for name in ("body", "request", "params"))
    found = (request for request in inner if isinstance(request.get("messages"), list))
    return record if "messages" in record else next(found, record)


def tell_conversation(record: Any, into: Assembler) -> Iterator[None]:
    """Tell what stands beside the messages of `record`, and the messages."""
    about = values.mapping(record)
    if "role" not in about:
        request = _request(about)
        into.about(
            session=values.string(about.get("session_id")) or values.string(about.get("id")),
            model=values.string(about.get("model")) or values.string(request.get("model")),
            verdict=verdict("resolved", about.get("resolved"))
            or verdict("reward", about.get("reward")),
        )
        system = values.text(request.get("system"))
        into.given(system, request.get("tools") or request.get("functions"))
        into.passed("rejected", int("rejected_messages" in about))
    said = conversation(record)
    into.passed("unknown-record", int(not said and "harness" not in about))
    for message in said:
        found = message_of(message) if isinstance(message, dict) else None
        if found is None:
            into.passed("bad-record")
        else:
            found.tell(into)
        yield
    answer = about.get("response") or about.get("completion")
    for made in messages_of(answer, "assistant") if isinstance(answer, dict | list) else ():
        made.tell(into)
        yield


HOSTS = (Chat(),)
