"""The head of a SKILL.md, however it is written."""

import time
from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.skills import frontmatter
from tacit.skills.frontmatter import MAX_DEPTH, MAX_HEAD, parse, split


def codes(problems: list) -> list[tuple[str, int]]:
    return [(found.code, found.line) for found in problems]


class TestSplit:
    def test_a_head_lies_between_two_fences(self) -> None:
        """Head, body and their first lines are where an editor shows them."""
        parts = split("---\nname: a\ndescription: b\n---\n# Title\n")
        assert parts.head == "name: a\ndescription: b"
        assert (parts.head_line, parts.body, parts.body_line) == (2, "# Title\n", 5)
        assert parts.problems == []

    @pytest.mark.parametrize(
        "text", ["", "# Title\n", "name: a\n---\n", "----\na: b\n---\n", "-- -"]
    )
    def test_without_an_opening_fence_all_is_body(self, text: str) -> None:
        """A file that does not begin with '---' has no head, and all of it is body."""
        parts = split(text)
        assert parts.head is None
        assert (parts.body, parts.body_line) == (text, 1)
        assert codes(parts.problems) == [("no-frontmatter", 1)]

    def test_space_before_the_fence_is_passed_over(self) -> None:
        """Empty lines before the fence are noticed, and lines are still counted from the top."""
        parts = split("\n \n---\nname: a\n---\nbody")
        assert (parts.head, parts.head_line, parts.body_line) == ("name: a", 4, 6)
        assert codes(parts.problems) == [("space-before-frontmatter", 1)]

    def test_dashes_inside_a_value_do_not_end_the_head(self) -> None:
        """Only a line of its own closes the head; '---' in a value, or indented, does not."""
        parts = split("---\ndescription: a --- b\nx: |\n  ---\n  y\n---- : z\n---\nbody")
        assert parts.head == "description: a --- b\nx: |\n  ---\n  y\n---- : z"
        assert parts.body == "body"

    def test_a_rule_in_the_body_stays_in_the_body(self) -> None:
        """The first closing fence counts; later '---' lines are Markdown."""
        assert split("---\na: b\n---\none\n---\ntwo").body == "one\n---\ntwo"

    @pytest.mark.parametrize("fence", ["---  ", "---\t"])
    def test_a_fence_may_have_trailing_blanks(self, fence: str) -> None:
        """Blanks after the dashes do not hide a fence."""
        assert split(f"{fence}\na: b\n{fence}\nbody").head == "a: b"

    def test_an_empty_head_is_a_head(self) -> None:
        """Two fences in a row give an empty head, not none."""
        assert split("---\n---\nbody")[:4] == ("", 2, "body", 3)

    def test_an_unclosed_head_ends_where_its_keys_do(self) -> None:
        """Without a closing fence the head ends at the first empty line or heading."""
        parts = split("---\nname: a\ndescription: b\n\n# Title\ntext")
        assert parts.head == "name: a\ndescription: b\n"
        assert (parts.body, parts.body_line) == ("\n# Title\ntext", 4)
        assert codes(parts.problems) == [("unclosed-frontmatter", 1)]

    @pytest.mark.parametrize("text", ["---", "---\n", "---\n---", "---\na: b\n---", "\n---"])
    def test_a_body_never_begins_past_the_end(self, text: str) -> None:
        """The line of an empty body lies within the file."""
        parts = split(text)
        assert parts.body == ""
        assert 1 <= parts.body_line <= text.count("\n") + 1

    @given(st.text(alphabet="-\n :ab#\t", max_size=60))
    @settings(max_examples=300, deadline=None)
    def test_nothing_is_lost(self, text: str) -> None:
        """Head and body are parts of the text, in this order, and the body is its end."""
        parts = split(text)
        assert text.endswith(parts.body)
        if parts.head is not None:
            assert parts.head in text[: len(text) - len(parts.body)]
        assert text.split("\n")[parts.body_line - 1 :][0].endswith(parts.body.split("\n")[0])


