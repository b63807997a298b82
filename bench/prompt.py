"""The block that tells a model which skills there are: ours, and that of Hermes Agent."""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial

from bench import peers
from bench.measure import Figure, Shell, Took, alternate, compare
from bench.pool import unpack
from bench.runs import HERE, TACIT, Bench, note, probe


class Block:
    """How to make one kind of block: a whole process, a call inside one, and from nothing."""

    def __init__(self, shell: Shell, process: list[str], call: list[str], cache: str) -> None:
        self._shell = shell
        self._process = process
        self._call = call
        self._cache = cache

    def characters(self) -> int:
        return int(self._shell.ask(self._call)["characters"])

    def process(self, cold: bool) -> Took:
        """From start to end of a process that makes the block."""
        self._forget(cold)
        return self._shell.time(self._process)

    def call(self, cold: bool) -> Took:
        """The call alone, with everything imported."""
        self._forget(cold)
        return self._shell.call(self._call)

    def _forget(self, cold: bool) -> None:
        if cold and os.path.isdir(self._cache):
            shutil.rmtree(self._cache)
        elif cold and os.path.exists(self._cache):
            os.unlink(self._cache)


def measure_catalogue(bench: Bench) -> Iterator[Figure]:
    """The prompt block, cold and warm."""
    home = bench.home()
    shell = Shell(home.folder)
    ours = Block(shell, [TACIT, "catalogue"], probe("catalogue"), home.cache)
    hermes = _hermes(bench) if bench.options.peers else None
    against = "Hermes" if hermes else ""
    size = ours.characters()
    theirs = hermes.characters() if hermes else 0
    yield Figure(
        group="catalogue",
        name="characters of the block",
        against=against,
        values=(f"{size:,}", f"{theirs:,}") if theirs else (f"{size:,}",),
        ratio=size / theirs if theirs else None,
    )
    for cold, aim in ((True, 0.7), (False, 0.2)):
        jobs: dict[str, Callable[[], Took]] = {
            "process": partial(ours.process, cold),
            "call": partial(ours.call, cold),
        }
        if hermes:
            jobs["their process"] = partial(hermes.process, cold)
            jobs["their call"] = partial(hermes.call, cold)
        rounds = bench.options.rounds
        took = alternate(jobs, max(rounds // 2, 3) if cold else rounds * 2)
        for what in ("process", "call"):
            label = f"{'cold' if cold else 'warm'}, {what}"
            other = took.get(f"their {what}")
            yield compare(
                "catalogue", label, took[what], other, against=against, aim=aim if other else None
            )


def _hermes(bench: Bench) -> Block | None:
    """The peer in a home of its own with the same skills."""
    peer = peers.install(peers.HERMES)
    if peer.missing:
        bench.missing.append(peer.missing)
        return None
    note("unpacking the same skills for Hermes")
    home = os.path.join(bench.folder, "hermes")
    # In one category, as its own skills lie: on the top level it takes each folder for one.
    unpack(bench.pool, len(bench.pool.skills), os.path.join(home, "skills", "pool"))
    command = [peer.python, os.path.join(HERE, "hermes_prompt.py")]
    snapshot = os.path.join(home, ".skills_prompt_snapshot.json")
    return Block(Shell(home, HERMES_HOME=home), command, command, snapshot)
