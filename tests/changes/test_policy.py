"""Who may do what: the whole table, as words and through the gate."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tacit.base.display import estimate_tokens
from tacit.changes import policy
from tacit.changes.change import (
    ACTORS,
    Archive,
    Create,
    Delete,
    Edit,
    File,
    MergeInto,
    Pin,
    RemoveFile,
    Rename,
    Restore,
    Rewrite,
    Unpin,
    WriteFile,
    make_change,
)
from tacit.changes.gate import Gate
from tacit.changes.neighbours import Neighbour, NoNeighbours
from tacit.changes.place import Place
from tacit.changes.policy import ORIGINS, SKILL_RULES
from tacit.skills.skill import Skill

# y: at once   a: asks first   p: proposes to the inbox   c: a copy in the user's scope   -: never
MATRIX = """
actor      act      user  learned  bundled  installed  scheduled
user       create   y     y        -        -          y
user       edit     y     y        c        c          y
user       rename   y     y        -        -          y
user       archive  y     y        -        y          y
user       restore  y     y        -        y          y
user       merge    y     y        -        y          y
user       delete   y     y        -        y          y
user       pin      y     y        -        y          y
agent      create   y     y        -        -          y
agent      edit     a     y        c        c          a
agent      rename   a     a        -        -          a
agent      archive  a     a        -        a          a
agent      restore  a     a        -        a          a
agent      merge    a     a        -        a          a
agent      delete   a     a        -        a          a
agent      pin      -     -        -        -          -
reviewer   create   -     y        -        -          -
reviewer   edit     -     y        -        -          -
reviewer   rename   -     -        -        -          -
reviewer   archive  -     -        -        -          -
reviewer   restore  -     -        -        -          -
reviewer   merge    -     -        -        -          -
reviewer   delete   -     -        -        -          -
reviewer   pin      -     -        -        -          -
improver   create   -     -        -        -          -
improver   edit     p     y        -        -          p
improver   rename   -     -        -        -          -
improver   archive  -     -        -        -          -
improver   restore  -     -        -        -          -
improver   merge    -     -        -        -          -
improver   delete   -     -        -        -          -
improver   pin      -     -        -        -          -
curator    create   -     y        -        -          -
curator    edit     -     y        -        -          -
curator    rename   -     -        -        -          -
curator    archive  -     y        -        -          -
curator    restore  -     y        -        -          -
curator    merge    -     y        -        -          -
curator    delete   -     -        -        -          -
curator    pin      -     -        -        -          -
distiller  create   -     y        -        -          -
distiller  edit     p     y        -        -          p
distiller  rename   -     -        -        -          -
distiller  archive  -     -        -        -          -
distiller  restore  -     -        -        -          -
distiller  merge    -     -        -        -          -
distiller  delete   -     -        -        -          -
distiller  pin      -     -        -        -          -
"""
LETTERS = {"y": "allow", "a": "ask", "p": "propose", "c": "copy", "-": "refuse"}


def rows() -> list[tuple[str, str, str, str]]:
    head, *lines = MATRIX.strip().split("\n")
    origins = head.split()[2:]
    return [
        (actor, act, origin, LETTERS[letter])
        for actor, act, *letters in (line.split() for line in lines)
        for origin, letter in zip(origins, letters, strict=True)
    ]


def test_matrix_is_whole() -> None:
    """The table in this file has every actor, act and origin exactly once."""
    acts = {"create", "edit", "rename", "archive", "restore", "merge", "delete", "pin"}
    keys = [row[:3] for row in rows()]
    assert len(keys) == len(set(keys)) == len(ACTORS) * len(acts) * len(ORIGINS) == 240
    assert {key[0] for key in keys} == set(ACTORS)
    assert {key[1] for key in keys} == acts


@pytest.mark.parametrize(("actor", "act", "origin", "expected"), rows())
def test_decision(actor: Any, act: Any, origin: Any, expected: str) -> None:
    """Each cell is decided as the table says, and a pinned skill is the user's alone."""
    pinned = expected if actor == "user" else "refuse"
    assert SKILL_RULES.decide(actor, act, origin) == expected
    assert SKILL_RULES.decide(actor, act, origin, pinned=True) == pinned


