"""Editing YAML by lines: what the file said it still says, and what is odd is refused."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.traces import settings_yaml
from tacit.traces.settings_json import apply_splices, inverse_splices
from tacit.traces.settings_yaml import Malformed, TooOdd, add, parse, remove

N = 100

ADDITION = {
    "hooks": {
        "on_session_end": [{"command": "/x y/tacit-hook hermes", "timeout": 5}],
        "on_session_finalize": [{"command": "tacit-hook hermes"}],
    },
    "skills": {"external_dirs": ["~/.agents/skills"]},
}

SCALARS = st.sampled_from(
    [
        "1",
        "text",
        "'quoted # no comment'",
        '"a: b"',
        "~",
        "",
        "{}",
        "[]",
        "|\n        two\n        l",
    ]
)
TAILS = st.sampled_from(["", "  # why", " #", "   "])
BLANKS = st.sampled_from(["", "\n", "# a comment: {\n", "    # further in\n"])


@st.composite
def config(draw: st.DrawFn) -> str:
    """A settings file with comments, blank lines, and hooks in some state of being."""

    def entry(key: str, value: str, indent: str) -> str:
        tail = "" if value.startswith("|") else draw(TAILS)
        return f"{indent}{key}: {value}".rstrip() + f"{tail}\n" + draw(BLANKS)

    out = draw(BLANKS)
    for key in draw(st.lists(st.sampled_from(["model", "tools", "z"]), unique=True)):
        out += entry(key, draw(SCALARS), "")
    if draw(st.booleans()):
        out += "hooks:" + draw(TAILS) + "\n" + draw(BLANKS)
        dash = draw(st.sampled_from(["  ", "    "]))
        for event in draw(
            st.lists(st.sampled_from(["on_session_end", "pre_llm"]), unique=True, max_size=2)
        ):
            if draw(st.booleans()):
                out += entry(event, draw(st.sampled_from(["", "[]", "~"])), "  ")
                continue
            out += f"  {event}:\n"
            for command in draw(st.lists(st.sampled_from(["a", "b # c"]), min_size=1, max_size=2)):
                out += f"{dash}- command: {command}\n" + draw(BLANKS)
                if draw(st.booleans()):
                    out += f"{dash}  timeout: 3{draw(TAILS)}\n"
    if draw(st.booleans()):
        out += entry("last", draw(SCALARS), "")
    if draw(st.booleans()):
        out = out.rstrip("\n")
    return out.replace("\n", "\r\n") if draw(st.booleans()) else out


def comments(text: str) -> list[str]:
    return [line.partition("#")[2].strip() for line in text.splitlines() if " #" in " " + line]


@given(text=config())
@settings(max_examples=N, deadline=None)
def test_an_addition_is_all_that_changes(text: str) -> None:
    """The file says what it said and the addition; no line of the user's is lost; undo is exact."""
    before = parse(text)
    try:
        splices = add(text, ADDITION)
    except TooOdd:
        return
    after = apply_splices(text, splices)
    found = yaml.safe_load(after)
    assert found["skills"] == ADDITION["skills"]
    for event, items in ADDITION["hooks"].items():
        old = (before.get("hooks") or {}).get(event) or []
        assert found["hooks"][event] == [*old, *items]
    for key, value in before.items():
        if key != "hooks":
            assert found[key] == value
    ours = settings_yaml.MARK.strip("# ")
    assert [c for c in comments(after) if c != ours] == comments(text)
    assert apply_splices(after, inverse_splices(splices)) == text


@given(text=config())
@settings(max_examples=N, deadline=None)
def test_most_files_can_be_edited(text: str) -> None:
    """Files in block style are not refused, whatever comments and blank lines they hold."""
    if "|" not in text:
        add(text, ADDITION)


@given(text=config())
@settings(max_examples=N, deadline=None)
def test_removing_what_was_added_gives_the_file_back(text: str) -> None:
    """By structure alone, add and remove meet again at the same bytes."""
    if text == "" or "|" in text:
        return
    after = apply_splices(text, add(text, {"new": {"one": [{"command": "x", "timeout": 1}]}}))
    assert remove(after, ("new",)) == text


@pytest.mark.parametrize(
    ("text", "path", "left"),
    [
        ("h:\n  a:\n    - c: 1\n      t: 2\n    - c: 3\n", ("h", "a", 0), "h:\n  a:\n    - c: 3\n"),
        ("h:\n  a:\n    - c: 1\n  b: 2\n", ("h", "a"), "h:\n  b: 2\n"),
        ("a: 1\nh:\n  - x", ("h",), "a: 1"),
    ],
)
def test_removal_takes_whole_lines(text: str, path: tuple[Any, ...], left: str) -> None:
    """An item, a key, or the last block without a line end."""
    assert remove(text, path) == left


@pytest.mark.parametrize(
    "text",
    [
        "hooks: {on_session_end: [{command: x}]}\n",
        "hooks: &a\n  x: 1\nother: *a\nhooks2: 1\n---\nsecond: 1\n",
        "- a\n- b\n",
        "hooks: text\n",
        "hooks:\n  on_session_end: [{command: x}]\n",
        "base: &b\n  on_session_end: []\nhooks: *b\n",
        "a: 1\n...\n",
        "hooks:\n  last: |+\n    its blank lines count\n\n\nmodel: x\n",
        "base: &b 1\nhooks:\n  last: *b\n",
    ],
)
def test_odd_files_are_refused(text: str) -> None:
    """Flow style, aliases, several documents, other shapes: refused, never half done."""
    with pytest.raises((TooOdd, Malformed)):
        add(text, ADDITION)


def test_broken_yaml_names_the_line() -> None:
    """What cannot be read is said with its line."""
    with pytest.raises(Malformed, match="line 2"):
        parse("a: 1\n  b: : 2\n")


def test_the_default_of_the_agent_is_filled() -> None:
    """`hooks: {}`, as an agent writes it, becomes a block, and its comment stays."""
    text = "model: x\nhooks: {}  # none\nlast: 1\n"
    after = apply_splices(text, add(text, {"hooks": {"end": [{"command": "c"}]}}))
    assert after == ('model: x\nhooks:  # none\n  end:\n    - command: "c"\nlast: 1\n')


@given(text=st.text(alphabet="ab:- \n#{}[]&*|'\"", max_size=40))
@settings(max_examples=N, deadline=None)
def test_any_text_is_edited_rightly_or_refused(text: str) -> None:
    """Whatever the file, the addition is in it afterwards, or it was refused."""
    try:
        after = apply_splices(text, add(text, {"hooks": {"e": [{"command": "c"}]}}))
    except (TooOdd, Malformed):
        return
    assert {"command": "c"} in yaml.safe_load(after)["hooks"]["e"]
