"""Asking a model about one cluster of look-alikes: an agent in the closed room, and its broker.

The agent works on copies and says what is to be joined. When it is done, what that amounts to is
carried out on a copy of the library; what the gate refuses there goes back to the agent. Nothing
here changes a skill.
"""

from typing import Any

import msgspec

from tacit.agent.limits import Limits
from tacit.agent.tools.tool import Failed, Result
from tacit.base.sections import Settings
from tacit.changes.change import SKILL_FILE, new_id
from tacit.changes.files import programs, to_bytes
from tacit.changes.gate import Gate
from tacit.learn.background import room
from tacit.learn.background.staging import Edited, Staging
from tacit.learn.background.task import Ran, Task
from tacit.learn.curate.joining import Made, rehearse
from tacit.learn.curate.likeness import Cluster
from tacit.learn.curate.looking import Found
from tacit.learn.curate.prompts import prompt
from tacit.learn.curate.umbrellas import Consolidation, Umbrella
from tacit.learn.curate.world import World

_TRIES = 3
"""Times that a refusal goes back to the agent."""
_MOST_SHOWN = 24_000
"""Characters of the skills' own text in the first message; the rest is read by a tool."""


class Asked(msgspec.Struct, frozen=True):
    """What came of asking about a cluster."""

    plan: Consolidation | None
    rehearsed: Made | None
    """What the plan came to on a copy."""
    why: str
    """What is to be said about it."""
    later: bool
    """Whether it was not looked at, for want of a model, an answer or money."""


def ask(world: World, settings: Settings, cluster: Cluster, found: list[Found]) -> Asked:
    """Have an agent look at a cluster."""
    job = f"consolidate-{cluster.key}"
    staging = Staging.open(job, data=world.data)
    try:
        broker = _Broker(world, cluster, staging)
        task = Task(
            job=job,
            kind="curate",
            actor="curator",
            project=next((r.project for p, r in world.pairs if r.id == cluster.place), ""),
            staging=staging.path,
            instructions=prompt("umbrella"),
            message=_message(cluster, staging, found),
            toolset="tacit.learn.curate.tools:tools",
            limits=Limits(
                turns=settings.curate.turns,
                seconds=settings.curate.seconds,
                tokens=settings.learn.tokens,
                money=settings.learn.money,
                retries=settings.agent.retries,
            ),
        )
        ran = room.run(task, broker, settings)
        later = ran.reason in ("refused", "budget", "error")
        return Asked(broker.plan(ran), broker.rehearsed, broker.why(ran), later)
    finally:
        staging.discard()


