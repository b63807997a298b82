"""Schedules from end to end on the real clock, with the real programs and a scripted model.

An every-minute schedule and a one-shot `+1m` are made in `tacit chat`. The daemon is killed with
SIGKILL in the middle and started again. Each due time must have been delivered once, the one-shot's
folder must be in the trash, and `/sched-NAME` must run by hand.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tacit.testing import ModelServer, Stall, ToolUse, reply
from tacit.testing.script import Request

TACIT = str(Path(sys.executable).with_name("tacit"))
EVERY = {
    "when": "every minute",
    "task": "Say that the minute is over.",
    "output": "One short sentence.",
    "name": "minutes",
}
ONCE = EVERY | {"when": "+1m", "task": "Say that the hour of tea has come.", "name": "tea"}


held: list[str] = []


def model(request: Request) -> Any:
    """Follows schedule-creator in a chat, and does what a run is told."""
    first = request.messages[0].text
    if "minutes-" in first and "scheduled skill" in first:
        held.append(first)
        slow = Stall(15) if len(held) == 1 else None  # the daemon is killed in the middle of it
        return reply("The minute is over.", fault=slow)
    if "scheduled skill" in first:
        return "Tea!"
    if not request.messages[-1].tool_results:
        return ToolUse("run_skill", {"name": "schedule-creator"})
    asked = [message.text for message in request.messages if message.role == "user"][-1]
    wanted = EVERY if "minute" in asked else ONCE
    made = any("made the schedule" in r.text for r in request.messages[-1].tool_results)
    return "It is set." if made else ToolUse("add_schedule", wanted)


class Stage:
    """A home of its own, the programs in it, and what was found wrong."""

    def __init__(self, folder: str, server: ModelServer) -> None:
        self.project = os.path.join(folder, "project")
        os.makedirs(os.path.join(self.project, ".git"))
        self.home = os.path.join(folder, "tacit")
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("TACIT_")},
            "HOME": folder,
            "TACIT_HOME": self.home,
            "TACIT_AGENT_BASE_URL": server.url + "/v1",
            "TACIT_AGENT_MODEL": "openai:mock-model",
            # The workers that a chat starts go at once, so that it is the daemon that fires.
            "TACIT_WORKER_QUIET": "0",
            "TACIT_WORKER_IDLE": "1",
        }
        self.failures: list[str] = []
        self.daemons: list[subprocess.Popen[bytes]] = []

    def tacit(self, *arguments: str, given: str = "") -> str:
        done = subprocess.run(
            [TACIT, *arguments],
            input=given,
            capture_output=True,
            text=True,
            cwd=self.project,
            env=self.environment,
            timeout=120,
            check=False,
        )
        if done.returncode:
            self.failures.append(f"tacit {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.tacit(*arguments, "--json") or "{}")

    def daemon(self) -> "subprocess.Popen[bytes]":
        started = subprocess.Popen(
            [TACIT, "daemon"], cwd=self.project, env=self.environment, stdout=subprocess.DEVNULL
        )
        self.daemons.append(started)
        return started

    def close(self) -> None:
        """Leave no daemon behind, whatever went wrong."""
        for started in self.daemons:
            if started.poll() is None:
                started.kill()
                started.wait()

    def expect(self, what: str, is_so: bool) -> None:
        print(f"{'ok  ' if is_so else 'FAIL'} {what}", flush=True)
        if not is_so:
            self.failures.append(what)

    def runs(self) -> list[dict[str, Any]]:
        return list(self.json("schedule", "history", "--limit", "100").get("runs", []))


def wait(stage: Stage, seconds: float, done: Any) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if done():
            return True
        time.sleep(2)
    return False


def _worker(stage: Stage) -> int:
    found = stage.json("daemon", "status").get("worker")
    return int(found["pid"]) if found else 0


def play(stage: Stage) -> None:
    said = stage.tacit("chat", "--plain", given="Every minute, say that it is over.\ny\n")
    stage.expect("the chat shows exact times before it asks", "next: " in said.split("y, s, a")[0])
    stage.tacit("chat", "--plain", given="Remind me of tea.\ny\n")
    names = [row["name"] for row in stage.json("schedule", "list")["schedules"]]
    stage.expect(f"both schedules were made in a chat: {names}", len(names) == 2)
    tea = next((name for name in names if name.startswith("tea-")), "")
    minutes = next((name for name in names if name.startswith("minutes-")), "")

    def done_runs(name: str) -> list[str]:
        return [r["id"] for r in stage.runs() if r["schedule"] == name and r["state"] == "done"]

    wait(stage, 60, lambda: not _worker(stage))
    first = stage.daemon()
    stage.expect("the daemon is up", wait(stage, 60, lambda: _worker(stage) == first.pid))

    def is_running() -> bool:
        return any(row["state"] == "running" for row in stage.runs())

    stage.expect("a first run began", wait(stage, 120, is_running))
    first.send_signal(signal.SIGKILL)
    first.wait()
    killed = [row["id"] for row in stage.runs() if row["state"] == "running"]
    stage.expect(f"the daemon was killed in the middle of it: {killed}", bool(killed))
    time.sleep(5)
    second = stage.daemon()
    up = wait(stage, 60, lambda: _worker(stage) == second.pid)
    stage.expect("the daemon is up again", up)
    other = subprocess.run(
        [TACIT, "daemon"], env=stage.environment, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    stage.expect("a second daemon is refused in words", "runs already" in other.stderr)
    stage.expect("the one-shot ran", wait(stage, 150, lambda: done_runs(tea)))
    stage.expect("two more runs came", wait(stage, 200, lambda: len(done_runs(minutes)) >= 3))
    finished = {*done_runs(minutes), *done_runs(tea)}
    stage.expect("what the kill interrupted was done", set(killed) <= finished)
    seen = Counter((row["schedule"], row["due"]) for row in stage.runs())
    stage.expect("each due time has one run", max(seen.values()) == 1)
    told = stage.tacit("inbox")
    stage.expect("the output is in the inbox", "The minute is over." in told and "Tea!" in told)
    trash = os.path.join(stage.home, "data", "scheduled", ".archive")
    stage.expect("the one-shot is in the trash", os.path.isdir(os.path.join(trash, tea)))
    by_hand = stage.tacit("chat", "--plain", given=f"/sched-{minutes}\n")
    stage.expect("/sched-NAME runs by hand", "The minute is over." in by_hand)
    second.terminate()
    second.wait(30)


def main() -> int:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        with ModelServer(model, strict=False) as server:
            stage = Stage(folder, server)
            try:
                play(stage)
            finally:
                stage.close()
            answers = Counter("Tea" in str(e) for e in server.failures)
            stage.expect("the model was never asked something odd", not answers)
        for failure in stage.failures:
            print(f"failed: {failure}", file=sys.stderr)
        return 1 if stage.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
