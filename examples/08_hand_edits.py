"""A machine and a person work on one skill, and nobody's line is lost."""

from pathlib import Path

from tacit import Create, Gate, Rewrite, acting_as, make_change

LINES = """---
name: review
description: How we review a change. Use before approving one.
metadata:
  source: auto-skill
---

Read the description first.

Run it.

Say one good thing.
"""

gate = Gate()
gate.propose(make_change("review", Create({"SKILL.md": LINES.encode()}), actor="reviewer"))
seen = gate.state_of("review")  # what the machine read, and the version to name as its base
file = Path(gate.open_place().place.root) / "review" / "SKILL.md"
file.write_text(file.read_text().replace("Say one good thing.", "Say two good things."))

new = LINES.replace("Run it.", "Run it, and its tests.")
base = seen.head.id if seen.head else ""
rewrite = Rewrite({"SKILL.md": new.encode()})
print(gate.propose(make_change("review", rewrite, actor="reviewer", base=base)).explain())
print(file.read_text())
with acting_as("user"):
    for version in gate.open_place().history.log("review"):
        print(version.record.kind, "by the", version.record.actor)
    print(gate.rollback("review").explain())
