"""The eight agents as data."""

import json
import string
import tomllib

import pytest
import yaml

from host_agents import AGENTS, CODEX, OPENCODE, PI
from host_programs import Place, environment, prepare


@pytest.fixture
def place(tmp_path):
    return Place(home=tmp_path, project=tmp_path / "demo", url="http://127.0.0.1:1234")


def test_eight_with_names_of_their_own() -> None:
    """There are eight agents, no two with the same name or program."""
    assert len(AGENTS) == len({a.name for a in AGENTS}) == len({a.program for a in AGENTS}) == 8


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_the_prompt_is_one_word_of_both_commands(agent) -> None:
    """The prompt is an argument by itself, so nothing in it can become an option's value."""
    assert agent.command.count("${prompt}") == agent.resume.count("${prompt}") == 1


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_only_known_places_are_filled_in(agent) -> None:
    """Every placeholder in an agent's data is one that running it fills."""
    texts = [*agent.command, *agent.resume, *agent.files.values(), *agent.environment.values()]
    found = {name for text in texts for name in string.Template(text).get_identifiers()}
    assert found <= {"url", "home", "project", "prompt"}
    assert "url" in found


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_configuration_points_at_the_server(agent, place) -> None:
    """What is written for an agent parses in its format and names the server and no other."""
    prepare(agent, place)
    reads = {".json": json.loads, ".toml": tomllib.loads, ".yaml": yaml.safe_load}
    written = [place.home / name for name in agent.files]
    parsed = [reads[file.suffix](file.read_text()) for file in written]
    variables = environment(agent, place)
    own = {name: variables[name] for name in agent.environment}
    said = json.dumps([parsed, own])
    assert "http://127.0.0.1:1234" in said
    assert "${" not in said
    assert "https://" not in said


def test_where_the_server_stands_in_the_files(place) -> None:
    """The three agents that have a file for it name the server's /v1 as their provider."""
    for agent in (CODEX, OPENCODE, PI):
        prepare(agent, place)
    url = "http://127.0.0.1:1234/v1"
    codex = tomllib.loads((place.home / ".codex/config.toml").read_text())
    opencode = json.loads((place.home / ".config/opencode/opencode.json").read_text())
    pi = json.loads((place.home / ".pi/agent/models.json").read_text())
    assert codex["model_providers"]["mock"]["base_url"] == url
    assert opencode["provider"]["mock"]["options"]["baseURL"] == url
    assert pi["providers"]["mock"]["baseUrl"] == url


def test_a_tool_is_called_by_its_main_argument() -> None:
    """A tool's shape makes calls with its own name for the argument and what else it wants."""
    use = AGENTS[0].shell.use("ls")
    assert (use.name, use.arguments) == ("Bash", {"command": "ls", "description": "Run a command"})
