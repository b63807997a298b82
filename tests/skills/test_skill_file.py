"""From any bytes to a Skill."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.base.errors import NotFound, Unwritable
from tacit.skills.skill import PROBLEM_RULES, Skill
from tacit.skills.skill_file import MAX_SKILL_READ, parse_skill, read_skill, read_skill_bytes

GOOD = "---\nname: demo\ndescription: Does it.\n---\n\n# Demo\n\nDo it.\n"


def found(skill: Skill) -> list[tuple[str, int]]:
    return [(problem.code, problem.line) for problem in skill.problems]


class TestFields:
    def test_every_field_of_the_standard_and_of_the_peers_is_read(self) -> None:
        """Each known key arrives in its field, and nothing is wrong with it."""
        head = """\
name: demo
description: Does it.
version: 1.10
license: MIT
compatibility: Linux
metadata:
  author: me
  nested:
    deep: [1, 2]
allowed-tools: Read Bash(git add:*)
when_to_use: when asked
argument-hint: "[file]"
disable-model-invocation: true
user-invocable: false
paths: ["src/**/*.py", "*.md"]
source: auto-skill
"""
        skill = parse_skill(f"---\n{head}---\nDo it.\n", "demo")
        assert skill.problems == ()
        assert (skill.name, skill.description, skill.version) == ("demo", "Does it.", "1.10")
        assert (skill.license, skill.compatibility) == ("MIT", "Linux")
        assert skill.metadata == {"author": "me", "nested": {"deep": ["1", "2"]}}
        assert skill.allowed_tools == ("Read", "Bash(git add:*)")
        assert (skill.when_to_use, skill.argument_hint) == ("when asked", "[file]")
        assert skill.disable_model_invocation is True
        assert skill.user_invocable is False
        assert skill.paths == ("src/**/*.py", "*.md")
        assert skill.learned
        assert skill.extra == {}
        assert skill.head == head.rstrip("\n")
        assert skill.body == "Do it.\n"

    def test_unknown_keys_are_kept_untouched(self) -> None:
        """What Tacit does not know keeps its shape and spelling."""
        text = GOOD.replace("name:", "hooks:\n  Stop:\n  - run: x\ncolour: No\nModel: 1.0\nname:")
        assert parse_skill(text, "demo").extra == {
            "hooks": {"Stop": [{"run": "x"}]},
            "colour": "No",
            "Model": "1.0",
        }

    @pytest.mark.parametrize("word", ["true", "True", "TRUE", "yes", "on", "1", "'true'", '"Yes"'])
    def test_true_in_all_spellings(self, word: str) -> None:
        """What people write for true is true."""
        text = GOOD.replace("name:", f"disable-model-invocation: {word}\nname:")
        assert parse_skill(text, "demo").disable_model_invocation is True
        assert found(parse_skill(text, "demo")) == []

    @pytest.mark.parametrize("word", ["false", "False", "no", "off", "0", "'no'"])
    def test_false_in_all_spellings(self, word: str) -> None:
        """What people write for false is false."""
        text = GOOD.replace("name:", f"user-invocable: {word}\nname:")
        assert parse_skill(text, "demo").user_invocable is False

    def test_a_flag_that_is_neither_keeps_its_default_and_says_so(self) -> None:
        """`maybe` is a problem on its line, and the default stands."""
        text = GOOD.replace("name:", "user-invocable: maybe\nname:")
        skill = parse_skill(text, "demo")
        assert skill.user_invocable is True
        assert found(skill) == [("not-a-flag", 2)]

    @pytest.mark.parametrize(
        ("written", "tools"),
        [
            ("Read", ("Read",)),
            ("Read Write", ("Read", "Write")),
            ("Read, Write", ("Read", "Write")),
            ("Read,Write,", ("Read", "Write")),
            ("[Read, Write]", ("Read", "Write")),
            ('["Bash(git *)", Read]', ("Bash(git *)", "Read")),
            ("\n  - Read\n  - Bash(npm run test:*)", ("Read", "Bash(npm run test:*)")),
            ("Bash(git add:*), Bash(git rm x:*)", ("Bash(git add:*)", "Bash(git rm x:*)")),
            ("Bash(a, b) Read", ("Bash(a, b)", "Read")),
            ("Bash(echo $(date):*) Read", ("Bash(echo $(date):*)", "Read")),
            ("Bash(open Read", ("Bash(open Read",)),
            ("mcp__server__tool", ("mcp__server__tool",)),
            ("", ()),
            ("[]", ()),
        ],
    )  # fmt: skip
    def test_tools_in_all_spellings(self, written: str, tools: tuple[str, ...]) -> None:
        """Blanks, commas and lists separate tools; what stands in brackets stays with its tool."""
        text = GOOD.replace("name:", f"allowed-tools: {written}\nname:")
        assert parse_skill(text, "demo").allowed_tools == tools

    @pytest.mark.parametrize(
        ("written", "paths"),
        [
            ("src/*.py", ("src/*.py",)),
            ("src/*.py, docs/**", ("src/*.py", "docs/**")),
            ('"*.{ts,tsx}, *.js"', ("*.{ts,tsx}", "*.js")),
            ("\n  - '*.{a,b}'\n  - c", ("*.{a,b}", "c")),
            ("[]", ()),
        ],
    )
    def test_paths_in_all_spellings(self, written: str, paths: tuple[str, ...]) -> None:
        """A list, or a text with commas; a comma in braces belongs to the pattern."""
        assert parse_skill(f"---\npaths: {written}\n---\n", "x").paths == paths

    def test_source_counts_at_the_top_and_under_metadata(self) -> None:
        """A skill is learned by `source: auto-skill` in either place, and by nothing else."""
        assert parse_skill("---\nsource: auto-skill\n---\n", "x").learned
        assert parse_skill("---\nmetadata:\n  source: auto-skill\n---\n", "x").learned
        assert not parse_skill("---\nsource: auto-skill-2\n---\n", "x").learned
        assert not parse_skill("source: auto-skill\n", "x").learned

    def test_a_version_under_metadata_counts(self) -> None:
        """The standard puts a version under metadata."""
        assert parse_skill("---\nmetadata:\n  version: '2.0'\n---\n", "x").version == "2.0"

    def test_values_of_the_wrong_kind_are_read_as_text(self) -> None:
        """A list for a licence is joined; a text for metadata is left out; both are said."""
        text = GOOD.replace("name:", "license: [a, b]\nmetadata: none\nname:")
        skill = parse_skill(text, "demo")
        assert (skill.license, skill.metadata) == ("a, b", {})
        assert found(skill) == [("not-text", 2), ("not-a-mapping", 3)]


class TestNames:
    def test_the_frontmatter_names_the_skill_and_the_folder_is_an_alias(self) -> None:
        """Where they differ both are known, and lint says so on the line of the name."""
        skill = parse_skill(GOOD, "other")
        assert (skill.name, skill.aliases) == ("demo", ("other",))
        assert found(skill) == [("name-differs", 2)]

    @pytest.mark.parametrize(
        ("head", "code"),
        [("description: x", "no-name"), ("name:\ndescription: x", "bad-name"),
         ("name: [a]\ndescription: x", "bad-name"), ("name: {a: b}\ndescription: x", "bad-name"),
         ("name: '  '\ndescription: x", "bad-name")],
    )  # fmt: skip
    def test_without_a_name_the_folder_names_it(self, head: str, code: str) -> None:
        """A missing or senseless name is the folder's, and a problem."""
        skill = parse_skill(f"---\n{head}\n---\nx\n", "my-folder")
        assert (skill.name, skill.aliases) == ("my-folder", ())
        assert [c for c, _ in found(skill)] == [code]
        assert "my-folder" in skill.problems[0].fix

    def test_chinese_names_are_names(self) -> None:
        """A name in any script is fine."""
        skill = parse_skill("---\nname: 数据库-迁移\ndescription: 用\n---\nx\n", "数据库-迁移")
        assert (skill.name, skill.problems) == ("数据库-迁移", ())

    def test_one_name_in_two_spellings_is_one_name(self) -> None:
        """A decomposed folder and a composed name do not differ; wide letters are narrowed."""
        assert found(parse_skill("---\nname: é\ndescription: x\n---\ny\n", "e\u0301")) == []
        assert parse_skill("---\nname: ｄｅｍｏ\ndescription: x\n---\ny\n", "demo").name == "demo"

    def test_a_bad_form_is_said_with_a_good_one(self) -> None:
        """The mend is a name that would pass."""
        skill = parse_skill("---\nname: My  Great_Skill-\ndescription: x\n---\ny\n", "x")
        problem = next(p for p in skill.problems if p.code == "name-form")
        assert problem.fix == "write 'name: my-great-skill'"
        assert problem.line == 2

    def test_a_long_name_is_kept_and_said(self) -> None:
        """Nothing is cut in silence."""
        skill = parse_skill(f"---\nname: {'a' * 65}\ndescription: x\n---\ny\n", "a" * 65)
        assert len(skill.name) == 65
        assert found(skill) == [("long-name", 2)]