class _Broker:
    """The parent's side: keeps what is to be joined, and rehearses it when the agent is done."""

    def __init__(self, world: World, cluster: Cluster, staging: Staging) -> None:
        self._world = world
        self._cluster = cluster
        self._staging = staging
        self._gate = Gate(world.places, data=world.data, clock=world.clock)
        self._names = {skill.rpartition("/")[2]: skill for skill in cluster.skills}
        self._joins: dict[str, tuple[tuple[str, ...], str]] = {}
        self._made: Consolidation | None = None
        self._refusals: list[str] = []
        self.rehearsed: Made | None = None
        for skill in cluster.skills:
            staging.copy_in(self._gate, skill, cluster.root)

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        if name != "join":
            raise Failed(f"there is nothing like '{name}' here")
        umbrella = str(arguments.get("umbrella", ""))
        absorbs = tuple(dict.fromkeys(map(str, arguments.get("absorbs") or ())))
        unknown = [skill for skill in absorbs if skill not in self._names]
        taken = [s for other, (own, _) in self._joins.items() if other != umbrella for s in own]
        if unknown:
            raise Failed(f"not among the skills you were given: {', '.join(unknown)}")
        if umbrella in absorbs or umbrella in taken:
            raise Failed(f"'{umbrella}' cannot be taken in and take in")
        if twice := sorted(set(absorbs) & set(taken) | set(absorbs) & set(self._joins)):
            raise Failed(f"is joined already: {', '.join(twice)}")
        if len(absorbs) < (1 if umbrella in self._names else 2):
            raise Failed("an umbrella takes in at least one other skill, a new one at least two")
        self._joins[umbrella] = (absorbs, " ".join(str(arguments.get("why", "")).split())[:500])
        return Result(
            f"'{umbrella}' will take in {', '.join(absorbs)}. Its text is checked at the end."
        )

    def finished(self, text: str) -> str | None:
        if not self._joins:
            return None
        try:
            plan = self._plan()
        except Failed as failed:
            return self._again(str(failed))
        made = rehearse(self._world, plan)
        if made.refused:
            return self._again("; ".join(made.refused))
        self._made, self.rehearsed = plan, made
        return None

    def plan(self, ran: Ran) -> Consolidation | None:
        """What came of it, where the agent came to its end and all of it can be done."""
        if self._made is None or not ran.is_done:
            return None
        return msgspec.structs.replace(self._made, model=ran.model)

    def why(self, ran: Ran) -> str:
        """What is to be said of a run that made no plan."""
        if self._made is not None and ran.is_done:
            return ""
        names = ", ".join(self._cluster.skills)
        if ran.reason != "done":
            return f"{names}: the look was not finished: {ran.error or ran.reason}"
        if self._refusals:
            return f"{names}: what was proposed was refused: {self._refusals[-1]}"
        return f"{names}: nothing to join. {' '.join(ran.text.split())[:300]}"

    def _again(self, refusal: str) -> str | None:
        self._refusals.append(refusal)
        if len(self._refusals) > _TRIES:
            return None
        return f"This cannot be done as it stands: {refusal}\nMend it, then end again."

    def _plan(self) -> Consolidation:
        """The plan that the copies and the joins amount to. Raises `Failed` with what is wrong."""
        if spoilt := self._staging.spoilt():
            raise Failed(f"'{spoilt[0].name}': {spoilt[0].refusal.reason}")
        edited = {edit.name: edit for edit in self._staging.changed()}
        if others := sorted(edited.keys() - self._joins.keys()):
            raise Failed(f"changed, but no umbrella: {', '.join(others)}; call join, or undo it")
        now = self._world.clock.now()
        umbrellas = [
            self._umbrella(name, absorbs, why, edited.get(name))
            for name, (absorbs, why) in self._joins.items()
        ]
        return Consolidation(
            id=new_id(now),
            at=now,
            place=self._cluster.place,
            umbrellas=tuple(umbrellas),
            key=self._cluster.key,
        )

    def _umbrella(
        self, name: str, absorbs: tuple[str, ...], why: str, edit: Edited | None
    ) -> Umbrella:
        if edit is None and name not in self._names:
            raise Failed(f"the umbrella '{name}' was not written")
        new = edit.new if edit is not None else {}
        old = edit.old if edit is not None else {}
        return Umbrella(
            skill=self._names.get(name, name),
            is_new=name not in self._names,
            absorbs=tuple(self._names[skill] for skill in absorbs),
            why=why or "they are much alike",
            files=to_bytes(new),
            executable=programs(new),
            base=edit.base if edit is not None else "",
            touched=tuple(sorted(p for p, file in new.items() if old.get(p) != file)),
        )


def _message(cluster: Cluster, staging: Staging, found: list[Found]) -> str:
    """The skills that are alike: their names, their use, and as much of their text as fits."""
    uses = {f.skill: f.uses for f in found if f.key[0] == cluster.place}
    parts = [f"These {len(cluster.skills)} skills are much alike:\n"]
    room_left = _MOST_SHOWN
    for name, copy in sorted(staging.copied().items()):
        others = sorted(path for path in copy.files if path != SKILL_FILE)
        listed = f"; other files: {', '.join(others)}" if others else ""
        parts.append(f"## {name} (used {uses.get(copy.skill, 0)} times{listed})\n")
        main = copy.files.get(SKILL_FILE)
        text = main.data.decode("utf-8", "replace") if main is not None else ""
        if len(text) <= room_left:
            room_left -= len(text)
            parts.append(f"<file>\n{text}\n</file>\n")
        else:
            parts.append("(read it with read_skill)\n")
    return "\n".join(parts)
