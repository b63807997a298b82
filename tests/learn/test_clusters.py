"""Tasks of one kind."""

import random

from tacit.learn.clusters import cluster_tasks, nearest_tasks
from tacit.learn.segments import Segment

KINDS = {
    "release": ("cut a release and tag version", ("git tag", "npm publish"), ("CHANGELOG.md",)),
    "schema": ("write a database migration for the column", ("alembic upgrade",), ("schema.sql",)),
    "layout": ("center the sidebar of the settings page", ("npm run build",), ("sidebar.css",)),
}


def task(kind: str, number: int, project: str = "/p/app") -> Segment:
    asked, purposes, files = KINDS[kind]
    return Segment(
        session=f"s{kind}-{number}",
        number=1,
        start=0,
        stop=1,
        project=project,
        asked=f"{asked} {number}",
        purposes=purposes,
        files=files,
    )


def many(each: int = 6) -> list[Segment]:
    return [task(kind, n, f"/p/{n % 2}") for kind in KINDS for n in range(each)]


def test_tasks_of_one_kind_are_together() -> None:
    """By what was asked and done, across projects; each group says in words what it is."""
    found = cluster_tasks(many())
    assert sorted(len(cluster.members) for cluster in found) == [6, 6, 6]
    assert all(len({m.asked.split()[0] for m in c.members}) == 1 for c in found)
    release = next(c for c in found if "release" in c.label)
    assert "npm publish" in release.label
    assert release.shown().endswith("(6 tasks, 6 sessions, 2 projects)")


def test_somebody_who_mostly_does_one_thing() -> None:
    """What half of all tasks have in common is still what makes them one kind."""
    others = [
        Segment(session=f"o{n}", number=1, start=0, stop=1, asked=f"thing{n} about stuff{n}")
        for n in range(20)
    ]
    first = cluster_tasks([*(task("release", n) for n in range(20)), *others])[0]
    assert len(first.members) == 20


def test_the_order_does_not_matter() -> None:
    """The same tasks give the same groups, in whatever order they come."""
    tasks = many()
    shuffled = random.Random(4).sample(tasks, len(tasks))
    assert cluster_tasks(shuffled) == cluster_tasks(tasks)


def test_what_was_done_tells_where_words_do_not() -> None:
    """A request in other words belongs to those that were done with the same programs and files."""
    odd = Segment(
        session="odd", number=1, start=0, stop=1, asked="please do the usual thing",
        purposes=KINDS["release"][1], files=KINDS["release"][2],
    )  # fmt: skip
    (alike,) = (c.members for c in cluster_tasks([*many(), odd]) if odd in c.members)
    assert {member.session.partition("-")[0] for member in alike} == {"odd", "srelease"}


def test_a_task_like_no_other_is_alone() -> None:
    """It is not forced into a group."""
    odd = Segment(session="odd", number=1, start=0, stop=1, asked="translate a poem into Latin")
    assert (odd,) in [cluster.members for cluster in cluster_tasks([*many(), odd])]


def test_tasks_about_something() -> None:
    """Words find the tasks that speak of it, in what was asked and what was run."""
    found = nearest_tasks("database migrations", many())
    assert {t.session.partition("-")[0] for t in found} == {"sschema"}
    assert nearest_tasks("kubernetes", many()) == []
