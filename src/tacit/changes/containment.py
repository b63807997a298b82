"""Which paths a skill's files may have, and folders held open so that nothing leads out of them.

A name is judged as a name first, before any disk is touched: it must mean the same on every system,
look like what it is, and be a place inside the skill. On the disk everything below a skills folder
is reached one component at a time, each opened relative to the handle of the one above and never
through a link. A handle keeps meaning the folder that was checked, whatever is renamed or replaced
meanwhile. What is not plainly a file or a folder in its place is an `Escape`, which the gate turns
into a refusal.
"""

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from tacit.base.atomic_files import (
    CREATE_FILE,
    OPEN_FILE,
    OPEN_FOLDER,
    open_freely,
    remove_entry,
    write_all,
)
from tacit.base.paths import folders, is_inside, make_private
from tacit.base.patterns import late_pattern
from tacit.changes.change import SKILL_FILE, Contents, File, Refusal, Unfit
from tacit.changes.place import Place

UNVERSIONED = frozenset({".git", ".hg", ".jj", "node_modules", ".venv", "__pycache__", ".DS_Store"})
"""Left as they are: neither read, versioned nor written, but they stay with the skill."""

MAX_PATH_DEPTH = 8
MAX_NAME_BYTES = 200
_RESERVED = late_pattern(r"(?i)^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$")
_UNSAFE = frozenset('<>:"|?*\\/')
_LOOKS_LIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝӏгοανρτυικχ",  # Cyrillic, then Greek
    "aeopcyxijshdqwlroavptuikx",
)
_MIXING = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE")


def check_path(path: str) -> Refusal | None:
    """What is wrong with `path` as the place of a file inside a skill."""
    if not path:
        return _refuse("empty-path", path, "is empty", "name a file, e.g. references/notes.md")
    if path.startswith(("/", "\\", "~")) or re.match(r"^[A-Za-z]:", path):
        return _refuse("absolute-path", path, "is absolute", "name it from the skill's folder")
    parts = path.split("/")
    if len(parts) > MAX_PATH_DEPTH:
        return _refuse(
            "deep-path", path, f"has more than {MAX_PATH_DEPTH} levels", "use fewer folders"
        )
    for part in parts:
        if found := check_name(part, path):
            return found
    nested = len(parts) > 1
    if any(part.casefold() == SKILL_FILE.casefold() for part in parts) and path != SKILL_FILE:
        return _refuse(
            "nested-skill" if nested else "skill-file",
            path,
            "would plant a second skill inside this one"
            if nested
            else "is another spelling of SKILL.md",
            "make a skill of its own, or call the file something else",
        )
    return None


def check_name(part: str, path: str = "") -> Refusal | None:
    """What is wrong with one component of a path, or with the name of a skill's folder."""
    path = path or part
    if part in ("", ".", ".."):
        return _refuse("dots", path, "has an empty, '.' or '..' part", "name the file directly")
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for c in part):
        return _refuse("unseen-character", path, "has characters that cannot be seen", "leave out")
    if bad := sorted(_UNSAFE.intersection(part)):  # a '/' too: this is one component
        return _refuse("unsafe-character", path, f"has '{bad[0]}' in it", "use letters and digits")
    if part != part.strip() or part.endswith("."):
        return _refuse("loose-ends", path, "begins or ends with a space or ends with a dot", "trim")
    if _RESERVED.match(part):
        return _refuse("windows-name", path, f"holds '{part}', a device on Windows", "rename it")
    if unicodedata.normalize("NFKC", part) != part:
        near = unicodedata.normalize("NFKC", part)
        return _refuse("look-alike", path, "is not in its plain spelling", f"write '{near}'")
    if _mixes_scripts(part):
        return _refuse("look-alike", path, "mixes letters of look-alike alphabets", "use one")
    if len(part.encode()) > MAX_NAME_BYTES:
        return _refuse("long-name", path, f"has a part over {MAX_NAME_BYTES} bytes", "shorten it")
    if part.casefold() in UNVERSIONED or part.casefold().startswith(".tacit"):
        return _refuse("kept-out", path, f"'{part}' is not a place for a skill's files", "rename")
    return None