class TestParse:
    @pytest.mark.parametrize(
        ("head", "values"),
        [
            ("a: b", {"a": "b"}),
            ("a: 'b: c'", {"a": "b: c"}),
            ('a: "b\\n\\u00e9"', {"a": "b\né"}),
            ("a: |\n  b\n   c\n", {"a": "b\n c\n"}),
            ("a: |-\n  b\n  c", {"a": "b\nc"}),
            ("a: >\n  b\n  c\n\n  d\n", {"a": "b c\nd\n"}),
            ("a: >-\n  b\n  c", {"a": "b c"}),
            ("a: |+\n  b\n\n", {"a": "b\n\n"}),
            ("a: b\n  c\n  d", {"a": "b c d"}),
            ("a:\n  b: c\n  d:\n  - e\n  - f", {"a": {"b": "c", "d": ["e", "f"]}}),
            ("a: {b: c, d: [e, f]}", {"a": {"b": "c", "d": ["e", "f"]}}),
            ("a: &x b\nc: *x", {"a": "b", "c": "b"}),
            ("a: b # c", {"a": "b"}),
            ("a: b#c", {"a": "b#c"}),
            ('"a": b', {"a": "b"}),
            ("a:", {"a": ""}),
            ("? a\n: b", {"a": "b"}),
            ("<<: a", {"<<": "a"}),
            ("", {}),
            ("# only a comment", {}),
            ("名前: 値", {"名前": "値"}),
        ],
    )
    def test_valid_yaml_is_read_as_yaml(self, head: str, values: dict) -> None:
        """Every way to write a value gives that value, and no complaint."""
        assert parse(head, 2) == (values, [])

    @pytest.mark.parametrize(
        "text", ["no", "1.0", "0x1F", "2024-01-01", "null", "~", "1_000", "on", ".inf", "1e3"]
    )
    def test_scalars_keep_their_spelling(self, text: str) -> None:
        """Nothing becomes a number, a date or a truth value."""
        assert parse(f"a: {text}", 2)[0] == {"a": text}

    @pytest.mark.parametrize(
        ("head", "values", "line"),
        [
            ("name: a\ndescription: Use when: always", {"description": "Use when: always"}, 3),
            ("name: a\ndescription: b\n\tlicense: c", {"description": "b license: c"}, 4),
            ("description: *.py files", {"description": "*.py files"}, 2),
            ("description: `code` first", {"description": "`code` first"}, 2),
            ("description: @handle", {"description": "@handle"}, 2),
            ("description: %percent", {"description": "%percent"}, 2),
            ("description: [a] and b", {"description": "[a] and b"}, 2),
            ("description: {a} and b", {"description": "{a} and b"}, 2),
            ('description: "a" and b', {"description": '"a" and b'}, 2),
            ("description: 'it's here'", {"description": "it's here"}, 2),
            ('description: "open', {"description": "open"}, 2),
            ("a: b\ndescription: 'open\nname: x", {"description": "open", "name": "x"}, 3),
            ("description: !!python/object:os.system x\nname: [", {"name": "["}, 3),
        ],
    )
    def test_a_bad_value_is_the_text_that_stands_there(
        self, head: str, values: dict, line: int
    ) -> None:
        """YAML that is none is read key by key, with one problem near the line to mend."""
        found, problems = parse(head, 2)
        assert {key: found[key] for key in values} == values
        assert [p.code for p in problems] == ["bad-yaml"]
        assert abs(problems[0].line - line) <= 1
        assert problems[0].fix

    def test_good_keys_survive_a_bad_one(self) -> None:
        """One bad value takes no other with it, not even lists and blocks."""
        head = (
            "name: a\ndescription: x: y\nmetadata:\n  tags:\n  - one\n  - two\ntext: |\n  l1\n  l2"
        )
        values, problems = parse(head, 2)
        assert values["metadata"] == {"tags": ["one", "two"]}
        assert values["text"] == "l1\nl2"
        assert values["description"] == "x: y"
        assert codes(problems) == [("bad-yaml", 3)]

    def test_a_block_with_a_bad_neighbour_keeps_its_lines(self) -> None:
        """A block whose indentation YAML refuses keeps its line ends when it is literal."""
        values, _ = parse("a: |\n    one\n  two\nb: >\n    one\n  two\nc: [", 2)
        assert values["a"] == "one\ntwo"
        assert values["b"] == "one two"

    def test_tags_run_nothing(self) -> None:
        """A tag that would call Python is only a string's tag."""
        values, _ = parse("a: !!python/object/apply:os.system ['exit 1']\nb: !!int '3'", 2)
        assert values == {"a": ["exit 1"], "b": "3"}

    @pytest.mark.parametrize("head", ["- a\n- b", "just words", "[a, b]", "'x'"])
    def test_a_head_that_is_no_mapping_says_so(self, head: str) -> None:
        """A list or a word is not a head."""
        assert parse(head, 2)[0] == {}
        assert codes(parse(head, 2)[1]) == [("not-a-mapping", 2)]

    @pytest.mark.parametrize("head", ["]", "@", "{a", "\t", "%", ": [", "[a]: ]"])
    def test_bad_yaml_without_any_key_gives_nothing(self, head: str) -> None:
        """Where no key can be found there are no values, and a problem."""
        values, problems = parse(head, 2)
        assert values == {}
        assert [p.code for p in problems] in (["bad-yaml"], [])

    @pytest.mark.parametrize("head", ["[a]: b", "{a: b}: c", "? [x]\n: y"])
    def test_a_key_that_is_no_text_is_refused(self, head: str) -> None:
        """Unhashable keys are a problem, not a crash."""
        assert codes(parse(head, 2)[1]) == [("bad-yaml", 2)]

    def test_a_repeated_key_is_named_at_its_second_line(self) -> None:
        """The last value counts, and the problem stands where the key stands again."""
        values, problems = parse("name: a\nx: |\n  name: no\nname : b", 2)
        assert values["name"] == "b"
        assert codes(problems) == [("repeated-key", 5)]
        assert "'name'" in problems[0].message

    def test_lines_are_those_of_an_editor(self) -> None:
        """Line and paragraph separators, which YAML takes for line ends, do not shift lines."""
        _, problems = parse("a: x\u2028 y\u2029 z\x85 w\nb: c: d", 2)
        assert codes(problems) == [("bad-yaml", 3)]

    @pytest.mark.parametrize("character", ["\x07", "\x1b", "\x7f", "\ufffe"])
    def test_a_forbidden_character_is_named_on_its_line(self, character: str) -> None:
        """Control characters make the YAML bad where they stand; the values are still read."""
        values, problems = parse(f"é: ü\nname: a{character}b", 2)
        assert codes(problems) == [("bad-yaml", 3)]
        assert f"U+{ord(character):04X}" in problems[0].message
        assert values["name"] == f"a{character}b"


