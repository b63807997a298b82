"""What `tacit doctor` asks of learning: whether the record of uses can be believed."""

import os
import sqlite3

from tacit.base import database
from tacit.base.errors import TacitError
from tacit.base.health import Check, Finding


def check_uses() -> list[Finding]:
    """The tables of uses hold what they should."""
    from tacit.learn.curate.rebuilding import trouble
    from tacit.traces.store import Store

    if not os.path.exists(database.default_path()):
        return []
    try:
        with Store.open() as store:
            said = trouble(store.connection)
    except (TacitError, sqlite3.Error):
        return []  # the whole file is damaged, which its own check says
    if not said:
        return []
    fix = "make it again from the sessions; no skill is archived before its days have passed anew"
    return [Finding("uses", f"the record of uses is damaged: {said}", fix, _make_again)]


CHECKS: tuple[Check, ...] = (check_uses,)


def _make_again() -> None:
    from tacit.learn.curate.rebuilding import rebuild
    from tacit.traces.store import Store

    with Store.open() as store:
        rebuild(store)
