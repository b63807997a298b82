"""The tools for files: what they do, and what they refuse."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tacit.agent import file_search, file_tools
from tacit.agent.sandbox import find_sandbox
from tacit.agent.session_tools import TOOLS
from tacit.agent.tool import MOST_TEXT, Context, Failed, Question, Result, ToolOptions
from tacit.skills.library import Library
from tacit.traces.host_folders import host_folders


@pytest.fixture
def context(home: Path, project: Path) -> Context:
    async def nobody(asked: Question) -> str | None:
        return None

    (home / "session").mkdir()
    return Context(
        str(project),
        str(home / "session"),
        library=Library(),
        sandbox=find_sandbox,
        ask=nobody,
        options=ToolOptions(),
    )


def use(context: Context, name: str, **arguments: Any) -> Result:
    (tool,) = [tool for tool in TOOLS if tool.name == name]
    return asyncio.run(tool.run(tool.check(arguments), context))


def refused(context: Context, name: str, **arguments: Any) -> str:
    with pytest.raises(Failed) as failed:
        use(context, name, **arguments)
    return str(failed.value)


def test_reading_with_an_offset_says_how_to_go_on(context: Context, project: Path) -> None:
    """Lines come with their numbers, and the call that shows the next ones is named."""
    (project / "f").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    text = use(context, "read_file", path="f", offset=3, limit=2).text
    assert text.splitlines()[:2] == ["     3\tline 3", "     4\tline 4"]
    assert "6 more lines; go on with offset=5" in text
    assert "10 lines" in use(context, "read_file", path="f", offset=99).text


def test_long_text_is_cut_in_the_middle_with_a_way_to_the_rest(
    context: Context, project: Path
) -> None:
    """What is left out can be read from the file that the cut names."""
    (project / "big").write_text("".join(f"{n} {'x' * 90}\n" for n in range(2000)))
    text = use(context, "read_file", path="big").text
    assert len(text) < MOST_TEXT + 500
    path = text.split("path=")[1].split()[0]
    offset = int(text.split("offset=")[1].split()[0])
    rest = use(context, "read_file", path=path, offset=offset, limit=3).text
    assert str(offset) in rest.split("\t")[0]


def test_editing_wants_exactly_one_place(context: Context, project: Path) -> None:
    """Text that stands twice or not at all is refused with what is near; the file is untouched."""
    (project / "f").write_text("one = 1\ntwo = 2\none = 1\n")
    assert "stands 2 times" in refused(context, "edit_file", path="f", old="one = 1", new="x")
    assert "line 2: two = 2" in refused(context, "edit_file", path="f", old="two = 3", new="x")
    assert (project / "f").read_text() == "one = 1\ntwo = 2\none = 1\n"
    done = use(context, "edit_file", path="f", old="two = 2", new="two = 22")
    assert "+two = 22" in done.diff
    use(context, "edit_file", path="f", old="one = 1", new="one = 11", all=True)
    assert (project / "f").read_text() == "one = 11\ntwo = 22\none = 11\n"


def test_writing_keeps_the_mode_of_a_file(context: Context, project: Path) -> None:
    """A script stays executable after an edit."""
    (project / "run.sh").write_text("echo a\n")
    (project / "run.sh").chmod(0o755)
    use(context, "edit_file", path="run.sh", old="a", new="b")
    assert os.stat(project / "run.sh").st_mode & 0o777 == 0o755


@pytest.mark.parametrize(
    "path", ["../x", "/etc/x", "~/x", "link/x", "a/../../x", "x\x00y", "/proc/self/root/etc/x"]
)
def test_nothing_outside_the_project_is_written(
    context: Context, project: Path, home: Path, path: str
) -> None:
    """Neither dots nor links nor other roots lead out."""
    (project / "link").symlink_to(home)
    assert refused(context, "write_file", path=path, content="evil")
    assert not (home / "x").exists()
    assert not Path("/etc/x").exists()


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".GIT/hooks/pre-commit",
        "sub/.git/hooks/pre-commit",
        ".tacit/config.toml",
        ".husky/pre-commit",
        ".agents/skills/evil/SKILL.md",
        ".agents/memory/evil/FACT.md",
        "packages/app/.claude/skills/evil/SKILL.md",
        "linked/evil/SKILL.md",
        "bare/HEAD",
        "bare/HEAD/x",
        "worktree/commondir",
        "full/config",
    ],
)
def test_skill_folders_and_what_runs_later_are_not_written(
    context: Context, project: Path, path: str
) -> None:
    """Those have roads of their own: the gate, and the user."""
    (project / ".agents" / "skills").mkdir(parents=True)
    (project / "linked").symlink_to(".agents/skills")
    for name in ("bare/objects/x", "bare/refs/x", "worktree/HEAD", "full/HEAD", "full/commondir"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    assert refused(context, "write_file", path=path, content="evil")
    assert not (project / path).exists()


def _secrets(home: Path, project: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_rsa").write_text("TOPSECRET")
    (home / "notes").write_text("TOPSECRET")
    (project / ".env").write_text("TOPSECRET")
    (project / "deep").mkdir()
    (project / "deep" / "server.key").write_text("TOPSECRET")
    (project / "to-home").symlink_to(home / "notes")
    (project / "to-key").symlink_to(home / ".ssh" / "id_rsa")
    (project / "to-env").symlink_to(".env")
    (project / "plain").write_text("TOPSECRET in plain sight")


def test_a_new_file_goes_by_the_umask_and_an_old_one_keeps_its_mode(
    context: Context, project: Path
) -> None:
    """What the agent writes in the project is as open as what the user writes there."""
    (project / "old.sh").write_text("a")
    (project / "old.sh").chmod(0o775)
    before = os.umask(0o027)
    try:
        use(context, "edit_file", path="old.sh", old="a", new="b")
        use(context, "write_file", path="new.txt", content="n")
    finally:
        os.umask(before)
    assert (project / "old.sh").stat().st_mode & 0o777 == 0o775
    assert (project / "new.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "path", [".env", "to-env", "deep/server.key", "to-home", "to-key", "~/.ssh/id_rsa", "../notes"]
)
def test_secrets_are_masked_for_reading(
    context: Context, home: Path, project: Path, path: str
) -> None:
    """Keys and what lies outside cannot be read, by name or by link."""
    _secrets(home, project)
    assert "TOPSECRET" not in refused(context, "read_file", path=path)


def test_secrets_are_masked_for_searching(context: Context, home: Path, project: Path) -> None:
    """A search finds the text in plain sight only, also when pointed at a masked file."""
    _secrets(home, project)
    assert use(context, "search_files", pattern="TOPSECRET").text.startswith("plain:1:")
    assert "\n" not in use(context, "search_files", pattern="TOPSECRET").text
    assert refused(context, "search_files", pattern="TOP", path=".env")
    assert refused(context, "search_files", pattern="TOP", path=str(home))
    assert refused(context, "glob_files", pattern="*", path=str(home))
    assert refused(context, "list_files", path="~/.ssh")


def test_the_user_can_show_secrets(context: Context, home: Path, project: Path) -> None:
    """With the setting, the project's own keys can be read and found."""
    _secrets(home, project)
    context.options = ToolOptions(show_secrets=True)
    assert "TOPSECRET" in use(context, "read_file", path=".env").text
    assert ".env:1" in use(context, "search_files", pattern="TOPSECRET").text
    assert refused(context, "read_file", path="~/notes")