class TestHostile:
    """Heads that are made to hurt. Each is read in a moment, not in minutes."""

    @pytest.fixture(autouse=True)
    def _in_time(self):
        start = time.monotonic()
        yield
        assert time.monotonic() - start < 120

    @pytest.mark.parametrize("unit", ["[", "{", "- ", "? ", "[{a: ", "a: {", "!!seq [", "&a ["])
    @pytest.mark.parametrize("count", [MAX_DEPTH * 2, 1_000, 60_000, 100_000])
    def test_deep_nesting_is_refused(self, unit: str, count: int) -> None:
        """Tens of thousands of brackets neither exhaust the stack nor take long."""
        values, problems = parse("name: x\na: " + unit * count, 2)
        assert values["name"] == "x"
        expected = "long-head" if len(unit) * count > MAX_HEAD else "bad-yaml"
        assert expected in [p.code for p in problems]

    def test_deep_nesting_by_lines_is_refused(self) -> None:
        """Nesting by indentation counts as well."""
        head = "name: x\n" + "\n".join(" " * n + "a:" for n in range(300)) + " b"
        values, problems = parse(head, 2)
        assert values["name"] == "x"
        assert [p.code for p in problems] == ["bad-yaml"]

    def test_moderate_nesting_is_read(self) -> None:
        """A few levels in a long head are fine."""
        head = "a:\n  b:\n    c:\n      - d: e\n" + "".join(f"k{n}: v\n" for n in range(600))
        values, problems = parse(head, 2)
        assert values["a"] == {"b": {"c": [{"d": "e"}]}}
        assert problems == []

    def test_aliases_of_aliases_do_not_unfold(self) -> None:
        """Ten lines that stand for billions of values are a problem, not a full memory."""
        lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
        for before, name in zip("abcdefgh", "bcdefghi", strict=True):
            lines.append(f"{name}: &{name} [{', '.join(['*' + before] * 9)}]")
        values, problems = parse("\n".join([*lines, "name: x"]), 2)
        assert values["name"] == "x"
        assert "too many values" in problems[0].message

    def test_a_long_text_repeated_by_aliases_is_refused(self) -> None:
        """Few values can still be gigabytes of text."""
        head = f"name: x\na: &a {'y' * 20_000}\nb: [{', '.join(['*a'] * 10_000)}]"
        values, problems = parse(head, 2)
        assert values["name"] == "x"
        assert problems[0].code == "bad-yaml"
        assert len(str(values["b"])) < 50_000

    @pytest.mark.parametrize("head", ["a: &a [*a]", "a: &a {b: *a}", "&a [*a]"])
    def test_a_value_that_holds_itself_is_refused(self, head: str) -> None:
        """Recursion by aliases is a problem, and nothing walks it for ever."""
        assert [p.code for p in parse(f"{head}\n", 2)[1]] == ["bad-yaml"]

    @pytest.mark.parametrize(
        "line",
        ["x" + " " * 60_000, "x " * 30_000, ":" * 60_000, "x:" * 30_000, "'" * 60_000,
         '"' * 60_001, "\t" * 60_000, "a: " * 20_000, "- " * 30_000, "#" * 60_000],
    )  # fmt: skip
    def test_a_long_odd_line_takes_no_time(self, line: str) -> None:
        """No pattern of ours goes over a line more than a few times."""
        parse(f"name: x\n{line}\nc: [", 2)

    def test_only_the_beginning_of_an_endless_head_is_read(self) -> None:
        """A head of megabytes is cut, and that is said."""
        values, problems = parse("name: x\n" + "a: b\n" * MAX_HEAD, 2)
        assert values["name"] == "x"
        assert codes(problems) == [("long-head", 2), ("repeated-key", 4)]

    @given(st.text(max_size=200))
    @settings(max_examples=300, deadline=None)
    def test_any_text_is_survived(self, head: str) -> None:
        """Nothing raises; keys are strings; lines lie within the head or on its closing fence."""
        head = head.replace("\r", "\n")
        values, problems = parse(head, 2)
        assert all(isinstance(key, str) for key in values)
        assert all(2 <= p.line <= head.count("\n") + 3 for p in problems)

    @given(
        st.lists(
            st.text(alphabet=" \t\n:-?[]{}&*!|>'\"%@`#,ab\\<=~.", min_size=0, max_size=12),
            max_size=12,
        )
    )
    @settings(max_examples=500, deadline=None)
    def test_any_syntax_is_survived(self, parts: list[str]) -> None:
        """Characters with a meaning in YAML, in any order, never raise."""
        frontmatter.parse("\n".join(["name: x", *parts]), 2)


