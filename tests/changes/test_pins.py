"""Pinned skills come first in what a model is told."""

from pathlib import Path

from tacit import Gate, Library, acting_as, make_change
from tacit.changes.change import Create, Pin, Unpin
from tacit.changes.pins import pinned_skills
from tacit.changes.place import user_place

_SKILL = """---
name: {name}
description: About {name} and its many uses.
---
Do {name}.
"""


def test_pinned_skills_lead_the_catalogue(home: Path) -> None:
    """A pinned skill is listed before others that would come first by name; unpinned, no longer."""
    assert pinned_skills() == ()
    gate = Gate([user_place()])
    with acting_as("user"):
        for name in ("alpha-work", "zulu-work"):
            files = {"SKILL.md": _SKILL.format(name=name).encode()}
            create = make_change(name, Create(files), overrides=("near-duplicate",))
            assert gate.propose(create).applied
        assert gate.propose(make_change("zulu-work", Pin())).applied
    assert pinned_skills() == ("zulu-work",)
    assert Library().catalogue(pinned=pinned_skills()).shown[0] == "zulu-work"
    with acting_as("user"):
        assert gate.propose(make_change("zulu-work", Unpin())).applied
    assert Library().catalogue(pinned=pinned_skills()).shown[0] == "alpha-work"
