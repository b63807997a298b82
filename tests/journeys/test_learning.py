"""From sessions of real agents to a skill in use, and back out again, without a model."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from skills_ref.validator import validate

BIN = Path(sys.executable).parent
FIXTURES = Path(__file__).parents[1] / "fixtures" / "transcripts"


def tacit(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [BIN / "tacit", *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


def answer(*arguments: str) -> Any:
    done = tacit(*arguments, "--json")
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_learn_accept_use_undo(home: Path) -> None:
    """Drafts wait, again nothing is new, accepted it is listed and found, undone it is gone."""
    for host in FIXTURES.iterdir():
        if host.is_dir():
            shutil.copytree(host / "home", home, dirs_exist_ok=True)
    dry = answer("learn", "--dry-run")
    assert set(dry) == {"sessions", "drafts", "model"}
    assert (dry["sessions"], len(dry["drafts"])) == (8, 2)
    assert set(dry["drafts"][0]) == {"draft", "verdict"}
    assert dry["drafts"][0]["verdict"] is None
    assert not any(answer("inbox").values())
    assert {row["learned"] for row in answer("sessions")["sessions"]} == {""}
    learned = tacit("learn")
    assert learned.returncode == 0, learned.stderr
    assert "8 sessions looked at, without a model." in learned.stdout
    fact, proposal = sorted(answer("inbox")["proposals"], key=lambda p: p["change"]["root"])
    assert fact["change"]["root"] == str(home / ".agents/memory")
    name = proposal["change"]["skill"]
    assert f"tacit inbox {proposal['id'][-8:]}" in learned.stdout
    assert len(proposal["change"]["evidence"]) == 8
    skills = home / ".agents/skills"
    assert not (skills / name).exists()
    assert tacit("learn").stdout.startswith("Nothing new to learn from.")
    again = answer("learn", "--again")
    assert {d["verdict"]["change"] for d in again["drafts"]} == {fact["id"], proposal["id"]}
    (verdict,) = answer("accept", proposal["id"][-8:])["verdicts"]
    assert verdict["outcome"] == "applied"
    assert validate(skills / name) == []
    assert tacit("lint", "--strict", name).returncode == 0
    assert name in tacit("list").stdout
    assert answer("search", "check build.py")["results"][0]["skill"]["name"] == name
    repeated = {d["draft"]["name"]: d["verdict"] for d in answer("learn", "--again")["drafts"]}
    assert repeated[name]["outcome"] == "refused"  # it stands there as it is
    assert answer("undo", verdict["change"])["outcome"] == "applied"
    assert not (skills / name).exists()
    assert tacit("doctor").returncode == 0