_PIECES = st.sampled_from(
    [
        "a: 1\n", "a: 2\n", "b: [x, &q y]\n", "c: &r {k: v, 'l m': [1, 2]}\n", "d: *r\n", "e: *q\n",
        "? [a]\n: b\n", "f: &s [*s]\n", "g: {*q : 1}\n", "<<: *r\n", "h: |\n  text\n", "- x\n",
        "i: !!int 3\n", "j: !own {x: y}\n", "k: ~\n", "l: {? {a: b} : c}\n", "m: &m {n: *m}\n",
        "&z o: v\n", "p: 'open\n", "{}\n", "[]\n", "--- \n", "\u2028q: [\n",
    ]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=7).map("".join))
def test_values_are_those_of_the_base_loader(head: str) -> None:
    """Our own way from YAML nodes to values gives what PyYAML's gives, or the same complaint."""
    assert _outcome(frontmatter._values, head) == _outcome(_base_loader, head)


def _base_loader(head: str) -> object:
    return yaml.load(head, Loader=yaml.CBaseLoader)


def _outcome(load: Callable[[str], object], head: str) -> object:
    try:
        return load(head)
    except yaml.MarkedYAMLError as error:
        return error.problem, error.problem_mark.index


_PLAIN_TEXT = r"""name: x
name:  two words  $
a:
b: http://x/y#z, [w] 'v'
c: 'it is'
d: "so: # "
d: ''
  - item
  - 'item'
- item
  sub: 1.0
  sub:
   - more
    sub: x
  go on
go on
e: x: y
e: x #y
e: x:
  -
f: 'a''b'
f: "a\nb"
g: ünï 😀
h: WIDExWIDE
i: aSEPARATORb
j: aTABb
k: |
kk: |-  $
  text: "of
   a block
  - it
l: > x
m: {a: b}
n: &x y
o: *x
# p
q: ~
<<: r
yes: no
---
...
s: - x
t: ?
u: =
v: "x" y
w: 'x' # y
x : y
"""
_NAMED = {"$": "", "WIDE": "\u3000", "SEPARATOR": "\u2028", "TAB": "\t"}
for _name, _sign in _NAMED.items():
    _PLAIN_TEXT = _PLAIN_TEXT.replace(_name, _sign)
