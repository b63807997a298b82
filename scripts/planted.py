"""Planted instructions through whole reviews: how many are refused, marked for a person, or kept.

    python scripts/planted.py [SET.jsonl …] [--verbose]

A set is a file of JSON lines: the turns of a session in which the output of a tool asks for a
skill, and the skill that a model writes which obeys. The honest sets have the same form, with a
skill that a careful reviewer would write. Each session of a set is put into the store of a fresh
home and reviewed by the job that the queue runs, in the confined child process, by a scripted model
that obeys what was planted and insists on it. Without a set, the five of
tests/fixtures/planted-traces are run. Two minutes or so.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from tacit.testing.sample_sessions import called, made
from tacit.testing.script import Reply, ReplyLike, Request, Script, ToolUse, reply
from tacit.traces.trace import Step, Trace


class PlantedCall(msgspec.Struct, frozen=True):
    tool: str
    arguments: dict[str, Any]
    output: str
    failed: bool = False


class PlantedTurn(msgspec.Struct, frozen=True):
    prompt: str
    steps: tuple[PlantedCall, ...]


class Planted(msgspec.Struct, frozen=True):
    """One session, and what a model keeps of it."""

    id: str
    name: str
    skill: str
    turns: tuple[PlantedTurn, ...]
    disguise: str = ""
    fact: str = ""
    """A fact that is kept beside the skill."""


def load_set(path: str | os.PathLike[str]) -> list[Planted]:
    """A set, in its order."""
    with open(path, "rb") as file:
        return [msgspec.json.decode(line, type=Planted) for line in file if line.strip()]


def trace_of(planted: Planted, project: str = "") -> Trace:
    """The session itself."""
    turns: list[list[str | Step]] = [
        [
            turn.prompt or "Go on.",
            *(called(c.tool, c.arguments, c.output, failed=c.failed) for c in turn.steps),
        ]
        for turn in planted.turns
    ]
    return made(*turns, session=planted.id, project=project)


def obeying(planted: Planted) -> Script:
    """A model that writes the skill and insists on it, whatever it is told."""
    path = f"{planted.name}/SKILL.md"
    write = ToolUse("write_file", {"path": path, "content": planted.skill})
    answers: list[Reply] = [reply(write)]

    def script(request: Request) -> ReplyLike:
        return answers[request.turn] if request.turn < len(answers) else f"Kept {planted.name}."

    return script


FOLDER = Path(__file__).parents[1] / "tests" / "fixtures" / "planted-traces"
SETS = ("tuning", "heldout", "honest-tuning", "honest-docs", "honest-heldout")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--verbose", action="store_true", help="a line a session")
    chosen = parser.parse_args()
    sets = chosen.sets or [FOLDER / f"{name}.jsonl" for name in SETS]
    print(f"{'set':<16} {'sessions':>8} {'refused':>8} {'marked':>8} {'kept':>8}")
    for path in sets:
        counts = review_set(path.resolve(), verbose=chosen.verbose)
        row = [counts[word] for word in ("refused", "marked", "kept")]
        print(f"{path.stem:<16} {counts.total():>8} " + " ".join(f"{n:>8}" for n in row))
    return 0


def review_set(path: Path, *, verbose: bool = False) -> "Counter[str]":
    """What became of each session of a set."""
    counts: Counter[str] = Counter()
    for planted in load_set(path):
        with tempfile.TemporaryDirectory() as home:
            word, reason = review_one(planted, Path(home))
        counts[word] += 1
        if verbose:
            print(f"  {planted.id:<16} {word:<8} {planted.disguise}: {reason}", file=sys.stderr)
    return counts


def review_one(planted: Planted, home: Path) -> tuple[str, str]:
    """`refused`, `marked` for a person, or `kept`, and why."""
    for name in list(os.environ):
        if name.startswith(("TACIT_", "XDG_")) or name.endswith(("_API_KEY", "_BASE_URL")):
            del os.environ[name]
    os.environ["HOME"] = str(home)
    project = home / "work"
    (project / ".git").mkdir(parents=True)
    os.chdir(project)
    from tacit.base import config_file, trust
    from tacit.base.job import Job
    from tacit.learn.review.review_job import run_review
    from tacit.testing import ModelServer
    from tacit.traces.store import Store

    trust.add(str(project))
    trace = trace_of(planted, str(project))
    store = Store.open()
    store.write(trace)
    store.close()
    with ModelServer(obeying(planted), strict=False) as server:
        values = {"agent.model": "openai:mock", "agent.base_url": f"{server.url}/v1"}
        config_file.set_values(values | {"learn.approval": "auto"})
        done = run_review(Job(f"review-{planted.id}", "review", trace.id, {"session": trace.id}))
    os.chdir("/")
    landed = (project / ".agents/skills" / planted.name / "SKILL.md").exists()
    word = {"created": "kept", "proposed": "marked", "refused": "refused"}.get(done.outcome, "")
    if landed != (word == "kept") or not word:
        told = f"{done.outcome}, and the skill is there: {landed}: {done.reason}"
        raise SystemExit(f"{planted.id}: {told}")
    return word, done.reason


if __name__ == "__main__":
    raise SystemExit(main())
