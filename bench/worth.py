"""What learning by counting makes of real sessions, held against labels of what is worth keeping.

    python bench/worth.py SESSIONS LABELS [--half measure] [--keep FOLDER] [--distil]
    python bench/worth.py HOMES [--half measure] [--keep FOLDER]

SESSIONS is the unpacked archive: homes as an agent leaves them (`home-*`), and files or folders of
trajectories. LABELS is the folder with `labels.json` and `score.py`. HOMES has no labels: a home a
repository, called `OWNER+NAME`. Each home and each repository of trajectories is learned from on
its own, in a home of its own, as `tacit learn --no-model` does.

A repository belongs to the half to look at or the half to measure on by the hash of its name, so
nobody chooses. `--keep` leaves every draft as a file, to be read and graded. With `--distil` it is
`tacit distil --no-model` that learns, and its skills are what is scored.

At the end stands what the digests of the longest sessions show: turns with their end, failures, and
the longest digest in characters.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

_REPOSITORIES = {
    "home-1": "PackmindHub/context-evaluator",
    "home-2": "entireio/cli",
    "home-3": "entireio/cli",
    "home-4": "entireio/cli",
    "home-5": "badlogic/pi-mono",
    "swe-agent": "SWE-agent/SWE-agent",
    "tau-airline.json": "sierra-research/tau-bench",
}


def half_of(repository: str) -> str:
    """The half that a repository belongs to."""
    return "look" if hashlib.sha256(repository.encode()).digest()[0] % 2 else "measure"


def parts(folder: Path) -> Iterator[tuple[str, str, list[Path]]]:
    """What is learned from together: its name, its repository, its files or its home."""
    for home in sorted(folder.glob("*+*")):
        yield home.name, home.name.replace("+", "/", 1), [home]
    if not (folder / "mini-swe-agent").is_dir():
        return
    for name, repository in _REPOSITORIES.items():
        yield name, repository, [folder / name]
    by_repository: dict[str, list[Path]] = {}
    for path in sorted((folder / "mini-swe-agent").glob("*.traj.json")):
        owner, _, rest = path.name.partition("__")
        by_repository.setdefault(f"{owner}/{rest.rsplit('-', 1)[0]}", []).append(path)
    for repository, paths in by_repository.items():
        yield f"mini-swe-agent {repository}", repository, paths


def learn(
    paths: list[Path], work: Path, *, distil: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """What `tacit learn --no-model` gives for one part, or `tacit distil`, as its JSON, and how
    each session ended."""
    is_home = paths[0].name.startswith("home-") or "+" in paths[0].name
    home, named = (paths[0], []) if is_home else (work / "home", [str(paths[0].resolve())])
    if len(paths) > 1:
        named = [str(work / "sessions")]
        (work / "sessions").mkdir()
        for path in paths:
            (work / "sessions" / path.name).symlink_to(path.resolve())
    folders = {"HOME": str(home.resolve()), "TACIT_HOME": str(work / "tacit")}
    if distil:
        where = ["--from", *named] if named else ["--everywhere"]
        learned = _tacit(["distil", "--no-model", *where], work, folders)
        drafts = [{"name": one["skill"], "text": one["text"]} for one in learned["skills"]]
        learned["drafts"] = [{"draft": one} for one in drafts]
    else:
        learned = _tacit(["learn", "--no-model", "--dry-run", *named], work, folders)
    rows = _tacit(["sessions", "--limit", "1000"], work, folders)["sessions"]
    return learned, {row["session"]: row["outcome"]["state"] for row in rows}


def _tacit(arguments: list[str], work: Path, folders: dict[str, str]) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", "tacit", *arguments, "--json"],
        env={**os.environ, **folders},
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise SystemExit(f"worth: tacit {' '.join(arguments)}: {ran.stderr.strip()}")
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


class Shown(NamedTuple):
    """What the digest of one session shows."""

    calls: int
    turns: int
    ended: int
    failures: int
    told: int
    characters: int


_LONGEST = 15


def digests(folder: Path) -> list[Shown]:
    """What the digests of the longest sessions in the store below `folder` show."""
    from tacit.learn.digest import digest
    from tacit.learn.signals import step_names
    from tacit.traces.outcomes import call_outcome
    from tacit.traces.store import Store

    found = []
    with Store.open(str(folder / "data" / "tacit.db")) as store:
        stored = sorted(store.sessions(limit=10_000), key=lambda one: -one.calls)
        for trace in (store.trace(one.id) for one in stored[:_LONGEST]):
            made, places = digest(trace), step_names(trace)
            steps = set(re.findall(rf"<{made.word} \w+ (\d+\.\d+)", made.text))
            ends = set(re.findall(rf"<{made.word} note (\d+) ended>", made.text))
            failed = [places[id(c)] for c in trace.each_call() if call_outcome(c).failed]
            turns = [str(turn.number) for turn in trace.turns if turn.steps]
            found.append(
                Shown(
                    len(trace.calls),
                    len(turns),
                    sum(turn in ends for turn in turns),
                    len(failed),
                    sum(step in steps for step in failed),
                    len(made.text),
                )
            )
    return found


def told_digests(shown: list[Shown]) -> str:
    """The figures of the longest of all, in a line."""
    longest = sorted(shown, reverse=True)[:_LONGEST]
    turns, ended, failures, told = (
        sum(one[n] for one in longest) for n in range(1, len(Shown._fields) - 1)
    )
    most = max((one.characters for one in longest), default=0)
    return (
        f"digests of the {len(longest)} longest: {ended} of {turns} turns with their end,"
        f" {told} of {failures} failures, at most {most} characters"
    )


def scoring(folder: Path) -> ModuleType:
    """The program that belongs to the labels."""
    spec = importlib.util.spec_from_file_location("score", folder / "score.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def labelled(home: str, texts: dict[str, str], labels: Path | None) -> list[str]:
    """Recall and traps of one home, in lines."""
    if labels is None:
        return []
    score = scoring(labels)
    known = json.loads((labels / "labels.json").read_text(encoding="utf-8"))
    items, traps = ([x for x in known[kind] if x["home"] == home] for kind in ("items", "traps"))
    if not items:
        return []
    covered, sprung = score.hits(items, texts), score.hits(traps, texts)
    lines = []
    for strength in ("must", "nice"):
        own = [x for x in items if x["strength"] == strength]
        lines.append(f"recall {strength} {score.share(own, covered)}")
    lines.append(f"traps {sum(map(bool, sprung.values()))}/{len(traps)}")
    lines += [f"  {key} by {', '.join(paths)}" for key, paths in covered.items() if paths]
    lines += [f"  TRAP {key} by {', '.join(paths)}" for key, paths in sprung.items() if paths]
    return lines


_ENDS = {"worked": "succeeded", "failed": "failed"}


def judged(home: str, ended: dict[str, str], labels: Path | None) -> list[str]:
    """How many sessions of a home ended as the labels say, and which way the others were taken."""
    if labels is None:
        return [f"{count} {state}" for state, count in Counter(ended.values()).items()]
    known = json.loads((labels / "labels.json").read_text(encoding="utf-8"))["outcomes"]
    pairs = [
        (x["outcome"], _ENDS.get(ended[x["session"]], "unknown"))
        for x in known
        if x["home"] == home and x["session"] in ended
    ]
    if not pairs:
        return []
    wrong = Counter(f"{label} taken as {ours}" for label, ours in pairs if label != ours)
    lines = [f"outcomes {sum(label == ours for label, ours in pairs)}/{len(pairs)}"]
    return lines + [f"  {count} {what}" for what, count in wrong.items()]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sessions", type=Path)
    parser.add_argument("labels", type=Path, nargs="?")
    parser.add_argument("--half", choices=("look", "measure"), help="only this half")
    parser.add_argument("--only", default="", help="only the parts whose name holds this")
    parser.add_argument("--keep", type=Path, help="leave the drafts here, a folder for each part")
    parser.add_argument("--distil", action="store_true", help="by tacit distil")
    chosen = parser.parse_args()
    sessions = drafts = 0
    shown: list[Shown] = []
    for name, repository, paths in parts(chosen.sessions):
        half = half_of(repository)
        if chosen.half not in (None, half) or chosen.only not in name:
            continue
        with tempfile.TemporaryDirectory() as work:
            learned, ended = learn(paths, Path(work), distil=chosen.distil)
            shown += digests(Path(work) / "tacit")
        made = [one["draft"] for one in learned["drafts"]]
        texts = {f"{at:02}-{one['name']}": one["text"] for at, one in enumerate(made)}
        sessions += learned["sessions"]
        drafts += len(made)
        print(f"{name} ({half}): {learned['sessions']} sessions, {len(made)} drafts")
        for line in (*labelled(name, texts, chosen.labels), *judged(name, ended, chosen.labels)):
            print(f"  {line}")
        if chosen.keep:
            folder = chosen.keep / name.replace("/", "+").replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            for stem, text in texts.items():
                (folder / f"{stem}.md").write_text(text, encoding="utf-8")
    print(
        f"in all: {sessions} sessions, {drafts} drafts, {100 * drafts / max(1, sessions):.1f}/100"
    )
    print(told_digests(shown))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
