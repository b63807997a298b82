"""tacit.db: opened the same way by all, migrated once, and clear about what is wrong with it."""

import ast
import os
import re
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tacit.base import database
from tacit.base.errors import Busy, Damaged, Newer, Unwritable

STEPS = [
    "CREATE TABLE a (id INTEGER PRIMARY KEY, text TEXT); CREATE INDEX a_text ON a (text);",
    "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET text = 'x;y'; SELECT 1; END;",
]


def test_the_default_is_tacit_db_in_the_data_folder(home: Path) -> None:
    """Without a path, the user's own tacit.db is opened, readable by nobody else."""
    database.connect().close()
    path = home / ".local/share/tacit/tacit.db"
    assert path.is_file()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_connection_is_wal_with_foreign_keys(tmp_path: Path) -> None:
    """Every connection is in WAL mode and enforces foreign keys."""
    with_path = database.connect(str(tmp_path / "x.db"))
    assert with_path.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert with_path.execute("PRAGMA foreign_keys").fetchone()[0] == 1
    with_path.close()


def test_each_step_is_applied_once_and_recorded(tmp_path: Path) -> None:
    """Migrating twice applies each step once; a later step comes on top of the earlier ones."""
    connection = database.connect(str(tmp_path / "x.db"))
    database.migrate(connection, "one", STEPS[:1])
    connection.execute("INSERT INTO a (text) VALUES ('kept')")
    database.migrate(connection, "one", STEPS[:1])
    database.migrate(connection, "one", STEPS)
    database.migrate(connection, "two", ["CREATE TABLE b (x)"])
    rows = connection.execute("SELECT layer, number FROM migrations ORDER BY 1, 2").fetchall()
    assert [tuple(row) for row in rows] == [("one", 1), ("one", 2), ("two", 1)]
    assert connection.execute("SELECT text FROM a").fetchone()["text"] == "kept"
    connection.execute("INSERT INTO a (text) VALUES ('new')")
    assert connection.execute("SELECT text FROM a").fetchone()["text"] == "x;y"
    connection.close()


def test_a_step_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """A step whose second statement fails is undone whole and can be tried again."""
    connection = database.connect(str(tmp_path / "x.db"))
    with pytest.raises(Damaged, match="nonsense"):
        database.migrate(connection, "one", ["CREATE TABLE a (x); CREATE nonsense;"])
    database.migrate(connection, "one", ["CREATE TABLE a (x);"])
    connection.close()


def test_a_step_that_ends_early_is_refused(tmp_path: Path) -> None:
    """A step that stops inside a statement is a fault of the program, said as one."""
    connection = database.connect(str(tmp_path / "x.db"))
    with pytest.raises(ValueError, match="middle of a statement"):
        database.migrate(connection, "one", ["CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1;"])
    connection.close()


def test_a_database_of_a_newer_tacit_is_refused(tmp_path: Path) -> None:
    """A database that knows more steps than this program is left alone."""
    connection = database.connect(str(tmp_path / "x.db"))
    database.migrate(connection, "one", STEPS)
    with pytest.raises(Newer, match="newer tacit"):
        database.migrate(connection, "one", STEPS[:1])
    connection.close()


def test_many_processes_may_migrate_at_once(tmp_path: Path) -> None:
    """Eight processes that open and migrate a new database at once all succeed; steps run once."""
    path = str(tmp_path / "x.db")
    program = (
        "import sys\nfrom tacit.base import database\n"
        "steps = ['CREATE TABLE a (x)', 'INSERT INTO a VALUES (1)', 'INSERT INTO a VALUES (2)']\n"
        "database.migrate(database.connect(sys.argv[1]), 'one', steps)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, path]) for _ in range(8)]
    assert [process.wait(120) for process in running] == [0] * 8
    connection = database.connect(path)
    assert [row[0] for row in connection.execute("SELECT x FROM a")] == [1, 2]
    connection.close()


def test_an_exception_undoes_a_transaction(tmp_path: Path) -> None:
    """What was written in a `transaction` block that raises is not there afterwards."""
    connection = database.connect(str(tmp_path / "x.db"))
    connection.execute("CREATE TABLE a (x)")

    def fails_after_writing() -> None:
        with database.transaction(connection):
            connection.execute("INSERT INTO a VALUES (1)")
            raise KeyError

    with pytest.raises(KeyError):
        fails_after_writing()
    assert connection.execute("SELECT count(*) FROM a").fetchone()[0] == 0
    connection.close()


@pytest.mark.parametrize("data", [b"this is not a database at all, " * 40, b"\x00" * 8192])
def test_a_file_that_is_no_database_is_damaged(tmp_path: Path, data: bytes) -> None:
    """A file with other content is called damaged, by name."""
    path = tmp_path / "x.db"
    path.write_bytes(data)
    with pytest.raises(Damaged, match=r"x\.db"):
        database.connect(str(path))


def test_a_page_that_was_overwritten_is_damaged(tmp_path: Path) -> None:
    """Corruption found later, while reading, is called damaged as well."""
    path = tmp_path / "x.db"
    connection = database.connect(str(path))
    connection.execute("CREATE TABLE a (x)")
    with database.transaction(connection):
        connection.executemany("INSERT INTO a VALUES (?)", [("y" * 500,)] * 200)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(path.read_bytes())
    data[4096:40960] = os.urandom(36864)
    path.write_bytes(data)
    connection = database.connect(str(path))
    with pytest.raises(Damaged), database.explain_errors(str(path)):
        connection.execute("SELECT sum(length(x)) FROM a").fetchone()
    connection.close()


def test_a_writer_that_never_ends_is_busy(tmp_path: Path) -> None:
    """A database that another process keeps locked raises `Busy` after the wait."""
    path = str(tmp_path / "x.db")
    holder = database.connect(path)
    holder.execute("BEGIN IMMEDIATE")
    connection = database.connect(path, wait=0.1)
    with pytest.raises(Busy, match="another process"):
        database.migrate(connection, "one", STEPS)
    holder.execute("ROLLBACK")
    holder.close()
    connection.close()


def test_a_folder_that_cannot_be_made_is_unwritable(tmp_path: Path) -> None:
    """A path below a plain file says that it cannot be written."""
    (tmp_path / "file").write_text("")
    with pytest.raises(Unwritable, match="cannot open"):
        database.connect(str(tmp_path / "file" / "x.db"))


def test_rows_can_be_read_by_name(tmp_path: Path) -> None:
    """Rows answer to the names of their columns."""
    connection = database.connect(str(tmp_path / "x.db"))
    row = connection.execute("SELECT 1 AS one").fetchone()
    assert isinstance(row, sqlite3.Row)
    assert row["one"] == 1
    connection.close()


def test_a_second_connection_leaves_the_locks_of_the_first(tmp_path: Path) -> None:
    """Opening and closing another here, and one in another process, loses nothing that follows."""
    path = str(tmp_path / "x.db")
    first = database.connect(path)
    first.execute("CREATE TABLE a (x)")
    database.connect(path).close()
    # A process that believes to be the last one takes the log away as it closes.
    passing = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('DELETE FROM a'); \
c.commit(); c.close()"
    subprocess.run([sys.executable, "-c", passing, path], check=True, timeout=120)
    first.execute("INSERT INTO a VALUES (1)")
    counting = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) \
