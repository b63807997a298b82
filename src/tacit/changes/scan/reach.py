"""What a skill reaches for beyond its task: machines, keys, agents' own files, start-up places.

Wording can be varied without end; what an order needs to do harm cannot. A planted order has to
send something somewhere, run something from somewhere, stay, or get at keys. So a learned skill
that reaches for any of these is put before a person, however politely it asks. In a person's own
skill the same is only noted. Which hosts say nothing about a skill that names them is in
`hosts.toml`, the rest in `reach.toml`.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from tacit.changes.scan.disguise import View, line_of


@cache
def _lists() -> dict[str, frozenset[str]]:
    table = tomllib.loads(files(__package__).joinpath("hosts.toml").read_text("utf-8"))
    return {name: frozenset(hosts) for name, hosts in table.items()}


def _installers() -> frozenset[str]:
    return _lists()["installers"]


def _owners() -> frozenset[str]:
    return _lists()["owners"]


def _widely() -> frozenset[str]:
    return _lists()["widely"]


_FORGES = {"raw.githubusercontent.com", "github.com", "gist.githubusercontent.com"}
_HOST = re.compile(r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]{1,120})(?P<path>/[^\s\"')|]{0,200})?")
_BARE = re.compile(r"(?<![\w./-])(?P<host>(?:[a-z0-9-]{1,40}\.){1,4}[a-z]{2,12})(?:/|\b)")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")


def is_known_installer(command: str) -> bool:
    """Whether every host in `command`, in small letters, is a known source of installers.

    A variable counts as one.
    """
    found = list(_HOST.finditer(command))
    if not found:
        bare = _BARE.search(command)
        return bare is None or _is_known_host(bare["host"], "")
    return all(_is_known_host(match["host"], match["path"] or "") for match in found)


def is_bare_address(command: str) -> bool:
    """Whether `command` names a machine by its number, or asks without encryption."""
    return any(
        _ADDRESS.fullmatch(match["host"]) or (match["scheme"] == "http" and "." in match["host"])
        for match in _HOST.finditer(command)
        if match["host"] not in _installers()
    )


def is_widely_known(url: str) -> bool:
    """Whether everybody's skills name the host of `url`, or it is none at all (a variable)."""
    found = _HOST.search(url)
    host = found["host"] if found else url.partition("/")[0]
    parts = host.strip(".").split(".")
    if len(parts) < 2:  # a name inside the network, a variable, localhost
        return True
    names = {".".join(parts[i:]) for i in range(len(parts) - 1)}
    return not names.isdisjoint(_widely() | _installers()) or parts[-2] in (
        "example",
        "domain",
        "company",
    )


def is_in_forge(url: str) -> bool:
    """Whether it names a repository of a forge whose owner is not widely known."""
    host, _, path = url.partition("://")[2 if "://" in url else 0].partition("/")
    return host in _FORGES and "/" in path.strip("/") and not _is_known_host(host, path)


def _is_known_host(host: str, path: str) -> bool:
    if host in _FORGES:
        return path.strip("/").partition("/")[0] in _owners()
    parts = host.split(".")
    return (
        any(".".join(parts[i:]) in _installers() for i in range(len(parts) - 1))
        or host in _installers()
    )


class _Place(NamedTuple):
    kind: str
    what: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]


@cache
def _table() -> tuple[tuple[_Place, ...], dict[str, re.Pattern[str]]]:
    """The places and the patterns of `reach.toml`."""
    table = tomllib.loads(files(__package__).joinpath("reach.toml").read_text("utf-8"))
    places = tuple(
        _Place(row["kind"], row["what"], tuple(row["words"]), re.compile(row["pattern"]))
        for row in table["place"]
    )
    return places, {name: re.compile(text, re.M) for name, text in table["pattern"].items()}


class Reach(NamedTuple):
    """One thing reached for: its kind, where in the folded text, and in words."""

    kind: str
    line: int
    what: str


_URL = re.compile(r"(?:https?|ftp)://[a-z0-9.-]{2,120}")
_COMMENT = re.compile(r"<!--([^>]{0,600})")
_FAR_BELOW = re.compile(r"(?<![\n \t])\n[ \t]{0,4}(?:\n[ \t]{0,4}){20,400}(?=\S)")
_ORDINARY_COMMENT = re.compile(r"\s*(?:toc|prettier|markdownlint|eslint|end|begin|region|todo)\b")


def reaches(readings: list[View]) -> list[Reach]:
    """What a text, in its `readings` by `views`, reaches for; one of each kind, the first."""
    plain = readings[0].text
    found: dict[str, Reach] = {}
    for reach in (*_places(plain), *_machines(plain), *_unseen(plain), *_encoded(readings)):
        found.setdefault(reach.kind, reach)
    return list(found.values())


def _places(text: str) -> Iterator[Reach]:
    for place in _table()[0]:
        match = any(word in text for word in place.words) and place.pattern.search(text)
        if match:
            yield Reach(place.kind, line_of(text, match.start()), place.what)


def _machines(text: str) -> Iterator[Reach]:
    """Hosts that are not widely known, where something is sent there or taken from there."""
    patterns = _table()[1]
    what = "sends to or takes from a host that is not widely known"
    for match in _URL.finditer(text) if "://" in text else ():
        before = text[max(0, match.start() - 160) : match.start()].rpartition("\n")[2]
        if patterns["does"].search(before) and not is_widely_known(match[0]):
            yield Reach("host", line_of(text, match.start()), what)
            break
    for match in patterns["bare"].finditer(text):
        if not is_widely_known(match["host"]):
            yield Reach("host", line_of(text, match.start()), what)
            break
    if number := patterns["address"].search(text):
        yield Reach("address", line_of(text, number.start()), "names a machine by its number")
    if mail := patterns["mail"].search(text):
        yield Reach("mail", line_of(text, mail.start()), "sends mail to a fixed address")


def _unseen(text: str) -> Iterator[Reach]:
    """Text that a reader of the rendered page does not see."""
    patterns = _table()[1]
    marks = (("<!--", _COMMENT), ("]", patterns["title"]), ("<", patterns["style"]))
    what = "holds text that a reader of the rendered page does not see"
    for mark, pattern in marks:
        for match in pattern.finditer(text) if mark in text else ():
            inside = next((part for part in match.groups() if part), "")
            if len(inside.split()) >= 4 and not _ORDINARY_COMMENT.match(inside):
                yield Reach("unseen", line_of(text, match.start()), what)
                break
    if far := _FAR_BELOW.search(text):
        yield Reach("unseen", line_of(text, far.end()), "goes on far below an empty stretch")


def _encoded(readings: list[View]) -> Iterator[Reach]:
    for view in readings:
        if view.how in ("base64", "hexadecimal", "percent-encoded") and _is_prose(view.text):
            yield Reach("encoded", view.line, f"holds text that is encoded ({view.how})")
            return


def _is_prose(text: str) -> bool:
    """Whether `text` has four words or more, as a sentence has and a key or a path has not."""
    return len(_WORDS.findall(text)) >= 4


_WORDS = re.compile(r"(?<![\w/])[a-z]{2,20}(?=[\s.,;:!?])")
