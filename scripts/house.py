"""The house in figures: modules and their length, who imports whom, what a thing passes through.

`.venv/bin/python scripts/house.py` prints the table of docs/design.md. With `--ways` it does three
things for real (a session becomes a skill, `/name args` in the chat, a schedule fires), each in an
empty home against the scripted model, and lists the modules whose functions ran, in order. `--tree
DIR` measures another checkout, which has a virtual environment of its own.
"""

import argparse
import ast
import json
import os
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

RECORDER = """
import os, sys, threading
_seen = set()
# Opened now: a process that locks itself in can still write to it later.
_file = os.open(os.environ["HOUSE_WAY"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def _profile(frame, event, argument):
    if event != "call":
        return
    code = frame.f_code
    if not code.co_flags & 1 or f"{os.sep}tacit{os.sep}" not in code.co_filename:
        return  # no function, or none of ours
    name = frame.f_globals.get("__name__", "")
    if name in _seen or not (name == "tacit" or name.startswith("tacit.")):
        return
    outer = frame.f_back
    while outer is not None:
        if outer.f_code.co_name == "<module>" and outer.f_globals.get("__name__") != "__main__":
            return  # called while a module is imported
        outer = outer.f_back
    _seen.add(name)
    os.write(_file, (name + "\\n").encode())
sys.setprofile(_profile)
threading.setprofile(_profile)
"""
SKILL = """---
name: package-builds
description: How packages are built here. Use before building one.
---

# Package builds

1. Read the version from the VERSION file, never invent one.
2. Run `make check`, then `make package`.
"""
ASKED = (
    "Build the package. Read the version from the VERSION file, never invent one: run"
    " `make check`, then `make package`."
)


def modules(source: Path) -> dict[str, Path]:
    """Every module below `source`, by its dotted name."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of ours that a module imports, at the top or later."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in known else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return found & known.keys()


def table(source: Path) -> list[tuple[str, str]]:
    """The figures of one tree."""
    known = modules(source)
    lines = {name: path.read_text(encoding="utf-8").count("\n") for name, path in known.items()}
    out = {name: imports(path, known) - {name} for name, path in known.items()}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, targets in out.items():
        for target in targets:
            importers[target].add(name)
    rooms = [name for name, path in known.items() if path.name != "__init__.py"]
    stems = Counter(known[name].stem for name in rooms)
    functions = sorted(
        node.end_lineno - node.lineno + 1
        for path in known.values()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno
    )
    alone = [name for name in rooms if len(importers[name]) == 1]
    fans = sorted(len(targets) for targets in out.values())
    return [
        ("modules", f"{len(known)}"),
        ("lines", f"{sum(lines.values()):,}"),
        ("lines a module, on average", f"{sum(lines.values()) // len(known)}"),
        ("longest module", f"{max(lines.values())}"),
        ("modules under 40 lines", f"{sum(lines[name] < 40 for name in rooms)}"),
        ("modules with a single importer", f"{len(alone)}"),
        ("imports of our modules, in all", f"{sum(fans)}"),
        ("a module imports, on average", f"{sum(fans) / len(fans):.1f}"),
        ("the most that one imports", f"{fans[-1]}"),
        ("names used more than once", f"{sum(count > 1 for count in stems.values())}"),
        ("99 of 100 functions are at most", f"{functions[len(functions) * 99 // 100]} lines"),
    ]


class Way:
    """One thing done for real in an empty home, with every process of ours recorded."""

    def __init__(self, tree: Path, base: Path, name: str) -> None:
        self.home = base / name
        self.project = self.home / "shop"
        (self.project / ".git").mkdir(parents=True)
        self.record = base / f"{name}.way"
        (self.home / "recorder").mkdir()
        (self.home / "recorder" / "sitecustomize.py").write_text(RECORDER)
        self.bin = tree / os.environ.get("HOUSE_VENV", ".venv") / "bin"
        self.env = {
            "HOME": str(self.home),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "TERM": "dumb",
        }

    def run(self, *words: str, said: str = "", recorded: bool = True) -> str:
        env = dict(self.env)
        if recorded:
            env |= {"PYTHONPATH": str(self.home / "recorder"), "HOUSE_WAY": str(self.record)}
        done = subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            check=False,
            input=said,
            env=env,
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def set(self, **values: object) -> None:
        for name, value in values.items():
            self.run("tacit", "config", "set", name.replace("__", "."), str(value), recorded=False)

    def passed(self) -> list[str]:
        rows = self.record.read_text().splitlines() if self.record.exists() else []
        return list(dict.fromkeys(rows))


def wait(done: Callable[[], bool], seconds: float = 500.0) -> None:
    """Until `done()`."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            raise SystemExit("it did not happen in time")
        time.sleep(0.3)


