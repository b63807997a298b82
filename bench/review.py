"""What a review sends and how long it takes: Tacit beside Qwen Code and Hermes, in one run.

    python bench/review.py [--calls 24] [--kilobytes 2] [--rounds 3]

The same session for each: one prompt, the same commands in the same project, run for real, driven
by a scripted model on loopback. Then each reviews it in its own way: Qwen Code and Hermes in their
own process, Tacit by the job that its queue runs, over the session as Qwen Code recorded it. The
scripted reviewer does the same everywhere: it writes one skill and ends. Counted are the characters
of the review's requests, whole, with prompts and tool schemas; and the seconds from the last answer
of the session to the end of the review, for Tacit with the start of its child process. The others
are run only where their programs are there already, in the folder that TACIT_HOSTS_CACHE names.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from host_agents import HERMES, QWEN_CODE, Agent, ToolShape
from host_programs import (
    Place,
    default_cache,
    environment,
    install,
    is_there,
    prepare,
    run,
    transcripts,
)
from tacit.testing import ModelServer, Request, ToolUse, toolless

PROMPT = "Look through the project, build it, and tell me what the modules do. Always use VERSION."
_ASKED = "Review the conversation above"
_BODY = (
    "# Building\n\n1. Read the version first.\n2. `VERSION=$(cat VERSION) python3 build.py`\n\n"
    "Without VERSION the build stops with a KeyError.\n"
)
_SKILL = (
    "---\nname: package-builds\ndescription: How packages are built here. Use before building.\n"
    f"source: auto-skill\n---\n\n{_BODY}"
)


class Measured(msgspec.Struct, frozen=True):
    """One review: its requests, their characters, and how long it took."""

    requests: int
    characters: int
    largest: int
    seconds: float
    made: bool
    """Whether the skill stood there in the end."""
    cpu: float = 0.0
    """Seconds on the processor, for a review that has processes of its own."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=24, help="tool calls of the session")
    parser.add_argument("--kilobytes", type=float, default=2.0, help="output of a usual call")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    rows: dict[str, list[Measured]] = {}
    for _ in range(chosen.rounds):
        for name, measured in one_round(chosen.calls, chosen.kilobytes):
            rows.setdefault(name, []).append(measured)
    print_table(rows)
    return 0


