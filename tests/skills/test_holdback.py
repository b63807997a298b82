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


def test_what_another_agents_session_tells_is_kept(home: Path) -> None:
    """While it tells the same; what changes, and one that was there before, is on neither side."""
    told = {"offered": {"a": "1", "b": "1"}, "held": {"c": "1"}}
    holdback.keep_told("pi:1", [told, told], is_new=True)
    assert holdback.drawn_by("pi:1") == Holdback("pi:1", told["offered"], told["held"])
    later = {"offered": {"a": "1", "b": "2", "c": "1", "d": "1"}, "held": {}}
    holdback.keep_told("pi:1", [later], is_new=False)
    holdback.keep_told("pi:1", [told], is_new=False)
    assert holdback.drawn_by("pi:1") == Holdback("pi:1", {"a": "1"}, {})
    holdback.keep_told("pi:2", [told], is_new=False)
    holdback.keep_told("pi:3", ["nonsense", {"held": 3}, {"offered": {}}], is_new=True)
    assert holdback.drawn_by("pi:2") == holdback.drawn_by("pi:3") == Holdback()


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
