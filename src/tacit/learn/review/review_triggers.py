"""Which sessions are reviewed: after a session, in a chat that goes on, and by `tacit learn`.

`gather` collects what is known of a session, `decide` applies the rules to it, and the worker and
`tacit learn` both go this way. The rules are pure. After a session: for skills, when one of
`SKILL_TRIGGERS` is due and the session did not itself change skills; for facts, when one of
`FACT_TRIGGERS` is due or it is reviewed for skills anyway; each once. In a chat, the triggers of a
chat, and only at a final answer. Another trigger is one function in its table, and its setting.

By hand, the newest sessions that are due come first, and among those the ones that promise most; a
session that went on since its review is due again there, because a person asked.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from tacit.agent.agent_events import Answered
from tacit.base import paths
from tacit.base.display import counted
from tacit.base.settings import Settings
from tacit.learn.ledger import REVIEW, DecidedJob, Decision, Ledger, Moment, open_ledger
from tacit.learn.signals import session_weight
from tacit.traces.observations import corrections, recoveries, skills_written
from tacit.traces.store import Store, Stored
from tacit.traces.trace import OWN_HOST, Head

REVIEW_KIND = "review"
"""The kind of job that a review is."""
_NAMED = 3
"""Skills that a reason names."""


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session that is over."""

    calls: int
    messages: int
    """Prompts of the user's."""
    changed: tuple[str, ...] = ()
    """The skills that it changed itself."""
    background: bool = False
    """Work of our own in the background."""
    skills_before: str = ""
    """When it was reviewed for skills, or that was decided; empty where it never was."""
    facts_before: str = ""
    """Likewise for facts."""
    weight: int = 0
    """How much speaks for it, by cheap signals."""
    put_right: int = 0
    """Corrections of the user's, and failures that were mended."""


class ChatFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a chat whose answer is over."""

    ended: str
    """`done` for a final answer; else how it ended."""
    iterations: int
    """Requests to the model since the last change of a skill, or the last look."""
    messages: int
    """Messages of the user's since the last look for facts."""


class Due(msgspec.Struct, frozen=True):
    """What a trigger says: whether a review is due, in a word, and why."""

    due: bool
    word: str
    why: str


def enough_calls(facts: SessionFacts, settings: Settings) -> Due:
    """The session made enough tool calls."""
    calls = counted(facts.calls, "tool call")
    return _after(facts.calls, settings.learn.after_calls, calls, "few calls", "learn.after_calls")


def something_put_right(facts: SessionFacts, settings: Settings) -> Due:
    """The user corrected something, or a failure was mended: worth a look, however short."""
    if not settings.learn.after_calls:
        return Due(False, "off", "looking at finished sessions is off (learn.after_calls)")
    if not facts.put_right:
        return Due(False, "few calls", "nothing was put right")
    return Due(True, "due", f"{counted(facts.put_right, 'thing')} put right or mended")


def enough_messages(facts: SessionFacts, settings: Settings) -> Due:
    """The user said enough in the session."""
    least, count = settings.learn.after_messages, f"{counted(facts.messages, 'message')} of yours"
    return _after(facts.messages, least, count, "few messages", "learn.after_messages")


def enough_requests(facts: ChatFacts, settings: Settings) -> Due:
    """The chat made enough requests to the model since a skill was last changed."""
    least = settings.learn.chat_iterations
    return _in_chat(facts.iterations, least, "request", "learn.chat_iterations")


def enough_chat_messages(facts: ChatFacts, settings: Settings) -> Due:
    """The user said enough in the chat since it was last read for facts."""
    return _in_chat(facts.messages, settings.memory.chat_turns, "message", "memory.chat_turns")


SKILL_TRIGGERS: tuple[Callable[[SessionFacts, Settings], Due], ...] = (
    enough_calls,
    something_put_right,
)
FACT_TRIGGERS: tuple[Callable[[SessionFacts, Settings], Due], ...] = (enough_messages,)
CHAT_SKILL_TRIGGERS: tuple[Callable[[ChatFacts, Settings], Due], ...] = (enough_requests,)
CHAT_FACT_TRIGGERS: tuple[Callable[[ChatFacts, Settings], Due], ...] = (enough_chat_messages,)


