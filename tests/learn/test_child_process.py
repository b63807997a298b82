"""The child process: what its child can do, and what is left whatever the child does."""

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from waiting import LONG, until

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

from tacit.agent import budget, process_rights
from tacit.agent.budget import Limits
from tacit.agent.models import ModelChoice
from tacit.agent.tool import Failed, Result
from tacit.base import database
from tacit.base.errors import Unwritable
from tacit.base.job import controlled_by
from tacit.base.setting_sections import Settings
from tacit.learn.background import child_process
from tacit.learn.background.child import MOST_MEMORY
from tacit.learn.background.task import Channel, Garbled, GoOn, RunReport, Task, decode_message
from tacit.testing import ModelServer, Stall, ToolUse

Tasks = Callable[..., Task]
Chosen = Callable[..., Settings]


class Broker:
    """Answers as it was told to, and remembers what it was asked."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.heard: list[str] = []
        self.served: list[tuple[str, dict[str, Any]]] = []

    def finished(self, text: str) -> str | None:
        self.heard.append(text)
        return self.answers.pop(0) if self.answers else None

    def serve(self, name: str, arguments: dict[str, Any]) -> Result:
        self.served.append((name, arguments))
        if arguments.get("asked") == "fail":
            raise Failed("the parent would not")
        return Result("the parent did it")


def _spent() -> budget.Spent:
    return budget.since(datetime.now(UTC) - timedelta(hours=1))


def _is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_conversation_from_end_to_end(make_task: Tasks, chosen: Chosen) -> None:
    """Tools run in the child, the broker serves and answers, every request is booked, nothing of it
    becomes a session of the user's, and a broker that is never content ends at the turns."""
    replies = [
        ToolUse("put", {"path": "SKILL.md", "content": "hello"}),
        ToolUse("put", {"path": "../../escape", "content": "x"}),
        ToolUse("outside", {}),
        "first try",
        ToolUse("rm_everything", {}),
        "second try",
        ToolUse("put", {"path": "SKILL.md", "content": "hello"}),
    ]
    broker = Broker(*["refused: say it otherwise"] * 9)
    task = make_task("plain", data={"ask": "fail"}, limits=Limits(turns=7, seconds=120))
    with ModelServer(replies) as server:
        ran = child_process.run(task, broker, chosen(server.url))
        asked = server.requests[4]
    assert (ran.reason, ran.text, ran.error) == ("turns", "second try", "")
    assert broker.heard == ["first try", "second try"]
    assert broker.served == [("outside", {"asked": "fail"})]
    assert asked.messages[-1].text == "refused: say it otherwise"
    told = [(call.name, call.failed, call.result) for call in ran.calls]
    assert told[0] == ("put", False, "wrote as reviewer")
    assert told[1][1]
    assert "escape" in told[1][2]
    assert told[2] == ("outside", True, "the parent would not")
    assert told[3][1]
    assert "There is no tool 'rm_everything'" in told[3][2]
    staged = Path(task.staging) / "skills" / "demo" / "SKILL.md"
    assert staged.read_text() == "hello"
    assert (ran.turns, ran.input_tokens) == (7, _spent().input_tokens)
    assert ran.turns == _spent().requests
    assert budget.spendings(datetime.now(UTC) - timedelta(hours=1))[0].key == "session-1"
    data = os.path.dirname(database.default_path())
    assert not os.path.exists(os.path.join(data, "sessions"))
    if process_rights.landlock_version() >= 4:
        assert (ran.confinement.writes, ran.confinement.reads, ran.confinement.network) == (
            True,
            True,
            True,
        )


def test_the_model_is_reached_by_name_through_the_parent(make_task: Tasks, chosen: Chosen) -> None:
    """No name can be asked for in the child; the parent tells the addresses of the server."""
    with ModelServer(["done"]) as server:
        by_name = server.url.replace("127.0.0.1", "localhost")
        ran = child_process.run(make_task("plain"), Broker(), chosen(by_name))
    assert (ran.reason, ran.text, ran.error) == ("done", "done", "")


@pytest.mark.parametrize(
    ("host", "base_url", "model", "may"),
    [
        ("models.example.com", "https://models.example.com/v1", "openai:x", True),
        ("secret.evil.example", "https://models.example.com/v1", "openai:x", False),
        ("api.openai.com", "https://models.example.com/v1", "openai:x", False),
        ("api.openai.com", "", "openai:x", True),
        ("secret.evil.example", "", "openai:x", False),
        ("evilopenai.com", "", "openai:x", False),
        ("proxy.example.com", "", "openai:x", True),
        ("api.anthropic.com", "", "anthropic:x", True),
        ("openrouter.ai", "", "openrouter:x", True),
    ],
)
def test_which_names_the_parent_resolves(host: str, base_url: str, model: str, may: bool) -> None:
    """The model's and a proxy's; a name could carry a secret to whoever answers for it."""
    variables = {"HTTPS_PROXY": "http://proxy.example.com:3128"}
    assert child_process.is_model_host(host, ModelChoice(model, base_url), variables) is may


