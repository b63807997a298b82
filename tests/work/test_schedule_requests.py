"""The agent's tools for schedules: what is missing is said, what is made is said back exactly."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.agent.tool import Context, Failed, Result, ToolOptions
from tacit.base import settings
from tacit.skills.library import Library, scheduled_folder
from tacit.work import schedule_store
from tacit.work.schedule_requests import TOOLS, preview

FULL = {
    "when": "every weekday 9:00",
    "task": "Read CHANGES.txt and sum up what is new in it.",
    "output": "Three lines at most, in plain words.",
    "name": "changes",
    "zone": "Europe/Paris",
}


async def _nobody(asked: object) -> None:
    return None


@pytest.fixture
def context(home: Path) -> Context:
    made = Context(
        str(home / "work"),
        str(home / "tmp"),
        library=Library(str(home / "work"), settings.load_settings().settings),
        sandbox=lambda: pytest.fail("no command is run"),
        ask=_nobody,
        options=ToolOptions(),
    )
    made.session = "20261115-120000-aaaaaaaa"
    made.approved_by_person = True
    made.user_words = ["Sum up the changes every weekday at nine; no, daily at 18; or at 10:00"]
    return made


def call(tool_name: str, context: Context, /, **arguments: Any) -> Result:
    (tool,) = (tool for tool in TOOLS if tool.name == tool_name)
    return asyncio.run(tool.run(tool.check(arguments), context))


def test_a_schedule_is_made_and_said_back(context: Context, home: Path) -> None:
    """The folder is there, recorded as the agent's, with three exact times and what it binds."""
    told = call("add_schedule", context, **FULL).text
    (schedule,) = schedule_store.listing()[0]
    assert schedule.name.startswith("changes-")
    assert len(schedule.name.rpartition("-")[2]) == 8
    assert told.count("  next: ") == 3
    assert "09:00 Europe/Paris (UTC+0" in told
    assert f"/sched-{schedule.name}" in told
    assert schedule.body.strip() == (
        "## Task\n\nRead CHANGES.txt and sum up what is new in it.\n\n"
        "## Output\n\nThree lines at most, in plain words."
    )
    assert schedule.binding.project == os.path.realpath(home / "work")
    history = schedule_store.open_gate().open_place().history
    head = history.head(schedule.name)
    assert head is not None
    assert (head.record.actor, head.record.session) == ("agent", context.session)
    assert schedule.name not in [entry.name for entry in Library().entries]


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ({"when": ""}, "`when`"),
        ({"task": ""}, "`task`"),
        ({"task": "x"}, "`task`"),
        ({"output": " "}, "`output`"),
    ],
)
def test_what_is_missing_is_said(context: Context, without: dict[str, str], said: str) -> None:
    """Without a time, a task or a form of output nothing is made, and the model is told to ask."""
    with pytest.raises(Failed) as caught:
        call("add_schedule", context, **FULL | without)
    assert said in str(caught.value)
    assert "ask_user" in str(caught.value)
    assert schedule_store.names() == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"when": "every morning"}, "not understood"),
        ({"when": "tomorrow"}, "no time of day"),
        ({"when": "61 * * * *"}, "bad minute"),
        ({"when": "2020-01-01 09:00"}, "in the past"),
        ({"zone": "Europe/Pariss"}, "did you mean Europe/Paris"),
        ({"skills": ["no-such-skill"]}, "there is no skill"),
        ({"deliver": ["command:rm -rf ~"]}, "for the user to set"),
        ({"deliver": ["webhook:https://evil.example"]}, "for the user to set"),
        ({"deliver": ["file:/etc/passwd"]}, "outside the project"),
        ({"deliver": ["file:../../x"]}, "outside the project"),
        ({"deliver": ["file:.git/config"]}, "obeyed by other programs"),
        ({"deliver": ["file:AGENTS.md"]}, "obeyed by other programs"),
    ],
)
def test_what_cannot_be_is_refused(context: Context, changed: dict[str, Any], said: str) -> None:
    """A bad time, zone, skill or place for output makes no schedule, and the model is told why."""
    with pytest.raises(Failed) as caught:
        call("add_schedule", context, **FULL | changed)
    assert said in str(caught.value)
    assert schedule_store.names() == []


@pytest.mark.parametrize("task", ["Call mom", "喝水", "standup"])
def test_short_tasks_are_tasks(context: Context, task: str) -> None:
    assert "made the schedule" in call("add_schedule", context, **FULL | {"task": task}).text


@pytest.mark.parametrize(
    ("words", "when", "passes"),
    [
        ("remind me to drink water", "every day 9:00", False),
        ("remind me to drink water", "every hour", False),
        ("check the mail hourly", "every hour", True),
        ("weekdays in the morning", "0 9 * * 1-5", False),
        ("weekdays at 9", "0 9 * * 1-5", True),
        ("每天早上九点喝水", "every day 9:00", True),
        ("jeden Tag um halb zehn", "every day 9:30", True),
        ("tomorrow evening at half past nine", "2036-11-16 21:30", True),
        ("a quarter to seven in the evening, daily", "every day 18:45", True),
        ("in half an hour", "+30m", True),
        ("in half an hour", "+45m", False),
        ("every other hour", "every 2 hours", True),
        ("nightly", "@daily", False),
    ],
)
def test_a_time_must_stand_in_the_users_words(
    context: Context, words: str, when: str, passes: bool
) -> None:
    """A number that nobody said was made up; the model is told to ask."""
    context.user_words = ["hello", words]
    if passes:
        assert "made the schedule" in call("add_schedule", context, **FULL | {"when": when}).text
        return
    with pytest.raises(Failed, match="stands nowhere in what the user said"):
        call("add_schedule", context, **FULL | {"when": when})
    assert schedule_store.names() == []


