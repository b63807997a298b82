"""Names for commits in a git directory of Tacit's own: reading, listing and moving them.

A ref a skill, so that each has a history of its own and no change touches what another skill
has; a ref a change, so that a change is found by its id, and another where it belongs to a group;
a ref a pinned skill. Written one by one: that several move together is the journal's business, and
that nobody else writes is the lock's.
"""

import mmap
import os

import msgspec

from tacit.base.errors import Damaged
from tacit.changes.objects import Objects

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


class RefUpdate(msgspec.Struct, frozen=True):
    """One ref's move. An empty id is "not there"."""

    name: str
    new: str
    old: str = ""


def quote(name: str) -> str:
    """`name` in small letters, digits, `-`, `_` and `%xx`, whatever stands in it."""
    return "".join(
        c if c in _PLAIN else "".join(f"%{byte:02x}" for byte in os.fsencode(c)) for c in name
    )


def unquote(text: str) -> str:
    """The name that `quote` was given."""
    from urllib.parse import unquote_to_bytes

    return os.fsdecode(unquote_to_bytes(text))


def encode(name: str) -> str:
    """`name` as one part of a ref: no two names collide, on any filesystem.

    A long name is cut and told apart by a hash; it then holds `%%`, which `quote` never makes.
    """
    text = quote(name)
    if len(text) <= 180:
        return text
    import hashlib

    return f"{text[:100]}%%{hashlib.sha256(os.fsencode(name)).hexdigest()}"


def skill_ref(skill: str) -> str:
    return f"refs/skills/{encode(skill)}"


def pin_ref(skill: str) -> str:
    return f"refs/pinned/{encode(skill)}"


def change_ref(change: str, skill: str) -> str:
    """By month, so that no folder grows without end and the newest are found first."""
    return f"refs/changes/{change[:6]}/{change}/{encode(skill)}"


def group_ref(group: str, change: str, skill: str) -> str:
    return f"refs/groups/{group[:6]}/{group}/{change}/{encode(skill)}"


class Refs:
    """The refs of one git directory."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._folder = objects.folder

    def get(self, name: str) -> str:
        """The commit that `name` points to, or an empty string."""
        try:
            with open(os.path.join(self._folder, name), "rb") as file:
                text = file.read(64).strip().decode("ascii", "replace")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return self._packed(name)
        if len(text) != 40:
            raise Damaged(
                f"{name} in {self._folder} does not hold a commit's id", "run: tacit doctor"
            )
        return text

    def move(self, updates: tuple[RefUpdate, ...]) -> None:
        """Let each ref point where it should; one that already does is passed over."""
        for update in updates:
            here = self.get(update.name)
            if here == update.new:
                continue
            if here != update.old:
                raise Damaged(
                    f"{update.name} points to {here[:12] or 'nothing'}"
                    f" instead of {update.old[:12] or 'nothing'}",
                    "run: tacit doctor",
                )
            if update.new:
                self._objects.write_file(update.name, update.new.encode() + b"\n")
            else:
                self._remove(update.name)

    def list(self, prefix: str, *, newest: int = 0) -> list[tuple[str, str]]:
        """Name and commit of each ref below `prefix`; with `newest`, the last so many by name."""
        if not self._objects.is_made():
            return []
        order = ["--sort=-refname", f"--count={newest}"] if newest else []
        out = self._objects.git("for-each-ref", *order, "--format=%(objectname) %(refname)", prefix)
        rows = (line.split(" ", 1) for line in out.stdout.decode().splitlines())
        return [(name, oid) for oid, name in rows]

    def _remove(self, name: str) -> None:
        if self._packed(name):
            self._objects.git("update-ref", "-d", name)
            return
        os.unlink(os.path.join(self._folder, name))

    def _packed(self, name: str) -> str:
        """Look `name` up in the sorted file that `git pack-refs` makes, by halving."""
        try:
            with open(os.path.join(self._folder, "packed-refs"), "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return ""
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
                    return _bisect(text, name.encode())
        except FileNotFoundError:
            return ""


def _bisect(text: mmap.mmap, wanted: bytes) -> str:
    low, high = 0, len(text)
    while low < high:
        start = text.rfind(b"\n", 0, (low + high) // 2) + 1
        start = max(start, low)
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end]
        oid, _, name = line.partition(b" ")
        if name == wanted:
            return oid.decode()
        if line.startswith(b"#") or name < wanted:  # the header stands first
            low = end + 1
        else:
            high = start
    return ""
