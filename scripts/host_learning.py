"""What scripts/test-hosts has Tacit learn from a real agent's session, and whether that is right.

A session with twenty calls of tools ends. Without another command the worker reviews it with the
scripted model, and the skill is announced, reaches the next session, and is undone by one command.
Then once more with no model at all, which leaves a draft. The same by Tacit's own chat.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from host_agents import AGENTS, Agent
from host_checks import Verdict
from host_programs import TERMS, Installed, Place, environment
from host_sessions import BIN, Conversation, converse, data_of, furnish, tacit
from tacit.testing import ModelServer, Request, Rules, ToolUse, Turns, marked, toolless

MARKER = "MOVE-THE-HERD"
PROMPT = (
    f"{MARKER}: count the herd before it moves. Always run `sh tally.sh dawn` first, then"
    " `sh tally.sh dusk`; never move it uncounted."
)
DRAFT_MARKER = "SHEAR-THE-HERD"
DRAFT_PROMPT = f"{DRAFT_MARKER}: run test.sh until it works."
NEXT_MARKER = "WATER-THE-HERD"
NEXT_PROMPT = f"{NEXT_MARKER}: is there a skill for it?"
CALLS = 20
WHENS = ("dawn", "dusk", *(f"day-{number}" for number in range(3, CALLS + 1)))
NAME = "herd-moving"
SIGN = "KVW37"
SKILL = f"""\
---
name: {NAME}
description: {SIGN}, how the herd is counted before it moves. Use before moving it.
---

# Moving the herd

1. Run `sh tally.sh dawn` first, then `sh tally.sh dusk`.
2. Never move it uncounted.
"""
LIMIT = 180.0


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned from one agent's session."""

    calls: int
    """Of tools, as the store counted them."""
    reviewed: float | None
    """Seconds from the end of the session until the skill was there; None if it never was."""
    told: str
    """What `tacit prompt-status` said then."""
    seen: bool
    """Whether the next session's first call of the model showed the skill."""
    early: bool
    """Whether an earlier one did."""
    undone: bool
    """Whether it was gone after the command that the notice names."""
    draft: str | None
    """What waited in the inbox after a session with no model; None where that was not tried."""
    log: str


def learn(agent: Agent, installed: Installed, base: Path, timeout: float) -> Learned:
    """Have a real agent hold the sessions, in a home of its own."""
    home = base / agent.name / "learning"
    host = agent.host.name
    # None twice: some agents end a session that goes round in circles.
    many = [agent.shell.use(f"sh tally.sh {when}") for when in WHENS]
    failing = [agent.shell.use(f"sh test.sh {when}".strip()) for when in ("", *WHENS)]
    with serve(many, failing) as server:
        place = Place(home=home, project=home / "herd", url=server.url, path=(*installed.path, BIN))
        furnish(agent, place)
        _configure(place, server.url)
        tacit(agent, place, "connect", host, "--yes")

        def talk(prompt: str) -> Conversation:
            return converse(agent, installed, place, server, (prompt,), timeout)

        first = talk(PROMPT)
        waited = wait_until(lambda: _skill(place).exists())
        told = tacit(agent, place, "prompt-status")
        after = talk(NEXT_PROMPT)
        undone = _undo(agent, place, told)
        with _daemon_without_model(agent, place):
            talk(DRAFT_PROMPT)
            wait_until(lambda: bool(inbox(agent, place)))
            draft = "".join(tacit(agent, place, "inbox", one) for one in inbox(agent, place))
        return Learned(
            calls=_calls(agent, place),
            reviewed=waited,
            told=told.strip(),
            seen=_shows(after.turns(NEXT_MARKER)[:1]),
            early=_shows([r for r in first.requests if not is_review(r)]),
            undone=undone,
            draft=draft,
            log=worker_log(place),
        )


def chat(base: Path) -> Learned:
    """The same by `tacit chat`, which is looked at while it goes on."""
    home = base / "tacit"
    with serve([ToolUse("read_file", {"path": "README.md"})] * CALLS, []) as server:
        agent = msgspec.structs.replace(AGENTS[0], name="tacit", environment={}, files={})
        place = Place(home=home, project=home / "herd", url=server.url, path=(BIN,))
        furnish(agent, place)
        _configure(place, server.url)
        tacit(agent, place, "chat", "--plain", "--yes", given=f"{PROMPT}\n")
        first = list(server.requests)
        waited = wait_until(lambda: _skill(place).exists())
        told = tacit(agent, place, "prompt-status")
        known = len(server.requests)
        tacit(agent, place, "chat", "--plain", "--yes", given=f"{NEXT_PROMPT}\n")
        after = [r for r in server.requests[known:] if marked(NEXT_MARKER)(r)]
        return Learned(
            calls=_calls(agent, place),
            reviewed=waited,
            told=told.strip(),
            seen=_shows(after[:1]),
            early=_shows([r for r in first if not is_review(r)]),
            undone=_undo(agent, place, told),
            draft=None,
            log=worker_log(place),
        )


def serve(
    many: list[ToolUse],
    failing: list[ToolUse],
    *first: tuple[Callable[[Request], bool], Turns],
    strict: bool = False,
) -> ModelServer:
    """A model for the agent, and, by the tools that only a reviewer has, for the review.

    `first`: what goes before, as what it answers to, and its answers.
    """
    kept = ToolUse("write_file", {"path": f"{NAME}/SKILL.md", "content": SKILL})
    rules = Rules(
        (toolless, "Move the herd"),
        *first,
        (is_review, Turns([kept, "Kept herd-moving."])),
        (marked(MARKER), Turns([*many, "Moved."])),
        (marked(DRAFT_MARKER), Turns([*failing, "Shorn."])),
        default="Nothing to add.",
    )
    return ModelServer(rules, strict=strict, terms=None if strict else TERMS)


