"""The program that agents call when a turn or a session ends: `tacit-hook HOST [EVENT]`.

It writes what it was given into the spool as one file, starts the worker if none runs, and is
gone. Reading the spool is `traces/hook_events.py`; what the worker does is not known here. An agent
waits for this program, so: nothing but os, sys and time at the top, no output, no errors, a limit
on how long it reads, and only small modules of Tacit.

With more words, `tacit-hook HOST EVENT FORM [each] [facts]`, a session begins, and the agent wants
an answer: what was prepared for it is printed in that form, and nothing is recorded.
"""

import os
import sys
import time

KEEP = 1 << 20
"""Bytes of a payload that are kept. The fields that count come first, so the rest can go."""
READING = 1.0
"""Seconds to wait for more of a payload; three times as long for all of it."""
SIGNS = 1 << 15
"""Characters for the names of variables."""
STARTING = 30.0
"""Seconds for which a mark says that somebody else is starting the worker."""
FORMS = ("hook", "pair", "context", "additionalContext")
"""The forms of an answer; see `base/briefing.py`."""
NICE = 10
"""How far the worker stands back for the agent, which the user is waiting for."""


def main(arguments: list[str] | None = None) -> None:
    """Record the event and see that a worker runs. Never raises for what it is fed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if os.environ.get("TACIT_WORKER"):
        return  # an agent that the worker itself runs must not give it more work
    if len(arguments) > 2 and arguments[2] in FORMS:
        open_session(arguments)
        return
    silence()
    from tacit.base.paths import folders

    data = folders().data
    payload, size = read_payload()
    if record(data, head(arguments, size), payload):
        start_worker(data, [sys.executable, "-P", "-m", "tacit", "worker"])


def open_session(arguments: list[str]) -> None:
    """Print what the user and the model are to hear, once a session: not when one is resumed, where
    the agent keeps it in its transcript. Any trouble is silence."""
    out = os.dup(1)
    silence()
    from tacit.base import briefing, prompt_line
    from tacit.base.paths import folders

    _, event, form, *more = arguments
    payload, _ = read_payload()
    if b'"source":"resume"' in payload.replace(b" ", b"") and "each" not in more:
        return
    data = folders().data
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = ""
    facts = briefing.read(data, cwd) if "facts" in more else ""
    lots = briefing.read(data, cwd, briefing.LOTS) if form == "pair" else ""
    news = prompt_line.take(data, prompt_line.AGENT_FILE)
    try:
        os.write(out, briefing.answer(form, event, facts, news, lots).encode("utf-8", "replace"))
    except OSError:  # the agent does not listen
        return


def silence() -> None:
    """Whatever is written from here on, by Python itself too, goes nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)  # takes the place of a closed stdin: at its end
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def read_payload() -> tuple[bytes, int]:
    """The first bytes of stdin, and how many there were.

    What is too much is read and dropped, so that the agent does not fail in writing it. An agent
    that never closes its end, or is a terminal, is not waited for.
    """
    import select

    parts: list[bytes] = []
    kept = size = 0
    end = time.monotonic() + 3 * READING
    while time.monotonic() < end:
        try:
            if not select.select([0], [], [], READING)[0]:
                break
            part = os.read(0, 1 << 16)
        except (OSError, ValueError):  # a stdin that cannot be read, such as a folder
            break
        if not part:
            break
        size += len(part)
        if kept < KEEP:
            parts.append(part[: KEEP - kept])
            kept += len(parts[-1])
    return b"".join(parts), size


