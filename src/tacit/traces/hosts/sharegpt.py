"""Sessions in ShareGPT's form: `{"conversations": [{"from": "human", "value": "…"}, …]}`.

Calls are read from `<tool_call>` and `<tool_response>` tags, and from the roles `function_call`
and `observation`, the two customs that datasets follow.
"""

import re
from typing import Any

from tacit.traces import values
from tacit.traces.assemble import Assembler
from tacit.traces.hosts.chat import Conversations, _Any
from tacit.traces.hosts.outcomes import outcome

_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_RESPONSE = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)


class ShareGPT(Conversations):
    name = "sharegpt"
    title = "ShareGPT"

    def messages(self, value: _Any) -> list[Any] | None:
        for found in (value.conversations, value.conversation):
            if isinstance(found, list) and any(isinstance(m, dict) and "from" in m for m in found):
                return found
        return None

    def tell(self, message: dict[str, Any], into: Assembler) -> None:
        role, value = message.get("from"), values.text(message.get("value"))
        if role in ("human", "user"):
            into.prompt(value)
        elif role in ("gpt", "assistant", "model", "bot", "chatgpt"):
            into.said(_CALL.sub("", _THOUGHT.sub("", value)).strip())
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
        call_id = values.string(call.get("id")) or _next(into, "asked")
        into.called(call_id, values.string(call.get("name")), given)

    def _response(self, text: str, into: Assembler) -> None:
        inner = values.mapping(values.decoded_json(text))
        result, failed, error = outcome(inner.get("content", text) if inner else text)
        call_id = values.string(inner.get("tool_call_id")) or _next(into, "answered")
        into.returned(call_id, result, failed=failed, error=error)


def _next(into: Assembler, what: str) -> str:
    """A name for the next call, or answer, that has none: they come in the same order."""
    into.state[what] = into.state.get(what, 0) + 1
    return f"#{into.state[what]}"


host = ShareGPT()
