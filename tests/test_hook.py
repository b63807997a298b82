"""The hook program, as agents start it: whatever it is fed, it records, says nothing, and goes."""

import fcntl
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import hook
from tacit.base import briefing, prompt_line
from waiting import LONG, until

HOOK = str(Path(sys.executable).parent / "tacit-hook")
PAYLOAD = b'{"session_id": "abc", "hook_event_name": "Stop"}'


@pytest.fixture
def data(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder in which a worker is already being started, so that none is."""
    monkeypatch.setenv("TACIT_HOME", str(home / "tacit"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "run"))
    (home / "run").mkdir(mode=0o700)
    folder = home / "tacit" / "data"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "worker.starting").touch()
    return folder


def run(
    payload: bytes = PAYLOAD, *arguments: str, limit: float = LONG
) -> "subprocess.CompletedProcess[bytes]":
    """Run the installed program."""
    return subprocess.run(
        [HOOK, *(arguments or ("claude-code", "Stop"))],
        input=payload,
        capture_output=True,
        timeout=limit,
    )


def silent(done: "subprocess.CompletedProcess[bytes]") -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def events(folder: Path) -> list[Path]:
    return sorted((folder / "events").glob("*.event"))


def spare(home: Path) -> list[Path]:
    return sorted((home / "run").glob("tacit-*/*.event"))


def test_an_event_is_recorded_whole(data: Path, home: Path) -> None:
    """The file holds host, event, folder, time and the payload byte for byte, for the user only."""
    assert silent(run())
    (event,) = events(data)
    head, _, payload = event.read_bytes().partition(b"\n\n")
    fields = dict(line.split(" ", 1) for line in head.decode().split("\n"))
    assert payload == PAYLOAD
    assert (fields["host"], fields["event"]) == ("claude-code", "Stop")
    assert fields["cwd"] == str(home / "work")
    assert abs(float(fields["time"]) - time.time()) < 60
    assert stat.S_IMODE(event.stat().st_mode) == 0o600
    assert stat.S_IMODE(event.parent.stat().st_mode) == 0o700


def test_folders_that_it_makes_are_private(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a fresh machine the data folder and the spool are the user's alone."""
    monkeypatch.setenv("TACIT_HOME", str(home / "new"))
    hook.record(str(home / "new" / "data"), b"h\n\n", b"")
    for folder in (home / "new" / "data", home / "new" / "data" / "events"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_many_at_once_lose_nothing(data: Path) -> None:
    """Fifty hooks at the same time leave fifty whole events and no temporary file."""
    running = []
    for i in range(50):
        process = subprocess.Popen([HOOK, "codex", f"n{i}"], stdin=subprocess.PIPE)
        assert process.stdin
        process.stdin.write(f'{{"session_id": "s{i}"}}'.encode())
        process.stdin.close()
        running.append(process)
    for process in running:
        process.wait(timeout=120)
    assert {process.returncode for process in running} == {0}
    payloads = {path.read_bytes().partition(b"\n\n")[2] for path in events(data)}
    assert payloads == {f'{{"session_id": "s{i}"}}'.encode() for i in range(50)}
    assert not list((data / "events").glob(".*"))


def test_a_huge_payload_is_cut_and_drained(data: Path) -> None:
    """100 MB on stdin: the first part is kept, the rest read away, within the time."""
    assert silent(run(b"x" * 100_000_000))
    head, _, payload = events(data)[0].read_bytes().partition(b"\n\n")
    assert len(payload) == hook.KEEP
    assert int(dict(line.split(b" ", 1) for line in head.split(b"\n"))[b"size"]) > hook.KEEP


def test_a_stalled_stdin_is_not_waited_for(data: Path) -> None:
    """An agent that never closes its end does not hold the hook."""
    with subprocess.Popen([HOOK, "pi"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(b'{"session_id"')
        process.stdin.flush()
        assert process.wait(timeout=LONG) == 0
    assert events(data)[0].read_bytes().endswith(b'\n\n{"session_id"')


@pytest.mark.parametrize("closed", ["<&-", "<&- >&- 2>&-", "</dev/null", "</dev/zero"])
def test_odd_standard_streams(data: Path, closed: str) -> None:
    """Closed streams, or an endless device as stdin: exit 0, recorded, nothing said."""
    done = subprocess.run(["sh", "-c", f"{HOOK} gemini AfterAgent {closed}"], capture_output=True)
    assert silent(done)
    assert len(events(data)) == 1


@pytest.mark.parametrize("arguments", [(), ("x" * 5000,), ("a\nb", "c\\d\n"), ("", "", "more")])
def test_odd_arguments(data: Path, arguments: tuple[str, ...]) -> None:
    """No, long, broken or too many arguments are no error, and the head stays readable."""
    done = subprocess.run([HOOK, *arguments], input=PAYLOAD, capture_output=True)
    assert silent(done)
    head, _, payload = events(data)[0].read_bytes().partition(b"\n\n")
    assert len(head.split(b"\n")) == 8
    assert payload == PAYLOAD


@settings(max_examples=30, deadline=None)
@given(payload=st.binary(max_size=3000), words=st.lists(st.text(max_size=30), max_size=3))
def test_any_bytes_come_back(data: Path, payload: bytes, words: list[str]) -> None:
    """Whatever the payload and the words are, the payload can be taken back out of the file."""
    words = [word.replace("\0", "") for word in words]
    before = set(events(data))
    assert hook.record(str(data), hook.head(words, len(payload)), payload)
    (new,) = set(events(data)) - before
    assert new.read_bytes().partition(b"\n\n")[2] == payload


def test_an_event_is_on_the_disk_before_it_has_its_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are forced out first, so that a name never stands for less than the whole."""
    order = []
    for name in ("fsync", "rename"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *given, name=name, real=real: (order.append(name), real(*given))
        )
    hook.deliver(str(home / "events"), b"x")
    assert order == ["fsync", "rename"]


def test_a_full_or_read_only_disk(data: Path, home: Path) -> None:
    """Where the data folder takes nothing, the event goes to the runtime folder, privately."""
    (data / "events").write_text("in the way")
    assert silent(run())
    (event,) = spare(home)
    assert event.read_bytes().endswith(PAYLOAD)
    assert stat.S_IMODE(event.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_no_space_left(data: Path, home: Path) -> None:
    """A write that fails half-way leaves no temporary file, and the next spool is tried."""
    script = (
        "import os, sys; from tacit import hook\n"
        "real = os.write\n"
        f"full = {str(data / 'events')!r}\n"
        "def write(fd, b):\n"
        "    if os.readlink(f'/proc/self/fd/{fd}').startswith(full): raise OSError(28, 'full')\n"
        "    return real(fd, b)\n"
        "os.write = write\n"
        f"sys.exit(0 if hook.record({str(data)!r}, b'head\\n\\n', b'x') else 1)"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
    assert list((data / "events").iterdir()) == []
    assert len(spare(home)) == 1


def test_a_spool_of_somebody_else_is_not_used(data: Path, home: Path) -> None:
    """A folder that others can write in, or a link put in its place, is passed over."""
    (data / "events").write_text("in the way")
    first = Path(hook.spools(str(data))[1])
    trap = home / "trap"
    trap.mkdir(mode=0o777)
    trap.chmod(0o777)
    first.symlink_to(trap)
    assert not hook.is_private(str(first))
    assert not hook.is_private(str(trap))
    with pytest.raises(PermissionError):
        hook.deliver(str(first), b"x")
    assert list(trap.iterdir()) == []


def test_only_ground_that_is_there_is_used(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root could make a folder for it in the middle of the system."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(home / "none"))
    assert not any(str(home / "none") in path for path in hook.spools(str(data)))
    (home / "none").mkdir()
    assert hook.spools(str(data))[1].startswith(str(home / "none"))


def test_nowhere_to_write(home: Path, tmp_path: Path) -> None:
    """When no folder at all takes the event, the hook still ends with 0 and in silence."""
    done = subprocess.run(
        [HOOK, "codex"],
        input=PAYLOAD,
        capture_output=True,
        env={
            "TACIT_HOME": "/proc/nothing",
            "XDG_RUNTIME_DIR": "/proc/nothing",
            "PYTHONVERBOSE": "",
        },
    )
    assert silent(done)
    for path in hook.spools("/proc/nothing/data")[1:]:  # /tmp took it
        for event in Path(path).glob("*.event"):
            event.unlink()
        if os.path.isdir(path):
            os.rmdir(path)


def test_a_missing_package_is_no_error(tmp_path: Path) -> None:
    """If Tacit was removed and the script is left, agents notice nothing."""
    left = tmp_path / "tacit-hook"
    lines = Path(HOOK).read_text().split("\n")
    left.write_text("\n".join(lines).replace("tacit.hook", "no_such_package.hook"))
    done = subprocess.run([sys.executable, str(left), "codex"], capture_output=True, input=b"")
    assert silent(done)


def test_inside_the_worker_nothing_is_recorded(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent run by the worker itself does not make more work for it."""
    monkeypatch.setenv("TACIT_WORKER", "1")
    assert silent(run())
    assert not events(data)


def test_only_small_modules_are_loaded(data: Path) -> None:
    """The hook loads nothing of the standard library that costs time, and no other package."""
    script = (
        "import sys; before = set(sys.modules)\n"
        "from tacit import hook; hook.main(['codex', 'Stop'])\n"
        f"open({str(data / 'loaded')!r}, 'w').write('\\n'.join(set(sys.modules) - before))"
    )
    subprocess.run([sys.executable, "-c", script], input=PAYLOAD, check=True)
    loaded = set((data / "loaded").read_text().split("\n"))
    allowed = {"tacit", "tacit.hook", "tacit.base", "tacit.base.paths"}
    assert loaded <= allowed | {"select", "binascii", "fcntl"}


def test_the_worker_is_started_once(home: Path) -> None:
    """Of twenty hooks at once, one starts it: a session of its own, no streams, standing back."""
    data, out = home / "data", home / "out"
    out.mkdir()
    report = (
        "import os, sys; name = os.path.join(sys.argv[1], str(os.getpid()));"
        "open(name + '.new', 'w').write(f'{os.getsid(0)} {os.getpgid(0)} {os.getppid()} '"
        "+ os.readlink('/proc/self/fd/1') + ' ' + os.environ['TACIT_WORKER'] + f' {os.nice(0)}');"
        "os.rename(name + '.new', name)"
    )
    script = (
        "import sys; from tacit import hook\n"
        f"hook.start_worker({str(data)!r}, [sys.executable, '-c', {report!r}, {str(out)!r}])"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) for _ in range(20)
    ]
    for process in running:
        process.communicate()  # ends only when nobody holds the pipe
    until((data / "worker.starting").exists)
    until(lambda: any(path.suffix != ".new" for path in out.iterdir()))
    time.sleep(0.3)  # for a second one, if there were any
    (found,) = [path for path in out.iterdir() if path.suffix != ".new"]
    session, group, parent, stdout, mark, niceness = found.read_text().split()
    assert session == group
    assert session not in (str(os.getsid(0)), found.name)  # its own session, and not its leader
    assert int(parent) not in {process.pid for process in running}
    assert (stdout, mark) == ("/dev/null", "1")
    assert int(niceness) == min(os.nice(0) + hook.NICE, 19)


def test_a_running_worker_is_left_alone(home: Path) -> None:
    """While somebody holds the lock, nothing is started and no mark is made."""
    data = home / "data"
    data.mkdir()
    with open(data / "worker.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert not hook.start_worker(str(data), [sys.executable, "-c", ""])
        assert not (data / "worker.starting").exists()


def test_an_old_mark_is_taken_over(home: Path) -> None:
    """A start that came to nothing half a minute ago does not block the next one."""
    mark = home / "worker.starting"
    assert hook.claim(str(mark))
    assert not hook.claim(str(mark))
    old = time.time() - hook.STARTING - 1
    os.utime(mark, (old, old))
    assert hook.claim(str(mark))
    assert not hook.claim(str(mark))


def test_the_worker_is_the_one_of_this_installation(data: Path) -> None:
    """With no mark and no worker, the hook starts `tacit worker` by its own Python, once."""
    (data / "worker.starting").unlink()
    script = (
        "from tacit import hook\n"
        f"hook.detach = lambda *given: print(*given, file=open({str(data / 'out')!r}, 'a'))\n"
        "hook.main(['codex', 'Stop']); hook.main(['codex', 'Stop'])"
    )
    subprocess.run([sys.executable, "-c", script], input=PAYLOAD, check=True)
    command = [sys.executable, "-P", "-m", "tacit", "worker"]
    assert (data / "out").read_text() == f"{command} {data}\n"
    assert len(events(data)) == 2


def opened(data: Path, *words: str, payload: bytes = b'{"source": "startup"}') -> object:
    """What the hook prints as a session begins, read as JSON; None where that is nothing."""
    done = run(payload, "some-agent", "SessionStart", *words)
    assert (done.returncode, done.stderr, events(data)) == (0, b"", [])
    return json.loads(done.stdout) if done.stdout else None


def prepared(data: Path) -> None:
    briefing.put(str(data), os.getcwd(), 'It is "so" \\ here.\tAnd\nthere.')
    prompt_line.put(str(data), ["tacit: learned a thing", "1"], prompt_line.AGENT_FILE)


def test_as_a_session_begins_the_agent_is_told(data: Path) -> None:
    """In its own form: facts where the user let it, the news to the user, and that once."""
    prepared(data)
    said = 'It is "so" \\ here. And\nthere.'
    specific = {"hookEventName": "SessionStart", "additionalContext": said}
    assert opened(data, "hook", "facts") == {
        "hookSpecificOutput": specific,
        "systemMessage": "tacit: learned a thing",
    }
    assert opened(data, "hook", "facts") == {"hookSpecificOutput": specific}
    assert opened(data, "hook") is None
    briefing.put(str(data), briefing.EVERYWHERE, '{"share":0.1}', briefing.LOTS)
    lots = {"share": 0.1}
    assert opened(data, "pair", "each", "facts") == {"context": said, "news": "", "lots": lots}
    prepared(data)
    assert opened(data, "context") == {
        "context": "Tell the user this once, as it stands: tacit: learned a thing"
    }


def test_a_resumed_session_was_told_before(data: Path) -> None:
    """Where the agent keeps what it was told, nothing is told again."""
    prepared(data)
    resumed = b'{"session_id": "x", "source": "resume"}'
    assert opened(data, "hook", "facts", payload=resumed) is None
    assert opened(data, "hook", "each", "facts", payload=resumed) is not None


def test_nothing_prepared_is_nothing_said(data: Path, home: Path) -> None:
    """Not for a project whose file bears another's name, nor from a folder that is gone."""
    assert opened(data, "hook", "facts") is None
    briefing.put(str(data), os.getcwd(), "Here.")
    (file,) = (data / "briefing").iterdir()
    file.write_text("/another/project\nNot for here.\n")
    assert opened(data, "hook", "facts") is None
    briefing.put(str(data), briefing.EVERYWHERE, "Everywhere.")
    assert opened(data, "context", "facts") == {"context": "Everywhere."}
    gone = home / "gone"
    gone.mkdir()
    words = f"cd {gone} && rmdir {gone} && echo '{{}}' | {HOOK} a b context facts"
    done = subprocess.run(["sh", "-c", words], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
