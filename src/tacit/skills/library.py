"""The library: every skill that can be reached from a working directory, and what a name means.

Also the skills that no library lists by itself: archived ones, in `.archive` of a skills folder,
where a folder may bear a number (`notes~2`) when one of its name was archived before; and
scheduled ones, which lie in the data folder as skills with a `schedule.json` beside them. Reads
only. Changing skills is the gate's, ranking by words is `skill_search.py`'s, and schedules are
`work/`'s: here only the names in them are read, so that lower layers know which skills must not be
archived.
"""

import operator
import os
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Literal

import msgspec

from tacit.base import paths
from tacit.base.errors import Damaged, NotFound, TacitError, near_names
from tacit.base.paths import is_inside
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.skills import index
from tacit.skills.index import Row, Snapshot
from tacit.skills.scopes import (
    REPEATED,
    Root,
    other_ways,
    rank_skills,
    skill_roots,
    skill_states,
)
from tacit.skills.skill import LEARNED_SOURCE, Origin, Severity, Skill, normal_name

if TYPE_CHECKING:
    from tacit.skills.catalogue import Catalogue, CatalogueRow
    from tacit.skills.skill_search import Hit


Scope = Literal["project", "user", "extra", "bundled"]
State = Literal["active", "shadowed", "untrusted", "archived"]
"""`archived`: only in what `search` was asked to find; the library itself lists none."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A skill as the library lists it, by its head alone."""

    name: str
    description: str
    """The whole description, on one line."""
    folder: str
    scope: Scope
    origin: Origin
    host: str
    """Whose folder it lies in: `agents` for the shared one, else a host's id."""
    state: State
    version: str = ""
    aliases: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    """Other paths that lead to the same folder."""
    root: str = ""
    """The skills folder that it was found in."""
    file: str = "SKILL.md"
    real: str = ""
    model_invocable: bool = True
    user_invocable: bool = True
    paths: tuple[str, ...] = ()
    worst: Severity | None = None
    """The gravest problem in its SKILL.md; `tacit lint` has them all."""
    digest: str = ""
    """Of the bytes of its SKILL.md."""

    @property
    def checked_file(self) -> str:
        """Its SKILL.md. Raises `NotFound` where that leads elsewhere than when it was listed, or
        what is not trusted out of its project: agents too read what is shown."""
        path = os.path.join(self.folder, self.file)
        real = os.path.realpath(path)
        top = paths.project_root(self.root) if self.state == "untrusted" else self.real
        if self.scope == "project" and not is_inside(real, os.path.realpath(top)):
            raise NotFound(
                f"{path} is a link that leads out of the skill", "replace it by the file itself"
            )
        return path

    @property
    def relative_folder(self) -> str:
        """Its folder below its skills folder, which is how the gate knows it."""
        return os.path.relpath(self.folder, self.root)


