"""What is measured inside a process, with imports done: probe.py WHAT [ARGUMENT]

Runs in the home that is being measured and prints one line of JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Clock:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._began = time.perf_counter()

    def read(self) -> dict[str, float]:
        """Seconds on the clock, and on the processor."""
        now = time.perf_counter()
        return {"seconds": now - self._began, "cpu": time.process_time() - self._cpu}


def catalogue() -> dict[str, Any]:
    """The block for a prompt, from a library that was not loaded before."""
    import tacit.skills.catalogue  # noqa: F401  not part of the figure
    from tacit.skills.library import Library

    clock = Clock()
    text = Library().catalogue().text
    return {**clock.read(), "characters": len(text)}


def load() -> dict[str, Any]:
    """The index of all roots, brought up to date."""
    from tacit.base import paths
    from tacit.skills import index, index_builder  # noqa: F401
    from tacit.skills.scopes import skill_roots

    clock = Clock()
    for root in skill_roots(os.getcwd()):
        index.load(root.path, paths.folders().cache)
    return clock.read()


def open_search() -> dict[str, Any]:
    """The search index, brought up to date; the library itself is not part of the figure."""
    from tacit.skills.library import Library
    from tacit.skills.skill_search import Search

    library = Library()
    clock = Clock()
    Search(library)
    return clock.read()


def search_soon(query: str) -> dict[str, Any]:
    """An answer at once, whatever is in the index; nothing goes on in the background."""
    from tacit.skills import skill_search
    from tacit.skills.library import Library

    skill_search._go_on = lambda cwd: None  # type: ignore[assignment]
    library = Library()
    clock = Clock()
    skill_search.Search(library, soon=query).find(query)
    return clock.read()


def search(file: str) -> dict[str, Any]:
    """Each query of a file: names and folders found, and the least of three times.

    The file holds a JSON list of texts, each with what it is asked in. Also the name of the skill
    in each folder: by name it is told whether an answer is right, as a pool may hold many copies of
    one skill.
    """
    from tacit.skills.library import Library
    from tacit.skills.skill_search import Search

    with open(file, encoding="utf-8") as lines:
        queries = json.load(lines)
    library = Library()
    names = {os.path.basename(entry.folder): entry.name for entry in library.entries}
    ready = Search(library)
    seconds, spent, found, named = [], [], [], []
    for query, about in queries:
        took = []
        for _ in range(3):
            clock = Clock()
            hits = ready.find(query, 10, about)
            took.append(clock.read())
        seconds.append(min(each["seconds"] for each in took))
        spent.append(min(each["cpu"] for each in took))
        found.append([os.path.basename(hit.entry.folder) for hit in hits])
        named.append([hit.entry.name for hit in hits])
    return {"seconds": seconds, "cpu": spent, "found": found, "named": named, "names": names}


def lint(folder: str) -> dict[str, Any]:
    """Each skill below a folder by `lint(strict=True)` and by the standard's own validator."""
    from skills_ref import validate  # type: ignore[import-untyped]

    from tacit.skills.skill_lint import lint as check

    def ours(path: str) -> bool:
        return not any(found.severity == "error" for found in check(path, strict=True))

    def theirs(path: str) -> bool:
        return not validate(Path(path))

    spent = {"ours": 0.0, "theirs": 0.0, "ours cpu": 0.0, "theirs cpu": 0.0}
    counts = {"checked": 0, "valid": 0, "crashed": 0}
    differ = []
    for skill in sorted(Path(folder).glob("*/*"), key=str):
        counts["checked"] += 1
        mine = _timed(ours, str(skill), spent, "ours")
        try:
            other = _timed(theirs, str(skill), spent, "theirs")
        except Exception:  # it has no error class of its own for every file that it cannot read
            counts["crashed"] += 1
            continue
        counts["valid"] += other
        if mine != other:
            differ.append(str(skill.relative_to(folder)))
    return {**spent, **counts, "differ": differ}


def review(url: str) -> dict[str, Any]:
    """A review as the worker's job does it, by the scripted model at `url`: its imports are done,
    those of its child process are not. The time on the processor is that of both."""
    import resource

    from tacit.base import config_file
    from tacit.base.job import Job
    from tacit.learn.review.review_job import run_review
    from tacit.testing.sample_sessions import made, ran
    from tacit.traces.store import Store

    values = {"agent.model": "openai:mock", "agent.base_url": f"{url}/v1"}
    config_file.set_values(values | {"learn.approval": "auto"})
    built = "VERSION=$(cat VERSION) python3 build.py"
    calls = [ran(f"cat src/module_{n}.py", "def part():\n    return 1\n" * 60) for n in range(21)]
    calls += [ran("python3 build.py", "KeyError: 'VERSION'", failed=True), ran(built, "built")]
    trace = made(["Build it. Always read the version from VERSION.", *calls], project=os.getcwd())
    with Store.open() as store:
        store.write(trace)

    def children() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before, clock = children(), Clock()
    done = run_review(Job("bench", "review", trace.id, {"session": trace.id}))
    took = clock.read()
    return {**took, "cpu": took["cpu"] + children() - before, "outcome": done.outcome}


def _timed(job: Callable[[str], bool], path: str, spent: dict[str, float], who: str) -> bool:
    clock = Clock()
    try:
        return job(path)
    finally:
        took = clock.read()
        spent[who] += took["seconds"]
        spent[f"{who} cpu"] += took["cpu"]


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    known: dict[str, Callable[..., dict[str, Any]]] = {
        "catalogue": catalogue,
        "load": load,
        "open-search": open_search,
        "search-soon": search_soon,
        "search": search,
        "lint": lint,
        "review": review,
    }
    print(json.dumps(known[what](*rest)))
