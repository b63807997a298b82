"""LangSmith: runs as its SDK lists and sends them, and as its bulk export writes them in JSON.

A run a line, a list of runs, `{"runs": […]}`, runs that hold their `child_runs`, or what the SDK
sends (`{"post": […], "patch": […]}`). The runs of a thread (`session_id`, `thread_id` or
`conversation_id` in the metadata) are one session, else those of a trace.
"""

from collections.abc import Iterator
from typing import Any

from tacit.traces import values
from tacit.traces.chat_message import messages_of
from tacit.traces.spans import Span, SpanFiles, SpanKind, scored, tool_name
from tacit.traces.trace import Usage

_KINDS: dict[str, SpanKind] = {"llm": "model", "tool": "tool"}
_THREADS = ("session_id", "thread_id", "conversation_id")
_DEEPEST = 32


class LangSmith(SpanFiles):
    name = "langsmith"
    title = "LangSmith"
    precedence = 67

    def claims(self, record: Any) -> bool:
        return any("run_type" in run for run in _runs(values.mapping(record)))

    def places(self, record: Any) -> Iterator[tuple[str, str]]:
        for run in _runs(values.mapping(record)):
            yield _trace(run), _thread(run)

    def spans(self, record: Any) -> Iterator[Span]:
        for run in _runs(values.mapping(record)):
            yield _span(run)


def _runs(record: dict[str, Any], depth: int = 0) -> Iterator[dict[str, Any]]:
    """The runs in a record, those inside others included."""
    if "post" in record or "patch" in record:
        sent: dict[str, dict[str, Any]] = {}
        for part in (*values.objects(record.get("post")), *values.objects(record.get("patch"))):
            name = values.string(part.get("id")) or values.string(part.get("dotted_order"))[-36:]
            known = sent.setdefault(name, {"id": name})
            known.update({key: value for key, value in part.items() if value is not None})
        yield from sent.values()
    elif "run_type" in record:
        yield record
        for child in values.objects(record.get("child_runs")) if depth < _DEEPEST else ():
            child.setdefault("parent_run_id", record.get("id"))
            child.setdefault("trace_id", record.get("trace_id") or record.get("id"))
            yield from _runs(child, depth + 1)
    elif isinstance(record.get("run"), dict):
        yield from _runs(record["run"], depth + 1)


def _trace(run: dict[str, Any]) -> str:
    return values.string(run.get("trace_id") or run.get("id"))


def _metadata(run: dict[str, Any]) -> dict[str, Any]:
    extra = _opened(run.get("extra"))
    return values.mapping(extra.get("metadata")) or _opened(run.get("metadata"))


def _thread(run: dict[str, Any]) -> str:
    told = _metadata(run)
    return next((name for key in _THREADS if (name := values.string(told.get(key)))), "")


def _span(run: dict[str, Any]) -> Span:
    kind = _KINDS.get(values.string(run.get("run_type")), "other")
    parents = values.items(run.get("parent_run_ids"))
    inputs, outputs = _opened(run.get("inputs")), _opened(run.get("outputs"))
    span = Span(
        values.string(run.get("id")),
        values.string(run.get("parent_run_id") or (parents[-1] if parents else "")),
        _trace(run),
        _thread(run),
        kind,
        values.string(run.get("name")),
        values.when(run.get("start_time")),
        values.when(run.get("end_time")),
        error=values.text(run.get("error")),
        model=values.string(_metadata(run).get("ls_model_name")),
        verdict=_verdict(_opened(run.get("feedback_stats"))),
    )
    if kind == "tool":
        span.name = tool_name(span.name)
        answer = outputs.get("output", outputs)
        span.call_id = values.string(values.mapping(answer).get("tool_call_id"))
        span.arguments = _opened(inputs.get("input")) or inputs
        content = values.mapping(values.mapping(answer).get("kwargs")) or values.mapping(answer)
        span.call_id = span.call_id or values.string(content.get("tool_call_id"))
        span.result = content.get("content", answer)
        return span
    span.given = list(messages_of(inputs, "user"))
    settings = values.mapping(_opened(run.get("extra")).get("invocation_params"))
    span.tools = inputs.get("tools") or settings.get("tools") or settings.get("functions")
    span.made = list(messages_of(outputs, "assistant"))
    span.usage = _usage(run, outputs) if kind == "model" else None
    return span


def _usage(run: dict[str, Any], outputs: dict[str, Any]) -> Usage | None:
    tokens = values.mapping(outputs.get("usage_metadata"))
    older = values.mapping(values.mapping(outputs.get("llm_output")).get("token_usage")) or run
    details = values.mapping(tokens.get("input_token_details"))
    counts = {
        "input": tokens.get("input_tokens", older.get("prompt_tokens")),
        "output": tokens.get("output_tokens", older.get("completion_tokens")),
        "read": details.get("cache_read"),
        "written": details.get("cache_creation"),
        "reasoning": values.mapping(tokens.get("output_token_details")).get("reasoning"),
    }
    if not any(counts.values()):
        return None
    names = ("input", "output", "read", "written", "reasoning")
    return values.usage(counts, *names, cost=run.get("total_cost"), cached_in_input=True)


def _verdict(feedback: dict[str, Any]) -> str:
    for name, told in feedback.items():
        if word := scored(name, values.mapping(told).get("avg")):
            return word
    return ""


def _opened(value: Any) -> dict[str, Any]:
    """An object, also where the export wrote it as text."""
    return values.mapping(values.decoded_json(value) if isinstance(value, str) else value)


HOSTS = (LangSmith(),)