def decide(facts: SessionFacts | ChatFacts, settings: Settings, *, named: bool = False) -> Decision:
    """Whether a session is reviewed, for what, and why or why not.

    One that a person `named` is reviewed whatever it holds.
    """
    if isinstance(facts, ChatFacts):
        return _decide_in_chat(facts, settings)
    if named:
        asked = Due(True, "due", "you named it")
        return _decision("hand", asked, _for_memory(asked, settings), facts.weight)
    if facts.background:
        reason = "it is work of Tacit's own in the background"
        return Decision(moment="after", word="own work", reason=reason)
    skills = _for_skills(facts, settings)
    found = _for_memory(_for_facts(facts, settings, read_anyway=skills.due), settings)
    return _decision("after", skills, found, facts.weight)


def _decide_in_chat(facts: ChatFacts, settings: Settings) -> Decision:
    if facts.ended != "done":
        how = "interrupted" if facts.ended == "interrupted" else f"ended by: {facts.ended}"
        reason = f"the answer was not a final one ({how})"
        return Decision(moment="chat", word="not final", reason=reason)
    skills = _first_due(trigger(facts, settings) for trigger in CHAT_SKILL_TRIGGERS)
    found = _first_due(trigger(facts, settings) for trigger in CHAT_FACT_TRIGGERS)
    return _decision("chat", skills, _for_memory(found, settings))


def _for_skills(facts: SessionFacts, settings: Settings) -> Due:
    found = _first_due(trigger(facts, settings) for trigger in SKILL_TRIGGERS)
    if found.word == "off":
        return found
    if facts.skills_before:
        return Due(False, "done before", f"it was looked at already ({facts.skills_before})")
    if facts.changed:
        names = ", ".join(facts.changed[:_NAMED])
        more = f" and {len(facts.changed) - _NAMED} more" if len(facts.changed) > _NAMED else ""
        return Due(False, "changed skills", f"it changed skills itself: {names}{more}")
    return found


def _for_facts(facts: SessionFacts, settings: Settings, *, read_anyway: bool) -> Due:
    if facts.facts_before:
        return Due(False, "done before", f"it was looked at already ({facts.facts_before})")
    if read_anyway and facts.messages:
        return Due(True, "due", "it is read anyway")
    return _first_due(trigger(facts, settings) for trigger in FACT_TRIGGERS)


def _for_memory(found: Due, settings: Settings) -> Due:
    return found if settings.memory.use else Due(False, "off", "memory is off (memory.use)")


def _first_due(found: Iterable[Due]) -> Due:
    """The first trigger that is due; else all that were asked, in the word of the first of them."""
    each = list(found)
    asked = [due for due in each if due.due] or [due for due in each if due.word != "off"] or each
    if asked[0].due:
        return asked[0]
    return Due(False, asked[0].word, ", ".join(due.why for due in asked))


def _after(number: int, least: int, count: str, few: str, setting: str) -> Due:
    if not least:
        return Due(False, "off", f"looking at finished sessions is off ({setting})")
    if number < least:
        return Due(False, few, f"{count}, fewer than {least} ({setting})")
    return Due(True, "due", f"{count}, at least {least}")


def _in_chat(number: int, least: int, noun: str, setting: str) -> Due:
    if not least:
        return Due(False, "off", f"looking at a running chat is off ({setting})")
    due = number >= least
    why = f"{counted(number, noun)} since the last time, of {least} ({setting})"
    return Due(due, "due" if due else "not yet", why)


def _decision(moment: Moment, skills: Due, facts: Due, weight: int = 0) -> Decision:
    word = skills.word if skills.due or not facts.due else "due for facts"
    return Decision(
        moment=moment,
        skills=skills.due,
        facts=facts.due,
        word=word,
        reason=f"for skills: {skills.why}; for facts: {facts.why}",
        weight=weight,
    )


def decide_after_session(
    store: Store, session: str, settings: Settings, *, unchanged: bool = False
) -> Decision:
    """Decide whether the session, which is over and in the store, is reviewed.

    Recorded with the job that follows. Asked again about an `unchanged` one, the decision to look
    at it stands, and is not replaced by one that it has been.
    """
    ledger = Ledger(store.connection)
    stored = store.find(session)
    decision = decide(gather(store, stored, ledger), settings)
    known = [d.decision for d in ledger.decisions(stored.id) if d.decision.moment == "after"]
    if unchanged and not decision.due and known and known[0].due:
        return known[0]
    ledger.decide(stored.id, decision, _jobs(stored.id, decision))
    return decision


