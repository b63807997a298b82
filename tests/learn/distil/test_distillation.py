"""A distillation from sessions to a proposed skill."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tacit.base import trust
from tacit.base.job import Job, JobResult
from tacit.changes.change import acting_as
from tacit.changes.gate import Gate
from tacit.changes.inbox import Inbox
from tacit.changes.place import project_place
from tacit.learn.distil import distillation
from tacit.learn.distil.distil_plan import DistilOptions, estimate, read_tasks
from tacit.learn.distil.distillation import DistilResult, Stopped, Threads
from tacit.learn.distil.evidence import evidence_file, skill_reasons
from tacit.learn.distil.support import open_lessons
from tacit.testing.sample_sessions import made, ran, used
from tacit.traces.store import Store

CHECKED = ["Fix the parser of dates", ran("mise run lint", "0 issues."), ran("mise run test", "ok")]
DEPLOYED = [
    "Deploy the service to production",
    ran("deploy.sh prod", "deploy.sh: unknown option: region is required", failed=True),
    ran("deploy.sh prod --eu", "deployed"),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / ".git").mkdir(parents=True)
    trust.add(str(folder))
    return folder


def store(project: Path, *sessions: Sequence[list], first: int = 0) -> list[str]:
    """Store sessions of the project; their ids."""
    with Store.open() as opened:
        traces = [
            made(*turns, session=f"s{number}", project=str(project))
            for number, turns in enumerate(sessions, first)
        ]
        for trace in traces:
            opened.write(trace)
    return [trace.id for trace in traces]


def distil(project: Path, family: Threads | None = None, **options: object) -> DistilResult:
    run = distillation.begin(DistilOptions(project=str(project), **options))
    return distillation.go_on(run, family or Threads(_never))


def _never(job: Job) -> JobResult:
    raise AssertionError("no model is asked")


def lines_of(result: DistilResult) -> list[str]:
    texts = [written.text for written in result.skills]
    return [line[2:] for text in texts for line in text.splitlines() if line.startswith("- ")]


def accept(project: Path) -> None:
    gate = Gate([project_place(str(project))])
    with acting_as("user"):
        for proposal in Inbox().waiting():
            assert gate.accept(proposal).applied


def test_many_sessions_become_a_skill(project: Path) -> None:
    """What several sessions show is a line; what one shows is kept for later, unless the user said
    that it lasts. The result waits in the inbox, by the distiller, with counts in its head."""
    store(
        project,
        [CHECKED],
        [CHECKED, DEPLOYED],
        [DEPLOYED],
        [["Look at the log", ran("mise run fmt", "")]],
        [["Go on", ran("ls")], ["no, never commit to main directly", ran("ls")]],
    )
    result = distil(project)
    lines = lines_of(result)
    assert "Check the work with `mise run lint`." in lines
    assert "`deploy.sh prod` fails as it is called; run `deploy.sh prod --eu`." in lines
    assert "“no, never commit to main directly” (the user's words)" in lines
    assert not any("mise run fmt" in line for line in lines)
    assert result.few >= 1
    (proposal,) = Inbox().waiting()
    assert (proposal.change.actor, proposal.change.skill) == ("distiller", "app-ways")
    head = result.skills[0].text.split("---")[1]
    assert "source: auto-skill" in head
    assert "support: 2" in head
    assert "s1" not in head


def test_support_is_counted_over_distinct_sessions(project: Path) -> None:
    """Several tasks of one session count once, and reading again changes no count."""
    ids = store(project, [CHECKED, DEPLOYED, CHECKED], [CHECKED], [CHECKED])
    for _ in range(2):
        distil(project)
        with open_lessons() as lessons:
            (lint,) = [one for one in lessons.all() if "mise run lint" in one.text]
            rows = lessons.rows(lint.id)
        assert lint.support.sessions == 3
        assert {row.session for row in rows} == set(ids)
        assert all(quote.text == "mise run lint" for row in rows for quote in row.quotes)


def test_a_later_run_reads_only_what_is_new(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Support grows by new sessions; the skill that is there gets edits and no twin."""
    store(project, [CHECKED], [CHECKED])
    distil(project)
    accept(project)
    ids = store(project, [CHECKED, DEPLOYED], [DEPLOYED], first=2)
    read: list[str] = []
    whole = Store.whole
    monkeypatch.setattr(Store, "whole", lambda self, name: read.append(name) or whole(self, name))
    result = distil(project)
    assert set(read) <= {*ids, "claude-code:s0", "claude-code:s1"}
    assert set(read[:2]) == set(ids), "only what is new is cut into tasks"
    (written,) = result.skills
    assert (written.skill, written.added) == ("app-ways", 1)
    with open_lessons() as lessons:
        assert {one.support.sessions for one in lessons.all() if "lint" in one.text} == {3}
    accept(project)
    assert distil(project).skills == (), "nothing new: nothing is proposed"