@pytest.mark.parametrize(("actor", "act", "origin", "expected"), rows())
def test_refusal_is_words(actor: Any, act: Any, origin: Any, expected: str) -> None:
    """Each refusal names the rule, the actor and the skill."""
    if expected == "refuse":
        words = SKILL_RULES.refusal(actor, act, origin, "notes", pinned=False)
        assert words.rule == f"{actor}-{act}-{origin}"
        assert actor in words.reason
        assert "notes" in words.reason


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "create": lambda base: None,
    "edit": lambda base: Edit("step by step", "at once"),
    "rewrite": lambda base: Rewrite({"SKILL.md": b""}),
    "write-file": lambda base: WriteFile("references/new.md", b"new\n"),
    "remove-file": lambda base: RemoveFile("references/old.md"),
    "rename": lambda base: Rename("other"),
    "archive": lambda base: Archive(),
    "restore": lambda base: Restore(),
    "merge": lambda base: MergeInto("into"),
    "delete": lambda base: Delete(),
    "pin": lambda base: Pin(),
    "unpin": lambda base: Unpin(),
}
ACTS = {"rewrite": "edit", "write-file": "edit", "remove-file": "edit", "unpin": "pin"}
"""Which column of the table an operation falls under, where that has another name."""
OUTCOMES = {
    "allow": "applied",
    "ask": "proposed",
    "propose": "proposed",
    "copy": "copied",
    "refuse": "refused",
}


def skill_text(name: str, origin: str) -> bytes:
    source = {"learned": "auto-skill", "scheduled": "scheduled"}.get(origin)
    mark = f"metadata:\n  source: {source}\n" if source else ""
    head = f"name: {name}\ndescription: What {name} does.\n{mark}"
    return f"---\n{head}---\n\nDo it step by step.\n".encode()


class World:
    """One skills folder of each kind, with a skill `one` in it, and a gate over it."""

    def __init__(self, folder: Path, origin: str, *, archived: bool) -> None:
        scope: Any = {"bundled": "bundled", "installed": "extra"}.get(origin, "user")
        self.root, self.own = folder / "skills", folder / "own"
        for path in (self.root / (".archive" if archived else ".") / "one", self.root / "into"):
            (path / "references").mkdir(parents=True)
            (path / "SKILL.md").write_bytes(skill_text(path.name, origin))
            (path / "references" / "old.md").write_text("old\n")
        places = [Place(str(self.root), scope), Place(str(self.own), "user")]
        self.gate = Gate(places, neighbours=Two(), scanner=silent, data=str(folder / "data"))

    def outcome(self, change: Any) -> str:
        verdict = self.gate.propose(change)
        if verdict.applied and (self.own / "one").exists():
            return "copied"
        if verdict.refused:
            assert verdict.refusal is not None
            assert verdict.refusal.step == "policy", verdict
        return verdict.outcome


class Report:
    findings = ()


def silent(files: Any, *, learned: bool, executable: Any = ()) -> Report:
    return Report()


class Two(NoNeighbours):
    """Knows two learned skills, so that a curator has something to put under an umbrella."""

    def find(self, name: str, root: str = "") -> Any:
        return Neighbour(name, "elsewhere", name, "learned") if name in ("a", "b") else None


@pytest.mark.parametrize("actor", ACTORS)
@pytest.mark.parametrize("origin", ORIGINS)
def test_gate_obeys_table(actor: Any, origin: Any, tmp_path: Path) -> None:
    """The gate does what the table says, for every operation by every actor on every origin."""
    for number, (name, make) in enumerate(OPERATIONS.items()):
        world = World(tmp_path / str(number), origin, archived=name == "restore")
        base = ""
        if name in ("rewrite", "remove-file"):
            head = world.gate.state_of("one").head
            base = head.id if head else ""
        operation, skill = make(base), "one"
        if name == "create":
            skill = "fresh"
            operation = Create({"SKILL.md": skill_text(skill, origin)}, absorbs=("a", "b"))
        elif name == "rewrite":
            text = skill_text("one", origin).replace(b"step by step", b"anew")
            operation = Rewrite({"SKILL.md": text})
        elif name == "unpin" and actor == "user" and origin != "bundled":
            assert world.gate.propose(make_change("one", Pin(), actor="user")).applied
        act: Any = ACTS.get(name, name)
        expected = OUTCOMES[SKILL_RULES.decide(actor, act, origin)]
        before = sorted(str(path) for path in world.root.rglob("*"))
        change = make_change(skill, operation, actor=actor, base=base, root=str(world.root))
        assert world.outcome(change) == expected, (actor, origin, name)
        if expected != "applied":
            assert sorted(str(path) for path in world.root.rglob("*")) == before


