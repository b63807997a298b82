"""Tools for facts: remembering one, forgetting one, and reading what is remembered.

The agent acts as `agent`. Remembering asks by the usual rules of approval: where a person has just
allowed the call, that was the question; where a pattern or `--yes` did, the fact is judged as
learned and waits in the inbox.
"""

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec

from tacit.agent import instructions
from tacit.agent.skill_tools import agent_gate, verdict_text
from tacit.agent.tool import Context, Failed, Result, Tool
from tacit.base import secrets
from tacit.base.errors import TacitError
from tacit.changes.change import Verdict, acting_as
from tacit.changes.facts import (
    KnownFact,
    NewFact,
    Rationale,
    fact_place_for,
    forget,
    recallable_facts,
    remember,
)
from tacit.changes.gate import Gate
from tacit.changes.neighbours import content_words
from tacit.changes.place import Place, fact_places
from tacit.skills.fact import KIND_MEANINGS, Fact, FactKind, facts_here

Scope = Literal["", "project", "user"]
_MOST = 10


class Remember(msgspec.Struct, frozen=True):
    name: str
    fact: str
    kind: FactKind
    detail: str = ""
    scope: Scope = ""
    reason: str = ""


class Forget(msgspec.Struct, frozen=True):
    name: str
    reason: str = ""
    scope: Scope = ""


class Recall(msgspec.Struct, frozen=True):
    query: str


async def remember_fact(call: Remember, context: Context) -> Result:
    _check_use(context)
    places = fact_places(context.library.cwd)
    place = _place(places, call.scope) if call.scope else fact_place_for(places, call.kind)
    new = NewFact(name=call.name, says=call.fact, kind=call.kind, detail=call.detail)
    before = _find(call.name, place, context)

    def propose() -> Verdict:
        return remember(
            _gate(places, context),
            place.root,
            new,
            _why(call.reason, context),
        )

    verdict, text = await _verdict(propose, call.name, place, context)
    if verdict.applied and before is not None:
        text = f'{text}\nIt replaced: "{before.says}"'
    return _result(verdict, text)


async def forget_fact(call: Forget, context: Context) -> Result:
    places = fact_places(context.library.cwd)
    if call.scope:
        places = [_place(places, call.scope)]
    place = next((p for p in places if _find(call.name, p, context) is not None), None)
    if place is None:
        known = ", ".join(sorted({fact.name for fact in facts_here(context.library.cwd)})[:40])
        raise Failed(f"There is no fact '{call.name}'. There are: {known or 'none'}.")

    def propose() -> Verdict:
        return forget(
            _gate(places, context),
            place.root,
            call.name,
            _why(call.reason, context),
        )

    verdict, text = await _verdict(propose, call.name, place, context)
    return _result(verdict, text)


async def recall(call: Recall, context: Context) -> Result:
    _check_use(context)
    texts = await asyncio.to_thread(recalled_texts, context.library.cwd, call.query)
    return Result(context.shorten("\n\n".join(texts)) or "(no fact fits)")


def recalled_texts(cwd: str, query: str) -> list[str]:
    """The fact called `query`, or those that fit it, each in full and without secrets."""
    known = recallable_facts(cwd)
    found = [k for k in known if k.fact.name == query.strip()] or _search(known, query)
    return [secrets.redact(_whole(k)).text for k in found[:_MOST]]


def _search(known: list[KnownFact], query: str) -> list[KnownFact]:
    """The facts that share words with the query, those that share most first."""
    wanted = content_words(query)
    scored = [
        (len(wanted & content_words(f"{k.fact.name} {k.fact.says} {k.fact.detail}")), k)
        for k in known
    ]
    ranked = sorted(scored, key=lambda pair: (-pair[0], pair[1].fact.name))
    return [k for score, k in ranked if score]


def _whole(known: KnownFact) -> str:
    fact = known.fact
    head = f"{fact.name} ({fact.kind}, {known.provenance}): {fact.says}"
    return f"{head}\n{fact.detail}" if fact.detail else head


def _why(reason: str, context: Context) -> Rationale:
    return Rationale(reason=reason, session=context.session)


def _place(places: list[Place], scope: Scope) -> Place:
    found = next((place for place in places if place.scope == scope), None)
    if found is None:
        raise Failed(f"There is no {scope} scope here; leave `scope` out.")
    return found


def _gate(places: list[Place], context: Context) -> Gate:
    return agent_gate(places, context.session, agreed=context.approved_by_person)


def _find(name: str, place: Place, context: Context) -> Fact | None:
    facts = facts_here(context.library.cwd)
    return next((f for f in facts if f.name == name and f.root == place.root), None)


async def _verdict(
    work: Callable[[], Verdict], name: str, place: Place, context: Context
) -> tuple[Verdict, str]:
    def as_agent() -> Verdict:
        with acting_as("agent"):
            return work()

    before = _find(name, place, context)
    try:
        verdict = await asyncio.to_thread(as_agent)
    except TacitError as error:
        raise Failed(error.explain()) from None
    context.facts_changed.update(
        instructions.fact_key(fact)
        for fact in (before, _find(name, place, context))
        if fact is not None
    )
    names = ", ".join(f"`{n}`" for n in verdict.refusal.alternatives) if verdict.refusal else ""
    instead = f"Replace {names} instead: call remember with that name."
    return verdict, verdict_text(verdict, instead)


def _result(verdict: Verdict, text: str) -> Result:
    return Result(text, failed=not verdict.applied, changed="fact" if verdict.applied else "")


def _check_use(context: Context) -> None:
    if not context.library.settings.memory.use:
        raise Failed("Memory is switched off in the user's settings. Do without it.")


_KINDS = "; ".join(f"{kind}: {about}" for kind, about in KIND_MEANINGS.items())

FACT_TOOLS = (
    Tool(
        "remember",
        "Note one fact for later sessions, in one sentence: what will still be so in a month and"
        " cannot be read from the project's files. The name is its subject, e.g. package-manager;"
        f" noting it again under the same name replaces it. No secrets. Kinds: {_KINDS}.",
        Remember,
        remember_fact,
        "write",
    ),
    Tool(
        "forget",
        "Take a fact back that was noted: it is no longer so, or the user wants it gone.",
        Forget,
        forget_fact,
        "write",
    ),
    Tool(
        "recall",
        "Read noted facts in full: one by its name, or those that fit a few words.",
        Recall,
        recall,
    ),
)