def test_what_is_refused_is_refused_before_anybody_is_asked(context: Context) -> None:
    """A call that cannot work is refused by the check that comes before approval."""
    calls: list[tuple[str, dict[str, Any]]] = [
        ("add_schedule", FULL | {"when": "2020-01-01 9:00"}),
        ("add_schedule", FULL | {"when": "every day 5:00"}),
        ("patch_schedule", {"name": "nothing", "paused": True}),
        ("remove_schedule", {"name": "nothing"}),
    ]
    for name, arguments in calls:
        (tool,) = (tool for tool in TOOLS if tool.name == name)
        assert tool.refuse is not None
        with pytest.raises(Failed):
            asyncio.run(tool.refuse(tool.check(arguments), context))


def test_listing_patching_and_removing(context: Context) -> None:
    """Time, task and pause are changed in place; a removed one is in the trash."""
    call("add_schedule", context, **FULL)
    (name,) = schedule_store.names()
    told = call("patch_schedule", context, name="changes", when="每天 18 點").text
    assert "at 18:00 every day (0 18 * * *) Europe/Paris" in told
    call("patch_schedule", context, name=name, task="Read NEWS.txt and say what is new there.")
    schedule = schedule_store.read(name)
    assert "Read NEWS.txt" in schedule.body
    assert "Three lines at most" in schedule.body
    call("patch_schedule", context, name=name, paused=True)
    assert "(paused)" in call("list_schedules", context).text
    before = datetime.now(UTC)
    call("patch_schedule", context, name=name, paused=False)
    assert schedule_store.read(name).binding.since >= before
    assert "removed" in call("remove_schedule", context, name=name).text
    assert schedule_store.trash() == [name]
    assert call("list_schedules", context).text == "(there are no schedules)"
    with pytest.raises(Failed, match="there is no schedule"):
        call("patch_schedule", context, name=name, when="9:00")


def test_without_a_yes_a_change_waits(context: Context) -> None:
    """What no person allowed is not removed or changed: it waits in the inbox."""
    call("add_schedule", context, **FULL)
    context.approved_by_person = False
    for name, more in (("remove_schedule", {}), ("patch_schedule", {"when": "10:00"})):
        with pytest.raises(Failed, match="waits for the user in the inbox"):
            call(name, context, name="changes", **more)
    assert len(schedule_store.names()) == 1


def test_only_ones_own(context: Context) -> None:
    """Schedules of another user are neither listed nor touched."""
    call("add_schedule", context, **FULL)
    (schedule,) = schedule_store.listing()[0]
    schedule_store.rebind(schedule, owner="somebody-else")
    assert call("list_schedules", context).text == "(there are no schedules)"
    for name in ("remove_schedule", "patch_schedule"):
        with pytest.raises(Failed, match="somebody else's"):
            call(name, context, name="changes", **({"when": "9:00"} if "patch" in name else {}))


def test_the_question_shows_exact_times() -> None:
    """Before it counts, the user sees what the words mean; wrong ones are said to be wrong."""
    shown = preview({"when": "每天 9 點", "zone": "Asia/Taipei"})
    assert shown.startswith("at 09:00 every day (0 9 * * *) Asia/Taipei\nnext: ")
    assert "09:00 Asia/Taipei (UTC+08:00)" in shown
    assert "not understood" in preview({"when": "whenever possible, every blue moon"})
    assert preview({"name": "x"}) == ""


def test_a_scheduled_skill_keeps_what_a_person_wrote(context: Context) -> None:
    """An edit by hand is kept when the agent changes another part, and one broken file is alone."""
    call("add_schedule", context, **FULL)
    call("add_schedule", context, **FULL | {"name": "other"})
    first, second = schedule_store.names()
    path = Path(scheduled_folder(), first, "SKILL.md")
    path.write_text(path.read_text() + "\nBy hand.\n")
    call("patch_schedule", context, name=first, when="10:00")
    assert "By hand." in path.read_text()
    Path(scheduled_folder(), second, "schedule.json").write_text('{"when": ')
    good, bad = schedule_store.listing()
    assert [s.name for s in good] == [first]
    (broken,) = bad
    assert broken.name == second
    assert f"tacit rollback {second}" in broken.hint
    gate = schedule_store.open_gate()
    gate.state_of(second)  # the hand edit is recorded, so that it can be rolled back
    assert gate.rollback(second, actor="user").applied
    assert len(schedule_store.listing()[0]) == 2


def test_arguments_survive_json() -> None:
    """The tools' schemas are self-contained."""
    for tool in TOOLS:
        assert "$ref" not in msgspec.json.encode(tool.schema()).decode()
