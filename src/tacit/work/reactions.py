"""What follows from what happened: a stored session, an answer in our own chat, an idle worker.

Whether a session calls for a review or a repair is decided in `learn/`, which records it in the
ledger; this module asks for that. Also how our own processes report to the worker, by the spool
that hooks write into. The code of `learn/` is imported when something happened, not before.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

import msgspec

from tacit import hook
from tacit.agent.agent_events import Answered, ReviewBegun
from tacit.base import paths
from tacit.base.errors import NotFound, TacitError
from tacit.base.event_bus import bus
from tacit.base.settings import load_settings
from tacit.changes.place import SHARED
from tacit.traces.trace import OWN_HOST
from tacit.work.intake import NEWS, SessionStored
from tacit.work.job_kinds import Ticket
from tacit.work.presence import describe_fault, log, own_ticket, wake

if TYPE_CHECKING:
    from tacit.base.setting_sections import Settings
    from tacit.traces.host import Source
    from tacit.traces.store import Store
    from tacit.traces.trace import Head

_ASK = 60.0
"""Seconds between two looks at whether a curation is due."""
_LOOK_BACK = 2 * 86400.0
"""Seconds: how long ago a session may have ended that nobody spoke of."""
_STAY = 1800.0
"""Seconds, beside the idle time that curation waits for, that a worker stays for it."""
_next_ask = 0.0
_stays = False

_chats: set[str] = set()
"""The conversations of this process that have had an answer."""


def listen() -> None:
    """From now on, sessions that this process stores are reacted to. Safe to call again."""
    bus.subscribe_once(SessionStored, session_stored)


def listen_to_chat() -> None:
    """Likewise, and to the answers of our own agent in this process. Safe to call again.

    What listening needs is loaded beside the chat, not in its way.
    """
    listen()
    if bus.subscribe_once(Answered, _answered):
        Thread(target=_warm, name="reactions", daemon=True).start()


def end_chats() -> None:
    """The chats of this process are over: what is to be done after a session can be done now."""
    while _chats:
        _report(OWN_HOST, _chats.pop(), "SessionEnd")


def idle(put: Callable[[Ticket], bool]) -> bool:
    """The worker has nothing to do: the time for what can wait. Whether it should not exit yet.

    Once a period the library is curated, when no agent has written for a while. Nobody would start
    a worker then, so the last one of the day stays for that moment. `put` queues the job.
    """
    global _next_ask, _stays  # noqa: PLW0603
    if time.monotonic() >= _next_ask:
        _next_ask = time.monotonic() + _ASK
        try:
            _stays = _curation(put)
        except TacitError as error:
            log(f"the library is not curated: {error.message}")
            _stays = False
    return _stays


def _curation(put: Callable[[Ticket], bool]) -> bool:
    if not os.path.isdir(os.path.join(paths.user_home(), SHARED)):
        return False  # nothing was ever learned
    from tacit.learn.curate.curation_status import curation_due

    settings = load_settings(paths.user_home()).settings.curate
    when = curation_due(settings)
    if when.now:
        put(own_ticket("curate", when.key))
        return False
    return bool(when.key) and when.seconds <= settings.idle_hours * 3600 + _STAY


def session_stored(stored: SessionStored) -> None:
    """A session is in the store: its uses of skills are counted, and if it is over, it is decided
    what follows. Calling it again changes nothing.

    Only the worker decides; another process reports to it. Raises `TacitError`.
    """
    from tacit.learn.use_records import record_uses
    from tacit.traces.store import Store

    with Store.open() as store:
        if stored.status in NEWS:
            record_uses(store, stored.id)
        if stored.ended and os.environ.get("TACIT_WORKER"):
            _decide(store, stored)
            _save(store, stored)
    if stored.ended:
        host, _, session = stored.id.partition(":")
        _report(host, session, "SessionEnd", stored.path)


def tell_deafness() -> None:
    """Tell the user of each agent that is not understood any more, once a version of it."""
    from tacit.learn.notices import Notice, announce
    from tacit.traces.deafness import find_deafness
    from tacit.traces.store import Store

    with Store.open() as store:
        found = find_deafness(store.connection)
    for one in found:
        if announce(Notice(kind="deaf", skill=f"{one.host} {one.version}", why=one.explain())):
            log(one.explain())


class MissedSessions:
    """The sessions of the last days that no event spoke of, or that nothing was decided about: an
    agent was killed, or we were. Only of agents that have called, and only since they did."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], float] = {}

    def take_in(self, quiet: float) -> int:
        """Store those that have been quiet for `quiet` seconds, and decide what follows; how many
        were stored. What fails is said, and tried at the next look."""
        from tacit.traces import hook_events, host_registry

        now, taken = time.time(), 0
        for name, first in hook_events.first_heard().items():
            if name not in host_registry.names():
                continue
            for source in host_registry.get(name).find():
                key = (source.path, source.key)
                if max(first, now - _LOOK_BACK) <= source.modified <= now - quiet and (
                    self._seen.get(key) != source.modified
                ):
                    try:
                        taken += _take_in_missed(source)
                        self._seen[key] = source.modified
                    except Exception as error:  # one broken session must not hide the others
                        log(f"{source.path} {source.key}: {describe_fault(error)}")
        return taken


