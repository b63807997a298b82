"""What a process that has locked itself in can still do, tried in processes of their own."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tacit.agent import process_rights

_HAS = process_rights.landlock_version()
needs_landlock = pytest.mark.skipif(_HAS < 4, reason="this kernel's Landlock is too old")

_SCRIPT = """
import json, os, socket, sys
from tacit.agent import process_rights as landlock
inside, outside, port, other = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
system = tuple({sys.prefix, sys.base_prefix, *sys.path, "/usr", "/lib"} - {""})
before = open(outside + "/before", "w")
held = landlock.restrict(landlock.Rights(
    write=(inside, "/dev/null"), read=(*system, outside + "/open"), ports=(port,)))
done = {}
def attempt(name, act):
    try:
        act(); done[name] = "ok"
    except OSError as error:
        done[name] = error.strerror
def connect(to, family=socket.AF_INET):
    with socket.socket(family) as s: s.connect(to)
def bind():
    with socket.socket() as s: s.bind(("127.0.0.1", 0))
def put(path, flags=os.O_WRONLY | os.O_CREAT): os.close(os.open(path, flags))
attempt("write inside", lambda: put(inside + "/new"))
attempt("rename inside", lambda: os.rename(inside + "/new", inside + "/newer"))
attempt("folder inside", lambda: os.mkdir(inside + "/folder"))
attempt("read inside", lambda: open(inside + "/newer").read())
attempt("null", lambda: put("/dev/null", os.O_WRONLY))
attempt("write outside", lambda: put(outside + "/new"))
attempt("write a file outside", lambda: put(outside + "/secret", os.O_WRONLY))
attempt("cut outside", lambda: os.truncate(outside + "/secret", 0))
attempt("remove outside", lambda: os.unlink(outside + "/secret"))
attempt("folder outside", lambda: os.mkdir(outside + "/folder"))
attempt("rename out", lambda: os.rename(inside + "/newer", outside + "/newer"))
attempt("rename in", lambda: os.rename(outside + "/secret", inside + "/secret"))
attempt("hard link in", lambda: os.link(outside + "/secret", inside + "/hard"))
attempt("link made", lambda: os.symlink(outside, inside + "/way"))
attempt("write through link", lambda: put(inside + "/way/new"))
attempt("read through link", lambda: open(inside + "/way/secret").read())
attempt("read outside", lambda: open(outside + "/secret").read())
attempt("list outside", lambda: os.listdir(outside))
attempt("read what is open", lambda: open(outside + "/open/file").read())
attempt("write what is open", lambda: put(outside + "/open/file", os.O_WRONLY))
attempt("other: a pipe inside", lambda: os.mkfifo(inside + "/pipe"))
attempt("other: a device inside", lambda: os.mknod(inside + "/null", 0o20600, os.makedev(1, 3)))
attempt("pipe outside", lambda: os.mkfifo(outside + "/pipe"))
attempt("port", lambda: connect(("127.0.0.1", port)))
attempt("other port", lambda: connect(("127.0.0.1", other)))
attempt("other port by 6", lambda: connect(("::1", other), socket.AF_INET6))
attempt("listen", bind)
attempt("signal", lambda: os.kill(os.getppid(), 0))
before.write("x"); before.flush()
pid = os.fork()
if pid == 0:
    try: put(outside + "/by-child"); os._exit(1)
    except OSError: os._exit(0)
done["child"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps({"held": [held.abi, held.writes, held.reads, held.network, held.why_not],
                  "done": done}))
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("landlock")
    (folder / "inside").mkdir()
    (folder / "outside" / "open").mkdir(parents=True)
    (folder / "outside" / "secret").write_text("secret")
    (folder / "outside" / "open" / "file").write_text("open")
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as b:
        ports = [str(s.getsockname()[1]) for s in (one, b)]
        places = [str(folder / "inside"), str(folder / "outside")]
        words = [sys.executable, "-c", _SCRIPT, *places, *ports]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    told["secret"] = (folder / "outside" / "secret").read_text()
    return told


@needs_landlock
def test_what_is_named_stays_possible(tried: dict[str, Any]) -> None:
    """Inside its folder, to its port, and in what it may read, a process does as before."""
    for name in ("write inside", "rename inside", "folder inside", "read inside", "null", "port"):
        assert tried["done"][name] == "ok", name
    assert tried["done"]["read what is open"] == "ok"


