"""Which changes make a notice: what the background made, archived, took back, or wants to make.

`listen` hears it as it happens. `announce_change` is for whoever cannot be sure that the event was
heard: a job that was killed after its change landed, and is repeated. The same change is announced
once; what the user did, or agreed to, is not announced. Also shows a desktop notification, by the
program that the system has for it.
"""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tacit.base import database, paths
from tacit.base.errors import TacitError
from tacit.base.event_bus import bus
from tacit.base.job import Job
from tacit.base.setting_sections import LearnSettings
from tacit.changes.change import BACKGROUND, Applied, Change, Proposed, Verdict
from tacit.learn import notices
from tacit.learn.background.background_gate import (
    FIRST_ACCEPTED,
    approval_question,
    current_approval,
)
from tacit.learn.notices import Kind, Notice
from tacit.skills.fact import MEMORY_FOLDER

_SECONDS = 5.0
# The words are arguments, not part of the script: nothing in them can be run.
_APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


def notify(title: str, text: str) -> bool:
    """Show it, where there is a desktop to show it on; whether that was done. Never raises."""
    command = _command(title, text)
    if not command:
        return False
    import subprocess

    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _command(title: str, text: str) -> list[str]:
    if program := paths.find_program("notify-send"):
        import html

        # The body may hold markup, so what is meant as text must not read as markup.
        body = html.escape(text, quote=False)
        return [program, "--app-name=tacit", "--", title, body]
    if sys.platform == "darwin" and (program := paths.find_program("osascript")):
        script = [part for line in _APPLESCRIPT for part in ("-e", line)]
        return [program, *script, "--", title, text]
    return []


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
    """From now on, changes of the background in this process are announced. Idempotent."""
    bus.subscribe_once(Applied, _on_applied)
    bus.subscribe_once(Proposed, _on_proposed)


@contextmanager
def listening() -> Iterator[None]:
    """Changes of the background in this process are announced for a `with` block."""
    with bus.listening(Applied, _on_applied), bus.listening(Proposed, _on_proposed):
        yield


def announce_change(change: Change, verdict: Verdict) -> None:
    """Announce a change made in the background that landed or waits; not one that was refused."""
    if verdict.applied:
        _landed(change)
    elif verdict.outcome == "proposed":
        _waits(change, verdict.change)


def announce_failed_job(job: Job, why: str) -> None:
    """Announce that a job has failed for good; the same job only once.

    Runs of schedules have notices of their own.
    """
    if job.kind != "schedule":
        session = str(job.payload.get("session", "")) if job.kind == "review" else ""
        notices.announce(
            Notice(kind="failed", skill=job.kind, change=job.id, session=session, why=why)
        )


def ask_to_go_unasked(learn: LearnSettings | None = None, *, landing: int = 0) -> str:
    """Ask, once, whether learned changes may land unasked; the question, where it is new.

    `landing` skills are being accepted now, and not counted as accepted yet.
    """
    learn = learn if learn is not None else notices.settings()
    try:
        found = current_approval(learn)
    except (TacitError, sqlite3.Error):
        return ""
    accepted = found.accepted + landing
    if learn.approval or accepted < FIRST_ACCEPTED:
        return ""
    text = approval_question(accepted)
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
        ask_to_go_unasked(landing=int(word == "created"))
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
    words = _OF_FACTS if change.root.endswith(MEMORY_FOLDER) else _WORDS
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
        with database.opened(wait=5.0) as connection:
            found = connection.execute("SELECT 1 FROM proposals WHERE applied_as = ?", (change,))
            return found.fetchone() is not None
    except (TacitError, sqlite3.Error):
        return False
