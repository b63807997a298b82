"""The real app, driven by Textual's pilot, with the scripted server for a model."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("textual", reason="the extra 'tui' is not installed")
pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def project(home: Path) -> Path:
    """A trusted project with two skills of the user's; it is the working directory."""
    from tacit.base import trust

    folder = home / "work"
    (folder / ".git").mkdir()
    (folder / "README.md").write_text("hello\n")
    trust.add(str(folder))
    for name, about in (("tidy-up", "Put a desk in order."), ("ship-it", "Release a version.")):
        skill = home / ".agents" / "skills" / name
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: {about}\n---\n\nThe steps of {name}.\n"
        )
    return folder
