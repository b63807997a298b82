"""Commands that plant what somebody else obeys later: git, other agents, editors, build servers."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from boxes import WHY, Box

from tacit.agent import sandbox
from tacit.agent.sandbox import Bubblewrap

pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "it works")


def _git(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", *words]
    return subprocess.run(command, capture_output=True, text=True)


def _worktree(far: Path) -> Box:
    main = far / "main"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    _git(main, "commit", "-q", "--allow-empty", "-m", "one")
    (far / "work").rmdir()
    assert _git(main, "worktree", "add", "-q", str(far / "work")).returncode == 0
    return Box(far, far / "work")


_EVIL = "cp -r {main}/.git evil 2>/dev/null || (git init -q evil0 && mv evil0/.git evil);"
_EVIL += "printf '[core]\\n\\tbare = false\\n\\tfsmonitor = touch {mark};\\n' >> evil/config;"


@pytest.mark.parametrize(
    "swap",
    [
        "echo 'gitdir: evil' > .git",
        "rm -f .git; echo 'gitdir: evil' > .git",
        "mv .git old; mv evil .git",
        "ln -sf evil .git",
        "mv .git x; ln -s evil .git",
    ],
)
def test_the_file_that_is_dot_git_in_a_worktree_stays(far: Path, swap: str) -> None:
    """What `.git` points to is the user's: their next `git status` runs nothing planted."""
    box = _worktree(far)
    before = (box.project / ".git").read_text()
    mark = far / "it-ran"
    box.run(_EVIL.format(main=far / "main", mark=mark) + swap)
    assert (box.project / ".git").is_file()
    assert (box.project / ".git").read_text() == before
    assert _git(box.project, "status").returncode == 0
    assert not mark.exists()


def test_git_works_in_a_worktree(far: Path) -> None:
    """What the file points to can be read, wherever in the home it lies."""
    box = _worktree(far)
    assert box.run("git log --format=%s").output == "one\n"


@pytest.mark.parametrize(
    "command",
    [
        "printf '[core]\\nfsmonitor = evil\\n' >> real/config",
        "echo evil > real/hooks/post-checkout",
        "mkdir -p real/hooks; echo evil > real/hooks/post-checkout",
        "mv real r; cp -r r real; echo evil >> real/config",
        "echo ../evil > real/commondir",
    ],
)
def test_a_git_directory_of_another_name_is_guarded(far: Path, command: str) -> None:
    """`.git` may name a folder of the project; its settings and hooks stay as they are."""
    work = far / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / ".git").rename(work / "real")
    (work / ".git").write_text("gitdir: real\n")
    config = (work / "real" / "config").read_text()
    Box(far, work).run(command)
    assert (work / "real" / "config").read_text() == config
    assert not (work / "real" / "commondir").exists()
    hooks = work / "real" / "hooks"
    assert not [f for f in hooks.iterdir() if f.suffix != ".sample"]


def test_a_link_that_is_dot_git_is_put_back(far: Path) -> None:
    """A link cannot be mounted over; exchanged, it is restored."""
    work = far / "work"
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / ".git").rename(work / "real")
    (work / ".git").symlink_to("real")
    done = Box(far, work).run("rm .git; git init -q x; mv x/.git .git; git config alias.x '!evil'")
    assert done.removed == (".git",)
    assert os.readlink(work / ".git") == "real"
    (work / ".agents").symlink_to("elsewhere")
    (work / "elsewhere" / "skills").mkdir(parents=True)
    Box(far, work).run("rm .agents; mkdir -p .agents/skills/evil; touch .agents/skills/evil/S")
    assert os.readlink(work / ".agents") == "elsewhere"


@pytest.mark.parametrize("place", [".", "packages/app"])
def test_a_bare_layout_does_not_stay(far: Path, place: str) -> None:
    """Files that make git take a folder for a repository are taken away where they run programs."""
    mark = far / "it-ran"
    (far / "work" / place).mkdir(parents=True, exist_ok=True)
    done = Box(far, far / "work").run(
        f"cd {place}; git init -q x; touch x/a; git -C x add a; mv x/.git/* .; rm -rf x;"
        f"git config --file config core.fsmonitor 'touch {mark};';"
        "git config --file config core.bare false; git config --file config core.worktree $PWD"
    )
    assert done.failed
    assert done.removed
    _git(far / "work" / place, "status")
    assert not mark.exists()


def test_a_harmless_repository_stays(far: Path) -> None:
    """A bare one for a test, a nested one with a remote: they run nothing."""
    done = Box(far, far / "work").run(
        "git init -q --bare remote.git; git init -q sub; cd sub;"
        "git remote add origin ../remote.git; git config user.name n; git config user.email e;"
        "git commit -q --allow-empty -m one; git push -q origin HEAD; git log --format=%s"
    )
    assert (done.output, done.removed) == ("one\n", ())
    assert (far / "work" / "sub" / ".git" / "config").exists()