def test_what_a_person_turned_down_does_not_come_back(project: Path) -> None:
    """The lines of a rejected proposal, and a line that was taken out by hand, stay out."""
    store(project, [CHECKED], [CHECKED])
    distil(project)
    Inbox().close(Inbox().waiting()[0], "rejected", "no")
    store(project, [CHECKED, DEPLOYED], [DEPLOYED], first=2)
    result = distil(project)
    assert not any("mise" in line for line in lines_of(result))
    assert result.rejected == 2
    accept(project)
    (skill,) = (project / ".agents/skills").glob("*/SKILL.md")
    text = skill.read_text()
    skill.write_text("".join(o for o in text.splitlines(True) if "deploy.sh" not in o))
    store(project, [DEPLOYED], [["Ship it", ran("mise run e2e", "ok")]],
          [["Ship it again", ran("mise run e2e", "ok")]], first=4)  # fmt: skip
    assert not any("deploy.sh" in line for line in lines_of(distil(project)))


def test_a_line_that_was_followed_and_failed_is_taken_out(project: Path) -> None:
    """Where sessions had the skill and its command failed, its removal is proposed."""
    store(project, [CHECKED, DEPLOYED], [CHECKED, DEPLOYED])
    distil(project)
    accept(project)
    failed = ran("deploy.sh prod --eu", "deploy.sh: no such region", failed=True)
    turns = [["Deploy the service to production", used("app-ways"), failed]]
    store(project, turns, turns, first=2)
    result = distil(project)
    assert result.skills[0].removed == 1
    assert not any("deploy.sh" in line for line in lines_of(result))
    assert any("mise run lint" in line for line in lines_of(result))


def test_what_cannot_be_settled_goes_to_the_person(project: Path) -> None:
    """Both sides are shown with their counts, neither is written; an answer settles it."""
    one = ["Start", ran("x")], ["always use `pnpm test` for the tests", ran("x")]
    two = ["Start", ran("x")], ["never use `pnpm test` for the tests", ran("x")]
    store(project, one, two)
    result = distil(project)
    (conflict,) = result.conflicts
    assert {conflict.one_sessions, conflict.other_sessions} == {1}
    assert not any("pnpm" in line for line in lines_of(result))
    with open_lessons() as lessons:
        (found,) = lessons.conflicts()
        texts = {lesson.id: lesson.text for lesson in lessons.all()}
        lessons.settle(found.one, found.other, "by you", found.one)
    assert texts[found.one] in lines_of(distil(project))


def test_why_a_line_stands_there(project: Path) -> None:
    """For each line its sessions, steps and words; shared, only counts."""
    ids = store(project, [CHECKED], [CHECKED])
    distil(project)
    accept(project)
    gate = Gate([project_place(str(project))])
    root = project_place(str(project)).root
    with open_lessons() as lessons, Store.open() as opened:
        reasons = skill_reasons(gate, "app-ways", root, lessons, opened.whole)
        lint = next(r for r in reasons if "lint" in r.text)
        (only,) = skill_reasons(gate, "app-ways", root, lessons, opened.whole, lint.number)
        shared = evidence_file(lessons, "app-ways").decode()
    assert only == lint
    assert [(p.session, p.step, p.words) for p in lint.places] == [
        (name, "0.1", "mise run lint") for name in ids
    ]
    assert "2 sessions" in shared
    assert not any(name in shared for name in ids)


def test_sessions_about_a_task(project: Path) -> None:
    """With words only the tasks that they speak of are read."""
    store(project, [CHECKED, DEPLOYED], [DEPLOYED], [CHECKED])
    options = DistilOptions(words="deploy to production")
    with open_lessons() as lessons, Store.open() as opened:
        reading = read_tasks(opened, lessons, options)
    assert {task.asked for task in reading.tasks} == {DEPLOYED[0]}
    guess = estimate(reading, options)
    assert (guess.sessions, guess.tasks, guess.requests, guess.cost) == (2, 2, 0, 0.0)


def test_a_run_that_is_stopped_goes_on(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped in the middle, what was read is kept; the same options go on with the same run."""
    store(project, *([CHECKED] for _ in range(4)))
    options = DistilOptions(project=str(project))
    run = distillation.begin(options)

    def tell(progress: object) -> None:
        if getattr(progress, "analysed", 0) == 2:
            distillation.stop(run)

    with pytest.raises(Stopped):
        distillation.go_on(run, Threads(_never), tell=tell)
    with open_lessons() as lessons:
        assert sum(bool(method) for method in lessons.methods().values()) == 2
    assert distillation.begin(options) == run
    result = distillation.go_on(run, Threads(_never))
    assert result.read == 2
    with open_lessons() as lessons:
        assert {one.support.sessions for one in lessons.all()} == {4}
    assert distillation.begin(options) != run, "one that is over begins anew"
