"""`tacit trial` as a user has it, with a scripted model that only the skill puts right."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from inside import answer, tacit

pytest.importorskip("pydantic_ai", reason="the extra 'agent' is not installed")

from tacit.base import config_file
from tacit.base.setting_sections import AgentSettings, Settings
from tacit.changes.gate import Gate
from tacit.changes.place import user_place
from tacit.learn.trial.candidate import find_candidate
from tacit.learn.trial.interval import interval_of
from tacit.learn.trial.trial_effects import settle_standing
from tacit.learn.trial.trial_run import OwnAgent, clean_folder
from tacit.learn.trial.trial_tasks import Check, Task
from tacit.skills.library import Library
from tacit.testing import ModelServer, Stall, Status, ToolUse, reply
from tacit.traces.store import Store
from tacit.traces.trace import Head, ToolCall, Trace, Turn
from tacit.ui.cli.fast import skill_table

HEAD = "---\nname: frobnicate\ndescription: How to frobnicate. Use when asked to.\n---\n\n"


def model(request: Any) -> Any:
    """Reads the skill where it is offered, and writes the right word only with it."""
    offered = request.mentions("- frobnicate: How")
    if not request.tool_results:
        if offered:
            return ToolUse("run_skill", {"name": "frobnicate"})
        return ToolUse("write_file", {"path": "out.txt", "content": "wrong"})
    if offered and len(request.tool_results) == 1:
        return ToolUse("write_file", {"path": "out.txt", "content": "right"})
    return "done"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(model, strict=False) as server:
        monkeypatch.setenv("TACIT_AGENT_BASE_URL", server.url + "/v1")
        monkeypatch.setenv("TACIT_AGENT_MODEL", "openai:mock-model")
        yield server


@pytest.fixture
def skill(home: Path) -> Path:
    folder = home / ".agents" / "skills" / "frobnicate"
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"{HEAD}Write the word right.\n")
    check = {"file": "out.txt", "contains": "right"}
    task = {"id": 1, "prompt": "Frobnicate it", "files": [], "checks": [check]}
    (folder / "evals" / "evals.json").write_text(json.dumps({"evals": [task]}))
    return folder


def test_a_trial_answers_and_goes_on(skill: Path, server: ModelServer, home: Path) -> None:
    """Estimated, run, on record, opened, gone on with, and nothing is learned from its sessions."""
    planned = answer("trial", "run", "frobnicate", "--dry-run")
    assert planned["estimate"]["runs"] == 60
    assert not server.requests
    first = answer("trial", "frobnicate", "--runs", "4")["answer"]
    assert (first["pairs"], first["finding"]) == (2, "unclear")
    assert (first["with_skill"], first["without"], first["read"]) == (1.0, 0.0, 2)
    done = tacit("trial", "frobnicate", "--runs", "2")
    assert "not enough runs to tell: +100 points" in done.stdout, done.stdout + done.stderr
    shown = answer("trial", "show", "frobnicate")
    assert shown["answer"]["pairs"] == 3
    session = shown["answer"]["sessions"]["with"][0]
    assert "Frobnicate it" in tacit("session", session).stdout
    with Store.open() as store:
        from tacit.learn.use_records import catch_up
        from tacit.traces.skill_uses import uses_of

        catch_up(store)
        assert not uses_of(store.connection)
    bodies = [json.loads(request.body) for request in server.requests]
    assert all("seed" in body for body in bodies)
    assert not any("evals" in json.dumps(body["messages"]) for body in bodies)
    assert not list((home / "work").iterdir())


def test_a_run_that_hangs_counts_on_neither_side(home: Path) -> None:
    task = Task(id="t", prompt="Frobnicate it", seconds=0.5, checks=(Check(answer="done"),))
    with ModelServer(lambda _: reply("done", fault=Stall(60)), strict=False) as server:
        agent = AgentSettings(model="openai:mock-model", base_url=f"{server.url}/v1", retries=0)
        with clean_folder(task) as (work, above):
            (Path(above) / "skills").mkdir()
            ran = OwnAgent(Settings(agent=agent)).run(task, work, f"{above}/skills", 1)
    assert "0.5 s" in ran.void


def test_a_run_without_an_answer_is_made_again(skill: Path, home: Path) -> None:
    """Nobody's failure: once by the same command, once by the next, and the pair counts."""
    task = {"id": 1, "prompt": "Frobnicate it", "files": [], "checks": [{"answer": "done"}]}
    (skill / "evals" / "evals.json").write_text(json.dumps({"evals": [task]}))
    faults = iter([None, Status(400)])
    with ModelServer(lambda _: reply("done", fault=next(faults, None)), strict=False) as server:
        config_file.set_values(
            {"agent.base_url": f"{server.url}/v1", "agent.model": "openai:mock-model"}
        )
        done = tacit("trial", "frobnicate", "--runs", "2")
        assert "void" in done.stderr
        assert "nothing can be said" in done.stdout
        found = answer("trial", "frobnicate", "--runs", "2")["answer"]
    assert (found["pairs"], sum(found["void"].values())) == (1, 1)
    assert (found["with_skill"], found["without"]) == (1.0, 1.0)


