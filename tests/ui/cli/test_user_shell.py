"""Names are completed in the shell: skills, sessions, agents, proposals."""

import os
import subprocess
from pathlib import Path

import click
import pytest

from tacit.changes.change import Create, acting_as, make_change
from tacit.changes.gate import Gate
from tacit.testing.sample_sessions import made
from tacit.traces.store import Store
from tacit.ui.cli import user_shell


def completed(complete: user_shell.Complete, word: str = "") -> list[str]:
    context = click.Context(click.Command("x"))
    return [item.value for item in complete(context, click.Argument(["a"]), word)]


def test_sessions_agents_and_proposals(home: Path) -> None:
    """What is in the store, what is known, and what waits."""
    store = Store.open()
    store.write(made(["go"], session="b4a27079-1"))
    store.write(made(["go"], session="c0ffee00-2"))
    store.close()
    assert completed(user_shell.complete_session, "b4") == ["b4a27079-1"]
    assert completed(user_shell.complete_host, "cl") == ["claude-code"]
    text = (
        b"---\nname: tests\ndescription: How tests are run. Use before a commit.\n"
        b"metadata:\n  source: auto-skill\n---\n\n1. Run make check.\n"
    )
    with acting_as("distiller"):
        change = make_change("tests", Create({"SKILL.md": text}), evidence=("a:b",))
        waits = Gate(always_ask=("distiller",)).propose(change)
    assert completed(user_shell.complete_proposal) == [waits.change[-8:]]


@pytest.mark.parametrize("complete", [user_shell.complete_session, user_shell.complete_proposal])
def test_a_broken_database_completes_nothing(complete: user_shell.Complete) -> None:
    """No error reaches a prompt."""
    from tacit.base import database

    path = Path(database.default_path())
    path.parent.mkdir(parents=True)
    path.write_bytes(b"this is no database, by any means" * 99)
    assert completed(complete) == []


class TestCompletion:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_a_script_for_each_shell(self, tacit, shell: str) -> None:
        """It names the program and its variable."""
        script = tacit.ok("completion", shell)
        assert "_TACIT_COMPLETE" in script
        assert tacit.json("completion", shell) == {"shell": shell, "script": script[:-1]}
        assert tacit.ok("completion", env={**os.environ, "SHELL": f"/bin/{shell}"}) == script

    def test_an_unknown_shell(self, tacit) -> None:
        """Exit code 2 and the known ones."""
        done = tacit("completion", env={**os.environ, "SHELL": "/bin/tcsh"})
        assert done.returncode == 2
        assert "bash, zsh, fish" in done.stderr

    def complete(self, tacit, *words: str) -> list[str]:
        """What a real bash offers after sourcing the script."""
        bin_folder = os.path.dirname(tacit.program)
        shell = f"""
set -e
export PATH={bin_folder}:$PATH
eval "$(tacit completion bash)"
COMP_WORDS=({" ".join(words)})
COMP_CWORD={len(words) - 1}
COMP_LINE="{" ".join(words)}"
_tacit_completion tacit "{words[-1]}" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
        return done.stdout.split()

    def test_in_bash(self, tacit, skills: Path) -> None:
        """Commands, options and names of skills."""
        assert "show" in self.complete(tacit, "tacit", "sho")
        assert self.complete(tacit, "tacit", "show", "git") == ["git-rebase"]
        assert self.complete(tacit, "tacit", "lint", "数") == ["数据库"]
        assert "--strict" in self.complete(tacit, "tacit", "lint", "--s")

    def test_by_hand(self, tacit, skills: Path) -> None:
        """As click asks for it; a broken configuration disturbs no prompt."""
        asked = {
            **os.environ,
            "_TACIT_COMPLETE": "bash_complete",
            "COMP_WORDS": "tacit show pdf",
            "COMP_CWORD": "2",
        }
        assert tacit.ok(env=asked) == "plain,pdf-forms\n"
        assert tacit.ok(env={**asked, "TACIT_SEARCH_LIMIT": "rubbish"}) == "\n"