FROM a').fetchone()[0])"
    counted = subprocess.run(
        [sys.executable, "-c", counting, path], capture_output=True, text=True, timeout=120
    )
    first.close()
    assert counted.stdout.strip() == "1"


_OPENS = {"sqlite3.connect", "database.connect", "Store.open", "open_store", "open_sessions"}
"""Calls that hand out something that has to be closed."""
_CLOSES = {
    "closing",
    "contextlib.closing",
    "click.get_current_context().with_resource",
    "context.with_resource",
}
_HAND_ON = {"connect", "open", "open_store", "open_sessions", "_try_open"}
"""Functions that hand on what they open, and close it themselves where they fail."""


def test_all_that_is_opened_in_the_source_is_closed() -> None:
    """Each connection is opened for a block, or by a function whose callers do so."""
    left = []
    for path in (Path(__file__).parents[2] / "src").rglob("*.py"):
        text = path.read_text()
        if not any(name in text for name in _OPENS):
            continue
        tree = ast.parse(text)
        safe = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.With | ast.AsyncWith):
                safe |= {item.context_expr for item in node.items}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in _CLOSES:
                safe |= set(node.args)
            elif isinstance(node, ast.FunctionDef) and node.name in _HAND_ON:
                safe |= set(ast.walk(node))
        left += [
            f"{path}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in _OPENS and node not in safe
        ]
    assert left == []


def test_no_statement_numbers_its_parameters() -> None:
    """Python 3.12 warns where such a statement gets a sequence, and 3.14 refuses it."""
    paths = (Path(__file__).parents[2] / "src").rglob("*.py")
    numbered = re.compile(r"(?:[=<>,(|]|\b[A-Z]+\b) ?\?\d")
    assert [str(path) for path in paths if numbered.search(path.read_text())] == []


def test_what_cannot_be_migrated_is_not_left_open(tmp_path: Path) -> None:
    """A database of a later version is refused, and nothing keeps it open."""
    path = str(tmp_path / "x.db")
    database.connect(path, tables=[("one", STEPS)]).close()
    with pytest.raises(Newer):
        database.connect(path, tables=[("one", STEPS[:1])])
    assert not list(tmp_path.glob("x.db-*"))


def test_opened_for_a_block(home: Path) -> None:
    """The tables are there, a fault in the block is explained, and the connection is closed."""
    with (
        pytest.raises(Damaged, match="no such table: missing"),
        database.opened(("layer", STEPS)) as connection,
    ):
        connection.execute("SELECT * FROM missing")
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_writes_together_begin_with_the_first_and_land_at_the_end(tmp_path: Path) -> None:
    """Until something is written nobody else is kept waiting; what fails takes back the whole."""
    path = str(tmp_path / "x.db")
    with (
        closing(database.connect(path)) as mine,
        closing(database.connect(path, wait=0.0)) as other,
    ):
        mine.execute("CREATE TABLE t (n INTEGER)")
        writes = database.Writes(mine)
        with writes.together():
            other.execute("INSERT INTO t VALUES (1)")
            for number in (2, 3):
                with writes.one():
                    mine.execute("INSERT INTO t VALUES (?)", (number,))
            assert other.execute("SELECT count(*) FROM t").fetchone()[0] == 1

        def fail() -> None:
            with writes.together(), writes.one():
                mine.execute("INSERT INTO t VALUES (4)")
                raise KeyError

        with pytest.raises(KeyError):
            fail()
        with writes.one():
            mine.execute("INSERT INTO t VALUES (5)")
        assert [row[0] for row in other.execute("SELECT n FROM t ORDER BY n")] == [1, 2, 3, 5]