class Library:
    """The skills of a working directory: the project's, the user's, and those that Tacit ships."""

    def __init__(
        self,
        cwd: str | os.PathLike[str] | None = None,
        settings: Settings | None = None,
        *,
        roots: Sequence[Root] | None = None,
        cache: str = "",
    ) -> None:
        """`roots`: these skills folders, as far as they are there, and no others."""
        self.cwd = os.path.abspath(os.fspath(cwd) if cwd is not None else os.getcwd())
        self.settings = settings if settings is not None else load_settings(self.cwd).settings
        self.cache = cache or paths.folders().cache
        self._only = roots
        self.left_out: frozenset[str] = frozenset()
        self.snapshots: list[tuple[Root, Snapshot]] = []
        self.refresh()

    def leave_out(self, names: Iterable[str]) -> None:
        """From here on, be without the skills of these names, and with all others."""
        self.left_out = frozenset(names)
        self.refresh()

    def refresh(self, called: tuple[str, ...] | None = None) -> None:
        """Look at the disk again; of the skills only at those `called` so, where that is given."""
        chosen = self.settings.skills
        known = {root.path: snapshot for root, snapshot in self.snapshots}
        self.roots: list[Root] = (
            skill_roots(self.cwd, hosts=chosen.hosts, extra=chosen.paths)
            if self._only is None
            else [root for root in self._only if os.path.isdir(root.path)]
        )
        self.snapshots = [
            (root, index.load(root.path, self.cache, known.get(root.path), called))
            for root in self.roots
        ]
        for made in ("entries", "states", "numbers", "_also", "_real_roots"):
            self.__dict__.pop(made, None)

    def renewed(self, name: str | None = None) -> "Library":
        """The library as the disk and the settings are now: this one where nothing has changed.

        `name`: as far as that concerns the skills of this name; nothing: the folders. A new, moved
        or removed folder is always seen; with a name, a SKILL.md of another name that took on this
        one is not.
        """
        now = copy(self)
        now.settings = load_settings(self.cwd).settings
        wanted = normal_name(name or "")
        called = {name, wanted, wanted.casefold()} if name else ()
        now.refresh(None if name is None else tuple(called))
        read, known = ([snapshot for _, snapshot in one.snapshots] for one in (now, self))
        same = len(read) == len(known) and all(map(operator.is_, read, known))
        return self if same and now.settings == self.settings and now.states == self.states else now

    @cached_property
    def entries(self) -> list[Entry]:
        """Every skill once, in order of precedence. To find one, ask for it: that makes but one."""
        ranked, also = rank_skills(self.snapshots)
        return [
            entry_of(root, row, state, real, also.get(real, ()))
            for root, row, state, real in ranked
            if row[index.NAME] not in self.left_out
        ]

    @cached_property
    def states(self) -> list[list[str]]:
        """The state of each row of each of `snapshots`."""
        found = skill_states(self.snapshots)
        if not self.left_out:
            return found
        return [
            [
                REPEATED if name in self.left_out else state
                for name, state in zip(snapshot.columns.names, states, strict=True)
            ]
            for (_, snapshot), states in zip(self.snapshots, found, strict=True)
        ]

    @cached_property
    def numbers(self) -> list[dict[str, int]]:
        """The number of each row of each of `snapshots`, by its folder."""
        return [
            {path.rpartition("/")[0]: number for number, path in enumerate(snapshot.columns.files)}
            for _, snapshot in self.snapshots
        ]

    @cached_property
    def _also(self) -> dict[str, list[str]]:
        return other_ways(self.snapshots, self.states)

    @cached_property
    def _real_roots(self) -> list[str]:
        return [os.path.realpath(root.path) for root, _ in self.snapshots]

    def entry(self, place: int, number: int) -> Entry:
        """The row numbered so of the snapshot numbered so."""
        root, snapshot = self.snapshots[place]
        row = snapshot.columns.row(number)
        real = row[index.REAL] or f"{self._real_roots[place]}/{row[index.FOLDER]}"
        return entry_of(root, row, self.states[place][number], real, self._also.get(real, ()))

    def named(self, name: str) -> list[Entry]:
        """The skills of just this name, in order of precedence."""
        listed = [snapshot.columns.names for _, snapshot in self.snapshots]
        return [
            self.entry(place, number)
            for place, names in enumerate(listed)
            for number in range(bisect_left(names, name), bisect_right(names, name))
            if self.states[place][number] != REPEATED
        ]

    def known_as(self, name: str) -> list[Entry]:
        """The skills that bear this name, or whose folder does."""
        return [*self.named(name), *self._aliased(name)]

    def _aliased(self, alias: str) -> list[Entry]:
        """The skills with another name in a folder of this one, in order of precedence."""
        return [
            self.entry(place, number)
            for place, (_, snapshot) in enumerate(self.snapshots)
            for number, file in enumerate(snapshot.columns.files)
            if alias in file
            and file.split("/")[-2] == alias != snapshot.columns.names[number]
            and self.states[place][number] != REPEATED
        ]

    def __len__(self) -> int:
        return len(self.entries)

    def active(self) -> list[Entry]:
        """The skills that a name can mean: trusted, and not shadowed."""
        return [entry for entry in self.entries if entry.state == "active"]

    def get(self, name: str) -> Entry:
        """The skill that `name` means: its name, its folder's name, or a path to it."""
        found = self.find(name)
        if found is not None:
            return found
        known = self.suggest(name)
        hint = f"did you mean {' or '.join(known)}?" if known else f'try: tacit search "{name}"'
        raise NotFound(f"there is no skill '{name}'", hint)

    def find(self, name: str) -> Entry | None:
        """As `get`, but None where there is no such skill."""
        if (os.sep in name or name == ".") and (entry := self._at(name)) is not None:
            return entry
        wanted = normal_name(name)
        folded = wanted.casefold()
        places = ((self.named, wanted), (self._aliased, name), (self._aliased, wanted))
        found = None
        for look, key in (*places, (self.named, folded), (self._aliased, folded)):
            for entry in look(key):
                # Not even an alias of a trusted skill yields to the name of one that is not.
                if entry.state != "untrusted":
                    return entry
                found = found or entry
        return found

    def read(self, name: str) -> Skill:
        """The whole skill that `name` means."""
        from tacit.skills.skill_file import read_skill

        entry = self.get(name)
        return read_skill(entry.checked_file)

    def shadowing(self, entry: Entry) -> Entry | None:
        """The skill that wins over `entry`, if one does."""
        same = sorted(self.named(entry.name), key=lambda other: other.state == "untrusted")
        return same[0] if same and same[0].folder != entry.folder else None

    def shadowed(self, entry: Entry) -> list[Entry]:
        """The skills that `entry` wins over."""
        if entry.state != "active":
            return []
        return [other for other in self.named(entry.name) if other.state == "shadowed"]

    def suggest(self, name: str, most: int = 3) -> list[str]:
        """Names near to `name`."""
        return near_names(normal_name(name).lower(), self._known_names(), most)

    def _known_names(self) -> set[str]:
        """Every name that means a skill, and every folder's."""
        return {
            known
            for (_, snapshot), states in zip(self.snapshots, self.states, strict=True)
            for name, file, state in zip(
                snapshot.columns.names, snapshot.columns.files, states, strict=True
            )
            if state != REPEATED
            for known in (name, file.split("/")[-2])
        }

    def search(
        self, query: str, limit: int = 10, *, archived: bool = False, about: str = ""
    ) -> "list[Hit]":
        """The skills that fit `query` best; a few words or a whole task description.

        `archived`: also archived ones. `about`: words for what it is asked in.
        """
        from tacit.skills.skill_search import Search

        most = limit + len(self.left_out)
        found = Search(self, archived=archived, soon=query).find(query, most, about)
        return [hit for hit in found if hit.entry.name not in self.left_out][:limit]

    def catalogue(
        self,
        *,
        budget: int | None = None,
        pinned: Iterable[str] = (),
        recent: Iterable[str] = (),
        touched: Iterable[str] = (),
    ) -> "Catalogue":
        """The block that tells a model which skills there are; see `catalogue.py`."""
        from tacit.skills.catalogue import CatalogueOrder, make_catalogue
        from tacit.skills.project_terms import project_terms
        from tacit.skills.standing import standings_in

        most = self.settings.catalogue.budget if budget is None else budget
        order = CatalogueOrder(
            tuple(pinned),
            tuple(recent),
            terms=project_terms(self.cwd),
            standings=standings_in(self.snapshots),
        )
        return make_catalogue(self._offers(), most, order, tuple(touched))

    def _offers(self) -> "list[CatalogueRow]":
        from tacit.skills.catalogue import offered_rows

        return offered_rows(self.snapshots, self.states)

    def _at(self, path: str) -> Entry | None:
        from tacit.skills.skill_file import SKILL_FILE_NAMES

        path = os.path.expanduser(path)
        if os.path.basename(path) in SKILL_FILE_NAMES:
            path = os.path.dirname(path)
        real = os.path.realpath(os.path.join(self.cwd, path))
        return self._lying_at(real)

    def _lying_at(self, real: str) -> Entry | None:
        """The skill whose folder this is."""
        for place, (root, snapshot) in enumerate(self.snapshots):
            known, states = snapshot.columns, self.states[place]
            numbers = [number for number, path in known.links.items() if path == real]
            below = real.removeprefix(os.path.realpath(root.path) + "/")
            if below != real:
                numbers += [n for n, f in enumerate(known.files) if f.rpartition("/")[0] == below]
            for number in numbers:
                if states[number] != REPEATED and known.links.get(number, real) == real:
                    return self.entry(place, number)
        return None


