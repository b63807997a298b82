"""A due run as the queue does it, with a scripted model: session, record, delivery, the trash."""

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from schedule_factory import scheduled

pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")

from tacit.agent import budget, model_client
from tacit.base.job import Job, JobResult
from tacit.learn import notices
from tacit.testing import ModelServer, Stall, Status, ToolUse, Turns, reply
from tacit.testing.script import ScriptLike
from tacit.traces.store import Store
from tacit.work import delivery, schedule_runs, schedule_store
from tacit.work.schedule_runner import AGAIN, _run_of, run
from tacit.work.schedule_runs import ScheduleRun, advance, run_id
from tacit.work.schedule_store import Requester, Schedule

MADE = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=1)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_client, "_FIRST", 0.01)
    monkeypatch.setenv("TACIT_AGENT_RETRIES", "1")


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`serving(script)` starts a model; every session here talks to it."""
    started: list[ModelServer] = []

    def start(script: ScriptLike) -> ModelServer:
        server = ModelServer(script, strict=False)
        server.__enter__()
        started.append(server)
        monkeypatch.setenv("TACIT_AGENT_BASE_URL", server.url + "/v1")
        monkeypatch.setenv("TACIT_AGENT_MODEL", "openai:mock-model")
        monkeypatch.setenv("TACIT_WORKER", "1")  # a worker runs schedules; it starts no other
        return server

    yield start
    for server in started:
        server.__exit__(None, None, None)
        assert not server.refusals


def due(schedule: Schedule, at: datetime | None = None, attempt: int = 1) -> Job:
    """The job of a schedule's first due time, or of another."""
    at = at or MADE + timedelta(minutes=5)
    key = run_id(schedule.name, at)
    about = {"schedule": schedule.name, "due": at.timestamp()}
    return Job("schedule-x", "schedule", key, about, attempt)


def row_of(job: Job) -> ScheduleRun:
    with schedule_runs.open_runs() as connection:
        found = schedule_runs.run_by_id(connection, job.key)
    assert found is not None
    return found


def every(home: Path, when: str = "*/5 * * * *", **more: Any) -> Schedule:
    return scheduled(when, MADE, **{"project": str(home / "work")} | more)


def test_a_run_is_a_session_of_its_own(home: Path, serving: Any) -> None:
    """Body, rules and due time are told; its tools are those of the list; output is delivered."""
    (home / "work" / "today.txt").write_text("rain\n")
    server = serving([ToolUse("read_file", {"path": "today.txt"}), "It rains."])
    schedule = every(home)
    done = run(due(schedule))
    assert done == JobResult("done")
    first = server.requests[0]
    tools = {tool.name for tool in first.tools}
    assert {"read_file", "run_command", "run_skill"} <= tools
    assert not tools & {"add_schedule", "remove_schedule", "ask_user", "write_file", "manage_skill"}
    assert "## How skills are carried out" in first.system
    assert "schedule-creator" not in first.system
    assert f'The scheduled skill "{schedule.name}" is due' in first.messages[0].text
    assert f'<skill name="{schedule.name}"' in repr(first.messages)
    assert repr(first.messages).count("Look at the weather.") == 1
    row = row_of(due(schedule))
    assert (row.state, row.output, row.attempt) == ("done", "It rains.", 1)
    assert row.delivered == {"inbox": "delivered"}
    with closing(Store.open()) as store:
        (stored,) = store.sessions()
    assert stored.id == f"tacit:{row.session}"
    (line,) = notices.tell("inbox")
    assert line == f"{schedule.name}: It rains. · read it: tacit schedule logs {row.id}"
    assert budget.today().requests == 2
    # Done again, as after a kill at the very end: nothing more happens.
    assert run(due(schedule)).outcome == "done"
    assert len(server.requests) == 2


def test_nobody_is_there_to_allow(home: Path, serving: Any) -> None:
    """A tool that is not on the list, or needs a yes, is refused, and the run says so."""
    write = ToolUse("write_file", {"path": "a.txt", "content": "x"})
    command = ToolUse("run_command", {"command": "rm -r x"})
    serving([write, command, "I could not."])
    schedule = every(home, allow=("read_file", "run_command:git *"))
    run(due(schedule))
    row = row_of(due(schedule))
    assert row.state == "done"
    assert row.refused == ("write_file a.txt", "run_command rm -r x")
    assert not (home / "work" / "a.txt").exists()


def test_ordinary_skills_are_run_and_protected(home: Path, serving: Any) -> None:
    """A schedule can name several skills; one that was removed makes it fail with the reason."""
    for name in ("look-up", "write-up"):
        folder = home / ".agents" / "skills" / name
        folder.mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: Does {name}.\n---\n\nThe steps of {name}.\n"
        (folder / "SKILL.md").write_text(text)
    server = serving(Turns(["Fine.", "Fine."]))
    schedule = every(home, skills=("look-up", "write-up"))
    assert run(due(schedule)).outcome == "done"
    sent = repr(server.requests[0].messages)
    assert sent.index("The steps of look-up.") < sent.index("The steps of write-up.")
    from tacit.learn.curate.curation_scope import scheduled_names

    assert scheduled_names() == {"look-up", "write-up"}
    (home / ".agents" / "skills" / "write-up" / "SKILL.md").unlink()
    second = due(schedule, MADE + timedelta(minutes=10))
    done = run(second)
    assert done.outcome == "failed"
    assert "the skill 'write-up', which it runs, is not there any more" in row_of(second).reason
    assert schedule.name in schedule_store.names()


