"""What scripts/test-hosts has a real agent do: a session alone, one connected, one with a skill.

Owns the scripted work and the order of things; what is right and what is not is judged in
`host_checks.py`. Each agent gets two homes, one that Tacit never touches and one that
`tacit connect` connects, so that the two can be compared.
"""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from host_agents import Agent
from host_programs import TERMS, Installed, Place, Run, environment, prepare, run
from tacit.base.errors import TacitError
from tacit.testing import ModelServer, Request, Rules, Turns, marked, reply, toolless
from tacit.testing.server import Other
from tacit.traces.connection import find_connector
from tacit.traces.connector import BACKUP
from tacit.traces.store import Store
from tacit.traces.trace import Trace

MARKER = "TALLY-THE-HERD"
PROMPTS = (
    f"{MARKER}: run tally.sh and read README.md",
    "No, not at noon. Always count again at dawn.",
)
WARM_UP = "Good morning."
NEXT_MARKER = "PACK-THE-HERD"
NEXT_PROMPT = f"{NEXT_MARKER}: is there a skill for it?"
TEXTS = (
    "First the tally.",
    "It wants a time of day.",
    "Now the file.",
    "Forty-two, counted at dusk.",
    "At dawn, then.",
    "Forty-three at dawn.",
)
TALLY = """\
[ -n "$1" ] || { echo "tally: say when" >&2; exit 3; }
echo "herd-$1-$((40 + 2))"
"""
COMMANDS = ("sh tally.sh", "sh tally.sh dusk", "sh tally.sh dawn")
SHELL_SAYS = ("tally: say when", "herd-dusk-42", "herd-dawn-42")
README_SAYS = "Zebras are counted at dusk."
OUTPUT_TOKENS = 20 * len(TEXTS)
SKILL = "zebra-packing"
SKILL_SIGN = "QZX81"
"""Early in the description, since some agents show only its beginning."""
SKILL_SAYS = f"Packs zebras by the {SKILL_SIGN} procedure. Use when zebras are to travel."
SKILL_TEXT = f"""\
---
name: {SKILL}
description: {SKILL_SAYS}
metadata:
  source: auto-skill
---

# Zebra packing

Two crates a zebra, stripes upright.
"""
QUIET = 1.0
IDLE = 2.0
BIN = Path(sys.executable).parent
ROUNDS = 5
"""How often the time is taken at most: what else runs on the machine must not decide."""


class Conversation(msgspec.Struct, frozen=True):
    """The prompts of one session, one program run each, and what the model was sent."""

    place: Place
    runs: tuple[Run, ...]
    requests: list[Request]
    others: list[Other]

    @property
    def seconds(self) -> float:
        return sum(run.seconds for run in self.runs)

    def turns(self, marker: str = MARKER) -> list[Request]:
        """The calls of the model that belong to the conversation, not to a title or the like."""
        return [r for r in self.requests if marked(marker)(r) and not toolless(r)]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """All that one agent did, and what Tacit made of it."""

    agent: Agent
    host: str
    """The name by which Tacit knows it."""
    alone: Conversation
    """In the home that Tacit never touched."""
    connected: Conversation
    after: Conversation
    """A new session, after a skill was placed in the library."""
    times: list[tuple[float, float]]
    """Seconds alone and connected, a pair a round."""
    heard: bool
    listed: list[dict[str, Any]]
    """What `tacit sessions --json` says, asked when the store had the session or time was up."""
    waited: float | None
    """Seconds from the end of the session until the worker had stored it; None if it never did."""
    trace: Trace | None
    log: str
    before: bytes | None
    """The file that `tacit connect` edits, before, while connected, and after disconnecting."""
    between: bytes | None
    back: bytes | None
    left: list[str]
    """What disconnecting left behind."""


class TacitFailed(TacitError):
    """A command of Tacit's did not end well."""


def hold(agent: Agent, installed: Installed, base: Path, timeout: float) -> Session:
    """Alone, connected, with a skill, disconnected; one program at a time."""
    host = agent.host.name
    alone_home, home = base / agent.name / "alone", base / agent.name / "joined"
    with _serve(agent, alone_home) as quiet, _serve(agent, home) as server:
        paths = (*installed.path, BIN)
        elsewhere = Place(home=alone_home, project=alone_home / "herd", url=quiet.url, path=paths)
        place = Place(home=home, project=home / "herd", url=server.url, path=paths)
        for one in (elsewhere, place):
            furnish(agent, one)
        # Agents write settings of their own at the first start, and are slower then.
        converse(agent, installed, elsewhere, quiet, (WARM_UP,), timeout)
        converse(agent, installed, place, server, (WARM_UP,), timeout)
        alone = converse(agent, installed, elsewhere, quiet, PROMPTS, timeout)
        before = _read(connected_file(agent, place))
        tacit(agent, place, "connect", host, "--yes")
        between = _read(connected_file(agent, place))
        connected = converse(agent, installed, place, server, PROMPTS, timeout)
        waited, trace = _await(place, host)
        listed = msgspec.json.decode(tacit(agent, place, "sessions", "--json"))["sessions"]
        times = [(alone.seconds, connected.seconds)]
        pair = ((elsewhere, quiet), (place, server))
        while slowed(times) and len(times) < ROUNDS:
            # By turns, so that a load that grows or wanes hits both alike.
            order = pair if len(times) % 2 == 0 else pair[::-1]
            took = {
                one.home: converse(agent, installed, one, model, PROMPTS, timeout).seconds
                for one, model in order
            }
            times.append((took[alone_home], took[home]))
        tacit(agent, place, "new", SKILL, "--from", "-", given=SKILL_TEXT)
        after = converse(agent, installed, place, server, (NEXT_PROMPT,), timeout)
        tacit(agent, place, "disconnect", host, "--yes")
        data = data_of(place)
        return Session(
            agent=agent,
            host=host,
            alone=alone,
            connected=connected,
            after=after,
            times=times,
            heard=(data / "heard" / host).exists(),
            listed=listed,
            waited=waited,
            trace=trace,
            log=_text(data / "worker.log"),
            before=before,
            between=between,
            back=_read(connected_file(agent, place)),
            left=_left(agent, place),
        )