class KeptLibrary:
    """The library of a folder, kept by a server between the requests that it answers.

    The disk is not looked at again within `fresh` seconds. For a request that is about one skill,
    or about none, the other skills are looked at every `_OTHERS_FRESH` seconds at most, and nobody
    waits for that.
    """

    def __init__(self, cwd: str, fresh: float = 1.0) -> None:
        import threading

        self._cwd = cwd
        self._fresh = fresh
        self._library: Library | None = None
        self._looked = 0.0
        self._lock = threading.Lock()
        self._others: threading.Thread | None = None

    def now(self, name: str | None = None) -> Library:
        """The library as it is; `name`: as far as `Library.renewed` says so."""
        with self._lock:
            passed = time.monotonic() - self._looked
            if self._library is not None and self._looked and name is not None:
                self._library = self._library.renewed(name)
                if passed >= _OTHERS_FRESH:
                    self._look_at_others()
            elif self._library is None or passed >= self._fresh:
                self._library = self._library.renewed() if self._library else Library(self._cwd)
                self._looked = time.monotonic()
            return self._library

    def _look_at_others(self) -> None:
        import threading

        def look(library: Library, looked: float) -> None:
            try:
                now = library.renewed()
            except (TacitError, OSError):
                return  # the next request is told
            with self._lock:
                if self._looked == looked:  # nothing was changed meanwhile
                    self._library, self._looked = now, time.monotonic()

        if self._library and not (self._others and self._others.is_alive()):
            given = (self._library, self._looked)
            self._others = threading.Thread(target=look, args=given, daemon=True)
            self._others.start()

    def put_back(self) -> None:
        """Have the disk looked at for the next request: something was changed."""
        self._looked = 0.0


