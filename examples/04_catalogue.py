"""Full control: settings of your own, another folder, a prompt block in your own order."""

import tempfile
from pathlib import Path

from tacit import Library, Settings, SkillSettings

with tempfile.TemporaryDirectory() as folder:
    skill = Path(folder) / "team-review"
    skill.mkdir()
    (skill / "SKILL.md").write_text(
        "---\nname: team-review\ndescription: How this team reviews.\n---\nTwo people look.\n"
    )
    settings = Settings(skills=SkillSettings(paths=(folder,), hosts=False))
    library = Library(cwd=folder, settings=settings)
    block = library.catalogue(budget=2000, pinned=["team-review"])
    print(block.text)
    print(f"shown: {', '.join(block.shown)}; {block.more} more")
