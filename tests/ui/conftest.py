"""Running the real program, in a pipe and on a terminal."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import inside

PROGRAM = str(Path(sys.executable).with_name("tacit"))


@pytest.fixture(autouse=True)
def _no_worker(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chat that ends starts no worker in the background, as if it ran below one."""
    if request.path.stem.startswith("test_chat"):
        monkeypatch.setenv("TACIT_WORKER", "1")


class Program:
    """The command line, and the installed `tacit`."""

    program = PROGRAM

    def __call__(
        self, *arguments: str, **options: Any
    ) -> "subprocess.CompletedProcess[str] | inside.Done":
        """Run it as in a pipe: in a process of its own where the test says how that one is."""
        if not options:
            return inside.tacit(*arguments)
        return subprocess.run(
            [PROGRAM, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            stdin=options.pop("stdin", subprocess.DEVNULL),
            **options,
        )

    def ok(self, *arguments: str, **options: Any) -> str:
        """What it prints; it must succeed and say nothing else."""
        done = self(*arguments, **options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def json(self, *arguments: str, code: int = 0) -> Any:
        """What it prints with --json, on standard output; standard error stays empty."""
        done = self(*arguments, "--json")
        assert (done.returncode, done.stderr) == (code, "")
        return json.loads(done.stdout)

    def error(self, *arguments: str, code: int) -> dict[str, str]:
        """What it says on standard error with --json; standard output stays empty."""
        done = self(*arguments, "--json")
        assert (done.returncode, done.stdout) == (code, "")
        report = json.loads(done.stderr)
        assert set(report) == {"error"}
        assert set(report["error"]) == {"code", "message", "hint"}
        return report["error"]

    def on_terminal(
        self, *arguments: str, columns: int = 80, typed: str = "", **environment: str
    ) -> tuple[int, str]:
        """Run it on a terminal of its own; its exit code and all that it wrote."""
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen(
            [PROGRAM, *arguments],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**os.environ, "TACIT_PAGER": "", **environment},
        )
        os.close(follower)
        os.write(leader, typed.encode())
        written = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            written += part
        os.close(leader)
        return process.wait(120), written.decode().replace("\r\n", "\n")


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def tacit() -> Program:
    return Program()


@pytest.fixture
def uncoloured() -> Callable[[str], str]:
    return without_colour


@pytest.fixture
def put() -> Callable[..., Path]:
    """`put(folder, name=…, description=…, body=…, text=…)` writes a SKILL.md."""

    def write(
        folder: Path,
        name: str | None = None,
        description: str = "Does a thing. Use when it must be done.",
        body: str = "# Title\n\nDo it.\n",
        text: str | bytes | None = None,
    ) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        if text is None:
            text = f"---\nname: {name or folder.name}\ndescription: {description}\n---\n\n{body}"
        (folder / "SKILL.md").write_bytes(text.encode() if isinstance(text, str) else text)
        return folder

    return write


@pytest.fixture
def skills(home: Path, put: Callable[..., Path]) -> Path:
    """The user's folder with a few skills, one of them broken."""
    folder = home / ".agents" / "skills"
    put(folder / "git-rebase", description="Rebase a branch and resolve conflicts.")
    put(folder / "pdf-forms", description="Fill in PDF forms.", body="Use pypdf.\n")
    put(folder / "数据库", description="编写数据库迁移脚本。")
    put(folder / "broken", text="---\nname: broken\ndescription: Use when: always\n---\nx\n")
    return folder


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = home / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder
