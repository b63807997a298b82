"""What doctor says of jobs and schedules: the thing, the cause and the next step."""

import shutil
from pathlib import Path

import pytest
from test_schedule_runner import every

from tacit.work import jobs_db, work_checks
from tacit.work.work_checks import check_schedules


def test_without_an_engine_the_step_is_to_install_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong and what to do are two things, each said once."""
    every(home)
    monkeypatch.setattr(jobs_db, "has_engine", lambda: False)
    (found,) = check_schedules()
    assert found.what == "there are schedules, but nothing here can fire schedules"
    assert found.fix == "install what does: pip install 'tacit[work]'"


def test_a_schedule_of_which_nothing_is_known_names_its_folder(home: Path) -> None:
    """Where no version is known, the step that is told can be done."""
    name = every(home).name
    folder = Path(work_checks.scheduled_folder()) / name
    (folder / "schedule.json").write_text("garbage")
    shutil.rmtree(home / ".local/share/tacit/history")
    found = next(f for f in check_schedules() if name in f.what)
    assert found.repair is None
    assert str(folder) in found.fix
