import copy
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tacit
from tacit.base.patterns import late_pattern

SOURCES = Path(tacit.__file__).parent


def test_it_does_what_a_compiled_expression_does() -> None:
    """Methods, the expression itself and its flags; for text and for bytes."""
    late = late_pattern(r"(?P<word>[a-z]+)-(\d)", re.IGNORECASE)
    plain = re.compile(r"(?P<word>[a-z]+)-(\d)", re.IGNORECASE)
    text = "Ab-1 cd-2"
    assert late.findall(text) == plain.findall(text)
    assert late.sub(r"\2", text) == plain.sub(r"\2", text)
    assert (late.pattern, late.flags, late.groupindex) == (
        plain.pattern,
        plain.flags,
        plain.groupindex,
    )
    assert late_pattern(rb"\d+").search(b"a 12")[0] == b"12"


def test_it_is_compiled_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when it is made, and once."""
    compiled = []
    real = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given) or real(*given))
    late = late_pattern("a+")
    assert compiled == []
    assert late.match("aa")
    assert late.search("ba")
    assert compiled == [("a+", 0)]


def test_what_an_expression_has_not_it_has_not() -> None:
    """Also for those who ask whether it can be copied."""
    late = late_pattern("a+")
    with pytest.raises(AttributeError):
        _ = late.nonsense  # type: ignore[attr-defined]
    assert copy.copy(late).match("aa")


def test_each_of_ours_is_an_expression() -> None:
    """An error in one would otherwise show in the middle of work."""
    found = 0
    for path in sorted(SOURCES.rglob("*.py")):
        if "late_pattern(" not in path.read_text(encoding="utf-8") or path.stem == "patterns":
            continue
        name = ".".join(("tacit", *path.relative_to(SOURCES).with_suffix("").parts))
        import_module(name)
        for value in vars(sys.modules[name]).values():
            for late in _patterns(value):
                assert late.pattern
                found += 1
    assert found > 80


def _patterns(value: object) -> list[re.Pattern[str]]:
    if type(value).__module__ == "tacit.base.patterns":
        return [value]  # type: ignore[list-item]
    if isinstance(value, list | tuple):
        return [late for part in value for late in _patterns(part)]
    if isinstance(value, dict):
        return _patterns(list(value.values()))
    return []
