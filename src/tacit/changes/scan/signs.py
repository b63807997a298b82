"""The table of signs in `signs.toml`, compiled once when first used."""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_GAP = r"[\s*_>#\"'`,;()-]{1,6}"
# Some words of one sentence: a full stop inside a name (`.env`) is none, nor is a wrapped line,
# but an empty line, a heading, an item of a list, a table and a fence begin something new.
_SOME = r"(?:[^.!?\n]|\.(?=\w)|\n(?![ \t]{0,8}(?:\n|```|[#|*-]|[0-9]{1,2}\.))){0,90}?"


class Sign(NamedTuple):
    """One row of the table."""

    name: str
    points: float
    words: frozenset[str]
    pattern: re.Pattern[str]
    why: str
    spoken: bool


@cache
def signs() -> tuple[Sign, ...]:
    """Every row, in the order of the file."""
    table = tomllib.loads(files(__package__).joinpath("signs.toml").read_text("utf-8"))
    groups = {f"{{{name}}}": text for name, text in table["group"].items()}
    return tuple(
        Sign(
            row["name"],
            float(row["points"]),
            frozenset(row["words"].split()),
            re.compile(
                "|".join(_expand(text, groups, i) for i, text in enumerate(row["patterns"])), re.M
            ),
            row["why"],
            row["spoken"],
        )
        for row in table["sign"]
    )


@cache
def anchor_words() -> frozenset[str]:
    """Every word near which some sign may stand."""
    return frozenset().union(*(sign.words for sign in signs()))


# Escapes and sets of characters stay as they are; `~/` is a folder, not a gap.
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|~/|[ ~]")


def _expand(pattern: str, groups: dict[str, str], index: int) -> str:
    for name, text in groups.items():
        pattern = pattern.replace(name, text)
    # Each pattern of a row may name its URL; names must differ within one expression.
    pattern = pattern.replace("(?P<url>", f"(?P<url{index}>")
    return _TOKEN.sub(lambda token: {" ": _GAP, "~": _SOME}.get(token[0], token[0]), pattern)
