"""Setting values in a person's config.toml."""

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.base.config_file import append_value, appended, edited, set_values, toml_value
from tacit.base.errors import BadConfig


def test_all_other_text_stays(tmp_path: Path) -> None:
    """Comments, order, spacing and other sections are as they were; values are set in place."""
    path = tmp_path / "config.toml"
    path.write_text(
        "# mine\n[search]\nlimit = 3 # few\n\n[agent]\n"
        'model = "old"  # the good one\nallow = [\n  "a", # x\n]\n\n[skills]\nhosts = false\n'
    )
    set_values(
        {"agent.model": "new:model", "agent.base_url": "http://x/v1", "search.limit": 5}, str(path)
    )
    assert path.read_text() == (
        '# mine\n[search]\nlimit = 5  # few\n\n[agent]\nbase_url = "http://x/v1"\n'
        'model = "new:model"  # the good one\nallow = [\n  "a", # x\n]\n\n'
        "[skills]\nhosts = false\n"
    )


def test_none_removes_a_key(tmp_path: Path) -> None:
    """A key set to None is gone, over all lines of its value; a missing one is no matter."""
    path = tmp_path / "config.toml"
    path.write_text('[agent]\nallow = [\n  "a",\n]\nmodel = "m"\n')
    set_values({"agent.allow": None, "agent.base_url": None, "search.limit": None}, str(path))
    assert path.read_text() == '[agent]\nmodel = "m"\n'


def test_a_new_file_is_private(tmp_path: Path) -> None:
    """A file that was not there is made for its owner alone."""
    path = set_values({"agent.model": "m"}, str(tmp_path / "below" / "config.toml"))
    assert Path(path).read_text() == '[agent]\nmodel = "m"\n'
    assert os.stat(path).st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "text", ['agent.model = "x"\n', 'agent = { model = "x" }\n', '["agent"]\nmodel = "x"\n']
)
def test_what_cannot_be_edited_is_left_alone(tmp_path: Path, text: str) -> None:
    """Other ways to write the same are not guessed at: the file stays, and the error says what."""
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(BadConfig) as raised:
        set_values({"agent.model": "new"}, str(path))
    assert 'agent.model = "new"' in raised.value.hint
    assert path.read_text() == text


def test_a_broken_file_is_not_touched(tmp_path: Path) -> None:
    """A file that is no TOML is named, with the line, and left."""
    path = tmp_path / "config.toml"
    path.write_text("[agent\n")
    with pytest.raises(BadConfig):
        set_values({"agent.model": "new"}, str(path))
    assert path.read_text() == "[agent\n"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_text_comes_back(value: str) -> None:
    """Whatever string is set is what TOML reads back."""
    text = edited("[agent]\nmodel = 'x'\n", {"agent.model": value})
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise AssertionError(text) from None
    assert read["agent"]["model"] == value


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# mine\n",
        '[search]\nlimit = 5\n\n[agent]\nmodel = "x:y"  # best\n\n[catalogue]\nbudget = 9\n',
        "[agent]\nallow = []\n",
        '[agent]\nallow = ["a"]  # one\nturns = 5\n',
        '[agent]\nallow = [\n  "a",  # first ]\n  "b"  # second, no comma\n]\n',
        '[agent]\nallow = [\n  "a",\n]\n[search]\nlimit = 3',
        '[agent]\nallow = [\'lit]eral\', "q\\"uote]"]\n',
        "[agent] # mine",
    ],
)
def test_one_more_in_a_list_and_nothing_else(tmp_path: Path, before: str) -> None:
    """Whatever the file looks like, it says the same and one thing more; comments are kept."""
    path = tmp_path / "config.toml"
    path.write_text(before)
    wanted = tomllib.loads(before)
    pattern = 'run_command:echo "hi" *'
    append_value("agent.allow", pattern, str(path))
    wanted.setdefault("agent", {}).setdefault("allow", []).append(pattern)
    after = path.read_text()
    assert tomllib.loads(after) == wanted
    for line in before.splitlines():
        assert "#" not in line or line[line.index("#") :] in after
    append_value("agent.allow", pattern, str(path))
    assert path.read_text() == after


@pytest.mark.parametrize("before", ["agent.turns = 3\n", "agent = { turns = 3 }\n", "[agent\n"])
def test_a_list_that_cannot_be_edited_is_left_alone(tmp_path: Path, before: str) -> None:
    """Other ways to write the section, and broken files, are named and not touched."""
    path = tmp_path / "config.toml"
    path.write_text(before)
    with pytest.raises(BadConfig):
        append_value("agent.allow", "x", str(path))
    assert path.read_text() == before


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=4),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.booleans(),
)
def test_any_text_can_join_any_list(listed: list[str], value: str, several_lines: bool) -> None:
    """On one line or over several, a list has what it had and the new value behind it."""
    gap = "\n  " if several_lines else " "
    written = ",".join(f"{gap}{toml_value(one)}" for one in listed)
    text = f"[agent]\nallow = [{written}{gap}]\nturns = 5\n"
    read = tomllib.loads(appended(text, "agent.allow", value))
    assert read == {"agent": {"allow": [*listed, value], "turns": 5}}
