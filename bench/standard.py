"""Whether `tacit lint --strict` and the standard's reference validator agree over a pool of skills.

    python bench/standard.py POOL

POOL is a file of JSON lines, gzipped or not, each with `id` and `text`; a skill's folder is named
by the last part of its id. Prints how many were compared, and each case of a different verdict.
Needs `skills-ref`.
"""

import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from skills_ref.validator import validate

from tacit.skills import open_standard, skill_lint


def rows(pool: str) -> Iterator[tuple[str, str]]:
    """The id and the text of each skill in `pool`."""
    opened = gzip.open if pool.endswith(".gz") else open
    with opened(pool, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield row["id"], row["text"]


def compare(pool: str) -> int:
    """Compare every verdict; the exit code is 1 when two differ."""
    compared = crashed = valid = 0
    differ: list[str] = []
    with tempfile.TemporaryDirectory() as base:
        for number, (name, text) in enumerate(rows(pool)):
            folder = Path(base) / str(number) / (name.rstrip("/").rpartition("/")[2] or "skill")
            folder.mkdir(parents=True)
            (folder / "SKILL.md").write_bytes(text.encode("utf-8", "surrogatepass"))
            try:
                theirs = validate(folder)
            except Exception as error:
                crashed += 1
                print(f"skills-ref crashed on {name}: {type(error).__name__}: {str(error)[:80]}")
                continue
            compared += 1
            ours = open_standard.check_standard(text, folder.name)
            valid += not theirs
            if skill_lint.meets_standard(ours) != (not theirs):
                differ.append(f"{name}: skills-ref {theirs}, tacit {[p.message for p in ours]}")
    for line in differ:
        print(line)
    print(
        f"{compared:,} compared ({valid:,} valid), {compared - len(differ):,} agree, "
        f"{len(differ):,} differ; skills-ref crashed on {crashed:,}"
    )
    return 1 if differ else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python bench/standard.py POOL")
    sys.exit(compare(sys.argv[1]))
