"""Everything that is wrong with a skill folder."""

import os
import re
import string
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skills_ref.validator import validate

from tacit.base.errors import NotFound
from tacit.skills import open_standard
from tacit.skills.skill import PROBLEM_RULES, problem
from tacit.skills.skill_lint import lint, lint_text


def lint_problems(folder: Path, **options: bool) -> list[tuple[str, int]]:
    return [(p.code, p.line) for p in lint(folder, **options)]


@pytest.fixture
def folder(home: Path, put) -> Path:
    return put(home / "demo")


def test_a_good_skill_is_clean(folder: Path) -> None:
    """Nothing to say, strictly or not."""
    assert lint(folder) == lint(folder, strict=True) == []


def test_by_folder_by_file_and_by_link(folder: Path, home: Path) -> None:
    """All ways lead to the same verdict; the name is that of the folder as it was given."""
    assert lint(folder / "SKILL.md") == []
    (home / "other").symlink_to(folder)
    assert lint_problems(home / "other") == [("name-differs", 2)]


class TestLinks:
    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("[a](references/x.md)", "missing-file"),
            ("![a](pic.png)", "missing-file"),
            ('[a](x.md "title")', "missing-file"),
            ("[a](<x.md>)", "missing-file"),
            ("[a](x.md#part)", "missing-file"),
            ("[a](x%20y.md)", "missing-file"),
            ("[a](../other/x.md)", "link-outside"),
            ("[a](a/../../x.md)", "link-outside"),
            ("[![a](have.md)](gone.md)", "missing-file"),
        ],
    )
    def test_a_file_that_is_not_there(self, folder: Path, put, text: str, code: str) -> None:
        """Said on the line of the link."""
        (folder / "have.md").write_text("")
        put(folder, body=f"# T\n\n{text}\n")
        assert lint_problems(folder) == [(code, 8)]

    @pytest.mark.parametrize(
        "text",
        ["[a](have.md)", "[a](have.md#x)", "[a](./have.md)", "[a](https://x.org/y.md)", "[a](#x)",
         "[a](mailto:x@y.z)", "[a](/abs/x.md)", "[a](~/x.md)", "`[a](gone.md)`", "[a](url)",
         "[a]({file}.md)", "[a]($X.md)", "```\n[a](gone.md)\n```", "~~~\n[a](gone.md)", "[a]()",
         "x[i](a b.md)", "[a](x%00.md)"],
    )  # fmt: skip
    def test_what_is_no_missing_file(self, folder: Path, put, text: str) -> None:
        """Addresses, anchors, templates, code and words in brackets."""
        (folder / "have.md").write_text("")
        put(folder, body=f"# T\n\n{text}\n")
        assert lint_problems(folder) == []

    @pytest.mark.parametrize(
        "text", ["[" * 200_000, "](" * 100_000, "[a](" * 60_000, "[a](" + " " * 200_000,
                 "`" * 200_001, "```\n" * 60_000, "![](x " + '"' * 200_000, "<" * 200_000]
    )  # fmt: skip
    def test_hostile_bodies_take_no_time(self, folder: Path, put, text: str) -> None:
        """No pattern of ours goes over a body again and again."""
        put(folder, body=f"{text}\n")
        start = time.monotonic()
        lint(folder, strict=True)
        assert time.monotonic() - start < 120


class TestFiles:
    def test_a_skill_inside_a_skill(self, folder: Path, put) -> None:
        """It is not read as one, and that is said with its path."""
        put(folder / "references" / "inner")
        (hit,) = lint(folder)
        assert (hit.code, hit.file) == ("nested-skill", "references/inner/SKILL.md")

    def test_a_link_to_nothing(self, folder: Path) -> None:
        """Among the support files too."""
        (folder / "assets").mkdir()
        (folder / "assets" / "x").symlink_to("gone")
        assert lint_problems(folder) == [("broken-link", 1)]

    def test_hidden_folders_are_not_looked_at(self, folder: Path, put) -> None:
        """A clone's .git is nobody's support file."""
        put(folder / ".git" / "x")
        assert lint_problems(folder) == []

    def test_a_loop_of_links_ends(self, folder: Path) -> None:
        """Folders behind links are not entered."""
        (folder / "loop").symlink_to(".")
        assert lint_problems(folder) == []


