"""The commands that change skills, as a person or a script runs them: the real program."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from inside import Done, answer, tacit
from skills_ref.validator import validate

from tacit.ui.cli.app import commands, run
from tacit.ui.cli.skill_changes import yaml_scalar

BIN = Path(sys.executable).parent
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
VERDICT = {"outcome", "change", "skill", "version", "refusal", "notes", "apart", "offer"}
VERSION = {
    "version", "at", "change", "skill", "kind", "actor", "reason", "session", "evidence",
    "overrides", "approved_by", "undoes", "partner", "state",
}  # fmt: skip


def program(*arguments: str, given: bytes = b"", **environment: str) -> Done:
    """The real program, as a shell starts it."""
    done = subprocess.run(
        [BIN / "tacit", *arguments],
        capture_output=True,
        input=given,
        env={**os.environ, **environment},
        timeout=120,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def refused(command: str, *arguments: str, **more: Any) -> Any:
    """The refusal that a command ends with."""
    done = tacit(command, "--json", *arguments, **more)
    assert done.returncode == 5, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert set(verdict) == VERDICT
    assert verdict["outcome"] == "refused"
    assert verdict["refusal"]["reason"]
    return verdict["refusal"]


def error(code: int, command: str, *arguments: str, **more: Any) -> Any:
    """The error that a command ends with, which is JSON on stderr."""
    done = tacit(command, "--json", *arguments, **more)
    assert (done.returncode, done.stdout) == (code, ""), done.stdout + done.stderr
    found = json.loads(done.stderr)["error"]
    assert set(found) == {"code", "message", "hint"}
    return found


def make(name: str, body: str = "1. First this.\n2. Then that.\n", *more: str, **env: str) -> Any:
    about = f"How {name} is done here. Use when {name} is asked for."
    verdict = answer("new", name, "-d", about, "--body", body, *more, **env)
    assert verdict["outcome"] == "applied", verdict
    return verdict


@pytest.fixture
def skills(home: Path) -> Path:
    return home / ".agents" / "skills"


def editor(home: Path, text: str) -> str:
    """An $EDITOR that runs a piece of Python with the file's path in `path`."""
    script = home / "editor.py"
    script.write_text(f"import sys, pathlib\npath = pathlib.Path(sys.argv[1])\n{text}\n")
    return f"{sys.executable} {script}"


def replacing(home: Path, old: str, new: str) -> str:
    return editor(home, f"path.write_text(path.read_text().replace({old!r}, {new!r}))")