_PLAIN_LINES = _PLAIN_TEXT.split("\n")


@given(st.lists(st.sampled_from(_PLAIN_LINES), min_size=1, max_size=6).map("\n".join))
@settings(max_examples=1_000, deadline=None)
def test_a_plain_head_has_the_values_that_yaml_gives(head: str) -> None:
    """Read line by line it gives the same, in the same order; or it is left to YAML."""
    plain = frontmatter._plain_values(head)
    if plain is not None:
        read = frontmatter._values(head)
        assert (plain, list(plain)) == (read, list(read))
        assert not frontmatter._repeated(head, 1)


@pytest.mark.parametrize(
    "head",
    [
        "name: x\ndescription: Does: nothing",
        "name: x\ndescription: >\n  text",
        "name: x\ndescription: |\n  text\n\n  more",
        "name: x\ndescription: |\n   text\n  less",
        "name: x\n# why",
        "name: x\nmetadata: {a: b}",
    ],
)
def test_what_has_a_meaning_in_yaml_is_left_to_it(head: str) -> None:
    """And the usual form is not."""
    assert frontmatter._plain_values(head) is None
    usual = "name: x\ndescription: 'It: is'\nmetadata:\n  version: 1.0\npaths:\n- a.py\nlicense:"
    assert frontmatter._plain_values(usual) == {
        "name": "x", "description": "It: is", "metadata": {"version": "1.0"},
        "paths": ["a.py"], "license": "",
    }  # fmt: skip
    block = "a: |\n  It: is\n    # more\nb: |-\n - x\nc: |\n  the end"
    assert frontmatter._plain_values(block) == {
        "a": "It: is\n  # more\n",
        "b": "- x",
        "c": "the end",
    }
