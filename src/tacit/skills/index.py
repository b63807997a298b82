"""The index: what the heads of all skills below a root say, without reading them again.

One file a root in the cache folder, written whole and swapped in, so any number of processes may
read and write it. It is only ever a shortcut; reading the skills themselves is
`index_builder.py`'s. A warm load costs a stat a skill and a stat a category, and `tacit list`
waits for it, so nothing heavy is imported and the file is a `marshal_cache`. The values stand in
columns, and those that a list of skills does not need stay packed until somebody asks for whole
rows. A file that changed less than two seconds before we looked is read again the next time.
"""

import marshal
import os
import time
from binascii import crc32
from itertools import chain

from tacit.base.marshal_cache import TAG, Stamp, read_cache, stamp, write_cache

FORMAT = 2
_HEAD = f"tacit-index {FORMAT} {TAG}\n".encode()

# The fields of a row.
FOLDER, FILE, NAME, DESCRIPTION, SOURCE, FLAGS, PATHS, REAL = range(8)
VERSION, WORST, STAMP, DIGEST = range(8, 12)
_PACKED = (SOURCE, VERSION, DIGEST)
_BITS = (1 << 64) - 1
_AT_ONCE = 500
# Bits of FLAGS.
NO_MODEL, NO_USER = 1, 2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

Row = tuple["Any", ...]


class Columns:
    """The fields of many rows, a list each, in the order of the rows."""

    __slots__ = (
        "_others", "content", "descriptions", "files", "flags", "links", "names", "packed", "paths",
        "stamps", "worst",
    )  # fmt: skip

    files: list[str]
    """Folder and file in one."""
    names: list[str]
    """In their order, as the rows are."""
    descriptions: list[str]
    worst: list[str]
    links: dict[int, str]
    """The real path, by number, of rows that were reached through a link."""
    flags: dict[int, int]
    """By number, like `paths`; most rows have neither."""
    paths: dict[int, tuple[str, ...]]
    stamps: bytes
    """Four numbers a row, 64 bits each: an object a number would take longer than the stat."""
    packed: bytes
    """The other fields."""

    def __init__(self, content: "tuple[Any, ...]") -> None:
        self.content = content
        (
            self.files, self.names, self.descriptions, self.worst, self.links, self.flags,
            self.paths, self.stamps, self.packed,
        ) = content  # fmt: skip
        self._others: list[list[str]] | None = None

    @classmethod
    def of(cls, rows: "list[Row]") -> "Columns":
        """The columns of `rows`."""
        from array import array

        numbers = [number for row in rows for number in row[STAMP]]
        try:
            stamps = array("Q", numbers)
        except OverflowError:
            # A number that takes more bits, or is negative, is not equal to what is kept of it:
            # that file is then read again each time.
            stamps = array("Q", [number & _BITS for number in numbers])
        content = (
            [f"{row[FOLDER]}/{row[FILE]}" for row in rows],
            [row[NAME] for row in rows],
            [row[DESCRIPTION] for row in rows],
            [row[WORST] for row in rows],
            {number: row[REAL] for number, row in enumerate(rows) if row[REAL]},
            {number: row[FLAGS] for number, row in enumerate(rows) if row[FLAGS]},
            {number: row[PATHS] for number, row in enumerate(rows) if row[PATHS]},
            stamps.tobytes(),
            marshal.dumps([[row[field] for row in rows] for field in _PACKED]),
        )
        return cls(content)

    def rows(self) -> "list[Row]":
        """The rows that these are the columns of."""
        folders, files = [], []
        for path in self.files:
            folder, _, file = path.rpartition("/")
            folders.append(folder)
            files.append(file)
        numbers = range(len(folders))
        reals = [self.links.get(number, "") for number in numbers]
        flags = [self.flags.get(number, 0) for number in numbers]
        paths = [self.paths.get(number, ()) for number in numbers]
        stamps = [stamped[1:] for stamped in self.stamped_files()]
        sources, versions, digests = self.others()
        columns = (
            folders, files, self.names, self.descriptions, sources, flags, paths, reals, versions,
            self.worst, stamps, digests,
        )  # fmt: skip
        return list(zip(*columns, strict=True))

    def row(self, number: int) -> "Row":
        """One of the rows."""
        folder, _, file = self.files[number].rpartition("/")
        source, version, digest = (column[number] for column in self.others())
        return (
            folder, file, self.names[number], self.descriptions[number], source,
            self.flags.get(number, 0), self.paths.get(number, ()), self.links.get(number, ""),
            version, self.worst[number],
            self.stamp(number), digest,
        )  # fmt: skip

    def stamp(self, number: int) -> "Stamp":
        """The stamp of one of the rows."""
        numbers = memoryview(self.stamps).cast("Q")[4 * number : 4 * number + 4]
        return tuple(numbers)  # type: ignore[return-value]

    def others(self) -> "list[list[str]]":
        """Sources, versions and digests."""
        if self._others is None:
            # These bytes were inside those whose checksum held.
            self._others = marshal.loads(self.packed)  # noqa: S302
        return self._others

    def stamped_files(self) -> "Iterable[tuple[Any, ...]]":
        """Each file with its times of modification and change, its size and its inode.

        Some rows at once: new memory for the numbers of all takes as long as comparing them.
        """
        numbers = memoryview(self.stamps).cast("Q")
        starts = range(0, len(self.files), _AT_ONCE)
        parts = [(n, numbers[4 * n : 4 * (n + _AT_ONCE)]) for n in starts]
        return chain.from_iterable(
            zip(self.files[n : n + _AT_ONCE], *(part[f::4].tolist() for f in range(4)), strict=True)
            for n, part in parts
        )


