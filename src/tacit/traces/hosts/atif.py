"""ATIF, the Agent Trajectory Interchange Format of Harbor (RFC 0001), versions 1.0 to 1.8.

Steps of the system, the user and the agent; an agent's step holds its tool calls and their results.
Context that was copied from an earlier trajectory is counted and left out, embedded trajectories of
helpers are sessions of their own. Harbor keeps the verifier's reward beside the trajectory, in the
trial's folder. What ATIF has no words for stands in `extra.tacit` where `tacit export` wrote it.
"""

import os
from collections.abc import Iterator
from datetime import timedelta
from itertools import chain
from typing import Any, cast, get_args

import msgspec

from tacit.traces import tool_calls, values
from tacit.traces.assembler import Assembler
from tacit.traces.chat_message import answered_as, asked_as, messages_of
from tacit.traces.conversation_files import ConversationFiles, verdict
from tacit.traces.host import Source, ignore, read_document, stated_outcome
from tacit.traces.trace import REASONS, Teller, Usage

_MAX_RESULT = 4 * 1024 * 1024
_TOKENS = ("prompt_tokens", "completion_tokens", "cached_tokens")
_TOTALS = tuple(f"total_{name}" for name in _TOKENS)
_FACTS = ("project", "branch", "title", "parent")
_SUMMARIES = ("compaction", "summary")
_TELLERS = get_args(Teller)


class Atif(ConversationFiles):
    name = "atif"
    title = "ATIF"
    precedence = 61

    def claims(self, record: Any) -> bool:
        run = values.mapping(record)
        if values.string(run.get("schema_version")).startswith("ATIF"):
            return "steps" in run
        steps = values.objects(run.get("steps"))[:5]  # some leave the name out
        return "agent" in run and any({"step_id", "source"} <= step.keys() for step in steps)

    def parts(self, record: Any) -> Iterator[str]:
        return _helpers(values.mapping(record))

    def tell(self, records: Iterator[Any], source: Source, into: Assembler) -> Iterator[None]:
        for record in records:
            run = values.mapping(record)
            _, _, inner = source.key.partition("/")
            if not inner:
                into.about(verdict=_reward(run, source.path))
            parent = ""
            for depth, number in enumerate(inner.split("/") if inner else ()):
                parent = _session(run, embedded=depth > 0)
                run = values.objects(run.get("subagent_trajectories"))[int(number)]
            if parent:
                into.about(parent=parent, session=_session(run, embedded=True))
            yield from self._trajectory(run, into)

    def _trajectory(self, run: dict[str, Any], into: Assembler) -> Iterator[None]:
        agent, own = values.mapping(run.get("agent")), _own(run)
        into.about(
            session=_session(run),
            version=values.string(agent.get("version")).removeprefix("unknown"),
            model=values.string(agent.get("model_name")),
            **{name: values.string(own.get(name)) for name in _FACTS},
        )
        into.given(tools=agent.get("tool_definitions"))
        if own:
            into.restore_host(values.string(agent.get("name")))
        counted = False
        for step in values.objects(run.get("steps")):
            if step.get("is_copied_context") is True:
                into.passed("copied")
            else:
                counted |= self._step(step, into)
            yield
        totals = values.mapping(run.get("final_metrics"))
        if own.get("usage"):
            into.used_in_all(_whole_usage(own["usage"]))
        elif totals and not counted:
            into.used_in_all(_usage(totals, _TOTALS, totals.get("total_cost_usd")))
        for reason, times in values.mapping(own.get("skipped")).items():
            if reason in REASONS:
                into.passed(reason, values.count(times))

    def _step(self, step: dict[str, Any], into: Assembler) -> bool:
        """Tell one step; whether it says what it cost."""
        at, source, own = values.when(step.get("timestamp")), step.get("source"), _own(step)
        text, told = _text(step.get("message"), into), values.string(own.get("told"))
        if told in _SUMMARIES:
            into.compacted(text, at)
        elif told in _TELLERS:
            into.told(text, cast("Teller", told), at)
        elif source == "user":
            into.prompt(text, at)
        elif source == "agent":
            into.about(model=values.string(step.get("model_name")))
            into.said(text, at)
        elif source == "system":
            into.given(text, at=at)
        else:
            into.passed("unknown-record")
        _asides(own, into)
        calls = values.objects(step.get("tool_calls")) if source == "agent" else []
        results = values.objects(values.mapping(step.get("observation")).get("results"))
        self._calls(calls, results, at, into)
        metrics = values.mapping(step.get("metrics"))
        if own.get("usage"):
            into.used(_whole_usage(own["usage"]))
        elif metrics:
            into.used(_usage(metrics, _TOKENS, metrics.get("cost_usd")))
        return bool(metrics)

    def _calls(
        self, calls: list[dict[str, Any]], results: list[dict[str, Any]], at: Any, into: Assembler
    ) -> None:
        """Tell calls, each with its results; a result of no call is what something printed."""
        by_call: dict[str, list[dict[str, Any]]] = {}
        for result in results:
            by_call.setdefault(values.string(result.get("source_call_id")), []).append(result)
        ended = []
        for call in calls:
            name, own = values.string(call.get("tool_call_id")), _own(call)
            began = values.when(own.get("at")) or at
            known = "" if own.get("id") == "" else asked_as(name, into)
            function = values.string(call.get("function_name"))
            into.called(known, function, call.get("arguments"), began)
            mine = by_call.pop(name, []) if name else []
            if not mine and len(calls) == 1:
                mine = by_call.pop("", [])
            for result in mine:
                if known:
                    ended.append((known, result, began))
                else:  # it is told apart by its place alone
                    _returned(known, result, began, into)
                if not own and not tool_calls.is_delegation(function):
                    _helper_of(result, began, into)
            _asides(own, into)
        for known, result, began in sorted(ended, key=_when_ended):
            _returned(known, result, began, into)
        for result in chain.from_iterable(by_call.values()):
            earlier = values.string(result.get("source_call_id"))
            if earlier and into.tool_of(earlier):
                _returned(answered_as(earlier, into), result, at, into)  # of a step before
            else:
                into.told(_text(result.get("content"), into), "output", at)


