"""OpenHands: `~/.openhands/conversations/<id>/`, a file an event. From its documents; untested."""

import os
from collections.abc import Iterator
from typing import Any

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.host import MAX_LINE, Host, SkillFolders, Source, read_document
from tacit.traces.host_folders import UserPath
from tacit.traces.trace import Usage

_QUIET = (
    "SystemPromptEvent", "ConversationStateUpdateEvent", "PauseEvent", "TokenEvent",
    "CondensationRequest", "LLMCompletionLogEvent", "ConversationErrorEvent",
)  # fmt: skip

_TOKENS = (
    "prompt_tokens", "completion_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens",
)  # fmt: skip


class OpenHands(Host):
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

    def inside(self, path: str) -> Iterator[Source]:
        if os.path.isdir(os.path.join(path, "events")):
            yield from self._source(path)
        elif os.path.isdir(path):
            yield from self._below(path)

    def stamp(self, source: Source) -> str:
        names = _events(source.path)
        return f"{len(names)}:{names[-1]}" if names else ""

    def fingerprint(self, source: Source, position: int) -> str:
        names = _events(source.path)
        return f"{names[0]}:{names[position - 1]}" if 0 < position <= len(names) else ""

    def read(self, source: Source, start: int, into: Assembler) -> Iterator[None]:
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

    def _tell(self, event: dict[str, Any], into: Assembler) -> None:
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
        elif kind == "Condensation":
            into.compacted(values.text(event.get("summary")), at)
        elif kind not in _QUIET:
            into.passed("unknown-record")

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
    return sorted(n for n in names if n.startswith("event-") and n.endswith(".json"))


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
