"""Search: how long it takes, and how often it is right beside plain BM25."""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.bm25 import Bm25
from bench.measure import Figure, Shell, Timing, Took, alternate, compare
from bench.runs import BARE, SIZES, TACIT, Bench, note, probe
from tacit.skills.project_terms import project_terms


def measure_search(bench: Bench) -> Iterator[Figure]:
    """The index, a whole process, single queries, and hit rates."""
    home = bench.home()
    shell = Shell(home.folder)
    shell.time([TACIT, "list"])
    built = []
    for _ in range(2):
        shutil.rmtree(os.path.join(home.cache, "search"), ignore_errors=True)
        built.append(shell.call(probe("open-search")))
    label = f"first search builds the index, {home.count:,} skills"
    yield compare("search", label, Timing(tuple(built)))
    yield from _soon(bench)
    rounds = bench.options.rounds
    opened = [shell.call(probe("open-search")) for _ in range(rounds)]
    yield compare("search", "open the index, nothing changed", Timing(tuple(opened)))
    question = bench.pool.queries[0].query if bench.pool.queries else "review a report"
    command = [TACIT, "search", sentence(question)]
    jobs = {"bare": partial(shell.time, BARE), "search": partial(shell.time, command, (0, 1))}
    took = alternate(jobs, rounds)
    label = "tacit search, process"
    yield compare("search", label, took["search"], took["bare"], against="python -c pass")
    if bench.pool.queries:
        yield from _answers(bench, shell)


def _soon(bench: Bench) -> Iterator[Figure]:
    """A first search while nothing is in the index, from few skills to many."""
    for size in (size for size in SIZES if size <= bench.options.largest):
        home = bench.home(size)
        shell = Shell(home.folder)
        shell.time([TACIT, "list"])
        runs = []
        for _ in range(3):
            shutil.rmtree(os.path.join(home.cache, "search"), ignore_errors=True)
            runs.append(shell.call(probe("search-soon", "review a report with care")))
        yield compare("search", f"first search answers, {size:,} skills", Timing(tuple(runs)))


def _answers(bench: Bench, shell: Shell) -> Iterator[Figure]:
    queries = bench.pool.queries
    number = {skill.id: str(n) for n, skill in enumerate(bench.pool.skills, 1)}
    wanted = [{number[w] for w in query.want if w in number} for query in queries]
    note(f"asking {len(queries)} queries, as sentences and as pages")
    first = [sentence(query.query) for query in queries]
    sentences = _ask(bench, shell, first)
    pages = _ask(bench, shell, [query.query for query in queries])
    files = _ask(bench, shell, first, [_languages(query.query) for query in queries])
    told = _ask(bench, shell, first, [query.query for query in queries])
    yield _latency("a sentence, warm process", sentences, 0.010)
    yield _latency("a page, warm process", pages, 0.030)
    note("building plain BM25")
    baseline = Bm25(skill.text for skill in bench.pool.skills)
    plain = [[str(n + 1) for n in baseline.find(query.query)] for query in queries]
    names = pages["names"]
    called = [{names[folder] for folder in want} for want in wanted]
    by_name = [[names[folder] for folder in found] for found in plain]
    yield _hits("a page, plain BM25 over whole files, by name", by_name, called)
    asked_in = {
        "a page": pages, "a sentence": sentences,
        "a sentence, in a project of its files": files,
        "a sentence, by an agent that was told the page": told,
    }  # fmt: skip
    for what, asked in asked_in.items():
        yield _hits(f"{what}, by name", asked["named"], called)
        yield _hits(f"{what}, by the copy that is shown", asked["found"], wanted)


def _latency(name: str, asked: dict[str, Any], limit: float) -> Figure:
    """Best and median over the queries; the ratio is that of the 95th in a hundred to the aim."""
    place = int(len(asked["seconds"]) * 0.95)
    high, cpu = sorted(asked["seconds"])[place], sorted(asked["cpu"])[place]
    runs = map(Took, asked["seconds"], asked["cpu"])
    return Figure(
        group="search",
        name=name,
        ours=Timing(tuple(runs)),
        values=(f"p95 {high * 1000:.1f} ms",),
        against=f"{limit * 1000:.0f} ms",
        ratio=high / limit,
        cpu_ratio=cpu / limit,
        aim=1.0,
    )


def _hits(name: str, found: list[list[str]], wanted: list[set[str]]) -> Figure:
    def rate(depth: int, part: slice = slice(None)) -> float:
        asked = list(zip(found, wanted, strict=True))[part]
        return sum(bool(want & set(ids[:depth])) for ids, want in asked) / len(asked)

    # What was chosen on one half should hold on the other.
    halves = f"halves at 1: {rate(1, slice(0, None, 2)):.3f}, {rate(1, slice(1, None, 2)):.3f}"
    rates = (f"Hit@1 {rate(1):.3f}", f"Hit@10 {rate(10):.3f}", halves)
    return Figure(group="hits", name=name, values=rates)


def _ask(
    bench: Bench, shell: Shell, texts: list[str], about: list[str] | None = None
) -> dict[str, Any]:
    path = os.path.join(bench.folder, "queries.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(list(zip(texts, about or [""] * len(texts), strict=True)), file)
    answer: dict[str, Any] = shell.ask(probe("search", path))
    return answer


def _languages(text: str) -> str:
    """The words for a project that holds the files which a task names."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, ".git"))
        for number, name in enumerate(re.findall(r"[\w-]+\.[a-z]{1,5}\b", text)):
            for copy in ("", *map(str, range(3))):  # so many of an ending make it the project's
                Path(folder, f"{copy}{number}{name}" if copy else name).touch()
        return " ".join(project_terms(folder))


def sentence(text: str) -> str:
    """The first line of a task that says something, as somebody would type it."""
    for line in text.splitlines():
        words = line.strip("#*- \t").split()
        if len(words) >= 4:
            return " ".join(words[:20])
    return " ".join(text.split()[:20])