@pytest.mark.parametrize("skills", [("look-up",), ()])
def test_what_failed_in_a_run_is_repaired_as_everywhere(
    skills: tuple[str, ...], home: Path, serving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The skill that a run failed with, or the scheduled one itself, is asked to be repaired."""
    from tacit.work import job_queue

    monkeypatch.setenv("TACIT_WORKER", "1")
    folder = home / ".agents" / "skills" / "look-up"
    folder.mkdir(parents=True)
    head = "name: look-up\ndescription: Looks up.\nmetadata:\n  source: auto-skill"
    (folder / "SKILL.md").write_text(f"---\n{head}\n---\n\nRead missing.txt.\n")
    miss = ToolUse("read_file", {"path": "missing.txt"})
    serving([miss, miss, miss, "It is not there."])
    schedule = every(home, skills=skills)
    assert run(due(schedule)).outcome == "done"
    name = schedule.name
    (asked,) = job_queue.waiting_jobs()
    assert (asked.kind, asked.payload["skill"]) == ("improve", skills[0] if skills else name)


def test_one_shots_go_into_the_trash_after_success_only(home: Path, serving: Any) -> None:
    """A one-shot that failed is kept and can be run again; one that succeeded is in the trash."""
    serving([Status(401), "Done."])
    schedule = every(home, "+5m")
    done = run(due(schedule))
    assert done.outcome == "failed"
    assert "refused the key" in done.reason
    assert schedule_store.names() == [schedule.name]
    with schedule_runs.write_runs() as connection:  # as `tacit schedule run` after mending would
        schedule_runs.update_run(connection, due(schedule).key, MADE, state="sent")
    assert run(due(schedule)).outcome == "done"
    assert schedule_store.names() == []
    assert schedule_store.trash() == [schedule.name]
    assert schedule_store.empty_trash(datetime.now(UTC) + timedelta(days=29)) == []
    assert schedule_store.empty_trash(datetime.now(UTC) + timedelta(days=31)) == [schedule.name]
    assert schedule_store.trash() == []


def test_only_failures_of_transport_are_tried_again(home: Path, serving: Any) -> None:
    """A server that is down puts the run off, longer each time; at the end it has failed."""
    serving(Turns([], then=Status(503)))
    schedule = every(home, "+5m")
    waits = []
    for attempt in range(1, 5):
        done = run(due(schedule, attempt=attempt))
        waits.append(done.later)
    assert waits == [*AGAIN, 0.0]
    assert row_of(due(schedule)).state == "failed"
    assert schedule_store.names() == [schedule.name]


def test_the_time_limit_holds_mid_request(home: Path, serving: Any) -> None:
    """A model that stalls holds a run up no longer than its limit, and is tried again later."""
    serving([reply("Half", fault=Stall(3600))])
    schedule = every(home, seconds=0.5)
    done = run(due(schedule))
    assert (done.outcome, done.later) == ("put off", 30.0)
    assert done.reason == "the model gave no answer within 0.5 s; try again later"


def test_silence_is_delivered_to_nobody(home: Path, serving: Any) -> None:
    """[SILENT] alone delivers nothing, anywhere."""
    serving(["  [SILENT]\n"])
    schedule = every(home, deliver=("file:out.txt", "command:cat > piped.txt"))
    assert run(due(schedule)).outcome == "silent"
    assert row_of(due(schedule)).delivered == {"inbox": "silent"}
    assert notices.tell("inbox") == ()
    assert not list((home / "work").glob("*.txt"))


@pytest.mark.parametrize("leads", ["../.config", ".git"])
def test_output_is_not_delivered_through_a_planted_link(
    home: Path, serving: Any, leads: str
) -> None:
    """A run may have put a link in the place of a folder that its output goes to."""
    serving(["evil"])
    (home / "work" / ".git").mkdir(exist_ok=True)
    (home / ".config").mkdir(exist_ok=True)
    (home / "work" / "out").symlink_to(leads)
    schedule = every(home, deliver=("file:out/config",))
    run(due(schedule))
    assert "by a link" in row_of(due(schedule)).delivered["file:out/config"]
    assert not (home / "work" / leads / "config").exists()


class Hook(BaseHTTPRequestHandler):
    """Takes webhooks, and sends some elsewhere."""

    got: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.headers["Idempotency-Key"], json.loads(data)))
        away = self.path == "/away"
        self.send_response(302 if away else 200)
        if away:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/ok")
        self.end_headers()

    def log_message(self, *told: object) -> None:
        return


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    Hook.got = []
    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv("TACIT_SCHEDULE_WEBHOOK_HOSTS", "127.0.0.1")
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_every_place_for_output(home: Path, serving: Any, hook: str) -> None:
    """A file, a command on standard input and a webhook get the output once; a fault is noted."""
    serving(["The key is ghp_" + "k7Qw2ZpX9vRtY4mNbL6sHdJ3fGcA8uEo1iKx" + "."])
    places = (
        "file:notes/{date}.md",
        "command:cat > piped.txt; echo $TACIT_RUN >> piped.txt",
        f"webhook:{hook}/ok",
        f"webhook:{hook}/away",
        "command:exit 3",
        "webhook:https://elsewhere.example/x",
    )
    schedule = every(home, deliver=places)
    done = run(due(schedule))
    row = row_of(due(schedule))
    assert row.state == "done"
    said = [row.delivered[place] for place in places]
    assert said[:3] == ["delivered"] * 3
    assert said[3] == "failed: the webhook answered 302"
    assert said[4] == "failed: the command ended with 3"
    assert said[5] == "failed: output may not be sent to elsewhere.example"
    assert "elsewhere.example" in done.reason
    day = f"{row.due:%Y-%m-%d}"
    assert (home / "work" / "notes" / f"{day}.md").read_text() == row.output + "\n"
    assert (home / "work" / "piped.txt").read_text() == f"{row.output}{row.id}\n"
    assert [key for key, _ in Hook.got] == [row.id, row.id]
    assert "[redacted" in Hook.got[0][1]["text"]


def test_a_kill_during_delivery_repeats_nothing_outside(home: Path, serving: Any) -> None:
    """What was begun and not noted as done is not done a second time, and the run says so."""
    schedule = every(home, "+5m", deliver=("command:echo >> count.txt", "file:out.txt"))
    job = due(schedule)
    row = _run_of(job)
    row = advance(advance(row, "running"), "ran", output="The result.")
    delivery._record(row, "command:echo >> count.txt", "begun")
    assert run(job).outcome == "done"
    assert not (home / "work" / "count.txt").exists()
    assert "not repeated" in row_of(job).delivered["command:echo >> count.txt"]
    assert (home / "work" / "out.txt").read_text() == "The result.\n"
    # The folder went into the trash, and then the kill came before the row was closed.
    with schedule_runs.write_runs() as connection:
        schedule_runs.update_run(connection, row.id, MADE, state="ran")
    assert run(job).outcome == "done"
    assert row_of(job).state == "done"


def test_what_changed_meanwhile(home: Path) -> None:
    """A run of a schedule that was paused, retimed or removed since is not made, and says so."""
    schedule = every(home)
    schedule_store.rebind(schedule, paused=True)
    assert run(due(schedule)).reason == "the schedule was paused meanwhile"
    later = due(schedule, MADE + timedelta(minutes=10))
    schedule_store.rebind(schedule, since=datetime.now(UTC))
    assert run(later).reason == "the schedule's time was changed meanwhile"
    schedule_store.remove(schedule.name, Requester(reason="enough"))
    last = due(schedule, MADE + timedelta(minutes=15))
    assert run(last).outcome == "failed"
    assert "there is no schedule" in row_of(last).reason


def test_a_folder_that_is_gone(home: Path) -> None:
    """The run fails with the reason and what to do; the schedule stays."""
    schedule = every(home, project=str(home / "gone"))
    done = run(due(schedule))
    assert done.outcome == "failed"
    assert "is not there any more; bind another one: tacit schedule edit" in done.reason


def test_a_budget_that_is_spent(home: Path, monkeypatch: pytest.MonkeyPatch, serving: Any) -> None:
    """A run that would pass the day's budget is not begun, and says so."""
    server = serving(["Never."])
    monkeypatch.setenv("TACIT_LEARN_DAILY_TOKENS", "10")
    from tacit.agent.agent_events import Usage

    budget.record_spending("review", "x", Usage(100, 100), seconds=1.0)
    done = run(due(every(home)))
    assert done.outcome == "failed"
    assert "tokens" in done.reason
    assert not server.requests


def test_a_budget_that_others_hold(
    home: Path, monkeypatch: pytest.MonkeyPatch, serving: Any
) -> None:
    """While other work, or one that was killed, holds what is left of the day, the run waits."""
    from tacit.agent.budget import Limits
    from tacit.base.setting_sections import LearnSettings

    serving(["Now."])
    other = budget.reserve(LearnSettings(), Limits(0, 600.0, 0, 0.0))
    schedule = every(home)
    put_off = run(due(schedule))
    assert (put_off.outcome, put_off.later) == ("put off", 60.0)
    assert row_of(due(schedule)).live
    budget.settle(other)
    assert run(due(schedule)).outcome == "done"


def test_scheduled_skills_are_valid() -> None:
    """The open standard's own program accepts a scheduled skill."""
    from skills_ref import validate  # type: ignore[import-untyped]

    schedule = scheduled("every day 9:00", MADE)
    assert validate(Path(schedule.folder)) == []