def session(way: Way) -> list[str]:
    """A session of Claude Code ends; its hook is called; a review keeps a skill."""
    from tacit.testing import ModelServer, ToolUse, Turns

    script = Turns(
        [ToolUse("write_file", {"path": "package-builds/SKILL.md", "content": SKILL}), "Kept it."]
    )
    transcript = _transcript(way)
    with ModelServer(script, strict=False) as server:
        way.set(
            agent__model="openai:mock", agent__base_url=f"{server.url}/v1", learn__approval="auto"
        )
        way.set(memory__use="false")
        way.run("tacit", "trust", recorded=False)
        payload = {
            "session_id": transcript.stem,
            "transcript_path": str(transcript),
            "cwd": str(way.project),
            "hook_event_name": "SessionEnd",
        }
        way.run("tacit-hook", "claude-code", said=json.dumps(payload))
        skill = Path(".agents/skills/package-builds/SKILL.md")
        wait(lambda: (way.project / skill).exists() or (way.home / skill).exists())
        wait(lambda: "created" in way.run("tacit", "jobs", recorded=False))
    return way.passed()


def _transcript(way: Way) -> Path:
    folder = way.home / ".claude/projects" / str(way.project).replace("/", "-")
    folder.mkdir(parents=True)
    path = folder / "11111111-2222-4333-8444-555555555555.jsonl"
    base = {
        "cwd": str(way.project),
        "sessionId": path.stem,
        "version": "2.1.325",
        "isSidechain": False,
    }
    rows: list[dict[str, object]] = [
        base | {"type": "user", "uuid": "u0", "message": {"role": "user", "content": ASKED}}
    ]
    for number in range(22):
        call = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Bash",
            "input": {"command": "make check"},
        }
        rows.append(
            base
            | {
                "type": "assistant",
                "uuid": f"a{number}",
                "message": {"id": f"m{number}", "role": "assistant", "content": [call]},
            }
        )
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"ok {number}"}
        rows.append(
            base
            | {
                "type": "user",
                "uuid": f"r{number}",
                "message": {"role": "user", "content": [result]},
            }
        )
    for number, row in enumerate(rows):
        row["timestamp"] = f"2026-11-15T09:{number:02}:00.000Z"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def slash(way: Way) -> list[str]:
    """`/package-builds now` in the chat: the skill is activated and the model answers."""
    from tacit.testing import ModelServer

    folder = way.home / ".agents/skills/package-builds"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    with ModelServer(["It is built."], strict=False) as server:
        way.set(agent__model="openai:mock", agent__base_url=f"{server.url}/v1")
        way.env["TACIT_WORKER"] = "1"  # no worker is started for the session afterwards
        said = way.run("tacit", "chat", "--plain", said="/package-builds now\n")
        if "It is built." not in said:
            raise SystemExit(f"the chat did not answer: {said}")
    return way.passed()


def schedule(way: Way) -> list[str]:
    """A schedule that is due in a moment fires in a worker of its own, and its output is there."""
    from tacit.testing import ModelServer

    with ModelServer(lambda request: "Tea!", strict=False) as server:
        way.set(agent__model="openai:mock", agent__base_url=f"{server.url}/v1")
        way.run("tacit", "schedule", "add", "every minute", "Say that it is time for tea.", "--yes")
        daemon = subprocess.Popen(
            [str(way.bin / "tacit"), "daemon"],
            env=way.env | {"PYTHONPATH": str(way.home / "recorder"), "HOUSE_WAY": str(way.record)},
            cwd=way.project,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait(lambda: "done" in way.run("tacit", "schedule", "history", recorded=False))
        finally:
            daemon.terminate()
            daemon.wait(timeout=60)
    return way.passed()


WAYS = {"session": session, "slash": slash, "schedule": schedule}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--ways", action="store_true")
    parser.add_argument("--way", action="append", choices=list(WAYS))
    options = parser.parse_args()
    if not (options.ways or options.way):
        for what, figure in table(options.tree / "src" / "tacit"):
            print(f"| {what} | {figure} |")
        return
    with tempfile.TemporaryDirectory() as base:
        for name in options.way or WAYS:
            passed = WAYS[name](Way(options.tree, Path(base), name))
            print(f"{name}: {len(passed)} modules")
            print("\n".join(f"  {module.removeprefix('tacit.')}" for module in passed))


if __name__ == "__main__":
    main()
