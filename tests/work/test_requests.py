"""Asking for jobs: what any process does in a moment, and what must not be lost."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.base.errors import NotFound, Unwritable
from tacit.base.job import job_id
from tacit.work import job_queue
from tacit.work.job_queue import request


@pytest.fixture(autouse=True)
def no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_WORKER", "1")


def spool(home: Path) -> Path:
    return home / ".local/share/tacit/requests"


def test_a_request_waits_whole_until_it_is_taken(home: Path) -> None:
    """It is read back as it was asked for, oldest first, and is private."""
    request("review", "one", {"session": "codex:1", "text": "zwölf\n"}, delay=3)
    request("curate", "two", {})
    first, second = job_queue.waiting_requests()
    assert (first.kind, first.key, first.delay) == ("review", "one", 3)
    assert first.payload == {"session": "codex:1", "text": "zwölf\n"}
    assert second.kind == "curate"
    assert spool(home).stat().st_mode & 0o077 == 0
    assert os.stat(first.path).st_mode & 0o077 == 0


def test_a_request_is_kept_until_its_job_is_over() -> None:
    """Taken, it can be asked for again, should the queue be lost; over, it is gone."""
    request("review", "one", {})
    job_queue.take(job_queue.waiting_requests()[0])
    assert not job_queue.waiting_requests()
    (taken,) = job_queue.taken_requests()
    job_queue.ask_again(taken)
    assert [asked.key for asked in job_queue.waiting_requests()] == ["one"]
    job_queue.take(job_queue.waiting_requests()[0])
    job_queue.over(job_id("review", "one"))
    job_queue.over(job_id("review", "one"))
    assert not job_queue.taken_requests()
    assert not job_queue.waiting_requests()


def test_a_full_or_closed_data_folder_has_a_second_place(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the data folder does not take waits in the runtime folder, and is found there."""
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    spool(home).parent.mkdir(parents=True)
    spool(home).write_text("a file where the folder should be")
    request("review", "one", {})
    assert [asked.path.startswith(str(runtime)) for asked in job_queue.waiting_requests()] == [True]


def test_a_request_that_nothing_takes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what was asked for, and where to look."""

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(job_queue.hook, "deliver", full)
    with pytest.raises(Unwritable, match="review of one: No space left") as caught:
        request("review", "one", {})
    assert "free space" in caught.value.hint


def test_an_unknown_kind_is_refused() -> None:
    """A request that nobody could ever do is not written."""
    with pytest.raises(NotFound, match="'dance'"):
        request("dance", "one", {})
    assert not job_queue.waiting_requests()


def test_what_is_no_request_is_put_aside(home: Path) -> None:
    """Garbage in the spool stands in nobody's way, and is kept for a look."""
    request("review", "one", {})
    for name, data in {"a": b"", "b": b"\xff\xfe", "c": b"[" * 5000, "d": b'{"kind": 3}'}.items():
        (spool(home) / f"{name}.request").write_bytes(data)
    (spool(home) / "newer.request").write_bytes(b'{"kind": "dream", "key": "k", "payload": {}}')
    assert len(job_queue.unreadable()) == 4
    for path in job_queue.unreadable():
        job_queue.put_aside(path)
    assert [asked.key for asked in job_queue.waiting_requests()] == ["one"]
    assert (spool(home) / "newer.request").exists(), "another version may know that kind"
    assert len(list((spool(home) / "unusable").iterdir())) == 4


def test_a_spool_of_somebody_elses_is_not_read(home: Path) -> None:
    """A folder in which others can write is passed over."""
    request("review", "one", {})
    spool(home).chmod(0o777)
    assert not job_queue.waiting_requests()


@given(kind=st.text(), key=st.text(), other=st.text())
def test_ids_are_names_of_files_and_differ(kind: str, key: str, other: str) -> None:
    """Whatever a session is called, the job's id is short, and another key has another id."""
    made = job_id("review", key)
    assert made.isascii()
    assert len(made) == 19
    assert (job_id("review", other) == made) == (other == key)
    assert job_id("improve", key) != made