class TestDescriptions:
    @pytest.mark.parametrize(
        ("written", "text"),
        [
            ("Use when: asked, or: not", "Use when: asked, or: not"),
            ("'It''s here'", "It's here"),
            ('"a: b\\tc"', "a: b\tc"),
            ("|\n  one\n  two", "one\ntwo"),
            (">-\n  one\n  two", "one two"),
            ("one\n  two", "one two"),
            ("a --- b", "a --- b"),
            ("a\tb", "a\tb"),
            ("<example>do: it</example>", "<example>do: it</example>"),
            ("处理数据：当需要时", "处理数据：当需要时"),
        ],
    )
    def test_descriptions_in_all_spellings(self, written: str, text: str) -> None:
        """Whatever the quoting, the description is the words that were meant."""
        skill = parse_skill(f"---\nname: x\ndescription: {written}\nlicense: y\n---\nz\n", "x")
        assert (skill.description, skill.license) == (text, "y")

    def test_no_description_is_a_problem(self) -> None:
        """Missing, empty and too long are three problems, each on its line."""
        assert found(parse_skill("---\nname: x\n---\ny\n", "x")) == [("no-description", 1)]
        assert found(parse_skill("---\nname: x\ndescription:\n---\ny\n", "x")) == [
            ("bad-description", 3)
        ]
        text = f"---\nname: x\ndescription: {'d' * 1025}\n---\ny\n"
        assert found(parse_skill(text, "x")) == [("long-description", 3)]
        assert len(parse_skill(text, "x").description) == 1025

    def test_a_list_for_a_description_is_joined_and_said(self) -> None:
        """The words are not lost."""
        skill = parse_skill("---\nname: x\ndescription: [a, b]\n---\ny\n", "x")
        assert skill.description == "a, b"
        assert found(skill) == [("bad-description", 3)]


