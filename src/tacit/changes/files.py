"""The files of a skill in memory: what is read, edited, merged, staged and committed.

A path is relative to the skill's folder, with `/` between its parts. Bytes that are not UTF-8 in
a name are kept as surrogates, as the os module does.
"""

from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

Kind = Literal["file", "program", "link"]


class File(msgspec.Struct, frozen=True):
    """One file. Of a link, `data` is where it points; it is never followed."""

    data: bytes
    kind: Kind = "file"


Files = Mapping[str, File]


class Contents(msgspec.Struct, frozen=True):
    """What stands in a skill's folder."""

    files: dict[str, File]
    carried: tuple[str, ...] = ()
    """Paths that are left as they are, e.g. `.git`; see `pathnames.CARRIED`."""
    shared: tuple[str, ...] = ()
    """Files that have a second name elsewhere (hard links)."""


def from_bytes(files: Mapping[str, bytes], executable: Collection[str] = ()) -> dict[str, File]:
    """Plain bytes as files; those in `executable` may be run."""
    return {
        path: File(data, "program" if path in executable else "file")
        for path, data in files.items()
    }


def to_bytes(files: Files) -> dict[str, bytes]:
    """The bytes of the regular files; links are left out."""
    return {path: file.data for path, file in files.items() if file.kind != "link"}


def programs(files: Files) -> tuple[str, ...]:
    """The files that may be run."""
    return tuple(path for path, file in files.items() if file.kind == "program")
