"""A stranger in an empty home: make, change, break, undo, roll back, answer, lose nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from skills_ref.validator import validate

from tacit.changes.change import Create, Edit, acting_as, make_change
from tacit.changes.gate import Gate

BIN = Path(sys.executable).parent
FULL = os.environ.get("TACIT_TEST_FULL")
LEARNED = (
    "---\nname: {name}\ndescription: How {name} is done. Use for {name}.\n"
    "metadata:\n  source: auto-skill\n---\n\n{body}"
)
LINES = "".join(f"{n}. step number {n}\n" for n in range(1, 10))


def tacit(
    *arguments: str, given: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [BIN / "tacit", *arguments],
        capture_output=True,
        text=True,
        input=given,
        env={**os.environ, **environment},
        timeout=120,
    )


def answer(*arguments: str, **more: Any) -> Any:
    done = tacit(*arguments, "--json", **more)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_the_whole_way(home: Path) -> None:
    """Make a skill, change it, be told why not, undo, roll back, accept and reject."""
    skills = home / ".agents/skills"
    path = skills / "ship/SKILL.md"
    about = "Ship a release: tag, build, publish. Use when a release is asked for."
    made = answer("new", "ship", "-d", about, "--body", "1. Tag.\n2. Build.\n3. Publish.")
    assert made["outcome"] == "applied"
    first = path.read_text()
    better = first.replace("2. Build.", "2. Build with `make dist`.")
    changed = answer("edit", "ship", "--from", "-", "--reason", "say how", given=better)
    broken = tacit("edit", "ship", "--from", "-", given="no head at all")
    assert broken.returncode == 5
    assert "refused [" in broken.stderr
    assert "tacit edit ship --from ~/" in broken.stderr
    assert path.read_text() == better
    assert answer("undo", changed["change"])["outcome"] == "applied"
    assert path.read_text() == first
    assert answer("rollback", "ship", changed["change"][-8:])["outcome"] == "applied"
    assert path.read_text() == better
    with acting_as("improver"):
        for old, new in (("1. Tag.", "1. Tag it."), ("3. Publish.", "3. Publish at night.")):
            edit = make_change("ship", Edit(old, new), reason="shorter", root=str(skills))
            assert Gate().propose(edit).outcome == "proposed"
    good, bad = (row["id"] for row in answer("inbox")["proposals"])
    assert answer("accept", good[-8:])["verdicts"][0]["outcome"] == "applied"
    assert answer("reject", bad[-8:], "--reason", "never at night")["state"] == "rejected"
    text = path.read_text()
    assert "1. Tag it." in text
    assert "at night" not in text
    assert validate(skills / "ship") == []
    assert tacit("doctor").returncode == 0


def test_hand_edits_between_machine_edits_lose_no_line(home: Path) -> None:
    """A machine edits, a person edits by hand, the machine edits again from what it saw."""
    skills = home / ".agents/skills"
    text = LEARNED.format(name="steps", body=LINES)
    gate = Gate()
    with acting_as("distiller"):
        create = make_change("steps", Create({"SKILL.md": text.encode()}), root=str(skills))
        assert gate.propose(create).applied
        base = gate.state_of("steps", str(skills)).head
        assert base is not None
        path = skills / "steps/SKILL.md"
        path.write_text(path.read_text().replace("5. step", "5. MY step") + "10. my own line\n")
        edit = Edit("1. step number 1", "1. better step 1")
        second = make_change("steps", edit, root=str(skills), base=base.id)
        assert gate.propose(second).applied
    after = path.read_text()
    for line in ("1. better step 1", "5. MY step number 5", "10. my own line", "9. step number 9"):
        assert line in after
    versions = answer("log", "steps")["versions"]
    assert [(v["kind"], v["actor"]) for v in versions] == [
        ("edit", "distiller"),
        ("hand", "user"),
        ("create", "distiller"),
    ]
    assert answer("undo", versions[0]["change"])["outcome"] == "applied"
    assert "5. MY step number 5" in path.read_text()


def killed(moment: float, *arguments: str, given: bytes) -> None:
    """Start the program and kill it with everything it started, after `moment` seconds."""
    process = subprocess.Popen(
        [BIN / "tacit", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(given)
    process.stdin.close()
    time.sleep(moment)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait(timeout=120)


def test_kills_at_any_moment_leave_everything_whole(home: Path) -> None:
    """Kills in the middle of new and edit: old or new, never half; doctor is content."""
    skills = home / ".agents/skills"
    about = "Steady work. Use when it must not break."
    assert answer("new", "steady", "-d", about, "--body", LINES)["outcome"] == "applied"
    path = skills / "steady/SKILL.md"
    started = time.monotonic()
    edit = ("edit", "steady", "--from", "-")
    assert answer(*edit, given=path.read_text() + "0. run\n")["outcome"] == "applied"
    whole_time = time.monotonic() - started
    chance = random.Random(7)
    texts = {path.read_text()}
    for number in range(30 if FULL else 6):
        moment = chance.uniform(0.3, 1.1) * whole_time
        if number % 2:
            text = path.read_text() + f"- kill {number}\n"
            texts.add(text)
            killed(moment, *edit, given=text.encode())
            assert path.read_text() in texts
        else:
            name = f"born-{number}"
            body = f"1. Be born as number {number}, and do thing {chance.random()}.\n"
            words = ("new", name, "-d", f"Number {number}. Use {number}.", "--from", "-")
            killed(moment, *words, given=body.encode())
            if (skills / name).exists():
                assert validate(skills / name) == []
                assert body.strip() in (skills / name / "SKILL.md").read_text()
    answer("edit", "steady", "--from", "-", given=path.read_text() + "last\n")
    tacit("search", "steady")  # an index that a kill cut off is built again by its next use
    done = tacit("doctor")
    assert done.returncode == 0, done.stdout
    known = {v["skill"] for v in answer("log", "-n", "100")["versions"]}
    there = {folder.name for folder in skills.iterdir() if not folder.name.startswith(".")}
    assert there == known
    assert path.read_text().endswith("last\n")
