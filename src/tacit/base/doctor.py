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
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from tacit.base import database, paths, settings, trust
from tacit.base.atomic_files import TEMPORARY_NAME
from tacit.base.errors import BadConfig, Damaged, TacitError


class Finding(msgspec.Struct, frozen=True):
    """One thing that is not as it should be."""

    code: str
    what: str
    fix: str
    """What the repair does, or what the user must do where it cannot be done for them."""
    repair: Callable[[], object] | None = None
    """Repairs it. May be called again without harm. A text that it returns says what was lost."""


Check = Callable[[], list[Finding]]


def run_checks(checks: Iterable[Check]) -> list[Finding]:
    """What all checks find. One that cannot look says so, and keeps no other from looking."""
    found: dict[str, Finding] = {}
    for check in checks:
        try:
            rows = check()
        except Exception as error:
            rows = [_could_not_look(check, error)]
        for row in rows:
            found.setdefault(row.what, row)
    return list(found.values())


def _could_not_look(check: Check, error: Exception) -> Finding:
    if isinstance(error, TacitError):
        hint = "" if _ITSELF in error.hint else error.hint
        return Finding(error.code, error.message, hint or "see what else is said here")
    if isinstance(error, OSError):
        return Finding("unwritable", could_not(error), "mend its permissions, or free some space")
    name = getattr(check, "__name__", "this").removeprefix("check_")
    what = f"the check of {name} failed: {could_not(error)}"
    return Finding("check", what, "report this: it is a fault in tacit")


def could_not(error: Exception) -> str:
    """Why something could not be done, in a line; without the advice to run the doctor."""
    if isinstance(error, TacitError):
        return error.message if _ITSELF in error.hint else error.explain()
    if isinstance(error, OSError):
        return f"the system refused {error.filename or 'a file'}: {error.strerror or error}"
    return f"{type(error).__name__}: {error}"


_ITSELF = "tacit doctor"


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
        for here, _, names in paths.walk_folders(base) if not os.path.islink(base) else ():
            for name in names:
                path = os.path.join(here, name)
                if TEMPORARY_NAME.fullmatch(name) and not _is_recent(path):
                    what = f"{path} was left behind by a process that was stopped"
                    findings.append(
                        Finding("leftover", what, "delete it", partial(remove_path, path))
                    )
    return findings


def check_trust() -> list[Finding]:
    """The list of trusted folders can be read, is whole, and names folders that exist."""
    findings = []
    file = trust.trust_file()
    if os.path.lexists(file) and not os.access(file, os.R_OK):
        findings.append(Finding("trust", f"{file} cannot be read", "mend its permissions"))
    if broken := trust.broken_lines():
        what = f"{file} was cut or damaged: {len(broken)} of its lines do not count"
        fix = "take them out; what they meant has to be trusted again: tacit trust DIR"
        findings.append(Finding("trust", what, fix, trust.drop_broken))
    for folder in trust.trusted():
        if not os.path.isdir(folder):
            what = f"{folder} is trusted but does not exist"
            findings.append(
                Finding("trust", what, "take it off the list", partial(trust.remove, folder))
            )
    return findings


def database_trouble() -> str:
    """What is wrong with tacit.db, or an empty text. Raises `Busy`, `Unwritable` or `Newer`."""
    import sqlite3

    path = database.default_path()
    expected = database.expected_number(path)
    if not os.path.exists(path):
        return f"{path} is gone" if expected else ""
    try:
        with contextlib.closing(database.connect(path)) as connection:
            faults = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
            number = database.number_of(connection)
    except Damaged as error:
        return error.message
    except sqlite3.DatabaseError as error:
        return f"{path} is damaged: {error}"
    if faults != ["ok"]:
        return f"{path} is damaged: {' '.join('; '.join(faults).split())}"
    if expected and number != expected:
        return f"{path} was emptied or deleted, and began anew"
    return ""


BASE_CHECKS: tuple[Check, ...] = (
    check_config,
    check_folders,
    check_leftovers,
    check_trust,
)


def _is_recent(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime < 60
    except OSError:
        return True


def clear_folder(path: str, beside: str = "") -> str:
    """Where a folder stands in a file's place, remove it, or put it aside with what is in it,
    beside it or `beside` another path; where it lies now."""
    if not os.path.isdir(path) or os.path.islink(path):
        return ""
    with contextlib.suppress(OSError):
        os.rmdir(path)
        return ""
    aside = f"{beside or path}.folder-{time.time_ns()}"
    shutil.move(path, aside)  # it may be another disk
    return aside


def remove_path(path: str) -> None:
    """Remove a file, a link or a folder with all that is in it; nothing there is fine."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
