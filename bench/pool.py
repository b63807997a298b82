"""The skills and queries that are measured: read from files, or made up.

The text of a pool is data from strangers. It is written to a temporary home and parsed, never
followed, run or kept.
"""

import functools
import gzip
import itertools
import json
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import msgspec

# A file that changed less than two seconds ago is not believed by the index.
_SETTLE = 2.5


class Skill(msgspec.Struct, frozen=True):
    """One row of a pool."""

    id: str
    text: str


class Query(msgspec.Struct, frozen=True):
    """A task, and the ids of the skills that serve it."""

    query: str
    want: list[str]


class Pool(msgspec.Struct, frozen=True):
    """What there is to measure with."""

    name: str
    skills: list[Skill]
    queries: list[Query]


def read(path: str, queries: str | None) -> Pool:
    """The pool in a file of JSON lines, compressed or not."""
    skills = [Skill(str(row["id"]), row["text"]) for row in _lines(path)]
    asked = [Query(row["query"], list(map(str, row["want"]))) for row in _lines(queries)]
    return Pool(os.path.basename(path), skills, asked)


def _lines(path: str | None) -> Iterator[dict[str, Any]]:
    if path is None:
        return
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rt") if compressed else open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


class Home:
    """A home folder with the first `count` skills of a pool in `~/.agents/skills`."""

    def __init__(self, folder: str, pool: Pool, count: int) -> None:
        self.folder = folder
        self.skills = os.path.join(folder, ".agents", "skills")
        self.cache = os.path.join(folder, ".cache", "tacit")
        self.count = count
        unpack(pool, count, self.skills)

    def file(self, number: int) -> str:
        return os.path.join(self.skills, str(number), "SKILL.md")


def unpack(pool: Pool, count: int, folder: str) -> None:
    """Write each skill to `<n>/SKILL.md`, counting from 1; made-up ones where the pool ends."""
    more = synthetic_skills(len(pool.skills), count)
    for number, skill in enumerate(itertools.chain(pool.skills[:count], more), 1):
        below = os.path.join(folder, str(number))
        os.makedirs(below)
        with open(os.path.join(below, "SKILL.md"), "wb") as file:
            file.write(skill.text.encode("utf-8", "surrogatepass"))
    time.sleep(_SETTLE)


# A made-up skill is about doing one thing to one kind of object with one tool. The words of its
# text are drawn by how often words are used (few often, most seldom), so that ranking has work.
_VERBS = "review migrate deploy debug profile document test refactor secure monitor translate plan"
_OBJECTS = (
    "pipeline invoice schema dashboard container webhook report notebook release changelog "
    "contract dataset endpoint workflow calendar cluster parser ledger survey thumbnail "
    "playlist roster inventory catalogue"
)
_TOOLS = (
    "kubernetes postgres terraform playwright ffmpeg pandas graphql redis latex ansible "
    "webpack sqlite blender stripe grafana rsync openssl jenkins gimp pytest"
)
_SYLLABLES = "ba co de fi gu ha jo ke li mo nu pa ro se ti vu wa xi yo ze bra cle dri flo"
_CHINESE = "数据库迁移部署测试报告发票安全监控文档翻译"


def synthetic(count: int = 5000, queries: int = 200) -> Pool:
    """A pool that is the same every time, and tasks of which the right skill is known."""
    skills = list(synthetic_skills(0, count))
    chosen = random.Random(7).sample(range(count), queries)
    return Pool("made up", skills, [_task(number, skills[number]) for number in chosen])


def synthetic_skills(first: int, end: int) -> Iterator[Skill]:
    """The made-up skills with these numbers; each depends on its number alone."""
    for number in range(first, end):
        dice = random.Random(number)
        verb, thing, tool = _topic(number)
        marks = _marks(number)
        about = f"{verb.capitalize()} a {thing} with {tool}, with care for {marks[0]}, {marks[1]}."
        lines = [
            "---",
            f"name: {verb}-{thing}-with-{tool}-{number}",
            f"description: {about} Use when somebody asks to {verb} the {thing}.",
            "---" if number % 50 else "metadata:\n  version: '1.2'\n---",
            f"# {verb.capitalize()} a {thing}",
        ]
        for section in range(dice.randint(2, 6)):
            lines.append(
                f"\n## Step {section + 1}: {dice.choice(marks)} {dice.choice(_words()[0])}\n"
            )
            for _ in range(dice.randint(2, 7)):
                own = (*marks, thing, tool, verb)
                lines.append(_line(dice, dice.randint(8, 20), own).capitalize() + ".")
        if number % 10 == 0:
            lines.append("".join(dice.choices(_CHINESE, k=12)))
        yield Skill(f"made-up-{number}", "\n".join(lines) + "\n")


def _task(number: int, skill: Skill) -> Query:
    """A page that has some words in common with a skill, and says much else."""
    dice = random.Random(-number - 1)
    verb, thing, tool = _topic(number)
    lines = [f"# Task: we need to {verb} our {thing}", ""]
    for _ in range(4):
        lines.append("- " + _line(dice, 12, (*_marks(number), tool)))
        lines.append("- " + _line(dice, 12, _marks(dice.randrange(5000))))
        lines.append("- " + _line(dice, 12, _topic(dice.randrange(5000))))
    return Query("\n".join(lines), [skill.id])


def _topic(number: int) -> tuple[str, str, str]:
    dice = random.Random(number * 31 + 5)
    verbs, things, tools = _VERBS.split(), _OBJECTS.split(), _TOOLS.split()
    return dice.choice(verbs), dice.choice(things), dice.choice(tools)


def _marks(number: int) -> tuple[str, ...]:
    """Words that a skill shares with some dozens of others."""
    dice = random.Random(number * 17 + 3)
    syllables = _SYLLABLES.split()
    return tuple("".join(dice.choices(syllables, k=2)) for _ in range(4))


def _line(dice: random.Random, length: int, own: tuple[str, ...]) -> str:
    """Words of the language, with one of the skill's own among them."""
    words, weights = _words()
    drawn = dice.choices(words, cum_weights=weights, k=length)
    drawn[dice.randrange(length)] = dice.choice(own)
    return " ".join(drawn)


@functools.cache
def _words() -> tuple[list[str], list[float]]:
    """A language of 4,000 words, and how often each is used, added up."""
    dice = random.Random(1)
    syllables = _SYLLABLES.split()
    words = ["".join(dice.choices(syllables, k=dice.randint(1, 4))) for _ in range(4000)]
    return words, list(itertools.accumulate(1 / (rank + 10) for rank in range(4000)))
