"""A library that can be aged: skills, uses on simulated days, and a clock that is moved by hand."""

from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from tacit.base import database
from tacit.base.setting_sections import Settings
from tacit.changes.change import Create, Edit, make_change
from tacit.changes.gate import Gate
from tacit.changes.neighbours import NoNeighbours
from tacit.changes.place import user_place
from tacit.learn.curate.curation import CurationReport, curate
from tacit.learn.curate.curation_records import CurationRecords
from tacit.learn.curate.curation_scope import default_scope
from tacit.testing import FakeClock
from tacit.traces.skill_uses import open_use_tables


def skill_md(name: str, *, learned: bool = True, body: str = "Do it.\n") -> bytes:
    mark = "metadata:\n  source: auto-skill\n" if learned else ""
    return f"---\nname: {name}\ndescription: What {name} is for.\n{mark}---\n\n{body}".encode()


class Library:
    """The user's skills, with short ways to use, edit and curate them."""

    def __init__(self, start: datetime | None = None) -> None:
        self.clock = FakeClock(start) if start else FakeClock()
        self.place = user_place()
        self.root = Path(self.place.root)
        self.gate = Gate([self.place], neighbours=NoNeighbours(), clock=self.clock)
        self.settings = Settings()

    def make(self, *names: str, learned: bool = True) -> None:
        for name in names:
            files = {"SKILL.md": skill_md(name, learned=learned)}
            assert self.propose(name, Create(files)).applied

    def put(self, *names: str, learned: bool = True) -> None:
        """Skills that Tacit never changed: quick, and without a history."""
        for name in names:
            (self.root / name).mkdir(parents=True)
            (self.root / name / "SKILL.md").write_bytes(skill_md(name, learned=learned))

    def propose(self, name: str, *operations, actor: str = "user"):
        return self.gate.propose(make_change(name, *operations, actor=actor))

    def edit(self, name: str) -> None:
        change = Edit("Do it", f"Do it on {self.clock.now():%j}, do it")
        assert self.propose(name, change).applied

    def use(self, *names: str, session: str = "s", project: str = "/p") -> None:
        at = self.clock.now().isoformat()
        with open_use_tables() as connection, database.transaction(connection):
            (turn,) = connection.execute("SELECT count(*) FROM uses").fetchone()
            connection.executemany(
                "INSERT INTO uses VALUES (?, ?, ?, '', 'model', ?, ?, 0, 0)",
                [(f"tacit:{session}", n, name, at, project) for n, name in enumerate(names, turn)],
            )

    def days(self, number: float) -> None:
        self.clock.advance(timedelta(days=number))

    def curate(self, **changed) -> CurationReport:
        settings = self.settings
        if changed:
            section = msgspec.structs.replace(settings.curate, **changed)
            settings = msgspec.structs.replace(settings, curate=section)
        return curate(self.scope(), settings)

    def weeks(self, number: int) -> list[CurationReport]:
        """So many weeks, with a curation at the end of each."""
        found = []
        for _ in range(number):
            self.days(7)
            found.append(self.curate())
        return found

    def scope(self, **more):
        return msgspec.structs.replace(default_scope(self.clock), **more)

    def states(self) -> dict[str, str]:
        connection = database.connect()
        try:
            return {
                skill: noted.state
                for (_, skill), noted in CurationRecords(connection).skills().items()
            }
        finally:
            connection.close()

    def live(self) -> set[str]:
        return {path.name for path in self.root.iterdir() if not path.name.startswith(".")}

    def archived(self) -> set[str]:
        archive = self.root / ".archive"
        if not archive.is_dir():
            return set()
        return {path.name for path in archive.iterdir() if not path.name.startswith(".")}

    def everything(self) -> dict[str, bytes]:
        """Every file of the skills folder, those of the archive too."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file() and path.name != ".gitignore"
        }
