"""What waits for a person: look at it, accept it, or turn it down for good."""

from tacit import Create, Edit, Gate, make_change

SKILL = b"""---
name: deploy
description: Deploy the service. Use when asked to ship, release or deploy.
---

Run the tests.

Push the tag.

Watch the dashboard for ten minutes.
"""

gate = Gate()
gate.propose(make_change("deploy", Create({"SKILL.md": SKILL}), actor="user"))
for old, new in (
    ("Push the tag.", "Push the tag, and tell the channel."),
    ("Watch the dashboard for ten minutes.", "Watch the dashboard for an hour."),
):
    gate.propose(
        make_change("deploy", Edit(old, new), actor="improver", reason="seen in 3 sessions")
    )

first, second = gate.inbox.waiting()
print(gate.preview(first.change).diff)
print(gate.accept(first).explain())
gate.reject(second, "nobody has an hour")

again = Edit("Watch the dashboard for ten minutes.", "Watch the dashboard for an hour!")
print(gate.propose(make_change("deploy", again, actor="improver")).explain())
head = gate.open_place().history.head("deploy")
if head is not None:
    print(f"by the {head.record.actor}, approved by the {head.record.approved_by}")