def test_a_name_that_only_looks_new_is_taken(tmp_path: Path) -> None:
    """A name of Cyrillic letters that reads as one that is there is not a new one."""

    class Known(NoNeighbours):
        def find(self, name: str, root: str = "") -> Any:
            return Neighbour(name, "elsewhere", name, "user") if name == "copy-a" else None

    world = World(tmp_path, "user", archived=False)
    gate = Gate([Place(str(world.root))], neighbours=Known(), data=str(tmp_path / "data"))
    for name, expected in (("сору-а", "exists"), ("копия", "")):
        create = Create({"SKILL.md": skill_text(name, "learned")})
        refusal = gate.preview(make_change(name, create, actor="reviewer")).refusal
        assert (refusal.rule if refusal else "") == expected


@pytest.mark.parametrize(
    ("actor", "expected"), [("curator", "scheduled"), ("agent", "scheduled"), ("user", "")]
)
def test_what_a_schedule_runs_is_kept(actor: Any, expected: str, home: Path) -> None:
    """A skill that a schedule runs is archived by the user alone; a machine is told why not."""
    from tacit.changes.change import Archive, Create, make_change
    from tacit.changes.gate import Gate
    from tacit.changes.place import user_place
    from tacit.skills.library import SCHEDULE_FILE, scheduled_folder

    text = (
        b"---\nname: standup\ndescription: Stand up.\nmetadata:\n  source: auto-skill\n---\n\nGo.\n"
    )
    gate = Gate([user_place()], neighbours=NoNeighbours())
    assert gate.propose(make_change("standup", Create({"SKILL.md": text}), actor="user")).applied
    binding = Path(scheduled_folder(), "daily-1a2b3c4d", SCHEDULE_FILE)
    binding.parent.mkdir(parents=True)
    binding.write_text('{"skills": ["standup"], "zone": "UTC"}')
    verdict = gate.propose(make_change("standup", Archive(), actor=actor))
    assert (verdict.refusal.rule if verdict.refusal else "") == expected
    if expected:
        assert verdict.refusal is not None
        assert "daily-1a2b3c4d" in verdict.refusal.reason
        assert "tacit schedule edit daily-1a2b3c4d" in verdict.refusal.hint


def rules(body: str = "x", description: str = "d", **files: bytes) -> list[str]:
    skill = Skill(name="a", description=description, body=body)
    contents = {path: File(data) for path, data in files.items()}
    return [found.rule for found in policy.check_size(contents, skill)]


def test_limits_are_exact() -> None:
    """At the limit is allowed, one over is not."""
    assert rules("x\n" * 499) == []
    assert rules("x\n" * 500) == ["long-body"]
    assert rules("x" * 20_000) == []
    assert rules("x" * 20_004) == ["heavy-body"]
    assert rules(description="d" * 1024) == []
    assert rules(description="d" * 1025) == ["long-description"]
    assert rules(a=b"x" * 1024 * 1024) == []
    assert rules(a=b"x" * (1024 * 1024 + 1)) == ["heavy-skill"]
    assert rules(**{f"f{n}": b"" for n in range(50)}) == []
    assert rules(**{f"f{n}": b"" for n in range(51)}) == ["many-files"]


def test_estimate_says_that_it_is_one() -> None:
    """Scripts without spaces count more tokens a character, and the message says 'estimate'."""
    assert estimate_tokens("語" * 300) > estimate_tokens("a" * 300)
    skill = Skill(name="a", description="d", body="x" * 30_000)
    (found,) = policy.check_size({}, skill)
    assert "estimate" in found.reason
    assert policy.sizes({}, skill)["heavy-body"] == estimate_tokens(skill.body)
