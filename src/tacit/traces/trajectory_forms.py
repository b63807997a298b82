"""The forms in which trajectories leave: ATIF, OpenAI chat, ShareGPT, Tinker, and the Hub's STS.

Owns how each form spells a trajectory, and what it cannot say (`Form.losses`), which is counted and
never dropped in silence. What ATIF has no field for stands in its `extra`, under the key `tacit`;
docs/trajectories.md describes that. Reading the forms is done by the hosts of the same names.

Where a form puts calls and results into tags (ShareGPT), whatever could be taken for such a tag is
written otherwise: as an escape in JSON, as `&lt;` in text. A step that stands for others, and a
host's own summary, are the system's words and never the user's.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from tacit.base.paths import folders
from tacit.traces.trace import Head, ToolCall, Usage
from tacit.traces.trajectory import Aside, Entry, Trajectory
from tacit.traces.values import quote_tags

ATIF_VERSION = "ATIF-v1.7"
NO_RESULT = "[no result was recorded]"
"""What stands for the result of a call that has none, where a form wants one."""

Row = dict[str, Any]


class Form(msgspec.Struct, frozen=True):
    """One way to write trajectories."""

    name: str
    lines: Callable[[Trajectory], Iterator[Row]]
    """The JSON objects that a trajectory becomes, its helpers' included."""
    losses: dict[str, str]
    """What it cannot say, and how that is found: a word of `count_losses` for each text."""
    labels: bool = True
    """Whether a row holds its labels; else they lie beside the data."""
    document: bool = False
    """Whether a file of one session is a document, not lines."""
    several: bool = True
    """Whether a file may hold more than one session."""


# What every form loses, because a trace does not hold it.
_OF_TRACE = {
    "system": "sessions whose system prompt is not known: not written down, or the file is gone",
    "tools": "sessions with calls whose definitions are not known: as for the system prompt",
    "together": "calls of which no time says whether they were made at once: one follows the other",
    "shortened": "long texts of which the middle was left out as they were read",
}
_OF_MESSAGES = _OF_TRACE | {
    "times": "when each step happened",
    "failed": "whether a call failed, but for its words; the labels name those that did",
    "told": "who told what stands in the user's place and was not typed",
    "asides": "skills that were loaded, and work handed over, by no call",
    "replies": "what the user typed in refusing or answering a call, apart from its result",
    "unfinished": f"calls without a result: they get the words {NO_RESULT}",
    "ids": "calls without an id: they get one",
    "usage": "tokens by turn",
    "head": "project, branch, title, version and times of the session",
    "summaries": "which of the system's messages is a summary, and of what",
}


def count_losses(trajectory: Trajectory, form: Form) -> dict[str, int]:
    """How often something of `trajectory`, helpers included, cannot be said in `form`."""
    found: dict[str, int] = {}
    for one in trajectory.family():
        calls = [call for entry in one.entries for call in entry.calls]
        entries = one.entries
        counts = {
            "system": int(not one.given.system),
            "tools": int(bool(calls) and not one.given.tools),
            "together": sum(map(_is_loose, entries, entries[1:])),
            "shortened": one.head.skipped.get("shortened", 0),
            "times": sum(entry.at is not None for entry in entries),
            "failed": sum(call.failed for call in calls),
            "told": sum(entry.source == "user" and bool(entry.told) for entry in entries),
            "asides": sum(len(part) for entry in entries for part in entry.asides),
            "replies": sum(bool(call.reply) for call in calls),
            "unfinished": sum(not call.finished for call in calls),
            "ids": sum(not call.id for call in calls),
            "usage": sum(entry.usage != Usage() for entry in entries),
            "head": 1,
            "names": sum(_function_name(call.name) != call.name for call in calls),
            "copied": sum(entry.copied for entry in entries),
            "summaries": sum(entry.told in ("compaction", "summary") for entry in entries),
        }
        for word, text in form.losses.items():
            if counts[word]:
                found[text] = found.get(text, 0) + counts[word]
    return found


