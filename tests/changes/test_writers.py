"""Many processes change skills at once."""

import json
import subprocess
import sys
from pathlib import Path

from tacit.changes import checks
from tacit.changes.gate import Gate
from tacit.changes.neighbours import Nobody
from tacit.changes.place import Place

HERE = Path(__file__).parent


def test_fifty_processes_lose_nothing(tmp_path: Path) -> None:
    """Fifty processes each make a skill and add a line to one that they share: all of it lands."""
    done = subprocess.run(
        [sys.executable, str(HERE / "writers_driver.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == [0] * 50, done.stderr[-3000:]
    skills = tmp_path / "skills"
    text = (skills / "shared" / "SKILL.md").read_text()
    assert {f"line {n}" for n in range(50)} <= set(text.splitlines())
    assert all((skills / f"own-{n}" / "SKILL.md").exists() for n in range(50))
    gate = Gate([Place(str(skills))], neighbours=Nobody(), data=str(tmp_path / "data"))
    history = gate.site().history
    log = list(history.log("shared"))
    assert [version.record.kind for version in log] == ["edit"] * 50 + ["create"]
    assert {version.record.reason for version in log[:-1]} == {f"writer {n}" for n in range(50)}
    assert len(history.skills()) == 51
    assert checks.check(gate) == []
