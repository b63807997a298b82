"""What the tests of trials share: skills in the user's place, through the gate."""

from tacit.changes.change import Create, make_change
from tacit.changes.gate import Gate
from tacit.changes.place import user_place


def user_skill(name: str, *, learned: bool, body: str = "Do it.", about: str = "") -> str:
    """A skill with the user; the change that made it."""
    source = "metadata:\n  source: auto-skill\n" if learned else ""
    about = about or f"What {name} does."
    text = f"---\nname: {name}\ndescription: {about}\n{source}---\n\n{body}\n"
    place = user_place()
    change = make_change(name, Create({"SKILL.md": text.encode()}), actor="user", root=place.root)
    verdict = Gate([place]).propose(change)
    assert verdict.applied, verdict.explain()
    return verdict.change