def head(arguments: list[str], size: int) -> bytes:
    """The lines before the payload, `name value`, and an empty one. Values hold no line ends."""
    host, event = [*arguments[:2], "", ""][:2]
    try:
        cwd = os.getcwd()
    except OSError:  # the folder is gone
        cwd = ""
    # By their variables agents mark the programs that they run. No value but of a session's id.
    signs = " ".join(
        f"{name}={os.environ[name][:100]}" if name.endswith("_SESSION_ID") else f"{name}="
        for name in os.environ
    )
    lines = [
        "tacit-event 1",
        f"host {host[:100]}",
        f"event {event[:100]}",
        f"cwd {cwd}",
        f"time {time.time():.6f}",
        f"pid {os.getpid()}",
        f"size {size}",
        f"signs {signs[:SIGNS]}",
    ]
    clean = (line.replace("\\", "\\\\").replace("\n", "\\n") for line in lines)
    return os.fsencode("\n".join(clean) + "\n\n")


def record(data: str, head: bytes, payload: bytes) -> bool:
    """Put an event into the first spool that takes it; False when none does."""
    for folder in spools(data):
        try:
            deliver(folder, head + payload)
        except OSError:  # read-only, full, not ours: the next one
            continue
        return True
    return False


def spools(data: str) -> list[str]:
    """The folders for events: the one in the data folder, and those for when it takes nothing.

    The others bear the user's number and a mark of the data folder, since they are shared ground,
    which has to be there. The reader looks in the same ones, so they hang on little that an agent
    may have changed.
    """
    from binascii import crc32

    user = os.getuid()
    name = f"tacit-{user}-{crc32(os.fsencode(data)):08x}"
    grounds = [os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}", "/tmp"]  # noqa: S108
    grounds.append(os.environ.get("TMPDIR", ""))
    found = [os.path.join(data, "events")]
    for ground in grounds:
        path = os.path.join(ground, name)
        if os.path.isabs(path) and path not in found and os.path.isdir(ground):
            found.append(path)
    return found


def deliver(folder: str, event: bytes) -> None:
    """Write `event` to the disk under a temporary name, then give it its own. OSError if not.

    A file that has its name is whole, and it is on the disk before the agent goes on. Should the
    name itself be lost with the power, the reader finds the file under the temporary one.
    """
    make_private(folder)
    if not is_private(folder):
        raise PermissionError(folder)
    name = f"{time.time_ns():020d}-{os.getpid()}-{os.urandom(6).hex()}"
    temporary = os.path.join(folder, f".{name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        try:
            left = memoryview(event)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, os.path.join(folder, f"{name}.event"))
    except OSError:
        os.unlink(temporary)
        raise


def make_private(folder: str) -> None:
    """Make `folder`, and the one above it, for this user alone, where they are missing."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except FileNotFoundError:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)


def is_private(folder: str) -> bool:
    """Whether `folder` is a real folder of this user that nobody else can write in."""
    from stat import S_ISDIR

    state = os.lstat(folder)
    return S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & 0o022


def start_worker(data: str, command: list[str]) -> bool:
    """Start `command`, detached, unless a worker runs or is being started; whether it was.

    The lock is held only while the mark is looked at, so of many hooks at once one starts it. A
    worker waits a moment for the lock, takes the mark away, and looks into the spool once more
    after it has let the lock go: an event that came in between would wait for the next one.
    """
    if not command[0]:
        return False
    import fcntl

    os.makedirs(data, mode=0o700, exist_ok=True)
    lock = os.open(os.path.join(data, "worker.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not claim(os.path.join(data, "worker.starting")):
            return False
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    detach(command, data)
    return True


def claim(mark: str) -> bool:
    """Make the mark that says "I am starting it"; False while another's is young."""
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if abs(time.time() - os.stat(mark).st_mtime) < STARTING:
            return False
        os.utime(mark)
    return True


def detach(command: list[str], folder: str) -> None:
    """Run `command` in a session of its own, with nothing of the agent's open.

    Waiting for the first child makes sure that the new session exists before this program ends:
    agents end a hook by its group. The second child is nobody's, so no zombie is left.
    """
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.nice(NICE)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(folder)
        os.execve(command[0], command, {**os.environ, "TACIT_WORKER": "1"})  # noqa: S606
    finally:
        os._exit(0)
