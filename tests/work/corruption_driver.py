"""Damages every kind of file that Tacit keeps, in every way, and looks whether all is well again.

Run as a program: `corruption_driver.py FOLDER EVERY TRANSCRIPTS`. A home with skills, facts, a
schedule, sessions and a proposal is made once. Each trial copies it, damages one file, and runs
commands: none may end with 70. Then `doctor --fix` must mend it or name it, the next change must
work, and nothing may be lost without a word. Prints one JSON object.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from tacit.ui.cli.command import NOUNS

WAYS: dict[str, Callable[[Path], object]] = {
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "zeros": lambda path: path.write_bytes(b"\0" * path.stat().st_size),
    "garbage": lambda path: path.write_bytes(os.urandom(max(path.stat().st_size, 64))),
    "deleted": lambda path: path.unlink(),
    "unreadable": lambda path: path.chmod(0),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}
COMMANDS = (
    "list", "log", "sessions", "inbox", "show notes", "history notes", "schedule list", "jobs",
    "memory list", "cost", "diff notes", "config",
)  # fmt: skip
SKIPPED = (".lock", "-shm", ".jsonl", "worker.log", ".tmp")
BODY = "1. Write down what was done, then read it again.\n"


def tacit(*arguments: str) -> tuple[int, str]:
    """Run a command in a process of its own that has everything loaded; its code, and what it
    printed, or said of its failure."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                from tacit.ui.cli.app import run

                os.dup2(out.fileno(), 1)
                os.dup2(errors.fileno(), 2)
                code = run(list(arguments))
                sys.stdout.flush()
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        errors.seek(0)
        text = out.read().decode(errors="replace")
        return code, text or errors.read().decode(errors="replace")


def prepare(home: Path) -> None:
    """A home in which everything was used."""
    project = home / "proj"
    (project / ".git").mkdir(parents=True)
    os.chdir(project)
    about = "Notes of what was done during the day. Use in the evening."
    assert tacit("new", "notes", "-d", about, "--body", BODY)[0] == 0
    assert tacit("new", "bare", "-d", "Nothing is known of it. Use never.", "--body", "1.")[0] == 0
    assert tacit("trust", ".")[0] == 0
    assert tacit("memory", "add", "build-tool", "The project is built with make.")[0] == 0
    added = tacit("schedule", "add", "every day at 9:00", "Say hello", "--name", "hello")
    assert added[0] == 0, added
    _sessions_and_proposals()
    assert tacit("search", "notes")[0] == 0
    from tacit.changes.journal import OpenPlace
    from tacit.changes.place import project_place
    from tacit.work.backup import make_daily

    OpenPlace(project_place(kind="facts"), str(home / ".local/share/tacit")).history.pack()
    make_daily()


def _sessions_and_proposals() -> None:
    from tacit.changes.change import Edit, make_change
    from tacit.changes.gate import Gate
    from tacit.changes.place import user_place
    from tacit.work.intake import open_store, sources, take_in

    gate = Gate([user_place()])
    edit = Edit("read it again", "read it twice")
    assert gate.propose(make_change("notes", edit, actor="improver")).outcome == "proposed"
    with contextlib.closing(open_store(_trace_settings())) as store:
        take_in(store, sources())
        assert sum(store.counts().values()) > 0


def _trace_settings() -> Any:
    from tacit.base.setting_sections import TraceSettings

    return TraceSettings()


def kept_files(home: Path) -> list[Path]:
    """One file of each kind, and of objects and refs a few."""
    kinds: Counter[str] = Counter()
    found = []
    for top in (".local/share/tacit", ".config/tacit", ".cache/tacit", ".agents"):
        for path in sorted((home / top).rglob("*")):
            if not path.is_file() or path.name.endswith(SKIPPED):
                continue
            parts = path.relative_to(home).parts
            kind = "/".join(part for part in parts if len(part) < 38 and not part.isdigit())
            kind = "objects" if "objects" in parts else kind
            kind = path.suffix if "search" in parts or "index" in parts else kind
            kinds[kind] += 1
            if kinds[kind] <= (12 if kind == "objects" else 2):
                found.append(path.relative_to(home))
    return found


def trial(home: Path, file: Path, way: str) -> str:
    """Damage `file` and look what comes of it; what is wrong, or an empty text."""
    path = home / file
    if os.path.getsize(path) == 0 and way != "deleted":
        return ""
    WAYS[way](path)
    for line in COMMANDS:
        code, text = tacit(*line.split())
        if code == 70 or code < 0 or "Traceback" in text:
            return f"stuck: tacit {line} ends with {code}: {text[-300:]}"
    code, text = tacit("doctor", "--fix", "--json")
    if code not in (0, 6) or "Traceback" in text:
        return f"unmended: doctor --fix ends with {code}: {text[-300:]}"
    findings = json.loads(text)["findings"]
    code, again = tacit("doctor", "--json")
    left = [row for row in json.loads(again)["findings"] if row["can_mend"]]
    if left:
        return f"unmended: {left[0]['what']}"
    if any("tacit doctor" in row["fix"] for row in findings):
        return "unmended: doctor advises itself"
    code, text = tacit("new", "next", "-d", "The next one. Use after it.", "--body", "1. Go on.")
    if code:
        return f"stuck: the next change ends with {code}: {text[-300:]}"
    return _lost(home, file, findings)


def _lost(home: Path, file: Path, findings: list[Any]) -> str:
    """What is gone without a word."""
    said = " ".join(f"{row['what']} {row['fix']} {row['said']}" for row in findings)
    from tacit.skills.library import Library

    names = {entry.name for entry in Library(str(home / "proj")).entries}
    if "notes" not in names and "notes" not in said:
        return f"lost: the skill 'notes', after {file}"
    if tacit("schedule", "list")[1].count("hello") == 0 and "hello" not in said:
        return f"lost: the schedule, after {file}"
    code, text = tacit("sessions", "--json")
    if code or not json.loads(text)["sessions"]:
        return f"lost: the sessions, after {file}"
    code, text = tacit("inbox", "--json")
    if not json.loads(text)["proposals"] and "inbox" not in said:
        return f"lost: the proposal, after {file}"
    return ""


def main() -> None:
    for noun in NOUNS:  # loaded once, for all that are forked
        import_module(f"tacit.ui.cli.{noun}")
    folder, every = Path(sys.argv[1]), int(sys.argv[2])
    home = folder / "home"
    home.mkdir(parents=True)
    os.environ["HOME"] = str(home)
    os.environ["TACIT_WORKER"] = "1"  # no command starts a worker
    shutil.copytree(Path(sys.argv[3]), home, dirs_exist_ok=True)
    prepare(home)
    template = folder / "template"
    shutil.copytree(home, template, symlinks=True)
    files = kept_files(home)
    trials = [(file, way) for file in files for way in WAYS][::every]
    if os.geteuid() == 0:  # whom nothing is unreadable to
        trials = [(file, way) for file, way in trials if way != "unreadable"]
    wrong = []
    for file, way in trials:
        os.chdir("/")
        shutil.rmtree(home)
        shutil.copytree(template, home, symlinks=True)
        os.chdir(home / "proj")
        found = trial(home, file, way)
        if found:
            wrong.append(f"{file} {way}: {found}")
            print(wrong[-1], file=sys.stderr)
    counted = Counter(text.split(": ")[1] for text in wrong)
    print(json.dumps({"trials": len(trials), "wrong": wrong, **counted}))


if __name__ == "__main__":
    main()