def _is_loose(before: Entry, entry: Entry) -> bool:
    """Whether the calls of two entries may have been made in one answer, for all that is known."""
    calls = (*before.calls, *entry.calls) if before.calls and entry.calls else ()
    return not entry.text and any(call.at is None for call in calls)


def _with_ids(trajectory: Trajectory) -> Trajectory:
    """`trajectory` with an id for every call, its own in its turn."""
    used: set[str] = set()
    entries, turn = [], -1
    for at, entry in enumerate(trajectory.entries, 1):
        if entry.turn != turn:
            used, turn = set(), entry.turn
        calls = []
        for number, call in enumerate(entry.calls, 1):
            name = call.id
            while not name or name in used:
                name = f"call_{at}_{number}" if name != f"call_{at}_{number}" else f"{name}_"
            used.add(name)
            calls.append(call if name == call.id else msgspec.structs.replace(call, id=name))
        same = tuple(calls) == entry.calls
        entries.append(entry if same else msgspec.structs.replace(entry, calls=tuple(calls)))
    return msgspec.structs.replace(trajectory, entries=tuple(entries))


# ATIF.


def atif_document(trajectory: Trajectory) -> Row:
    """`trajectory` as ATIF, its helpers embedded."""
    tasks = {helper.told_first.strip(): helper.id for helper in trajectory.helpers}
    original = trajectory.entries
    trajectory = _with_ids(trajectory)
    pairs = zip(trajectory.entries, original, strict=True)
    head = trajectory.head
    agent: Row = {"name": head.host, "version": head.version or "unknown"}
    if head.model:
        agent["model_name"] = head.model
    if trajectory.given.tools:
        agent["tool_definitions"] = trajectory.given.tools
    document: Row = {
        "schema_version": ATIF_VERSION,
        "session_id": head.session,
        "trajectory_id": head.id,
        "agent": agent,
        "steps": [_atif_step(at, *pair, tasks) for at, pair in enumerate(pairs, 1)],
        "final_metrics": _metrics(trajectory.usage, "total_")
        | {"total_steps": len(trajectory.entries)},
        "extra": {"tacit": _head(head) | {"labels": trajectory.labels}},
    }
    if trajectory.helpers:
        document["subagent_trajectories"] = [atif_document(one) for one in trajectory.helpers]
    return document


def _head(head: Head) -> Row:
    """What ATIF has no field for."""
    names = ("project", "branch", "title", "parent", "verdict", "started", "ended", "usage")
    said = {name: getattr(head, name) for name in (*names, "skipped") if getattr(head, name)}
    return said | {"usage": head.usage}


def _metrics(usage: Usage, before: str = "") -> Row:
    named = {
        "prompt_tokens": usage.input + usage.cache_read + usage.cache_write,
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
        "cost_usd": usage.cost,
    }
    made = {before + name: value for name, value in named.items() if value is not None}
    rest = {"reasoning_tokens": usage.reasoning, "cache_write_tokens": usage.cache_write}
    extra = {name: value for name, value in rest.items() if value}
    return made | ({"extra": extra} if extra else {})


def _atif_step(number: int, entry: Entry, original: Entry, tasks: dict[str, str]) -> Row:
    ours: Row = {"turn": entry.turn}
    if entry.told:
        ours["told"] = entry.told
    if entry.asides[0]:
        ours["then"] = entry.asides[0]
    if entry.stands_for is not None:
        ours["stands_for"] = entry.stands_for
    step: Row = {"step_id": number, "source": entry.source, "message": entry.text}
    if entry.at is not None:
        step["timestamp"] = entry.at
    if entry.calls:
        asides = entry.asides[1:]
        step["tool_calls"] = [
            _atif_call(call, before.id, then, entry.at)
            for call, before, then in zip(entry.calls, original.calls, asides, strict=True)
        ]
        results = [_atif_result(call, tasks) for call in entry.calls if call.finished]
        if results:
            step["observation"] = {"results": results}
    if entry.usage != Usage():
        # Nobody says which answer took what: the figures of a turn stand at its last step.
        ours["usage"] = entry.usage
        if entry.source == "agent":
            step["metrics"] = _metrics(entry.usage)
    if entry.copied:
        step["is_copied_context"] = True
    return step | {"extra": {"tacit": ours}}


