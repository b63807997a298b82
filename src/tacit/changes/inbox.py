"""Changes that wait for a person, in tacit.db: they survive restarts, and so do the answers.

A proposal keeps the whole change, with who made it and why. A rejected one is remembered with its
reason, by what it says rather than by its bytes, so that the same idea in other words does not
come back. Accepting is the gate's business: it judges the change again.
"""

import hashlib
import sqlite3
from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import Literal

import msgspec

from tacit.base import database
from tacit.base.clock import Clock, SystemClock
from tacit.base.errors import NotFound
from tacit.changes.change import Change, Create, MergeInto, Operation, Refusal, Rewrite, WriteFile
from tacit.changes.change import Edit as EditOperation
from tacit.changes.left_out import lines_id
from tacit.changes.neighbours import resemblance, sketch
from tacit.skills.fact import FACT_FILE
from tacit.skills.skill_file import parse_skill

ProposalState = Literal["waiting", "accepted", "rejected"]
SAME = 0.8
"""How alike two proposals are, from 0 to 1, that are taken for one."""

STEPS = (
    """CREATE TABLE proposals (
      id TEXT PRIMARY KEY, root TEXT NOT NULL, skill TEXT NOT NULL, actor TEXT NOT NULL,
      kind TEXT NOT NULL, change BLOB NOT NULL, why BLOB NOT NULL, fingerprint TEXT NOT NULL,
      sketch BLOB NOT NULL, state TEXT NOT NULL, made TEXT NOT NULL,
      decided TEXT NOT NULL DEFAULT '', answer TEXT NOT NULL DEFAULT '',
      applied_as TEXT NOT NULL DEFAULT '') STRICT;
    CREATE INDEX proposals_by_skill ON proposals (root, skill, state);
    CREATE INDEX proposals_by_fingerprint ON proposals (fingerprint, state);""",
    # What a list of thousands asks for, without the changes themselves.
    """CREATE INDEX proposals_in_order ON proposals (state, made, id, kind, actor, applied_as);""",
)


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """One change in the inbox."""

    id: str
    change: Change
    why: Refusal
    """Why it waits."""
    state: ProposalState
    made: str
    decided: str = ""
    answer: str = ""
    """The reason that was given with a rejection."""
    applied_as: str = ""
    """The change that it became; set before it is applied."""


