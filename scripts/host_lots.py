"""Learned skills left out by lot in a real agent's sessions, for scripts/test-hosts.

Many sessions begin and are resumed. The scripted server sees which of them list the skill, and
what the worker recorded has to say the same of each.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from host_agents import Agent
from host_checks import Verdict
from host_learning import wait_until
from host_programs import TERMS, Installed, Place
from host_sessions import BIN, SKILL, SKILL_SIGN, SKILL_TEXT, converse, data_of, furnish, tacit
from tacit.skills.holdback import holdbacks
from tacit.testing import ModelServer, marked, toolless
from tacit.traces.store import Store

STARTS = 20
SHARE = 0.5
FEWEST, MOST = 3, STARTS - 3
"""Of twenty sessions at one half: four in ten thousand lie beyond."""
OWN = "pen-gate"
OWN_TEXT = f"""\
---
name: {OWN}
description: How the gate of the pen is closed. Use before leaving it.
---

Close it with the latch.
"""
_SAYS = "Counted."


class Lots(msgspec.Struct, frozen=True):
    """What came of it with one agent: whether each session listed the skill."""

    seen: dict[str, list[bool]]
    """By the word of its prompt, as it began and as it was resumed."""
    recorded: dict[str, bool]
    """The same by what is on record, for those of which something is."""
    own: bool
    """Whether a skill of the user's own was listed in every session."""
    before: bool
    """Whether the skill was listed before lots were drawn."""


def draw_lots(agent: Agent, installed: Installed, base: Path, timeout: float) -> Lots:
    """Begin and resume sessions of a real agent with `learn.holdback`."""
    home = base / agent.name / "lots"
    with ModelServer(lambda _: _SAYS, strict=False, terms=TERMS) as server:
        paths = (*installed.path, BIN)
        place = Place(home=home, project=home / "herd", url=server.url, path=paths)
        furnish(agent, place)
        tacit(agent, place, "connect", agent.host.name, "--yes")
        tacit(agent, place, "new", SKILL, "--from", "-", given=SKILL_TEXT)
        tacit(agent, place, "new", OWN, "--from", "-", given=OWN_TEXT)
        converse(agent, installed, place, server, ("FIRST-OF-ALL: count.",), timeout)
        tacit(agent, place, "config", "set", "learn.holdback", str(SHARE))
        words = [f"HERD-{number:02}-X" for number in range(STARTS)]
        for word in words:
            converse(agent, installed, place, server, (f"{word}: count.", "Again."), timeout)
        wait_until(lambda: len(_recorded(place)) == STARTS)
    asked = [request for request in server.requests if not toolless(request)]
    seen = {
        word: [request.mentions(SKILL_SIGN) for request in asked if marked(word)(request)]
        for word in words
    }
    first = [r.mentions(SKILL_SIGN) for r in asked if marked("FIRST-OF-ALL")(r)]
    every = all(request.mentions(OWN) for request in asked)
    return Lots(seen, _recorded(place), every, all(first))


def _recorded(place: Place) -> dict[str, bool]:
    """Whether each session was offered the skill, by the first word of its prompt."""
    file = data_of(place) / "tacit.db"
    if not file.exists():
        return {}
    with Store.open(str(file)) as store:
        drawn = [one for one in holdbacks(store.connection) if store.has(one.session)]
        return {
            store.trace(one.session).prompts[0].partition(":")[0].strip('"'): SKILL in one.offered
            for one in drawn
            if SKILL in one.offered or SKILL in one.held
        }


def _held(lots: Lots) -> int:
    return sum(not any(listed) for listed in lots.seen.values())


def _share(lots: Lots) -> Verdict:
    """About the share lacks the skill."""
    held = _held(lots)
    shown = f"{held} of {len(lots.seen)}"
    return Verdict(FEWEST <= held <= MOST, shown, "" if FEWEST <= held <= MOST else str(lots.seen))


def _same(lots: Lots) -> Verdict:
    """A resumed session has what it had as it began."""
    wrong = [word for word, listed in lots.seen.items() if len(listed) < 2 or len({*listed}) != 1]
    return Verdict(not wrong, "no" if wrong else "yes", str(lots.seen) if wrong else "")


def _on_record(lots: Lots) -> Verdict:
    """The record of each session says what the model was sent."""
    wanted = {word: listed[0] for word, listed in lots.seen.items() if listed}
    good = lots.recorded == wanted
    why = "" if good else f"recorded {lots.recorded}, sent {wanted}"
    return Verdict(good, "yes" if good else "no", why)


LOTS: tuple[tuple[str, Callable[[Lots], Verdict]], ...] = (
    ("without the skill", _share),
    ("resumed alike", _same),
    ("on record", _on_record),
    ("all before", lambda lots: Verdict(lots.before, "yes" if lots.before else "no")),
    ("one's own stays", lambda lots: Verdict(lots.own, "yes" if lots.own else "no")),
)