def test_a_version_can_be_tried_against_another(skill: Path, server: ModelServer) -> None:
    """By the id that `tacit log` shows; nothing follows for its standing."""
    better = skill.parent.parent / "better.md"
    better.write_text(f"{HEAD}Write the word right, twice.\n")
    done = tacit("edit", "frobnicate", "--from", str(better))
    old = tacit("log", "frobnicate").stdout.splitlines()[-1].split("\t")[1]
    found = answer("trial", "frobnicate", "--runs", "2", "--against", old)
    assert done.returncode == 0
    assert found["answer"]["against"] == f"version {old}"
    assert found["effect"]["did"] == "nothing"
    texts = [str(request.tool_results) for request in server.requests]
    assert any("right, twice" in text for text in texts)
    assert any("the word right." in text for text in texts)
    assert tacit("trial", "frobnicate", "--against", "zzzz").returncode == 3


def test_the_sessions_themselves_can_stand_in_the_skills_place(
    skill: Path, server: ModelServer
) -> None:
    """The control for whether writing a skill was worth it; where none is stored, it is said."""
    text = HEAD.replace("---\n\n", "metadata:\n  sessions: codex:s1\n---\n\n")
    (skill / "SKILL.md").write_text(f"{text}Write.\n")
    missing = tacit("trial", "frobnicate", "--against", "sessions")
    assert (missing.returncode, "none of the sessions" in missing.stderr) == (3, True)
    call = ToolCall("1", "Bash", "shell", {"command": "echo hello"}, result="it said hello")
    with Store.open() as store:
        store.write(Trace(Head("codex", "s1"), (Turn(0, "Frobnicate the cellar", (call,)),)))
    done = tacit("trial", "frobnicate", "--runs", "2", "--against", "sessions")
    assert "frobnicate against sessions" in done.stdout, done.stderr
    read = [str(request.tool_results) for request in server.requests]
    assert any("Frobnicate the cellar" in text and "it said hello" in text for text in read)


def test_among_the_library_the_tasks_of_other_skills_are_run_too(
    skill: Path, server: ModelServer
) -> None:
    """They do not count for the skill's own effect, and say whether it disturbs them."""
    other = skill.parent / "tidy"
    (other / "evals").mkdir(parents=True)
    (other / "SKILL.md").write_text("---\nname: tidy\ndescription: How to tidy.\n---\n\nTidy.\n")
    task = {
        "id": 1,
        "prompt": "Tidy",
        "files": [],
        "checks": [{"file": "out.txt", "contains": "wrong"}],
    }
    (other / "evals" / "evals.json").write_text(json.dumps({"evals": [task]}))
    done = tacit("trial", "frobnicate", "--runs", "4", "--among")
    assert "beside the rest of the library" in done.stdout, done.stderr
    assert "-100 points" in next(
        row for row in done.stdout.splitlines() if row.startswith("beside")
    )
    found = answer("trial", "show", "frobnicate")["answer"]
    assert (found["pairs"], found["read"], found["success"]["mean"]) == (1, 1, 1.0)
    assert found["others"]["count"] == 1
    assert all(request.mentions("- tidy: How to tidy.") for request in server.requests)


def test_a_skill_that_was_taken_out_keeps_its_standing(skill: Path) -> None:
    """In the list of those that are out of use, in its history and where it is shown."""
    learned = HEAD.replace("---\n\n", "metadata:\n  source: auto-skill\n---\n\n")
    (skill / "SKILL.md").write_text(f"{learned}Write.\n")
    gate, shown = Gate([user_place()]), interval_of([-1] * 12)
    candidate = find_candidate(gate, Library(), "frobnicate")
    settle_standing(gate, candidate, "harms", shown, "in 12 pairs", Settings())
    assert answer("list", "frob")["skills"] == []
    (row,) = answer("list", "frob", "--archived")["skills"]
    assert (row["state"], row["standing"]) == ("archived", "harms")
    line = ("frobnicate", "user", "How.", "archived", "")
    assert "[archived, harms]" in skill_table([line], 80, False, {"frobnicate": "harms"})
    assert answer("show", "frobnicate")["standing"] == "harms"
    assert answer("history", "frobnicate")["standing"] == "harms"
    assert "harms; -100 points" in tacit("history", "frobnicate").stdout


def test_a_check_that_cannot_pass_is_doubted(skill: Path, server: ModelServer) -> None:
    """Before a run, where it cannot be run at all, or would pass anyway."""
    checks = [{"command": "no-such-program --check"}]
    tasks = [
        {"id": 1, "prompt": "Frobnicate it", "checks": checks},
        {"id": 2, "prompt": "Frobnicate that", "checks": [{"command": "true"}]},
    ]
    (skill / "evals" / "evals.json").write_text(json.dumps({"evals": tasks}))
    first, second = answer("trial", "frobnicate", "--dry-run")["doubts"]
    assert "frobnicate/1: its check cannot be run here" in first
    assert "no-such-program" in first
    assert second == "frobnicate/2: its checks pass before anything is done"
    done = tacit("trial", "frobnicate", "--dry-run")
    assert "doubtful: frobnicate/1: its check cannot be run" in done.stderr