class TestBytes:
    def test_a_byte_order_mark_is_dropped_and_said(self) -> None:
        """The head is found behind a BOM."""
        skill = parse_skill(b"\xef\xbb\xbf" + GOOD.encode(), "demo")
        assert skill.description == "Does it."
        assert found(skill) == [("bom", 1)]

    @pytest.mark.parametrize("end", ["\r\n", "\r"])
    def test_all_line_ends_are_line_ends(self, end: str) -> None:
        """CRLF and lone CR give the same skill, with the same lines."""
        text = GOOD.replace("Does it.", "a: b: c")
        plain, other = parse_skill(text, "demo"), parse_skill(text.replace("\n", end), "demo")
        assert other == plain
        assert found(other) == [("bad-yaml", 3)]

    @pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
    def test_invalid_utf8_is_replaced_and_its_line_named(self, end: bytes) -> None:
        """One bad byte does not hide the rest; the line is the editor's, whatever the ends."""
        data = GOOD.encode().replace(b"Do it.", b"Do \xff it.").replace(b"\n", end)
        skill = parse_skill(data, "demo")
        assert "Do \ufffd it." in skill.body
        assert found(skill) == [("not-utf8", 8)]
        assert "0xff" in skill.problems[0].message

    def test_nul_is_replaced_and_its_line_named(self) -> None:
        """NUL characters never reach a consumer."""
        skill = parse_skill(GOOD.replace("Do it.", "Do\x00it"), "demo")
        assert "\x00" not in skill.body
        assert found(skill) == [("nul", 8)]
        assert "\x00" not in parse_skill(GOOD.replace("Does", "Do\x00es"), "demo").description

    def test_utf16_is_survived(self) -> None:
        """A file in another encoding is a skill with errors."""
        skill = parse_skill(GOOD.encode("utf-16"), "demo")
        assert skill.name == "demo"
        assert {"not-utf8", "no-frontmatter"} <= {code for code, _ in found(skill)}

    def test_a_body_of_a_megabyte_is_kept_whole(self) -> None:
        """Nothing is cut below the limit."""
        body = "x" * 79 + "\n"
        skill = parse_skill(GOOD + body * 13_108, "demo")
        assert len(skill.body) > 1024 * 1024
        assert [c for c, _ in found(skill)] == ["long-body"]

    def test_an_empty_file_is_a_skill_with_problems(self) -> None:
        """No bytes are no reason to raise."""
        assert found(parse_skill(b"", "demo")) == [("no-body", 1), ("no-frontmatter", 1)]

    def test_a_head_without_a_body_says_so_within_the_file(self) -> None:
        """The line of the missing body exists."""
        assert found(parse_skill("---\nname: x\ndescription: y\n---", "x")) == [("no-body", 4)]