def one_round(calls: int, kilobytes: float) -> list[tuple[str, Measured]]:
    """Every program once, over the same session."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "qwen"
        make_project(home / "project", calls, kilobytes)
        if not is_there(QWEN_CODE, default_cache()):
            raise SystemExit(
                f"Qwen Code is not installed in {default_cache()}: its session is read"
            )
        found.append((QWEN_CODE.title, qwen(home, calls)))
        shutil.rmtree(home / "project/.qwen/skills", ignore_errors=True)  # each begins with none
        found.append(("Tacit", tacit(home, Path(folder) / "tacit")))
        if is_there(HERMES, default_cache()):
            other = Path(folder) / "hermes"
            make_project(other / "project", calls, kilobytes)
            found.append((HERMES.title, hermes(other, calls)))
        else:
            print(f"Hermes is not installed in {default_cache()}", file=sys.stderr)
    return found


def make_project(project: Path, calls: int, kilobytes: float) -> None:
    """Files of a size that is usual, and a build that fails without a variable."""
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / "VERSION").write_text("2.0.0\n")
    (project / "build.py").write_text(
        "import os\nv = os.environ['VERSION']\nprint('built dist/app-' + v + '.txt')\n"
    )
    for number in range(calls):
        lines = [
            f"def function_{number}_{n}(value):  # part {n} of {number}\n    return value * {n}"
            for n in range(400)
        ]
        text = "\n".join(lines)[: int(kilobytes * 1024)]
        (project / "src" / f"module_{number}.py").write_text(text + "\n")


def commands(calls: int) -> list[str]:
    """What the agent runs: it looks around, and the build fails before it works."""
    reading = [f"cat src/module_{number}.py" for number in range(max(calls - 5, 0))]
    building = [
        "python3 build.py",
        "env | grep -c VERSION",
        "VERSION=$(cat VERSION) python3 build.py",
    ]
    return ["ls -la src", *reading, *building, "git status --short | head -5"][:calls]


class Script:
    """The model of a session and of its review, which it knows by what it is offered."""

    def __init__(self, shell: ToolShape, todo: list[str], write: ToolUse) -> None:
        self._shell = shell
        self._todo = todo
        self._write = write
        self.reviewing: list[int] = []
        self.answered = 0.0
        self.last = 0.0
        """When the review last asked."""

    def __call__(self, request: Request) -> Any:
        if self._write.name in request.tool_names and self._is_review(request):
            self.reviewing.append(request.number)
            self.last = time.time()
            return self._write if len(self.reviewing) == 1 else "Kept package-builds."
        if toolless(request):
            return "Modules"
        if request.turn < len(self._todo):
            return self._shell.use(self._todo[request.turn])
        self.answered = time.time()
        return "Built. The modules multiply."

    def _is_review(self, request: Request) -> bool:
        return _ASKED in " ".join(request.user_texts) or self._shell.name not in request.tool_names

    def measured(self, server: ModelServer, ended: float, *, made: bool) -> Measured:
        sizes = [
            len(request.body.decode("utf-8", "replace"))
            for request in server.requests
            if request.number in self.reviewing
        ]
        total, largest = sum(sizes), max(sizes, default=0)
        return Measured(len(sizes), total, largest, ended - self.answered, made)


def qwen(home: Path, calls: int) -> Measured:
    project = home / "project"
    target = project / ".qwen/skills/package-builds/SKILL.md"
    write = ToolUse("write_file", {"file_path": str(target), "content": _SKILL})
    script = Script(QWEN_CODE.shell, commands(calls), write)
    with ModelServer(script, strict=False) as server:
        place = _place(QWEN_CODE, home, server.url)
        settings = home / ".qwen/settings.json"
        values = json.loads(settings.read_text())
        values["memory"] = {
            "enableAutoSkill": True,
            "autoSkillConfirm": False,
            "enableManagedAutoMemory": False,
        }
        settings.write_text(json.dumps(values))
        done = run(QWEN_CODE, install(QWEN_CODE, default_cache()).program, place, PROMPT)
        if not done.ended_well:
            raise SystemExit(f"Qwen Code ended with {done.code}: {done.stderr[-400:]}")
        return script.measured(server, _last_end(server, script), made=target.exists())


def _last_end(server: ModelServer, script: Script) -> float:
    """When the last request of the review had its answer. Its process may go on for a while."""
    last = [e.seconds for e in server.exchanges if e.request.number in script.reviewing[-1:]]
    return script.last + sum(last)


def hermes(home: Path, calls: int) -> Measured:
    write = ToolUse(
        "skill_manage", {"action": "create", "name": "package-builds", "content": _SKILL}
    )
    script = Script(HERMES.shell, commands(calls), write)
    with ModelServer(script, strict=False) as server:
        place = _place(HERMES, home, server.url)
        python = install(HERMES, default_cache()).program.parent / "python"
        driver = Path(__file__).with_name("hermes_review.py")
        done = subprocess.run(
            [str(python), str(driver), server.url, PROMPT],
            cwd=place.project,
            env=environment(HERMES, place) | {"HERMES_HOME": str(home / ".hermes")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"Hermes ended with {done.returncode}: {done.stderr[-400:]}")
        told = json.loads(done.stdout.splitlines()[-1])
        made = any((home / ".hermes/skills").rglob("package-builds/SKILL.md"))
        return script.measured(server, told["reviewed"], made=made)


def tacit(recorded: Path, home: Path) -> Measured:
    """Tacit's review of the session that Qwen Code recorded, in a process of its own."""
    home.mkdir()
    text = _SKILL.replace("source: auto-skill\n", "")
    write = ToolUse("write_file", {"path": "package-builds/SKILL.md", "content": text})
    script = Script(ToolShape("none", "none"), [], write)
    (session,) = transcripts(QWEN_CODE, recorded)
    with ModelServer(script, strict=False) as server:
        script.answered = time.time()
        driver = [sys.executable, __file__, "--review", str(session), server.url]
        clean = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        # The project is the one that the session names; it is still there.
        done = subprocess.run(
            driver, env=clean, cwd=home, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode:
            raise SystemExit(f"Tacit's review ended with {done.returncode}: {done.stderr[-600:]}")
        told = json.loads(done.stdout.splitlines()[-1])
        script.answered = told["began"]
        if told["outcome"] != "created":
            print(f"Tacit: {told['outcome']}: {told['reason']}", file=sys.stderr)
        made = script.measured(server, told["ended"], made=told["outcome"] == "created")
        return msgspec.structs.replace(made, cpu=told["cpu"])


def review_here(session: str, url: str) -> int:
    """The job, as the worker does it: its imports are done, the child's are not."""
    from tacit.base import config_file
    from tacit.base.job import Job
    from tacit.learn.review.review_job import run_review as review
    from tacit.traces.host import Source
    from tacit.traces.host_registry import get
    from tacit.traces.store import Store

    values = {"agent.model": "openai:mock", "agent.base_url": f"{url}/v1"}
    config_file.set_values(values | {"learn.approval": "auto"})
    store = Store.open()
    name = store.take_in(get("qwen"), Source("qwen", session)).id
    store.close()
    began, spent = time.time(), _cpu()
    done = review(Job("bench", "review", name, {"session": name}))
    told = {"began": began, "ended": time.time(), "cpu": _cpu() - spent}
    print(json.dumps(told | {"outcome": done.outcome, "reason": done.reason}))
    return 0


def _cpu() -> float:
    """Seconds on the processor so far, of this process and those that it started."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _place(agent: Agent, home: Path, url: str) -> Place:
    installed = install(agent, default_cache())
    place = Place(home=home, project=home / "project", url=url, path=installed.path)
    prepare(agent, place)
    return place


def print_table(rows: dict[str, list[Measured]]) -> None:
    own = statistics.median(m.characters for m in rows["Tacit"])
    heads = ("requests", "characters", "ratio", "largest", "seconds")
    print(f"{'':<10} " + " ".join(f"{head:>10}" for head in heads) + " made")
    for name, measured in rows.items():
        characters = statistics.median(m.characters for m in measured)
        seconds = statistics.median(m.seconds for m in measured)
        first = measured[0]
        made = sum(m.made for m in measured)
        print(
            f"{name:<10} {first.requests:>10} {characters:>10,.0f} {own / characters:>10.2f} "
            f"{first.largest:>10,} {seconds:>10.2f} {made}/{len(measured)}"
        )
    spent = statistics.median(m.cpu for m in rows["Tacit"])
    print(f"Tacit's seconds on the processor: {spent:.2f}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--review"]:
        raise SystemExit(review_here(*sys.argv[2:4]))
    raise SystemExit(main())
