"""Running an agent headless: its home, its variables, its time. The agent is a shell script."""

import os
import time
from pathlib import Path

import msgspec
import pytest

from tacit.testing.agents import PI, Agent
from tacit.testing.headless import Place, Run, environment, prepare, run, transcripts


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
    assert 0 < done.seconds < 5
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
    started = time.monotonic()
    done = go(agent, place, "echo begun; sleep 60 & echo $!; wait", timeout=0.5)
    assert time.monotonic() - started < 5
    assert done.code is None
    begun, child = done.stdout.split()
    assert begun == "begun"
    assert _gone(int(child))


def _gone(pid: int) -> bool:
    """Whether a process has ended, also as a zombie that nobody has collected yet."""
    end = time.monotonic() + 3
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            state = "?"
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_child_that_outlives_the_agent_does_not_hold_the_run(agent, place) -> None:
    """The run ends with the agent, though a background child still has its output open."""
    started = time.monotonic()
    done = go(agent, place, "(sleep 5 &) ; echo done")
    assert done.stdout == "done\n"
    assert time.monotonic() - started < 4


def test_transcripts_are_found_and_empty_ones_passed_over(agent, place) -> None:
    """Files that fit the agent's patterns are given, but for those with nothing in them."""
    folder = place.home / ".pi/agent/sessions/--p--"
    folder.mkdir(parents=True)
    (folder / "full.jsonl").write_text("{}\n")
    (folder / "empty.jsonl").touch()
    (folder / "other.txt").write_text("x")
    assert transcripts(agent, place.home) == [folder / "full.jsonl"]
