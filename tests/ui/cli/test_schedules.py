"""`tacit schedule`: every command, what it prints, and what it says when something is wrong."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from inside import error, tacit

pytest.importorskip("cronsim", reason="the extra 'work' is not installed")

from tacit.agent.tool_approval import ApprovalRequest
from tacit.base import database
from tacit.ui.cli import schedules
from tacit.work import schedule_runs, schedule_store
from tacit.work.schedule_runs import ScheduleRun, run_id
from tacit.work.schedule_store import Binding, Draft
from tacit.work.written_times import understand

ADD = ("schedule", "add", "every weekday 9:00", "Summarise the commits of yesterday.")


@pytest.fixture
def name(home: Path) -> str:
    done = tacit(*ADD, "--zone", "Europe/Paris", "--name", "commits")
    assert done.returncode == 0, done.stderr
    (made,) = schedule_store.names()
    return made


def answer(*arguments: str) -> Any:
    """What a command prints with --json."""
    done = tacit(*arguments, "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def ran(schedule: str, state: str = "done", **more: object) -> str:
    """A run on record."""
    due = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=5)
    row = ScheduleRun(id=run_id(schedule, due), schedule=schedule, due=due, why="due", state="sent")
    with schedule_runs.write_runs() as connection:
        schedule_runs.add_run(connection, row, due)
        schedule_runs.update_run(connection, row.id, due, state=state, began=due, ended=due, **more)
    return row.id


def test_add_says_the_times_back(home: Path) -> None:
    """What was understood is printed as exact local times, with the zone, and the way back."""
    done = tacit(*ADD, "--zone", "Europe/Paris", "--name", "commits")
    lines = done.stdout.splitlines()
    assert lines[0] == "at 09:00 on Monday through Friday (0 9 * * 1-5) Europe/Paris"
    assert sum(line.startswith("  next: ") for line in lines) == 3
    assert any(line.startswith("Made commits-") for line in lines)
    assert any(line.startswith("undo: tacit undo ") for line in lines)
    assert "tacit daemon install" in done.stdout


def test_add_takes_everything(home: Path) -> None:
    """Skills, folder, limits and places for output are bound as they were given."""
    skill = home / ".agents" / "skills" / "standup"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: standup\ndescription: Stand up.\n---\n\nGo.\n")
    made = answer(
        "schedule", "add", "每天 9 點", "--skill", "standup", "--in", str(home / "work"),
        "--zone", "Asia/Taipei", "--model", "openai:x", "--catch-up", "all", "--overlap", "queue",
        "--seconds", "60", "--notify", "desktop", "--notify", "file:{date}.md",
        "--allow", "read_file", "--allow", "run_command:git *", "--network",
    )  # fmt: skip
    bound = made["schedule"]["binding"]
    assert bound["timing"] == {"type": "cron", "expressions": ["0 9 * * *"]}
    assert (bound["skills"], bound["zone"], bound["model"]) == (
        ["standup"],
        "Asia/Taipei",
        "openai:x",
    )
    assert (bound["catch_up"], bound["overlap"], bound["seconds"]) == ("all", "queue", 60.0)
    assert bound["deliver"] == ["desktop", "file:{date}.md"]
    assert bound["allow"] == ["read_file", "run_command:git *"]
    assert bound["network"] is True
    assert made["schedule"]["name"].startswith("standup-")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("every morning", "Do something useful."), 2, "not understood"),
        (("61 * * * *", "Do something useful."), 2, "bad minute"),
        (("2020-01-01 09:00", "Do something useful."), 2, "in the past"),
        (("9:00", "Do something useful.", "--zone", "Mars/X"), 2, "no time zone"),
        (("9:00",), 2, "there is no task"),
        (("9:00", "--skill", "nothing"), 3, "there is no skill"),
        (("9:00", "Do something useful.", "--in", "nowhere"), 3, "there is no folder"),
        (("9:00", "Do something useful.", "--allow", "fly"), 2, "there is no tool 'fly'"),
        (("9:00", "Do something useful.", "--allow", "add_schedule"), 2, "there is no tool"),
        (("9:00", "Do something useful.", "--notify", "pigeon"), 2, "no place for output"),
        (
            ("9:00", "Do something useful.", "--notify", "webhook:https://x.example/a"),
            2,
            "may not be sent to x.example",
        ),
    ],
)
def test_add_refuses_in_words(home: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    """What is wrong is named, with what to do, and nothing is made."""
    found = error(code, "schedule", "add", *arguments)
    assert said in found["message"]
    assert found["hint"]
    assert schedule_store.names() == []


def test_list_show_history_and_logs(name: str) -> None:
    """Next and last run, state and result are in the tables; what a run said is in its log."""
    assert "active" in tacit("schedule", "list").stdout
    run = ran(
        name, output="It rained.", refused=("write_file a",), delivered={"inbox": "delivered"}
    )
    listed = answer("schedule", "list")["schedules"][0]
    assert (listed["name"], listed["state"], listed["last"]["state"]) == (name, "active", "done")
    assert listed["next"]
    shown = tacit("schedule", "show", "commits").stdout
    assert "Europe/Paris (UTC+0" in shown
    assert f"/sched-{name}" in shown
    assert "Summarise the commits of yesterday." in shown
    history = tacit("schedule", "history", "commits").stdout
    assert run in history
    assert "It rained." in history
    logs = tacit("schedule", "logs", run).stdout
    assert "refused    write_file a" in logs
    assert logs.endswith("\nIt rained.\n")
    assert answer("schedule", "logs", name)["read"] is True


def test_pause_resume_edit_rm_and_undo(name: str) -> None:
    """Each is a change on record, and the last one is taken back by undo."""
    assert tacit("schedule", "pause", name).stdout.startswith("Paused")
    assert answer("schedule", "list")["schedules"][0]["state"] == "paused"
    assert error(2, "schedule", "pause", name)["message"] == f"'{name}' is paused already"
    assert tacit("schedule", "resume", name).stdout.startswith("Resumed")
    edited = tacit(
        "schedule", "edit", name, "--when", "18:00", "--zone", "Asia/Tokyo",
        "--deliver", "command:cat",
    )  # fmt: skip
    assert "18:00 Asia/Tokyo (UTC+09:00)" in edited.stdout
    assert schedule_store.read(name).binding.deliver == ("command:cat",)
    text = Path(schedule_store.read(name).folder, "SKILL.md").read_bytes()
    more = text + b"\nAnd count them.\n"
    assert tacit("schedule", "edit", name, "--from", "-", given=more).returncode == 0
    assert "And count them." in schedule_store.read(name).body
    removed = answer("schedule", "rm", name)
    assert schedule_store.names() == []
    assert "There are no schedules." in tacit("schedule", "list").stdout
    assert tacit("undo", removed["change"]).returncode == 0
    assert schedule_store.names() == [name]
    kinds = [row["kind"] for row in answer("log", name)["versions"]]
    assert kinds[-1] == "create"
    assert kinds.count("edit") == 4


def test_names_are_found_and_missed(name: str) -> None:
    """A name without its hash will do; a wrong one is said to be wrong, with what is near."""
    assert answer("schedule", "show", "/sched-commits")["name"] == name
    found = error(3, "schedule", "show", "comits")
    assert "did you mean commits" in found["hint"]
    assert error(3, "schedule", "logs", "nothing@x")["message"] == "there is no run 'nothing@x'"


def test_a_name_that_begins_like_the_command(home: Path) -> None:
    """A schedule called `sched-…` is found by its own name."""
    answer("schedule", "add", "every day 9:00", "Say hello", "--name", "sched-tea")
    assert answer("schedule", "show", "sched-tea")["name"].startswith("sched-tea-")


def test_a_one_shot_that_never_ran_says_so(home: Path) -> None:
    """Its one moment has passed while nothing was there."""
    before = datetime.now(UTC) - timedelta(days=2)
    found = understand("+1m", before, "UTC")
    bound = Binding(
        when="+1m", timing=found.timing, zone="UTC", made=before, since=before, project=str(home)
    )
    made, _ = schedule_store.make(Draft(binding=bound, task="Say hello", short="hello"))
    assert answer("schedule", "show", made.name)["state"] == "never ran"
    assert "never ran" in tacit("schedule", "list").stdout


def test_a_damaged_database_hides_no_schedule(name: str) -> None:
    """The list still has every schedule, and says what is wrong with the record of its runs."""
    Path(database.default_path()).write_bytes(b"no database at all" * 100)
    for ending in ("-wal", "-shm"):
        Path(database.default_path() + ending).unlink(missing_ok=True)
    done = tacit("schedule", "list")
    assert done.returncode == 0
    assert name in done.stdout
    assert "is damaged" in done.stderr
    assert "tacit doctor" in done.stderr
    found = error(6, "schedule", "history", name)
    assert "is damaged" in found["message"]


def test_doctor_says_what_keeps_schedules_from_firing(name: str, home: Path) -> None:
    """Nothing to fire them, a file that cannot be read, a folder that is gone: each is said."""
    told = [f["what"] for f in answer("doctor")["findings"] if f["code"] == "schedule"]
    assert any("there are schedules, but no daemon runs" in what for what in told)
    other = schedule_store.make(
        schedule_store.Draft(
            binding=type(schedule_store.read(name).binding)(
                **{f: getattr(schedule_store.read(name).binding, f) for f in _FIELDS}
                | {"project": str(home / "gone")}
            ),
            task="Look at the weather.",
        )
    )[0]
    Path(schedule_store.read(name).folder, "schedule.json").write_text("{")
    told = [f["what"] for f in answer("doctor")["findings"] if f["code"] == "schedule"]
    assert any(f"'{other.name}' works in" in what for what in told)
    assert any(f"schedule.json of the schedule '{name}' cannot be read" in what for what in told)


_FIELDS = ("when", "timing", "zone", "made", "since", "project")


def test_completion(name: str) -> None:
    """Names of schedules and runs are completed in a shell."""
    from tacit.ui.cli.user_shell import complete_run, complete_schedule

    run = ran(name)
    context, parameter = click.Context(click.Command("x")), click.Argument(["y"])
    assert [c.value for c in complete_schedule(context, parameter, "comm")] == [name]
    assert [c.value for c in complete_run(context, parameter, "comm")] == [run]
    assert complete_run(context, parameter, "zzz") == []
    Path(database.default_path()).write_bytes(b"no database at all" * 100)
    assert complete_run(context, parameter, "") == []


def test_json_of_everything(name: str) -> None:
    """Every command prints one JSON document with --json."""
    ran(name)
    for arguments in (("list",), ("show", name), ("history",), ("logs", name), ("pause", name)):
        json.loads(tacit("schedule", *arguments, "--json").stdout)


def test_who_is_asked_in_a_run_by_hand_sees_the_whole_call(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a long command, and what would be written, not only where."""
    monkeypatch.setattr(click, "confirm", lambda question, **_: False)
    ask = schedules._asking_about(schedule_store.read(name))
    command = f"echo {'harmless ' * 30}; evil"
    for request in (
        ApprovalRequest("run_command", "command", command, {"command": command}),
        ApprovalRequest("write_file", "write", "n", {"path": "n", "content": "evil"}),
    ):
        assert asyncio.run(ask(request)) == "no"
        assert "evil" in capsys.readouterr().err
