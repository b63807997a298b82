"""`tacit learn --handoff` and `tacit handoff`, as an agent calls them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import inside
import pytest

from tacit.base import config_file, trust
from tacit.learn.review.review_answer import MOST_ANSWER
from tacit.skills.library import Library
from tacit.testing.sample_sessions import made, ran
from tacit.traces.store import Store

PROGRAM = str(Path(sys.executable).with_name("tacit"))
SKILL = """---
name: release-build
description: Build a release of this project. Use before a version is published.
---

# Release build

1. Read the version from the VERSION file; never invent one.
2. Run `make release` with that version in the environment.
"""
WRITES = {"path": "release-build/SKILL.md", "content": SKILL}


@pytest.fixture
def project(home: Path) -> Path:
    """A trusted project with a session that is due, and one that is too small."""
    folder = home / "work"
    (folder / ".git").mkdir()
    trust.add(str(folder))
    config_file.set_values({"learn.approval": "auto"})
    work = [ran(f"make part-{n}") for n in range(21)]
    with Store.open() as opened:
        opened.write(
            made(
                ["Build a release.", ran("make release", "VERSION is not set", failed=True), *work],
                ["No, never invent a version: read it from the VERSION file."],
                session="rich-0001",
                project=str(folder),
            )
        )
        opened.write(made(["Hello."], session="small-0001", project=str(folder)))
    return folder


def run(*arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [PROGRAM, *arguments], input=given, capture_output=True, text=True, timeout=120, check=False
    )


def said(**parts: Any) -> str:
    return json.dumps({"why": "Kept how a release is built."} | parts)


def test_from_nothing_to_a_skill_without_a_model(project: Path) -> None:
    """Prepared with its own exit code, taken, answered with prose around it, and landed."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        assert name not in os.environ
    prepared = inside.tacit("learn", "--handoff")
    assert (prepared.returncode, prepared.stderr) == (11, "")
    assert "1 review waits for an agent" in prepared.stdout
    shown = inside.tacit("handoff", "next")
    assert shown.returncode == 0
    assert "never invent a version" in shown.stdout
    found = re.search(r"tacit handoff answer ([0-9a-f]{8})", shown.stdout)
    assert found is not None
    bad = WRITES | {"path": "fix-99/SKILL.md"}
    refused = inside.tacit("handoff", "answer", found[1], given=said(write_file=[bad]).encode())
    assert refused.returncode == 5
    assert refused.stdout.startswith("sent back: ")
    good = f"Here:\n```json\n{said(write_file=[WRITES])}\n```\n"
    done = run("handoff", "answer", found[1], given=good)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("created: created release-build\n")
    assert (project / ".agents/skills/release-build/SKILL.md").exists()
    again = inside.tacit("handoff", "answer", found[1], given=good.encode())
    assert again.returncode == 3
    assert inside.tacit("learn", "--handoff").returncode == 0  # nothing is new


def test_the_same_as_json(tacit: Any, project: Path) -> None:
    """Each step has a document: what waits, what was taken with the schema, what came of it."""
    prepared = tacit.json("learn", "--handoff", code=11)
    assert (prepared["sessions"], prepared["waiting"]) == (["claude-code:rich-0001"], 1)
    (row,) = tacit.json("handoff")["waiting"]
    assert (row["session"], row["taken"]) == ("claude-code:rich-0001", "")
    taken = tacit.json("handoff", "next")
    assert taken["left"] == 0
    assert set(taken["schema"]["$defs"]["ReviewAnswer"]["properties"]) == {
        "why", "write_file", "edit", "remember",
    }  # fmt: skip
    answer = project / "answer.json"
    answer.write_text(said())
    done = tacit.json("handoff", "answer", taken["id"], str(answer))
    assert (done["outcome"], done["left"]) == ("nothing", 0)
    assert tacit.json("handoff", "next") == {"id": "", "left": 0}
    assert tacit.json("handoff", "drop") == {"dropped": 0}


def test_an_oversized_answer_is_not_read(project: Path) -> None:
    """It is refused before it is judged, and the review can still be answered."""
    run("learn", "--handoff")
    taken = json.loads(run("handoff", "next", "--json").stdout)
    done = run("handoff", "answer", taken["id"], given="x" * (4 * MOST_ANSWER + 1))
    assert done.returncode == 2
    assert run("handoff", "answer", taken["id"], given=said()).returncode == 0


def test_a_file_that_is_not_there_is_named(tacit: Any, project: Path) -> None:
    """The error says which."""
    done = tacit("handoff", "answer", "0" * 8, "gone.json")
    assert done.returncode == 3
    assert "gone.json" in done.stderr


@pytest.mark.parametrize("other", ["--no-model", "--dry-run"])
def test_options_that_exclude_each_other(other: str, tacit: Any, project: Path) -> None:
    """A hand-over asks no model, counts nothing and cannot be rehearsed."""
    done = tacit("learn", "--handoff", other)
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


def test_the_bundled_skill_names_commands_that_exist(home: Path) -> None:
    """What an agent is told to run is what there is."""
    entry = Library().find("learn-from-sessions")
    assert entry is not None
    text = Path(entry.folder, "SKILL.md").read_text()
    for words in ("learn --handoff", "handoff next", "handoff answer"):
        assert f"tacit {words}" in text
        name = words.split()
        help_text = run(*name[: 1 if name[0] == "learn" else 2], "--help").stdout
        assert name[1] in help_text
