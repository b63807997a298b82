"""Which hosts there are: the built-in ones, and those that other packages or this process bring.

A built-in host is a module in `hosts/` with its record in `HOSTS`; the folder is the list. A
package adds a host by an entry point in the group `tacit.hosts` that names a `Host`, or something
without parameters that makes one. One that does not load is reported, not fatal.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tacit.base.errors import NotFound
from tacit.traces import hosts
from tacit.traces.conversation_files import ConversationFiles, looks_like_records
from tacit.traces.host import Host, JsonlHost, Source, plain_files, unpacking_program
from tacit.traces.host_folders import HostFolders

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tacit.hosts"

_registered: dict[str, Host] = {}


def register_host(host: type[Host]) -> type[Host]:
    """Have this process know a host as if a package had brought it. A class decorator."""
    made = host()
    _registered[made.name] = made
    return host


def names() -> list[str]:
    """The names of all hosts, the built-in ones first."""
    known = _built_in() | _registered
    return [*known, *(name for name in _others() if name not in known)]


def get(name: str) -> Host:
    """The host called `name`. Raises `NotFound`, also when its package does not load."""
    module = name.replace("-", "_")
    found = _hosts_of(module) if module in _modules() else ()
    for host in found:
        if host.name == name:
            return host
    if name in (known := _registered | _built_in()):
        return known[name]
    entry = _others().get(name)
    if entry is None:
        raise NotFound(f"there is no host '{name}'", f"known: {', '.join(names())}")
    return _load(entry)


def each() -> Iterator[Host]:
    """Every host that loads, by precedence; of equals, the built-in ones first."""
    known = _registered | _built_in()
    found = list(known.values())
    for name, entry in _others().items():
        if name not in known:
            try:
                found.append(_load(entry))
            except NotFound:
                continue
    yield from sorted(found, key=lambda host: host.precedence)


def problems() -> list[str]:
    """What is wrong with hosts from other packages, a line each."""
    found = []
    for name in _others():
        try:
            get(name)
        except NotFound as error:
            found.append(error.message)
    return found


def recognise(path: str, unknown: Callable[[str], None] = lambda file: None) -> list[Source]:
    """The sessions in the file or folder `path`, by whichever hosts know its form.

    A file belongs to the first host that claims it; `unknown` is told of those that look like
    sessions and that nobody claims. Raises `NotFound` when there is no such path.
    """
    if not os.path.exists(path):
        raise NotFound(f"there is no {path}", "check the path")
    found: list[Source] = []
    by_file: list[JsonlHost | ConversationFiles] = []
    for host in each():
        if isinstance(host, JsonlHost | ConversationFiles):
            by_file.append(host)
        if isinstance(host, ConversationFiles):
            found += host.whole_folders(path)
        elif host not in by_file:
            found += host.inside(path)
    taken = {source.path for source in found}
    for file in plain_files(path) if os.path.isdir(path) else (path,):
        if file in taken or os.path.isdir(file) or _lies_in(file, taken):
            continue
        mine = next((some for host in by_file if (some := list(host.inside(file)))), [])
        found += mine
        if not mine and (looks_like_records(file) or unpacking_program(file)):
            unknown(file)
    return [s if is_kept(get(s.host), s.path) else replace(s, handed=True) for s in found]


def is_kept(host: Host, path: str) -> bool:
    """Whether `path` lies where that agent keeps this user's sessions."""
    path = os.path.realpath(path)
    homes = (os.path.realpath(home) for home in host.homes())
    return any(os.path.commonpath((path, home)) == home for home in homes)


def _lies_in(file: str, taken: set[str]) -> bool:
    """Whether a folder above `file` is a session as a whole, two levels up at most."""
    above = os.path.dirname(file)
    return above in taken or os.path.dirname(above) in taken


def folders_of_hosts() -> tuple[list[HostFolders], list[str]]:
    """The folders of every tested host, and the files and folders that decide which there are."""
    return _folders_of_hosts(tuple(map(str, sys.path)))


@cache
def _folders_of_hosts(where: tuple[str, ...]) -> tuple[list[HostFolders], list[str]]:
    """The same, where packages are looked for in the folders `where`."""
    found = list(each())
    modules = [sys.modules[type(host).__module__] for host in found]
    decide = [__file__, *hosts.__path__, *filter(_holds_packages, where)]
    decide += [file for module in modules if (file := getattr(module, "__file__", None))]
    known = [
        host.folders() if host.tested else _only_obeyed(host)
        for host in found
        if host.obeys or (host.tested and (host.skills.user or host.secrets))
    ]
    return known, list(dict.fromkeys(decide))


def _only_obeyed(host: Host) -> HostFolders:
    """Of a host that was not tried: what no command may write, and no folder to read skills in."""
    return HostFolders(host.name, host.title, (), (), obeys=host.obeys)


def _holds_packages(folder: str) -> bool:
    """Whether packages are, or may come to be, installed in a folder of `sys.path`."""
    if os.path.basename(folder) in ("site-packages", "dist-packages"):
        return True
    try:
        return any(name.endswith((".dist-info", ".egg-info")) for name in os.listdir(folder))
    except OSError:
        return os.path.isfile(folder)  # an archive


@cache
def _modules() -> tuple[str, ...]:
    return tuple(module.name for module in iter_modules(hosts.__path__))


@cache
def _built_in() -> dict[str, Host]:
    """The built-in hosts by name, in the order of their precedence."""
    found = [host for module in _modules() for host in _hosts_of(module)]
    return {host.name: host for host in sorted(found, key=lambda host: host.precedence)}


def _hosts_of(module: str) -> tuple[Host, ...]:
    found: tuple[Host, ...] = import_module(f"{hosts.__name__}.{module}").HOSTS
    return found


def _others() -> dict[str, "EntryPoint"]:
    if not any(map(_names_hosts, sys.path)):
        return {}

    from importlib.metadata import entry_points  # sixty modules, and hardly ever needed

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _names_hosts(folder: str) -> bool:
    """Whether a package in a folder of `sys.path` may bring hosts of its own."""
    group = f"[{GROUP}]".encode()
    try:
        with os.scandir(folder or ".") as found:
            packages = [e.path for e in found if e.name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return os.path.isfile(folder)  # an archive
    for package in packages:
        with suppress(OSError), open(os.path.join(package, "entry_points.txt"), "rb") as file:
            if group in file.read():
                return True
    return False


def _load(entry: "EntryPoint") -> Host:
    """The host that an entry point names. Raises `NotFound` that says what is wrong with it."""
    package = entry.dist.name if entry.dist is not None else entry.value
    try:
        found = entry.load()
        made = found if isinstance(found, Host) else found()
    except Exception as error:  # a boundary: it is somebody else's package
        raise NotFound(
            f"the host '{entry.name}' of {package} does not load: {error}",
            f"mend or remove that package: pip uninstall {package}",
        ) from error
    if not isinstance(made, Host):
        raise NotFound(
            f"the entry point '{entry.name}' of {package} does not give a host",
            "it must be a tacit.traces.host.Host",
        )
    return made