def slowed(times: list[tuple[float, float]]) -> bool:
    """Whether the best connected time is more than 1 s and 15 % over the best alone."""
    alone, connected = (min(column) for column in zip(*times, strict=True))
    return connected - alone > max(1.0, 0.15 * alone)


def tacit(agent: Agent, place: Place, *words: str, given: str = "") -> str:
    """Run a command of this checkout's in the agent's home; what it printed."""
    done = subprocess.run(
        [BIN / "tacit", *words],
        capture_output=True,
        text=True,
        cwd=place.project,
        env=environment(agent, place),
        input=given,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise TacitFailed(f"tacit {' '.join(words)} gave {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def _serve(agent: Agent, home: Path) -> ModelServer:
    """A model that makes four calls of tools, the first of them wrong."""
    readme = str(home / "herd" / "README.md")
    # Where the tool for reading is the shell, the path is an argument of cat.
    read = f"cat {readme}" if agent.read == agent.shell else readme
    calls = [agent.shell.use(command) for command in COMMANDS]
    replies = [
        reply(TEXTS[0], calls[0]),
        reply(TEXTS[1], calls[1]),
        reply(TEXTS[2], agent.read.use(read)),
        TEXTS[3],
        reply(TEXTS[4], calls[2]),
        TEXTS[5],
    ]
    rules = Rules(
        (toolless, "Tally the herd"), (marked(MARKER), Turns(replies)), default="Nothing to add."
    )
    return ModelServer(rules, strict=False, terms=TERMS)


def furnish(agent: Agent, place: Place) -> None:
    """A project with something to do in it, and a worker that is not patient."""
    prepare(agent, place)
    (place.project / "README.md").write_text(f"# Herd\n\n{README_SAYS}\n", encoding="utf-8")
    for name in ("tally.sh", "test.sh"):
        (place.project / name).write_text(TALLY, encoding="utf-8")
    settings = place.home / ".config" / "tacit" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[worker]\nquiet = {QUIET}\nidle = {IDLE}\n", encoding="utf-8")


def converse(
    agent: Agent,
    installed: Installed,
    place: Place,
    server: ModelServer,
    prompts: tuple[str, ...],
    timeout: float,
) -> Conversation:
    """The first prompt in a new session, the others in the same one, taken up again."""
    requests, others = len(server.requests), len(server.others)
    runs = tuple(
        run(agent, installed.program, place, prompt, resume=index > 0, timeout=timeout)
        for index, prompt in enumerate(prompts)
    )
    return Conversation(place, runs, server.requests[requests:], server.others[others:])


def _await(place: Place, host: str, limit: float = 30.0) -> tuple[float | None, Trace | None]:
    """Look on, without a command, until the store has both prompts and their last answer."""
    started = time.monotonic()
    trace = None
    while (passed := time.monotonic() - started) < limit:
        trace = _stored(place, host) or trace
        if trace is not None and len(trace.prompts) == len(PROMPTS) and TEXTS[-1] in trace.texts:
            return passed, trace
        time.sleep(0.1)
    return None, trace


def _stored(place: Place, host: str) -> Trace | None:
    file = data_of(place) / "tacit.db"
    if not file.exists():
        return None
    store = Store.open(str(file))
    try:
        found = store.sessions(host=host)
        return store.trace(found[0].id) if found else None
    finally:
        store.close()


def _left(agent: Agent, place: Place) -> list[str]:
    """Backups and links that disconnecting should have taken away."""
    file = connected_file(agent, place)
    found = [file.with_name(file.name + BACKUP)]
    found += [place.home / ".claude" / "skills" / SKILL]
    return [str(path.relative_to(place.home)) for path in found if os.path.lexists(path)]


def connected_file(agent: Agent, place: Place) -> Path:
    """The file that connecting edits: the connector's, in the home of the agent."""
    home = agent.host.settings_home or agent.host.home
    file = find_connector(agent.name).file()
    return place.home / home.path / os.path.relpath(file, home.resolve())


def data_of(place: Place) -> Path:
    return place.home / ".local" / "share" / "tacit"


def _read(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