@needs_landlock
def test_nothing_else_is_possible(tried: dict[str, Any]) -> None:
    """Neither paths, links, renames nor a child process lead out, and no other port answers."""
    forbidden = [
        name
        for name in tried["done"]
        if "outside" in name or "through" in name or "other" in name or name.startswith("rename ")
    ]
    forbidden.remove("rename inside")
    forbidden += ["hard link in", "write what is open", "listen"]
    assert len(forbidden) > 14
    for name in forbidden:
        assert tried["done"][name] in ("Permission denied", "Invalid cross-device link"), name
    assert tried["done"]["child"] == 0
    assert tried["secret"] == "secret"
    if _HAS >= 6:
        assert tried["done"]["signal"] == "Operation not permitted"


@needs_landlock
def test_it_says_what_holds(tried: dict[str, Any]) -> None:
    """The answer names the kernel's version and that files and ports are limited."""
    assert tried["held"] == [_HAS, True, True, True, ""]


@pytest.mark.parametrize("version", range(10))
def test_only_what_the_kernel_knows_is_asked(version: int) -> None:
    """For each version the rights are those that it has, and what is missing is said."""
    rules = process_rights.Rights(write=("/x",), ports=(443,))
    handled = process_rights._handled(rules, version)
    highest = {0: 12, 1: 12, 2: 13, 3: 14, 4: 14}.get(version, 15)
    assert handled.fs.bit_length() == highest + 1
    assert handled.fs & 0b1101 == 0, "reading is left as it is"
    assert bool(handled.net) == (version >= 4)
    assert bool(handled.scoped) == (version >= 6)
    told = process_rights._held(rules, version)
    assert told.network == (version >= 4)
    assert bool(told.why_not) == (version < 4)


def test_elsewhere_it_says_that_nothing_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """On another system nothing is called and the answer says why nothing holds."""
    monkeypatch.setattr(sys, "platform", "darwin")
    held = process_rights.restrict(process_rights.Rights(write=("/nowhere",), read=(), ports=()))
    assert held == process_rights.RightsHeld(why_not="there is no Landlock on darwin")
    assert process_rights.filter_calls() is False


_LEAVE = """
import os, sys
from tacit.agent import process_rights as grouping
if not grouping.filter_calls(): sys.exit(9)
assert os.getpid() != os.getpgrp()  # a leader of a group may not make another
for leave in (os.setsid, lambda: os.setpgid(0, 0), os.fork, lambda: os.kill(os.getppid(), 0)):
    try: leave()
    except PermissionError: continue
    os._exit(1)
import signal, threading
signal.signal(signal.SIGUSR1, lambda *_: print("signals work")); signal.raise_signal(signal.SIGUSR1)
t = threading.Thread(target=print, args=("threads work",)); t.start(); t.join()
"""


def test_a_group_cannot_be_left() -> None:
    """Neither by a session nor by a group of its own, and there is no second process."""
    done = subprocess.run([sys.executable, "-c", _LEAVE], capture_output=True, text=True)
    if done.returncode == 9:
        pytest.skip("no filter for this machine")
    assert (done.returncode, done.stdout) == (0, "signals work\nthreads work\n"), done.stderr


