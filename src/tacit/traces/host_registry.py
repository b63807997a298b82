"""Which hosts there are: the built-in ones, and those that other packages bring.

A package adds a host by an entry point in the group `tacit.hosts` that names a `Host`, or
something without parameters that makes one. One that does not load is reported, not fatal.
"""

import os
from collections.abc import Iterator
from importlib import import_module

from tacit.base.errors import NotFound
from tacit.traces.host import Host, Source

GROUP = "tacit.hosts"

# In the order in which they are asked whether a file is theirs: the particular before the general.
BUILT_IN = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "qwen": "qwen",
    "copilot": "copilot",
    "opencode": "opencode",
    "pi": "pi",
    "hermes": "hermes",
    "tacit": "tacit",
    "openhands": "openhands",
    "swe-agent": "conversation_files:SWE_AGENT",
    "cursor": "cursor",
    "sharegpt": "conversation_files:SHAREGPT",
    "openai": "conversation_files:OPENAI_MESSAGES",
}


def names() -> list[str]:
    """The names of all hosts, the built-in ones first."""
    return [*BUILT_IN, *(name for name in _others() if name not in BUILT_IN)]


def get(name: str) -> Host:
    """The host called `name`. Raises `NotFound`, also when its package does not load."""
    if name in BUILT_IN:
        module, _, record = BUILT_IN[name].partition(":")
        host: Host = getattr(import_module(f"tacit.traces.hosts.{module}"), record or "host")
        return host
    entry = _others().get(name)
    if entry is None:
        raise NotFound(f"there is no host '{name}'", f"known: {', '.join(names())}")
    try:
        found = entry.load()
        made = found() if isinstance(found, type) or not isinstance(found, Host) else found
    except Exception as error:  # a boundary: it is somebody else's package
        raise NotFound(
            f"the host '{name}' of {_package(entry)} does not load: {error}",
            f"mend or remove that package: pip uninstall {_package(entry)}",
        ) from error
    if not isinstance(made, Host):
        raise NotFound(
            f"the entry point '{name}' of {_package(entry)} does not give a host",
            "it must have what tacit.traces.host.Host lists",
        )
    return made


def each() -> Iterator[Host]:
    """Every host that loads."""
    for name in names():
        try:
            yield get(name)
        except NotFound:
            continue


def problems() -> list[str]:
    """What is wrong with hosts from other packages, a line each."""
    found = []
    for name in _others():
        try:
            get(name)
        except NotFound as error:
            found.append(error.message)
    return found


def recognise(path: str) -> list[Source]:
    """The sessions in the file or folder `path`, by whichever hosts know its form.

    A file belongs to the first host that claims it. Raises `NotFound` when there is no such path.
    """
    if not os.path.exists(path):
        raise NotFound(f"there is no {path}", "check the path")
    found: dict[str, list[Source]] = {}
    for host in each():
        mine = [source for source in host.inside(path) if _taken_by(found, source) is None]
        if mine:
            found[host.name] = mine
    return [source for sources in found.values() for source in sources]


def _taken_by(found: dict[str, list[Source]], source: Source) -> str | None:
    for name, sources in found.items():
        if any(source.path == other.path for other in sources):
            return name
    return None


def _others() -> dict[str, "EntryPoint"]:
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _package(entry: "EntryPoint") -> str:
    return entry.dist.name if entry.dist is not None else entry.value


TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