class Snapshot:
    """What stands below one root."""

    __slots__ = ("_rows", "broken", "categories", "columns", "repeated", "root")

    def __init__(
        self,
        root: str,
        content: "list[Row] | Columns",
        categories: list[tuple[str, Stamp]],
        repeated: dict[str, str],
        broken: list[str],
    ) -> None:
        self.root = root
        self.columns = content if isinstance(content, Columns) else Columns.of(content)
        self.categories = categories
        self.repeated = repeated
        self.broken = broken
        self._rows = None if isinstance(content, Columns) else content

    @property
    def rows(self) -> list[Row]:
        """Every skill with all its fields, in the order of the names."""
        if self._rows is None:
            self._rows = self.columns.rows()
        return self._rows


def load(
    root: str, cache: str, known: Snapshot | None = None, called: "tuple[str, ...] | None" = None
) -> Snapshot:
    """The skills below `root` as they are now, by the index where it still holds.

    `known`: what an earlier load gave; it is given back where nothing has changed. `called`: look
    at the folders, and of the skills only at those called so, by their own name or their folder's.
    """
    path = index_file(root, cache)
    known = known or _read(path, root)
    if known is not None:
        chosen = _rows_called(known.columns, called) if called is not None else None
        stale = _stale_rows(known, chosen) if _same_categories(known) else None
        if stale is not None and not stale:
            return known
    else:
        stale = None
    from tacit.skills.index_builder import build, refresh

    fresh = build(root, known) if stale is None or known is None else refresh(known, stale)
    save(fresh, path)
    return fresh


def index_file(root: str, cache: str) -> str:
    """The index file of `root`. Two roots that share a name by chance only rebuild each other's."""
    data = os.fsencode(root)
    return os.path.join(cache, "index", f"{crc32(data):08x}{crc32(data[::-1]):08x}.{TAG}.idx")


def save(snapshot: Snapshot, path: str) -> None:
    """Write the index; where that fails (a full disk) the next load is slower, no more."""
    from tacit.base.errors import Unwritable

    content = (
        snapshot.root, snapshot.columns.content, snapshot.categories, snapshot.repeated,
        snapshot.broken,
    )  # fmt: skip
    try:
        write_cache(path, _HEAD, content)
    except Unwritable:
        return


def is_sound(path: str) -> bool:
    """Whether the file at `path` is an index that this interpreter can use."""
    return _read(path, None) is not None


def now() -> int:
    return time.time_ns()


def _read(path: str, root: str | None) -> Snapshot | None:
    known = read_cache(path, _HEAD)
    if known is None:
        return None
    try:
        of, columns, *others = known
        return Snapshot(of, Columns(columns), *others) if root in (None, of) else None
    except (ValueError, TypeError):
        return None


def _same_categories(known: Snapshot) -> bool:
    for link in known.broken:
        if os.path.exists(f"{known.root}/{link}"):
            return False  # what it leads to has come back
    for folder, before in known.categories:
        try:
            status = os.stat(f"{known.root}/{folder}" if folder else known.root)
        except OSError:
            return False
        if stamp(status) != before:
            return False
    return True


def _rows_called(columns: Columns, called: tuple[str, ...]) -> list[int]:
    """The numbers of the rows of these names, or whose path has one in it."""
    from bisect import bisect_left, bisect_right  # a list does not need it

    found = {number for name in called for number, f in enumerate(columns.files) if name in f}
    for name in called:
        found.update(range(bisect_left(columns.names, name), bisect_right(columns.names, name)))
    return sorted(found)


def _stale_rows(known: Snapshot, chosen: list[int] | None = None) -> list[int] | None:
    """The numbers of the rows whose file changed; None when one is gone. `chosen`: of these."""
    stale: set[str] = set()
    stat = os.stat
    try:
        # Relative to an open folder the system has less of a path to resolve, 11,000 times.
        root = os.open(known.root, os.O_RDONLY)
    except OSError:
        return None
    columns = known.columns
    rows: Iterable[tuple[Any, ...]] = (
        columns.stamped_files()
        if chosen is None
        else ((columns.files[number], *columns.stamp(number)) for number in chosen)
    )
    try:
        for file, modified, changed, size, inode in rows:
            status = stat(file, dir_fd=root)
            if (
                status.st_mtime_ns != modified
                or status.st_ctime_ns != changed
                or status.st_size != size
                or status.st_ino != inode
            ):
                if status.st_mode & 0o170000 != 0o100000:
                    return None  # a folder or a pipe by now, so perhaps no skill any more
                stale.add(file)
    except OSError:
        return None
    finally:
        os.close(root)
    return [number for number, file in enumerate(columns.files) if file in stale] if stale else []
