"""OpenHands: a folder for each conversation with a file for each event, or files that hold them.

`~/.openhands/conversations/<id>/events/event-*.json` of today's version, `events/<n>.json` of
version 0; and, in files that a person names, lists of events of either version as it exports them,
and the results of its evaluation, a line each with the events under `history`.
"""

import os
from collections.abc import Iterator
from typing import Any

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.conversation_files import ConversationFiles, Record, verdict
from tacit.traces.host import MAX_LINE, SkillFolders, Source, file_stamp, read_document
from tacit.traces.host_folders import UserPath
from tacit.traces.trace import REFUSED, Usage

_QUIET = (
    "ConversationStateUpdateEvent", "PauseEvent", "TokenEvent",
    "CondensationRequest", "LLMCompletionLogEvent", "ConversationErrorEvent",
)  # fmt: skip

_TOKENS = (
    "prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens",
)  # fmt: skip


# What version 0 calls its actions, by the names that its tools have.
_ACTIONS = {
    "run": "execute_bash", "run_ipython": "execute_ipython_cell", "read": "read", "write": "write",
    "edit": "edit", "browse": "fetch", "browse_interactive": "browser", "call_tool_mcp": "mcp",
    "mcp": "mcp", "task_tracking": "task_tracker",
}  # fmt: skip
_QUIET_ACTIONS = (
    "recall", "change_agent_state", "null", "think", "condensation_request", "initialize",
    "start", "loop_recovery",
)  # fmt: skip
_QUIET_SEEN = (
    "agent_state_changed", "null", "recall", "think", "condense", "success",
)  # fmt: skip


