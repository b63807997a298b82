"""From what happened to what is to be done: events become jobs.

Whether a session warrants a review or a repair is decided in `learn/`; this module asks, and
turns the answer into a job. Also the reports of our own chat to the worker, and what an idle
worker does. The code of `learn/` is imported when an event comes, not before.
"""

import os
import time
from threading import Thread
from typing import TYPE_CHECKING

import msgspec

from tacit import hook
from tacit.agent.agent_events import Answered, ReviewBegun
from tacit.base import paths
from tacit.base.errors import TacitError
from tacit.base.event_bus import bus
from tacit.base.settings import load_settings
from tacit.changes.place import SHARED
from tacit.work import job_queue
from tacit.work.intake import SessionStored
from tacit.work.presence import log, wake

if TYPE_CHECKING:
    from tacit.base.settings import Settings
    from tacit.learn.ledger import Decision
    from tacit.traces.store import Store

HOST = "tacit"
"""Our own agent, among the hosts."""
_ASK = 60.0
"""Seconds between two looks at whether the library is to be looked after."""
_STAY = 1800.0
"""Seconds, beside the idle time that curation waits for, that a worker stays for it."""
_next_ask = 0.0
_stays = False

_chats: set[str] = set()
"""The conversations of this process that have had an answer."""


def listen() -> None:
    """From now on, what happens in this process becomes requests. Twice is once."""
    bus.subscribe_once(SessionStored, _stored)


def listen_to_chat() -> None:
    """Likewise, and for the answers of our own agent in this process. Twice is once.

    What listening needs is loaded beside the chat, not in its way.
    """
    listen()
    if bus.subscribe_once(Answered, _answered):
        Thread(target=_warm, name="glue", daemon=True).start()


def end_chats() -> None:
    """The chats of this process are over: what is to be done after a session can be done now."""
    while _chats:
        _report(_chats.pop(), "SessionEnd")


def idle() -> bool:
    """The worker has nothing to do: the time for what can wait. Whether it should not go yet.

    Once a period the library is looked after, when no agent has written for a while. Nobody would
    start a worker then, so the last one of the day stays for that moment.
    """
    global _next_ask, _stays  # noqa: PLW0603
    if time.monotonic() >= _next_ask:
        _next_ask = time.monotonic() + _ASK
        try:
            _stays = _curation()
        except TacitError as error:
            log(f"the library is not looked after: {error.message}")
            _stays = False
    return _stays


def _curation() -> bool:
    if not os.path.isdir(os.path.join(paths.user_home(), SHARED)):
        return False  # nothing was ever learned
    from tacit.learn.curate.curation_status import curation_due

    settings = load_settings(paths.user_home()).settings.curate
    when = curation_due(settings)
    if when.now:
        job_queue.request("curate", when.key, {})
        return False
    return bool(when.key) and when.seconds <= settings.idle_hours * 3600 + _STAY


def _stored(stored: SessionStored) -> None:
    """A session is in the store: what it did with skills is counted, and what follows asked for."""
    from tacit.learn.use_records import record_uses
    from tacit.traces.store import Store

    with Store.open() as store:
        if stored.status in ("new", "grown"):
            record_uses(store, stored.id)
        if stored.ended:
            _ended(store, stored)


def _ended(store: "Store", stored: SessionStored) -> None:
    """Ask for what a session that is over calls for. Done again after a kill, it is the same."""
    from tacit.learn.improve.repair_triggers import IMPROVE_KIND, due_repairs
    from tacit.learn.review.review_triggers import REVIEW_KIND, decide_after_session, review_request

    settings = _settings(store.find(stored.id).head.project)
    decision = _undone(store, stored) or decide_after_session(store, stored.id, settings)
    log(f"{stored.id}: {'to be reviewed' if decision.look else 'not reviewed'}; {decision.reason}")
    if decision.look:
        key, payload = review_request(stored.id, decision)
        job_queue.request(REVIEW_KIND, key, payload)
    for due in due_repairs(store, stored.id, settings):
        job_queue.request(IMPROVE_KIND, due.key, due.payload)


def _undone(store: "Store", stored: SessionStored) -> "Decision | None":
    """What was decided when this session was last taken up, if that may not have been asked for.

    The decision is recorded before the job is asked for, and a kill may lie between. One that was
    asked for is not done a second time.
    """
    from tacit.learn.ledger import Ledger

    if stored.status != "unchanged":
        return None
    known = [d.decision for d in Ledger(store.connection).decisions(stored.id)]
    return next((d for d in known if d.moment == "after" and d.look), None)


def _answered(answered: Answered) -> None:
    """An answer of our own agent is over."""
    from tacit.learn.review.review_triggers import REVIEW_KIND, decide_in_chat, review_request

    _chats.add(answered.session)
    decision = decide_in_chat(answered, _settings(answered.project))
    if decision.look:
        part = str(answered.requests)
        key, payload = review_request(f"{HOST}:{answered.session}", decision, part)
        job_queue.request(REVIEW_KIND, key, payload)
        bus.publish(ReviewBegun(answered.session, skills=decision.skills, facts=decision.facts))
    _report(answered.session, "Stop")


def _report(session: str, event: str) -> None:
    """Tell the worker, as a host's hook does. Where the worker runs this agent, it knows."""
    if os.environ.get("TACIT_WORKER"):
        return
    data = paths.folders().data
    payload = msgspec.json.encode({"session_id": session, "hook_event_name": event})
    if hook.record(data, hook.head([HOST, event], len(payload)), payload):
        wake()


def _settings(project: str) -> "Settings":
    return load_settings(project if os.path.isdir(project) else paths.user_home()).settings


def _warm() -> None:
    from tacit.learn.review import review_triggers  # noqa: F401