class Inbox:
    """The proposals in one tacit.db, by default the user's. Each call opens it for itself."""

    def __init__(self, path: str = "", clock: Clock | None = None) -> None:
        self._path = path or database.default_path()
        self._clock = clock or SystemClock()

    def waiting(self, root: str = "", *, most: int = -1, skip: int = 0) -> list[Proposal]:
        """What waits, oldest first."""
        where, values = ("AND root = ?", (root,)) if root else ("", ())
        order = "ORDER BY made, id LIMIT ? OFFSET ?"
        return self._read(f"state = 'waiting' {where} {order}", (*values, most, skip))

    def all(self, most: int = 100, *, skip: int = 0) -> list[Proposal]:
        """The latest proposals, answered or not, newest first."""
        return self._read("1 ORDER BY made DESC, id DESC LIMIT ? OFFSET ?", (most, skip))

    def begun(self) -> list[Proposal]:
        """What waits although its application has begun: it may have landed."""
        return self._read("state = 'waiting' AND applied_as != ''", ())

    def waiting_ids(self) -> list[dict[str, str]]:
        """Id, kind and actor of what waits, oldest first; much cheaper than the proposals."""
        with self._open() as connection:
            rows = connection.execute(
                "SELECT id, kind, actor FROM proposals WHERE state = 'waiting' ORDER BY made, id"
            )
            return [dict(row) for row in rows.fetchall()]

    def roots(self) -> set[str]:
        """The skills folders that any proposal was made for."""
        with self._open() as connection:
            return {row[0] for row in connection.execute("SELECT DISTINCT root FROM proposals")}

    def count(
        self, state: ProposalState, *, kind: str = "", actors: Collection[str] = (), below: str = ""
    ) -> int:
        """How many there are in this state: of one kind, such as `create`, by some actors, in
        places whose path ends in `below`."""
        among = ", ".join("?" * len(actors))
        by = f"AND actor IN ({among})" if actors else ""
        with self._open() as connection:
            row = connection.execute(
                "SELECT count(*) FROM proposals WHERE state = ? AND ? IN ('', kind)"  # noqa: S608
                f" AND (? = '' OR substr(root, -length(?)) = ?) {by}",
                (state, kind, below, below, below, *actors),
            ).fetchone()
        return int(row[0])

    def get(self, start: str) -> Proposal:
        """The one proposal whose id begins with, or ends in, `start`. Raises `NotFound`."""
        pattern = start.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")
        found = self._read(
            r"id = ? OR id LIKE ? ESCAPE '\' OR id LIKE ? ESCAPE '\' ORDER BY id",
            (start, f"{pattern}%", f"%{pattern}"),
        )
        exact = [proposal for proposal in found if proposal.id == start] or found
        if len(exact) == 1 and start:
            return exact[0]
        raise NotFound(f"there is no one proposal '{start}'", "see them: tacit inbox --all")

    def add(self, change: Change, why: Refusal) -> Proposal:
        """Let `change` wait. The same proposal again gives the one that already waits."""
        fingerprint, made = fingerprint_of(change), self._clock.now().isoformat()
        with self._open() as connection, database.transaction(connection):
            same = connection.execute("SELECT * FROM proposals WHERE id = ?", (change.id,))
            rows = [known for row in same.fetchall() if (known := _readable(row))]
            for known in rows or self._like(connection, change, fingerprint, "waiting"):
                return known
            connection.execute(
                "INSERT INTO proposals (id, root, skill, actor, kind, change, why, fingerprint,"
                " sketch, state, made) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting', ?)",
                (
                    change.id,
                    change.root,
                    change.skill,
                    change.actor,
                    _kind(change),
                    msgspec.json.encode(change),
                    msgspec.json.encode(why),
                    fingerprint,
                    msgspec.json.encode(sketch(_text(change))),
                    made,
                ),
            )
        return Proposal(id=change.id, change=change, why=why, state="waiting", made=made)

    def lines_of(self, change: str) -> Proposal | None:
        """What was left out of the change with this id, while it waits."""
        found = self._read("id = ? AND state = 'waiting'", (lines_id(change),))
        return found[0] if found else None

    def rejected_like(self, change: Change) -> Proposal | None:
        """A rejected proposal that said the same, if there is one."""
        with self._open() as connection:
            found = self._like(connection, change, fingerprint_of(change), "rejected")
        return found[0] if found else None

    def begin(self, proposal: Proposal, applied_as: str) -> str:
        """Record under which id it is about to be applied; the first that was recorded stands."""
        with self._open() as connection, database.transaction(connection):
            connection.execute(
                "UPDATE proposals SET applied_as = ? WHERE id = ? AND applied_as = ''",
                (applied_as, proposal.id),
            )
            row = connection.execute(
                "SELECT applied_as FROM proposals WHERE id = ?", (proposal.id,)
            ).fetchone()
        return str(row[0])

    def close(self, proposal: Proposal, state: ProposalState, answer: str = "") -> bool:
        """Record the answer; False where it was answered already."""
        with self._open() as connection, database.transaction(connection):
            done = connection.execute(
                "UPDATE proposals SET state = ?, decided = ?, answer = ?"
                " WHERE id = ? AND state = 'waiting'",
                (state, self._clock.now().isoformat(), answer, proposal.id),
            )
            return done.rowcount > 0

    def reopen(self, proposal: Proposal) -> bool:
        """Let a rejected proposal wait again; False where it is not one."""
        with self._open() as connection, database.transaction(connection):
            done = connection.execute(
                "UPDATE proposals SET state = 'waiting', decided = '', answer = ''"
                " WHERE id = ? AND state = 'rejected'",
                (proposal.id,),
            )
            return done.rowcount > 0

    def broken(self) -> list[str]:
        """The ids of rows that cannot be read."""
        with self._open() as connection:
            rows = connection.execute("SELECT * FROM proposals").fetchall()
        return [str(row["id"]) for row in rows if _readable(row) is None]

    def remove(self, proposal: str) -> None:
        """Remove a row: one that cannot be read, or a rejected idea that may come again."""
        with self._open() as connection, database.transaction(connection):
            connection.execute("DELETE FROM proposals WHERE id = ?", (proposal,))

    def _open(self) -> AbstractContextManager[sqlite3.Connection]:
        return database.opened(("changes", STEPS), path=self._path)

    def _read(self, where: str, values: tuple[object, ...]) -> list[Proposal]:
        with self._open() as connection:
            rows = connection.execute(f"SELECT * FROM proposals WHERE {where}", values).fetchall()  # noqa: S608
        found = [_readable(row) for row in rows]
        return [proposal for proposal in found if proposal is not None]

    def _like(
        self, connection: sqlite3.Connection, change: Change, fingerprint: str, state: ProposalState
    ) -> list[Proposal]:
        """Proposals that say the same: to the letter, else nearly, about the same skill.

        A new skill is compared with every new skill that was proposed in that place, whatever it
        was called then.
        """
        kind = _kind(change)
        same = "kind = 'create'" if kind == "create" else "kind = ? AND skill = ?"
        values = () if kind == "create" else (kind, change.skill)
        rows = connection.execute(
            f"SELECT * FROM proposals WHERE state = ? AND root = ? AND {same}"  # noqa: S608
            " ORDER BY made DESC LIMIT 1000",
            (state, change.root, *values),
        ).fetchall()
        mine = sketch(_text(change))
        found = []
        for row in rows:
            exact = row["fingerprint"] == fingerprint
            if exact or resemblance(mine, msgspec.json.decode(row["sketch"])) >= SAME:
                proposal = _readable(row)
                if proposal is not None:
                    found.append(proposal)
        return found


