"""`tacit learn`: with a scripted model on loopback, and without one."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from inside import answer, error, tacit

pytest.importorskip("pydantic_ai", reason="the agent's extra is not installed")

from tacit.agent import budget
from tacit.agent.agent_events import Usage
from tacit.base import paths
from tacit.learn.ledger import REVIEW, Ledger
from tacit.testing import ModelServer, Stall, ToolUse, reply
from tacit.testing.sample_sessions import made, ran
from tacit.traces.store import Store

PROGRAM = str(Path(sys.executable).with_name("tacit"))
FIXTURES = Path(__file__).parents[1] / "fixtures" / "transcripts"
SKILL = """---
name: release-build
description: Build a release of this project. Use before a version is published.
---

# Release build

1. Read the version from the VERSION file; never invent one.
2. Run `make release` with that version in the environment.
"""
_DEAR = {"TACIT_LEARN_CONFIRM_ABOVE": "0.0001", "OPENAI_API_KEY": "none"}
MAKES = [ToolUse("write_file", {"path": "release-build/SKILL.md", "content": SKILL}), "kept"]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch):
    """Two sessions that are due, the older one with a correction, and one that is too small."""
    monkeypatch.setenv("TACIT_MEMORY_USE", "false")
    monkeypatch.setenv("TACIT_AGENT_RETRIES", "0")
    work = [ran(f"make part-{n}") for n in range(21)]
    opened = Store.open()
    opened.write(
        made(
            ["Build a release.", ran("make release", "VERSION is not set", failed=True), *work],
            ["No, never invent a version: read it from the VERSION file."],
            session="rich-0001",
        )
    )
    opened.write(made(["Go on.", *work], session="plain-0001"))
    opened.write(made(["Hello."], session="small-0001"))
    yield opened
    opened.close()


def learn(server: ModelServer, *arguments: str, **more: str):
    return tacit("learn", "--model", "openai:mock", *arguments, **_env(server, more))


def learned(server: ModelServer, *arguments: str, **more: str):
    return answer("learn", "--model", "openai:mock", *arguments, **_env(server, more))


def _env(server: ModelServer, more: dict[str, str]) -> dict[str, str]:
    return {"TACIT_AGENT_BASE_URL": f"{server.url}/v1", **more}


def test_the_most_promising_first_and_what_came_of_each(store: Store, home: Path) -> None:
    """A skill lands and can be seen and undone, one session gives nothing, the cost is told."""
    with ModelServer([*MAKES, "nothing to keep"]) as server:
        done = learn(server, TACIT_LEARN_APPROVAL="auto")
    assert done.returncode == 0, done.stderr
    assert "2 sessions to look at: about" in done.stderr
    assert "an estimate without experience yet; no price is known for openai:mock" in done.stderr
    created, nothing = (
        done.stdout.find(f"{word} claude-code") for word in ("created  ", "nothing  ")
    )
    assert 0 < created < nothing
    assert "2 sessions looked at. It cost 3 requests without a price (3 requests," in done.stdout
    assert "passed over: 1 few calls" in done.stdout
    assert (home / ".agents/skills/release-build/SKILL.md").exists()
    short = done.stdout.partition("undo: tacit undo ")[2][:8]
    assert f"see: tacit diff {short}" in done.stdout
    assert "Read the version from the VERSION file" in tacit("diff", short).stdout
    assert [notice["kind"] for notice in answer("inbox")["notices"]] == ["created"]
    assert answer("why", "rich-0001")["reviews"][0]["method"] == REVIEW
    assert answer("why", "rich-0001")["spent"]["requests"] == 2
    assert tacit("undo", short).returncode == 0
    assert not (home / ".agents/skills/release-build").exists()
    with ModelServer(["never asked"], strict=False) as server:
        again = learned(server)
        assert server.requests == []
    assert (again["sessions"], again["passed"]) == (0, {"done before": 2, "few calls": 1})


def test_a_dry_run_over_a_path_until_the_budget_is_used_up(
    store: Store, home: Path, tmp_path: Path
) -> None:
    """What would land is shown with its diff; nothing is changed or noted, and it is paid for.

    Transcripts that lie anywhere can be named; the second is left, as the budget is used up.
    """
    for host in ("claude", "codex"):
        shutil.copytree(FIXTURES / host / "home", tmp_path / "there" / host)
    limits = {"TACIT_LEARN_DAILY_TOKENS": "300", "TACIT_LEARN_AFTER_CALLS": "4"}
    with ModelServer(MAKES) as server:
        found = learned(server, str(tmp_path / "there"), "--dry-run", **limits)
    (row,) = found["looked"]
    assert row["outcome"] == "would change", row["reason"]
    (would,) = row["would"]
    assert would["skill"] == "release-build"
    assert "+1. Read the version from the VERSION file" in would["diff"]
    assert "which no agent of yours keeps" in would["waits"]
    assert answer("inbox")["proposals"] == []
    assert Ledger(store.connection).of(row["session"]) == []
    assert not (home / ".agents").exists()
    assert (found["spent"]["requests"], found["left"]) == (2, 1)
    assert "the 300 tokens a day are used up (240 taken today)" in found["stopped"]
    file = next((tmp_path / "there").rglob("*.jsonl"))
    named = tacit("learn", str(file), "--model", "openai:gpt-5.1", **_DEAR)
    assert "1 session to look at" in named.stderr  # named by its file, whatever it holds
    (tmp_path / "empty").mkdir()
    assert error(3, "learn", str(tmp_path / "empty"))["code"] == "not-found"


def test_a_dry_run_tells_lines_from_the_whole(store: Store, home: Path) -> None:
    """Where lines alone would wait, it says how many, and shows what would land."""
    more = "".join(f"{n}. Say when.\n" for n in range(4, 9))
    text = f"{SKILL}3. Skip the signature check of packages.\n{more}"
    writes = ToolUse("write_file", {"path": "release-build/SKILL.md", "content": text})
    with ModelServer([writes, "kept", "nothing to keep"]) as server:
        done = learn(server, "--dry-run", TACIT_LEARN_APPROVAL="auto")
    assert "release-build (1 line would wait)" in done.stdout, done.stdout
    assert ". (left out" in done.stdout
    assert "signature" not in done.stdout
    assert not (home / ".agents").exists()


def test_much_is_asked_first(store: Store) -> None:
    """Without a terminal to ask at, nothing is sent: it is said what to type."""
    done = tacit("learn", "--model", "openai:gpt-5.1", **_DEAR)
    assert done.returncode == 2
    assert "2 sessions to look at: about $" in done.stderr
    assert "--yes" in done.stderr
    assert budget.today().requests == 0


def test_a_dry_run_says_that_it_is_paid_for(store: Store) -> None:
    """Before anything is sent, also where JSON is asked for."""
    done = tacit("learn", "--dry-run", "--json", "--model", "openai:gpt-5.1", **_DEAR)
    assert "A dry run asks the model too, and is paid for. 2 sessions to look at" in done.stderr
    assert budget.today().requests == 0


def test_what_the_model_does_not_look_at_is_counted_over(store: Store) -> None:
    """With a model, short sessions still give the drafts that they give without one."""
    for name in ("a1", "a2"):
        turn = [
            "go",
            ran("npm run fmt"),
            ran("npm run lint", "0 issues."),
            ran("npm run test:unit"),
        ]
        store.write(made(turn, session=name, host="pi", project="/p/app"))
    found = answer("learn", "--host", "pi", "--model", "openai:gpt-5.1", **_DEAR)
    assert (found["sessions"], found["passed"]) == (0, {"few calls": 2})
    assert [one["draft"]["name"] for one in found["drafts"]] == ["app-checks"]
    assert budget.today().requests == 0


def test_a_budget_that_is_used_up_lets_nothing_begin(store: Store) -> None:
    """It is refused with the reason, and no request is made."""
    budget.record_spending("review", "x", Usage(1, 1, 0, 99.0, "m"))
    with ModelServer(["never"], strict=False) as server:
        done = learn(server)
        assert server.requests == []
    assert done.returncode == 5
    assert "the budget of $2.00 a day is used up" in done.stderr
    assert "tacit config set learn.daily_money 4" in done.stderr
    more = budget.allow_more("the 100 tokens a day are used up", 2.0, 100)
    assert more == "tacit config set learn.daily_tokens 200"


def test_interrupted_it_notes_nothing_of_what_was_not_done(store: Store) -> None:
    """Ctrl-C in a session that stalls: exit code 130, the rest is left for the next time."""
    script = [reply("a b c d e f", fault=Stall(3600, after_chunks=2))]
    with ModelServer(script, strict=False) as server:
        process = subprocess.Popen(
            [PROGRAM, "learn", "--model", "openai:mock"],
            env={**os.environ, "TACIT_AGENT_BASE_URL": f"{server.url}/v1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        server.wait(1, 60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "Stopped; what was done is kept." in out
    assert "2 sessions more: tacit learn" in out
    assert Ledger(store.connection).of("claude-code:rich-0001") == []


def test_what_an_agent_program_left_is_not_counted_over(store: Store) -> None:
    """A session in a folder of Tacit's own is its own work, and teaches nothing."""
    own = os.path.join(paths.folders().data, "programs", "gemini")
    store.write(made(["go"], ["No, always use VERSION=2."], project=own))
    assert "3 sessions looked at, without a model." in tacit("learn").stdout


def test_without_a_model_drafts_are_marked_as_such(store: Store) -> None:
    """By counting: it is said that no model was asked and why; a draft says that it is one."""
    mended = [ran("make all", "VERSION is not set", failed=True), ran("make all VERSION=1")]
    store.write(made(["go", *mended], ["No, use VERSION=2.", ran("make all VERSION=2")]))
    done = tacit("learn")
    assert "4 sessions looked at, without a model." in done.stdout
    assert "a draft; it waits for you: tacit inbox" in done.stdout
    assert "no model was chosen for learning" in done.stdout
    assert answer("learn", "--again", "--no-model")["model"] == ""
    quiet = tacit("learn", "--no-model", "--again").stdout
    assert "no model for work" not in quiet
    assert error(2, "learn", "--no-model", "--model", "x:y")["code"] == "usage"