@pytest.mark.parametrize(
    "name",
    [n for n, c in commands().items() if c.section in ("change", "history", "sessions", "learn")],
)
def test_help_has_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--help says what the command does, shows examples, and offers --json."""
    assert run([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert "Examples:" in out
    assert f"tacit {name}" in out
    assert "--json" in out
    assert max(len(line) for line in out.splitlines()) <= 100


def test_make_change_and_see(home: Path, skills: Path) -> None:
    """new, edit, log and diff in a row; the frozen keys of what each prints for scripts."""
    made = program("new", "standup-notes", "-d", "Notes. Use at stand-up.", "--body", "1. Write.")
    assert made.returncode == 0
    assert "Made standup-notes in ~/.agents/skills/standup-notes" in made.stdout
    assert "undo: tacit undo " in made.stdout
    assert validate(skills / "standup-notes") == []
    text = (skills / "standup-notes/SKILL.md").read_text()
    edited = answer(
        "edit", "standup-notes", "--from", "-", "--reason", "two steps",
        given=text.replace("1. Write.", "1. Ask.\n2. Write.").encode(),
    )  # fmt: skip
    assert set(edited) == VERDICT
    versions = answer("log", "standup-notes")["versions"]
    assert [set(v) for v in versions] == [VERSION, VERSION]
    assert [(v["kind"], v["actor"], v["reason"]) for v in versions] == [
        ("edit", "user", "two steps"),
        ("create", "user", ""),
    ]
    shown = program("log").stdout
    assert edited["change"][-8:] in shown
    assert "two steps" in shown
    diff = tacit("diff", edited["change"][-8:]).stdout
    assert "-1. Write.\n+1. Ask.\n+2. Write.\n" in diff
    assert "\x1b[" not in diff
    assert set(answer("diff", "standup-notes")) == {"diff"}
    assert tacit("doctor").returncode == 0


DESCRIPTIONS = (
    "Colons: many. Use when: asked", "# a hash", "not # a comment", 'says "hello" to \'you\'',
    "- a dash", "ends with a colon:", "yes", "null", "123", "1.5", "~", "<<", "=", "[a, b]",
    "{a: b}", ", comma", "] bracket", "%TAG", "@at", "`code`", "*star", "&anchor", "!tag", "| pipe",
    "> fold", "? question", "back\\slash", "two\nlines", "a\ttab", "2026-11-15", "emoji 🚀 数据库",
    "   spaces   ", "---", "...", "'", '"', "O", "Plain words stay plain.",
)  # fmt: skip


def test_descriptions_survive_yaml(tmp_path: Path) -> None:
    """Whatever is typed as a description, YAML and the reference validator read it back."""
    import yaml
    from skills_ref.parser import read_properties

    for number, text in enumerate(DESCRIPTIONS):
        wanted = " ".join(text.split())
        assert yaml.safe_load(f"description: {yaml_scalar(text)}") == {"description": wanted}
        folder = tmp_path / f"skill-{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_text(
            f"---\nname: {folder.name}\ndescription: {yaml_scalar(text)}\n---\n\nDo.\n"
        )
        assert validate(folder) == [], text
        assert read_properties(folder).description == wanted
    assert yaml_scalar("Plain words stay plain.") == "Plain words stay plain."


def test_a_hostile_description_through_the_program(skills: Path) -> None:
    """Colons, quotes, a hash and a leading dash typed at the shell give a valid skill."""
    about = '- it\'s "this": a # b\nand c'
    assert answer("new", "odd", f"--description={about}", "--body", "1. x")["outcome"] == "applied"
    assert validate(skills / "odd") == []
    assert answer("show", "odd")["skill"]["description"] == " ".join(about.split())


def test_new_from_everywhere(home: Path, skills: Path) -> None:
    """A whole SKILL.md, a body, a folder, standard input, an editor, and a project."""
    whole = "---\nname: whole\ndescription: A whole file. Use when whole.\n---\n\nDo the whole.\n"
    (home / "whole.md").write_text(whole)
    assert answer("new", "whole", "--from", str(home / "whole.md"))["outcome"] == "applied"
    assert (skills / "whole/SKILL.md").read_text() == whole
    body = b"--- a rule is no head\n\n1. Paint the fence.\n"
    verdict = answer("new", "body", "-d", "A body. Use for fences.", "--from", "-", given=body)
    assert verdict["outcome"] == "applied"
    assert "1. Paint the fence." in (skills / "body/SKILL.md").read_text()
    folder = home / "draft"
    (folder / "references").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    (folder / "SKILL.md").write_text(whole.replace("whole", "folded").replace("Do", "Fold"))
    (folder / "references" / "more.md").write_text("More.\n")
    assert answer("new", "folded", "--from", str(folder))["outcome"] == "applied"
    assert (skills / "folded/references/more.md").read_text() == "More.\n"
    assert not (skills / "folded/.git").exists()
    for variable, song in (("EDITOR", "Sing a song of sixpence"), ("VISUAL", "Dance all night")):
        name = variable.lower()
        line = f"\\n1. {song} until {song} is done, then {song} again.\\n"
        opened = editor(home, f"path.write_text(path.read_text().split('\\n1.')[0] + '{line}')")
        done = program("new", name, "-d", f"{song}. Use for it.", **{variable: opened})
        assert done.returncode == 0, done.stderr
        assert f"1. {song} until" in (skills / name / "SKILL.md").read_text()
    project = home / "app"
    (project / ".git").mkdir(parents=True)
    os.chdir(project)
    make("deploy-app", "1. Ship it.", "--project")
    assert (project / ".agents/skills/deploy-app/SKILL.md").exists()
    os.chdir(home)
    assert "not a project" in error(3, "new", "x", "--project", "--body", "b")["message"]


def test_new_says_what_is_missing(home: Path) -> None:
    """Without a text, a description, an editor, a readable file: exit 2, and what to do."""
    assert "--body" in error(2, "new", "abc")["hint"]
    assert "--description" in error(2, "new", "abc", "--body", "x")["hint"]
    assert "--description" in error(2, "new", "abc", "-d", "  ", "--body", "x")["hint"]
    assert "nothing was written" in error(2, "new", "abc", EDITOR="true")["message"]
    assert error(2, "new", "abc", "--from", "nowhere.md")["message"].startswith("cannot read")
    assert "UTF-8" in error(2, "new", "abc", "--from", "-", given=b"\xff\xfe")["message"]
    assert "SKILL.md" in error(2, "new", "abc", "--from", str(home))["message"]
    assert error(1, "new", "abc", EDITOR="false")["message"].endswith("Editing failed")
    assert not (home / ".agents").exists()


@pytest.mark.parametrize(
    "name", ["Bad_Name", "../../evil", "", "-x", "a--b", "x" * 300, "a/b", "…"]
)
def test_names_that_cannot_be(home: Path, name: str) -> None:
    """A bad name is refused before a text is asked for, with a good one beside it."""
    found = error(5, "new", "--body", "x", "-d", "y", "--", name)
    assert "name-form" in found["message"]
    assert found["hint"].startswith("tacit new ")
    assert len(found["message"]) < 300
    assert not (home / ".agents").exists()


def test_a_secret_is_refused_with_its_line_and_kept(home: Path, skills: Path) -> None:
    """The refusal names rule and line, the text can be resubmitted, the override is on record."""
    done = program(
        "new", "push", "-d", "Pushes. Use to push.", "--body", f"1. Use {TOKEN} to push."
    )
    assert done.returncode == 5
    assert "[secret:github-token] SKILL.md, line 6" in done.stderr
    assert "--override secret:github-token" in done.stderr
    kept = next(line for line in done.stderr.splitlines() if line.startswith("Your text is kept"))
    again = kept.partition(": ")[2].replace("~", str(home)).split()
    assert again[:4] == ["tacit", "new", "push", "--from"]
    assert os.stat(again[4]).st_mode & 0o077 == 0
    assert refused(*again[1:])["rule"] == "secret:github-token"
    verdict = answer(*again[1:], "--override", "secret:github-token")
    assert verdict["outcome"] == "applied"
    assert TOKEN in (skills / "push/SKILL.md").read_text()
    assert answer("log", "push")["versions"][0]["overrides"] == ["secret:github-token"]


def test_planted_characters_and_powers_are_refused(skills: Path) -> None:
    """Invisible characters, a heavy text, a text that is no skill: each with its own rule."""
    hidden = "1. Do\u200b\u202e it."
    assert refused("new", "hid", "-d", "Hides. Use it.", "--body", hidden)["step"] == "scan"
    long = "\n".join(f"{n}. step {n}" for n in range(600))
    assert refused("new", "long", "-d", "Long. Use it.", "--body", long)["step"] == "size"
    about = "d" * 1100
    assert refused("new", "wordy", "-d", about, "--body", "1. x")["step"] in ("size", "standard")
    assert not (skills / "hid").exists()


def test_a_near_duplicate_names_the_other(skills: Path) -> None:
    """A second skill that says the same is refused with the first one's name."""
    body = "\n".join(f"{n}. Rebase the branch on main and run test suite {n}." for n in range(12))
    about = "Rebase a branch on main before review. Use when a review is asked for."
    assert answer("new", "rebase-branch", "-d", about, "--body", body)["outcome"] == "applied"
    done = tacit("new", "branch-rebasing", "-d", about, "--body", body)
    assert done.returncode == 5
    assert "instead: tacit edit rebase-branch" in done.stderr
    assert refused("new", "rebase-branch", "-d", "x y", "--body", "z")["rule"] == "exists"
    assert "tacit edit rebase-branch" in error(5, "new", "rebase-branch", EDITOR="true")["hint"]