class TestUnreadable:
    def test_what_cannot_be_read_is_a_problem_not_an_end(self, home: Path) -> None:
        """A pipe, a folder and a link to nothing called SKILL.md; others go on being checked."""
        for kind in ("pipe", "folder", "link"):
            (home / kind).mkdir()
        os.mkfifo(home / "pipe" / "SKILL.md")
        (home / "folder" / "SKILL.md").mkdir()
        (home / "link" / "SKILL.md").symlink_to("gone")
        for kind in ("pipe", "folder", "link"):
            for strict in (False, True):
                (hit,) = lint(home / kind, strict=strict)
                assert (hit.code, hit.severity) == ("unreadable", "error")

    def test_no_skill_at_all(self, home: Path) -> None:
        """An empty folder is not a skill with a problem."""
        with pytest.raises(NotFound):
            lint(home)

    def test_bytes_that_are_no_text_stay_an_error(self, home: Path, put) -> None:
        """Also strictly: the standard's validator could not read it at all."""
        put(home / "demo", text=b"---\nname: demo\ndescription: x\n---\n\xff\n")
        assert [p.severity for p in lint(home / "demo", strict=True)] == ["error"]


class TestProblems:
    @pytest.mark.parametrize("code", PROBLEM_RULES)
    def test_every_rule_can_be_filled_in(self, code: str) -> None:
        """No message or mend is left with a hole, and braces in values do no harm."""
        rule = PROBLEM_RULES[code]
        fields = {
            name.split(":")[0]
            for text in (rule.message, rule.fix)
            for _, name, _, _ in string.Formatter().parse(text)
            if name
        }
        fill = {name: 3 if name in ("n", "most", "byte") else "{x}" for name in fields - {"file"}}
        made = problem(code, 1, **fill)
        assert made.severity in ("error", "warning", "note")
        assert not re.search(r"\{[a-z_]+:?", made.message.replace("{x}", ""))

    def test_text_and_folder_agree(self, folder: Path, put) -> None:
        """A SKILL.md that is not on the disk yet has the same problems."""
        put(folder, text="---\nname: x\ndescription: [a\nb: c\n---\n")
        text = (folder / "SKILL.md").read_bytes()
        for strict in (True, False):
            assert lint_text(text, "demo", strict=strict) == lint(folder, strict=strict)

    def test_sorted_and_said_once(self, folder: Path, put) -> None:
        """By line, and nothing twice although two readings look at the file."""
        put(folder, text="---\nname: Other_Name\ndescription: a: b\nname: c\nx: y\n---\n")
        hits = lint(folder, strict=True)
        assert hits == sorted(set(hits))
        assert [p.code for p in hits].count("bad-yaml") == 1


FOLDER = "demo"
OK = "name: demo\ndescription: Does it.\n"

