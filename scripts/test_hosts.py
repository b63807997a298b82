"""The program behind scripts/test-hosts: sessions of real agents, and a table of checks on each.

It fetches the agents and closes the network; the sessions are in `host_sessions.py`, the checks
in `host_checks.py`, what is learned from a long session in `host_learning.py`, and the roads of a
user from connecting to a later session in `host_roads.py`, a hand-over in `host_handoff.py`,
a review by an agent's own program in `host_answers.py`, and lots in `host_lots.py`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from host_agents import AGENTS, Agent
from host_answers import ANSWERS, answers, review
from host_checks import CHECKS, Verdict
from host_handoff import HANDOFF, hand_over
from host_learning import LEARNING, Learned, chat, homes_end, learn
from host_lots import LOTS, draw_lots
from host_mcp import MCP, serve_library
from host_programs import Installed, InstallFailed, default_cache, forget, install, is_there
from host_roads import ROADS, walk
from host_sessions import hold
from tacit import __version__
from tacit.base.errors import TacitError


def fetch(agents: list[Agent], chosen: argparse.Namespace) -> None:
    """Fetch what is not there, and say what cannot be fetched."""
    for agent in agents:
        if chosen.latest:
            forget(agent, chosen.cache, version="latest")
        if not is_there(agent, chosen.cache, version=_version(chosen)):
            print(f"fetching {agent.title} …", file=sys.stderr, flush=True)
            try:
                install(agent, chosen.cache, version=_version(chosen))
            except (TacitError, OSError) as error:
                print(f"{agent.title}: {error}", file=sys.stderr)


def close_the_network() -> None:
    """Start this program again in a network that has nothing but loopback, where one can."""
    enter = ["unshare", "--map-root-user", "--net"]
    up = "ip link set lo up"
    try:
        subprocess.run([*enter, "sh", "-c", up], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        note = "no network of their own here: only the proxy variables hold the agents back"
        print(f"test-hosts: {note}", file=sys.stderr)
        return
    again = [sys.executable, *sys.argv, "--fetched"]
    inside = [*enter, "sh", "-c", f'{up} && exec "$@"', "-", *again]
    raise SystemExit(subprocess.run(inside, check=False).returncode)


def _version(chosen: argparse.Namespace) -> str:
    return "latest" if chosen.latest else ""


def check_all(agents: list[Agent], base: Path, chosen: argparse.Namespace) -> int:
    """Run each agent, print the table, and give the number that failed a check."""

    def checked(agent: Agent, installed: Installed) -> list[tuple[str, Verdict]]:
        session = hold(agent, installed, base, chosen.timeout)
        return [(name, check(session)) for name, check in CHECKS]

    return _each(agents, chosen, [name for name, _ in CHECKS], checked)


def learn_all(agents: list[Agent], base: Path, chosen: argparse.Namespace) -> int:
    """Learn from each agent's session and from our own chat's, and print the table of that."""

    def judged(learned: Learned) -> list[tuple[str, Verdict]]:
        return [(name, check(learned)) for name, check in LEARNING]

    def checked(agent: Agent, installed: Installed) -> list[tuple[str, Verdict]]:
        return judged(learn(agent, installed, base, chosen.timeout))

    own = ("Tacit's own chat", __version__, lambda: (__version__, judged(chat(base))))
    return _each(
        agents, chosen, [name for name, _ in LEARNING], checked, [] if chosen.agents else [own]
    )


def walk_all(agents: list[Agent], base: Path, chosen: argparse.Namespace) -> int:
    """Walk each agent's roads, and print the table of that."""

    def checked(agent: Agent, installed: Installed) -> list[tuple[str, Verdict]]:
        road = walk(agent, installed, base, chosen.timeout)
        return [(name, check(road)) for name, check in ROADS]

    return _each(agents, chosen, [name for name, _ in ROADS], checked)


def hand_over_all(agents: list[Agent], base: Path, chosen: argparse.Namespace) -> int:
    """Have each agent do a review that is handed over, and print the table of that."""

    def checked(agent: Agent, installed: Installed) -> list[tuple[str, Verdict]]:
        found = hand_over(agent, installed, base, chosen.timeout)
        return [(name, check(found)) for name, check in HANDOFF]

    return _each(agents, chosen, [name for name, _ in HANDOFF], checked)


def answer_all(agents: list[Agent], base: Path, chosen: argparse.Namespace) -> int:
    """Have each agent's program answer a review, and print the table of that."""

    def checked(agent: Agent, installed: Installed) -> list[tuple[str, Verdict]]:
        found = review(agent, installed, base)
        return [(name, check(found)) for name, check in ANSWERS]

    able = [agent for agent in agents if answers(agent)]
    return _each(able, chosen, [name for name, _ in ANSWERS], checked)


