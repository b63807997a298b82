"""What the worker does once a day when it has nothing else to do: packs histories, drops sessions
that are older than the settings keep, redacts those that were stored under fewer rules for secrets,
compares daily use where lots were drawn, makes the small backup. Each step is tried by itself; one
that fails is logged, and tried again the next day. What the steps need is loaded when a round is
due: an idle worker asks often.
"""

import os
import time
from collections.abc import Callable

from tacit.base import database, paths
from tacit.base.atomic_files import drop_abandoned, write_atomic
from tacit.base.errors import TacitError
from tacit.base.setting_sections import Settings
from tacit.work.presence import log

_DAY = 20 * 3600.0
"""Seconds between two rounds: less than a day, so that it stays at the same hour."""


def keep_house(load: Callable[[], Settings], now: float | None = None) -> bool:
    """Do a day's round if it is due, by the settings that `load` gives; whether it was."""
    now = time.time() if now is None else now
    stamp = os.path.join(paths.folders().data, "housekeeping")
    if not _is_due(stamp, now):
        return False
    try:
        write_atomic(stamp, f"{now}\n".encode(), durable=False)
    except TacitError as error:
        log(f"no housekeeping: {error.message}")
        return False
    from tacit.changes.journal import pack_histories
    from tacit.work import backup

    data, settings = paths.folders().data, load()
    _try("temporary folders are not dropped", lambda: drop_abandoned(now))
    _try("histories are not packed", lambda: pack_histories(data))
    _try("old sessions are not dropped", lambda: _drop_sessions(settings))
    _try("received traces are not dropped", lambda: _drop_received(now))
    _try("stored sessions are not redacted again", lambda: _redact_again(settings))
    if settings.learn.holdback:
        _try("daily use is not compared", lambda: _settle_daily_use(settings))
    _try("no daily backup", lambda: backup.make_daily(now))
    return True


def _is_due(stamp: str, now: float) -> bool:
    """Whether a day has passed; a time that lies ahead is one of a clock that was set back."""
    try:
        with open(stamp, encoding="ascii") as file:
            last = float(file.read(40))
    except (OSError, ValueError):
        return os.path.isdir(os.path.dirname(stamp))
    return not 0 <= now - last < _DAY


def _drop_received(now: float) -> None:
    if os.path.isdir(os.path.join(paths.folders().data, "otlp")):
        from tacit.work.otlp_listener import drop_old

        drop_old(now)


def _drop_sessions(settings: Settings) -> None:
    from tacit.work.intake import keep_to_limits, open_store

    if settings.traces.keep_days or settings.traces.keep_megabytes:
        with open_store(settings.traces) as store:
            dropped = keep_to_limits(store, settings.traces)
        if dropped.sessions:
            log(f"dropped {dropped.sessions} sessions that were older than the settings keep")


def _redact_again(settings: Settings) -> None:
    from tacit.work.intake import open_store, redact_again

    if os.path.exists(database.default_path()):
        with open_store(settings.traces) as store:
            redact_again(store, settings.traces)
            store.index_again()


def _settle_daily_use(settings: Settings) -> None:
    from tacit.changes.gate import Gate
    from tacit.changes.place import all_places
    from tacit.learn.trial.daily_use import settle_daily_use
    from tacit.skills.library import Library

    library = Library(paths.user_home(), settings)
    for effect in settle_daily_use(Gate(all_places(library.cwd)), library, settings):
        log(effect.text)


def _try(failed: str, step: Callable[[], object]) -> None:
    try:
        step()
    except Exception as error:  # a worker that cannot tidy up still stores sessions
        log(f"{failed}: {error.explain() if isinstance(error, TacitError) else error!r}")