# Heads with every feature of YAML that people use, and some that nobody should.
HEADS = {
    "plain": OK,
    "all keys": OK + "license: MIT\ncompatibility: x\nmetadata:\n  a: b\nallowed-tools: Read\n",
    "unknown key": OK + "version: 1\n",
    "no name": "description: x\n",
    "no description": "name: demo\n",
    "empty": "",
    "only a comment": "# x\n",
    "comments": "# a\nname: demo # b\n# c\ndescription: x # d\n",
    "list": "- a\n- b\n",
    "scalar": "words\n",
    "empty name": "name:\ndescription: x\n",
    "blank name": "name: '  '\ndescription: x\n",
    "list name": "name:\n- a\ndescription: x\n",
    "mapping name": "name:\n  a: b\ndescription: x\n",
    "capitals": "name: Demo\ndescription: x\n",
    "underscore": "name: de_mo\ndescription: x\n",
    "other name": "name: other\ndescription: x\n",
    "leading hyphen": "name: -demo\ndescription: x\n",
    "padded name": "name: '  demo '\ndescription: x\n",
    "wide letters": "name: ｄｅｍｏ\ndescription: x\n",
    "empty description": "name: demo\ndescription:\n",
    "blank description": "name: demo\ndescription: ' '\n",
    "list description": "name: demo\ndescription:\n- a\n",
    "1024 characters": f"name: demo\ndescription: {'d' * 1024}\n",
    "1025 characters": f"name: demo\ndescription: {'d' * 1025}\n",
    "1025 wide characters": f"name: demo\ndescription: {'字' * 1025}\n",
    "500 compatibility": OK + f"compatibility: {'c' * 500}\n",
    "501 compatibility": OK + f"compatibility: {'c' * 501}\n",
    "list compatibility": OK + "compatibility:\n- a\n",
    "empty compatibility": OK + "compatibility:\n",
    "single quotes": "name: 'demo'\ndescription: 'it''s: here'\n",
    "double quotes": 'name: "demo"\ndescription: "a\\n\\u00e9\\x41"\n',
    "bad escape": 'name: demo\ndescription: "\\q"\n',
    "unclosed quote": "name: demo\ndescription: 'x\n",
    "literal": "name: demo\ndescription: |\n  a\n   b\n",
    "folded": "name: demo\ndescription: >-\n  a\n  b\n",
    "keep": "name: demo\ndescription: |+\n  a\n\n",
    "indent mark": "name: demo\ndescription: |2\n   a\n  b\n",
    "block with a comment": "name: demo\ndescription: | # c\n  a\n",
    "block with a tight comment": "name: demo\ndescription: |# c\n  a\n",
    "empty block": "name: demo\ndescription: |\n",
    "several lines": "name: demo\ndescription: a\n  b\n  c\n",
    "several lines at the margin": "name: demo\ndescription: a\nb\n",
    "colon in value": "name: demo\ndescription: Use when: x\n",
    "colon without space": "name: demo\ndescription: a:b\n",
    "colon at the end": "name: demo\ndescription: a:\n",
    "hash": "name: demo\ndescription: a#b c #d\n",
    "star": "name: demo\ndescription: *x\n",
    "at": "name: demo\ndescription: @x\n",
    "backtick": "name: demo\ndescription: `x`\n",
    "percent": "name: demo\ndescription: %x\n",
    "flow list": OK + "allowed-tools: [a, b]\n",
    "flow mapping": OK + "metadata: {a: b}\n",
    "empty flow": OK + "metadata: {}\n",
    "bracket inside": "name: demo\ndescription: a [b] {c}\n",
    "bracket first": "name: demo\ndescription: [b] c\n",
    "anchor": OK + "metadata:\n  a: &x b\n",
    "alias": OK + "metadata:\n  a: &x b\n  c: *x\n",
    "anchor on a mapping": OK + "metadata: &m\n  a: b\n",
    "tag": OK + "license: !!str x\n",
    "python tag": OK + "license: !!python/object/apply:os.system ['x']\n",
    "own tag": OK + "license: !x y\n",
    "bare tag": OK + "license: ! y\n",
    "repeated key": OK + "name: demo\n",
    "repeated nested key": OK + "metadata:\n  a: b\n  a: c\n",
    "quoted key": '"name": demo\ndescription: x\n',
    "complex key": OK + "? a\n: b\n",
    "nested complex key": OK + "metadata:\n  ? a\n  : b\n",
    "list as key": OK + "metadata:\n  ? - a\n  : b\n",
    "no key": OK + "metadata:\n  : x\n",
    "no key in a list": OK + "license:\n- : x\n",
    "merge": OK + "<<:\n  license: x\n",
    "merge of a text": OK + "metadata:\n  <<: x\n",
    "merge in quotes": OK + "metadata:\n  '<<': x\n",
    "truth": OK + "metadata:\n  a: yes\n  b: null\n  c: ~\n  d: 1.0\n",
    "date": OK + "metadata:\n  a: 2024-01-01\n",
    "equals": "name: demo\ndescription: =\n",
    "equals in quotes": "name: demo\ndescription: '='\n",
    "tab in a value": "name: demo\ndescription: a\tb\n",
    "tab in quotes": "name: demo\ndescription: 'a\tb'\n",
    "tab after the colon": "name:\tdemo\ndescription: x\n",
    "tab as indent": OK + "metadata:\n\ta: b\n",
    "tab on an empty line": OK + "\n\t\nlicense: x\n",
    "tab at the end": "name: demo\t\ndescription: x\n",
    "tab before a comment": "name: demo\t# c\ndescription: x\n",
    "tab in a block": "name: demo\ndescription: |\n  a\tb\n",
    "indented head": "  name: demo\n  description: x\n",
    "uneven indent": OK + "metadata:\n    a: b\n  c: d\n",
    "list without indent": OK + "allowed-tools:\n- a\n- b\n",
    "list with indent": OK + "allowed-tools:\n  - a\n  - b\n",
    "nested lists": OK + "license:\n- - a\n  - b\n",
    "dashes in a value": "name: demo\ndescription: a --- b\n",
    "dashes in a block": "name: demo\ndescription: |\n  a\n  ---\n  b\n",
    "document end": OK + "...\n",
    "two document ends": OK + "...\n...\n",
    "text after the end": OK + "...\nlicense: x\n",
    "directive": "%YAML 1.2\n" + OK,
    "byte order mark inside": OK + "\ufeff\n",
    "line separator": "name: demo\ndescription: a\u2028b\n",
    "line separator after quotes": "name: 'demo'\u2028\ndescription: x\n",
    "next line": OK + "license: \x85[a\n",
    "no-break space": "name: demo\ndescription: \u00a0\n",
    "emoji": "name: demo\ndescription: 😀\n",
    "chinese": "name: demo\ndescription: 处理：数据\n",
    "escape character": "name: demo\ndescription: a\x1bb\n",
    "many keys": OK + "metadata:\n" + "".join(f"  k{n}: v\n" for n in range(50)),
    "deep": OK + "metadata:\n" + "".join(" " * (n + 1) + f"k{n}:\n" for n in range(30)),
}  # fmt: skip

