"""Which hosts there are, and how another package adds one."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tacit.base.errors import NotFound
from tacit.testing import HOST_CHECKS, Expected, HostCase
from tacit.traces import host_registry
from tacit.traces.assembler import read_trace

PACKAGE = Path(__file__).parents[1] / "fixtures" / "host-package"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example package as an installer leaves it, by what its pyproject.toml says."""
    folder = tmp_path / "site-packages"
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    shutil.copytree(PACKAGE / "tacit_example_host", folder / "tacit_example_host")
    info = folder / f"tacit_example_host-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    (info / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
            for group, entries in groups
        )
    )
    monkeypatch.syspath_prepend(str(folder))
    return folder


def broken(folder: Path, value: str) -> None:
    """An installed package whose entry point is wrong."""
    (folder / "broken_host-1.dist-info").mkdir(parents=True)
    (folder / "broken_host-1.dist-info" / "METADATA").write_text("Name: broken-host\nVersion: 1\n")
    (folder / "broken_host-1.dist-info" / "entry_points.txt").write_text(
        f"[tacit.hosts]\nbroken = {value}\n"
    )


@pytest.mark.parametrize("check", HOST_CHECKS, ids=lambda check: check.__name__)
def test_a_host_of_another_package_keeps_the_contract(check, example: Path, tmp_path: Path) -> None:
    """An installed package adds a host by its entry point, and the public suite holds for it."""
    assert "example" in host_registry.names()
    expected = Expected(
        session="e1",
        project="/home/dev/demo",
        prompts=("Build it.", "No, with clang."),
        kinds=("shell", "shell"),
        failures=1,
        texts=2,
        output_tokens=12,
        error="No rule to make target",
    )
    path = str(PACKAGE / "session.jsonl")
    check(HostCase(host_registry.get("example"), path, expected, str(tmp_path / "s")))


def test_its_sessions_are_found_like_all_others(example: Path, home: Path) -> None:
    """They are found at home and recognised by form."""
    folder = home / ".example" / "sessions"
    folder.mkdir(parents=True)
    shutil.copyfile(PACKAGE / "session.jsonl", folder / "one.jsonl")
    (source,) = host_registry.get("example").find()
    assert host_registry.recognise(str(folder)) == [source]


@pytest.mark.parametrize("value", ["no_such_module:Host", "json:loads", "json:JSONDecoder"])
def test_a_package_that_is_broken_stops_nobody(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that does not load is named with its package; all others work."""
    broken(tmp_path, value)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "broken" in host_registry.names()
    with pytest.raises(NotFound, match="broken-host"):
        host_registry.get("broken")
    assert len(host_registry.problems()) == 1
    assert {host.name for host in host_registry.each()} == set(host_registry.BUILT_IN)


def test_a_package_cannot_take_the_name_of_a_built_in_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry point called `pi` does not replace pi."""
    broken(tmp_path, "json:loads")
    entry = tmp_path / "broken_host-1.dist-info" / "entry_points.txt"
    entry.write_text("[tacit.hosts]\npi = json:loads\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert host_registry.get("pi").title == "pi"
    assert host_registry.names().count("pi") == 1


def test_an_unknown_host_is_not_found() -> None:
    """The error lists the hosts that there are."""
    with pytest.raises(NotFound, match="no host 'nobody'") as caught:
        host_registry.get("nobody")
    assert "claude-code" in caught.value.hint


def test_a_path_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    """Naming a file that does not exist is an error, not an empty answer."""
    with pytest.raises(NotFound):
        host_registry.recognise(str(tmp_path / "none"))


def test_every_built_in_name_is_its_hosts_name() -> None:
    """The table of names agrees with the hosts."""
    assert [host.name for host in host_registry.each()] == list(host_registry.BUILT_IN)


def test_the_table_of_places_costs_nothing_to_import() -> None:
    """Importing the skill folders loads no msgspec, typing, pathlib, re or sqlite3."""
    heavy = "{'msgspec', 'typing', 'pathlib', 're', 'sqlite3', 'datetime'}"
    program = f"import sys, tacit.traces.host_folders; print({heavy} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {_source()!r})\n{program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"


def _source() -> str:
    import tacit

    return str(Path(tacit.__file__).parents[1])


def test_reading_by_recognised_form(example: Path, tmp_path: Path) -> None:
    """What `recognise` gives can be read with the host that it names."""
    (source,) = host_registry.recognise(str(PACKAGE / "session.jsonl"))
    assert read_trace(host_registry.get(source.host), source).session == "e1"
