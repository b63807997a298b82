"""Fetching agents once, with an npm of a few lines in place of the real one."""

import os
import signal
from pathlib import Path

import msgspec
import pytest

from host_agents import PI, Agent
from host_programs import (
    InstallFailed,
    Place,
    Run,
    default_cache,
    environment,
    forget,
    install,
    is_there,
    prepare,
    run,
    transcripts,
)
from tacit.base.errors import NotFound
from waiting import LONG, until

NPM = r"""#!/bin/sh
# npm install --prefix FOLDER --no-audit --no-fund PACKAGE@VERSION
echo "$6" >> "$NPM_LOG"
if [ -n "$NPM_FAILS" ]; then
  echo "npm warn of no interest" >&2
  echo "npm error notarget No matching version found" >&2
  exit 1
fi
name=${6%@*}; version=${6##*@}
mkdir -p "$3/node_modules/.bin" "$3/node_modules/$name/bin"
echo "{\"version\": \"$version\"}" > "$3/node_modules/$name/package.json"
touch "$3/node_modules/$name/bin/node"
[ -n "$NPM_FORGETS" ] || touch "$3/node_modules/.bin/pi"
"""
NODE, PACKAGE = "node@24", f"{PI.package}@{PI.version}"


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of an npm that makes the right files, or fails when told to."""
    program = tmp_path / "bin" / "npm"
    program.parent.mkdir()
    program.write_text(NPM)
    program.chmod(0o755)
    log = tmp_path / "log"
    log.touch()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("NPM_LOG", str(log))
    return log


def asked(log: Path) -> list[str]:
    return log.read_text().split()


def test_fetched_once(npm, tmp_path) -> None:
    """Node and the agent are fetched the first time and not the second."""
    cache = tmp_path / "cache"
    assert not is_there(PI, cache)
    first = install(PI, cache)
    assert asked(npm) == [NODE, PACKAGE]
    assert install(PI, cache) == first
    assert asked(npm) == [NODE, PACKAGE]
    assert is_there(PI, cache)
    assert first.version == PI.version
    assert first.program.name == "pi"
    assert first.program.exists()
    assert (first.path[0] / "node").exists()


def test_versions_lie_side_by_side(npm, tmp_path) -> None:
    """Another version is another folder, and `forget` makes the next install look again."""
    cache = tmp_path / "cache"
    known, newest = install(PI, cache), install(PI, cache, version="latest")
    assert known.program != newest.program
    forget(PI, cache, version="latest")
    install(PI, cache, version="latest")
    assert asked(npm) == [NODE, PACKAGE, f"{PI.package}@latest", f"{PI.package}@latest"]


def test_a_failure_says_npms_reason_and_is_tried_again(npm, tmp_path, monkeypatch) -> None:
    """npm's own error is in the message, and the broken folder does not count as there."""
    cache = tmp_path / "cache"
    install(PI, cache, version="0.1.0")
    with monkeypatch.context() as broken:
        broken.setenv("NPM_FAILS", "1")
        with pytest.raises(InstallFailed, match="No matching version found"):
            install(PI, cache)
    assert not is_there(PI, cache)
    assert install(PI, cache).version == PI.version


def test_an_install_without_the_program_is_a_failure(npm, tmp_path, monkeypatch) -> None:
    """npm may end well and leave no program: that is said, not found out later."""
    monkeypatch.setenv("NPM_FORGETS", "1")
    with pytest.raises(InstallFailed, match="there is no"):
        install(PI, tmp_path / "cache")
    assert not is_there(PI, tmp_path / "cache")


def test_without_npm(tmp_path, monkeypatch) -> None:
    """A machine without npm is told so."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotFound, match="npm is not on the PATH"):
        install(PI, tmp_path / "cache")


def test_the_cache_can_be_moved(home, monkeypatch) -> None:
    """The cache lies in the user's cache folder, or where TACIT_HOSTS_CACHE says."""
    assert default_cache() == home / ".cache" / "tacit-test-hosts"
    monkeypatch.setenv("TACIT_HOSTS_CACHE", "/elsewhere")
    assert default_cache() == Path("/elsewhere")


