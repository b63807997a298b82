"""Notices: what the user is told of the work in the background, stored, and told once on each face.

Owns the tables `notices` and `told` in tacit.db, and the line for the shell's prompt. The faces
are the chat, `tacit inbox`, the prompt, and the desktop where `learn.notify` is set. A notice is
one line: what happened, the command that shows it, the command that takes it back. Which changes
make a notice is decided in `announcements`.

A question that has been answered meanwhile is told no more. Nothing here raises into the work that
it speaks of: what cannot be stored is not told.
"""

import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

import msgspec

from tacit.base import database, paths, prompt_line
from tacit.base.display import fit, one_line
from tacit.base.errors import TacitError
from tacit.base.setting_sections import LearnSettings
from tacit.base.settings import load_settings

Kind = Literal[
    "created", "edited", "repaired", "rolled-back", "archived", "restored", "merged",
    "noted", "forgot", "proposed", "failed", "question", "scheduled", "deaf",
]  # fmt: skip
Face = Literal["chat", "inbox", "desktop"]

NOTICE_STEPS = (
    """
    CREATE TABLE notices (
      id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, at REAL NOT NULL, kind TEXT NOT NULL,
      skill TEXT NOT NULL, change TEXT NOT NULL, root TEXT NOT NULL, session TEXT NOT NULL,
      why TEXT NOT NULL, actor TEXT NOT NULL, quiet INTEGER NOT NULL) STRICT;
    CREATE INDEX notices_at ON notices (at);
    CREATE TABLE told (
      notice INTEGER NOT NULL REFERENCES notices (id) ON DELETE CASCADE, face TEXT NOT NULL,
      at REAL NOT NULL, PRIMARY KEY (notice, face)) STRICT, WITHOUT ROWID;
    """,
)
FRESH = timedelta(days=14)
"""What is older is not news any more."""
KEPT = timedelta(days=90)
MOST = 3
"""Lines that a face tells at once; of the rest, the number."""
_WHY = 80
T = TypeVar("T")


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to tell."""

    kind: Kind
    skill: str = ""
    """The skill, or the fact, that it is about."""
    change: str = ""
    """The change that landed or waits."""
    root: str = ""
    """The skills folder of the change."""
    session: str = ""
    why: str = ""
    actor: str = ""
    """Who did it, or wants to."""
    quiet: bool = False
    """Only counted, not told by itself."""
    lines: str = ""
    """What is told of lines of the change that wait; looked up when it is told."""
    at: datetime = datetime.min.replace(tzinfo=UTC)
    id: int = 0

    @property
    def key(self) -> str:
        """The same for what is the same news."""
        return f"{self.kind}:{self.change or self.session or self.skill}"


def line(notice: Notice) -> str:
    """The notice in one line of plain text."""
    name, short = one_line(notice.skill), notice.change[-8:]
    most = 2 * _WHY if notice.kind == "rolled-back" else _WHY  # of figures not half
    why = f" ({fit(one_line(notice.why), most)})" if notice.why else ""
    back = f"see: tacit diff {short} · undo: tacit undo {short}"
    match notice.kind:
        case "proposed":
            keep = f"keep: tacit accept {short} · drop: tacit reject {short}"
            what = "the draft " if notice.actor == "distiller" else ""
            return f"shall I keep {what}{name}?{why} · see: tacit inbox {short} · {keep}"
        case "failed":
            if not notice.session:
                return f"a job failed: {name}{why} · see: tacit jobs"
            session = one_line(notice.session)
            return f"could not learn from a session{why} · see: tacit why {session}"
        case "question" | "scheduled":
            return one_line(notice.why)
        case "deaf":
            return f"{one_line(notice.why)} · see: tacit doctor"
    lines = f"; {notice.lines}" if notice.lines else ""
    return f"{_SAYS[notice.kind].format(name)}{why}{lines} · {back}"


_IN_FULL = ("question", "scheduled")
"""Of these, the reason is the text, and ours."""
_SAYS = {
    "created": "learned the skill {}",
    "edited": "improved the skill {}",
    "repaired": "repaired the skill {}",
    "rolled-back": "took a change of {} back",
    "archived": "put the skill {} away",
    "restored": "brought the skill {} back",
    "merged": "merged the skill {} into another",
    "noted": "noted the fact {}",
    "forgot": "forgot the fact {}",
}


def announce(notice: Notice, *, learn: LearnSettings | None = None) -> bool:
    """Store a notice, to be told on every face; False where it was known or cannot be stored."""
    learn = learn if learn is not None else settings()
    now = datetime.now(UTC)

    def write(connection: sqlite3.Connection) -> int:
        old = (now - KEPT).timestamp()
        connection.execute("DELETE FROM notices WHERE at < ? AND kind != 'question'", (old,))
        made = connection.execute(
            "INSERT OR IGNORE INTO notices (key, at, kind, skill, change, root, session, why,"
            " actor, quiet) VALUES (:key, :at, :kind, :skill, :change, :root, :session, :why,"
            " :actor, :quiet)",
            msgspec.structs.asdict(notice) | {"key": notice.key, "at": now.timestamp()},
        )
        number = int(made.lastrowid or 0) if made.rowcount else 0
        if number:
            _add_to_prompt(connection, number)
        return number

    number = _done(write, 0)
    if number and learn.notify and not notice.quiet:
        told = msgspec.structs.replace(notice, id=number)
        _notify(_done(lambda c: _with_lines(c, told), told))
    return bool(number)


def tell(face: Face, *, most: int = MOST, now: datetime | None = None) -> tuple[str, ...]:
    """The lines to show on `face`, which count as told there then; the newest first.

    What is seen in the inbox is not told at the prompt any more.
    """
    now = now or datetime.now(UTC)

    def write(connection: sqlite3.Connection) -> list[Notice]:
        found = _pending(connection, face, now)
        connection.executemany(
            "INSERT OR IGNORE INTO told (notice, face, at) VALUES (?, ?, ?)",
            [(notice.id, face, now.timestamp()) for notice in found],
        )
        if face == "inbox":
            for name in _LINES:
                _write_line(name, ())
        return found

    return _lines(_done(write, []), face, most)


def pending(face: Face, *, now: datetime | None = None) -> list[Notice]:
    """What has not been told on `face` yet, the newest first."""
    return _done(lambda c: _pending(c, face, now or datetime.now(UTC)), [])


def strike(change: str) -> None:
    """Drop the notices of a change that is forgotten: they name what it would have made."""
    _done(lambda c: c.execute("DELETE FROM notices WHERE change = ?", (change,)), None)


def refresh() -> None:
    """Take what is answered by now out of the lines that wait."""
    if any(prompt_line.peek(paths.folders().data, name) for name in _LINES):
        _done(_add_to_prompt, None)


def roots(now: datetime | None = None) -> list[str]:
    """The skills folders that notices speak of, so that their commands work from anywhere."""
    since = (now or datetime.now(UTC)) - KEPT

    def read(connection: sqlite3.Connection) -> list[str]:
        rows = connection.execute(
            "SELECT DISTINCT root FROM notices WHERE root != '' AND at >= ?", (since.timestamp(),)
        )
        return [row[0] for row in rows.fetchall()]

    return _done(read, [])


def _lines(found: Sequence[Notice], face: Face, most: int) -> tuple[str, ...]:
    if face == "inbox":  # which lists what waits, and asks for itself
        found = [notice for notice in found if notice.kind not in ("proposed", "question")]
    single = [notice for notice in found if not notice.quiet]
    single, failed = _several(single, "failed")
    single, noted = _several(single, "noted")
    lines = [line(notice) for notice in single[:most]]
    if len(single) > most:
        lines.append(f"and {len(single) - most} more · see: tacit inbox")
    if noted:
        names = fit(", ".join(one_line(notice.skill) for notice in noted), _WHY)
        lines.append(f"noted {len(noted)} facts: {names} · see: tacit memory")
    if failed:
        last = fit(one_line(failed[0].why), _WHY)
        lines.append(f"{len(failed)} jobs failed (last: {last}) · see: tacit jobs")
    if quiet := sum(notice.quiet for notice in found):
        waits = "1 change waits" if quiet == 1 else f"{quiet} changes wait"
        lines.append(f"{waits} in the inbox · see: tacit inbox")
    return tuple(lines)


def _several(found: Sequence[Notice], kind: Kind) -> tuple[list[Notice], list[Notice]]:
    """The others, and those of `kind` where there are several, to be told in one line."""
    those = [notice for notice in found if notice.kind == kind]
    if len(those) < 2:
        return list(found), []
    return [notice for notice in found if notice.kind != kind], those


def _pending(connection: sqlite3.Connection, face: str, now: datetime) -> list[Notice]:
    rows = connection.execute(
        "SELECT * FROM notices WHERE at >= ? AND NOT EXISTS"
        " (SELECT 1 FROM told WHERE notice = notices.id AND face = ?) ORDER BY at DESC, id DESC",
        ((now - FRESH).timestamp(), face),
    ).fetchall()
    return _unanswered(connection, rows)


def _unanswered(connection: sqlite3.Connection, rows: list[sqlite3.Row]) -> list[Notice]:
    """The notices in `rows`, without the questions that were answered meanwhile."""
    found = [msgspec.convert(dict(row), Notice, strict=False) for row in rows]
    found = [_with_lines(connection, notice) for notice in found]
    kinds = {notice.kind for notice in found}
    waiting = _waiting(connection) if "proposed" in kinds else set()
    answered = "question" in kinds and bool(settings().approval)
    return [
        notice
        for notice in found
        if (notice.kind != "proposed" or notice.change in waiting)
        and not (notice.kind == "question" and answered)
    ]


def _with_lines(connection: sqlite3.Connection, notice: Notice) -> Notice:
    """The notice of a change, with what of that waits for the user's answer."""
    if notice.kind not in ("created", "edited", "repaired"):
        return notice
    from tacit.changes.change import Change
    from tacit.changes.left_out import lines_id, waits_note

    try:
        (row,) = connection.execute(
            "SELECT change FROM proposals WHERE state = 'waiting' AND id = ?",
            (lines_id(notice.change),),
        ).fetchall()
        text = waits_note(msgspec.json.decode(row["change"], type=Change))
    except (sqlite3.OperationalError, ValueError):  # none, or none that can be read
        return notice
    return msgspec.structs.replace(notice, lines=text)


