"""What `tacit doctor` asks of a layer (`Check`, `Finding`), and the checks of this one:
configuration, folders, leftover files, trust and tacit.db.

A check takes no arguments, returns what it found and changes nothing. Repairing is a second step
that can be repeated without harm. The checks of other layers are in their own packages.
"""

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial

import msgspec

from tacit.base import database, paths, settings, trust
from tacit.base.atomic_files import TEMPORARY_NAME
from tacit.base.errors import BadConfig, Busy, Damaged, Unwritable


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as it should be."""

    code: str
    what: str
    fix: str
    """What the repair does, or what the user must do where it cannot be done for them."""
    repair: Callable[[], object] | None = None
    """Repairs it. May be called again without harm."""


Check = Callable[[], list[Finding]]


def check_config() -> list[Finding]:
    """The configuration can be read, and no variable that looks like one of it is misspelt."""
    try:
        loaded = settings.load_settings()
    except BadConfig as error:
        return [Finding("config", error.message, error.hint)]
    return [
        Finding(
            "variable",
            f"{stray.name} is in the environment and sets nothing",
            f"call it {stray.near}, or unset it" if stray.near else "unset it",
        )
        for stray in loaded.strays
    ]


def check_folders() -> list[Finding]:
    """Tacit's folders can be written, belong to this user, and are not open to others."""
    findings = []
    own = paths.folders()
    for folder in (own.data, own.cache):
        if os.path.islink(folder):
            what = f"{folder} is a link, and Tacit keeps its files in {os.path.realpath(folder)}"
            findings.append(Finding("folder", what, "look there yourself, or set TACIT_HOME"))
            continue
        if not os.path.isdir(folder):
            if os.path.lexists(folder):
                findings.append(Finding("folder", f"{folder} is not a folder", "move it away"))
            continue
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            what = f"{folder} cannot be written: {error.strerror}"
            findings.append(Finding("folder", what, "mend its permissions, or free some space"))
        if os.name == "posix" and os.stat(folder).st_mode & 0o077:
            mode = 0o700
            others_write = os.stat(folder).st_mode & 0o022
            what = f"{folder} can be {'written' if others_write else 'read'} by others"
            findings.append(
                Finding(
                    "folder", what, f"set its mode to {mode:o}", partial(os.chmod, folder, mode)
                )
            )
    return findings


def check_leftovers() -> list[Finding]:
    """No half-written file was left behind by a killed process."""
    findings = []
    own = paths.folders()
    for base in (own.data, own.cache):
        for here, _, names in os.walk(base) if not os.path.islink(base) else ():
            for name in names:
                path = os.path.join(here, name)
                if TEMPORARY_NAME.fullmatch(name) and not _is_recent(path):
                    what = f"{path} was left behind by a process that was stopped"
                    findings.append(
                        Finding("leftover", what, "delete it", partial(remove_path, path))
                    )
    return findings


def check_trust() -> list[Finding]:
    """The list of trusted folders can be read, and names folders that exist."""
    findings = []
    file = trust.trust_file()
    if os.path.lexists(file) and not os.access(file, os.R_OK):
        findings.append(Finding("trust", f"{file} cannot be read", "mend its permissions"))
    for folder in trust.trusted():
        if not os.path.isdir(folder):
            what = f"{folder} is trusted but does not exist"
            findings.append(
                Finding("trust", what, "take it off the list", partial(trust.remove, folder))
            )
    return findings


def check_database() -> list[Finding]:
    """tacit.db is whole."""
    import sqlite3

    path = database.default_path()
    if not os.path.exists(path):
        return []
    try:
        with contextlib.closing(database.connect(path)) as connection:
            faults = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
        if faults == ["ok"]:
            return []
        why = "; ".join(faults)
    except Damaged as error:
        why = error.message
    except (Busy, Unwritable) as error:
        return [Finding("database", error.message, error.hint)]
    except sqlite3.DatabaseError as error:
        why = str(error)
    aside = f"{path}.damaged-{int(time.time())}"
    fix = (
        f"put it aside as {os.path.basename(aside)} and begin a new one; sessions come back with"
        " 'tacit import', what waited in the inbox does not"
    )
    return [
        Finding("database", f"{path} is damaged: {why}", fix, partial(_begin_anew, path, aside))
    ]


BASE_CHECKS: tuple[Check, ...] = (
    check_config,
    check_folders,
    check_leftovers,
    check_trust,
    check_database,
)


def _is_recent(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime < 60
    except OSError:
        return True


def remove_path(path: str) -> None:
    """Remove a file, a link or a folder with all that is in it; nothing there is fine."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _begin_anew(path: str, aside: str) -> None:
    if check_database():  # else another repair has put right what was wrong in it
        database.move_aside(path, aside)
