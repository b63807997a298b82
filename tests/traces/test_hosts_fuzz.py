"""Hostile and broken input: no host stops a run, and no reader fails on a record."""

import gzip
import json
import random
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trace_samples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.traces import host_registry
from tacit.traces.assembler import Reading, read_trace
from tacit.traces.conversation_files import ConversationFiles
from tacit.traces.host import Source
from tacit.traces.trace import REASONS, Trace

QUICK = settings(max_examples=40, deadline=None, database=None)
ODD: list[Any] = [
    None, True, False, 0, -1, 2**63, 1e308, -0.5, "", "x" * 70_000, "\ud83d", "\u0000", "2026", [],
    {}, [[]], [None], {"type": []}, {"text": {"text": {}}}, "<command-name>/x</command-name>",
    "9999-99-99T99:99:99Z", "0001-01-01T00:00:00+14:00", [1, "a", {"type": "text", "text": 3}],
]  # fmt: skip


def _mutate(value: Any, chance: random.Random) -> Any:
    """`value` with some of its parts replaced, dropped, repeated or renamed."""
    if chance.random() < 0.03:
        return chance.choice(ODD)
    if isinstance(value, dict):
        made = {key: _mutate(part, chance) for key, part in value.items()}
        if made and chance.random() < 0.05:
            made.pop(chance.choice(list(made)))
        if made and chance.random() < 0.05:
            made[chance.choice(["type", "id", "content", "message", "parts"])] = chance.choice(ODD)
        return made
    if isinstance(value, list):
        made_list = [_mutate(part, chance) for part in value]
        return made_list * 2 if chance.random() < 0.03 else made_list
    return value


def _sound(trace: Trace) -> None:
    """What every trace must be, whatever it was read from."""
    assert "host-error" not in trace.skipped, trace.skipped
    assert set(trace.skipped) <= set(REASONS)
    assert msgspec.json.decode(msgspec.json.encode(trace), type=Trace) == trace
    assert [turn.number for turn in trace.turns] == list(range(len(trace.turns)))
    for name in ("input", "output", "cache_read", "cache_write", "reasoning"):
        assert 0 <= getattr(trace.usage, name) < 2**63


@pytest.mark.parametrize("name", trace_samples.LINES)
@QUICK
@given(seed=st.integers(0, 2**32))
def test_records_of_any_form_are_read_or_counted(name: str, seed: int) -> None:
    """Values of any type in any place, records lost, repeated and shuffled: never an exception."""
    chance = random.Random(seed)
    records = [json.loads(line) for line in trace_samples.file_of(name).read_text().splitlines()]
    if chance.random() < 0.3:
        chance.shuffle(records)
    records = [r for r in records if chance.random() < 0.97] + records[: chance.randrange(3)]
    data = "\n".join(json.dumps(_mutate(record, chance)) for record in records).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        path.write_bytes(data)
        _sound(read_trace(host_registry.get(name), Source(name, str(path))))