def fingerprint_of(change: Change) -> str:
    """The same for changes that say the same, whoever makes them and whenever."""
    words = " ".join(_text(change).split())
    parts = (change.root, change.skill, _kind(change), words)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _readable(row: sqlite3.Row) -> Proposal | None:
    try:
        return Proposal(
            id=row["id"],
            change=msgspec.json.decode(row["change"], type=Change),
            why=msgspec.json.decode(row["why"], type=Refusal),
            state=row["state"],
            made=row["made"],
            decided=row["decided"],
            answer=row["answer"],
            applied_as=row["applied_as"],
        )
    except msgspec.DecodeError:
        return None


def _kind(change: Change) -> str:
    kinds = {str(operation.__struct_config__.tag) for operation in change.operations}
    files = {"edit", "rewrite", "write-file", "remove-file"}
    return "edit" if kinds <= files else "+".join(sorted(kinds))


def _text(change: Change) -> str:
    """What the change would write, or, of a move, what it does."""
    return "\n".join(_says(operation) for operation in change.operations)


def _file(path: str, data: bytes) -> str:
    """The path and the text; of a fact what it says, as all facts of a day have like heads."""
    if path == FACT_FILE:
        fact = parse_skill(data)
        return f"{path} {fact.description}\n{fact.body}"
    return f"{path} {data.decode('utf-8', 'replace')}"


def _says(operation: Operation) -> str:
    match operation:
        case Create(files=files) | Rewrite(files=files):
            return "\n".join(_file(path, data) for path, data in sorted(files.items()))
        case EditOperation(new=new, old=old, path=path):
            return f"{path} {old} {new}"
        case WriteFile(path=path, data=data):
            return f"{path} {data.decode('utf-8', 'replace')}"
        case MergeInto(into=into, operations=operations):
            return "\n".join([into, *(_says(inner) for inner in operations)])
    return msgspec.json.encode(operation).decode()
