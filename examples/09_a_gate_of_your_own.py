"""Full control: one folder, your own rules for asking, a check and a data folder of your own."""

import tempfile
from pathlib import Path
from typing import Literal

from tacit import (
    Applied,
    Create,
    Edit,
    Effect,
    Gate,
    NoNeighbours,
    Place,
    Refusal,
    bus,
    check_changes,
    make_change,
    register_check,
)

SKILL = b"---\nname: greet\ndescription: Greet somebody by name.\n---\n\nSay hello.\n"


@register_check
def no_shouting(effect: Effect) -> list[Refusal]:
    """Asked by every gate of this process, after the gate's own steps."""
    loud = [path for path, file in effect.new.items() if b"!!!" in file.data]
    return [Refusal("check", "shouting", f"{path} is too loud", "hush") for path in loud]


def ask(effect: Effect, asks: tuple[Refusal, ...]) -> Literal["yes", "later"]:
    """Stands for a dialog: consents to small changes, leaves the rest for later."""
    print("asked:", asks[0].reason)
    return "yes" if len(effect.new["SKILL.md"].data) < 500 else "later"


with tempfile.TemporaryDirectory() as folder:
    gate = Gate(
        [Place(str(Path(folder) / "skills"))],
        neighbours=NoNeighbours(),
        approver=ask,
        always_ask=("reviewer", "distiller"),
        data=str(Path(folder) / "data"),
    )
    with bus.listening(Applied, lambda event: print("landed:", event.kind, event.change.skill)):
        gate.propose(make_change("greet", Create({"SKILL.md": SKILL}), actor="user"))
        gate.propose(make_change("greet", Edit("hello", "good day"), actor="agent"))
        loud = gate.propose(make_change("greet", Edit("good day", "HELLO!!!"), actor="user"))
        print(loud.explain())
    for finding in check_changes(gate):
        print(finding.code, finding.what)
    gate.open_place().history.pack()
