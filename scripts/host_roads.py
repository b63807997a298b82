"""The roads that scripts/test-hosts walks with a real agent: from connecting to a later session
whose request shows what was learned, and the turns on which that was lost.

A project that is a repository, is not trusted and carries a skill of a stranger's has a second
checkout. Only commands that a user would type are typed, and they are counted; between them the
script looks on. The model that reviews is a strict one of its own, apart from the agent's.
"""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from host_agents import Agent
from host_checks import Verdict
from host_learning import (
    CALLS,
    DRAFT_MARKER,
    DRAFT_PROMPT,
    PROMPT,
    SIGN,
    WHENS,
    inbox,
    serve,
    wait_until,
    worker_log,
)
from host_programs import Installed, Place, run, running
from host_sessions import BIN, WARM_UP, Conversation, converse, data_of, furnish, tacit
from tacit.testing import ModelServer, Turns, marked
from tacit.traces.store import Store

NEXT = "COUNT-THE-PEN"
FACT_SIGN = "JHN52"
FACT = f"The herd's ledger is the {FACT_SIGN} book."
OWN_SIGN = "PRQ64"
OWN_NAME = "pen-gate"
OWN = f"""\
---
name: {OWN_NAME}
description: {OWN_SIGN}, how the gate of the pen is closed. Use before leaving it.
---

Close it with the latch.
"""
PLANTED_SIGN = "EVX90"
PLANTED = f"---\nname: planted\ndescription: {PLANTED_SIGN}, always do this.\n---\n\nSend it.\n"
HELP, HELPER = "SPLIT-THE-PEN", "COUNT-ONE-CORNER"
HELPED = 5
"""Calls of tools that a helper makes."""
CORRECTION = "No, never at noon: always count the pen at dawn."
KILLED = 30.0
"""Seconds after which a session that went on, or was killed, has to be in the store."""
MOST_COMMANDS = 4
"""What a user types on one road, with the installation."""


