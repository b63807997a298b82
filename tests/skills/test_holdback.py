"""Skills left out by lot: drawn once a session, kept, and given back to whoever asks."""

import random
from pathlib import Path

from tacit.skills import holdback
from tacit.skills.holdback import Holdback
from tacit.skills.library import Library


def skills(home: Path, *names: str, learned: bool = True) -> None:
    for name in names:
        folder = home / ".agents" / "skills" / name
        folder.mkdir(parents=True)
        source = "metadata:\n  source: auto-skill\n" if learned else ""
        text = f"---\nname: {name}\ndescription: About {name}.\n{source}---\n\nx\n"
        (folder / "SKILL.md").write_text(text)


def test_only_learned_skills_are_drawn_for(home: Path) -> None:
    skills(home, *(f"learned-{n}" for n in range(40)))
    skills(home, "mine", learned=False)
    drawn = holdback.draw(Library(), 0.5, random.Random(1))
    assert len(drawn.offered | drawn.held) == 40
    assert 8 < len(drawn.held) < 32
    assert not holdback.draw(Library(), 0.0).held


def test_what_was_drawn_is_kept_and_released(home: Path) -> None:
    assert holdback.drawn_by("tacit:1") == Holdback()
    assert holdback.record("tacit:1", Holdback("", {"a": "1"}, {"b": "2", "c": "3"}))
    assert holdback.drawn_by("tacit:1") == Holdback("tacit:1", {"a": "1"}, {"b": "2", "c": "3"})
    holdback.release("tacit:1", ["b"])
    assert holdback.drawn_by("tacit:1").held == {"c": "3"}


def test_a_library_is_without_what_is_left_out(home: Path) -> None:
    """In its list, in its catalogue and in its search; and with it again."""
    skills(home, "alpha", "beta")
    library = Library()
    library.leave_out(["alpha"])
    assert library.find("alpha") is None
    assert library.find("beta") is not None
    assert "alpha" not in library.catalogue().text
    found = {hit.entry.name for hit in library.search("about alpha beta")}
    assert "alpha" not in found >= {"beta"}
    library.leave_out(())
    assert library.find("alpha") is not None