class OpenHands(ConversationFiles):
    name = "openhands"
    title = "OpenHands"
    asks = ()
    tested = False
    precedence = 60
    home = UserPath(".openhands")
    skills = SkillFolders((".openhands/skills",), ("skills",))
    obeys = (".openhands", ".openhands_instructions")

    def homes(self) -> list[str]:
        home = os.path.dirname(self._root())
        return [home] if os.path.isdir(home) else []

    def find(self) -> Iterator[Source]:
        return self._below(self._root())

    def whole_folders(self, path: str) -> Iterator[Source]:
        if os.path.isdir(os.path.join(path, "events")):
            return self._source(path)
        return self._below(path) if os.path.isdir(path) else iter(())

    def inside(self, path: str) -> Iterator[Source]:
        found = list(self.whole_folders(path))
        yield from found or super().inside(path)

    def claims(self, record: Any) -> bool:
        return any(_is_event(event) for event in _history(record)[:20])

    def group(self, record: Record) -> list[tuple[str, str]]:
        return [("all" if "source" in record.members else "", "")]

    def stamp(self, source: Source) -> str:
        if source.key:
            return file_stamp(source.path)
        names = _events(source.path)
        return f"{len(names)}:{names[-1]}" if names else ""

    def fingerprint(self, source: Source, position: int) -> str:
        names = [] if source.key else _events(source.path)
        return f"{names[0]}:{names[position - 1]}" if 0 < position <= len(names) else ""

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        for record in records:
            if isinstance(record, dict) and not _is_event(record):
                self._about(record, into)
            for event in _history(record):
                self._tell(event, into)
                yield

    def read(self, source: Source, start: int, into: Assembler) -> Iterator[None]:
        if source.key:
            yield from super().read(source, start, into)
            return
        self._state(source.path, into)
        for position, name in enumerate(_events(source.path)):
            if position < start:
                continue
            into.begin(position)
            event = _document(os.path.join(source.path, "events", name), into)
            if event:
                try:
                    self._tell(event, into)
                except Exception:  # a boundary: whatever a file holds, the run goes on
                    into.passed("host-error")
            yield

    def _root(self) -> str:
        return self.home.below("conversations").resolve()

    def _below(self, root: str) -> Iterator[Source]:
        try:
            names = sorted(os.listdir(root))
        except OSError:
            return
        for name in names:
            yield from self._source(os.path.join(root, name))

    def _source(self, path: str) -> Iterator[Source]:
        try:
            modified = os.stat(os.path.join(path, "events")).st_mtime
        except OSError:
            return
        yield Source(self.name, path, "", 0, modified)

    def _state(self, folder: str, into: Assembler) -> None:
        path = os.path.join(folder, "base_state.json")
        state = _document(path, into) if os.path.exists(path) else {}
        workspace = values.mapping(state.get("workspace"))
        into.about(
            session=values.string(state.get("id")) or os.path.basename(folder.rstrip("/")),
            project=values.string(workspace.get("working_dir")),
            model=values.string(
                values.mapping(values.mapping(state.get("agent")).get("llm")).get("model")
            ),
        )
        total = Usage()
        stats = values.mapping(values.mapping(state.get("stats")).get("usage_to_metrics"))
        for part in stats.values():
            total = total + _usage(values.mapping(part))
        if stats:
            into.used_in_all(total)

    def _about(self, run: dict[str, Any], into: Assembler) -> None:
        """What a line of an evaluation's results says beside the events."""
        llm = values.mapping(values.mapping(run.get("metadata")).get("llm_config"))
        tested = values.mapping(run.get("test_result"))
        report = values.mapping(run.get("report")) or values.mapping(tested.get("report"))
        into.about(
            session=values.string(run.get("instance_id")),
            model=values.string(llm.get("model")),
            verdict=verdict("resolved", report.get("resolved"))
            or verdict("success", run.get("success")),
        )
        if metrics := values.mapping(run.get("metrics")):
            into.used_in_all(_usage(metrics))

    def _tell(self, event: dict[str, Any], into: Assembler) -> None:
        if "kind" not in event:
            self._tell_old(event, into)
            return
        kind, at = event.get("kind"), values.when(event.get("timestamp"))
        call_id = values.string(event.get("tool_call_id"))
        if kind == "MessageEvent":
            message = values.mapping(event.get("llm_message"))
            text = values.text(message.get("content"))
            if event.get("source") == "user":
                into.prompt(text, at)
            else:
                into.said(text, at)
            for skill in values.items(event.get("activated_skills")):
                into.activated(values.string(skill), at)
        elif kind == "ActionEvent":
            into.said(values.text(event.get("thought")), at)
            call = values.mapping(event.get("tool_call"))
            given = call.get("arguments") or event.get("action")
            into.called(call_id, values.string(event.get("tool_name")), given, at)
        elif kind == "ObservationEvent":
            self._observed(call_id, values.mapping(event.get("observation")), at, into)
        elif kind in ("AgentErrorEvent", "UserRejectObservation"):
            error = values.text(event.get("error")) or values.text(event.get("rejection_reason"))
            into.returned(call_id, error, failed=True, error=error, at=at)
        elif kind == "SystemPromptEvent":
            into.given(values.text(event.get("system_prompt")), event.get("tools"))
        elif kind == "Condensation":
            into.compacted(values.text(event.get("summary")), at)
        elif kind not in _QUIET:
            into.passed("unknown-record")

    def _tell_old(self, event: dict[str, Any], into: Assembler) -> None:
        """An event of version 0: an action with `args`, or an observation with `cause`."""
        at = values.when(event.get("timestamp"))
        named = values.mapping(event.get("tool_call_metadata"))
        args, action = values.mapping(event.get("args")), values.string(event.get("action"))
        number = event.get("cause" if "observation" in event else "id")
        call_id = values.string(named.get("tool_call_id")) or f"#{number}"
        if "observation" in event:
            self._seen_old(event, call_id, at, into)
        elif action in ("message", "finish", "reject"):
            said = args.get("content") or args.get("final_thought") or args.get("thought")
            text = values.text(said) or values.text(event.get("message"))
            if event.get("source") == "user":
                into.prompt(text, at)
            else:
                into.said(text, at)
            if pictures := values.items(args.get("image_urls")):
                into.passed("attachment", len(pictures))
        elif action == "system":
            into.given(values.text(args.get("content")), args.get("tools"))
        elif action == "condensation":
            into.compacted(values.text(args.get("summary")), at)
        elif action == "delegate":
            task = values.text(args.get("inputs"))
            into.delegated(values.string(args.get("agent")), task, at=at)
        elif action in _ACTIONS:
            into.said(values.text(args.get("thought")), at)
            given = {key: value for key, value in args.items() if key != "thought"}
            name = values.string(args.get("name")) if "mcp" in action else ""
            into.called(call_id, name or _ACTIONS[action], given, at)
        elif action not in _QUIET_ACTIONS:
            into.passed("unknown-record")

    def _seen_old(self, event: dict[str, Any], call_id: str, at: Any, into: Assembler) -> None:
        extras = values.mapping(event.get("extras"))
        seen, content = event.get("observation"), values.text(event.get("content"))
        if seen in _QUIET_SEEN or (seen == "error" and not into.tool_of(call_id)):
            return
        metadata = values.mapping(extras.get("metadata"))
        code = metadata.get("exit_code", extras.get("exit_code"))
        failed = seen == "error" or (isinstance(code, int) and code not in (0, -1))
        if seen == "user_rejected":
            into.returned(call_id, content, failed=True, error=REFUSED, at=at)
        elif into.tool_of(call_id):
            into.returned(call_id, content, failed=failed, at=at)

    def _observed(self, call_id: str, seen: dict[str, Any], at: Any, into: Assembler) -> None:
        metadata = values.mapping(seen.get("metadata"))
        code = seen.get("exit_code", metadata.get("exit_code"))
        failed = seen.get("is_error") is True or (isinstance(code, int) and code > 0)
        result = values.text(seen.get("content", seen.get("output")))
        into.returned(call_id, result, failed=failed, at=at)


def _events(folder: str) -> list[str]:
    try:
        names = os.listdir(os.path.join(folder, "events"))
    except OSError:
        return []
    old = [name for name in names if name.removesuffix(".json").isdigit()]
    new = [name for name in names if name.startswith("event-") and name.endswith(".json")]
    return sorted(new) or sorted(old, key=lambda name: (len(name), name))


def _is_event(value: Any) -> bool:
    event = values.mapping(value)
    if not {"source", "timestamp"} <= event.keys():
        return False
    return "action" in event or "observation" in event or "kind" in event


def _history(record: Any) -> list[dict[str, Any]]:
    """The events in a record: a list, the results of an evaluation, or one event."""
    if isinstance(record, dict):
        if _is_event(record):
            return [record]
        record = record.get("history") or record.get("events") or record.get("trajectory")
    found = []
    for item in values.items(record):  # an action and what was seen may stand together as a pair
        found += values.objects(item) if isinstance(item, list) else values.objects([item])
    return found


def _document(path: str, into: Assembler) -> dict[str, Any]:
    try:
        return values.mapping(read_document(path, MAX_LINE, into.passed, dict))
    except OSError:
        into.passed("unreadable")
        return {}


def _usage(part: dict[str, Any]) -> Usage:
    tokens = values.mapping(part.get("accumulated_token_usage"))
    return values.usage(tokens, *_TOKENS, cost=part.get("accumulated_cost"))


HOSTS = (OpenHands(),)