@pytest.mark.parametrize(
    "evil",
    [
        "git -C sub config alias.st '!evil'",
        "echo x > sub/.git/hooks/post-checkout",
        "git -C sub config remote.o.url 'ext::sh -c evil'",
        "git -C sub config include.path ../evil",
        "rm -rf sub/.git; echo 'gitdir: ../evil' > sub/.git",
    ],
)
def test_a_nested_repository_is_made_to_run_nothing(far: Path, evil: str) -> None:
    """Whether it was there before or is new, a repository below the top gets no programs."""
    work = far / "work"
    done = Box(far, work).run(f"git init -q sub; {evil}")
    assert done.removed == ("sub/.git",)
    subprocess.run(["git", "init", "-q", str(work / "sub")], check=True)
    config = (work / "sub" / ".git" / "config").read_text()
    Box(far, work).run(evil)
    assert (work / "sub" / ".git" / "config").read_text() == config
    assert not (work / "sub" / ".git" / "hooks" / "post-checkout").exists()


OBEYED = (
    ".claude/settings.json", ".mcp.json", ".cursor/mcp.json", ".codex/config.toml",
    ".gemini/settings.json", ".qwen/settings.json", ".opencode/plugin/x.js", "opencode.json",
    ".vscode/tasks.json", ".vscode/settings.json", ".idea/workspace.xml", "x.code-workspace",
    ".devcontainer/devcontainer.json", ".envrc", "AGENTS.md", "CLAUDE.md", "GEMINI.md",
    ".github/workflows/ci.yml", ".github/copilot-instructions.md", ".gitlab-ci.yml",
    ".circleci/config.yml", "Jenkinsfile", ".pre-commit-config.yaml", ".bashrc", ".zshrc",
    ".profile", ".cursorrules", ".clinerules/a.md", ".hg/hgrc", ".kilocode/rules/a.md", "WARP.md",
    "packages/app/CLAUDE.md", "packages/app/.claude/settings.json", "packages/app/.envrc",
)  # fmt: skip


@pytest.mark.parametrize("name", OBEYED)
@pytest.mark.parametrize("there", [True, False])
def test_what_others_obey_is_read_only(box: Box, name: str, there: bool) -> None:
    """Neither changed, replaced, moved nor made anew; unless the user allows that very file."""
    file = box.project / name
    if there:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    top = name.partition("/")[0]
    above = os.path.dirname(name) or "."
    attack = (
        f"mkdir -p {above}; echo evil > {name}; rm -f {name}; echo evil > {name};"
        f"mv {name} gone; echo evil > {name}; mv {top} gone2; mkdir -p {above}; echo evil > {name};"
        f"echo evil > t; ln -sf $PWD/t {name}; mv -f t {name}"
    )
    box.run(attack)
    if there:
        kept = [
            path.read_text() for path in (file, *box.project.rglob(file.name)) if path.is_file()
        ]
        assert "mine" in kept
        assert "evil\n" not in kept
    else:
        assert not os.path.lexists(file)
    allowed = box.run(
        f"mkdir -p {above}; echo mine > {name}", allow_write=(name,), show_secrets=True
    )
    assert not allowed.failed, allowed.output
    assert file.read_text() == "mine\n"


def test_moving_a_folder_with_such_a_file_is_no_attack(box: Box) -> None:
    """What is moved as it was stays where it was moved to."""
    (box.project / "a").mkdir()
    (box.project / "a" / "AGENTS.md").write_text("mine")
    done = box.run("mv a b")
    assert (done.removed, (box.project / "b" / "AGENTS.md").read_text()) == ((), "mine")


def test_others_packages_may_bring_such_files(box: Box) -> None:
    """What lies in node_modules or a virtual environment is nobody's instruction."""
    done = box.run("mkdir -p node_modules/x; echo a > node_modules/x/AGENTS.md")
    assert (done.failed, (box.project / "node_modules/x/AGENTS.md").exists()) == (False, True)


def test_a_change_by_the_user_meanwhile_stays(box: Box) -> None:
    """A file that was there can be edited outside while a command runs."""
    file = box.project / "AGENTS.md"
    file.write_text("before")
    pipe = box.project / "pipe"
    os.mkfifo(pipe)

    async def both() -> sandbox.CommandOutcome:
        running = asyncio.create_task(
            sandbox.run_sandboxed("cat pipe", Bubblewrap(), box.rules(), 20)
        )
        await asyncio.to_thread(pipe.write_text, "go")  # returns when the command reads
        file.write_text("after, by the user")
        return await running

    assert asyncio.run(both()).removed == ()
    assert file.read_text() == "after, by the user"
