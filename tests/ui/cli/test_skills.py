"""`tacit list`, `show`, `lint` and `catalogue`: what they print, for people and for scripts."""

import os
import subprocess
from pathlib import Path

import pytest
from inside import answer

from tacit.base import trust
from tacit.traces.skill_uses import open_use_tables

ENTRY = {
    "name", "description", "folder", "scope", "origin", "host", "state", "version", "aliases",
    "also", "root", "file", "real", "model_invocable", "user_invocable", "paths", "worst", "digest",
}  # fmt: skip
PROBLEM = {"line", "code", "severity", "message", "fix", "file"}
SKILL = {
    "name", "description", "folder", "file", "aliases", "version", "license", "compatibility",
    "metadata", "allowed_tools", "when_to_use", "argument_hint", "disable_model_invocation",
    "user_invocable", "paths", "source", "extra", "head", "body", "body_line",
}  # fmt: skip


class TestList:
    def test_json(self, tacit, skills: Path) -> None:
        """The keys that scripts rely on."""
        found = tacit.json("list")
        assert set(found) == {"skills", "total", "unused", "uses"}
        assert all(set(entry) == ENTRY | {"standing", "used"} for entry in found["skills"])
        assert [entry["name"] for entry in found["skills"]] == [
            "broken", "git-rebase", "pdf-forms", "数据库", "learn-from-sessions",
            "schedule-creator", "using-tacit",
        ]  # fmt: skip

    def test_by_parts_and_by_use(self, skills: Path) -> None:
        """A part says how many there are; the most used come first."""
        part = answer("list", "-n", "2", "--skip", "1")
        assert [e["name"] for e in part["skills"]] == ["git-rebase", "pdf-forms"]
        assert part["total"] == 7
        with open_use_tables() as tables:
            for number, skill in enumerate(("pdf-forms", "git-rebase", "git-rebase")):
                row = (f"codex:{number}", 0, skill, "", "user", "2026-11-01T00:00:00Z", "", 3, 1)
                tables.execute("INSERT INTO uses VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        used = answer("list", "--used")
        assert [(e["name"], e["used"]["uses"]) for e in used["skills"]] == [
            ("git-rebase", 2), ("pdf-forms", 1),
        ]  # fmt: skip
        assert (used["total"], used["unused"]) == (2, 5)

    def test_in_a_pipe(self, tacit, skills: Path) -> None:
        """Four fields with tabs between, whole descriptions."""
        rows = [line.split("\t") for line in tacit.ok("list").splitlines()]
        assert rows[1] == [
            "git-rebase", "user", "active", "Rebase a branch and resolve conflicts.",
        ]  # fmt: skip
        assert all(len(row) == 4 for row in rows)

    def test_the_fast_way_prints_what_the_full_one_does(self, tacit, skills: Path, put) -> None:
        """To the byte: in a pipe, on a terminal of each width, with and without colour."""
        put(skills / "also" / "git-rebase", description="Shadowed.")
        put(Path(".agents") / "skills" / "theirs", description="Untrusted \x1b[31m.")
        full = {"TACIT_SEARCH_LIMIT": "10"}  # any setting takes the full way
        fast = tacit.ok("list", env={**os.environ})
        assert fast == tacit.ok("list") == tacit.ok("list", env={**os.environ, **full})
        for columns, more in ((80, {}), (40, {"NO_COLOR": "1"}), (0, {})):
            shown = tacit.on_terminal("list", columns=columns, **more)
            assert shown == tacit.on_terminal("list", columns=columns, **more, **full)
            assert shown[0] == 0
            assert ("\x1b" in shown[1]) is not bool(more)

    def test_ls(self, tacit, skills: Path) -> None:
        """The short name works with options and settings as well."""
        assert tacit.ok("ls") == tacit.ok("list")
        assert tacit.json("ls") == tacit.json("list")
        more = {**os.environ, "TACIT_SEARCH_LIMIT": "5"}
        assert tacit.ok("ls", env=more) == tacit.ok("ls", env={**os.environ}) == tacit.ok("list")

    def test_choosing(self, tacit, skills: Path, put) -> None:
        """By scope, origin, host, problems and words of the name."""
        put(
            skills / "learned", text="---\nname: learned\ndescription: x\nsource: auto-skill\n---\n"
        )

        def names(*options: str) -> list[str]:
            return [entry["name"] for entry in tacit.json("list", *options)["skills"]]

        assert names("--scope", "bundled") == [
            "learn-from-sessions",
            "schedule-creator",
            "using-tacit",
        ]
        assert names("--origin", "learned") == ["learned"]
        assert names("--host", "claude-code") == []
        assert names("--problems") == ["broken", "learned"]
        assert names("GIT", "pdf") == ["git-rebase", "pdf-forms"]
        assert tacit.ok("list", "nothing-like-it") == ""

    @pytest.mark.parametrize("columns", [20, 40, 80, 200])
    def test_no_line_is_wider_than_the_terminal(
        self, tacit, skills: Path, put, uncoloured, columns: int
    ) -> None:
        """Also with wide characters and long names, from forty columns on."""
        from tacit.base.display import width

        put(skills / ("x" * 60), description="很长的描述" * 40)
        code, text = tacit.on_terminal("list", columns=columns)
        assert code == 0
        for line in uncoloured(text).split("\n")[:-2]:
            assert width(line) <= max(columns, 40), line

    def test_an_empty_library(self, tacit, home: Path, skills: Path) -> None:
        """On a terminal it says what to do."""
        code, text = tacit.on_terminal("list", "nothing-like-it")
        assert code == 0
        assert "~/.agents/skills" in text

    def test_a_name_that_is_no_utf8(self, tacit, skills: Path, put) -> None:
        """It is printed, in every form."""
        put(skills / os.fsdecode(b"\xff-x"), text="no head\n")
        assert "\\udcff-x" in tacit.ok("list")
        assert any("udcff" in e["name"] for e in tacit.json("list")["skills"])


class TestShow:
    def test_json(self, tacit, skills: Path) -> None:
        """The keys that scripts rely on."""
        found = tacit.json("show", "git-rebase")
        rest = {"shadows", "shadowed_by", "problems", "standing", "figures", "pinned"}
        assert set(found) == {"skill", "entry", "files"} | rest
        assert set(found["skill"]) == SKILL
        assert set(found["entry"]) == ENTRY
        assert found["files"] == ["SKILL.md"]
        (problem,) = tacit.json("show", "broken")["problems"]
        assert set(problem) == PROBLEM

    def test_for_people(self, tacit, skills: Path, project: Path, put) -> None:
        """The text, the files, the scope, winner and loser, the problems and their mends."""
        theirs = put(project / ".agents" / "skills" / "broken", description="The project's.")
        (theirs / "references").mkdir()
        (theirs / "references" / "more.md").write_text("x")
        assert "shadowed by" not in tacit.ok("show", "broken")
        trust.add(str(project))
        text = tacit.ok("show", "broken")
        for part in ("The project's.", "# Title", "references/more.md", "project",
                     "shadows      ~/.agents/skills/broken"):  # fmt: skip
            assert part in text
        text = tacit.ok("show", str(skills / "broken"))
        assert "shadowed by ~/project/.agents/skills/broken" in text
        assert "Problems" in text
        assert "in quotes" in text
        found = tacit.json("show", str(skills / "broken"))
        assert found["shadowed_by"] == str(theirs)

    def test_where_a_learned_skill_is_from(self, tacit, skills: Path) -> None:
        """The head says when, by which model and from which sessions; only of what was learned."""
        marks = (
            "  learned: '2026-11-02'\n  learned-by: openai:small\n"
            "  revised: '2026-11-09'\n  revised-by: openai:large\n"
            "  sessions: codex:a1, tacit:b2\n"
        )
        for name, source in (("was-learned", "  source: auto-skill\n"), ("is-mine", "")):
            (skills / name).mkdir()
            head = f"name: {name}\ndescription: Some.\nmetadata:\n{source}{marks}"
            (skills / name / "SKILL.md").write_text(f"---\n{head}---\n\nDo it.\n")
        text = tacit.ok("show", "was-learned")
        assert "learned      2026-11-02 by openai:small\n" in text
        assert "revised      2026-11-09 by openai:large\n" in text
        assert "from         codex:a1, tacit:b2" in text
        assert "2026-11-02" not in tacit.ok("show", "is-mine")

    def test_an_untrusted_one(self, tacit, project: Path, put) -> None:
        """It says what it is, and what would change that."""
        put(project / ".agents" / "skills" / "theirs")
        assert "not trusted, not loaded: tacit trust" in tacit.ok("show", "theirs")

    def test_a_folder_outside_the_library(self, tacit, home: Path, put) -> None:
        """By its path."""
        put(home / "elsewhere" / "one")
        assert "not in the library" in tacit.ok("show", str(home / "elsewhere" / "one"))
        assert tacit.json("show", str(home / "elsewhere" / "one"))["entry"] is None
        assert tacit.error("show", str(home / "elsewhere"), code=3)["code"] == "not-found"

    def test_raw_is_the_file_to_the_byte(self, tacit, skills: Path, put) -> None:
        """In a pipe: line ends, marks and bad bytes as they are."""
        data = b"\xef\xbb\xbf---\r\nname: raw\r\n---\r\n\xff\x1b[31m\x00\r\n"
        put(skills / "raw", text=data)
        done = subprocess.run([tacit.program, "show", "raw", "--raw"], capture_output=True)
        assert done.stdout == data

    @pytest.mark.parametrize("option", [[], ["--raw"], ["--json"]])
    def test_a_hostile_skill_cannot_steer_the_terminal(
        self, tacit, skills: Path, put, option: list[str]
    ) -> None:
        """No escape, bell or mark of direction from name, head, body, files or folders."""
        evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"
        text = (
            f'---\nname: "a\\e[31m\\u202Eb"\ndescription: "\\e]0;x\\a"\nversion: "\\e[1m"\n'
            f'license: "\\e[5m"\nmetadata:\n  k: "\\e"\n---\n# {evil}\n\n`{evil}` [x]({evil}.md)\n'
            f"\n```\n{evil}\n```\n"
        )
        folder = put(skills / f"x{evil}", text=text)
        (folder / f"file{evil}").write_text("")
        (folder / f"link{evil}").symlink_to("gone")
        (folder / "deep").mkdir()
        (folder / "deep" / "SKILL.md").write_text("")
        code, shown = tacit.on_terminal("show", str(folder), *option, NO_COLOR="1")
        assert code == 0
        if not option:  # the Markdown itself may be underlined or bold, by us
            import re

            shown = re.sub(r"\x1b\[(?:0|1|2|3|4|9|22|23|24)?(?:;[1-9])*m", "", shown)
        for c in ("\x1b", "\x07", "\x9b", "\u202e", "\r"):
            assert c not in shown, repr(shown)

    def test_lists_searches_and_lints_of_hostile_skills(self, tacit, skills: Path, put) -> None:
        """The other commands that print what stands in files."""
        evil = "\x1b]0;owned\x07\x9b31m\u202e"
        folder = put(
            skills / f"x{evil}",
            text=f'---\nname: "zebra\\e[31m"\ndescription: "\\e[3m \\u202E"\nx\n---\nzebra {evil}',
        )
        (folder / f"link{evil}").symlink_to("gone")
        (skills / f"broken{evil}").symlink_to("gone")
        for command in (["list"], ["search", "zebra"], ["lint"], ["lint", "--strict"], ["doctor"],
                        ["catalogue"], ["list", "--json"], ["trust", str(folder)],
                        ["trust", "--list"], ["show", "zebr"]):  # fmt: skip
            _, text = tacit.on_terminal(*command, NO_COLOR="1")
            for c in ("\x1b", "\x07", "\x9b", "\u202e"):
                assert c not in text, (command, text)

    def test_narrow_and_without_a_size(self, tacit, skills: Path) -> None:
        """Forty columns, and a terminal that never learned its size."""
        for columns in (40, 0):
            code, text = tacit.on_terminal("show", "git-rebase", columns=columns)
            assert code == 0
            assert "Rebase a branch" in text.replace("\n", " ")
        assert tacit.on_terminal("show", "git-rebase", COLUMNS="rubbish")[0] == 0

    def test_one_that_cannot_be_read(self, tacit, skills: Path) -> None:
        """A pipe: exit code 9 at once."""
        (skills / "pipe").mkdir()
        os.mkfifo(skills / "pipe" / "SKILL.md")
        assert tacit.error("show", "pipe", code=9)["code"] == "unwritable"


class TestLint:
    def test_json(self, tacit, skills: Path) -> None:
        """The keys that scripts rely on; exit code 1 with errors."""
        found = tacit.json("lint", code=1)
        assert set(found) == {"checked", "errors", "warnings", "notes", "skills"}
        assert (found["checked"], found["errors"]) == (4, 1)
        (bad,) = found["skills"]
        assert set(bad) == {"folder", "problems"}
        assert all(set(problem) == PROBLEM for problem in bad["problems"])

    def test_exit_codes(self, tacit, skills: Path, put) -> None:
        """Warnings alone are no failure."""
        assert tacit("lint", "git-rebase").returncode == 0
        put(skills / "folder", name="other")
        assert tacit("lint", "other").returncode == 0
        assert tacit("lint", "other", "--strict").returncode == 1
        assert tacit("lint", "broken").returncode == 1

    def test_ways_to_name_skills(self, tacit, skills: Path) -> None:
        """By name, by folder, by file, a folder of skills; what has none is not found."""
        for name in ("broken", str(skills / "broken"), str(skills / "broken" / "SKILL.md")):
            assert tacit.json("lint", name, code=1)["checked"] == 1
        assert tacit.json("lint", str(skills), code=1)["checked"] == 4
        empty = skills.parent / "empty"
        empty.mkdir()
        assert tacit.error("lint", str(empty), code=3)["code"] == "not-found"

    def test_one_bad_skill_does_not_end_it(self, tacit, skills: Path) -> None:
        """Pipes and links to nothing are problems among others."""
        (skills / "pipe").mkdir()
        os.mkfifo(skills / "pipe" / "SKILL.md")
        (skills / "gone").mkdir()
        (skills / "gone" / "SKILL.md").symlink_to("nowhere")
        found = tacit.json("lint", code=1)
        assert (found["checked"], found["errors"]) == (6, 3)

    def test_many_problems_on_a_terminal(self, tacit, skills: Path, put) -> None:
        """The rest is counted, and --all shows them."""
        for number in range(60):
            put(skills / f"bad-{number}", text="x")
        _, text = tacit.on_terminal("lint")
        assert "more problems; all: tacit lint --all" in text
        _, text = tacit.on_terminal("lint", "--all")
        assert "more problem" not in text
        assert "64 skills checked" in text


class TestCatalogue:
    def test_json(self, tacit, skills: Path) -> None:
        """The keys that scripts rely on; the text is what the model gets."""
        found = tacit.json("catalogue")
        assert set(found) == {"text", "shown", "more"}
        assert found["text"] == tacit.ok("catalogue")

    def test_options(self, tacit, skills: Path, put) -> None:
        """A budget, and files that are being worked on."""
        put(skills / "ts", text="---\nname: ts\ndescription: x\npaths: '*.ts'\n---\ny\n")
        assert len(tacit.ok("catalogue", "--budget", "300")) <= 300
        assert "ts" not in tacit.json("catalogue")["shown"]
        touched = ["--touched", "a.py", "--touched", "src/b.ts"]
        assert "ts" in tacit.json("catalogue", *touched)["shown"]
