"""Commands that plant what somebody else obeys later: git, other agents, editors, build servers."""

import asyncio
import errno
import os
import subprocess
from pathlib import Path

import pytest
from boxes import WHY, Box

from tacit.agent import planted_files, sandbox
from tacit.agent.sandbox import Bubblewrap
from tacit.agent.tool import Context, Question, ToolOptions
from tacit.base.errors import Refused
from tacit.skills.library import Library

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
    (far / "work" / place / "own.py").write_text("mine")
    done = Box(far, far / "work").run(
        f"cd {place}; git init -q x; touch x/a; git -C x add a; mv x/.git/* .; rm -rf x;"
        f"git config --file config core.fsmonitor 'touch {mark};';"
        "git config --file config core.bare false; git config --file config core.worktree $PWD"
    )
    assert done.failed
    assert done.removed
    _git(far / "work" / place, "status")
    assert not mark.exists()
    assert (far / "work" / place / "own.py").read_text() == "mine"


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
    "AGENT.md", ".agents/commands/a.md", ".amp/settings.json", ".cline/x.json", ".goose/x.yaml",
    ".grok/settings.json", ".kilo/x.json", ".vibe/config.toml", ".roorules", "GROK.md", "IFLOW.md",
    ".claude-plugin/plugin.json", ".helix/languages.toml", ".vim/coc-settings.json", ".lazy.lua",
    "mise.local.toml", ".config/mise/config.toml", "lefthook-local.yml", "lefthook.toml",
    "prek.toml", "flake.nix", "devbox.json", ".idx/dev.nix", ".tekton/x.yaml", ".builds/x.yml",
    "azure-pipelines.yaml", ".gitconfig", "HERMES.md", "agents.md", ".github/copilot/settings.json",
    ".Rprofile", ".irbrc", "packages/app/.ghci", ".pdbrc", ".gdbinit", ".cshrc", ".kshrc",
    ".config/nushell/config.nu", ".config/powershell/profile.ps1", ".config/fish/functions/a.fish",
    ".docker/config.json", ".claude.json", ".local/bin/ls",
)  # fmt: skip


@pytest.mark.parametrize("there", [True, False])
def test_what_others_obey_is_read_only(box: Box, there: bool) -> None:
    """Neither changed, replaced, moved nor made anew; unless the user allows that very file."""
    attacks, allowed = [], []
    for name in OBEYED:
        file = box.project / name
        if there:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("mine")
        top, above = name.partition("/")[0], os.path.dirname(name) or "."
        attacks.append(
            f"mkdir -p {above}; echo evil > {name}; rm -f {name}; echo evil > {name};"
            f"mv {name} gone; echo evil > {name}; mv {top} gone2; mkdir -p {above};"
            f"echo evil > {name}; echo evil > t; ln -sf $PWD/t {name}; mv -f t {name};"
        )
        allowed.append(f"mkdir -p {above}; echo mine > {name}\n")
    box.run("".join(attacks))
    for name in OBEYED:
        file = box.project / name
        found = [path.read_text() for path in box.project.rglob(file.name) if path.is_file()]
        if there:
            assert "mine" in found, name
            assert "evil\n" not in found, name
        else:
            assert not os.path.lexists(file), name
    done = box.run("".join(allowed), allow_write=OBEYED, show_secrets=True)
    assert not done.failed, done.output
    assert {(box.project / name).read_text() for name in OBEYED} == {"mine\n"}


@pytest.mark.parametrize(
    "attack",
    [
        "rm CLAUDE.md; echo evil > CLAUDE.md",
        "echo evil > e; ln -sf e CLAUDE.md",
        "mv docs d; mkdir docs; echo evil > docs/way.md",
        "rm docs/way.md; echo evil > docs/way.md",
        "echo evil > docs/none.md",
        "ln -s /etc/passwd docs/none.md",
        "rm GEMINI.md; echo evil > GEMINI.md",
        "ln -s docs QWEN.md; rm QWEN.md; echo evil > e; ln -s e QWEN.md",
    ],
)
def test_what_others_obey_through_a_link_stays(box: Box, attack: str) -> None:
    """Neither the link nor what it leads to is exchanged, nor made where it leads to nothing."""
    docs = box.project / "docs"
    docs.mkdir()
    (docs / "guide.md").write_text("mine")
    (docs / "way.md").symlink_to("guide.md")
    (box.project / "CLAUDE.md").symlink_to("docs/way.md")
    (box.project / "GEMINI.md").symlink_to("docs/none.md")
    assert box.run(attack).removed
    names = ("CLAUDE.md", "GEMINI.md", "QWEN.md")
    for file in (box.project / name for name in names):
        assert not file.exists() or file.read_text() == "mine", file
    assert (box.project / "GEMINI.md").is_symlink()
    assert box.run("echo fine > docs/other.md").removed == ()