def _when_ended(told: tuple[str, dict[str, Any], Any]) -> float:
    _, result, began = told
    took = values.amount(_own(result).get("duration")) or 0.0
    return began.timestamp() + took if began else took


def _returned(call_id: str, result: dict[str, Any], began: Any, into: Assembler) -> None:
    own, content = _own(result), _text(result.get("content"), into)
    took = values.amount(own.get("duration"))
    text, failed, error = stated_outcome(content)
    # Not in the RFC, and about all the same.
    extra = values.mapping(result.get("extra"))
    wrong = (result.get("is_error"), extra.get("is_error"), extra.get("isError"))
    failed = failed or True in wrong or extra.get("status") in ("failed", "error")
    if own:
        text, failed, error = content, own.get("failed") is True, values.text(own.get("error"))
    ended = began + timedelta(seconds=took) if began and took is not None else None
    into.returned(
        call_id, text, failed=failed, error=error, reply=values.string(own.get("reply")),
        at=ended, duration=took,
    )  # fmt: skip


def _helper_of(result: dict[str, Any], at: Any, into: Assembler) -> None:
    """Tell that a call handed work on, where its name does not say so."""
    for helper in values.objects(result.get("subagent_trajectory_ref")):
        named = helper.get("trajectory_id") or helper.get("session_id")
        into.delegated(session=values.string(named), at=at)


def _asides(own: dict[str, Any], into: Assembler) -> None:
    """What `tacit export` wrote of skills that were loaded and work that was handed on."""
    for aside in values.objects(own.get("then")):
        at, name = values.when(aside.get("at")), values.string(aside.get("name"))
        if aside.get("type") == "skill":
            into.activated(name, at)
        elif aside.get("type") == "subagent":
            task, session = values.string(aside.get("task")), values.string(aside.get("session"))
            into.delegated(name, task, session, at)


def _helpers(run: dict[str, Any], depth: int = 0) -> Iterator[str]:
    """The places of the embedded trajectories, theirs included."""
    for number, inner in enumerate(values.objects(run.get("subagent_trajectories"))):
        yield str(number)
        if depth < 8:
            yield from (f"{number}/{part}" for part in _helpers(inner, depth + 1))


def _session(run: dict[str, Any], *, embedded: bool = False) -> str:
    """What names a trajectory; an embedded one may share the session of the one around it."""
    session, own = values.string(run.get("session_id")), values.string(run.get("trajectory_id"))
    return own or session if embedded and not _own(run) else session or own


def _own(value: dict[str, Any]) -> dict[str, Any]:
    """What `tacit export` wrote of a trajectory or a step that ATIF has no words for."""
    return values.mapping(values.mapping(value.get("extra")).get("tacit"))


def _text(content: Any, into: Assembler) -> str:
    """The words in a message or a result; pictures and sounds are counted."""
    found = []
    for message in messages_of(content, "user") if not isinstance(content, str) else ():
        message.tell_lost(into)
        found.append(message.text)
    return content if isinstance(content, str) else "\n".join(found)


def _whole_usage(value: Any) -> Usage:
    try:
        return msgspec.convert(value, Usage)
    except (msgspec.ValidationError, RecursionError):
        return Usage()


def _usage(tokens: dict[str, Any], names: tuple[str, ...], cost: Any) -> Usage:
    return values.usage(tokens, *names, cost=cost, cached_in_input=True)


def _reward(run: dict[str, Any], path: str) -> str:
    """The verifier's reward: in the trajectory, or where Harbor puts it, in the trial's folder."""
    extra = values.mapping(run.get("extra"))
    if found := _own(run).get("verdict"):
        return values.string(found)
    for name in ("reward", "resolved", "success"):
        if stated := verdict(name, extra.get(name)):
            return stated
    trial = os.path.dirname(os.path.dirname(path))
    try:
        trial_result = read_document(os.path.join(trial, "result.json"), _MAX_RESULT, ignore)
        result = values.mapping(values.mapping(trial_result).get("verifier_result"))
        rewards = values.mapping(result.get("rewards"))
        if stated := verdict("reward", rewards.get("reward", result.get("reward"))):
            return stated
    except OSError:
        pass
    try:
        with open(os.path.join(trial, "verifier", "reward.txt"), encoding="ascii") as file:
            return verdict("reward", float(file.read(64)))
    except (OSError, ValueError):
        return ""


HOSTS = (Atif(),)