def _atif_call(call: ToolCall, first_id: str, then: tuple[Aside, ...], at: datetime | None) -> Row:
    ours: Row = {}
    if call.at != at:
        ours["at"] = call.at
    if call.id != first_id:
        ours["id"] = first_id
    if not call.finished:
        ours["finished"] = False
    if then:
        ours["then"] = then
    made: Row = {
        "tool_call_id": call.id,
        "function_name": call.name,
        "arguments": call.arguments,
    }
    return made | ({"extra": {"tacit": ours}} if ours else {})


def _atif_result(call: ToolCall, tasks: dict[str, str]) -> Row:
    ours: Row = {"failed": True, "error": call.error} if call.failed else {}
    if call.duration is not None:
        ours["duration"] = call.duration
    if call.reply:
        ours["reply"] = call.reply
    made: Row = {"source_call_id": call.id, "content": call.result}
    given = (value for value in call.arguments.values() if isinstance(value, str))
    if helper := next((tasks[text.strip()] for text in given if text.strip() in tasks), ""):
        made["subagent_trajectory_ref"] = [{"trajectory_id": helper}]
    return made | ({"extra": {"tacit": ours}} if ours else {})


def _atif_lines(trajectory: Trajectory) -> Iterator[Row]:
    yield atif_document(trajectory)


# Messages, as OpenAI has them; Tinker and STS differ in little.

_NOT_OF_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def _function_name(name: str) -> str:
    return _NOT_OF_NAME.sub("_", name)[:64] or "unknown"


def _messages(trajectory: Trajectory, *, training: str = "") -> Iterator[Row]:
    """The messages of `trajectory`; `training` names the field that says whether one is trained on.

    The result of each call follows the message that made it, whatever came first by the clock.
    """
    for entry in _with_ids(trajectory).entries:
        if entry.source == "agent":
            message: Row = {"role": "assistant", "content": entry.text}
            if entry.calls:
                message["tool_calls"] = [_message_call(call) for call in entry.calls]
            if training == "weight" and entry.copied:
                message["weight"] = 0
            yield _trainable(message, training, not entry.copied)
            for call in entry.calls:
                yield _trainable(_message_result(call, training), training, False)
        elif entry.text:
            yield _trainable({"role": entry.source, "content": entry.text}, training, False)


def _trainable(message: Row, training: str, wanted: bool) -> Row:
    return message | {"trainable": wanted} if training == "trainable" else message


def _message_call(call: ToolCall) -> Row:
    given = msgspec.json.encode(call.arguments).decode()
    function = {"name": _function_name(call.name), "arguments": given}
    return {"id": call.id, "type": "function", "function": function}


def _message_result(call: ToolCall, training: str) -> Row:
    content = call.result if call.finished else NO_RESULT
    made: Row = {"role": "tool", "tool_call_id": call.id, "content": content}
    return made | ({"name": _function_name(call.name)} if training == "trainable" else {})


def _tools(trajectory: Trajectory) -> Row:
    if not trajectory.given.tools:
        return {}
    parallel = any(len(entry.calls) > 1 for entry in trajectory.entries)
    return {"tools": trajectory.given.tools, "parallel_tool_calls": parallel}


def _openai_lines(trajectory: Trajectory) -> Iterator[Row]:
    for one in trajectory.family():
        yield {"messages": list(_messages(one, training="weight")), **_tools(one)}


def _tinker_lines(trajectory: Trajectory) -> Iterator[Row]:
    for one in trajectory.family():
        yield {"messages": list(_messages(one, training="trainable")), **_about(one)}


def own_steps(trajectory: Trajectory) -> Trajectory:
    """Without what was copied from other sessions, for forms that cannot mark it."""
    entries = tuple(entry for entry in trajectory.entries if not entry.copied)
    helpers = tuple(own_steps(helper) for helper in trajectory.helpers)
    return msgspec.structs.replace(trajectory, entries=entries, helpers=helpers)