def test_edit_in_an_editor(home: Path, skills: Path) -> None:
    """Left as it was, nothing happens; changed, a version more; line ends stay as they were."""
    make("notes")
    assert answer("edit", "notes", EDITOR="true") == {"outcome": "unchanged", "skill": "notes"}
    assert len(answer("log", "notes")["versions"]) == 1
    program = replacing(home, "Then that", "Then this")
    assert answer("edit", "notes", EDITOR=program)["outcome"] == "applied"
    assert "2. Then this." in (skills / "notes/SKILL.md").read_text()
    path = skills / "notes/SKILL.md"
    path.write_bytes(path.read_bytes().rstrip(b"\n").replace(b"\n", b"\r\n"))
    before = path.read_bytes()
    assert answer("edit", "notes", EDITOR="true")["outcome"] == "unchanged"
    assert path.read_bytes() == before
    program = replacing(home, "First", "Zeroth")
    assert answer("edit", "notes", EDITOR=program)["outcome"] == "applied"
    assert b"1. Zeroth this.\r\n2. Then this.\r\n" in path.read_bytes()
    assert error(3, "edit", "notes")["hint"].startswith("set EDITOR")


def test_a_hand_edit_during_the_editor(home: Path, skills: Path) -> None:
    """Somebody saves the same file meanwhile: other lines merge, the same lines conflict, and
    neither text is lost."""
    make("busy", "1. one\n2. two\n3. three\n4. four\n5. five\n6. six\n")
    path = skills / "busy/SKILL.md"
    both = (
        f"other = pathlib.Path({str(path)!r})\n"
        "other.write_text(other.read_text().replace({old!r}, {by_hand!r}))\n"
        "path.write_text(path.read_text().replace({edited!r}, {new!r}))"
    )
    texts = {"old": "6. six", "by_hand": "6. by hand", "edited": "1. one", "new": "1. edited"}
    filled = both
    for key, value in texts.items():
        filled = filled.replace(f"{{{key}!r}}", repr(value))
    assert answer("edit", "busy", EDITOR=editor(home, filled))["outcome"] == "applied"
    assert "1. edited\n" in path.read_text()
    assert "6. by hand\n" in path.read_text()
    assert [v["kind"] for v in answer("log", "busy")["versions"]] == ["edit", "hand", "create"]
    filled = both
    for key, value in {**texts, "old": "3. three", "by_hand": "3. mine", "edited": "3. three",
                       "new": "3. yours"}.items():  # fmt: skip
        filled = filled.replace(f"{{{key}!r}}", repr(value))
    done = tacit("edit", "busy", EDITOR=editor(home, filled))
    assert done.returncode == 5
    assert "[conflict]" in done.stderr
    assert "3. mine\n" in path.read_text()
    drafts = home / ".local/share/tacit/drafts"
    assert "3. yours\n" in (drafts / "busy.md").read_text()
    merged = (drafts / "busy-merged/SKILL.md").read_text()
    assert "3. mine\n" in merged
    assert "3. yours\n" in merged