class TestFiles:
    def test_a_folder_or_its_file_may_be_named(self, home: Path) -> None:
        """Both ways lead to the same skill."""
        (home / "demo").mkdir()
        (home / "demo" / "SKILL.md").write_text(GOOD)
        by_folder = read_skill(home / "demo")
        assert by_folder == read_skill(home / "demo" / "SKILL.md")
        assert by_folder.folder == home / "demo"
        assert by_folder.problems == ()

    def test_the_file_in_the_working_directory(
        self, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A bare `SKILL.md` or `.` takes its name from the folder it lies in."""
        (home / "demo").mkdir()
        (home / "demo" / "SKILL.md").write_text(GOOD)
        monkeypatch.chdir(home / "demo")
        assert read_skill("SKILL.md").folder == home / "demo"
        assert found(read_skill(".")) == []

    def test_a_small_letter_file_is_read_and_said(self, home: Path) -> None:
        """`skill.md` counts, with advice."""
        (home / "demo").mkdir()
        (home / "demo" / "skill.md").write_text(GOOD)
        skill = read_skill(home / "demo")
        assert (skill.file, found(skill)) == ("skill.md", [("file-case", 2)])

    def test_no_skill_is_not_found(self, home: Path) -> None:
        """An empty folder, no folder, and a path through a file say the same."""
        (home / "file").write_text("")
        for path in (home, home / "nothing", home / "file", home / "file" / "x"):
            with pytest.raises(NotFound, match="no SKILL"):
                read_skill(path)

    def test_pipes_folders_and_devices_are_refused_at_once(self, home: Path) -> None:
        """Whatever is called SKILL.md, reading neither waits nor reads a device."""
        for kind in ("fifo", "folder", "device", "socket"):
            place = home / kind
            place.mkdir()
            file = place / "SKILL.md"
            if kind == "fifo":
                os.mkfifo(file)
            elif kind == "folder":
                file.mkdir()
            elif kind == "device":
                file.symlink_to("/dev/zero")
            else:
                import socket

                with socket.socket(socket.AF_UNIX) as listener:
                    listener.bind(str(file))
            start = time.monotonic()
            with pytest.raises(Unwritable, match=r"cannot read .*SKILL.md"):
                read_skill(place)
            assert time.monotonic() - start < 120

    def test_a_file_of_eight_megabytes_and_more_is_cut(self, home: Path) -> None:
        """Only the beginning is read, a character cut in two is no complaint, and it is said."""
        (home / "demo").mkdir()
        file = home / "demo" / "SKILL.md"
        file.write_bytes(GOOD.encode() + "é".encode() * (5 * 1024 * 1024))
        data, size = read_skill_bytes(str(file))
        assert (len(data), size) == (MAX_SKILL_READ, file.stat().st_size)
        skill = read_skill(home / "demo")
        assert found(skill) == [("too-big", 1)]
        assert f"{size:,}" in skill.problems[0].message

    def test_a_file_of_exactly_the_limit_is_whole(self, home: Path) -> None:
        """The limit itself is allowed."""
        (home / "demo").mkdir()
        (home / "demo" / "SKILL.md").write_bytes(GOOD.encode().ljust(MAX_SKILL_READ, b"x"))
        assert found(read_skill(home / "demo")) == []


PIECES = st.one_of(
    st.sampled_from(
        ["---", "---\n", "\n", "\r\n", "\r", "\ufeff", "name: a", "description: b: c", "\t", "- x",
         "name:", "'", '"', "|", ">", "&a", "*a", "[", "{", "# x", "\x00", "\u2028", "\x85", ": "]
    ),
    st.text(max_size=5),
)  # fmt: skip


class TestAnything:
    @given(st.binary(max_size=300))
    @settings(max_examples=200, deadline=None)
    def test_any_bytes_are_read(self, data: bytes) -> None:
        """No bytes raise, and the result is a skill with a name and known problems."""
        skill = parse_skill(data, "folder")
        assert skill.name
        assert all(problem.code in PROBLEM_RULES for problem in skill.problems)

    @given(st.lists(PIECES, max_size=25).map("".join))
    @example("---")
    @example("\n\n---")
    @example("---\n---")
    @example("---\nname: [\n")
    @example("---\r---")
    @settings(max_examples=400, deadline=None)
    def test_problems_lie_within_the_file(self, text: str) -> None:
        """Every problem has a line that an editor can go to, a message and a mend."""
        text = text.encode("utf-8", "replace").decode()
        lines = len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
        skill = parse_skill(text, "folder")
        for problem in skill.problems:
            assert 1 <= problem.line <= lines, problem
            assert problem.message
            assert problem.fix
        assert 1 <= skill.body_line <= lines
        assert parse_skill(text.encode(), "folder") == skill

    @given(st.lists(PIECES, max_size=25).map("".join))
    @settings(max_examples=400, deadline=None)
    def test_head_and_body_put_together_give_the_same_skill(self, text: str) -> None:
        """What was read, written out plainly and read again, is the same skill."""
        first = parse_skill(text, "folder")
        if "no-frontmatter" in {p.code for p in first.problems}:
            return
        again = parse_skill(f"---\n{first.head}\n---\n{first.body}", "folder")
        assert (again.head, again.body) == (first.head, first.body)
        assert (again.name, again.description) == (first.name, first.description)
        assert (again.extra, again.metadata) == (first.extra, first.metadata)
