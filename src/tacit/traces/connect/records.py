"""What `tacit connect` wrote, remembered so that taking it back is exact to the byte.

One small JSON file in the data folder. Without it, or after the user changed a file, entries of
ours are still found by their mark; only the layout around them may then differ.
"""

import hashlib
import os

import msgspec

from tacit.base import paths
from tacit.base.files import write_atomic
from tacit.traces.connect.change import FileChange
from tacit.traces.connect.splices import Splice, apply, inverse


class Record(msgspec.Struct, frozen=True):
    """One file as it was left."""

    path: str
    digest: str
    """Of the text that was written."""
    created: bool
    """The file was not there before."""
    splices: tuple[Splice, ...] = ()
    folders: tuple[str, ...] = ()
    """Folders that were made for it."""


def load() -> dict[str, Record]:
    """By host. What cannot be read counts as forgotten."""
    try:
        with open(_file(), "rb") as file:
            return msgspec.json.decode(file.read(), type=dict[str, Record])
    except (OSError, msgspec.DecodeError):
        return {}


def remember(host: str, change: FileChange, folders: tuple[str, ...]) -> None:
    """Note what was written for `host`; a file that was ours before stays so."""
    known = load()
    old = known.get(host)
    same = old is not None and old.path == change.path
    record = Record(
        path=change.path,
        digest=digest(change.after),
        created=change.before is None or (same and old is not None and old.created),
        splices=change.splices,
        folders=(*(old.folders if same and old is not None else ()), *folders),
    )
    _save({**known, host: record})


def forget(host: str) -> None:
    known = load()
    if known.pop(host, None) is not None:
        _save(known)


def original(record: Record, text: str | None) -> str | None:
    """The text before ours was in it. Raises KeyError if `text` is not what was written."""
    if text is None or digest(text) != record.digest:
        raise KeyError(record.path)
    back = inverse(record.splices)
    if record.created:
        return None
    if not all(text.startswith(splice.removed, splice.offset) for splice in back):
        raise KeyError(record.path)
    return apply(text, back)


def remove_folders(record: Record) -> None:
    """Remove the folders that were made, if nothing came into them since."""
    for folder in reversed(record.folders):
        try:
            os.rmdir(folder)
        except OSError:
            break


def digest(text: str | None) -> str:
    return hashlib.sha256((text or "").encode()).hexdigest()


def _file() -> str:
    return os.path.join(paths.folders().data, "connected.json")


def _save(known: dict[str, Record]) -> None:
    write_atomic(_file(), msgspec.json.encode(known))
