"""The smallest change: make a skill, edit it, take the edit back."""

from tacit import Create, Edit, Gate, acting_as, make_change

SKILL = b"""---
name: release-notes
description: Write release notes from the commits since the last tag. Use before a release.
---

List the commits since the last tag. Group them by what a user notices.
"""

with acting_as("user"):
    gate = Gate()  # the project's skills, the user's, and every other folder that is read
    made = gate.propose(make_change("release-notes", Create({"SKILL.md": SKILL})))
    print(made.explain())
    edit = Edit("by what a user notices", "by feature, fix and breaking change")
    edited = gate.propose(make_change("release-notes", edit, reason="the team's order"))
    print(edited.explain(), edited.version[:12])
    print(gate.undo(edited.change).explain())
    for version in gate.open_place().history.log("release-notes"):
        print(version.id[:12], version.record.kind, version.record.actor, version.record.reason)