_ATTACKS = """
import asyncio, ctypes, fcntl, json, os, resource, socket, subprocess, sys
from tacit.agent import process_rights
file, unix, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
if not process_rights.filter_calls(): sys.exit(9)
done = {}
def attempt(name, act):
    try: done[name] = "ok" if act() is not False else "no"
    except OSError as error: done[name] = error.strerror
def raw(number, *given):
    libc = ctypes.CDLL(None, use_errno=True)
    came = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, given))
    if came == 0 and number in (56, 220): os._exit(0)
    if came < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def opened(*kind): socket.socket(*kind).close()
def by_pair():
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); one.sendto(b"x", unix)
def fast():
    with socket.socket() as s: s.sendto(b"x", 0x20000000, ("127.0.0.1", port))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", port)).close())
attempt("tcp 6", lambda: opened(socket.AF_INET6, socket.SOCK_STREAM))
attempt("pair", lambda: [s.close() for s in socket.socketpair()])
attempt("a loop", lambda: asyncio.run(asyncio.sleep(0)))
attempt("x udp", lambda: opened(socket.AF_INET, socket.SOCK_DGRAM))
attempt("x udp 6", lambda: opened(socket.AF_INET6, socket.SOCK_DGRAM))
attempt("x raw", lambda: opened(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("x unix", lambda: socket.socket(socket.AF_UNIX).connect(unix))
attempt("x pair of datagrams", by_pair)
attempt("x netlink", lambda: opened(socket.AF_NETLINK, socket.SOCK_RAW))
attempt("x vsock", lambda: opened(40, socket.SOCK_STREAM))
attempt("x mptcp", lambda: opened(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt("x sctp", lambda: opened(socket.AF_INET, socket.SOCK_STREAM, 132))
attempt("x fast open", fast)
attempt("x chmod", lambda: os.chmod(file, 0o777))
attempt("x fchmod", lambda: os.fchmod(os.open(file, os.O_RDONLY), 0o777))
attempt("x chown", lambda: os.chown(file, 0, 0))
attempt("x lchown", lambda: os.lchown(file, 0, 0))
attempt("x xattr", lambda: os.setxattr(file, "user.x", b"x"))
attempt("x xattr gone", lambda: os.removexattr(file, "user.y"))
attempt("own limits", lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
parent, core = os.getppid(), resource.RLIMIT_CORE
attempt("x limits of the parent", lambda: resource.prlimit(parent, core, (0, 0)))
attempt("x shell", lambda: subprocess.run(["/bin/sh", "-c", "true"]))
attempt("x exec", lambda: os.execv("/bin/sh", ["sh", "-c", "echo out"]))
def call(*numbers): return numbers[os.uname().machine == "aarch64"]
attempt("x io_uring", lambda: raw(425, 8, 0))
attempt("x unshare", lambda: raw(call(272, 97), 0x10000000))
attempt("x namespace by clone", lambda: raw(call(56, 220), 0x10000000 | 17, 0, 0, 0, 0))
attempt("x shared memory", lambda: raw(call(29, 194), 0, 4096, 0o1600))
attempt("x being called", lambda: socket.socket().listen())
attempt("x times", lambda: os.utime(file, (1, 1)))
attempt("x rank of the parent", lambda: os.setpriority(os.PRIO_PROCESS, parent, 19))
attempt("x processors of the parent", lambda: os.sched_setaffinity(parent, {0}))
attempt("x untied from the parent", lambda: raw(call(157, 167), 1, 0, 0, 0, 0))
attempt("x watching", lambda: raw(call(294, 26), 0))
def owned(): return fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, parent)
attempt("x signals to the parent", owned)
attempt("x signals of choice", lambda: fcntl.fcntl(os.pipe()[0], 10, 9))
attempt("x signals of a socket", lambda: fcntl.ioctl(socket.socket(), 0x8901, bytes(4)))
attempt("flags of a file", lambda: fcntl.fcntl(os.pipe()[0], fcntl.F_SETFL, os.O_NONBLOCK) == 0)
attempt("x root's rights", lambda: raw(call(170, 161), 0, 0))
print(json.dumps(done))
"""


def test_only_tcp_and_our_own_code_are_left(tmp_path: Path) -> None:
    """No other socket, program, owner or mode of a file, and no way around; what we need is."""
    file, unix = tmp_path / "file", tmp_path / "unix"
    file.write_text("x")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(unix))
    listening.listen()
    with listening, socket.create_server(("127.0.0.1", 0)) as server:
        words = [sys.executable, "-c", _ATTACKS, str(file), str(unix)]
        words.append(str(server.getsockname()[1]))
        done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode == 9:
        pytest.skip("no filter for this machine")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert {name for name, came in told.items() if came == "ok"} == {
        "tcp",
        "tcp 6",
        "pair",
        "a loop",
        "own limits",
        "flags of a file",
    }
    forbidden = {came for name, came in told.items() if name.startswith("x ")}
    assert forbidden <= {"Operation not permitted"}
    assert len(told) == 39


def test_paths_that_are_not_there_are_passed_over(tmp_path: Path) -> None:
    """A folder that does not exist is no reason to stay outside."""
    if not _HAS:
        pytest.skip("no Landlock")
    code = (
        "from tacit.agent import process_rights as l;"
        f"print(l.restrict(l.Rights(write=({str(tmp_path / 'no')!r},), read=None)).writes)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
