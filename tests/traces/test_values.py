"""Values whose type nobody promised."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.traces import values

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(value=ANY)
def test_nothing_raises(value: Any) -> None:
    """Whatever JSON holds, each reader gives a value of its own type."""
    assert isinstance(values.text(value), str)
    assert isinstance(values.string(value), str)
    assert isinstance(values.repository(value), str)
    assert isinstance(values.mapping(value), dict)
    assert isinstance(values.objects(value), list)
    assert isinstance(values.arguments(value), dict)
    assert 0 <= values.count(value) <= 2**53
    assert values.amount(value) is None or values.amount(value) >= 0
    moment = values.when(value)
    assert moment is None or moment.tzinfo is UTC


@pytest.mark.parametrize(
    "value",
    ["2026-11-15T06:43:23Z", "2026-11-15T08:43:23+02:00", "2026-11-15T06:43:23", 1794725003,
     1794725003000, 1794725003.0],
)  # fmt: skip
def test_moments_in_every_form(value: Any) -> None:
    """ISO text with any zone or none, seconds and milliseconds are the same moment."""
    assert values.when(value) == datetime(2026, 11, 15, 6, 43, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Exit code 1\nTraceback", 1), ("x\nExit Code: 127\nSignal: (none)", 127),
        ("Process exited with code 2\nOutput:", 2), ("<shellId: 0 completed with exit code 0>", 0),
        ("Command exited with code 1", 1), ("exit status 3", 3), ("exit_code=4", 4),
        ("exit code 1, then exit code 0", 0), ("all is well", None), ("the exit is left", None),
    ],
)  # fmt: skip
def test_exit_codes_in_words(text: str, code: int | None) -> None:
    """The ways in which hosts say how a command ended."""
    assert values.exit_code(text) == code


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ("Traceback\n  File x\nKeyError: 'A'\n", "KeyError: 'A'"),
        ("boom\n\nCommand exited with code 1", "boom"),
        ("Exit code 1", "exit code 1"),
        ("", "exit code 1"),
    ],
)
def test_why_a_call_failed(result: str, line: str) -> None:
    """The last line that tells something; else the code."""
    assert values.why(result, 1) == line


@pytest.mark.parametrize(
    ("remote", "named"),
    [
        ("https://github.com/Acme/tool.git", "github.com/acme/tool"),
        ("git@github.com:acme/tool.git", "github.com/acme/tool"),
        ("ssh://git@host.example:2222/group/sub/tool/", "host.example/group/sub/tool"),
        ("https://me:word@github.com/acme/tool", "github.com/acme/tool"),
        ("tool", ""),
        ("../tool.git", ""),
        ("/home/a/tool", ""),
        (None, ""),
    ],
)
def test_a_repository_however_it_is_written(remote: Any, named: str) -> None:
    assert values.repository(remote) == named