def check_paths(paths: Iterable[str]) -> Refusal | None:
    """Whether two of `paths` are one file somewhere: by case, or a file that is also a folder."""
    seen: dict[str, str] = {}
    for path in sorted(paths):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            here = "/".join(parts[:depth])
            folded = unicodedata.normalize("NFKC", here).casefold()
            kind = here if depth == len(parts) else here + "/"
            other = seen.setdefault(folded, kind)
            if other != kind:
                return _refuse(
                    "name-clash",
                    path,
                    f"is the same as '{other}' on some systems",
                    "give them names that differ by more than case",
                )
    return None


def _mixes_scripts(part: str) -> bool:
    if part.isascii():
        return False
    scripts = {unicodedata.name(c, "").split(" ")[0] for c in part if c.isalpha()}
    return len(scripts.intersection(_MIXING)) > 1


def readings(name: str) -> tuple[str, ...]:
    """What `name` reads as where its letters of another alphabet look like Latin ones, and its
    figures like letters."""
    latin = name.translate(_LOOKS_LIKE)
    return latin, *(latin.translate(str.maketrans("01", figures)) for figures in ("ol", "oi"))


def _refuse(rule: str, path: str, wrong: str, hint: str) -> Refusal:
    return Refusal("containment", rule, f"the path {path!r} {wrong}", hint)


MAX_TOTAL = 64 * 1024 * 1024
MAX_FILES = 5_000
MAX_FOLDER_DEPTH = 32


class Escape(Unfit):
    """Something is not the plain file or folder that it has to be."""

    def __init__(self, rule: str, reason: str, hint: str = "") -> None:
        super().__init__(Refusal("containment", rule, reason, hint))


class Folder:
    """An open folder. `path` is for messages only; the handle decides what is meant."""

    def __init__(self, descriptor: int, path: str) -> None:
        self.fd = descriptor
        self.path = path

    @classmethod
    def at(cls, path: str) -> "Folder":
        """The folder at `path`, which is no link. Raises OSError."""
        return cls(os.open(path, OPEN_FOLDER), path)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.fd >= 0:
            with suppress(OSError):  # nothing is written through it
                os.close(self.fd)
            self.fd = -1

    def status(self, name: str) -> os.stat_result | None:
        """What `name` is, itself, or None where there is nothing."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def identity(self, name: str) -> tuple[int, int] | None:
        """Device and number of what `name` is: the same after a rename."""
        found = self.status(name)
        return (found.st_dev, found.st_ino) if found else None

    @property
    def openness(self) -> int:
        """The permissions that others than the owner may have on what is made in here: no more
        than on the folder itself, so that what lies in Tacit's own folders is the user's alone."""
        return os.fstat(self.fd).st_mode & 0o077

    def make(self, name: str) -> None:
        """Make a folder `name` in this one. Raises FileExistsError."""
        os.mkdir(name, 0o700 | self.openness, dir_fd=self.fd)

    def open(self, name: str, *, make: bool = False, freely: bool = False) -> "Folder":
        """The folder `name` in this one; `freely` where its permissions may not let us in. Raises
        `Escape`, or FileNotFoundError."""
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise Escape("dots", f"{name!r} does not name a folder in {self.path}")
        path = os.path.join(self.path, name)
        if make:
            try:
                self.make(name)
            except FileExistsError:
                pass
        try:
            if freely:
                return Folder(open_freely(name, self.fd), path)
            return Folder(os.open(name, OPEN_FOLDER, dir_fd=self.fd), path)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise self._not_a_folder(name, path) from None

    def _not_a_folder(self, name: str, path: str) -> Escape:
        found = self.status(name)
        if found is not None and stat.S_ISLNK(found.st_mode):
            real = os.path.realpath(path)
            return Escape(
                "linked-folder",
                f"{path} is a link to {real}; nothing is written through a link",
                f"make the change there, in {real}, or replace the link by the folder",
            )
        return Escape("not-a-folder", f"{path} is not a folder", "move it away")

    def descend(self, parts: list[str], *, make: bool = False, freely: bool = False) -> "Folder":
        """The folder that `parts` lead to, one by one."""
        here = Folder(os.dup(self.fd), self.path)
        for part in parts:
            try:
                below = here.open(part, make=make, freely=freely)
            finally:
                here.close()
            here = below
        return here

    def names(self) -> list[str]:
        return sorted(os.listdir(self.fd))

    def read(self, name: str) -> tuple[bytes, os.stat_result]:
        """The bytes of the regular file `name`, never those of what it links to."""
        path = os.path.join(self.path, name)
        try:
            descriptor = os.open(name, OPEN_FILE, dir_fd=self.fd)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise Escape("special-file", f"{path} is a link or a device") from None
            raise
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Escape("special-file", f"{path} is not a regular file", "move it away")
            if status.st_size > MAX_TOTAL:
                raise _too_much(self.path)
            with os.fdopen(os.dup(descriptor), "rb") as file:
                return file.read(MAX_TOTAL + 1), status
        finally:
            os.close(descriptor)

    def write_new(self, name: str, data: bytes, mode: int, *, durable: bool = True) -> None:
        """Write a file that is not there yet. Raises FileExistsError."""
        descriptor = os.open(name, CREATE_FILE, mode, dir_fd=self.fd)
        try:
            write_all(descriptor, data)
            if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:  # the mask took some of it
                os.fchmod(descriptor, mode)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync(self) -> None:
        os.fsync(self.fd)


@contextmanager
def open_root(place: Place, *, make: bool = False) -> Iterator[Folder]:
    """The skills folder of `place`, resolved once and then held. FileNotFoundError if absent.

    A project's must lie in the project, also when the way there is a link: a clone may carry one.
    The user's own may be a link to wherever the user keeps such things.
    """
    real = place.real
    if place.project:
        project = os.path.realpath(place.project)
        if os.path.commonpath([real, project]) != project:
            raise Escape(
                "linked-root",
                f"{place.root} leads to {real}, outside the project {project}",
                "replace that link by a folder, or keep those skills in the user's scope",
            )
        parts = [] if real == project else os.path.relpath(real, project).split(os.sep)
        with Folder.at(project) as above:
            root = above.descend(parts, make=make)
    else:
        if make:
            if is_inside(real, os.path.realpath(folders().data)):
                make_private(real)
            os.makedirs(real, exist_ok=True)
        root = Folder.at(real)
    with root:
        yield root


def open_skill(root: Folder, skill: str) -> Folder:
    """The folder of `skill` below `root`. Raises `Escape`, or FileNotFoundError."""
    return root.descend(skill.split("/"))


def read_contents(folder: Folder) -> Contents:
    """Everything in a skill's folder; raises `Escape` on pipes, devices and too much of it."""
    reader = _Reader()
    reader.walk(folder, "", 0)
    return Contents(reader.files, tuple(reader.unversioned), tuple(reader.shared))