def _take_in_missed(source: "Source") -> bool:
    from tacit.learn.ledger import Ledger
    from tacit.traces import host_registry
    from tacit.traces.store import Store

    with Store.open() as store:
        written = store.take_in(host_registry.get(source.host), source)
        if not written.id or written.status in ("forgotten", "poorer"):
            return False
        if written.status in NEWS:
            log(f"{written.id}: {written.status}, {written.turns} turns; no event spoke of it")
        elif Ledger(store.connection).is_decided(store.find(written.id)):
            return False
    session_stored(SessionStored(written.id, written.status, True, source.path))
    return written.status in NEWS


def _decide(store: "Store", stored: SessionStored) -> None:
    """Record what a session that is over calls for."""
    from tacit.learn.improve.repair_triggers import IMPROVE_KIND, due_repairs
    from tacit.learn.ledger import DecidedJob, Ledger
    from tacit.learn.review.review_triggers import decide_after_session

    found = store.find(stored.id)
    settings = _settings(found.head.project)
    known = Ledger(store.connection).is_decided(found)
    decision = decide_after_session(store, stored.id, settings)
    if not known:
        verdict = "to be reviewed" if decision.due else "not reviewed"
        log(f"{stored.id}: {verdict}; {decision.reason}")
    _decide_on_parent(store, found.head, settings)
    _show_to_agents(found.head.project)
    due = due_repairs(store, stored.id, settings)
    repairs = [DecidedJob(IMPROVE_KIND, one.key, one.payload, stored.id) for one in due]
    Ledger(store.connection).add_jobs(repairs)


def _save(store: "Store", stored: SessionStored) -> None:
    """Write the session out, where the user wants each to be. What fails keeps nothing waiting."""
    if not load_settings(paths.user_home()).settings.traces.save:
        return
    from tacit.work.export import save_session

    try:
        report = save_session(store, stored.id)
        missing = (*report.left_out, *report.failed)
    except (TacitError, OSError, sqlite3.Error) as error:
        log(f"{stored.id}: no trajectory is saved: {describe_fault(error)}")
        return
    for one in missing:
        log(f"{one.id}: no trajectory is saved: {one.reason}")


def _decide_on_parent(store: "Store", head: "Head", settings: "Settings") -> None:
    """What a helper did is its parent's: that has gone on, if it was over before."""
    from tacit.learn.ledger import Ledger
    from tacit.learn.review.review_triggers import decide_after_session

    known = {head.session}
    while head.parent and head.parent not in known:
        known.add(head.parent)
        try:
            head = store.find(f"{head.host}:{head.parent}").head
        except NotFound:
            return
    if len(known) > 1 and Ledger(store.connection).decisions(head.id):
        decide_after_session(store, head.id, settings)


def _show_to_agents(project: str) -> None:
    """Have connected agents find, in this project, what counts there by now."""
    from tacit.work.host_links import keep_up

    try:
        keep_up(project if os.path.isdir(project) else paths.user_home())
    except TacitError as error:
        log(f"links and briefings are not up to date: {error.message}")


def _answered(answered: Answered) -> None:
    """An answer of our own agent is over."""
    from tacit.learn.review.review_triggers import decide_in_chat

    _chats.add(answered.session)
    decision = decide_in_chat(answered, _settings(answered.project))
    if decision.due:
        bus.publish(ReviewBegun(answered.session, skills=decision.skills, facts=decision.facts))
    _report(OWN_HOST, answered.session, "Stop")


def _report(host: str, session: str, event: str, path: str = "") -> None:
    """Tell the worker, as a host's hook does. Where the worker runs this agent, it knows."""
    if os.environ.get("TACIT_WORKER"):
        return
    event_data = {"session_id": session, "hook_event_name": event}
    if session in os.path.basename(path):  # a file of its own says which host it is
        event_data["transcript_path"] = path
    payload = msgspec.json.encode(event_data)
    if hook.record(paths.folders().data, hook.head([host, event], len(payload)), payload):
        wake()


def _settings(project: str) -> "Settings":
    return load_settings(project if os.path.isdir(project) else paths.user_home()).settings


def _warm() -> None:
    from tacit.learn.review import review_triggers  # noqa: F401