def test_support_files(home: Path, skills: Path) -> None:
    """Written from anywhere and of any bytes, edited, removed; SKILL.md never by that road."""
    make("tools")
    data = bytes(range(1, 200))
    more = ("--file", "assets/logo.bin")
    assert answer("edit", "tools", *more, "--from", "-", given=b"plain\r\n")["outcome"] == "applied"
    assert (skills / "tools/assets/logo.bin").read_bytes() == b"plain\r\n"
    (home / "logo").write_bytes(data)
    for_bytes = tacit("edit", "tools", *more, "--from", str(home / "logo"))
    assert for_bytes.returncode in (0, 5)  # a rule of the scan may not want it; never a fault
    program = editor(home, "path.write_text('# List\\n')")
    assert (
        answer("edit", "tools", "--file", "references/a b.md", EDITOR=program)["skill"] == "tools"
    )
    assert (skills / "tools/references/a b.md").read_text() == "# List\n"
    assert (
        answer("edit", "tools", "--file", "references/a b.md", "--remove")["outcome"] == "applied"
    )
    assert refused("edit", "tools", "--file", "gone.md", "--remove")["rule"] == "no-such-file"
    assert "tacit rm tools" in error(2, "edit", "tools", "--remove")["hint"]
    assert refused("edit", "tools", "--file", "../x", "--from", "-", given=b"x")["reason"]
    done = tacit("edit", "tools", "--file", "a/SKILL.md", "--from", "-", given=b"x")
    assert "[nested-skill]" in done.stderr
    assert "tacit edit tools --file a/SKILL.md --from " in done.stderr
    error(2, "edit", "tools", "--remove", "--rename", "x")


def test_rename_keeps_history(skills: Path) -> None:
    """The folder and the frontmatter change, the log goes on, the old name leads to the new."""
    make("old-name")
    assert answer("edit", "old-name", "--rename", "new-name")["outcome"] == "applied"
    assert validate(skills / "new-name") == []
    assert not (skills / "old-name").exists()
    kinds = [v["kind"] for v in answer("log", "new-name")["versions"]]
    assert kinds == ["rename", "renamed", "create"]
    assert "called 'new-name' now" in error(3, "edit", "old-name")["message"]
    assert refused("edit", "new-name", "--rename", "Bad Name")["reason"]