FILES = {
    "nothing": "",
    "no fence": "# Title\n",
    "one fence": "---\nname: demo\n",
    "one line": "---",
    "space first": f"\n---\n{OK}---\n",
    "byte order mark": f"\ufeff---\n{OK}---\n",
    "CRLF": f"---\n{OK}---\nx\n".replace("\n", "\r\n"),
    "CR": f"---\n{OK}---\nx\n".replace("\n", "\r"),
    "four dashes": f"----\n{OK}----\n",
    "text on the fence": f"--- # x\n{OK}---\n",
    "head on one line": "---name: demo---",
    "no line end": f"---\n{OK}---",
    "no body": f"---\n{OK}---\n",
    "indented fence": f"---\n{OK}  ---\n",
    "NUL in the body": f"---\n{OK}---\na\x00b\n",
    "rule in the body": f"---\n{OK}---\na\n---\nb\n",
}


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as base:
        yield Path(base)


def compare(place: Path, text: str, folder_name: str = FOLDER) -> str:
    """Write the skill, ask both, and say how they agree; where skills-ref crashes there is no
    verdict to compare."""
    folder = place / folder_name
    folder.mkdir(exist_ok=True)
    (folder / "SKILL.md").write_bytes(text.encode())
    ours = lint(folder, strict=True)
    assert [p for p in ours if p.severity == "error"] == [
        p for p in lint_text(text, folder_name, strict=True) if p.severity == "error"
    ]
    try:
        theirs = validate(folder)
    except Exception:
        return "crashed"
    if any("must be a string" in said for said in theirs) and re.search(r": *=\s*$", text, re.M):
        return "crashed"  # a lone `=` is a word of YAML 1.1 there, and a string here
    errors = [p for p in ours if p.severity == "error"]
    assert bool(errors) == bool(theirs), (text, theirs, errors)
    return "invalid" if theirs else "valid"


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_heads(place: Path, head: str) -> None:
    """Each head is valid for both or for neither."""
    compare(place, f"---\n{head}---\n\nDo it.\n")


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_files(place: Path, text: str) -> None:
    """Fences, line ends and marks count alike for both."""
    compare(place, text)


def test_the_corpus_has_both_verdicts(place: Path) -> None:
    """The heads above would not all pass a checker that always says yes, or always no."""
    verdicts = [compare(place, f"---\n{head}---\n\nDo it.\n") for head in HEADS.values()]
    assert verdicts.count("valid") >= 30
    assert verdicts.count("invalid") >= 40
    assert verdicts.count("crashed") <= 5