@pytest.mark.skipif(
    process_rights.landlock_version() < 4, reason="this kernel's Landlock is too old"
)
def test_no_way_out(
    make_task: Tasks, chosen: Chosen, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child writes nothing but its staging folder, reads nothing of the user's but the project,
    reaches no other port, and has no secret but the model's key."""
    for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD"):
        monkeypatch.setenv(name, "s3cret")
    monkeypatch.setenv("STORE", "postgres://me:s3cret@db/x")
    monkeypatch.setenv("HARMLESS", "yes")
    outside = home / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (home / "work" / "file").write_text("x")
    database.connect().close()
    with socket.create_server(("127.0.0.1", 0)) as other:
        data = {
            "outside": str(outside),
            "other": other.getsockname()[1],
            "database": database.default_path(),
        }
        task = make_task("prisoner", data=data)
        ran = child_process.run(task, Broker(), chosen())
    found = json.loads((Path(task.staging) / "found.json").read_text())
    assert (found.pop("staging"), found.pop("project"), found.pop("link")) == ("done",) * 3
    variables, actor = found.pop("environment"), found.pop("actor")
    assert actor == "reviewer"
    assert found.pop("name") == "gaierror"
    assert set(found.values()) <= {"PermissionError", "OSError"}, found
    assert variables["HARMLESS"] == "yes"
    assert [name for name, value in variables.items() if "s3cret" in value] == ["OPENAI_API_KEY"]
    assert sorted(path.name for path in outside.iterdir()) == ["secret"]
    assert (ran.reason, ran.error) == ("error", "SystemError: that was all")


def test_no_process_is_left(make_task: Tasks, chosen: Chosen) -> None:
    """The child can start none; where nothing keeps it from that, they die with it."""
    task = make_task("runaway")
    ran = child_process.run(task, Broker(), chosen())
    assert (ran.reason, ran.turns) == ("killed", 0)
    assert "of a sudden" in ran.error
    told = (Path(task.staging) / "pids").read_text().split()
    assert len(told) == 3
    if ran.confinement.group:
        assert set(told) == {"refused"}
    elif sys.platform == "linux":
        until(lambda: not any(_is_alive(int(pid)) for pid in told))


def test_the_time_is_kept_by_the_parent(make_task: Tasks, chosen: Chosen) -> None:
    """A child that sleeps, deaf to signals, is ended when its time is up."""
    task = make_task("sleeper", limits=Limits(seconds=1))
    ran = child_process.run(task, Broker(), chosen())
    assert (ran.reason, ran.calls) == ("seconds", ())
    assert ran.seconds >= 1


def test_what_a_killed_run_took_is_accounted(make_task: Tasks, chosen: Chosen) -> None:
    """A child killed in the middle of a request leaves what the requests before it took."""
    replies = [ToolUse("put", {"path": "SKILL.md"}), Stall(600)]
    with ModelServer(replies) as server:

        def kill() -> None:
            server.wait(2, 60)
            for child in _children():
                os.kill(child, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        ran = child_process.run(make_task("plain"), Broker(), chosen(server.url))
        killer.join()
    assert (ran.reason, ran.turns) == ("killed", 1)
    assert ran.input_tokens == _spent().input_tokens > 0
    assert [call.name for call in ran.calls] == ["put"]


@pytest.mark.parametrize("say", ["no json at all\n", "endless"])
def test_garbage_ends_the_run(make_task: Tasks, chosen: Chosen, say: str) -> None:
    """What the parent cannot read ends the run with words for it; the child is gone."""
    task = make_task("babbler", data={"say": say, "stay": True})
    ran = child_process.run(task, Broker(), chosen())
    assert ran.reason == "error"
    assert "the agent's process said a line" in ran.error
    assert len(ran.error) < 600
    assert _children() == []


@settings(max_examples=40)
@given(st.binary(max_size=50) | st.lists(st.none() | st.text(max_size=5)).map(json.dumps))
@example('{"type": "unknown"}')
@example('{"type": "used", "usage": {"type": "usage"}, "seconds": -1}')
@example('{"type": "ended", "reason": "a reason of its own"}')
@example("[" * 100_000)
def test_garbage_is_not_believed(said: str | bytes) -> None:
    """No line but one of those agreed upon is taken for a word of the child's."""
    with pytest.raises(Garbled):
        decode_message(said if isinstance(said, bytes) else said.encode())


def test_a_half_line_and_a_crash_are_told(make_task: Tasks, chosen: Chosen) -> None:
    """A child that dies in the middle of a word, or fails, leaves a report that can be read."""
    half = child_process.run(make_task("babbler", data={"say": '{"type": "us'}), Broker(), chosen())
    assert (half.reason, half.turns) == ("killed", 0)
    crash = child_process.run(make_task("crasher"), Broker(), chosen())
    assert (crash.reason, crash.error) == ("error", "RuntimeError: no such toolset, sorry")


def test_a_lie_about_use_does_no_harm(make_task: Tasks, chosen: Chosen) -> None:
    """Figures below nothing count as nothing."""
    usage = {"type": "usage", "input_tokens": -5, "output_tokens": -5, "cost": -1.0}
    lines = [{"type": "used", "usage": usage, "seconds": 1}, {"type": "ended", "reason": "done"}]
    say = "".join(json.dumps(line) + "\n" for line in lines)
    ran = child_process.run(make_task("babbler", data={"say": say}), Broker(), chosen())
    assert (ran.reason, ran.input_tokens, ran.output_tokens, ran.cost) == ("done", 0, 0, 0.0)


def test_the_broker_s_trouble_comes_out(make_task: Tasks, chosen: Chosen) -> None:
    """What the broker raises is raised, after the child is ended."""

    class Full(Broker):
        def finished(self, text: str) -> str | None:
            raise Unwritable("the disk is full", "")

    say = json.dumps({"type": "finished", "text": "x"}) + "\n"
    task = make_task("babbler", data={"say": say, "stay": True})
    with pytest.raises(Unwritable):
        child_process.run(task, Full(), chosen())
    assert _children() == []


def test_a_cancelled_job_changes_nothing(make_task: Tasks, chosen: Chosen) -> None:
    """When the user cancels a job, what its agent made does not reach the broker any more."""

    class Cancelled:
        def cancelled(self) -> bool:
            return True

        def step(self, name: str, function: Callable[[], Any]) -> Any:
            return function()

    say = json.dumps({"type": "finished", "text": "x"}) + "\n"
    broker = Broker()
    with controlled_by(Cancelled()):
        task = make_task("babbler", data={"say": say, "stay": True})
        ran = child_process.run(task, broker, chosen())
    assert (ran.reason, broker.heard) == ("killed", [])
    assert "cancelled" in ran.error


def test_it_does_not_begin_without_money_or_model(
    make_task: Tasks, chosen: Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a model, or when the day's budget is used up, no process is started."""
    monkeypatch.setattr(subprocess, "Popen", None)
    task = make_task("plain")
    without = chosen(agent__model="", agent__base_url="http://127.0.0.1:9/v1")
    assert child_process.run(task, Broker(), without).reason == "refused"
    from tacit.agent.agent_events import Usage

    budget.record_spending("review", "x", Usage(1, 1, cost=5.0))
    ran = child_process.run(task, Broker(), chosen(learn__daily_money=4.0))
    assert ran.reason == "budget"
    assert "tacit cost" in ran.error


def test_a_home_is_no_project(home: Path) -> None:
    """A session that began in the home, or at the root, does not open it to the child."""
    assert child_process.readable_project(str(home / "work")) == str(home / "work")
    for folder in (str(home), str(home.parent), "/", "", str(home / "gone")):
        assert child_process.readable_project(folder) == ""


_PARENT = """
import sys, json
from hostile import *
from tacit.base import settings
from tacit.learn.background import child_process
from tacit.learn.background.task import Task
import msgspec
task = msgspec.json.decode(sys.argv[1], type=Task)
loaded = settings.load_settings(flags={"agent.model": "openai:x", "agent.base_url": "http://127.0.0.1:9/v1"})
child_process.run(task, None, loaded.settings)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a child dies with its parent on Linux")
def test_a_killed_parent_takes_the_child_along(make_task: Tasks) -> None:
    """When the worker is killed, its child does not go on alone."""
    import msgspec

    task = make_task("sleeper")
    words = [sys.executable, "-c", _PARENT, msgspec.json.encode(task).decode()]
    parent = subprocess.Popen(words)
    until((Path(task.staging) / "asleep").exists)
    (child,) = _children(parent.pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    until(lambda: not _is_alive(child))


def test_a_child_that_does_not_listen_holds_nobody_up() -> None:
    """Orders larger than a pipe holds are not waited for beyond the time."""
    pipes = [os.pipe() for _ in range(3)]
    channel = Channel(pipes[0][1], pipes[1][0], pipes[2][0])
    channel.send(GoOn("x" * 1_000_000))
    assert channel.line(time.monotonic() + 0.05) is None
    os.write(pipes[1][1], b"one\ntw")
    os.write(pipes[2][1], b"printed" * 3000)
    assert channel.line(time.monotonic() + LONG) == b"one"
    threading.Timer(0.05, lambda: os.write(pipes[1][1], b"o\n")).start()
    assert channel.line(time.monotonic() + LONG) == b"two"
    os.close(pipes[1][1])
    with pytest.raises(EOFError):
        channel.line(time.monotonic() + LONG)
    assert len(channel.printed) <= 8192
    channel.close()
    channel.close()
    for descriptor in (pipes[0][0], pipes[2][1]):
        os.close(descriptor)


def test_a_report_survives_json() -> None:
    """A report can be kept by a job."""
    import msgspec

    ran = RunReport(reason="turns", text="x", cost=0.5)
    assert msgspec.json.decode(msgspec.json.encode(ran), type=RunReport) == ran
    assert not ran.is_done


def _children(parent: int | None = None) -> list[int]:
    pid = parent or os.getpid()
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += [int(child) for child in file.read().split()]
    return [child for child in found if _is_alive(child)]


class _Flood(BaseHTTPRequestHandler):
    """A model's server that sends without end, in the way that its path names."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *words: object) -> None:
        pass

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        how = self.path.split("/")[1]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        if how == "gzip":
            self.send_header("content-encoding", "gzip")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):  # nobody listens any more
            for part in self._parts(how):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    def _parts(self, how: str) -> Iterator[bytes]:
        if how == "gzip":  # a line that takes no room on its way
            packer = zlib.compressobj(1, zlib.DEFLATED, 31)
            yield packer.compress(b"data: ") + packer.flush(zlib.Z_SYNC_FLUSH)
            while True:
                yield packer.compress(b"x" * (16 << 20)) + packer.flush(zlib.Z_SYNC_FLUSH)
        call: dict[str, Any] = {"index": 0, "id": "c", "type": "function"}
        call["function"] = {"name": "put", "arguments": '{"path": "'}
        while True:
            choice = {"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}}
            event = {"id": "a", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
            yield b"data: %s\n\n" % json.dumps(event | {"choices": [choice]}).encode()
            call = {"index": 0, "function": {"arguments": "x" * 8000}}


@pytest.mark.skipif(sys.platform != "linux", reason="no other system keeps a process to its memory")
@pytest.mark.parametrize(
    ("how", "said"),
    [
        pytest.param(
            "gzip",
            "memory",
            marks=pytest.mark.skipif(
                not os.environ.get("TACIT_TEST_FULL"),
                reason="half a gigabyte is filled: TACIT_TEST_FULL=1, and scripts/test-faults",
            ),
        ),
        ("arguments", "the model's answer has no end"),
    ],
)
def test_a_server_that_sends_without_end_fills_no_memory(
    make_task: Tasks, chosen: Chosen, how: str, said: str
) -> None:
    """Bytes without a line's end, and a call whose arguments never end: the run fails, and its
    process never had more than it may have."""
    flood = ThreadingHTTPServer(("127.0.0.1", 0), _Flood)
    flood.daemon_threads = True
    threading.Thread(target=flood.serve_forever, daemon=True).start()
    task = make_task("plain")
    try:
        url = f"http://127.0.0.1:{flood.server_port}/{how}"
        ran = child_process.run(task, Broker(), chosen(url, agent__model="openai-chat:mock"))
    finally:
        flood.shutdown()
        flood.server_close()
    assert ran.reason in ("error", "refused", "killed")
    assert said in ran.error.lower() or ran.reason == "killed"
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10 < 2 * MOST_MEMORY


def test_what_the_gate_takes_counts(
    make_task: Tasks, chosen: Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that takes all the time ends the run, unless it was content."""
    later = 0.0

    class Slow(Broker):
        def finished(self, text: str) -> str | None:
            nonlocal later
            later = limits.seconds
            return super().finished(text)

    clock = SimpleNamespace(**vars(time) | {"monotonic": lambda: time.monotonic() + later})
    monkeypatch.setattr(child_process, "time", clock)
    limits = Limits(turns=8, seconds=120, retries=0)
    for answer, reason in ((None, "done"), ("Mend it.", "seconds")):
        later = 0.0
        with ModelServer(["Done."] * 9) as server:
            task = make_task("plain", job=f"job-{reason}", limits=limits)
            ran = child_process.run(task, Slow(answer), chosen(server.url))
        assert ran.reason == reason