_OTHERS_FRESH = 10.0
_at_hand: ContextVar[Callable[[], Library]] = ContextVar("tacit_library", default=Library)


@contextmanager
def at_hand(kept: KeptLibrary, name: str | None = None) -> Iterator[None]:
    """For a `with` block, the library here is the one that is kept, looked at once at most.

    `name`: the one skill that the block is about; nothing: it is about none.
    """
    token = _at_hand.set(cache(partial(kept.now, name)))
    try:
        yield
    finally:
        _at_hand.reset(token)


def library_here() -> Library:
    """The library of the working directory: the one that is at hand, else it is read."""
    return _at_hand.get()()


def entry_of(root: Root, row: Row, state: str, real: str, also: Iterable[str]) -> Entry:
    """A row of the index as an entry."""
    folder = row[index.FOLDER]
    name = row[index.NAME]
    base = folder.rpartition("/")[2]
    flags = row[index.FLAGS]
    return Entry(
        name=name,
        description=row[index.DESCRIPTION],
        folder=f"{root.path}/{folder}",
        scope=root.scope,  # type: ignore[arg-type]
        origin=_origin(root.scope, row),
        host=root.host,
        state=state,  # type: ignore[arg-type]
        version=row[index.VERSION],
        aliases=(base,) if base != name else (),
        also=tuple(also),
        root=root.path,
        file=row[index.FILE],
        real=real,
        model_invocable=not flags & index.NO_MODEL,
        user_invocable=not flags & index.NO_USER,
        paths=row[index.PATHS],
        worst=row[index.WORST] or None,
        digest=row[index.DIGEST],
    )