def _sts_lines(trajectory: Trajectory) -> Iterator[Row]:
    for one in trajectory.family():
        head = one.head
        first: Row = {"type": "session", "harness": head.host, "id": head.session}
        first |= {"name": head.title} if head.title else {}
        first |= {"tools": one.given.tools} if one.given.tools else {}
        yield first | labels_row(one)
        for message in _messages(own_steps(one)):
            yield {"type": "message", "message": message}


def _about(trajectory: Trajectory) -> Row:
    """What a row says of itself beside its messages: texts alone, the same keys in every row, or
    Hugging Face's `datasets` cannot put the rows into one table."""
    head = trajectory.head
    return {
        "session_id": head.session,
        "agent": head.host,
        "model": head.model,
        "parent": head.parent,
        "outcome": trajectory.labels.outcome.state,
        "tools": msgspec.json.encode(trajectory.given.tools).decode(),
    }


def labels_row(trajectory: Trajectory) -> Row:
    """The labels of a trajectory, and which steps others stand for, beside its row."""
    head = trajectory.head
    return {
        "session_id": head.session,
        "agent": head.host,
        "parent": head.parent,
        "labels": trajectory.labels,
        "stands_for": [entry.stands_for for entry in trajectory.entries if entry.stands_for],
    }


# ShareGPT, with calls and results in tags.


def _sharegpt_lines(trajectory: Trajectory) -> Iterator[Row]:
    for one in trajectory.family():
        yield {"conversations": list(_conversation(_with_ids(own_steps(one)))), **_about(one)}


def _conversation(trajectory: Trajectory) -> Iterator[Row]:
    for entry in trajectory.entries:
        if entry.source == "agent":
            calls = [
                _tagged("tool_call", {"id": c.id, "name": c.name, "arguments": c.arguments})
                for c in entry.calls
            ]
            said = [quote_tags(entry.text)] if entry.text else []
            yield {"from": "gpt", "value": "\n".join([*said, *calls])}
            if entry.calls:
                results = [
                    _tagged(
                        "tool_response",
                        {
                            "tool_call_id": c.id,
                            "name": c.name,
                            "content": c.result if c.finished else NO_RESULT,
                        },
                    )
                    for c in entry.calls
                ]
                yield {"from": "tool", "value": "\n".join(results)}
        elif entry.text:
            source = "human" if entry.source == "user" else "system"
            yield {"from": source, "value": entry.text}


def _tagged(tag: str, value: Row) -> str:
    """`value` as JSON in a tag that nothing inside it can close."""
    inner = msgspec.json.encode(value).decode().replace("<", "\\u003c")
    return f"<{tag}>\n{inner}\n</{tag}>"


_COPIED = {"copied": "steps copied from an earlier session: left out, as nothing can mark them"}
_NAMES = {"names": "names of tools with other signs than letters, digits, _ and -"}
FORMS = {
    form.name: form
    for form in (
        Form("atif", _atif_lines, _OF_TRACE, document=True),
        Form("openai", _openai_lines, _OF_MESSAGES | _NAMES, labels=False),
        Form("sharegpt", _sharegpt_lines, _OF_MESSAGES | _COPIED, labels=False),
        Form("tinker", _tinker_lines, _OF_MESSAGES | _NAMES, labels=False),
        Form("sts", _sts_lines, _OF_MESSAGES | _NAMES | _COPIED, several=False),
    )
}


_UNSAFE = re.compile(r"[^A-Za-z0-9@._-]")


def saved_path(session: str, form: Form, folder: str = "") -> str:
    """The file of the session called `session` in `folder`, by default where sessions are saved."""
    parted = session.replace(":", "@", 1)
    name = _UNSAFE.sub("_", parted)
    if name != parted or "@" in session or len(name) > 150:  # else two could share a file
        name = f"{name[:120]}-{hashlib.sha256(session.encode()).hexdigest()[:12]}"
    ending = "json" if form.document else "jsonl"
    folder = folder or os.path.join(folders().data, "trajectories")
    return os.path.join(folder, f"{name}.{ending}")