def decide_in_chat(answered: Answered, settings: Settings) -> Decision:
    """Decide whether a chat is reviewed, now that an answer is over. Recorded with its job."""
    spoken = ChatFacts(
        ended=answered.reason, iterations=answered.iterations, messages=answered.user_turns
    )
    decision = decide(spoken, settings)
    session = f"{OWN_HOST}:{answered.session}"
    with open_ledger() as ledger:
        ledger.decide(session, decision, _jobs(session, decision, str(answered.requests)))
    return decision


def _jobs(session: str, decision: Decision, part: str = "") -> list[DecidedJob]:
    if not decision.due:
        return []
    return [DecidedJob(REVIEW_KIND, *review_request(session, decision, part), session)]


def review_request(session: str, decision: Decision, part: str = "") -> tuple[str, dict[str, Any]]:
    """The key and the payload of the job for a decision to review.

    A session that is over has one job, and one more if it was first reviewed for facts only. A chat
    has one for each `part`, e.g. its requests so far, and so has a person who asks again.
    """
    if decision.moment == "after":
        part = "" if decision.skills else "facts"
    return f"{session}#{part}" if part else session, {
        "session": session,
        "moment": decision.moment,
        "skills": decision.skills,
        "facts": decision.facts,
        "weight": decision.weight,
    }


def gather(
    store: Store, stored: Stored, ledger: Ledger | None = None, *, shallow: bool = False
) -> SessionFacts:
    """What is known of a session; with a ledger, also when it was decided on before.

    `shallow` reads nothing of it: what its row in the store says.
    """
    facts = SessionFacts(
        calls=stored.calls, messages=stored.prompts, background=is_background_work(stored.head)
    )
    if shallow or facts.background:
        return facts
    skills_at, facts_at = ledger.looked_at(stored.id) if ledger is not None else ("", "")
    trace = store.trace(stored.id)
    put_right = len(corrections(trace)) + len(recoveries(trace))
    return msgspec.structs.replace(
        facts,
        put_right=put_right,
        changed=tuple(skills_written(trace)),
        skills_before=_minute(skills_at),
        facts_before=_minute(facts_at),
        weight=session_weight(trace),
    )


def is_background_work(head: Head) -> bool:
    """Whether a session is work of ours in the background: it runs in the data folder."""
    data = os.path.realpath(paths.folders().data)
    return bool(head.project) and paths.is_inside(os.path.realpath(head.project), data)


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


MOST_SESSIONS = 20
"""Sessions that a run reviews, unless another number is asked for."""


class ReviewCandidate(msgspec.Struct, frozen=True):
    """A session to review, and what was decided about it."""

    stored: Stored
    decision: Decision


class ChosenSessions(msgspec.Struct, frozen=True):
    """What a run reviews, in its order."""

    candidates: tuple[ReviewCandidate, ...]
    passed: dict[str, int] = {}
    """How many were passed over, by the reason in a word or two."""
    left: int = 0
    """Sessions that a later run may review."""


def choose_sessions(
    store: Store,
    sessions: Iterable[Stored],
    settings: Settings,
    *,
    again: bool = False,
    most: int = MOST_SESSIONS,
) -> ChosenSessions:
    """The sessions of a run among `sessions`, which come newest first."""
    ledger = Ledger(store.connection)
    passed: Counter[str] = Counter()
    found: list[ReviewCandidate] = []
    left = 0
    for stored in sessions:
        if not again and not ledger.is_new(stored, REVIEW):
            passed["done before"] += 1
            continue
        decision = decide(gather(store, stored, shallow=True), settings)
        if len(found) == most:
            left += decision.due
            continue
        if decision.due or _may_hold_a_correction(stored):  # only then is it worth reading
            decision = decide(gather(store, stored), settings)
        if decision.due:
            found.append(_by_hand(stored, decision))
        else:
            passed[decision.word] += 1
    found.sort(key=lambda one: -one.decision.weight)  # stable: the newest first among equals
    return ChosenSessions(tuple(found), dict(passed), left)


def _may_hold_a_correction(stored: Stored) -> bool:
    """Whether something can have been put right: a second message, or a failure."""
    return stored.prompts > 1 or stored.failures > 0


def named_sessions(store: Store, sessions: Iterable[Stored], settings: Settings) -> ChosenSessions:
    """Sessions that a person named: reviewed whatever they hold."""
    return ChosenSessions(
        tuple(
            _by_hand(stored, decide(gather(store, stored), settings, named=True))
            for stored in sessions
        )
    )


def _by_hand(stored: Stored, decision: Decision) -> ReviewCandidate:
    return ReviewCandidate(stored, msgspec.structs.replace(decision, moment="hand"))
