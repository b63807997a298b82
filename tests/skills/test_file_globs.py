"""Patterns of files."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.skills.file_globs import matches_glob


@pytest.mark.parametrize(
    ("path", "pattern", "fits"),
    [
        ("a.py", "*.py", True),
        ("deep/down/a.py", "*.py", True),
        ("deep/a.py", "./*.py", True),
        ("./a.py", "a.py", True),
        ("a.pyc", "*.py", False),
        ("src/a.py", "src/*.py", True),
        ("src/b/a.py", "src/*.py", False),
        ("other/src/a.py", "src/*.py", False),
        ("src/a.py", "src/**/*.py", True),
        ("src/b/c/a.py", "src/**/*.py", True),
        ("a.py", "**/*.py", True),
        ("x/y/a.py", "**/*.py", True),
        ("src/a/b", "src/**", True),
        ("src", "src/**", False),
        ("src/a/b", "src/", True),
        ("srcs/a", "src/", False),
        ("a/b/c/d", "a/**/d", True),
        ("a/d", "a/**/d", True),
        ("a/x/d/y", "a/**/d", False),
        ("a.ts", "*.{ts,tsx}", True),
        ("x/a.tsx", "*.{ts,tsx}", True),
        ("a.js", "*.{ts,tsx}", False),
        ("src/a.ts", "{src,lib}/**/*.{ts,js}", True),
        ("test/a.ts", "{src,lib}/**/*.{ts,js}", False),
        ("ace", "a{b,c{d,e}}", True),
        ("a{b}", "a{b}", True),
        ("a{b", "a{b", True),
        ("ab", "a{b,c", False),
        ("a1", "a[0-9]", True),
        ("ab", "a[!0-9]", True),
        ("a1", "a[!0-9]", False),
        ("a[", "a[", True),
        ("axb", "a?b", True),
        ("a/b", "a?b", False),
        ("a.b+c(d)", "a.b+c(d)", True),
        ("axb", "a.b", False),
        ("src\\a.py", "src/*.py", True),
        ("数据/表.sql", "数据/*.sql", True),
        (".env", "*", True),
        ("a\nb", "a*b", True),
        ("", "*", True),
        ("a", "", False),
        ("Dockerfile", "dockerfile", False),
    ],
)
def test_patterns(path: str, pattern: str, fits: bool) -> None:
    """As in ignore files and editors."""
    assert matches_glob(path, pattern) is fits


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("a/" * 60 + "b", "**/" * 60 + "zzz"),
        ("a/" * 60 + "b", "**/a/" * 25 + "zzz"),
        ("a" * 2_000, "*a" * 200 + "b"),
        ("a" * 2_000, "**a" * 200 + "b"),
        ("a", "{a,b}" * 90),
        ("a", "{a,b}" * 5_000),
        ("a", "{" * 400 + "a,b"),
        ("a", "{" * 200 + "a,b" + "}" * 200),
        ("a", "[" * 20_000),
        ("a", "{a," * 100 + "}" * 100),
    ],
)
def test_hostile_patterns_take_no_time(path: str, pattern: str) -> None:
    """No pattern makes matching explode: each of these would take years by backtracking."""
    start = time.monotonic()
    matches_glob(path, pattern)
    assert time.monotonic() - start < 120


@given(st.text(max_size=20), st.text(alphabet="ab/*?[]{},!-.^\\", max_size=20))
@settings(deadline=None)
def test_any_pattern_is_survived(path: str, pattern: str) -> None:
    """Odd patterns never raise."""
    assert matches_glob(path, pattern) in (True, False)


@given(st.lists(st.text(alphabet="abc.", min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_path_fits_itself_and_everything(parts: list[str]) -> None:
    """A path without special characters fits itself, `**` and `**/*`."""
    path = "/".join(parts).removeprefix("./")
    assert matches_glob(path, path)
    assert matches_glob(path, "**")
    assert matches_glob(path, "**/*")