@pytest.mark.parametrize(
    ("setting", "file"),
    [
        ("core.hooksPath=tools/hooks", "tools/hooks/pre-commit"),
        ("include.path=../team.gitconfig", "team.gitconfig"),
        ("includeIf.gitdir:/.path=../conf/git", "conf/git"),
        ("filter.f.clean=python3 tools/clean.py %f", "tools/clean.py"),
        ("core.fsmonitor=./tools/watch", "tools/watch"),
    ],
)
def test_what_the_settings_of_a_repository_name_is_guarded(
    far: Path, setting: str, file: str
) -> None:
    """Hooks at another place, more settings and programs that git runs: at the top and below."""
    for top in (far / "work", far / "work" / "nested"):
        subprocess.run(["git", "init", "-q", str(top)], check=True)
        _git(top, "config", *setting.split("=", 1))
        (top / file).parent.mkdir(parents=True, exist_ok=True)
        (top / file).write_text("mine")
    box = Box(far, far / "work")
    for name in (file, f"nested/{file}"):
        above = os.path.dirname(name) or "."
        box.run(f"echo evil > {name}; mv {above} gone; mkdir -p {above}; echo evil > {name}; true")
        assert (far / "work" / name).read_text() == "mine"
    assert not box.run("echo fine > src.py; git add src.py").failed


def test_a_repository_in_others_packages_runs_nothing(box: Box) -> None:
    """A prompt that shows the branch runs git wherever its user goes."""
    done = box.run("git init -q node_modules/x; git -C node_modules/x config core.fsmonitor evil")
    assert done.removed == ("node_modules/x/.git",)


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


@pytest.mark.parametrize(
    "swap",
    [
        "mv x y; ln -s {home}/.claude x",
        "rm -r x; ln -s {home}/.claude x",
        "ln -s {home}/.claude /tmp/taken-away; echo evil > .envrc; mkdir .vscode",
    ],
)
def test_nothing_is_taken_or_put_back_through_a_planted_link(box: Box, swap: str) -> None:
    """What lies outside the project stays, and nothing comes to lie there, whatever leads there."""
    (box.project / "x").mkdir()
    (box.project / "x/CLAUDE.md").symlink_to("../work/evil.md")
    (box.home / ".claude").mkdir()
    (box.home / ".claude/CLAUDE.md").write_text("the user's own")
    box.run(swap.format(home=box.home))
    assert [path.name for path in (box.home / ".claude").iterdir()] == ["CLAUDE.md"]
    assert not (box.home / ".claude/CLAUDE.md").is_symlink()
    assert (box.home / ".claude/CLAUDE.md").read_text() == "the user's own"


async def _nobody(question: Question) -> str | None:
    return None


def test_long_output_is_not_kept_through_a_planted_link(box: Box) -> None:
    """The session's folder is the commands' own /tmp: a name that they guess leads nowhere."""
    (box.home / ".bashrc").write_text("the user's own")
    context = Context(
        str(box.project),
        str(box.temporary),
        library=Library(),
        sandbox=Bubblewrap,
        ask=_nobody,
        options=ToolOptions(),
    )
    for number in range(3):
        box.run(f"ln -s {box.home}/.bashrc /tmp/output-{number}.txt")
    told = context.shorten("touch it-ran\n" * 10_000)
    assert (box.home / ".bashrc").read_text() == "the user's own"
    path = told.partition("read_file path=")[2].partition(" ")[0]
    assert Path(path).read_text() == "touch it-ran\n" * 10_000


_DEEP = "mkdir .claude; echo x > .claude/settings.json; cd .claude; i=0;"
_DEEP += "while [ $i -lt 100 ]; do mkdir a; cd -P a; i=$((i+1)); done"