class _Reader:
    def __init__(self) -> None:
        self.files: dict[str, File] = {}
        self.unversioned: list[str] = []
        self.shared: list[str] = []
        self._left = MAX_TOTAL

    def walk(self, folder: Folder, prefix: str, depth: int) -> None:
        if depth > MAX_FOLDER_DEPTH:
            raise _too_much(folder.path)
        for name in folder.names():
            path = prefix + name
            status = folder.status(name)
            if status is None:  # gone since the listing
                continue
            if name in UNVERSIONED:
                self.unversioned.append(path)
            elif stat.S_ISDIR(status.st_mode):
                with folder.open(name) as below:
                    self.walk(below, path + "/", depth + 1)
            else:
                self._add(folder, name, path, status)

    def _add(self, folder: Folder, name: str, path: str, status: os.stat_result) -> None:
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=folder.fd)
            self.files[path] = File(os.fsencode(target), "link")
        elif stat.S_ISREG(status.st_mode):
            data, status = folder.read(name)
            self._left -= len(data)
            self.files[path] = File(data, "program" if status.st_mode & 0o100 else "file")
            if status.st_nlink > 1:
                self.shared.append(path)
        else:
            raise Escape(
                "special-file",
                f"{os.path.join(folder.path, name)} is a pipe, a socket or a device",
                "move it out of the skill's folder",
            )
        if self._left < 0 or len(self.files) > MAX_FILES:
            raise _too_much(folder.path)


def remove_tree(folder: Folder, name: str) -> None:
    """Remove `name` and what is below it, links unfollowed. Nothing there is fine."""
    remove_entry(name, folder.fd)


def _too_much(path: str) -> Escape:
    return Escape(
        "too-much",
        f"{path} holds more than Tacit keeps versions of"
        f" ({MAX_TOTAL // 2**20} MB, {MAX_FILES:,} files)",
        "keep large files outside the skill",
    )