def test_a_bundled_skill_is_copied(home: Path, skills: Path) -> None:
    """Editing what ships with Tacit makes a copy; deleting it is refused, with the way out."""
    shipped = Path(answer("show", "using-tacit")["skill"]["folder"])
    before = (shipped / "SKILL.md").read_bytes()
    program = editor(home, "path.write_text(path.read_text() + '\\nMine too.\\n')")
    assert answer("edit", "using-tacit", EDITOR=program)["outcome"] == "applied"
    assert "Mine too." in (skills / "using-tacit/SKILL.md").read_text()
    assert (shipped / "SKILL.md").read_bytes() == before
    assert answer("rm", "using-tacit", "--yes")["outcome"] == "applied"
    assert refused("rm", "using-tacit", "--yes")["rule"] == "user-delete-bundled"


def test_archive_restore_pin_and_rm(skills: Path) -> None:
    """Out of use and back, pinned and free, deleted and brought back; near names are named."""
    make("release-notes")
    assert error(3, "archive", "relase-notes")["hint"].count("release-notes")
    assert answer("archive", "release-notes", "--reason", "old")["outcome"] == "applied"
    assert not (skills / "release-notes").exists()
    assert "release-notes" not in tacit("list").stdout
    assert answer("restore") == {"archived": [{"name": "release-notes", "root": str(skills)}]}
    assert "tacit restore release-notes" in error(3, "edit", "release-notes")["hint"]
    assert "release-notes" in error(3, "restore", "release-note")["hint"]
    assert answer("restore", "release-notes")["outcome"] == "applied"
    assert tacit("restore").stdout == "Nothing is archived.\n"
    assert answer("pin", "release-notes")["outcome"] == "applied"
    assert refused("pin", "release-notes")["rule"] == "no-change"
    assert answer("unpin", "release-notes")["outcome"] == "applied"
    assert "tacit rm release-notes --yes" in error(5, "rm", "release-notes")["hint"]
    assert (skills / "release-notes").exists()
    gone = answer("rm", "release-notes", "--yes")
    assert not (skills / "release-notes").exists()
    assert "tacit rollback release-notes" in error(3, "rm", "release-notes", "--yes")["hint"]
    assert answer("undo", gone["change"][-8:])["outcome"] == "applied"
    assert validate(skills / "release-notes") == []


def test_undo_redo_and_rollback(home: Path, skills: Path) -> None:
    """Undo keeps what came after, undone twice is redone, rollback takes what the log shows."""
    make("steps", "1. one\n2. two\n3. three\n4. four\n5. five\n6. six\n")
    path = skills / "steps/SKILL.md"
    first = answer("edit", "steps", EDITOR=replacing(home, "1. one", "1. ONE"))["change"][-8:]
    second = answer("edit", "steps", EDITOR=replacing(home, "6. six", "6. SIX"))["change"][-8:]
    assert answer("undo", first, "--reason", "no")["outcome"] == "applied"
    assert "1. one\n" in path.read_text()
    assert "6. SIX\n" in path.read_text()
    assert "undo of " + first in tacit("log", "steps").stdout
    assert answer("undo", first)["outcome"] == "applied"
    assert "1. ONE\n" in path.read_text()
    assert answer("rollback", "steps", first)["outcome"] == "applied"
    assert "6. six\n" in path.read_text()
    assert answer("rollback", "steps")["outcome"] == "applied"
    assert "6. SIX\n" in path.read_text()
    assert "+6. SIX\n" in answer("diff", "steps", first)["diff"]
    version = answer("log", "steps")["versions"][-1]["version"]
    assert answer("rollback", "steps", version[:10])["outcome"] == "applied"
    assert "1. one\n" in path.read_text()
    assert second != first
    assert error(3, "rollback", "steps", "nonsense")["hint"]
    assert error(3, "rollback", "using-tacit")["hint"]
    for command in ("undo", "diff", "log"):
        assert error(3, command, "nonsense")["hint"]


