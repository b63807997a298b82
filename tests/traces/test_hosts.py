"""The eight agents: each passes the contract on what the real program wrote."""

from pathlib import Path

import pytest
import trace_samples

from tacit.testing.hosts import CHECKS, Case
from tacit.traces.hosts import places, registry
from tacit.traces.reading import read_trace


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", trace_samples.REAL)
def test_a_host_keeps_the_contract(name: str, check, tmp_path: Path) -> None:
    """Each of the eight gives 2 prompts, 4 calls, 1 failure, 6 texts, 120 tokens, the project."""
    path = str(trace_samples.file_of(name))
    check(Case(registry.get(name), path, trace_samples.expected(name), str(tmp_path / "s")))


@pytest.mark.parametrize("name", trace_samples.REAL)
def test_a_host_finds_its_sessions_at_home(name: str, agents: Path) -> None:
    """Each agent's session is found where the agent put it, and the agent counts as used."""
    host = registry.get(name)
    assert host.homes()
    found = list(host.find())
    assert [source.path for source in found] == [str(agents / trace_samples.REAL[name][1])]
    assert read_trace(host, found[0]).session == trace_samples.REAL[name][2]


@pytest.mark.parametrize("name", trace_samples.REAL)
def test_no_agent_no_sessions(name: str, home: Path) -> None:
    """In an empty home no agent is there, and no session is found."""
    host = registry.get(name)
    assert host.homes() == []
    assert list(host.find()) == []


def test_a_variable_moves_a_hosts_home(agents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CODEX_HOME and HERMES_HOME are honoured as the hosts honour them."""
    (agents / ".codex").rename(agents / "elsewhere")
    assert list(registry.get("codex").find()) == []
    monkeypatch.setenv("CODEX_HOME", str(agents / "elsewhere"))
    assert len(list(registry.get("codex").find())) == 1
    (agents / ".hermes").rename(agents / "h")
    monkeypatch.setenv("HERMES_HOME", str(agents / "h"))
    assert len(list(registry.get("hermes").find())) == 1


def test_a_folder_is_sorted_out_by_form(agents: Path) -> None:
    """Given a folder with all of them, each session goes to the host that wrote it, once."""
    found = registry.recognise(str(agents))
    assert sorted(source.host for source in found) == sorted(trace_samples.REAL)


def test_each_of_the_eight_has_skill_folders_and_hooks() -> None:
    """Every agent names its skill folders, from the one table, and the events to hook."""
    for name in trace_samples.REAL:
        host = registry.get(name)
        assert host.tested
        assert host.place in places.PLACES
        assert host.hooks.turn