@pytest.mark.parametrize("name", trace_samples.LINES)
@QUICK
@given(data=st.data())
def test_bytes_of_any_kind_are_read_or_counted(name: str, data: st.DataObject) -> None:
    """Bytes flipped, cut out and put in anywhere: never an exception, also when read in pieces."""
    content = bytearray(trace_samples.file_of(name).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        length = data.draw(st.integers(0, 400))
        content[at : at + length] = data.draw(st.binary(max_size=20))
    cut = data.draw(st.integers(0, len(content)))
    host = host_registry.get(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jsonl")
        path.write_bytes(content[:cut])
        first = Reading(host, Source(name, str(path)))
        kept = list(first)
        path.write_bytes(content)  # the same file, grown in place
        again = Reading(host, Source(name, str(path)), first.bookmark)
        kept = [turn for turn in kept if turn.number < again.first] + list(again)
        whole = read_trace(host, Source(name, str(path)))
        _sound(whole)
        assert tuple(kept) == whole.turns
        assert again.head == whole.head


def _texts(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    tables = ("session", "message", "part", "sessions", "messages")
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return [
        (table, row[1])
        for (table,) in found
        if table in tables
        for row in connection.execute(f"PRAGMA table_info({table})")
        if not row[5] and not row[1].endswith(("session_id", "message_id"))
    ]


@pytest.mark.parametrize("name", ["opencode", "hermes"])
@settings(QUICK, max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_rows_of_any_form_are_read_or_counted(name: str, seed: int) -> None:
    """Any value in any column, and JSON of any form in those that hold JSON."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "copy.db")
        shutil.copyfile(trace_samples.file_of(name), path)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for table, column in _texts(connection):
            for rowid, value in connection.execute(
                f"SELECT rowid, {column} FROM {table}"
            ).fetchall():
                if chance.random() < 0.1:
                    new: Any = chance.choice([1, -5.5, b"\xff\xfe", "", "[", "text", 2**62])
                    if isinstance(value, str) and value.startswith(("{", '[{"')):
                        made = _mutate(json.loads(value), chance)
                        new = json.dumps(made) if chance.random() < 0.9 else value[:20]
                    try:
                        connection.execute(
                            f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (new, rowid)
                        )
                    except sqlite3.Error:
                        continue  # a constraint of theirs
        connection.commit()
        connection.close()
        host = host_registry.get(name)
        for source in host.inside(str(path)):
            _sound(read_trace(host, source))


@pytest.mark.parametrize("name", ["opencode", "hermes"])
@settings(QUICK, max_examples=25)
@given(seed=st.integers(0, 2**32))
@example(seed=5457959)  # the name of a table that SQLite quotes in its error is no UTF-8
def test_a_damaged_database_is_counted(name: str, seed: int) -> None:
    """A database with bytes overwritten or cut off gives what it can, and never an exception."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "copy.db")
        data = bytearray(trace_samples.file_of(name).read_bytes())
        for _ in range(chance.randrange(1, 30)):
            at = chance.randrange(len(data))
            data[at : at + 200] = chance.randbytes(len(data[at : at + 200]))
        path.write_bytes(data[: chance.randrange(1, len(data) + 1)])
        host = host_registry.get(name)
        list(host.inside(str(path)))
        _sound(read_trace(host, Source(name, str(path), trace_samples.REAL[name][2])))


FORMS = Path(__file__).parents[1] / "fixtures" / "trace-forms"
FORM_FILES = sorted(
    str(path.relative_to(FORMS)) for path in FORMS.rglob("*.*") if path.suffix != ".md"
)


def _read_everything(path: Path) -> None:
    """Every reader on the file, whether or not it is the one that would be asked."""
    for host in host_registry.each():
        if isinstance(host, ConversationFiles):
            for source in host.inside(str(path)):
                _sound(read_trace(host, source))


@pytest.mark.parametrize("name", FORM_FILES)
@settings(QUICK, max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_files_of_any_form_are_read_or_counted(name: str, seed: int) -> None:
    """Values of any type in any place of each form: never an exception, nothing without end."""
    chance = random.Random(seed)
    text = (FORMS / name).read_text()
    if name.endswith(".jsonl"):
        made = [json.dumps(_mutate(json.loads(line), chance)) for line in text.splitlines()]
        text = "\n".join(made)
    else:
        text = json.dumps(_mutate(json.loads(text), chance))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x")
        path.write_text(text)
        _read_everything(path)


@pytest.mark.parametrize("name", FORM_FILES)
@settings(QUICK, max_examples=6)
@given(data=st.data())
def test_bytes_of_any_form_are_read_or_counted(name: str, data: st.DataObject) -> None:
    """Bytes flipped, cut out and put in anywhere in a file of each form."""
    content = bytearray((FORMS / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        content[at : at + data.draw(st.integers(0, 400))] = data.draw(st.binary(max_size=20))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(name).name)
        path.write_bytes(content)
        _read_everything(path)


@pytest.mark.parametrize("inner", ['{"messages":', '{"content":', "[", '{"parts":[', '{"a":{"b":'])
def test_nesting_without_end_is_counted(inner: str, tmp_path: Path) -> None:
    """A document deeper than any stack is passed over."""
    (tmp_path / "x.json").write_text('{"role": "user", "content": ' + inner * 100_000)
    (tmp_path / "y.json").write_text("[" * 100_000 + "]" * 100_000)
    for path in tmp_path.iterdir():
        _read_everything(path)


def _call(number: int) -> dict[str, Any]:
    return {"id": str(number), "function": {"name": "bash", "arguments": "{}"}}


MANY = range(1_000)
GO = {"role": "user", "content": "go"}
ANSWERS = [{"role": "tool", "tool_call_id": str(n), "content": "x"} for n in MANY]
AGAIN = [
    message
    for n in MANY
    for message in ({"role": "assistant", "tool_calls": [_call(n)]}, ANSWERS[n]) * 2
]
OPEN = "".join(f"<{tag}>" * len(MANY) for tag in ("tool_call", "think", "tool_response", "tools"))
ATIF = {
    "schema_version": "ATIF-v1.7", "agent": {"name": "x"}, "steps": [
        {"step_id": 1, "source": "agent", "message": "",
         "tool_calls": [{"tool_call_id": str(n), "function_name": "b"} for n in MANY],
         "observation": {"results": [{"source_call_id": str(n)} for n in reversed(MANY)]}}],
}  # fmt: skip
DEEP = [
    {"id": str(n), "run_type": "llm", "trace_id": "t", "parent_run_id": str(n - 1),
     "inputs": {"messages": [{"role": "user", "content": f"p{n}"}]}, "outputs": {"output": "x"}}
    for n in MANY
]  # fmt: skip
LARGE: dict[str, Any] = {
    "ids again": {"messages": [GO, *AGAIN]},
    "results of no call": {"messages": [GO, {"role": "assistant", "content": "x"}, *ANSWERS]},
    "calls at once": {"messages": [
        GO, {"role": "assistant", "tool_calls": [_call(n) for n in MANY]}, *ANSWERS]},
    "tags that stay open": {"conversations": [{"from": role, "value": OPEN}
                                              for role in ("system", "human", "gpt", "tool")]},
    "results in another order": ATIF,
    "spans in spans": DEEP,
    "a long line": {"messages": [GO, {"role": "assistant", "content": "word " * 400_000}]},
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_much_of_anything_is_read(name: str, tmp_path: Path) -> None:
    """A thousand of what is usually one is read by every reader that takes it."""
    path = tmp_path / "x.json"
    path.write_text(json.dumps(LARGE[name]))
    _read_everything(path)


def test_what_is_compressed_is_named(tmp_path: Path) -> None:
    """No reader takes it for text, and a person is told of the file."""
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress((FORMS / "openai.jsonl").read_bytes()))
    _read_everything(path)
    unknown: list[str] = []
    assert host_registry.recognise(str(tmp_path), unknown.append) == []
    assert unknown == [str(path)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "content",
                    "type",
                    "text",
                    "id",
                    "name",
                    "messages",
                    "conversations",
                    "from",
                    "value",
                    "kind",
                    "source",
                    "tool_calls",
                    "function",
                    "arguments",
                    "thought",
                    "action",
                    "observation",
                    "trajectory",
                    "history",
                    "llm_message",
                    "tool_name",
                    "tool_call_id",
                    "session",
                    "prompt",
                    "call",
                    "result",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


@settings(QUICK, max_examples=40)
@given(value=JSON, lines=st.booleans())
def test_importers_take_any_json(value: Any, lines: bool) -> None:
    """The importers read any JSON, as a document or as lines, or find nothing in it."""
    with tempfile.TemporaryDirectory() as folder:
        for ending in (".json", ".jsonl"):
            path = Path(folder, f"x{ending}")
            path.write_text(json.dumps(value) + "\n" + (json.dumps(value) if lines else ""))
            _read_everything(path)
            for name in ("cursor", "tacit"):
                host = host_registry.get(name)
                for source in host.inside(str(path)):
                    _sound(read_trace(host, source))


@settings(QUICK, max_examples=100)
@given(events=st.lists(JSON, max_size=5))
def test_openhands_takes_any_events(events: list[Any]) -> None:
    """A conversation folder with any JSON in its event files is read or counted."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "events").mkdir()
        for number, event in enumerate(events):
            Path(folder, "events", f"event-{number:05}.json").write_text(json.dumps(event))
        host = host_registry.get("openhands")
        for source in host.inside(folder):
            _sound(read_trace(host, source))
