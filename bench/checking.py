"""Lint: how many skills a second, and whether it judges as the standard's own validator does."""

import os
from collections.abc import Iterator
from functools import partial

from bench.measure import Figure, Shell, Timing, Took, alternate, compare
from bench.runs import TACIT, Bench, note, probe


def measure_lint(bench: Bench) -> Iterator[Figure]:
    """`lint --strict` over everything, and beside skills-ref on a sample."""
    home = bench.home()
    shell = Shell(home.folder)
    note("linting")
    command = [TACIT, "lint", "--strict", "--json"]
    took = alternate({"": partial(shell.time, command, (0, 1))}, 2)[""]
    rate = f"{home.count / took.best:,.0f} skills a second"
    yield compare("lint", f"tacit lint --strict, {home.count:,} skills", took, values=(rate,))
    folder = os.path.join(bench.folder, "named")
    count = _unpack_named(bench, folder)
    note(f"linting {count:,} skills beside skills-ref")
    both = shell.ask(probe("lint", folder))
    for name in both["differ"]:
        note(f"judged otherwise than by skills-ref: {name!r}")
    yield compare(
        "lint",
        f"lint(strict), {count:,} skills",
        Timing((Took(both["ours"], both["ours cpu"]),)),
        Timing((Took(both["theirs"], both["theirs cpu"]),)),
        against="skills-ref",
        aim=1.0,
        values=(
            f"{both['valid']:,} valid",
            f"{len(both['differ']):,} judged otherwise",
            f"{both['crashed']:,} crash skills-ref",
        ),
    )


def _unpack_named(bench: Bench, folder: str) -> int:
    """A sample, each skill in a folder of its own name: the standard wants it so."""
    from tacit.skills.skill_file import parse_skill

    skills = bench.pool.skills
    step = max(len(skills) // bench.options.sample, 1) if bench.options.sample else 1
    chosen = skills[::step]
    for number, skill in enumerate(chosen):
        data = skill.text.encode("utf-8", "surrogatepass")
        name = parse_skill(data, "unnamed").name
        below = os.path.join(folder, str(number), name if _is_folder_name(name) else "odd")
        os.makedirs(below)
        with open(os.path.join(below, "SKILL.md"), "wb") as file:
            file.write(data)
    return len(chosen)


def _is_folder_name(name: str) -> bool:
    # The text is a stranger's: nothing in it may lead out of the folder.
    size = len(name.encode("utf-8", "surrogatepass"))
    return 0 < size < 200 and not set(name) & {"/", "\0"} and name not in (".", "..")