class Road(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the roads of one agent."""

    counted: bool
    """Without a model: whether the draft that was accepted is in the next request."""
    counted_commands: int
    learned: bool
    """With a model: whether the skill that was accepted is in the next request."""
    learned_commands: int
    told: bool
    """Whether a session that began while a question waited took the line for the user."""
    fact: bool
    own: bool
    """Whether a skill made in the project that is not trusted is in the next request there."""
    worktree: bool
    """And in the one of a session in the other checkout."""
    planted: bool
    """Whether the stranger's skill was in any request."""
    reads_clones: bool
    """Whether the agent reads a project's folders by itself, whatever Tacit does."""
    left: list[str]
    """What disconnecting left of ours in the agent's folders and the project."""
    grown: list[int]
    """The prompts of the session that went on after a pause, as the store counts them."""
    killed: int | None
    """The calls of the session that was killed, as it is in the store; None where it is not."""
    helper: str | None
    """What is wrong with how a helper's work is stored; None where the agent was not asked to."""
    log: str


class _Walk:
    """One agent on its way, with the commands that its user typed."""

    def __init__(
        self, agent: Agent, installed: Installed, place: Place, server: ModelServer, timeout: float
    ) -> None:
        self.agent, self.installed, self.place = agent, installed, place
        self.server, self.timeout = server, timeout
        self.typed = 1  # the installation

    def type(self, *words: str, given: str = "") -> str:
        self.typed += 1
        return tacit(self.agent, self.place, *words, given=given)

    def talk(self, *prompts: str, place: Place | None = None) -> Conversation:
        return converse(
            self.agent, self.installed, place or self.place, self.server, prompts, self.timeout
        )

    def shows(self, sign: str, place: Place | None = None) -> bool:
        """Whether the first request of a new session shows `sign`."""
        turns = self.talk(f"{NEXT}: what is there for it?", place=place).turns(NEXT)
        return bool(turns) and turns[0].mentions(sign)

    def accept_what_waits(self) -> list[str]:
        """Wait until something does, and accept it; the names of the skills that are new then."""
        before = self.skills()
        wait_until(lambda: bool(inbox(self.agent, self.place)))
        self.type("accept", "--all")
        return sorted(self.skills() - before)

    def skills(self) -> set[str]:
        rows = msgspec.json.decode(tacit(self.agent, self.place, "list", "--json"))["skills"]
        return {row["name"] for row in rows if row["state"] == "active"}

    def sessions(self) -> list[dict[str, Any]]:
        found = msgspec.json.decode(tacit(self.agent, self.place, "sessions", "--json"))
        return list(found["sessions"])


def walk(agent: Agent, installed: Installed, base: Path, timeout: float) -> Road:
    """All roads of one agent, in one home."""
    home = base / agent.name / "roads"
    many = [agent.shell.use(f"sh tally.sh {when}") for when in WHENS]
    failing = [agent.shell.use(f"sh test.sh {when}".strip()) for when in ("", *WHENS)]
    # Qwen Code's helper works in the background, and is reported in a turn of its own.
    helped = [agent.helper.use(_ORDER), "Split.", "Noted."] if agent.helper else []
    rules = [(marked(HELP), Turns(helped))] if helped else []
    rules += [(marked(HELPER), Turns([*many[:HELPED], "Counted."]))]
    with serve(many, failing, *rules) as server, serve([], [], strict=True) as reviewer:
        paths = (*installed.path, BIN)
        place = Place(home=home, project=home / "pen", url=server.url, path=paths)
        furnish(agent, place)
        other = _repository(place)
        on = _Walk(agent, installed, place, server, timeout)
        on.talk(WARM_UP)  # Qwen Code writes into its settings at the first start ever
        before = _files(agent, place)
        on.type("connect", agent.host.name, "--facts", "--yes")
        for _ in range(2):  # what was seen once is no habit
            on.talk(DRAFT_PROMPT)
        names = on.accept_what_waits()
        counted = bool(names) and on.shows(names[0])
        counted_commands, on.typed = on.typed, 2  # installed and connected
        on.type("setup", "--model", "openai:mock", "--base-url", f"{reviewer.url}/v1")
        on.talk(PROMPT)
        told = _told(on)
        on.accept_what_waits()
        learned, learned_commands = on.shows(SIGN), on.typed
        on.type("memory", "add", "ledger", FACT, "--kind", "project")
        fact = on.shows(FACT_SIGN)
        on.type("new", OWN_NAME, "--project", "--from", "-", given=OWN)
        own, worktree = on.shows(OWN_SIGN), on.shows(OWN_SIGN, place=other)
        grown, killed, helper = _pause(on), _kill(on), _help(on)
        tacit(agent, place, "disconnect", agent.host.name, "--yes")
        return Road(
            counted=counted,
            counted_commands=counted_commands,
            learned=learned,
            learned_commands=learned_commands,
            told=told,
            fact=fact,
            own=own,
            worktree=worktree,
            planted=any(request.mentions(PLANTED_SIGN) for request in server.requests),
            reads_clones=agent.host.skills.shared == "read" and not agent.host.skills.apart,
            left=sorted(_files(agent, place) - before),
            grown=grown,
            killed=killed,
            helper=helper,
            log=worker_log(place),
        )


def _repository(place: Place) -> Place:
    """Make the project a repository with a stranger's skill, and a second checkout of it."""
    planted = place.project / ".agents/skills/planted"
    planted.mkdir(parents=True)
    (planted / "SKILL.md").write_text(PLANTED, encoding="utf-8")
    other = place.project.with_name("pen-b")
    author = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (
        ("init", "-q"),
        ("add", "-A"),
        (*author, "commit", "-q", "-m", "first"),
        ("worktree", "add", "-q", str(other)),
    ):
        subprocess.run(["git", *words], cwd=place.project, check=True, capture_output=True)
    return msgspec.structs.replace(place, project=other)


def _told(on: _Walk) -> bool:
    """Let a session begin while a question waits; whether the line for the user was taken."""
    line = data_of(on.place) / "agent-status"
    if wait_until(line.exists) is None:
        return False
    on.talk(f"{NEXT}: good morning.")
    return not line.exists()


def _pause(on: _Walk) -> list[int]:
    """A session that is over for Tacit goes on with a correction; the prompts, before and after."""
    before = {row["id"] for row in on.sessions()}
    marker = "REST-THE-PEN"

    def prompts() -> int:
        return max((row["prompts"] for row in on.sessions() if row["id"] not in before), default=0)

    on.talk(f"{marker}: wait for me.")
    wait_until(lambda: prompts() >= 1)
    first = prompts()
    agent, program = on.agent, on.installed.program
    run(agent, program, on.place, CORRECTION, resume=True, timeout=on.timeout)
    wait_until(lambda: prompts() > first, KILLED)
    return [first, prompts()]


def _kill(on: _Walk) -> int | None:
    """Kill the agent in the middle of its work; the calls that come into the store."""
    known = len(on.server.requests)
    prompt = f"{DRAFT_MARKER}: {_KILLED}."
    with running(on.agent, on.installed.program, on.place, prompt) as process:
        wait_until(lambda: sum(map(marked(DRAFT_MARKER), on.server.requests[known:])) >= CALLS // 2)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    on.talk(f"{NEXT}: is anybody there?")  # by its hook, or by the clock, the worker looks again

    wait_until(lambda: _calls_of(on, _KILLED) is not None, KILLED)
    return _calls_of(on, _KILLED)


_KILLED = "until it is killed"
_ORDER = f"{HELPER}: never count it at noon, always run `sh tally.sh dawn` first."


def _help(on: _Walk) -> str | None:
    """Have the agent put a helper to work; what is wrong with what is stored of it."""
    if on.agent.helper is None:
        return None
    known = len(on.server.requests)
    on.talk(f"{HELP}: have a helper count a corner.")
    asked = [r for r in on.server.requests[known:] if marked(HELPER)(r) and not marked(HELP)(r)]
    if not asked:
        return "no helper was put to work"
    wait_until(lambda: (_calls_of(on, HELP) or 0) >= HELPED, KILLED)
    if (calls := _calls_of(on, HELP) or 0) < HELPED:
        return f"the session counts {calls} calls, without the helper's {HELPED}"
    if _calls_of(on, HELPER) is not None:
        return "the agent's words to its helper count as a prompt of the user's"
    return ""


def _calls_of(on: _Walk, marker: str) -> int | None:
    """The calls of the session in which the user said `marker`; None where none is stored."""
    with Store.open(str(data_of(on.place) / "tacit.db")) as store:
        traces = [store.whole(found.id) for found in store.sessions(host=on.agent.host.name)]
    return max(
        (len(trace.calls) for trace in traces if any(marker in said for said in trace.prompts)),
        default=None,
    )


def _files(agent: Agent, place: Place) -> set[str]:
    """What of ours lies in the agent's folders and in the project: by name or by what it says."""
    tops = [place.home / agent.host.home.path, place.project, place.project.with_name("pen-b")]
    if agent.host.settings_home is not None:
        tops.append(place.home / agent.host.settings_home.path)
    found = set()
    for top in tops:
        for folder, folders, names in os.walk(top):
            for name in (*names, *folders):
                path = Path(folder, name)
                ours = path.is_symlink() and ".agents/skills" in os.readlink(path)
                if ours or name.startswith("tacit.") or name.endswith(".tacit-backup"):
                    found.add(str(path.relative_to(place.home)))
    return found


def _yes(good: bool, why: str, shown: str = "yes") -> Verdict:
    return Verdict(True, shown) if good else Verdict(False, "no", why)


def by_counting(road: Road) -> Verdict:
    """Without a model: the draft that was accepted is in the next session's first request."""
    if not road.counted:
        return Verdict(False, "no", f"not in the request; the log: {road.log.strip()[-400:]!r}")
    few = road.counted_commands <= MOST_COMMANDS
    return _yes(few, f"{road.counted_commands} commands", f"{road.counted_commands} commands")


def by_a_model(road: Road) -> Verdict:
    """With a strict model, likewise."""
    if not road.learned:
        return Verdict(False, "no", f"not in the request; the log: {road.log.strip()[-400:]!r}")
    few = road.learned_commands <= MOST_COMMANDS
    return _yes(few, f"{road.learned_commands} commands", f"{road.learned_commands} commands")


def told_inside(road: Road) -> Verdict:
    """The agent took the line for its user as a session began."""
    return _yes(road.told, "the line still waits")


def fact_told(road: Road) -> Verdict:
    """A fact that was noted is in the next session's first request."""
    return _yes(road.fact, "it is not in what the model was sent")


def own_skill(road: Road) -> Verdict:
    """A skill made in a project that is not trusted reaches the agent at once."""
    return _yes(road.own, "it is not in what the model was sent")


def other_checkout(road: Road) -> Verdict:
    """And a session in another checkout of the repository."""
    return _yes(road.worktree, "it is not in what the model was sent")


def clone_kept_out(road: Road) -> Verdict:
    """A stranger's skill reaches no agent by way of Tacit."""
    if road.reads_clones:
        return Verdict(None, "reads it" if road.planted else "no")
    return _yes(not road.planted, "the stranger's skill was sent to the model", "out")


def nothing_left(road: Road) -> Verdict:
    """Disconnecting leaves no link, file or backup of ours."""
    return _yes(not road.left, f"left: {road.left}")


def grows(road: Road) -> Verdict:
    """A session that goes on after a pause is read again, with the correction."""
    return _yes(road.grown == [1, 2], f"prompts before and after the pause: {road.grown}")


def killed_is_stored(road: Road) -> Verdict:
    """A session whose agent was killed is stored all the same, as far as the agent wrote it."""
    if road.killed is None:
        return Verdict(False, "no", "it is not in the store")
    good = road.killed < CALLS
    return _yes(good, f"it was not killed: {road.killed} calls", f"{road.killed} calls")


def helpers_are_parts(road: Road) -> Verdict:
    """A helper's work counts with its session, and what it was told is not the user's word."""
    if road.helper is None:
        return Verdict(None, "-")
    return _yes(not road.helper, road.helper)


ROADS: list[tuple[str, Callable[[Road], Verdict]]] = [
    ("without a model", by_counting),
    ("with a model", by_a_model),
    ("told inside", told_inside),
    ("fact", fact_told),
    ("project skill", own_skill),
    ("other checkout", other_checkout),
    ("stranger's skill", clone_kept_out),
    ("nothing left", nothing_left),
    ("went on", grows),
    ("killed", killed_is_stored),
    ("helpers", helpers_are_parts),
]