def is_review(request: Request) -> bool:
    return {"read_trace", "search_skills"} <= request.tool_names


def _configure(place: Place, url: str) -> None:
    """The scripted model for reviews, and no questions asked."""
    file = place.home / ".config/tacit/config.toml"
    kept = file.read_text(encoding="utf-8")
    model = f'[agent]\nmodel = "openai:mock"\nbase_url = "{url}/v1"\n'
    file.write_text(
        f'{kept}{model}[learn]\napproval = "auto"\n[memory]\nuse = false\n', encoding="utf-8"
    )


@contextmanager
def _daemon_without_model(agent: Agent, place: Place) -> Iterator[None]:
    """A daemon that has no key and no server, so that the hooks start no worker that has."""
    file = place.home / ".config/tacit/config.toml"
    text = file.read_text(encoding="utf-8")
    head, _, tail = text.partition("[agent]")
    file.write_text(head + tail[tail.index("[learn]") :], encoding="utf-8")
    wait_until(lambda: "No worker" in tacit(agent, place, "daemon", "status"))
    known = environment(agent, place)
    bare = {name: known[name] for name in ("HOME", "PATH", "TMPDIR", "LANG")}
    daemon = subprocess.Popen(
        [BIN / "tacit", "daemon"], env=bare, cwd=place.home, stdout=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: "The daemon" in tacit(agent, place, "daemon", "status"))
        yield
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(60)


def _undo(agent: Agent, place: Place, told: str) -> bool:
    """Type the command that the notice names; whether the skill is gone."""
    words = told.partition("tacit undo ")[2].split()
    if not words:
        return False
    tacit(agent, place, "undo", words[0].strip(".,;·)`"))
    return not _skill(place).exists()


def wait_until(done: Callable[[], bool], limit: float = LIMIT) -> float | None:
    """Look on; seconds until it was so, or None."""
    started = time.monotonic()
    while (passed := time.monotonic() - started) < limit:
        if done():
            return passed
        time.sleep(0.2)
    return None


def _shows(requests: list[Request]) -> bool:
    return any(request.mentions(SIGN) for request in requests)


def _skill(place: Place) -> Path:
    return place.home / ".agents/skills" / NAME / "SKILL.md"


def inbox(agent: Agent, place: Place) -> list[str]:
    """The ids of what waits there."""
    found = msgspec.json.decode(tacit(agent, place, "inbox", "--json"))["proposals"]
    return [proposal["id"] for proposal in found if proposal["state"] == "waiting"]


def _calls(agent: Agent, place: Place) -> int:
    rows = msgspec.json.decode(tacit(agent, place, "sessions", "--json"))["sessions"]
    return max((row["calls"] for row in rows), default=0)


def worker_log(place: Place) -> str:
    file = data_of(place) / "worker.log"
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def long_enough(learned: Learned) -> Verdict:
    """All calls were made, and counted."""
    good = learned.calls >= CALLS
    return Verdict(good, str(learned.calls), "" if good else f"fewer than {CALLS}")


def reviewed(learned: Learned) -> Verdict:
    """Without another command, a skill was there some time after the session."""
    if learned.reviewed is None:
        return Verdict(False, "no", f"the worker's log: {learned.log.strip()[-600:]!r}")
    return Verdict(True, f"{learned.reviewed:.1f} s")


def announced(learned: Learned) -> Verdict:
    """One line says what was learned, how to see it and how to undo it."""
    missing = [part for part in (NAME, "tacit undo") if part not in learned.told]
    return _said(not missing, f"{missing} is not in {learned.told!r}")


def seen_next(learned: Learned) -> Verdict:
    """The next session is shown the skill, and none before it was."""
    if learned.early:
        return Verdict(False, "no", "it was shown before it was learned")
    return _said(learned.seen, "it is not in what the model was sent")


def undone(learned: Learned) -> Verdict:
    """The command in the notice takes it away."""
    return _said(learned.undone, "it is still there")


def drafted(learned: Learned) -> Verdict:
    """With no model, a draft waits in the inbox, marked as one."""
    if learned.draft is None:
        return Verdict(None, "-")
    if not learned.draft:
        return Verdict(False, "no", f"the worker's log: {learned.log.strip()[-600:]!r}")
    return _said("draft: 'true'" in learned.draft, f"it is not marked as one: {learned.draft}")


def _said(good: bool, why: str) -> Verdict:
    return Verdict(True, "yes") if good else Verdict(False, "no", why)


LEARNING: list[tuple[str, Callable[[Learned], Verdict]]] = [
    ("calls", long_enough),
    ("learned after", reviewed),
    ("announced", announced),
    ("seen next", seen_next),
    ("undone", undone),
    ("draft without a model", drafted),
]


def homes_end(base: Path) -> None:
    """End the workers that the homes still have, so that the homes can be taken away."""
    for lock in base.glob("*/*/.local/share/tacit/worker.lock"):
        try:
            os.kill(msgspec.json.decode(lock.read_bytes())["pid"], signal.SIGTERM)
        except (OSError, msgspec.DecodeError, KeyError):
            continue
