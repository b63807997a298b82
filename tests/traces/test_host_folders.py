"""The folders of hosts as `tacit list` reads them: from a cache that is never believed too long."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.base import marshal_cache
from tacit.traces import host_folders, host_registry
from tacit.traces.host_folders import UserPath

Rows = list[tuple[Any, ...]]


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Rows]]:
    """What a new process would find."""
    monkeypatch.setattr(marshal_cache, "_RACY_NS", 0)  # the checkout may be a second old

    def look() -> Rows:
        monkeypatch.setattr(host_folders, "_read", {})
        return [folders.row() for folders in host_folders.host_folders()]

    return look


def right() -> Rows:
    found, _ = host_registry.folders_of_hosts()
    return [folders.row() for folders in (host_folders.SHARED_FOLDERS, *found)]


def cache_of(home: Path) -> Path:
    (file,) = (home / ".cache/tacit").glob("hosts-*")
    return file


def test_the_second_look_loads_no_host(
    looked: Callable[[], Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the hosts say is found once, and then read."""
    assert looked() == right()
    expected = right()
    monkeypatch.setattr(host_registry, "folders_of_hosts", None)
    assert looked() == expected


def test_a_damaged_cache_is_made_again(looked: Callable[[], Rows], home: Path) -> None:
    """Whatever byte is wrong or missing, the folders are right, and the file is mended."""
    looked()
    file = cache_of(home)
    good = file.read_bytes()
    damaged = [b"", good[:10], good[:-1], good + b"x", b"x" * len(good)]
    damaged += [good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :] for at in (0, 40, 60, 300)]
    for data in damaged:
        file.write_bytes(data)
        assert looked() == right()
        assert file.read_bytes() == good


def test_a_stale_cache_is_made_again(looked: Callable[[], Rows], home: Path) -> None:
    """When a host's file, the folder of hosts or a folder of packages changed, hosts are asked."""
    looked()
    file = cache_of(home)
    where, stamps, rows = marshal_cache.read_cache(str(file), host_folders._HEAD)
    wrong = [(row[0], row[1], (".wrong",), *row[3:]) for row in rows]
    marshal_cache.write_cache(str(file), host_folders._HEAD, (where, stamps, wrong))
    assert looked()[1:] == wrong  # it is believed while nothing changed
    for number, (name, _) in enumerate(stamps):
        other = [*stamps[:number], (name, (1, 2, 3, 4)), *stamps[number + 1 :]]
        marshal_cache.write_cache(str(file), host_folders._HEAD, (where, other, wrong))
        assert looked() == right(), name


def test_everything_that_decides_is_stamped(looked: Callable[[], Rows], home: Path) -> None:
    """Each module of a host, the folder that lists them, and where packages are installed."""
    looked()
    _, stamps, _ = marshal_cache.read_cache(str(cache_of(home)), host_folders._HEAD)
    names = {Path(name).name for name, _ in stamps}
    modules = {path.name for path in Path(host_registry.hosts.__path__[0]).glob("*.py")}
    assert modules - {"__init__.py"} <= names
    assert {"hosts", "host_registry.py", "host_folders.py", "site-packages"} <= names


def test_a_home_that_cannot_be_written(
    looked: Callable[[], Rows], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a cache the folders are the same."""
    (home / "file").write_text("")
    monkeypatch.setenv("TACIT_HOME", str(home / "file" / "below"))
    assert looked() == right()
    assert looked() == right()


def test_a_warm_look_imports_no_host(home: Path) -> None:
    """A second process takes the folders from the cache, without the library for structs."""
    program = (
        "import sys; from tacit.traces.host_folders import host_folders; host_folders();"
        "print(sorted({'tacit.traces.host', 'tacit.traces.hosts', 'msgspec'} & set(sys.modules)))"
    )
    printed = ""
    for _ in range(2):
        command = [sys.executable, "-P", "-c", program]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == "[]\n"


def test_a_path_follows_its_variables(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first variable that is set counts, as a folder itself or as one above."""
    path = UserPath(".config/some", "SOME_DIR", "XDG_CONFIG_HOME/some").below("x")
    assert path.resolve("/h") == "/h/.config/some/x"
    monkeypatch.setenv("XDG_CONFIG_HOME", "/etc/mine")
    assert path.resolve("/h") == "/etc/mine/some/x"
    monkeypatch.setenv("SOME_DIR", " ~/elsewhere ")
    assert path.resolve("/h") == str(home / "elsewhere/x")
    assert UserPath("a").resolve() == str(home / "a")
