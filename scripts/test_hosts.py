"""The program behind scripts/test-hosts: sessions of real agents, and checks on each.

A check is a function in CHECKS: it gets what one agent did and says whether that is right. To
add one, write the function and put it in the list; what it needs from the session belongs in
`Session`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tacit.base.errors import TacitError
from tacit.testing import AGENTS, Agent, ModelServer, Request, Rules, Turns, marked, reply, toolless
from tacit.testing.headless import Place, Run, prepare, run, transcripts
from tacit.testing.installing import (
    Installed,
    InstallFailed,
    default_cache,
    forget,
    install,
    is_there,
)
from tacit.testing.server import Other

MARKER = "TALLY-THE-HERD"
PROMPT = f"{MARKER}: run tally.sh and read README.md"
SHELL_SAYS = "herd-42"
README_SAYS = "Zebras are counted at dusk."
SKILL_SAYS = "Packs zebras for shipping by the QZX81 procedure."
SKILL = f"""\
---
name: zebra-packing
description: {SKILL_SAYS}
---

# Zebra packing

Two crates a zebra, stripes upright.
"""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent did with the prompt."""

    agent: Agent
    place: Place
    run: Run
    requests: list[Request]
    others: list[Other]

    @property
    def turns(self) -> list[Request]:
        """The calls of the model that belong to the conversation, not to a title or the like."""
        return [r for r in self.requests if marked(MARKER)(r) and not toolless(r)]


class Verdict(msgspec.Struct, frozen=True):
    """`good` is None for a figure that nobody judges."""

    good: bool | None
    shown: str
    why: str = ""


def ran(session: Session) -> Verdict:
    """The agent ended by itself, with exit code 0."""
    if session.run.ended_well:
        return Verdict(True, "yes")
    code = session.run.code
    how = "killed, time was up" if code is None else f"exit code {code}"
    tail = (session.run.stderr or session.run.stdout).strip()[-400:]
    return Verdict(False, "no", f"{how}: {tail}")


def reached_the_model(session: Session) -> Verdict:
    """Its calls arrived at the scripted server, three in the conversation."""
    found = len(session.turns)
    return Verdict(found == 3, str(found), "" if found == 3 else "3 calls were expected")


def tools_ran(session: Session) -> Verdict:
    """Both tool calls of the script were carried out, and their results came back."""
    last = session.turns[-1] if session.turns else None
    results = " ".join(result.text for result in last.tool_results) if last else ""
    missing = [said for said in (SHELL_SAYS, README_SAYS) if said not in results]
    if missing:
        return Verdict(False, "no", f"missing in the results: {missing}; got {results[-300:]!r}")
    return Verdict(True, "yes")


def wrote_a_transcript(session: Session) -> Verdict:
    """A transcript with the prompt in it lies where this agent keeps them."""
    files = transcripts(session.agent, session.place.home)
    if any(_holds(file, MARKER) for file in files):
        return Verdict(True, "yes")
    return Verdict(False, "no", f"none of {session.agent.transcripts} holds the prompt")


def skill_reached_the_model(session: Session) -> Verdict:
    """The description of a skill in the folder where this agent looks is in its first call."""
    if session.turns and session.turns[0].mentions(SKILL_SAYS):
        return Verdict(True, "yes")
    folder = session.agent.project_skills or f"~/{session.agent.home_skills}"
    return Verdict(False, "no", f"the skill in {folder} is in no request")


def went_outside(session: Session) -> Verdict:
    """The names outside loopback that it asked for, all refused: a figure, not a fault."""
    hosts = {o.path for o in session.others if not o.path.startswith("/")}
    return Verdict(None, str(len(hosts)), ", ".join(sorted(hosts)))


def took(session: Session) -> Verdict:
    return Verdict(None, f"{session.run.seconds:.1f} s")


CHECKS: list[tuple[str, Callable[[Session], Verdict]]] = [
    ("ran", ran),
    ("model calls", reached_the_model),
    ("tools ran", tools_ran),
    ("transcript", wrote_a_transcript),
    ("skill seen", skill_reached_the_model),
    ("asked outside", went_outside),
    ("time", took),
]


