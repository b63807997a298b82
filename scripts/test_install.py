"""Installs Tacit as a stranger would, and walks the first five minutes of the README.

A wheel is built from this checkout and installed into empty environments: the core, then each
extra. With the core alone, in an empty home with two sessions of Claude Code in it, the commands of
the README are run; `--write` puts what they printed into it.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

TOP = Path(__file__).parent.parent
EXTRAS = {
    "agent": ["setup", "--help"],
    "work": ["schedule", "list"],
    "tui": ["chat", "--help"],
    "web": ["web", "--no-open", "--port", "0"],
    "mcp": ["mcp"],
    "otel": ["daemon", "status"],
    "all": ["mcp"],
}
"""Each extra, and a command that is to work with it."""
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test-install", "version": "1"},
    },
}
"""What a client of `tacit mcp` says first."""
FAULT = "ModuleNotFoundError: No module named 'shop'\n"
MARKS = "<!-- first five minutes -->", "<!-- end -->"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put what was printed into the README")
    parser.add_argument("--core", action="store_true", help="the core alone, without the extras")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        core = installed(Path(folder) / "core", str(wheel))
        shown = first_minutes(core, Path(folder) / "home")
        print(shown)
        for extra, command in {} if chosen.core else EXTRAS.items():
            program = installed(Path(folder) / extra, f"{wheel}[{extra}]")
            told = first_line(program, Path(folder) / f"home-{extra}", *command)
            print(f"tacit[{extra}]: tacit {' '.join(command)}: {told[:80]}")
    if chosen.write:
        write(shown)
    return 0


def build(folder: Path) -> Path:
    """The wheel of this checkout."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(TOP)]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("tacit-*.whl")
    return wheel


def installed(folder: Path, what: str) -> Path:
    """The program in an environment that holds nothing but `what`."""
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", what], check=True)
    return folder / "bin" / "tacit"


def clean(home: Path) -> dict[str, str]:
    """The environment of somebody who has nothing but a home."""
    home.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(home), "PATH": os.environ["PATH"], "COLUMNS": "92", "LC_ALL": "C.UTF-8"}


def first_line(program: Path, home: Path, *arguments: str) -> str:
    """The first line that a command prints, which may serve until it is stopped."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [program, *arguments], env=clean(home), stdin=pipe, stdout=pipe, stderr=pipe, text=True
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdin.write(json.dumps(HELLO) + "\n")
        running.stdin.flush()
        told = running.stdout.readline().strip()
        running.terminate()
        if not told:
            raise SystemExit(f"tacit {' '.join(arguments)}:\n{running.stderr.read()}")
    return told


def tacit(program: Path, home: Path, *arguments: str, project: Path | None = None) -> str:
    """What a command prints in an empty home; it must succeed."""
    done = subprocess.run(
        [program, *arguments],
        cwd=project or home,
        env=clean(home),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"tacit {' '.join(arguments)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def first_minutes(program: Path, home: Path) -> str:
    """The commands of the first five minutes, and what they print."""
    project = home / "shop"
    project.mkdir(parents=True)
    (project / ".git").mkdir()
    for number in (1, 2):
        session(home, project, f"{number}0c0ffee-0000-4000-8000-00000000000{number}")
    rows: list[str] = []

    def step(*arguments: str) -> str:
        told = tacit(program, home, *arguments, project=project).rstrip()
        rows.append(f"$ tacit {shlex.join(arguments)}\n{told}\n")
        return told

    step("learn")
    first = tacit(program, home, "inbox", "--json", project=project)
    waiting = [
        one for one in json.loads(first)["proposals"] if one["change"]["skill"].endswith("checks")
    ]
    if not waiting:
        raise SystemExit(f"no skill was learned: {first}")
    step("inbox", waiting[0]["id"][-8:])
    accepted = step("accept", waiting[0]["id"][-8:])
    step("search", "check my work before a commit", "-n", "1")
    change = re.search(r"tacit undo (\w+)", accepted)
    if change is None:
        raise SystemExit(f"accept does not say how it is undone: {accepted}")
    step("undo", change[1])
    return "\n".join(rows).replace(str(home), "~")


def session(home: Path, project: Path, name: str) -> None:
    """One session of Claude Code: the tests are run in the wrong way, then in the right one."""
    calls = [
        ("pytest -q", FAULT, True),
        ("make test", "12 passed in 0.31s\n", False),
        ("make lint", "All checks passed!\n", False),
    ]
    head = {"sessionId": name, "cwd": str(project), "version": "2.1.0", "isSidechain": False}
    lines = [("user", "Add a discount to the basket, and run the tests.")]
    for number, (command, _, _) in enumerate(calls):
        use = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Bash",
            "input": {"command": command},
        }
        lines.append(("assistant", [use]))
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": calls[number][1]}
        lines.append(("user", [result | {"is_error": calls[number][2]}]))
    lines += [
        ("assistant", [{"type": "text", "text": "Done: the basket has a discount, tests pass."}]),
        ("user", "Good. From now on never commit to main: always make a branch first."),
        ("assistant", [{"type": "text", "text": "I will make a branch first."}]),
    ]
    folder = home / ".claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(project))
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.jsonl").open("w") as file:
        for number, (role, content) in enumerate(lines):
            at = f"2026-11-0{name[0]}T09:{number:02d}:00.000Z"
            message = {"role": role, "content": content}
            record = head | {
                "type": role,
                "uuid": f"u{number}",
                "timestamp": at,
                "message": message,
            }
            file.write(json.dumps(record) + "\n")


def write(shown: str) -> None:
    """Put what was printed between the marks of the README."""
    path = TOP / "README.md"
    before, _, rest = path.read_text("utf-8").partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    block = "".join(f"    {line}".rstrip() + "\n" for line in shown.splitlines())
    path.write_text(f"{before}{MARKS[0]}\n\n{block}\n{MARKS[1]}{after}", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
