"""Spans of one conversation, put together: the calls of models and tools that traces record.

Each call of a model repeats the conversation so far, a tool's call may be told by its own span and
by the messages around it, and helpers talk in between. Here each is told once. How a span is
written down (OTLP, Phoenix, Langfuse, LangSmith) is left to the readers.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import dropwhile, takewhile
from typing import Any, Literal

import msgspec

from tacit.traces.assembler import Assembler
from tacit.traces.chat_message import Call, Message, Result, as_json
from tacit.traces.conversation_files import ConversationFiles, Record, verdict
from tacit.traces.host import Source, stated_outcome
from tacit.traces.trace import Usage

SpanKind = Literal["model", "tool", "agent", "other"]
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_OPEN = 256
_DEEPEST = 200
"""How far up the spans around one are looked at."""
_MOST = 200_000
"""Spans of one conversation that are held; what is more is counted."""


class Span(msgspec.Struct):
    """One call that was recorded."""

    id: str = ""
    parent: str = ""
    trace: str = ""
    conversation: str = ""
    """What the instrumentation calls the conversation that it belongs to, where it says so."""
    kind: SpanKind = "other"
    name: str = ""
    start: datetime | None = None
    end: datetime | None = None
    given: list[Message] = []
    made: list[Message] = []
    call_id: str = ""
    arguments: Any = None
    result: Any = None
    error: str = ""
    """Why it failed, in words; empty when it did not."""
    model: str = ""
    usage: Usage | None = None
    skill: str = ""
    verdict: str = ""
    version: str = ""
    tools: Any = None
    """Definitions of tools that a model was given."""
    partial: bool = False
    """Whether it is only words, told apart from the span that they belong to."""

    def with_words_of(self, other: "Span") -> "Span":
        """The span with what both of them say."""
        whole, words = (other, self) if self.partial and not other.partial else (self, other)
        given, made = [*whole.given, *words.given], [*whole.made, *words.made]
        told = whole.verdict or words.verdict
        return msgspec.structs.replace(whole, given=given, made=made, verdict=told)

    @property
    def says(self) -> bool:
        """Whether it holds messages."""
        return any(m.texts or m.calls or m.results for m in (*self.given, *self.made))

    @property
    def speaks(self) -> bool:
        """Whether it holds words: without them the messages are of no use."""
        return any(m.texts for m in (*self.given, *self.made))


class SpanFiles(ConversationFiles):
    """A reader of files of spans: those of one conversation, or else of one trace, are a session.

    A subclass says what the spans of a record are.
    """

    def spans(self, record: Any) -> Iterator[Span]:
        """The spans in a record."""
        raise NotImplementedError

    def places(self, record: Any) -> Iterator[tuple[str, str]]:
        """The trace of each span in a record, and its conversation, where it says so."""
        return ((span.trace, span.conversation) for span in self.spans(record))

    def group(self, record: Record) -> list[tuple[str, str]]:
        found: dict[str, str] = {}
        for trace, conversation in self.places(record.value):
            found[trace] = found.get(trace) or conversation
        return list(found.items())

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        found: dict[str, Span] = {}
        traces = self.layout(source.path).joined.get(source.key, set())
        for record in records:
            for span in self.spans(record):
                if span.trace not in traces:
                    continue
                # An id is a span's own in its trace alone.
                span.id = f"{span.trace}/{span.id or len(found)}"
                span.parent = f"{span.trace}/{span.parent}" if span.parent else ""
                if len(found) >= _MOST:
                    into.passed("too-long")
                elif span.id in found and (span.partial or found[span.id].partial):
                    found[span.id] = found[span.id].with_words_of(span)
                else:  # sent twice, the later one counts
                    found[span.id] = span
        into.about(session=source.key)
        yield from tell_spans(list(found.values()), into)


def tell_spans(spans: list[Span], into: Assembler) -> Iterator[None]:
    """Tell `into` what the spans of one conversation say, in the order in which they began."""
    tree = _Tree(spans)
    carriers = tree.carriers()
    silent = [s for s in spans if s.kind == "model" and not s.speaks and tree.is_leaf_model(s)]
    if silent:
        into.passed("no-content", len(silent))
    telling = _Telling(into, tree)
    for span in sorted(spans, key=lambda span: span.start or _EARLIEST):
        into.about(verdict=span.verdict, version=span.version)
        if span.kind == "tool":
            telling.tool(span)
        elif span.id in carriers:
            telling.exchange(span)
        elif span.kind == "agent" and tree.is_helper(span.id):
            into.delegated(span.name, at=span.start)
        if span.kind == "model" and span.usage and tree.is_leaf_model(span):
            into.used(span.usage, span.id)
        yield


class _Tree:
    """Which span lies in which."""

    def __init__(self, spans: list[Span]) -> None:
        self._spans = spans
        self._by_id = {span.id: span for span in spans}
        models = [span for span in spans if span.kind == "model"]
        self._wrappers = {above.id for span in models for above in self.above(span)}
        self._talking = {self.agent_of(span) for span in models}
        """The agents that call a model themselves, and do not only hand on to another."""

    def above(self, span: Span) -> Iterator[Span]:
        """The spans that `span` lies in, the nearest first; a cycle ends."""
        seen = {span.id}
        while (up := self._by_id.get(span.parent)) is not None and up.id not in seen:
            if len(seen) > _DEEPEST:
                return
            seen.add(up.id)
            yield up
            span = up

    def agent_of(self, span: Span) -> str:
        """The agent that a span is of; empty: the only one."""
        return next((up.id for up in self.above(span) if up.kind == "agent"), "")

    def is_leaf_model(self, span: Span) -> bool:
        """Whether it is the call itself, and not a library's span around it."""
        return span.id not in self._wrappers

    def is_helper(self, place: str) -> bool:
        """Whether what lies in the span `place` is an agent's inside another, or inside a tool."""
        found = self._by_id.get(place)
        if found is None:
            return False
        chain = [found, *self.above(found)]
        agents = [span.id for span in chain if span.kind == "agent" and span.id in self._talking]
        return any(span.kind == "tool" for span in chain) or len(agents) > 1

    def carriers(self) -> set[str]:
        """The spans that hold the conversation: calls of models, or what lies around them."""
        calls = {s.id for s in self._spans if s.kind == "model" and s.says}
        leaves = {i for i in calls if i not in self._wrappers}
        if leaves or calls:
            return leaves or calls
        says = {s.id for s in self._spans if s.kind in ("agent", "other") and s.says}
        covered = {i for i in says if any(up.id in says for up in self.above(self._by_id[i]))}
        return says - covered


