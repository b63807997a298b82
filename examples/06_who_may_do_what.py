"""A refusal is a value: which rule, why, and what to do instead."""

from tacit import Archive, Create, Edit, Gate, WriteFile, make_change


def text(name: str, body: str, *, learned: bool = False) -> bytes:
    mark = "metadata:\n  source: auto-skill\n" if learned else ""
    return f"---\nname: {name}\ndescription: How to {name}.\n{mark}---\n\n{body}\n".encode()


gate = Gate()
own = Create({"SKILL.md": text("mine", "My own way of doing things.")})
learned = Create({"SKILL.md": text("learned", "Found out in a session.", learned=True)})
attempts = [
    make_change("mine", own, actor="user"),
    make_change("learned", learned, actor="reviewer", evidence=("trace-42",)),
    make_change("learned", Edit("Found out", "Worked out"), actor="improver"),
    make_change("mine", Edit("My own way", "A better way"), actor="reviewer"),
    make_change("mine", Edit("My own way", "A better way"), actor="improver"),
    make_change("learned", Archive(), actor="reviewer"),
    make_change("learned", WriteFile("../outside.md", b"x"), actor="reviewer"),
    make_change("learned", Edit("Fuond out", "Worked out"), actor="user"),
]
for change in attempts:
    verdict = gate.propose(change)
    operation = type(change.operations[0]).__name__
    print(f"{change.actor:9} {operation:9} {change.skill:8} {verdict.explain()}")