def test_an_undo_that_conflicts_offers_the_merged_text(home: Path, skills: Path) -> None:
    """Later changes to the same lines: nothing is done, and the mended text can be handed in."""
    make("clash", "1. one\n2. two\n3. three\n")
    first = answer("edit", "clash", EDITOR=replacing(home, "2. two", "2. TWO"))["change"]
    answer("edit", "clash", EDITOR=replacing(home, "2. TWO", "2. Two-ish"))
    before = (skills / "clash/SKILL.md").read_bytes()
    done = program("undo", first[-8:])
    assert done.returncode == 5
    assert done.stderr.index("[conflict]") < done.stderr.index("The merged text")
    assert (skills / "clash/SKILL.md").read_bytes() == before
    merged = home / ".local/share/tacit/drafts/clash-merged/SKILL.md"
    text = merged.read_text()
    assert "2. Two-ish\n" in text
    assert "2. two\n" in text
    assert (
        "tacit edit clash --from ~/.local/share/tacit/drafts/clash-merged/SKILL.md" in done.stderr
    )
    assert "marks" in error(5, "edit", "clash", "--from", str(merged))["message"]
    begin, _, rest = text.partition("<<<<<<<")
    merged.write_text(begin + "2. both\n" + rest.partition(">>>>>>>")[2].partition("\n")[2])
    assert answer("edit", "clash", "--from", str(merged))["outcome"] == "applied"
    assert "1. one\n2. both\n3. three\n" in (skills / "clash/SKILL.md").read_text()


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def test_share_shows_to_git_what_was_hidden(home: Path) -> None:
    """A learned project skill is hidden from git status, share shows it, --private hides it."""
    project = home / "app"
    project.mkdir()
    git(project, "init", "-q")
    os.chdir(project)
    learned = (
        "---\nname: run-tests\ndescription: How tests run here. Use before running tests.\n"
        "metadata:\n  source: auto-skill\n---\n\n1. Run `make test`.\n"
    )
    code = (
        "from tacit import Gate, acting_as, make_change\n"
        "from tacit.changes.change import Create\n"
        "import sys\n"
        "with acting_as('distiller'):\n"
        "    done = Gate().propose(make_change('run-tests', Create({'SKILL.md': sys.argv[1]"
        ".encode()})))\n"
        "assert done.applied, done\n"
    )
    subprocess.run([sys.executable, "-c", code, learned], check=True)
    assert (project / ".agents/skills/run-tests/SKILL.md").exists()
    status = ("status", "--porcelain", "--untracked-files=all")
    assert git(project, *status) == ""
    shown = answer("share", "run-tests")
    assert shown == {"skill": "run-tests", "shared": True, "changed": True}
    assert "run-tests/SKILL.md" in git(project, *status)
    assert answer("share", "run-tests")["changed"] is False
    assert answer("share", "run-tests", "--private")["changed"] is True
    assert git(project, *status) == ""
    make("mine", "1. Mine.\n", "--project")
    assert "mine/SKILL.md" in git(project, *status)
    os.chdir(home)
    make("of-the-user")
    assert "not a project's" in error(2, "share", "of-the-user")["message"]


@pytest.mark.parametrize("width", ["80", "40"])
def test_tables_fit_the_terminal(skills: Path, width: str) -> None:
    """No line of the log is wider than the terminal, and without one there is no colour."""
    make("a-skill-with-quite-a-name", "1. x\n", "--reason", "a long reason " * 8)
    shown = tacit("log", COLUMNS=width).stdout
    assert "a-skill-with-quite-a-name" in shown
    assert max(len(line) for line in shown.splitlines()) <= int(width)
    assert "\x1b[" not in shown


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_on_a_terminal(skills: Path, environment: dict[str, str], coloured: bool) -> None:
    """A terminal gets colours, unless NO_COLOR or a dumb terminal says no; errors likewise."""
    make("notes")
    for arguments in (("log",), ("edit", "nowhere")):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [BIN / "tacit", *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **environment},
        )  # fmt: skip
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                data = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not data:
                break
            shown += data
        process.wait(timeout=120)
        os.close(ours)
        assert (b"\x1b[" in shown) == coloured, shown


def test_a_disk_that_refuses_is_said(home: Path) -> None:
    """A skills folder that is a file: an error in words with an exit code, and no traceback."""
    (home / ".agents").write_text("not a folder")
    done = program("new", "abc", "-d", "Abc. Use it.", "--body", "1. x", "--json")
    assert done.returncode in (5, 9)
    assert json.loads(done.stderr or done.stdout)


def test_two_writers_at_once_lose_nothing(skills: Path) -> None:
    """Six programs make a skill each at the same moment: six skills, six changes, all whole."""
    started = [
        subprocess.Popen(
            [BIN / "tacit", "new", f"skill-{n}", "-d", f"Number {n}, {w}. Use for {w}.",
             "--body", f"1. Do the {w} thing."],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        for n, w in enumerate(("apple", "river", "stone", "cloud", "tiger", "lamp"))
    ]  # fmt: skip
    until = time.monotonic() + 120
    for process in started:
        _, stderr = process.communicate(timeout=max(1, until - time.monotonic()))
        assert process.returncode == 0, stderr
    assert len(answer("log")["versions"]) == 6
    assert sorted(path.name for path in skills.glob("skill-*")) == [f"skill-{n}" for n in range(6)]
    assert tacit("doctor").returncode == 0
