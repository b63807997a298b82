"""Texts as words that can be compared, whatever disguise they were printed in.

Both sides are folded the same way, so it does not matter that the folding is crude.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib.resources import files

from tacit.changes.scan.characters import fold
from tacit.changes.scan.views import views
from tacit.skills.words import STEMMED

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]{0,200}\x07")
_MIXED = re.compile(r"(?=[a-z0-9@$]*[a-z])(?=[a-z0-9@$]*[013457@$])[a-z0-9@$]{2,24}")
_LEET = str.maketrans("013457@$", "oieastas")
_CODED = 20_000
"""Characters up to which a text is also read backwards and by rot13."""
# Words that say nothing about what is asked for.
_STOP = frozenset(
    STEMMED.analyze(
        "a an and any are as at be been but by can could did do does each every for from had has "
        "have here how i if in into is it its just may more most my no nor of on once one or our "
        "out so some such than that the their them then there these they this those to too up use "
        "used using was we were what when where which while who will with would you your all also "
        "always never must should only after before first then please"
    )
)


def plain(text: str) -> str:
    """`text` folded: one alphabet, small, without colours, digits in words as letters."""
    folded = fold(_ANSI.sub("", text))
    return _MIXED.sub(lambda match: match[0].translate(_LEET), folded)


def readings(text: str) -> Iterator[str]:
    """Every way in which a text that a tool printed can be read."""
    text = _ANSI.sub("", text)
    seen: set[str] = set()
    for view in views(text):
        if view.text not in seen:
            seen.add(view.text)
            yield _MIXED.sub(lambda match: match[0].translate(_LEET), view.text)
    if len(text) <= _CODED:
        folded = plain(text)
        yield "\n".join(line[::-1] for line in folded.split("\n"))
        yield codecs.encode(fold(text), "rot13")


def stems(text: str) -> list[str]:
    """The words of folded `text` that tell something, cut to their stems, in order."""
    return [stem for stem in STEMMED.analyze(_PARTS.sub(" ", text)) if stem not in _STOP]


_PARTS = re.compile(r"[_\-/.:=@]+")


def weight(phrase: Iterable[str]) -> float:
    """How much a set of stems tells: what stands in every other skill tells little."""
    often, some = _common()
    return sum(0.25 if stem in often else 0.5 if stem in some else 1.0 for stem in phrase)


@cache
def _common() -> tuple[frozenset[str], frozenset[str]]:
    """The stems of `common.txt`: the very common, then the common."""
    text = files(__package__).joinpath("common.txt").read_text("utf-8")
    _, often, some = re.split(r"^#.*$", text, flags=re.M)
    return frozenset(often.split()), frozenset(some.split())


@lru_cache(maxsize=4096)
def telling(text: str) -> tuple[str, ...]:
    """The distinct telling stems of a text that was not folded yet, in order."""
    return tuple(dict.fromkeys(stems(plain(text))))