class _Telling:
    """What was told so far of one conversation, so that nothing is told twice."""

    def __init__(self, into: Assembler, tree: _Tree) -> None:
        self._into = into
        self._tree = tree
        self._told: dict[str, Counter[tuple[object, ...]]] = {}
        self._open: list[tuple[str, Call]] = []
        """Calls that were told and have no result, under the id that they were told by."""
        self._early: list[tuple[str, Call]] = []
        """Calls of tools whose span came before the message that asks for them."""
        self._spanned: set[str] = set()
        """Calls that a tool's own span was found for."""
        self._ended: set[str] = set()
        """Those of which it said how they ended: messages only repeat that."""
        self._ids: dict[str, str] = {}
        self._number = 0

    def exchange(self, span: Span) -> None:
        """A call of a model: what is new in what it was given, and what it answered."""
        helper = self._tree.is_helper(span.parent)
        told = self._told.setdefault(self._tree.agent_of(span) if helper else "", Counter())
        self._into.about(model=span.model)
        for message in () if helper or self._into.is_begun else takewhile(_is_system, span.given):
            self._into.given(message.text, message.tools)
        self._into.given(tools=span.tools)
        for message in _new(span.given, told):
            message.at = message.at or span.start
            self._message(message, helper)
        for message in span.made:
            told[message.sign] += 1
            message.role = message.role or "assistant"
            message.at = message.at or span.end or span.start
            self._message(message, helper)

    def tool(self, span: Span) -> None:
        """A tool's own span: the call, unless a message told it, and how it ended."""
        if any(up.kind == "tool" and up.name == span.name for up in self._tree.above(span)):
            return
        call = Call(span.call_id, span.name, span.arguments)
        known = self._ids.get(span.call_id, "") if span.call_id else ""
        if not known:
            free = [(i, c) for i, c in self._open if not c.id or not span.call_id]
            known = self._matching([pair for pair in free if pair[0] not in self._spanned], call)
        if not known:
            known = self._told_as(call)
            self._early = [*self._early[-_MOST_OPEN:], (known, call)]
            self._into.called(known, span.name, span.arguments, span.start)
        self._spanned.add(known)
        if span.result is not None:
            self._ended.add(known)
        if span.skill:
            self._into.activated(span.skill, span.start)
        text, failed, error = stated_outcome(span.result)
        if span.result is None and not span.error and span.end is None:
            return
        error = span.error or error
        self._into.returned(
            known, text or error, failed=failed or bool(span.error), error=error, at=span.end
        )

    def _message(self, message: Message, helper: bool) -> None:
        if message.by and any(message.by == call.name for _, call in self._open):
            message.results = [Result("", *stated_outcome(message.text), name=message.by)]
            message.role, message.texts = "tool", []
        for number, result in enumerate(message.results):
            known = self._ids.get(result.id, "")
            if not known:  # some name the tool instead of the call
                known = self._matching(self._open, Call("", result.name or result.id, None))
            message.results[number] = result._replace(id=known or result.id)
        for number, call in enumerate(message.calls):
            known = self._ids.get(call.id, "") if call.id else ""
            if not known or not self._is_open(known):
                known = self._matching(self._early, call) or self._told_as(call)
            self._ids[call.id or known] = known
            self._open = [*self._open[-_MOST_OPEN:], (known, call)]
            message.calls[number] = call._replace(id=known)
        for result in message.results:
            self._open = [(known, call) for known, call in self._open if known != result.id]
        message.results = [r for r in message.results if r.id not in self._ended]
        message.calls = [c for c in message.calls if not self._is_past(c.id)]
        if helper and message.role == "user":
            self._into.told(message.text, "agent", message.at)
            message.texts = []
        if message.role != "user" or message.text or message.results:
            message.tell(self._into, sure=True)

    def _is_past(self, known: str) -> bool:
        """Whether a tool's span told a call whole, and that in an earlier turn."""
        return known in self._ended and not self._into.is_answered(known)

    def _told_as(self, call: Call) -> str:
        """The id by which a call is told: its own, unless another call had that."""
        self._number += 1
        known = call.id if call.id and call.id not in self._ids else f"{call.id}~{self._number}"
        self._ids[call.id or known] = known
        return known

    def _is_open(self, known: str) -> bool:
        return any(known == other for other, _ in (*self._open, *self._early))

    def _matching(self, among: list[tuple[str, Call]], call: Call) -> str:
        """The id of the first of `among` that is the same call, which is taken out of it."""
        alike = [pair for pair in among if pair[1].name == call.name]
        if call.arguments is not None:
            wanted = as_json(call.arguments)
            alike = [pair for pair in alike if as_json(pair[1].arguments) == wanted] or alike
        if not alike:
            return ""
        if among is self._early:
            among.remove(alike[0])
        return alike[0][0]


def _is_system(message: Message) -> bool:
    return message.role == "system"


def _new(given: list[Message], told: Counter[tuple[object, ...]]) -> Iterator[Message]:
    """The messages that were not told before, where a call repeats the conversation so far."""
    spoken = [(message, message.sign) for message in dropwhile(_is_system, given)]
    repeats = any(sign in told for _, sign in spoken)
    seen: Counter[tuple[object, ...]] = Counter()
    for message, sign in spoken:
        seen[sign] += 1
        if not repeats or seen[sign] > told.get(sign, 0):
            told[sign] += 1
            yield message


def tool_name(name: str) -> str:
    """The tool's own name, of the name of its span."""
    for before in ("execute_tool ", "running tool: "):
        name = name.removeprefix(before)
    return name or "tool"


def scored(name: str, value: Any) -> str:
    """A verdict by an evaluation's score: only where its name says that it is about success."""
    word = name.lower()
    if isinstance(value, bool | str) or any(part in word for part in _ABOUT_SUCCESS):
        return verdict(name, value)
    return ""


_ABOUT_SUCCESS = ("reward", "success", "correct", "resolv", "pass", "accura", "complet")