@pytest.fixture
def agent() -> Agent:
    """Pi's data with commands that a shell understands: the prompt is the script."""
    return msgspec.structs.replace(
        PI, command=("-c", "${prompt}"), resume=("-c", "echo resumed; ${prompt}")
    )


@pytest.fixture
def place(tmp_path) -> Place:
    first = tmp_path / "first"
    return Place(
        home=tmp_path / "home", project=tmp_path / "p", url="http://127.0.0.1:9", path=(first,)
    )


def go(agent: Agent, place: Place, prompt: str, **options: object) -> Run:
    prepare(agent, place)
    return run(agent, Path("/bin/sh"), place, prompt, **options)  # type: ignore[arg-type]


def test_a_run_gives_code_output_and_time(agent, place) -> None:
    """What the agent printed, its exit code and its time are given back."""
    done = go(agent, place, "echo out; echo err >&2; exit 3")
    assert (done.code, done.stdout, done.stderr, done.ended_well) == (3, "out\n", "err\n", False)
    assert 0 < done.seconds < LONG
    assert go(agent, place, "exit 0").ended_well


def test_resume_uses_the_other_command(agent, place) -> None:
    """A resumed run takes the agent's own words for going on."""
    assert go(agent, place, "echo x", resume=True).stdout == "resumed\nx\n"


def test_nothing_of_the_users_is_seen(agent, place, monkeypatch) -> None:
    """The user's keys and home do not reach the agent; home, project and PATH are its own."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-real")
    monkeypatch.setenv("HOME", "/home/somebody")
    seen = go(agent, place, "env; pwd").stdout
    assert "sk-real" not in seen
    assert "/home/somebody" not in seen
    assert f"HOME={place.home}\n" in seen
    assert f"PATH={place.path[0]}{os.pathsep}" in seen
    assert seen.endswith(f"{place.project}\n")


def test_the_way_out_is_the_server(agent, place) -> None:
    """Every proxy variable names the server, and loopback needs no proxy."""
    variables = environment(agent, place)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"):
        assert variables[name] == place.url
    assert "127.0.0.1" in variables["NO_PROXY"]
    assert "127.0.0.1" in variables["no_proxy"]


def test_when_its_time_is_up_its_children_die_too(agent, place) -> None:
    """An agent past its time is killed with all it started, and its output so far is kept."""
    for timeout in (0.5, 5.0, LONG):  # the first in which a busy machine comes to it
        done = go(agent, place, "echo begun; sleep 3600 & echo $!; wait", timeout=timeout)
        assert done.code is None
        if len(done.stdout.split()) == 2:
            break
    begun, child = done.stdout.split()
    assert begun == "begun"
    until(lambda: _is_gone(int(child)))


def _is_gone(pid: int) -> bool:
    """Whether a process has ended, also as a zombie that nobody has collected yet."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False
    return state == "Z"


def test_a_child_that_outlives_the_agent_does_not_hold_the_run(agent, place) -> None:
    """The run ends with the agent, though a background child still has its output open."""
    done = go(agent, place, "sleep 3600 & echo $!", timeout=LONG)
    os.kill(int(done.stdout), signal.SIGKILL)  # it is still there
    assert done.code == 0


def test_transcripts_are_found_and_empty_ones_passed_over(agent, place) -> None:
    """Files that fit the agent's patterns are given, but for those with nothing in them."""
    folder = place.home / ".pi/agent/sessions/--p--"
    folder.mkdir(parents=True)
    (folder / "full.jsonl").write_text("{}\n")
    (folder / "empty.jsonl").touch()
    (folder / "other.txt").write_text("x")
    assert transcripts(agent, place.home) == [folder / "full.jsonl"]