def test_odd_files_are_refused_not_waited_for(context: Context, project: Path) -> None:
    """A pipe, a folder, bytes that are no text and a file that is gone each say what they are."""
    os.mkfifo(project / "pipe")
    (project / "binary").write_bytes(b"a\x00b")
    assert "plain file" in refused(context, "read_file", path="pipe")
    assert "folder" in refused(context, "read_file", path=".")
    assert "binary" in refused(context, "read_file", path="binary")
    assert "there is no" in refused(context, "read_file", path="nothing")
    assert use(context, "search_files", pattern="a").text == "(nothing found)"


def test_a_pattern_that_would_never_end_ends(context: Context, project: Path) -> None:
    """A regular expression that takes exponential time is given up, in words."""
    (project / "f").write_text("a" * 40 + "b\n")
    context.options = ToolOptions(search_seconds=1.0)
    assert "too long" in refused(context, "search_files", pattern="(a+)+$")


def test_finding_files(context: Context, project: Path) -> None:
    """Patterns find names at any depth; folders of dependencies are passed over."""
    for name in ("a.py", "src/b.py", "src/c.txt", "node_modules/d.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x = 1\n")
    assert use(context, "glob_files", pattern="**/*.py").text.splitlines() == ["a.py", "src/b.py"]
    found = use(context, "search_files", pattern=r"x\s=", glob="*.txt").text
    assert found == "src/c.txt:1: x = 1"
    assert "not a regular expression" in refused(context, "search_files", pattern="(")
    assert use(context, "list_files").text.splitlines()[0] == ".git/"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {}),
        ("read_file", {"path": 5}),
        ("read_file", {"path": "f", "offset": "many"}),
        ("run_command", {"unreadable": "{"}),
    ],
)
def test_bad_arguments_say_what_a_tool_takes(
    context: Context, name: str, arguments: dict[str, Any]
) -> None:
    """A call with wrong arguments is refused with the names of the right ones."""
    (tool,) = [tool for tool in TOOLS if tool.name == name]
    with pytest.raises(Failed, match="It takes: "):
        tool.check(arguments)


