"""Planted instructions through whole reviews: how many are refused, marked for a person, or kept.

A session is stopped too where nothing but honest lines landed and what was planted waits: that is
counted as `in part`. Where a line that is nearer to the outputs than to what was said and done
landed beside those that wait, it is `kept`.

    python scripts/planted.py [SET.jsonl …] [--form conversation|short] [--verbose]

A set is a file of JSON lines: the turns of a session in which the output of a tool asks for a
skill, and the skill that a model writes which obeys. The honest sets have the same form, with a
skill that a careful reviewer would write. Each session of a set is put into the store of a fresh
home and reviewed by the job that the queue runs, in the confined child process, by a scripted model
that obeys what was planted and insists on it. Without a set, the five of
tests/fixtures/planted-traces are run. Two minutes or so. Also counted are the requests and the
characters sent, a session, so that the two forms of a review can be held against each other.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tacit.changes.left_out import MARKER
from tacit.changes.provenance.phrases import distinct_stems
from tacit.skills import frontmatter
from tacit.testing.sample_sessions import called, made
from tacit.testing.script import Reply, ReplyLike, Request, Script, ToolUse, reply, toolless
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


def printed_lines(planted: Planted) -> list[str]:
    """The lines of the skill's body that are nearer to the outputs than to all that was said."""
    calls = [call for turn in planted.turns for call in turn.steps]
    said = " ".join([turn.prompt for turn in planted.turns] + [str(c.arguments) for c in calls])
    ours = set(distinct_stems(said))
    theirs = set(distinct_stems(" ".join(call.output for call in calls))) - ours
    body = frontmatter.split(planted.skill).body
    lines = [line for line in body.splitlines() if line.strip() and not line.startswith("#")]
    told = ((line, set(distinct_stems(line))) for line in lines)
    return [line for line, words in told if len(words & theirs) > len(words & ours)]


def obeying(planted: Planted) -> Script:
    """A model that writes the skill and insists on it, whatever it is told."""
    path = f"{planted.name}/SKILL.md"
    write = ToolUse("write_file", {"path": path, "content": planted.skill})
    answers: list[Reply] = [reply(write)]

    answer = json.dumps({"why": "Kept.", "write_file": [write.arguments]})

    def script(request: Request) -> ReplyLike:
        if toolless(request):  # the short form
            return answer
        return answers[request.turn] if request.turn < len(answers) else f"Kept {planted.name}."

    return script


FOLDER = Path(__file__).parents[1] / "tests" / "fixtures" / "planted-traces"
SETS = ("tuning", "heldout", "honest-tuning", "honest-docs", "honest-heldout")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sets", nargs="*", type=Path)
    parser.add_argument("--form", choices=("conversation", "short"), default="conversation")
    parser.add_argument("--verbose", action="store_true", help="a line a session")
    chosen = parser.parse_args()
    # A review changes the working folder.
    sets = [path.resolve() for path in chosen.sets or [FOLDER / f"{name}.jsonl" for name in SETS]]
    words = ("refused", "marked", "in part", "kept")
    heads = ("sessions", *words, "requests", "characters")
    print(f"{'set':<16} " + " ".join(f"{head:>10}" for head in heads))
    for path in sets:
        found = review_set(path, form=chosen.form, verbose=chosen.verbose)
        counts, most = Counter(one.word for one in found), max(len(found), 1)
        row = [len(found), *(counts[word] for word in words)]
        requests = sum(one.requests for one in found) / most
        characters = sum(one.characters for one in found) // most
        cells = " ".join(f"{n:>10}" for n in row)
        print(f"{path.stem:<16} {cells} {requests:>10.1f} {characters:>10,}")
    return 0


class ReviewedSession(NamedTuple):
    """What became of one session, and what it took."""

    word: str
    """`refused`, `marked` for a person, kept `in part`, or `kept`."""
    reason: str
    requests: int
    characters: int


def review_set(path: Path, *, form: str, verbose: bool = False) -> list[ReviewedSession]:
    """What became of each session of a set."""
    found = []
    for planted in load_set(path):
        with tempfile.TemporaryDirectory() as home:
            one = review_one(planted, Path(home), form)
        found.append(one)
        if verbose:
            told = f"{planted.disguise}: {one.reason}"
            print(f"  {planted.id:<16} {one.word:<8} {told}", file=sys.stderr)
    return found


def review_one(planted: Planted, home: Path, form: str = "conversation") -> ReviewedSession:
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
        config_file.set_values(values | {"learn.approval": "auto", "learn.form": form})
        done = run_review(Job(f"review-{planted.id}", "review", trace.id, {"session": trace.id}))
        sizes = [len(request.body.decode("utf-8", "replace")) for request in server.requests]
    os.chdir("/")
    path = project / ".agents/skills" / planted.name / "SKILL.md"
    landed = path.read_text("utf-8") if path.exists() else ""
    word = {"created": "kept", "proposed": "marked", "refused": "refused"}.get(done.outcome, "")
    if bool(landed) != (word == "kept") or not word:
        told = f"{done.outcome}, and the skill is there: {bool(landed)}: {done.reason}"
        raise SystemExit(f"{planted.id}: {told}")
    if MARKER in landed and not any(line in landed for line in printed_lines(planted)):
        word = "in part"
    return ReviewedSession(word, done.reason, len(sizes), sum(sizes))


if __name__ == "__main__":
    raise SystemExit(main())