def test_what_cannot_be_tried_is_said(skill: Path, server: ModelServer) -> None:
    (skill / "evals" / "evals.json").unlink()
    done = tacit("trial", "frobnicate")
    assert done.returncode == 3
    assert "tacit trial init frobnicate" in done.stderr
    assert tacit("trial", "nothing-like-it").returncode == 3
    assert "Nothing was tried yet" in tacit("trial").stdout


def test_tasks_are_drafted_from_sessions_and_marked(skill: Path, home: Path) -> None:
    """The prompt, the file that was read, the check that passed; no verdict by it unless asked."""
    text = HEAD.replace("---\n\n", "metadata:\n  sessions: codex:s1\n---\n\n")
    (skill / "SKILL.md").write_text(f"{text}Write.\n")
    (skill / "evals" / "evals.json").unlink()
    (home / "work" / "data.csv").write_text("a,b\n")
    calls = (
        ToolCall("1", "Read", "read", {"file_path": str(home / "work" / "data.csv")}),
        ToolCall("2", "Bash", "shell", {"command": "pytest -q"}, result="1 passed in 0.1s"),
    )
    turn = Turn(0, "Frobnicate the data of data.csv please", calls)
    with Store.open() as store:
        store.write(Trace(Head("codex", "s1", project=str(home / "work")), (turn,)))
    done = tacit("trial", "init", "frobnicate")
    assert "Drafted 1 task" in done.stdout, done.stderr
    (entry,) = json.loads((skill / "evals" / "evals.json").read_text())["evals"]
    assert entry["learned_from"] == ["codex:s1"]
    assert entry["checks"] == [{"command": "pytest -q"}]
    assert (skill / entry["files"][0]).read_text() == "a,b\n"
    assert tacit("trial", "init", "frobnicate").returncode == 3


def test_a_draft_that_does_not_pass_the_gate_does_not_hold_up_the_others(
    skill: Path, home: Path
) -> None:
    """What somebody said in a session may be what a learned skill must not name."""
    text = HEAD.replace(
        "---\n\n", "metadata:\n  source: auto-skill\n  sessions: codex:s1, codex:s2\n---\n\n"
    )
    (skill / "SKILL.md").write_text(f"{text}Write.\n")
    (skill / "evals" / "evals.json").unlink()
    words = ("Put what we said into AGENTS.md", "Frobnicate the data of the shop")
    with Store.open() as store:
        for number, said in enumerate(words, 1):
            store.write(Trace(Head("codex", f"s{number}", project=str(home)), (Turn(0, said, ()),)))
    done = tacit("trial", "init", "frobnicate")
    assert "Drafted 1 task" in done.stdout, done.stderr
    assert "of 2" in done.stdout
    (entry,) = json.loads((skill / "evals" / "evals.json").read_text())["evals"]
    assert entry["prompt"] == words[1]


def test_tasks_can_lie_in_a_folder_of_their_own(
    skill: Path, home: Path, server: ModelServer
) -> None:
    """For a skill that waits, which has no folder: drafted there, and tried from there."""
    (skill / "evals" / "evals.json").unlink()
    call = ToolCall("2", "Bash", "shell", {"command": "make test"}, result="1 passed in 0.1s")
    turn = Turn(0, "Frobnicate the data of the shop please", (call,))
    with Store.open() as store:
        store.write(Trace(Head("codex", "s2", project=str(home / "work")), (turn,)))
    done = tacit("trial", "init", "frobnicate", "--session", "codex:s2", "--into", "tasks")
    assert "Drafted 1 task into tasks/evals/evals.json" in done.stdout, done.stderr
    assert not (skill / "evals" / "evals.json").exists()
    planned = answer("trial", "frobnicate", "--tasks", "tasks", "--dry-run")
    assert [task["id"] for task in planned["tasks"]] == ["tasks/1"]
    assert not planned["about"]["foreign"]


def test_a_drafted_task_counts_only_when_that_is_said(
    skill: Path, home: Path, server: ModelServer
) -> None:
    text = HEAD.replace("---\n\n", "metadata:\n  sessions: codex:s1\n---\n\n")
    (skill / "SKILL.md").write_text(f"{text}Write.\n")
    task = {"id": 1, "prompt": "x", "checks": [{"answer": "y"}], "learned_from": ["codex:s1"]}
    (skill / "evals" / "evals.json").write_text(json.dumps({"evals": [task]}))
    done = tacit("trial", "frobnicate", "--dry-run")
    assert done.returncode == 3
    assert "--seen" in done.stderr
    assert tacit("trial", "frobnicate", "--dry-run", "--seen").returncode == 0