def _waiting(connection: sqlite3.Connection) -> set[str]:
    try:
        rows = connection.execute("SELECT id FROM proposals WHERE state = 'waiting'").fetchall()
    except sqlite3.OperationalError:  # nothing was ever proposed
        return set()
    return {row[0] for row in rows}


# The lines for the prompt and for agents: a file holds the text, and then the numbers of the
# notices that it stands for.
_LINES = (prompt_line.FILE_NAME, prompt_line.AGENT_FILE)


def _add_to_prompt(connection: sqlite3.Connection, *new: int) -> None:
    """Write the lines for the notices that still wait there, and for `new` ones."""
    for name in _LINES:
        _add_to_line(connection, name, new)


def _add_to_line(connection: sqlite3.Connection, name: str, new: tuple[int, ...]) -> None:
    known = prompt_line.peek(paths.folders().data, name)[1:]
    numbers = (*(int(n) for n in " ".join(known).split() if n.isdigit()), *new)
    among = ", ".join("?" * len(numbers))
    rows = connection.execute(
        f"SELECT * FROM notices WHERE id IN ({among}) AND NOT quiet ORDER BY at DESC, id DESC",  # noqa: S608
        numbers,
    ).fetchall()
    _write_line(name, _unanswered(connection, rows))


def _write_line(name: str, found: Sequence[Notice]) -> None:
    more = f" · {len(found) - 1} more: tacit inbox" if len(found) > 1 else ""
    first = found[0] if found else None
    if first is not None and name == prompt_line.AGENT_FILE and first.kind not in _IN_FULL:
        # Some agents have the model say it: no text that a model wrote goes along.
        first = msgspec.structs.replace(first, why="")
    lines = [f"tacit: {line(first)}{more}"] if first is not None else []
    numbers = " ".join(str(notice.id) for notice in found)
    try:
        prompt_line.put(paths.folders().data, [*lines, numbers] if lines else [], name)
    except (TacitError, OSError):  # the other faces can still tell it
        return


def _notify(notice: Notice) -> None:
    from tacit.learn.announcements import notify

    if notify("Tacit", line(notice)):
        now = datetime.now(UTC).timestamp()
        _done(
            lambda c: c.execute(
                "INSERT OR IGNORE INTO told (notice, face, at) VALUES (?, 'desktop', ?)",
                (notice.id, now),
            ),
            None,
        )


def settings() -> LearnSettings:
    """What the user set; the defaults where that cannot be read."""
    try:
        return load_settings().settings.learn
    except (TacitError, OSError):
        return LearnSettings()


def _done(work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
    """What `work` gives in a transaction, or `otherwise` where the database cannot be used."""
    try:
        tables = ("notices", NOTICE_STEPS)
        with database.opened(tables, wait=5.0) as db, database.transaction(db):
            return work(db)
    except (TacitError, OSError):
        return otherwise