def script_for(agent: Agent, project: Path) -> Rules:
    """A shell call, a read, a last word; a title for whoever asks for one."""
    readme = str(project / "README.md")
    # Where the tool for reading is the shell, the path is an argument of cat.
    read = f"cat {readme}" if agent.read == agent.shell else readme
    turns = Turns(
        [
            reply("First the tally.", agent.shell.use("sh tally.sh")),
            reply("Now the file.", agent.read.use(read)),
            "Forty-two, counted at dusk.",
        ]
    )
    return Rules((toolless, "Tally the herd"), (marked(MARKER), turns), default="Nothing to add.")


def furnish(agent: Agent, place: Place) -> None:
    """A project with something to do in it, and one skill."""
    prepare(agent, place)
    (place.project / "README.md").write_text(f"# Herd\n\n{README_SAYS}\n", encoding="utf-8")
    (place.project / "tally.sh").write_text("echo herd-$((40 + 2))\n", encoding="utf-8")
    base = place.project / agent.project_skills
    if not agent.project_skills:
        base = place.home / agent.home_skills
    folder = base / "zebra-packing"
    if agent.project_skills and agent.project_skills != ".agents/skills":
        # As skills really lie: in .agents/skills, and linked where this agent looks.
        folder = place.project / ".agents" / "skills" / "zebra-packing"
        base.mkdir(parents=True)
        (base / "zebra-packing").symlink_to("../../.agents/skills/zebra-packing")
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL, encoding="utf-8")


def hold_session(agent: Agent, installed: Installed, base: Path, timeout: float) -> Session:
    home = base / agent.name
    project = home / "herd"
    with ModelServer(script_for(agent, project), strict=False) as server:
        place = Place(home=home, project=project, url=server.url, path=installed.path)
        furnish(agent, place)
        ended = run(agent, installed.program, place, PROMPT, timeout=timeout)
        return Session(
            agent=agent, place=place, run=ended, requests=server.requests, others=server.others
        )


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
    rows: list[list[str]] = []
    reasons: list[str] = []
    failed = 0
    for agent in agents:
        print(f"{agent.title} …", file=sys.stderr, flush=True)
        version = _version(chosen) or agent.version
        try:
            # Without a network by now, npm would try for minutes.
            if not is_there(agent, chosen.cache, version=_version(chosen)):
                raise InstallFailed("it could not be fetched, for the reason said above")
            installed = install(agent, chosen.cache, version=_version(chosen))
            version = installed.version
            session = hold_session(agent, installed, base, chosen.timeout)
            verdicts = [(name, check(session)) for name, check in CHECKS]
        except (TacitError, OSError) as error:
            failed += 1
            rows.append([agent.title, version, *("-" for _ in CHECKS)])
            reasons.append(f"{agent.title}: {error}")
            continue
        rows.append([agent.title, version, *(verdict.shown for _, verdict in verdicts)])
        reasons += [f"{agent.title}, {name}: {v.why}" for name, v in verdicts if v.why]
        failed += any(verdict.good is False for _, verdict in verdicts)
    print(_table(["agent", "version", *(name for name, _ in CHECKS)], rows))
    print(f"\n{len(agents) - failed} of {len(agents)} agents pass every check.")
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


def _holds(file: Path, text: str) -> bool:
    """Whether a transcript, or the log beside it where it is a database, holds `text`."""
    wanted = text.encode()
    beside = file.with_name(f"{file.name}-wal")
    return any(wanted in part.read_bytes() for part in (file, beside) if part.exists())


def main() -> int:
    names = [agent.name for agent in AGENTS]
    parser = argparse.ArgumentParser(
        prog="scripts/test-hosts", description="Real agents against a scripted model on loopback."
    )
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=f"of {', '.join(names)}")
    parser.add_argument("--list", action="store_true", help="list the agents and their versions")
    parser.add_argument("--keep", action="store_true", help="keep the homes, and say where")
    parser.add_argument("--latest", action="store_true", help="the newest versions, not the known")
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
    base = Path(tempfile.mkdtemp(prefix="tacit-hosts-")).resolve()
    started = time.monotonic()
    try:
        failed = check_all(agents, base, chosen)
    finally:
        if chosen.keep:
            print(f"homes kept in {base}", file=sys.stderr)
        else:
            shutil.rmtree(base, ignore_errors=True)
    print(f"({time.monotonic() - started:.0f} s)", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
