"""What the tests of the library share: putting skills on the disk, and time that has passed."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

Put = Callable[..., Path]


@pytest.fixture
def put() -> Put:
    """`put(folder, name=…, description=…, body=…, text=…)` writes a SKILL.md; returns `folder`."""

    def write(
        folder: Path,
        name: str | None = None,
        description: str = "Does a thing. Use when it must be done.",
        body: str = "# Title\n\nDo it.\n",
        text: str | bytes | None = None,
        file: str = "SKILL.md",
        head: str = "",
    ) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        if text is None:
            name = folder.name if name is None else name
            text = f"---\nname: {name}\ndescription: {description}\n{head}---\n\n{body}"
        data = text.encode() if isinstance(text, str) else text
        (folder / file).write_bytes(data)
        return folder

    return write


@pytest.fixture
def user_skills(home: Path) -> Path:
    """The user's own skills folder, empty."""
    folder = home / ".agents" / "skills"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a repository, which is also the working directory."""
    folder = home / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """After a call, the index's clock runs ten seconds ahead: what was written is old by then."""
    from tacit.skills import index

    def jump() -> None:
        monkeypatch.setattr(index, "now", lambda: time.time_ns() + 10_000_000_000)

    return jump