@pytest.mark.parametrize(
    "name",
    [
        "AGENTS.md", ".claude/settings.json", ".mcp.json", "packages/app/.envrc.sh/CLAUDE.md",
        "GEMINI.md", "docs/guide.md",
    ],
)  # fmt: skip
def test_what_others_obey_is_written_only_by_a_yes_to_that_file(
    context: Context, project: Path, name: str
) -> None:
    """No rule and no --yes will do: a person says yes to the call, or names it in the settings."""
    (project / "GEMINI.md").symlink_to("docs/guide.md")
    assert "agent.allow_write" in refused(context, "write_file", path=name, content="evil")
    assert not (project / name).exists()
    context.approved_by_person = True
    use(context, "write_file", path=name, content="one")
    context.approved_by_person = False
    assert "agent.allow_write" in refused(context, "edit_file", path=name, old="one", new="evil")
    context.options = ToolOptions(
        allow_write=(os.path.relpath((project / name).resolve(), project),)
    )
    use(context, "edit_file", path=name, old="one", new="two")
    assert (project / name).read_text() == "two"


def test_a_folder_exchanged_for_a_link_meanwhile_leads_nowhere(
    context: Context, project: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between look and deed a command swaps in a link: nothing outside is written or read."""
    outside = home / "outside"
    outside.mkdir()
    (outside / "old.txt").write_text("private")

    def swap(path: str, context: Context) -> str:
        real = judge(path, context)
        (project / "sub").rename(project / f"away{len(list(project.iterdir()))}")
        (project / "sub").symlink_to(outside)
        return real

    calls: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "sub/new.txt", "content": "x"}),
        ("write_file", {"path": "sub/below/new.txt", "content": "x"}),
        ("edit_file", {"path": "sub/old.txt", "old": "mine", "new": "x"}),
        ("read_file", {"path": "sub/old.txt"}),
    ]
    for name, arguments in calls:
        (project / "sub").unlink(missing_ok=True)
        (project / "sub").mkdir()
        (project / "sub" / "old.txt").write_text("mine")
        judging = "readable" if name == "read_file" else "writable"
        judge = getattr(file_tools, judging)
        with monkeypatch.context() as patched:
            patched.setattr(file_tools, judging, swap)
            assert "cannot" in refused(context, name, **arguments), name
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"old.txt": "private"}
    assert (
        list(file_search.search([("f", str(project / "sub/old.txt"))], "p", ignore_case=True)) == []
    )


def test_tacit_s_own_folders_in_the_project_are_out_of_reach(
    context: Context, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who works in their home has them there: events, sessions and settings are ours."""
    monkeypatch.setenv("TACIT_HOME", str(project / "own"))
    (project / "own" / "data" / "sessions").mkdir(parents=True)
    (project / "own" / "data" / "sessions" / "1.jsonl").write_text("{}")
    for path in ("own/data/events/1.event", "own/data/sessions/1.jsonl", "own/config/config.toml"):
        assert "own" in refused(context, "write_file", path=path, content="x")
    assert "Tacit's own" in refused(context, "read_file", path="own/data/sessions/1.jsonl")
    assert use(context, "search_files", pattern=".").text == "(nothing found)"


def test_an_edit_says_once_what_it_replaces(context: Context, project: Path) -> None:
    """With `old` and `edits` both, one of them would be shown and the other done."""
    (project / "a.txt").write_text("one two")
    more = [{"old": "two", "new": "evil"}]
    told = refused(context, "edit_file", path="a.txt", old="one", new="1", edits=more)
    assert "send one of them" in told
    assert (project / "a.txt").read_text() == "one two"


def test_every_folder_that_skills_are_loaded_from_is_the_gates(
    context: Context, home: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of the user, where the project is their home, and those that settings name."""
    own = [folder for host in host_folders() for folder in host.user_folders(str(home))]
    assert len(own) > 5
    monkeypatch.setenv("TACIT_SKILLS_PATHS", str(project / "team"))
    context.library = Library()
    for folder, path in ((project, "team"), *((home, os.path.relpath(one, home)) for one in own)):
        context.project = str(folder)
        told = refused(context, "write_file", path=f"{path}/evil/SKILL.md", content="evil")
        assert "skill folder" in told or "own work" in told
        assert not (folder / path).exists()