@pytest.mark.parametrize(
    ("folder", "name"),
    [("demo", "demo"), (" demo", "demo"), ("demo ", "demo"), ("数据", "数据"), ("ｄｅｍｏ", "demo"),
     ("e\u0301", "é"), ("a" * 64, "a" * 64), ("a" * 65, "a" * 65), ("a--b", "a--b"), ("a.b", "a.b"),
     ("ß", "ß"), ("İ", "İ"), ("ﬁ", "fi"), ("²", "2"), ("a-", "a-"), ("٣", "٣"), ("x²", "x²")],
)  # fmt: skip
def test_names(place: Path, folder: str, name: str) -> None:
    """Folder and name are compared in the same spelling by both."""
    compare(place, f"---\nname: {name}\ndescription: x\n---\n", folder)


WORDS = st.sampled_from(
    ["\n", "\n  ", "\n- ", "\n  - ", "\n\n", "a", "b: c", "b:", "'", '"', "''", '""', "|", "|-",
     ">", ">+", "|2", "&a ", "*a", "!!str ", "!x ", "! ", "[", "]", "{", "}", ",", "# c", "? ",
     ": ", "-", "- ", "--", "\t", "\\n", "\\x41", "\\q", "%", "@", "`", "...", "\n...\n", "\u2028",
     "\x85", "\u00a0", "\ufeff", "é", "数", "<<: ", "=", "~", "true", "1.0", "metadata:\n  ",
     "license: ", "compatibility: ", "😀", "    ", '"k": ', "\r", "name: demo\n", "---"]
)  # fmt: skip
SHAPES = st.sampled_from(
    [OK + "license: {}\n", OK + "metadata:\n  a: {}\n", "{}" + OK, "name: demo\ndescription: {}\n",
     "name: demo{}\ndescription: x\n", OK + "{}\n", "name: 'demo'{}\ndescription: |\n  {}\n"]
)  # fmt: skip


@given(SHAPES, st.lists(WORDS, max_size=7).map("".join))
@settings(max_examples=400, deadline=None)
def test_generated_heads(place: Path, shape: str, text: str) -> None:
    """Whatever is put together from pieces of YAML has one verdict."""
    compare(place, f"---\n{shape.replace('{}', text)}---\nbody\n")


@given(st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=150, deadline=None)
def test_generated_values(place: Path, name: str, description: str) -> None:
    """Any text as name and description, in quotes and bare, has one verdict."""
    name, description = (t.encode("utf-8", "replace").decode() for t in (name, description))
    compare(place, f"---\nname: {name}\ndescription: {description}\n---\n")
    quoted = description.replace("'", "''")
    compare(place, f"---\nname: demo\ndescription: '{quoted}'\n---\n")


class TestLines:
    """Where the strict reading puts its problems."""

    @pytest.mark.parametrize(
        ("head", "code", "line"),
        [
            ("name: demo\nversion: 1\ndescription: x\n", "unknown-key", 3),
            ("name: demo\ndescription: [x]\n", "flow-style", 3),
            ("name: demo\ndescription: x\nmetadata:\n  a: &x b\n", "yaml-anchor", 5),
            ("name: demo\ndescription: x\nlicense: !!str y\n", "yaml-tag", 4),
            ("name: demo\ndescription: x\nname: y\n", "repeated-key", 4),
            ("name: demo\ndescription: x: y\n", "bad-yaml", 3),
            ("name: other\ndescription: x\n", "name-differs", 2),
            ("name: demo\n\ndescription: ''\n", "bad-description", 4),
        ],
    )
    def test_a_problem_stands_on_its_line(self, head: str, code: str, line: int) -> None:
        """The line is the file's, not the head's."""
        found = open_standard.check_standard(f"---\n{head}---\nx\n", "demo")
        assert [(p.code, p.line) for p in found] == [(code, line)]

    def test_what_the_standard_allows_is_at_most_a_warning(self) -> None:
        """A skill that is valid has no error in a strict lint, even with a problem of ours."""
        found = lint_text("\n".join(["---", OK.strip(), "---", ""]), "demo", strict=True)
        assert [(p.code, p.severity) for p in found] == [("no-body", "warning")]
