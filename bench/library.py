"""The bench of the library, of sessions and of jobs: its options, and the order of the measures.

Each measure is a function from a `Bench` to figures. What is compared runs in turns, in fresh
processes and temporary homes; docs/performance.md says what the figures mean.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator

from bench import report
from bench.checking import measure_lint
from bench.distil import measure_distil
from bench.finding import measure_search
from bench.measure import Failed, Figure
from bench.pool import read, synthetic
from bench.prompt import measure_catalogue
from bench.runs import SIZES, Bench, Options, note
from bench.sessions import measure_counting, measure_import, measure_sessions
from bench.starting import measure_everyday, measure_list, measure_refresh, measure_start
from bench.worker import measure_jobs, measure_reviews

MEASURES: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    "start": measure_start,
    "list": measure_list,
    "everyday": measure_everyday,
    "catalogue": measure_catalogue,
    "search": measure_search,
    "lint": measure_lint,
    "refresh": measure_refresh,
    "import": measure_import,
    "counting": measure_counting,
    "sessions": measure_sessions,
    "jobs": measure_jobs,
    "reviews": measure_reviews,
    "distil": measure_distil,
}


def main() -> int:
    asked = _options()
    if asked.queries and not asked.pool:
        print("bench: --queries needs the pool that they are about", file=sys.stderr)
        return 2
    try:
        pool = read(asked.pool, asked.queries) if asked.pool else synthetic()
    except (OSError, ValueError, KeyError) as error:
        print(f"bench: cannot read the pool: {error!r}", file=sys.stderr)
        return 2
    options = Options(asked.rounds, asked.largest, asked.sessions, asked.sample, asked.peers)
    figures: list[Figure] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as folder:
        bench = Bench(pool, folder, options)
        for name in asked.only or MEASURES:
            note(f"measuring {name}")
            try:
                figures.extend(MEASURES[name](bench))
            except Exception as error:  # the others are worth having all the same
                failed.append(f"{name}: {error!r}" if not isinstance(error, Failed) else str(error))
            if asked.write:  # what is there so far, should somebody stop it
                report.write_page(asked.write, pool, figures, [*bench.missing, *failed])
        write = report.as_json if asked.json else report.as_text
        print(write(pool, figures, [*bench.missing, *failed]))
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Speed and hit rates of the skill library, as ratios to its peers.",
    )
    parser.add_argument("pool", nargs="?", help="JSON lines of {id, text}; without it, made up")
    parser.add_argument("--queries", metavar="FILE", help="JSON lines of {query, want: [id]}")
    parser.add_argument("--only", action="append", choices=MEASURES, help="may be repeated")
    parser.add_argument(
        "--peers",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="install the peers and compare with them; on unless --no-peers",
    )
    parser.add_argument("--rounds", type=int, default=7, help="how often each thing is timed (7)")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="skills at most (100000)")
    parser.add_argument("--sessions", type=int, default=10_000, help="sessions at most (10000)")
    parser.add_argument(
        "--sample", type=int, default=1000, help="skills for skills-ref (1000); 0 for all"
    )
    parser.add_argument(
        "--write", metavar="PAGE", help="put the table into this page, between its two marks"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
