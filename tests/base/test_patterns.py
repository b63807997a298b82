import copy
import random
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tacit
from tacit.base.patterns import Alternatives, Literals, late_pattern

SOURCES = Path(tacit.__file__).parent
TESTS = Path(__file__).parents[1]


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
    assert sum(bool(late.pattern) for late in _ours()) > 80


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        # The first place counts, and at one place the first alternative.
        ("beta|alpha|alphabet", ["an alphabet, beta", "beta", "gamma"]),
        (r"\b(?:never|always)\s+\w+|\d+|[#]\d", ["Never  mind", "it is 12", "#1", "nevermind"]),
        (
            r"(?:a|bc)+d|x(?!y)z|(?<=q)rs|u{0,2}v",
            ["bcad", "aad", "xz", "xyz", "qrs", "prs", "v", ""],
        ),
        # What matches an ASCII letter in any case, and what no ASCII letter matches.
        ("kind|stil|ist", ["\u212aIND", "\u017fTIL", "\u0130ST", "\u0131st", "KIND"]),
        ("préfère|всегда|\u017fo|\u212aa", ["je Préfère", "ВСЕГДА", "so", "ka", "prefere", "also"]),
        (r"\[x|y\]|[]|(]z|a\|b", ["[X", "y]", "|z", "]z", "(z", "a|b", "a"]),
    ],
)
def test_alternatives_match_as_one_expression_does(source: str, texts: list[str]) -> None:
    """The same place and the same words, whatever stands before, in between and in which case."""
    for flags in (re.IGNORECASE, 0):
        ours, plain = Alternatives(source, flags), re.compile(source, flags)
        for text in (*texts, " - ".join(texts), " ".join(reversed(texts)).upper()):
            assert _shown(ours.search(text)) == _shown(plain.search(text)), (source, text)


def test_alternatives_are_compiled_where_a_word_of_them_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of which no word stands in any text never are."""
    compiled = []
    real = re.compile
    monkeypatch.setattr(re, "compile", lambda *given: compiled.append(given[0]) or real(*given))
    ours = Alternatives(r"\bnever\s+\w+|\balways\s+\w+")
    assert ours.search("now and then") is None
    assert compiled == []
    assert ours.search("as always it is")
    assert compiled == [r"\balways\s+\w+"]


def test_each_of_our_alternatives_matches_as_one_expression_does() -> None:
    """In sentences and outputs of our own tests, chosen anew each time."""
    files = (path for layer in ("traces", "learn") for path in (TESTS / layer).glob("test_*.py"))
    lines = [line.strip() for path in files for line in path.read_text("utf-8").splitlines()]
    chosen = random.sample(lines, 60)
    texts = [*chosen, *map(str.upper, chosen[:20]), "\n".join(chosen)]
    every = [one for one in _ours() if isinstance(one, Alternatives)]
    assert len(every) > 30
    for ours in every:
        plain = re.compile(ours.pattern, ours.flags)
        for text in texts:
            assert _shown(ours.search(text)) == _shown(plain.search(text)), (ours.pattern, text)


@pytest.mark.parametrize("missing", [False, True])
def test_words_are_found_all_at_once_wherever_they_stand(
    monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    """Those in others and over each other too, as `find` would, with the library and without."""
    if missing:
        monkeypatch.setitem(sys.modules, "ahocorasick_rs", None)
    words = ("pass", "password", "word: ", "sword", "aa", "aba", "ключ", "x")
    rng = random.Random(3)
    for size in range(60):
        text = "".join(rng.choices((*words, "a", "b", " ", "ss", "к"), k=size)).encode()
        places = {}
        for word in words:
            at, every = -1, []
            while (at := text.find(word.encode(), at + (len(word.encode()) if every else 1))) >= 0:
                every.append(at)
            places |= {word: every} if every else {}
        assert Literals(words).places(text) == places
        for some in (words, (*words, "zz", "yy")):  # few, and many
            assert sorted(Literals(some).words_in(text.decode())) == sorted(places)


def _shown(found: re.Match[str] | None) -> object:
    return found and (found.span(), found[0])


def _ours() -> list[re.Pattern[str] | Alternatives]:
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        if "base.patterns import" in path.read_text(encoding="utf-8"):
            name = ".".join(("tacit", *path.relative_to(SOURCES).with_suffix("").parts))
            import_module(name)
            found += [one for value in vars(sys.modules[name]).values() for one in _patterns(value)]
    return found


def _patterns(value: object) -> list[re.Pattern[str] | Alternatives]:
    if isinstance(value, type | Literals):
        return []
    if type(value).__module__ == "tacit.base.patterns":
        return [value]  # type: ignore[list-item]
    if isinstance(value, list | tuple):
        return [late for part in value for late in _patterns(part)]
    if isinstance(value, dict):
        return _patterns(list(value.values()))
    return []