@pytest.mark.usefixtures("as_anybody")
@pytest.mark.parametrize("disk", ["the same", "another"])
@pytest.mark.parametrize(
    "plant",
    [
        "mkdir .claude; echo x > .claude/settings.json; chmod 555 .claude",
        "mkdir -p sub/.claude; echo x > sub/.claude/settings.json; chmod 555 sub",
        "mkdir -p .claude/q; mkfifo .claude/q/f; echo x > .claude/s; chmod 000 .claude/q/f .claude",
        "mkdir sub; echo x > sub/CLAUDE.md; chmod 111 sub",
        "mkdir -p a/b; echo x > a/b/CLAUDE.md; chmod 400 a/b; chmod 000 a",
        "echo x > CLAUDE.md; chmod 111 .",
        "echo x > CLAUDE.md; chmod 555 .",
        "echo x > CLAUDE.md; chmod 000 /tmp",
        _DEEP,
    ],
)
def test_no_permission_keeps_it_there(
    plant: str, disk: str, far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a command closes behind itself, and whatever it nests."""
    if disk == "another":
        rename = os.rename

        def refuse(*paths: str, src_dir_fd: int, dst_dir_fd: int) -> None:
            if paths[0] == paths[1]:
                raise OSError(errno.EXDEV, "another disk")
            rename(*paths, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

        monkeypatch.setattr(planted_files.os, "rename", refuse)
    box = Box(far, far / "work")
    done = box.run(plant)
    assert done.failed
    (taken,) = done.removed
    assert not (box.project / taken).exists()
    kept = [path for path in box.temporary.glob("taken-away-*/*") if path.name in taken]
    assert len(kept) == 1


def test_a_folder_that_is_exchanged_meanwhile_is_not_followed(
    far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command of another session in the project: what is moved out is what was looked at."""
    box = Box(far, far / "work")
    own = far / "own"
    own.mkdir()
    (own / "CLAUDE.md").write_text("mine")
    real = planted_files.Watch._folder

    def exchanged(self: planted_files.Watch, path: str) -> planted_files.Folder:
        found = real(self, path)
        (box.project / "sub").rename(box.project / "was-sub")
        (box.project / "sub").symlink_to(own)
        return found

    monkeypatch.setattr(planted_files.Watch, "_folder", exchanged)
    assert box.run("mkdir sub; echo x > sub/CLAUDE.md").removed == ("sub/CLAUDE.md",)
    assert (own / "CLAUDE.md").read_text() == "mine"
    assert not list((box.project / "was-sub").iterdir())


_FAR = f"d={'a' * 200}; i=0; while [ $i -lt 25 ]; do"


def test_what_stays_is_named_and_keeps_nothing_else_there(
    far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails, say: everything else is moved out all the same."""
    box = Box(far, far / "work")

    def fail(folder: planted_files.Folder, name: str) -> None:
        if name == "CLAUDE.md":
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(planted_files, "remove_tree", fail)
    with pytest.raises(Refused, match=f"{box.project}/CLAUDE.md .* Input/output error"):
        box.run("echo x > CLAUDE.md; mkdir .claude; echo x > .claude/x; echo x > GEMINI.md")
    assert not (box.project / ".claude").exists()
    assert not (box.project / "GEMINI.md").exists()


@pytest.mark.usefixtures("as_anybody")
@pytest.mark.parametrize(
    ("away", "look"),
    [
        ("chmod 111 conf", "cat conf/.env"),
        ("chmod 000 conf", "chmod 700 conf; cat conf/.env"),
        (
            f"{_FAR} mkdir $d; mv conf $d/conf; cd -P $d; i=$((i+1)); done",
            f"{_FAR} cd -P $d; i=$((i+1)); done; cat conf/.env",
        ),
    ],
)
def test_keys_are_not_put_out_of_sight_for_the_next_command(
    away: str, look: str, far: Path
) -> None:
    """Neither behind a closed door nor at a depth that no path reaches."""
    box = Box(far, far / "work")
    (box.project / "conf").mkdir()
    (box.project / "conf" / ".env").write_text("KEY=hush")
    box.run(away)
    assert "hush" not in box.run(look).output


@pytest.mark.usefixtures("as_anybody")
def test_what_the_user_has_closed_stays_closed(far: Path) -> None:
    """A command finds nothing there, and can put nothing there."""
    box = Box(far, far / "work")
    (box.project / "conf").mkdir()
    (box.project / "conf" / ".env").write_text("KEY=hush")
    (box.project / "conf").chmod(0)
    done = box.run("chmod 700 conf; cat conf/.env; echo x > conf/CLAUDE.md; chmod 0 conf")
    assert "hush" not in done.output
    assert (box.project / "conf").stat().st_mode & 0o777 == 0
    (box.project / "conf").chmod(0o700)
    assert [path.name for path in (box.project / "conf").iterdir()] == [".env"]
    box.project.chmod(0)
    with pytest.raises(Refused, match="permissions"):
        box.run("ls")
    box.project.chmod(0o700)
