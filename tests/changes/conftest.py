"""What the tests of the gate share: a skills folder, a gate over it, and skills to put in."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from tacit.changes.change import Change, Create, Verdict, make_change
from tacit.changes.gate import Gate
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.place import Place
from tacit.changes.scan import Finding, Report


def word_scan(
    files: Mapping[str, bytes], *, learned: bool, executable: Collection[str] = ()
) -> Report:
    """A scanner whose findings a test can choose by the words BLOCK, ASK and NOTE."""
    found = []
    for path, data in files.items():
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
            found.extend(
                _found(path, number, f"word-{word.lower()}", word.lower(), line)
                for word in ("BLOCK", "ASK", "NOTE")
                if word in line
            )
    if learned and executable:
        found.append(_found(next(iter(executable)), 0, "executable", "block", "a program"))
    return Report(tuple(found))


def _found(file: str, line: int, rule: str, severity: Any, message: str) -> Finding:
    return Finding(
        file=file, line=line, rule=rule, severity=severity, message=message, fix="take it out"
    )


def skill_md(name: str, body: str = "Do it step by step.\n", *, learned: bool = False) -> bytes:
    mark = "metadata:\n  source: auto-skill\n" if learned else ""
    return (
        f"---\nname: {name}\ndescription: What {name} does and when to use it.\n{mark}---\n\n{body}"
    ).encode()


class Kit:
    """A skills folder with a gate, and short ways to use both."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.root = folder / "skills"
        self.data = folder / "data"
        options = {
            "neighbours": NoNeighbours(),
            "scanner": word_scan,
            "data": str(self.data),
            **options,
        }
        self.options = options
        self.place = options.pop("place", None) or Place(str(self.root))
        self.gate = Gate([self.place], **options)
        self.opened = self.gate.open_place()
        self.history = self.opened.history

    md = staticmethod(skill_md)

    def propose(self, skill: str, *operations: Any, actor: Any = "user", **more: Any) -> Verdict:
        return self.gate.propose(make_change(skill, *operations, actor=actor, **more))

    def change(self, skill: str, *operations: Any, actor: Any = "user", **more: Any) -> Change:
        return make_change(skill, *operations, actor=actor, **more)

    def create(
        self,
        name: str,
        body: str = "Do it step by step.\n",
        *,
        learned: bool = False,
        **files: bytes,
    ) -> Verdict:
        """Make a skill as the user does."""
        more = {key.replace("__", "/"): value for key, value in files.items()}
        verdict = self.propose(
            name, Create({"SKILL.md": skill_md(name, body, learned=learned), **more})
        )
        assert verdict.applied, verdict
        return verdict

    def by_hand(self, name: str, body: str = "By hand.\n", *, learned: bool = False) -> Path:
        """Put a skill there past the gate."""
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_bytes(skill_md(folder.name, body, learned=learned))
        return folder

    def text(self, name: str, file: str = "SKILL.md") -> str:
        return (self.root / name / file).read_text()

    def kinds(self, name: str) -> list[str]:
        """The history of a skill, oldest first."""
        return [version.record.kind for version in self.history.log(name)][::-1]

    def names(self) -> list[str]:
        return sorted(path.name for path in self.root.iterdir() if not path.name.startswith("."))


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    return Kit(tmp_path)


@pytest.fixture
def make_kit(tmp_path: Path) -> Callable[..., Kit]:
    count = iter(range(1000))

    def make(**options: Any) -> Kit:
        folder = tmp_path / f"kit{next(count)}"
        folder.mkdir()
        return Kit(folder, **options)

    return make


def rule(verdict: Verdict) -> str:
    """The rule that refused, or the outcome."""
    return verdict.refusal.rule if verdict.refusal else verdict.outcome


@pytest.fixture(name="rule")
def rule_fixture() -> Callable[[Verdict], str]:
    return rule
