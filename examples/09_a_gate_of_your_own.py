"""Full control: one folder, your own rules for asking, your own scan, your own data folder."""

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from tacit import Gate, Place, make_change
from tacit.base.event_bus import bus
from tacit.changes import change_checks
from tacit.changes.change import Applied, Create, Edit, Refusal
from tacit.changes.effect import Effect
from tacit.changes.gate_steps import Answer
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.scan import scan
from tacit.changes.scan.scan_report import Finding, Report

SKILL = b"---\nname: greet\ndescription: Greet somebody by name.\n---\n\nSay hello.\n"


def house_scan(
    files: Mapping[str, bytes], *, learned: bool, executable: Collection[str] = ()
) -> Report:
    """The usual scan, and one rule more."""
    report = scan(files, learned=learned, executable=executable)
    shouting = [
        Finding(
            file=path, line=1, rule="shouting", severity="block", message="too loud", fix="hush"
        )
        for path, data in files.items()
        if b"!!!" in data
    ]
    return msgspec.structs.replace(report, findings=(*shouting, *report.findings))


def ask(effect: Effect, asks: tuple[Refusal, ...]) -> Answer:
    """Stands for a dialog: consents to small changes, leaves the rest for later."""
    print("asked:", asks[0].reason)
    return "yes" if len(effect.new["SKILL.md"].data) < 500 else "later"


with tempfile.TemporaryDirectory() as folder:
    gate = Gate(
        [Place(str(Path(folder) / "skills"))],
        neighbours=NoNeighbours(),
        approver=ask,
        always_ask=("reviewer", "distiller"),
        scanner=house_scan,
        data=str(Path(folder) / "data"),
    )
    with bus.listening(Applied, lambda event: print("landed:", event.kind, event.change.skill)):
        gate.propose(make_change("greet", Create({"SKILL.md": SKILL}), actor="user"))
        gate.propose(make_change("greet", Edit("hello", "good day"), actor="agent"))
        loud = gate.propose(make_change("greet", Edit("good day", "HELLO!!!"), actor="user"))
        print(loud.explain())
    for finding in change_checks.check_changes(gate):
        print(finding.code, finding.what)
    gate.site().history.pack()
