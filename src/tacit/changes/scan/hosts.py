"""Which hosts say nothing about a skill that names them; the lists are in `hosts.toml`."""

import re
import tomllib
from functools import cache
from importlib.resources import files


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


def is_known(command: str) -> bool:
    """Whether every host in `command`, in small letters, is a known source of installers.

    A variable counts as one.
    """
    found = list(_HOST.finditer(command))
    if not found:
        bare = _BARE.search(command)
        return bare is None or _is_known_host(bare["host"], "")
    return all(_is_known_host(match["host"], match["path"] or "") for match in found)


def is_bare(command: str) -> bool:
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


def _is_known_host(host: str, path: str) -> bool:
    if host in _FORGES:
        return path.strip("/").partition("/")[0] in _owners()
    parts = host.split(".")
    return (
        any(".".join(parts[i:]) in _installers() for i in range(len(parts) - 1))
        or host in _installers()
    )
