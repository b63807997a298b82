"""ShareGPT: `{"conversations": [{"from": "human", "value": …}]}`, in JSON or JSONL.

Calls stand in `<tool_call>` tags, as Hermes writes them, or have a role of their own.
"""

from collections.abc import Iterator
from typing import Any

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.chat_message import answered_as, asked_as
from tacit.traces.conversation_files import ConversationFiles, verdict
from tacit.traces.host import Source, stated_outcome


class ShareGPT(ConversationFiles):
    name = "sharegpt"
    title = "ShareGPT"
    precedence = 90

    def claims(self, record: Any) -> bool:
        return any("from" in message for message in values.objects(_messages(record))[:20])

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        for record in records:
            about = values.mapping(record)
            into.about(
                session=values.string(about.get("session_id")) or values.string(about.get("id")),
                model=values.string(about.get("model")),
                verdict=verdict("resolved", about.get("resolved"))
                or verdict("reward", about.get("reward"))
                # Hermes says so of a run that was broken off; one that ended need not be right.
                or ("completed: false" if about.get("completed") is False else ""),
            )
            into.given(values.string(about.get("system")), about.get("tools"))
            for message in _messages(record):
                if isinstance(message, dict):
                    self._message(message, into)
                else:
                    into.passed("bad-record")
                yield
            if isinstance(chosen := about.get("chosen"), dict):
                # Of two answers, the one that was preferred.
                self._message(chosen, into)
                into.passed("rejected", int("rejected" in about))
                yield

    def _message(self, message: dict[str, Any], into: Assembler) -> None:
        role, value = message.get("from"), values.text(message.get("value"))
        at = values.when(message.get("timestamp"))
        if role in ("human", "user"):
            into.prompt(value, at)
        elif role in ("gpt", "assistant", "model", "bot", "chatgpt"):
            spoken, _ = values.take_tagged(value, "think", "thinking")
            spoken, calls = values.take_tagged(spoken, "tool_call")
            into.said(values.unquote_tags(spoken.strip()), at)
            for call in calls:
                self._call(call, into)
        elif role == "function_call":
            self._call(value, into)
        elif role in ("tool", "observation", "function_response"):
            for response in values.take_tagged(value, "tool_response")[1] or [value]:
                self._response(response, into)
        elif role == "system":
            into.given(value, values.take_tagged(value, "tools")[1], at)
        else:
            into.passed("unknown-record")

    def _call(self, text: str, into: Assembler) -> None:
        call = values.mapping(values.decoded_json(text))
        if not call:
            into.passed("bad-record")
            return
        given = call.get("arguments", call.get("parameters"))
        call_id = asked_as(values.string(call.get("id")), into)
        into.called(call_id, values.string(call.get("name")), given)

    def _response(self, text: str, into: Assembler) -> None:
        inner = values.mapping(values.decoded_json(text))
        result, failed, error = stated_outcome(inner.get("content", text) if inner else text)
        call_id = values.string(inner.get("tool_call_id"))
        known = call_id and into.tool_of(call_id)  # calls need not say the id that answers repeat
        call_id = answered_as(call_id if known else "", into)
        into.returned(call_id, result, failed=failed, error=error)


def _messages(record: Any) -> list[Any]:
    if isinstance(record, dict):
        for name in ("conversations", "conversation"):
            if isinstance(record.get(name), list):
                return values.items(record.get(name))
        return []
    return values.items(record)


HOSTS = (ShareGPT(),)
