"""Which changes make a notice: what the background made, put away, took back, or wants to make.

`listen` hears it as it happens. `about` is for whoever cannot be sure that the event was heard: a
job that was killed after its change landed, and is done again. The same change is announced once.
What the user does, and what they said yes to, is no news to them.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tacit.base import database
from tacit.base.errors import TacitError
from tacit.base.events import bus
from tacit.base.job import Job
from tacit.base.sections import LearnSettings
from tacit.changes.actor import BACKGROUND
from tacit.changes.change import Applied, Change, Proposed, Verdict
from tacit.learn import notices
from tacit.learn.approving import FIRST, approval, question
from tacit.learn.notices import Kind, Notice
from tacit.skills.memory import MEMORY

# By the first operation of a change; one without any takes something back.
_WORDS: dict[str, Kind] = {
    "create": "created",
    "edit": "edited",
    "rewrite": "edited",
    "write-file": "edited",
    "remove-file": "edited",
    "archive": "archived",
    "restore": "restored",
    "merge-into": "merged",
}
_OF_FACTS: dict[str, Kind] = {"create": "noted", "rewrite": "noted", "delete": "forgot"}


def listen() -> None:
    """From now on, changes of the background in this process are announced. Twice is once."""
    bus.subscribe_once(Applied, _on_applied)
    bus.subscribe_once(Proposed, _on_proposed)


@contextmanager
def listening() -> Iterator[None]:
    """Changes of the background in this process are announced for a `with` block."""
    with bus.listening(Applied, _on_applied), bus.listening(Proposed, _on_proposed):
        yield


def about(change: Change, verdict: Verdict) -> None:
    """Announce what became of a change of the background's; nothing where it was refused."""
    if verdict.applied:
        _landed(change)
    elif verdict.outcome == "proposed":
        _waits(change, verdict.change)


def failed(job: Job, why: str) -> None:
    """Announce that a job has failed for good. Again is no second notice.

    Runs of schedules tell for themselves.
    """
    if job.kind != "schedule":
        session = str(job.payload.get("session", "")) if job.kind == "review" else ""
        notices.announce(
            Notice(kind="failed", skill=job.kind, change=job.id, session=session, why=why)
        )


def ask_to_go_on(learn: LearnSettings | None = None, *, landing: int = 0) -> str:
    """Ask, once, whether learned changes may land unasked; the question, where it is new.

    `landing` skills are being accepted now, and not counted as accepted yet.
    """
    learn = learn if learn is not None else notices.settings()
    try:
        found = approval(learn)
    except (TacitError, sqlite3.Error):
        return ""
    accepted = found.accepted + landing
    if learn.approval or accepted < FIRST:
        return ""
    text = question(accepted)
    return text if notices.announce(Notice(kind="question", why=text), learn=learn) else ""


def _on_applied(event: Applied) -> None:
    _landed(event.change)


def _on_proposed(event: Proposed) -> None:
    _waits(event.change, event.change.id)


def _landed(change: Change) -> None:
    word = _word(change)
    if change.actor not in BACKGROUND or word is None:
        return
    if _was_accepted(change.id):
        ask_to_go_on(landing=int(word == "created"))
    else:
        notices.announce(_notice(change, word))


def _waits(change: Change, proposal: str) -> None:
    if change.actor in BACKGROUND:
        learn = notices.settings()
        quiet = learn.approval == "propose-only"
        notices.announce(_notice(change, "proposed", proposal, quiet=quiet), learn=learn)


def _word(change: Change) -> Kind | None:
    if not change.operations:
        return "rolled-back"
    words = _OF_FACTS if change.root.endswith(MEMORY) else _WORDS
    word = words.get(str(change.operations[0].__struct_config__.tag))
    return "repaired" if word == "edited" and change.actor == "improver" else word


def _notice(change: Change, kind: Kind, number: str = "", *, quiet: bool = False) -> Notice:
    return Notice(
        kind=kind,
        skill=change.skill,
        change=number or change.id,
        root=change.root,
        session=change.session,
        why=change.reason,
        actor=change.actor,
        quiet=quiet,
    )


def _was_accepted(change: str) -> bool:
    """Whether a change is one that the user took out of the inbox."""
    try:
        with closing(database.connect(wait=5.0)) as connection:
            found = connection.execute("SELECT 1 FROM proposals WHERE applied_as = ?", (change,))
            return found.fetchone() is not None
    except (TacitError, sqlite3.Error):
        return False
