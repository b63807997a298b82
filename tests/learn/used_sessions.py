"""Sessions in which a skill was used: of the eight real agents, and made by hand."""

import shutil
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tacit.traces import host_registry
from tacit.traces.host import Source
from tacit.traces.trace import Activation, Head, Step, ToolCall, Trace, Turn

sys.path.insert(0, str(Path(__file__).parents[1] / "traces"))
from trace_samples import REAL, file_of

HOSTS = tuple(REAL)
MORNING = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


def with_skill(host: str, folder: Path, skill: str = "build") -> Source:
    """The real session of `host`, in which the file that it read was a skill's SKILL.md."""
    real = file_of(host)
    wanted = f"skills/{skill}/SKILL.md"
    # Many hosts are known by the path of their file, so that stays below a home of its own.
    home = real
    while home.name != "home":
        home = home.parent
    shutil.copytree(home, folder, dirs_exist_ok=True)
    file = folder / real.relative_to(home)
    if file.suffix == ".db":
        _replace(file, "README.md", wanted)
    else:
        file.write_text(file.read_text().replace("README.md", wanted))
    return next(iter(host_registry.get(host).inside(str(file))))


def _replace(file: Path, old: str, new: str) -> None:
    connection = sqlite3.connect(file)
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
        " AND name NOT LIKE '%fts%' AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    for (table,) in tables:
        for column in connection.execute(f"PRAGMA table_info('{table}')").fetchall():
            connection.execute(
                f'UPDATE OR IGNORE "{table}" SET "{column[1]}" = replace("{column[1]}", ?, ?)'
                f' WHERE instr("{column[1]}", ?)',
                (old, new, old),
            )
    connection.commit()
    connection.close()


def call(name: str, *, failed: bool = False, kind: str = "shell", **more: object) -> ToolCall:
    """A call of the tool `name`; `more` are fields of ToolCall."""
    return ToolCall("c", name, kind, failed=failed, **more)  # type: ignore[arg-type]


def used(name: str, at: datetime | None = None) -> Activation:
    return Activation(name, at)


def session(
    *turns: tuple[Step, ...],
    name: str = "s1",
    host: str = "claude-code",
    prompts: tuple[str, ...] = (),
    project: str = "",
    at: datetime = MORNING,
) -> Trace:
    """A session of these turns, an hour each."""
    said = prompts or ("do it",) * len(turns)
    return Trace(
        Head(host, name, project=project, started=at, ended=at + timedelta(hours=len(turns))),
        tuple(
            Turn(n, said[n], steps, at + timedelta(hours=n), at + timedelta(hours=n + 1))
            for n, steps in enumerate(turns)
        ),
    )
