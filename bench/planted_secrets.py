"""How many secrets redaction finds, and how often it takes something else for one.

Templates of what people paste and programs print, by kind, and look-alikes: each is filled at run
time by a seeded generator, so no file holds anything that looks like a live key. One half of the
templates, by a hash of each, is for tuning; the other is held out: nobody looks at its misses. A
second set was all used for tuning, a third, `fresh`, was written when the rules were done, a
fourth, `later`, by another hand after that, and others, `tenth`, `eleventh` and `twelfth`, by hands
that knew no rules.

    python bench/planted_secrets.py              the table
    python bench/planted_secrets.py --misses     what was missed or touched in the tuning half
    python bench/planted_secrets.py --write      the table into docs/security.md
"""

import argparse
import base64
import math
import random
import re
import string
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tacit.base import secrets

TEMPLATES = Path(__file__).with_name("planted_secrets.txt")
PAGE = Path(__file__).parents[1] / "docs" / "security.md"
EACH = 5
"""So often each template with blanks is filled."""

_LETTERS, _DIGITS = string.ascii_letters, string.digits
_SETS = {
    "A": _LETTERS + _DIGITS,
    "U": string.ascii_uppercase + "234567",
    "W": _LETTERS + _DIGITS + "_-",
    "B": _LETTERS + _DIGITS + "+/",
    "x": "0123456789abcdef",
    "X": "0123456789ABCDEF",
    "d": _DIGITS,
    "l": string.ascii_lowercase + _DIGITS,
    "C": string.ascii_uppercase + _DIGITS,
    "a": "abcdefghijklmnopqrstuvwxyz234567",
}
_NOUNS = (
    "kelp", "harbor", "walnut", "Otter", "lantern", "Marble", "cinder", "Juniper", "saddle",
    "Falcon", "pebble", "Tundra", "willow", "Copper", "meadow", "Riddle", "summit", "Velvet",
    "anchor", "Ginger",
)  # fmt: skip


def _password(rng: random.Random) -> str:
    """A password as people and their managers make them."""
    signs, noun = "!#%*+=?@^~-_.", lambda: rng.choice(_NOUNS)
    kind = rng.randrange(5)
    if kind == 0:  # of a manager
        drawn = rng.choices(_LETTERS + _DIGITS + signs, k=rng.randint(10, 20))
        return "r" + "".join(drawn) + rng.choice("B7K") + rng.choice(_DIGITS) + rng.choice(_LETTERS)
    if kind == 1:
        return f"{noun().title()}{rng.choice('!#*?')}{rng.randint(10, 999)}{noun()[:4]}"
    if kind == 2:
        return f"{noun().title()}-{noun()}-{rng.randint(10, 99)}"
    if kind == 3:  # letters and digits only
        return "k" + "".join(rng.choices(_LETTERS + _DIGITS, k=rng.randint(11, 18))) + "7Qd"
    return f"{noun().title()}{rng.randint(1960, 2026)}{rng.choice('!?#*')}"


def _basic(rng: random.Random) -> str:
    return base64.b64encode(f"{rng.choice(_NOUNS)}:{_password(rng)}".encode()).decode()


def _pem(rng: random.Random) -> str:
    body = "\n".join("".join(rng.choices(_SETS["B"], k=64)) for _ in range(6))
    return f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"


_MADE: dict[str, Callable[[random.Random], str]] = {
    "password": _password,
    "basic": _basic,
    "pem": _pem,
    "pem64": lambda rng: base64.b64encode(_pem(rng).encode()).decode(),
    "uuid": lambda rng: "-".join("".join(rng.choices(_SETS["x"], k=k)) for k in (8, 4, 4, 4, 12)),
    "noun": lambda rng: rng.choice(_NOUNS).lower(),
    "Noun": lambda rng: rng.choice(_NOUNS).title(),
}
_FILL = re.compile(r"\{(?:([A-Za-z])(\d+)|(" + "|".join(_MADE) + r"))\}")


class Planted(NamedTuple):
    """One text, and the secret in it, which is empty in a look-alike."""

    kind: str
    half: str
    text: str
    secret: str


def planted() -> Iterator[Planted]:
    """All texts of both halves."""
    kind = given = ""
    for line in TEMPLATES.read_text("utf-8").splitlines():
        if line.startswith("## "):
            kind, _, given = line[3:].partition(" | ")
        elif line and not line.startswith("# "):
            half = given or ("held out" if zlib.crc32(line.encode()) % 2 else "tuning")
            for number in range(EACH if _FILL.search(line) else 1):
                yield _filled(kind, half, line, random.Random(f"{line}{number}"))


def _filled(kind: str, half: str, template: str, rng: random.Random) -> Planted:
    """`template` with its blanks filled; the secret is what «…» enclose."""

    def fill(match: re.Match[str]) -> str:
        if match[1]:
            return "".join(rng.choices(_SETS[match[1]], k=int(match[2])))
        return _MADE[match[3]](rng)

    text = _FILL.sub(fill, template.replace("⏎", "\n"))
    secret = re.search("«(.*?)»", text, re.DOTALL)
    return Planted(kind, half, text.replace("«", "").replace("»", ""), secret[1] if secret else "")


def is_found(case: Planted) -> bool:
    """Whether nothing of the secret is left that would help anybody."""
    left = re.sub(r"\[redacted: [a-z0-9-]+\]", "", secrets.redact(case.text).text)
    parts = {case.secret[at : at + 6] for at in range(0, max(1, len(case.secret) - 5), 3)}
    beside = case.text.replace(case.secret, " ")
    return not any(part in left for part in parts if part not in beside)


def is_touched(case: Planted) -> bool:
    return secrets.redact(case.text).text != case.text


def interval(hits: int, number: int) -> tuple[float, float]:
    """Wilson's interval, 95 of 100."""
    z, share = 1.96, hits / number
    middle = share + z * z / (2 * number)
    width = z * math.sqrt(share * (1 - share) / number + z * z / (4 * number * number))
    whole = 1 + z * z / number
    return max(0.0, (middle - width) / whole), min(1.0, (middle + width) / whole)


def table() -> str:
    """The rates by kind and half."""
    counts: dict[tuple[str, str], list[int]] = {}
    for case in planted():
        hit = is_found(case) if case.secret else is_touched(case)
        row = counts.setdefault((case.kind, case.half), [0, 0])
        row[0] += hit
        row[1] += 1
    lines = [
        "| texts | half | number | taken out | of 100 (95 % interval) |",
        "|---|---|---|---|---|",
    ]
    for (kind, half), (hits, number) in sorted(counts.items()):
        low, high = interval(hits, number)
        rate = f"{100 * hits / number:.1f} ({100 * low:.1f}–{100 * high:.1f})"
        lines.append(f"| {kind} | {half} | {number} | {hits} | {rate} |")
    return "\n".join(lines)


def misses() -> None:
    for case in planted():
        if case.half == "tuning" and not (is_found(case) if case.secret else not is_touched(case)):
            print(f"{case.kind}: {case.text!r}\n    {secrets.redact(case.text).text!r}")


_BEGIN, _END = "<!-- planted secrets -->\n", "\n<!-- end -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.misses:
        misses()
    elif options.write:
        before, _, rest = PAGE.read_text("utf-8").partition(_BEGIN)
        PAGE.write_text(before + _BEGIN + table() + _END + rest.partition(_END)[2], "utf-8")
    else:
        print(table())


if __name__ == "__main__":
    main()
