"""No repository makes us run a program: git is called in one way, with everything switched off."""

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import tacit
from tacit.base.git_program import git_environment, run_git

SOURCE = Path(tacit.__file__).parent
STARTERS = {
    "run", "Popen", "call", "check_call", "check_output", "getoutput", "create_subprocess_exec",
    "create_subprocess_shell", "system", "popen", "execv", "execve", "execvp", "execvpe", "execl",
    "posix_spawn", "posix_spawnp", "spawnv", "spawnve",
}  # fmt: skip
MAY_START = {
    "base/git_program.py": "git",
    "agent/file_tools.py": "our own search",
    "agent/sandbox.py": "commands, in the sandbox",
    "work/daemon_unit.py": "systemctl, launchctl",
    "work/delivery.py": "the user's own command",
    "learn/announcements.py": "a desktop notification",
    "learn/background/child_process.py": "our own child",
    "learn/background/confinement.py": "our own probe",
    "skills/skill_search.py": "our own indexing",
    "hook.py": "our own worker",
    "ui/cli/output.py": "the user's pager",
    "ui/web/answers.py": "our own schedule, run by hand",
    "agent/host_program.py": "the agent program that the user chose as a model",
}
"""The modules that start programs, and which."""


def _starts_programs(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "subprocess":
            return True
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name = node.func.attr
        owner = ast.unparse(node.func.value) if name in STARTERS else ""
        if owner in ("subprocess", "os", "asyncio") and (owner, name) != ("asyncio", "run"):
            return True
    return False


def test_nothing_but_one_helper_starts_git() -> None:
    """Modules that start a program are listed here, and only the helper among them names git."""
    found, naming = set(), set()
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        text = path.read_text("utf-8")
        named = "subprocess" in text or any(f"{each}(" in text for each in STARTERS)
        if name.startswith("testing/") or not named:
            continue
        tree = ast.parse(text)
        if not _starts_programs(tree):
            continue
        found.add(name)
        words = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        if any(isinstance(w, str) and (w == "git" or w.startswith("git ")) for w in words):
            naming.add(name)
    assert found == set(MAY_START)
    assert naming == {"base/git_program.py"}


def test_our_own_programs_take_no_module_from_where_they_start() -> None:
    """`python -m` looks into the current folder first, which may be a hostile project."""
    calls, unsafe = 0, []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "sys.executable" in text else ():
            if isinstance(node, ast.List | ast.Tuple):
                words = [ast.unparse(word) for word in node.elts]
                if "sys.executable" in words and "'-m'" in words:
                    calls += 1
                    unsafe += [path.name] if "'-P'" not in words else []
    assert calls > 5
    assert unsafe == []


def _evil(folder: Path) -> tuple[str, Path]:
    """A program, and the file that it leaves behind where it ran."""
    mark = folder / "it-ran"
    program = folder / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {mark}\nexit 1\n")
    program.chmod(0o755)
    return str(program), mark


def _repository(folder: Path, *settings: str) -> Path:
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "a").write_text("a")
    subprocess.run(["git", "-C", str(folder), "add", "a"], check=True)
    for setting in settings:
        key, _, value = setting.partition("=")
        subprocess.run(["git", "-C", str(folder), "config", key, value], check=True)
    return folder


def test_settings_of_a_repository_run_nothing(home: Path) -> None:
    """A monitor, a hook, a filter, an alias and a pager of a hostile repository stay quiet."""
    evil, mark = _evil(home)
    hooks = home / "hooks"
    hooks.mkdir()
    names = ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc")
    for name in names:
        (hooks / name).symlink_to(evil)
    folder = _repository(
        home / "hostile",
        f"core.fsmonitor={evil}",
        f"core.hooksPath={hooks}",
        f"core.pager={evil}",
        f"core.sshCommand={evil}",
        f"diff.external={evil}",
        f"filter.f.clean={evil}",
        f"alias.ls-files=!{evil}",
    )
    subprocess.run(["git", "-C", str(folder), "status"], capture_output=True)
    assert mark.exists(), "the attack works where nothing is done about it"
    mark.unlink()
    for words in (
        ("ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        ("rev-parse", "--show-toplevel"),
        ("diff", "--no-ext-diff", "--name-only", "--cached"),
    ):
        assert run_git(*words, cwd=str(folder)).returncode == 0, words
    assert not mark.exists()


def test_a_bare_layout_is_no_repository(home: Path) -> None:
    """Files that make a folder look like a repository of its own give it no settings."""
    evil, mark = _evil(home)
    folder = _repository(
        home / "project", f"core.fsmonitor={evil}", f"core.worktree={home}/project"
    )
    for part in ("HEAD", "config", "objects", "refs", "index"):
        (folder / ".git" / part).rename(folder / part)
    shutil.rmtree(folder / ".git")
    subprocess.run(["git", "-C", str(folder), "status"], capture_output=True)
    assert mark.exists(), "the attack works where nothing is done about it"
    mark.unlink()
    assert run_git("ls-files", "--others", cwd=str(folder)).returncode != 0
    assert not mark.exists()


def test_nothing_is_fetched(home: Path) -> None:
    """An object that is missing is not asked of a remote that names its own program."""
    evil, mark = _evil(home)
    folder = _repository(
        home / "partial",
        "extensions.partialClone=origin",
        "core.repositoryformatversion=1",
        "remote.origin.promisor=true",
        f"remote.origin.url={home}",
        f"remote.origin.uploadpack={evil}",
    )
    missing = "1234567890" * 4
    words = ["git", "-C", str(folder), "cat-file", "-p", missing]
    subprocess.run(words, capture_output=True)
    assert mark.exists(), "the attack works where nothing is done about it"
    mark.unlink()
    assert run_git("cat-file", "-p", missing, cwd=str(folder)).returncode != 0
    assert not mark.exists()


@pytest.mark.parametrize("there", [True, False])
def test_the_environment_is_clean(home: Path, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """No variable leads git elsewhere, and no program of a project's is taken for git, wherever
    we are: an agent may have written it."""
    evil, mark = _evil(home)
    folder = _repository(home / "plain")
    bin_ = folder / ".venv" / "bin"
    bin_.mkdir(parents=True)
    for place in (folder, bin_):
        (place / "git").symlink_to(evil)
    monkeypatch.chdir(folder if there else home)
    monkeypatch.setenv("PATH", f".:{bin_}:{os.environ['PATH']}")
    for name in ("GIT_DIR", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT"):
        monkeypatch.setenv(name, evil)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert run_git("ls-files", cwd=str(folder)).stdout == b"a\n"
    assert not mark.exists()
    assert not {"GIT_DIR", "ANTHROPIC_API_KEY"} & git_environment().keys()
