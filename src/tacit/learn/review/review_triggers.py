"""Which sessions are reviewed: after a session, in a chat that goes on, and by `tacit learn`.

`gather` collects what is known of a session, `decide` applies the rules to it, and the worker and
`tacit learn` both go this way. The rules are pure. After a session: for skills, when one of
`SKILL_TRIGGERS` is due and the session did not itself change skills; for facts, when one of
`FACT_TRIGGERS` is due or it is reviewed for skills anyway. One that went on since is asked the same
of what it did since, and is due when the user put something right there: each part is reviewed
once. A helper's session is a part of its parent's. In a chat, the triggers of a chat, and only at a
final answer. Another trigger is one function in its table, and its setting.

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
from tacit.base.setting_sections import Settings
from tacit.learn.ledger import (
    REVIEW,
    DecidedJob,
    Decision,
    Extent,
    Ledger,
    Look,
    Moment,
    open_ledger,
)
from tacit.learn.signals import session_weight
from tacit.traces.observations import corrections, recoveries, skills_written
from tacit.traces.store import Store, Stored
from tacit.traces.trace import OWN_HOST, Head, Trace

REVIEW_KIND = "review"
"""The kind of job that a review is."""
_NAMED = 3
"""Skills that a reason names."""


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session that is over; where it was reviewed before, of the rest of it."""

    calls: int
    """Its helpers' too; since it was last reviewed for skills."""
    messages: int
    """Prompts of the user's since it was last reviewed for facts."""
    changed: tuple[str, ...] = ()
    """The skills that it changed itself."""
    background: bool = False
    """Work of our own in the background."""
    parent: str = ""
    """The session that it is a helper's part of."""
    skills_before: str = ""
    """When it was reviewed for skills, or that was decided; empty where it never was."""
    facts_before: str = ""
    """Likewise for facts."""
    corrected_skills: int = 0
    """How often the user put something right since it was reviewed for skills."""
    corrected_facts: int = 0
    """Likewise for facts."""
    skills_since: int = 0
    """The first turn that was not reviewed for skills."""
    facts_since: int = 0
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
    if facts.parent:
        reason = f"it is a helper's part of the session {facts.parent}, and reviewed with it"
        return Decision(moment="after", word="helper", reason=reason)
    skills = _for_skills(facts, settings)
    found = _for_memory(_for_facts(facts, settings, read_anyway=skills.due), settings)
    made = _decision("after", skills, found, facts.weight)
    parts = [facts.skills_since] * skills.due + [facts.facts_since] * found.due
    return msgspec.structs.replace(made, since=min(parts, default=0))


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
    found = _since_before(found, facts.skills_before, facts.corrected_skills)
    if found.word != "done before" and facts.changed:
        names = ", ".join(facts.changed[:_NAMED])
        more = f" and {len(facts.changed) - _NAMED} more" if len(facts.changed) > _NAMED else ""
        return Due(False, "changed skills", f"it changed skills itself: {names}{more}")
    return found


def _for_facts(facts: SessionFacts, settings: Settings, *, read_anyway: bool) -> Due:
    seen = facts.facts_before and facts.facts_since > facts.skills_since
    if read_anyway and facts.messages and not seen:
        return Due(True, "due", "it is read anyway")
    found = _first_due(trigger(facts, settings) for trigger in FACT_TRIGGERS)
    return _since_before(found, facts.facts_before, facts.corrected_facts)


def _since_before(found: Due, before: str, corrected: int) -> Due:
    """What is due of a session that was reviewed `before`, if it was."""
    if not before:
        return found
    if found.due:
        return Due(True, "due", f"{found.why}, since it was looked at ({before})")
    if corrected and found.word != "off":
        return Due(True, "due", f"you put something right since it was looked at ({before})")
    return Due(False, "done before", f"it was looked at already ({before}); since then {found.why}")


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


def decide_after_session(store: Store, session: str, settings: Settings) -> Decision:
    """Decide whether the session, which is over and in the store, is reviewed.

    Recorded with the job that follows. Asked again about one that has not gone on since, the
    decision to look at it stands, and is not replaced by one that it has been.
    """
    ledger = Ledger(store.connection)
    stored = store.find(session)
    known = [d.decision for d in ledger.decisions(stored.id) if d.decision.moment == "after"]
    if known and known[0].due and ledger.is_decided(stored):
        return known[0]
    facts = gather(store, stored, ledger)
    decision = decide(facts, settings)
    extent = Extent(stored.turns, stored.calls)
    again = facts.skills_before if decision.skills else facts.facts_before
    part = f"{extent.turns}.{extent.calls}" if again else ""
    ledger.decide(stored.id, decision, _jobs(stored.id, decision, part), extent)
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

    A session that is over has one job, one more if it was first reviewed for facts only, and one
    for each `part` that it went on by. A chat has one for each part, e.g. its requests so far, and
    so has a person who asks again.
    """
    if decision.moment == "after" and not decision.skills:
        part = f"{part}facts"
    payload = {
        "session": session,
        "moment": decision.moment,
        "skills": decision.skills,
        "facts": decision.facts,
        "weight": decision.weight,
    }
    if decision.since:
        payload["since"] = decision.since
    return f"{session}#{part}" if part else session, payload


def gather(
    store: Store, stored: Stored, ledger: Ledger | None = None, *, shallow: bool = False
) -> SessionFacts:
    """What is known of a session; with a ledger, also when it was decided on before.

    `shallow` reads nothing of it: what its row in the store says.
    """
    facts = SessionFacts(
        calls=stored.calls,
        messages=stored.prompts,
        background=is_background_work(stored.head),
        parent=stored.head.parent,
    )
    if shallow or facts.background or facts.parent:
        return facts
    trace = store.whole(stored.id)
    looks = ledger.looked_at(stored.id) if ledger is not None else (Look(), Look())
    skills, said = (_rest(trace, look) for look in looks)
    return msgspec.structs.replace(
        facts,
        put_right=len(corrections(skills.trace)) + len(recoveries(skills.trace)),
        calls=skills.calls,
        messages=len(said.trace.prompts),
        changed=tuple(skills_written(skills.trace)),
        skills_before=_minute(looks[0].at),
        facts_before=_minute(looks[1].at),
        corrected_skills=skills.corrections,
        corrected_facts=said.corrections,
        skills_since=skills.since,
        facts_since=said.since,
        weight=session_weight(trace),
    )


class _Rest(msgspec.Struct, frozen=True):
    """What a session did since a look at it."""

    trace: Trace
    calls: int
    since: int
    corrections: int = 0


def _rest(trace: Trace, look: Look) -> _Rest:
    """The turns since `look`; the last of those before belongs to them if it went on."""
    every = len(trace.calls)
    if not look.at:
        return _Rest(trace, every, 0)
    if not look.extent.turns:  # nobody knows how far it went: all counts as looked at
        return _Rest(Trace(trace.head), 0, len(trace.turns))
    since, later = look.extent.turns, trace.since(look.extent.turns)
    new = {turn.number for turn in later.turns}
    before = every - len(later.calls)
    known = look.extent.calls if look.extent.calls >= 0 else before
    if before > known:
        since -= 1
        later = trace.since(since)
    corrected = sum(one.turn in new for one in corrections(trace))
    return _Rest(later, max(0, every - known), since, corrected)


TRIAL_FOLDER = "tacit-trial-"
"""How the names of the folders begin in which trials of skills run."""


def is_background_work(head: Head) -> bool:
    """Whether a session is work of ours: it runs in the data folder, or is a run of a trial."""
    if any(part.startswith(TRIAL_FOLDER) for part in head.project.split(os.sep)):
        return True
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
