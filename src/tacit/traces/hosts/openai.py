"""Message lists in the form of OpenAI's or Anthropic's API, in files that a person names.

`{"messages": […]}`, a bare list, a JSONL line for each conversation, or one for each message, also
in the Hub's STS form (`{"type": "session"}`, then `{"type": "message", "message": …}`). The most
general of the forms: it is asked last.
"""

from collections.abc import Iterator
from typing import Any

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.chat_message import message_of, messages_of
from tacit.traces.conversation_files import ConversationFiles, Record, verdict
from tacit.traces.host import Source


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
        loose = record.members.keys() & {"role", "harness"} or _is_sts(record)
        return [("all" if loose else "", "")]

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        for record in records:
            yield from tell_conversation(record, into)


def _is_sts(record: Record) -> bool:
    """Whether it is a line of the Hub's form that holds a message."""
    members = record.members
    return "message" in members and bytes(members.get("type", b"")) == b'"message"'


def conversation(record: Any) -> list[Any]:
    """The messages of a record: of a request, a line of training data, a list, or one message."""
    if isinstance(record, dict):
        if record.get("type") == "message" and isinstance(record.get("message"), dict):
            return [record["message"]]
        for name in ("messages", "traj"):
            if isinstance(found := _request(record).get(name), list):
                return found
        return [record] if "role" in record else []
    return values.items(record)


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
    for message in conversation(record):
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
