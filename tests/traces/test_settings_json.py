"""Reading and editing JSON with comments: nothing of the user's is lost."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.traces.settings_json import (
    BadJson,
    Document,
    Splice,
    WrongShape,
    add_to_jsonc,
    apply_splices,
    inverse_splices,
    parse_jsonc,
    remove_from_jsonc,
    salvage_members,
)

N = 100

ADDITION = {"hooks": {"Stop": [{"hooks": [{"command": "tacit-hook x"}]}], "End": [{"a": [1]}]}}

KEYS = st.sampled_from(["hooks", "Stop", "a", "b,{", 'q"\\', "ключ", "//no", "/*"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-99, 99), st.text(max_size=8), st.just("// not /* one")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)
GAPS = st.sampled_from(
    ["", "", "", " ", "\n  ", "\n", "\r\n\t", " // a, } ]\n", "/* b\n */", "\n  // c  \r\n  ", "  "]
)
BARE = st.sampled_from(["", " ", "\n  ", " // a, } ]\n", "/* b */ ", "\n    "])


@st.composite
def written(draw: st.DrawFn, value: Any, gaps: st.SearchStrategy[str] = GAPS) -> str:
    """`value` as somebody could have written it: comments, odd spaces, trailing commas."""

    def gap() -> str:
        return draw(gaps)

    def text(value: Any) -> str:
        if not isinstance(value, dict | list) or not value:
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        parts = (
            [json.dumps(k) + gap() + ":" + gap() + text(v) for k, v in value.items()]
            if isinstance(value, dict)
            else [text(item) for item in value]
        )
        inside = ",".join(gap() + part + gap() for part in parts)
        if draw(st.booleans()):
            inside += "," + gap()
        return "{" + inside + "}" if isinstance(value, dict) else "[" + inside + "]"

    return gap() + text(value) + gap()


OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
TEXTS = OBJECTS.flatmap(written)


def joined(before: Any, addition: Any) -> Any:
    """What `add` must lead to."""
    if before is None:
        return addition
    if isinstance(addition, dict):
        return {
            **before,
            **{k: joined(before[k], v) if k in before else v for k, v in addition.items()},
        }
    return [*before, *addition]


def comments(text: str) -> list[str]:
    """The comments of a text, outside its strings."""
    pattern = re.compile(r'"[^"\\\n\r]*(?:\\.[^"\\\n\r]*)*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)
    return [m[1].strip() for m in pattern.finditer(text) if m[1]]


@given(value=VALUES, data=st.data())
@settings(deadline=None)
def test_what_is_read_is_what_was_written(value: Any, data: st.DataObject) -> None:
    """Comments, spaces and trailing commas do not change what a text says."""
    assert parse_jsonc(data.draw(written(value))) == value


@given(text=TEXTS)
@settings(max_examples=N, deadline=None)
def test_an_addition_is_all_that_changes(text: str) -> None:
    """After adding, the file says what it said and the addition; every comment is still there."""
    before = parse_jsonc(text)
    try:
        splices = add_to_jsonc(text, ADDITION)
    except WrongShape:
        return
    after = apply_splices(text, splices)
    assert parse_jsonc(after) == joined(before, ADDITION)
    assert comments(after) == comments(text)
    assert apply_splices(after, inverse_splices(splices)) == text


@given(text=TEXTS)
@settings(max_examples=N, deadline=None)
def test_plain_json_stays_plain(text: str) -> None:
    """An agent that takes no comments can read the result if it could read the file."""
    try:
        json.loads(text)
        after = apply_splices(text, add_to_jsonc(text, ADDITION))
    except (ValueError, WrongShape):
        return
    json.loads(after)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, part in pairs:
        found.append((*path, key))
        if isinstance(part, dict | list):
            found += paths(part, (*path, key))
    return found


@given(text=TEXTS, data=st.data())
@settings(max_examples=N, deadline=None)
def test_removal_takes_one_member_only(text: str, data: st.DataObject) -> None:
    """Any member can be taken out; the rest still says the same, and other comments stay."""
    value = parse_jsonc(text)
    if not value:
        return
    path = data.draw(st.sampled_from(paths(value)))
    after = remove_from_jsonc(text, path)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    assert parse_jsonc(after) == value
    if not comments(text):
        assert not comments(after)


@given(text=OBJECTS.flatmap(lambda value: written(value, BARE)))
@settings(max_examples=N, deadline=None)
def test_removing_what_was_added_gives_the_file_back(text: str) -> None:
    """By structure alone, without any record, add and remove meet again at the same bytes."""
    text = text.strip()
    if parse_jsonc(text).get("hooks", 1) in (
        None,
        {},
    ):  # whether it was there cannot be seen any more
        return
    addition: dict[str, Any] = {"hooks": {"New": [{"x": 1}]}, "more": 2}
    if "hooks" in parse_jsonc(text):
        addition = {"hooks": {"New": [{"x": 1}]}}
    try:
        after = apply_splices(text, add_to_jsonc(text, addition))
    except WrongShape:
        return
    if "more" in addition:
        after = remove_from_jsonc(remove_from_jsonc(after, ("more",)), ("hooks",))
    else:
        after = remove_from_jsonc(after, ("hooks", "New"))
    assert after == text


@given(text=st.text(alphabet='{}[]",:/*\\ \n1atrue', max_size=40))
@settings(max_examples=N, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever the text, reading gives a value or says where it is broken; nothing else happens."""
    line = 1
    try:
        parse_jsonc(text)
    except BadJson as error:
        line = error.line
    assert 1 <= line <= text.count("\n") + 1
    assert isinstance(salvage_members(text), dict)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 3, 3),
        ("{'a': 1}", 1, 2),
        ('{"a": nope}', 1, 7),
        ('{"a": 1', 1, 8),
        ('{"a": "x\n"}', 1, 7),
        ("{} {}", 1, 4),
        ("[1, /* ]", 1, 5),
        ("[" * 10_000, 1, 202),
    ],
)
def test_broken_text_says_where(text: str, line: int, column: int) -> None:
    """The error names the line and the column, also for text nested too deep to read."""
    with pytest.raises(BadJson) as caught:
        Document(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_the_layout_of_the_file_is_taken_over() -> None:
    """Indentation and line ends of the addition are those of the file."""
    text = '{\r\n\t"model": "opus", // the big one\r\n\t"env": {}\r\n}\r\n'
    after = apply_splices(text, add_to_jsonc(text, {"hooks": {"Stop": [1]}}))
    assert after == (
        '{\r\n\t"model": "opus", // the big one\r\n\t"env": {},\r\n'
        '\t"hooks": {\r\n\t\t"Stop": [\r\n\t\t\t1\r\n\t\t]\r\n\t}\r\n}\r\n'
    )


def test_a_comment_stays_with_its_line() -> None:
    """A comment behind the last entry is still behind it after something was added."""
    text = '{\n  "a": 1 // one\n  // the end\n}'
    after = apply_splices(text, add_to_jsonc(text, {"b": 2}))
    assert after == '{\n  "a": 1, // one\n  // the end\n  "b": 2\n}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"hooks": []}', "hooks is an array, an object was expected"),
        ('{"hooks": "no"}', 'hooks is "no", an object was expected'),
        ('{"hooks": {"Stop": {}}}', "hooks.Stop is an object, an array was expected"),
        ("[]", "the whole file is an array, an object was expected"),
    ],
)
def test_what_stands_in_the_way_is_named(text: str, said: str) -> None:
    """A part of another shape is not overwritten; the error says which."""
    with pytest.raises(WrongShape) as caught:
        add_to_jsonc(text, ADDITION)
    assert str(caught.value) == said


@given(cut=st.integers(0, 200))
@settings(deadline=None)
def test_what_came_before_a_cut_is_saved(cut: int) -> None:
    """Of an object that ends too early, the members before are read."""
    text = '{"session_id": "abc", "n": {"x": [1, 2]}, "last_message": "' + "long " * 30
    found = salvage_members(text[:cut])
    assert found.get("session_id", "abc") == "abc"
    if cut > 45:
        assert found == {"session_id": "abc", "n": {"x": [1, 2]}}


@given(text=st.text(max_size=30), data=st.data())
@settings(deadline=None)
def test_splices_can_be_taken_back(text: str, data: st.DataObject) -> None:
    """Any set of splices that do not overlap has an inverse."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    splices = [Splice(a, text[a:b], data.draw(st.text(max_size=4))) for a, b in pairs]
    assert apply_splices(apply_splices(text, splices), inverse_splices(splices)) == text
