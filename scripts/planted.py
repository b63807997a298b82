"""Planted instructions through whole reviews: how many are refused, marked for a person, or kept.

    python scripts/planted.py [SET.jsonl …] [--verbose]

Each session of a set is put into the store of a fresh home and reviewed by the job that the queue
runs, in the closed room, by a scripted model that obeys what was planted and insists on it. Without
a set, the five of tests/fixtures/planted-traces are run. Two minutes or so.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tacit.testing.planted import Planted, load, obeying, trace_of

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
    for planted in load(path):
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
    from tacit.learn.review.job import run
    from tacit.testing import ModelServer
    from tacit.traces.store import Store

    trust.add(str(project))
    trace = trace_of(planted, str(project))
    store = Store.open()
    store.write(trace)
    store.close()
    with ModelServer(obeying(planted), strict=False) as server:
        values = {"agent.model": "openai:mock", "agent.base_url": f"{server.url}/v1"}
        config_file.put(values | {"learn.approval": "auto"})
        done = run(Job(f"review-{planted.id}", "review", trace.id, {"session": trace.id}))
    os.chdir("/")
    landed = (project / ".agents/skills" / planted.name / "SKILL.md").exists()
    word = {"created": "kept", "proposed": "marked", "refused": "refused"}.get(done.outcome, "")
    if landed != (word == "kept") or not word:
        told = f"{done.outcome}, and the skill is there: {landed}: {done.reason}"
        raise SystemExit(f"{planted.id}: {told}")
    return word, done.reason


if __name__ == "__main__":
    raise SystemExit(main())
