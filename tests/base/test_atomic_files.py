"""Files that are whole or not there."""

import inspect
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tacit.base.atomic_files import (
    TEMPORARY_NAME,
    TemporaryFolder,
    drop_abandoned,
    kept_token,
    locked,
    write_atomic,
)
from tacit.base.errors import Busy, Unwritable
from waiting import LONG


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if TEMPORARY_NAME.fullmatch(name)]


def test_writing_replaces_the_file(home: Path) -> None:
    """New folders are made, private to the user; nothing else is left."""
    path = home / "a" / "b" / "file"
    write_atomic(str(path), b"one")
    write_atomic(str(path), b"two")
    assert path.read_bytes() == b"two"
    assert os.listdir(path.parent) == ["file"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_bare_name_is_written_to_the_working_directory(home: Path) -> None:
    """A path without a folder is a path."""
    write_atomic("file", b"x")
    assert (home / "work" / "file").read_bytes() == b"x"


@pytest.mark.parametrize("durable", [True, False])
def test_a_failed_write_leaves_the_old_file(
    home: Path, durable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever step fails, the old bytes stand and no half-written file stays behind."""
    path = home / "file"
    path.write_bytes(b"old")
    for step in ("write", "replace", *(["fsync"] if durable else [])):
        with monkeypatch.context() as patch:

            def fail(*_: object) -> None:
                raise OSError(28, "No space left on device")

            patch.setattr(os, step, fail)
            with pytest.raises(Unwritable, match=r"cannot write .*file: No space left on device"):
                write_atomic(str(path), b"new", durable=durable)
        assert path.read_bytes() == b"old"
        assert leftovers(home) == []


def test_an_interrupt_leaves_no_half_file(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle is passed on, and cleans up."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(str(home / "file"), b"new")
    assert leftovers(home) == []
    assert not (home / "file").exists()


def test_a_full_disk_leaves_the_old_file(home: Path) -> None:
    """A real limit of the system, met in the middle of the data."""
    path = home / "file"
    path.write_bytes(b"old")
    code = """
import resource, signal, sys
from tacit.base.errors import Unwritable
from tacit.base.atomic_files import write_atomic
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
try:
    write_atomic(sys.argv[1], b"n" * 100_000)
except Unwritable as error:
    sys.exit(error.exit_code)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == 9
    assert path.read_bytes() == b"old"
    assert leftovers(home) == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096


@pytest.mark.parametrize("target", ["folder", "file/below", "x" * 300])
def test_what_cannot_be_written_is_named(home: Path, target: str) -> None:
    """A folder in its place, a file for a folder, a name too long: one kind of error."""
    (home / "folder" / "full").mkdir(parents=True)
    (home / "file").write_text("")
    with pytest.raises(Unwritable, match="cannot write"):
        write_atomic(str(home / target), b"x")
    assert leftovers(home) == []


def test_a_link_is_replaced_not_followed(home: Path) -> None:
    """Nothing is written through a link that somebody else planted."""
    (home / "other").write_text("other")
    (home / "file").symlink_to("other")
    write_atomic(str(home / "file"), b"new")
    assert (home / "other").read_text() == "other"
    assert (home / "file").read_bytes() == b"new"


def test_killed_at_any_moment_the_file_is_whole(home: Path) -> None:
    """SIGKILL in the middle of writing leaves the old bytes or the new ones."""
    path = home / "file"
    code = """
import sys
from tacit.base.atomic_files import write_atomic
print(flush=True)
n = 0
while True:
    n += 1
    write_atomic(sys.argv[1], bytes([n % 256]) * 300_000, durable=False)
"""
    for wait in (0.0, 0.003, 0.011, 0.02, 0.035):
        process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        with process, process.stdout:
            process.stdout.readline()
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
        if path.exists():
            data = path.read_bytes()
            assert len(data) == 300_000
            assert len(set(data)) == 1
        assert len(leftovers(home)) <= 5


def test_many_writers_never_mix(home: Path) -> None:
    """A reader sees one writer's bytes, whole, at every moment."""
    path = home / "file"
    write_atomic(str(path), b"0" * 50_000)
    stop = threading.Event()
    seen: set[bytes] = set()

    def write(mark: bytes) -> None:
        for _ in range(60):
            write_atomic(str(path), mark * 50_000, durable=False)

    def read() -> None:
        while not stop.is_set():
            data = path.read_bytes()
            seen.add(bytes(set(data)) if len(data) == 50_000 else b"short")

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(b"%d" % n,)) for n in range(4)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    reader.join()
    assert seen <= {b"0", b"1", b"2", b"3"}
    assert leftovers(home) == []


HOLD = """
import sys, time
from tacit.base.atomic_files import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(3600)
"""


def holder(path: Path) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_a_held_lock_is_busy_and_a_kill_frees_it(home: Path) -> None:
    """The message says what is held; after a SIGKILL the lock is there for the next."""
    path = home / "new" / "x.lock"
    with holder(path) as process:
        with (
            pytest.raises(Busy, match=r"held the thing for over 0.1 s") as caught,
            locked(str(path), seconds=0.1, what="the thing"),
        ):
            pass
        assert str(path) in caught.value.hint
        process.send_signal(signal.SIGKILL)
        process.wait()
    with locked(str(path), seconds=LONG):
        pass


def test_waiting_ends_when_the_lock_is_free(home: Path) -> None:
    """A waiter gets the lock as soon as its holder lets go."""
    path = home / "x.lock"
    with holder(path) as process:
        process.terminate()
        with locked(str(path), seconds=LONG):
            pass


def test_an_error_inside_frees_the_lock(home: Path) -> None:
    """What goes wrong in the block is passed on, and the lock let go."""
    path = str(home / "x.lock")
    with pytest.raises(KeyError), locked(path):
        raise KeyError
    with locked(path, seconds=0.1):
        pass


def test_a_place_without_room_for_a_lock(home: Path) -> None:
    """A file where a folder must be is an error that names the lock."""
    (home / "file").write_text("")
    with pytest.raises(Unwritable, match=r"cannot lock .*x\.lock"), locked(f"{home}/file/x.lock"):
        pass


def test_counting_together(home: Path) -> None:
    """Many processes that read, add one and write under the lock lose no count."""
    (home / "count").write_text("0")
    code = """
import sys
from tacit.base.atomic_files import locked
for _ in range(10):
    with locked(sys.argv[1] + ".lock"):
        n = int(open(sys.argv[1]).read())
        open(sys.argv[1], "w").write(str(n + 1))
"""
    run = [sys.executable, "-W", "ignore", "-c", code, str(home / "count")]
    processes = [subprocess.Popen(run) for _ in range(4)]
    assert [process.wait(120) for process in processes] == [0] * 4
    assert (home / "count").read_text() == "40"


def test_a_token_is_made_once_for_this_user_alone(tmp_path: Path) -> None:
    """An empty file is none: nobody gets in with nothing."""
    file = tmp_path / "x.token"
    file.write_text("\n")
    made = kept_token(str(file))
    assert len(made) > 30
    assert kept_token(str(file)) == made
    assert file.stat().st_mode & 0o077 == 0


def test_a_temporary_folder_goes_with_whoever_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed, left, forgotten, or filled by a command that took away the right to remove it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with TemporaryFolder("kind") as folder:
        assert os.stat(folder).st_mode & 0o777 == 0o700
        assert os.path.basename(folder).startswith("tacit-kind-")
        os.makedirs(f"{folder}/a/b")
        os.symlink(str(tmp_path.parent), f"{folder}/a/b/link")
        for path in (f"{folder}/a/b", f"{folder}/a", folder):
            os.chmod(path, 0o500)
    forgotten = TemporaryFolder()
    del forgotten
    closed = TemporaryFolder()
    closed.close()
    closed.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what somebody holds, what is new, what is a link, nor what is called otherwise."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    names = ["tacit-abcd1234.tmp", "tacit-trial-abcd1234.tmp", "tacit-examples", "tacit-0-4a6fa7b2"]
    for name in names:
        (tmp_path / name / "below").mkdir(parents=True)
    (tmp_path / "tacit-linked_1.tmp").symlink_to(tmp_path / "tacit-examples")
    now = time.time()
    with TemporaryFolder() as held:
        drop_abandoned(now)
        assert {path.name for path in tmp_path.iterdir()} > set(names)
        drop_abandoned(now + 3600)
        assert {path.name for path in tmp_path.iterdir()} == {
            *names[2:],
            "tacit-linked_1.tmp",
            os.path.basename(held),
        }
        assert (tmp_path / "tacit-examples" / "below").is_dir()


def test_no_depth_keeps_a_folder_from_going(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command nests more folders than calls fit on the stack: sessions would end as they begin,
    each by what the first one left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    nest(str(tmp_path / "tacit-abcd1234.tmp"))
    (tmp_path / "tacit-abcd1234.tmp").chmod(0)
    most = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 40)
    try:
        drop_abandoned(time.time() + 3600)
    finally:
        sys.setrecursionlimit(most)
    assert list(tmp_path.iterdir()) == []


def nest(folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(60):
        os.mkdir("a", dir_fd=here)
        below = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("key", os.O_CREAT, dir_fd=here))
    os.close(here)


def test_a_temporary_folder_that_is_taken_for_abandoned_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody whose clock is wrong removes it between its making and its lock."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    makes, made = tempfile.mkdtemp, []

    def swept(*given: str) -> str:
        made.append(makes(*given))
        if len(made) < 3:
            drop_abandoned(time.time() + 3600)
        return made[-1]

    monkeypatch.setattr("tempfile.mkdtemp", swept)
    with TemporaryFolder() as folder:
        assert folder == os.path.realpath(made[2])
        assert os.listdir(tmp_path) == [os.path.basename(folder)]
    assert not os.listdir(tmp_path)
