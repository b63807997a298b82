"""A change to one file of the user's: shown as a diff, written with a backup, or not at all."""

import difflib
import os
import stat

import msgspec

from tacit.base.errors import BadConfig, Refused, Unwritable
from tacit.base.files import write_atomic
from tacit.traces.connect.splices import Splice

BACKUP = ".tacit-backup"


class FileChange(msgspec.Struct, frozen=True):
    """What one file said and is to say. None stands for a file that does not exist."""

    path: str
    before: str | None
    after: str | None
    splices: tuple[Splice, ...] = ()
    """How `after` came from a text without anything of ours, to go back there to the byte."""
    pristine: bool = True
    """Whether `before` is somebody else's, and so worth a backup."""

    def diff(self, name: str = "") -> str:
        """As `diff -u` shows it."""
        name = name or self.path
        old, new = (text.splitlines() if text else [] for text in (self.before, self.after))
        first = name if self.before is not None else os.devnull
        second = name if self.after is not None else os.devnull
        return "\n".join(difflib.unified_diff(old, new, first, second, lineterm=""))


def read(path: str) -> str | None:
    """The text of a file with its line ends, or None where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadConfig(f"{path} is not UTF-8 text", "save it as UTF-8 and try again") from error
    except OSError as error:
        raise Unwritable(
            f"cannot read {path}: {error.strerror}", "check its permissions"
        ) from error


def write(change: FileChange) -> tuple[str, ...]:
    """Make the change; returns the folders that had to be made for it, outermost first.

    A link stays a link: its target is written. Mode bits stay. The file must still say what it
    said when the change was planned.
    """
    if read(change.path) != change.before:
        raise Refused(f"{change.path} was changed meanwhile", "run the same command again")
    real = os.path.realpath(change.path)
    folder = os.path.dirname(real)
    if os.path.islink(change.path) and not os.path.isdir(folder):
        raise Unwritable(
            f"{change.path} is a link to {real}, whose folder does not exist",
            "make that folder, or remove the link",
        )
    if change.before is not None and not os.access(real, os.W_OK):
        raise Unwritable(f"{real} is read-only", "make it writable, or add the lines by hand")
    made = missing_folders(folder)
    mode = 0o600
    if change.before is not None:
        mode = stat.S_IMODE(os.stat(real).st_mode)
        if change.pristine:
            write_atomic(change.path + BACKUP, change.before.encode(), mode=mode)
    if change.after is None:
        _unlink(change.path)
        return ()
    write_atomic(real, change.after.encode(), mode=mode)
    if stat.S_IMODE(os.stat(real).st_mode) != mode:  # the user's umask took bits away
        os.chmod(real, mode)
    return made


def drop_backup(path: str, text: str | None) -> bool:
    """Remove the backup beside `path` if it says no more than `text`; whether one is left."""
    backup = path + BACKUP
    try:
        saved = read(backup)
    except (BadConfig, Unwritable):
        return True
    if saved is None:
        return False
    if saved != text:
        return True
    _unlink(backup)
    return False


def missing_folders(folder: str) -> tuple[str, ...]:
    """What has to be made so that `folder` exists, outermost first."""
    found = []
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return tuple(reversed(found))


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Unwritable(
            f"cannot remove {path}: {error.strerror}", "check the permissions of its folder"
        ) from error