def _origin(scope: str, row: Row) -> Origin:
    if scope == "bundled":
        return "bundled"
    if row[index.SOURCE] == LEARNED_SOURCE:
        return "learned"
    return "installed" if scope == "extra" else "user"


ARCHIVE_FOLDER = ".archive"


def archive_snapshots(library: "Library") -> list[tuple[Root, Snapshot]]:
    """What lies in the archives of a library's own folders; not of those that are not trusted."""
    found = []
    for root in library.roots:
        path = os.path.join(root.path, ARCHIVE_FOLDER)
        if root.trusted and os.path.isdir(path):
            there = Root(path, root.scope, root.host, project=root.project)
            found.append((there, index.load(path, library.cache)))
    return found


def archived_entries(archives: list[tuple[Root, Snapshot]]) -> "list[Entry]":
    """Every archived skill, as the library would list it."""

    return [
        entry_of(root, row, "archived", os.path.join(root.path, row[index.FOLDER]), ())
        for root, snapshot in archives
        for row in snapshot.rows
    ]


def archived_named(library: "Library", name: str) -> "list[Entry]":
    """The archived skills called `name`, by their own name or their folder's, the newest first."""
    wanted = name.split("~", 1)[0]
    found = [
        entry
        for entry in archived_entries(archive_snapshots(library))
        if name in (entry.name, os.path.basename(entry.folder))
        or wanted == os.path.basename(entry.folder).split("~", 1)[0]
    ]
    return sorted(found, key=lambda entry: (len(entry.folder), entry.folder), reverse=True)


SCHEDULE_FILE = "schedule.json"


class _ScheduledNames(msgspec.Struct, frozen=True):
    skills: tuple[str, ...] = ()


def scheduled_folder() -> str:
    """Where scheduled skills lie."""
    return os.path.join(paths.folders().data, "scheduled")


def skills_in_use(*, strict: bool = False) -> dict[str, tuple[str, ...]]:
    """The skills that schedules run, by name, each with the names of those schedules.

    With `strict`, a schedule that cannot be read raises `Damaged`: it may need any of them.
    """
    found: dict[str, tuple[str, ...]] = {}
    try:
        names = sorted(os.listdir(scheduled_folder()))
    except OSError:
        return {}
    for name in names:
        for skill in () if name.startswith(".") else _skills_of_schedule(name, strict):
            found[normal_name(skill)] = (*found.get(normal_name(skill), ()), name)
    return found


def scheduled_entry(name: str) -> "Entry | None":
    """The scheduled skill called `name`, as a library would list it; no library does by itself."""
    from tacit.base.display import one_line
    from tacit.skills.skill_file import parse_skill, skill_digest

    here = os.path.join(scheduled_folder(), name)
    if not name or name.startswith(".") or os.path.basename(name) != name:
        return None
    try:
        with open(os.path.join(here, "SKILL.md"), "rb") as file:
            data = file.read(1_000_000)
    except OSError:
        return None
    return Entry(
        name=name,
        description=one_line(parse_skill(data, name).description),
        folder=here,
        scope="user",
        origin="scheduled",
        host="tacit",
        state="active",
        root=scheduled_folder(),
        real=os.path.realpath(here),
        model_invocable=False,
        digest=skill_digest(data),
    )


def used_by_schedules(skill: str) -> tuple[str, ...]:
    """The schedules that run the skill called `skill`."""
    return skills_in_use().get(normal_name(skill), ())


def _skills_of_schedule(name: str, strict: bool) -> tuple[str, ...]:
    path = os.path.join(scheduled_folder(), name, SCHEDULE_FILE)
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(1_000_000), type=_ScheduledNames).skills
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        if strict and os.path.isdir(os.path.dirname(path)):
            raise Damaged(f"the schedule '{name}' cannot be read: {error}") from error
        return ()
