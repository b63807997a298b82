"""How much the scan finds, how often it is wrong, and how fast it is: bench/scan.py POOL [--list]

POOL is a gzipped JSONL file of real skills (`id`, `text`). The planted and the honest texts are
those of the tests. The pool's text is data: it is scanned, never followed.
"""

import argparse
import gzip
import json
import time
from collections import Counter
from pathlib import Path

from tacit.base import secrets
from tacit.changes.scan import Report, scan

TEXTS = Path(__file__).parents[1] / "tests" / "fixtures" / "planted"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", type=Path)
    parser.add_argument("--list", action="store_true", help="name the skills that are blocked")
    options = parser.parse_args()
    own_texts()
    with gzip.open(options.pool, "rt", encoding="utf-8") as file:
        pool = [json.loads(line) for line in file]
    real_skills(pool, options.list)
    redaction(pool)


def own_texts() -> None:
    print("| texts | whose | number | block | ask | pass |\n|---|---|---|---|---|---|")
    for name in ("tuning", "heldout", "honest-tuning", "honest-heldout"):
        lines = (TEXTS / f"{name}.jsonl").read_text("utf-8").splitlines()
        skills = [json.loads(line)["files"] for line in lines]
        for learned in (True, False):
            found = Counter(
                scan({path: text.encode() for path, text in files.items()}, learned=learned).verdict
                for files in skills
            )
            whose = "learned" if learned else "own"
            counts = f"{found['block']} | {found['ask']} | {found['pass']}"
            print(f"| {name} | {whose} | {found.total()} | {counts} |")


def real_skills(pool: list[dict[str, str]], name_them: bool) -> None:
    print(
        "\n| pool | skills | block | ask | pass | skills/s | MB/s |\n|---|---|---|---|---|---|---|"
    )
    for learned in (False, True):
        found: Counter[str] = Counter()
        blocked = []
        size = 0
        start = time.process_time()
        for skill in pool:
            data = skill["text"].encode("utf-8", "surrogatepass")
            size += len(data)
            report = scan({"SKILL.md": data}, learned=learned)
            verdict = without_powers(report).verdict
            found[verdict] += 1
            if verdict == "block":
                blocked.append((skill["id"], sorted({f.rule for f in report.findings})))
        took = time.process_time() - start
        counts = " | ".join(
            f"{found[v]} ({100 * found[v] / len(pool):.2f}%)" for v in ("block", "ask", "pass")
        )
        speed = f"{len(pool) / took:.0f} | {size / took / 1e6:.1f}"
        whose = "learned, powers not counted" if learned else "own"
        print(f"| {whose} | {len(pool)} | {counts} | {speed} |")
        if name_them:
            for skill_id, rules in blocked:
                print(f"    {skill_id}: {', '.join(rules)}")


def without_powers(report: Report) -> Report:
    """The pool's authors gave their skills powers on purpose; a learned skill may not have them."""
    return Report(tuple(f for f in report.findings if f.rule != "power"))


def redaction(pool: list[dict[str, str]]) -> None:
    counts: Counter[str] = Counter()
    size = 0
    start = time.process_time()
    for skill in pool:
        size += len(skill["text"])
        counts.update(secrets.redact(skill["text"]).counts)
    took = time.process_time() - start
    print(f"\nredact: {size / took / 1e6:.0f} million characters/s; found {dict(counts)}")


if __name__ == "__main__":
    main()