def serve_all(agents: list[Agent], base: Path, chosen: argparse.Namespace) -> int:
    """Have each agent that takes MCP servers use the library, and print the table of that."""

    def checked(agent: Agent, installed: Installed) -> list[tuple[str, Verdict]]:
        found = serve_library(agent, installed, base, chosen.timeout)
        return [(name, check(found)) for name, check in MCP]

    able = [agent for agent in agents if agent.host.server_entry() is not None]
    return _each(able, chosen, [name for name, _ in MCP], checked)


def draw_all(agents: list[Agent], base: Path, chosen: argparse.Namespace) -> int:
    """Have sessions of each agent that can draw lots for a learned skill, and print the table."""

    def checked(agent: Agent, installed: Installed) -> list[tuple[str, Verdict]]:
        found = draw_lots(agent, installed, base, chosen.timeout)
        return [(name, check(found)) for name, check in LOTS]

    able = [agent for agent in agents if agent.host.hooks.draws]
    return _each(able, chosen, [name for name, _ in LOTS], checked)


def _each(
    agents: list[Agent],
    chosen: argparse.Namespace,
    names: list[str],
    checked: Callable[[Agent, Installed], list[tuple[str, Verdict]]],
    own: Sequence[tuple[str, str, Callable[[], tuple[str, list[tuple[str, Verdict]]]]]] = (),
) -> int:
    rows: list[list[str]] = []
    reasons: list[str] = []
    failed = 0

    def run(agent: Agent) -> tuple[str, list[tuple[str, Verdict]]]:
        # Without a network by now, npm would try for minutes.
        if not is_there(agent, chosen.cache, version=_version(chosen)):
            raise InstallFailed("it could not be fetched, for the reason said above")
        installed = install(agent, chosen.cache, version=_version(chosen))
        return installed.version, checked(agent, installed)

    todo = [(agent.title, agent.version, partial(run, agent)) for agent in agents]
    todo += own
    for title, version, do in todo:
        print(f"{title} …", file=sys.stderr, flush=True)
        try:
            version, verdicts = do()  # noqa: PLW2901
        except (TacitError, OSError, subprocess.TimeoutExpired) as error:
            failed += 1
            rows.append([title, version, *("-" for _ in names)])
            reasons.append(f"{title}: {error}")
            continue
        rows.append([title, version, *(verdict.shown for _, verdict in verdicts)])
        print("  " + " · ".join(f"{name}: {v.shown}" for name, v in verdicts), file=sys.stderr)
        reasons += [f"{title}, {name}: {v.why}" for name, v in verdicts if v.why]
        failed += any(verdict.good is False for _, verdict in verdicts)
    print(_table(["agent", "version", *names], rows))
    print(f"\n{len(todo) - failed} of {len(todo)} pass every check.")
    for reason in reasons:
        print(f"- {reason}")
    return failed


def _table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, so that it can go into the docs as it is."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )


TABLES = {
    "sessions": check_all,
    "learning": learn_all,
    "roads": walk_all,
    "handoff": hand_over_all,
    "programs": answer_all,
    "mcp": serve_all,
    "lots": draw_all,
}


def main() -> int:
    names = [agent.name for agent in AGENTS]
    parser = argparse.ArgumentParser(
        prog="scripts/test-hosts", description="Real agents against a scripted model on loopback."
    )
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=f"of {', '.join(names)}")
    parser.add_argument("--list", action="store_true", help="list the agents and their versions")
    parser.add_argument("--keep", action="store_true", help="keep the homes, and say where")
    parser.add_argument("--latest", action="store_true", help="the newest versions, not the known")
    parser.add_argument("--only", choices=tuple(TABLES), help="one of the tables")
    parser.add_argument("--fetched", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one session")
    parser.add_argument("--cache", type=Path, default=default_cache())
    chosen = parser.parse_args()
    if unknown := set(chosen.agents) - set(names):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(names)}")
    agents = [agent for agent in AGENTS if not chosen.agents or agent.name in chosen.agents]
    if chosen.list:
        for agent in agents:
            print(f"{agent.name:12} {agent.version:9} {agent.registry} {agent.package}")
        return 0
    if not chosen.fetched:
        fetch(agents, chosen)
        close_the_network()
    base = Path(tempfile.mkdtemp(prefix="herds-")).resolve()
    started = time.monotonic()
    try:
        wanted = [table for name, table in TABLES.items() if chosen.only in (None, name)]
        failed = sum(table(agents, base, chosen) for table in wanted)
    finally:
        homes_end(base)
        if chosen.keep:
            print(f"homes kept in {base}", file=sys.stderr)
        else:
            shutil.rmtree(base, ignore_errors=True)
    print(f"({time.monotonic() - started:.0f} s)", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
