"""Regular expressions that are compiled when they are first used, and looked for where they may be.

Compiling is most of what it costs to import a module full of expressions, and one command needs
few of those in the modules that it loads. Of long lists of alternatives few can match in any one
text, and which these are can be told by the words that each must have. Many words are looked for at
once.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from re import _parser  # type: ignore[attr-defined]
from typing import Any, AnyStr, cast

_PUBLIC = tuple(name for name in dir(re.Pattern) if not name.startswith("_"))


class _Pattern:
    """Has what a compiled expression has. Without `__getattr__`, which would slow each use."""


class _LatePattern(_Pattern):
    """Becomes a `_Pattern` when anything of it is asked for."""

    def __init__(self, source: Any, flags: int) -> None:
        self._given = (source, flags)

    def __getattr__(self, name: str) -> Any:
        if name not in _PUBLIC:
            raise AttributeError(name)
        compiled = re.compile(*self._given)
        for known in _PUBLIC:
            setattr(self, known, getattr(compiled, known))
        self.__class__ = _Pattern  # type: ignore[assignment]
        return getattr(compiled, name)


def late_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, but later. An error in `source` shows at the first use.

    The `re` of a match is the compiled expression, so compare their `pattern`, not the two.
    """
    return cast(re.Pattern[AnyStr], _LatePattern(source, flags))


class Alternatives:
    """An expression `a|b|…`, searched for as `re` does, but sooner where nothing matches.

    An alternative is tried only where a word stands that all its matches have, whatever the case.
    Groups are numbered in each by itself.
    """

    def __init__(self, source: str, flags: int = 0) -> None:
        self.pattern, self.flags = source, flags

    @cached_property
    def _parts(self) -> list[re.Pattern[str]]:
        return [late_pattern(part, self.flags) for part in _split(self.pattern)]

    @cached_property
    def _words(self) -> dict[str, list[int]]:
        """The words, each with the alternatives that may match where it stands."""
        words: dict[str, list[int]] = {}
        for at, part in enumerate(_split(self.pattern)):
            for word in _needed(_parser.parse(part, self.flags)):
                words.setdefault(word, []).append(at)
        return words

    @cached_property
    def _literals(self) -> "Literals":
        return Literals(word for word in self._words if word)

    def search(self, text: str) -> re.Match[str] | None:
        """The first match; of several at one place that of the first alternative."""
        low = (text if text.isascii() else _as_ascii(text) + _BEYOND).lower()
        near = {at for word in self._literals.words_in(low) for at in self._words[word]}
        near.update(self._words.get("", ()))
        if not near:
            return None
        found = filter(None, (self._parts[at].search(text) for at in sorted(near)))
        return min(found, key=re.Match.start, default=None)


class Literals:
    """Words that are looked for all at once, wherever they stand, in one pass over a text."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(dict.fromkeys(words))

    @cached_property
    def hits(self) -> Callable[[bytes], list[tuple[int, int, int]]]:
        """Which word, by its place in `words`, stands where in bytes, from here to there.

        One that overlaps another, or itself, is told of too.
        """
        encoded = [word.encode() for word in self.words]
        try:
            from ahocorasick_rs import BytesAhoCorasick, Implementation
        except ImportError:  # where there is none: slow, and the same
            return lambda text: [
                (which, match.start(), match.start() + len(word))
                for which, word in enumerate(encoded)
                if word in text
                for match in re.finditer(b"(?=%s)" % re.escape(word), text)
            ]
        kind = Implementation.DFA if len(encoded) < _MANY else Implementation.ContiguousNFA
        automaton = BytesAhoCorasick(encoded, implementation=kind)
        return lambda text: automaton.find_matches_as_indexes(text, overlapping=True)

    def words_in(self, text: str) -> list[str]:
        """The words that stand in `text`."""
        if len(self.words) <= _FEW:
            return [word for word in self.words if word in text]
        words = self.words
        found = self.hits(text.encode(errors="replace"))
        return [words[which] for which in {which for which, _, _ in found}] if found else []

    def places(self, text: bytes) -> dict[str, list[int]]:
        """Where each of the words that stand in `text` does, in order; its overlaps with itself are
        left out."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        words = self.words
        for which, start, _ in self.hits(text):
            found[words[which]].append(start)
        for word in found.keys() & self._folded:
            found[word] = [match.start() for match in re.finditer(re.escape(word).encode(), text)]
        return found

    @cached_property
    def _folded(self) -> frozenset[str]:
        """The words that may overlap themselves."""
        return frozenset(
            w for w in self.words if any(w.startswith(w[i:]) for i in range(1, len(w)))
        )


_FEW = 8
"""Words up to which one look for each is quicker."""
_MANY = 2_000
"""Words from which on the quickest search takes long to be made ready."""


def _as_ascii(text: str) -> str:
    """`text`, with ASCII letters for what matches them where case does not count, but has another
    lower case."""
    return text.replace("\u0130", "i").replace("\u0131", "i").replace("\u017f", "s")


_BEYOND = "\u2588" * 4
"""Stands for any characters beyond ASCII: what else matches those is not looked into."""
_TOKENS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[(|)]", re.DOTALL)


def _split(source: str) -> Iterator[str]:
    """The alternatives of an expression without comments."""
    depth = start = 0
    for token in _TOKENS.finditer(source):
        depth += (token[0] == "(") - (token[0] == ")")
        if token[0] == "|" and not depth:
            yield source[start : token.start()]
            start = token.end()
    yield source[start:]


def _needed(parsed: Iterable[tuple[Any, Any]]) -> frozenset[str]:
    """Words in small letters of which one at least stands in all that an expression matches; the
    empty one stands everywhere."""
    found: list[frozenset[str]] = []
    word = ""
    for kind, value in (*_flat(parsed), (_parser.ANY, None)):
        if kind is _parser.LITERAL and value < 128:
            word += chr(value).lower()
        elif kind not in (_parser.AT, _parser.ASSERT_NOT):  # those take no room
            found += (frozenset({word}), _needed_by(kind, value))
            word = ""
    return max(found, key=lambda words: min(map(len, words)))


def _needed_by(kind: Any, value: Any) -> frozenset[str]:
    """The same of one part of an expression."""
    if kind is _parser.LITERAL:
        return frozenset({"" if value in _LIKE_ASCII else _BEYOND})
    if kind is _parser.BRANCH:
        return frozenset[str]().union(*map(_needed, value[1]))
    if kind in _REPEATS and value[0]:
        return _needed(value[2])
    return frozenset({""})


_LIKE_ASCII = {0x130, 0x131, 0x17F, 0x212A}
_REPEATS = (_parser.MAX_REPEAT, _parser.MIN_REPEAT)


def _flat(parsed: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """The parts of an expression, those of its groups among them."""
    for kind, value in parsed:
        if kind is _parser.SUBPATTERN:
            yield from _flat(value[3])
        else:
            yield kind, value
