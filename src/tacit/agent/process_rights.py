"""Rights that a process gives up for good, for itself and all that it starts. No root is needed.

Landlock takes files and ports: a folder that may be read or written may be so with all below it,
what is not named cannot be opened, and a file that was open before stays usable. A filter on system
calls (seccomp) takes what no such rule covers: other sockets than TCP's, other programs and
processes, owners, modes and times of files, memory that programs share, and leaving the process
group; and a process can be tied to its parent, to be killed when that is gone. Root loses what
makes it more than the owner of its files.

Owns the system calls, by ctypes, and which rights each version of the kernel's interface knows. It
reports what holds and never pretends: on another system, or a kernel without it, the answer says
that nothing does. Who gives up what, and why, is for others to decide.
"""

import ctypes
import errno
import os
import platform
import signal
import stat
import struct
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from tacit.base.errors import Refused

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every machine that has them
_VERSION = 1
_PATH, _PORT = 1, 2
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE = 0b1_1111_1111 << 4
"""Removing files and folders, and making anything: bits 4 to 12."""
_SPECIAL = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11
"""Making devices, sockets and pipes, which is allowed nowhere."""
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_BIND, _CONNECT = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
"""What can be said of a path that is no folder."""


class Rights(msgspec.Struct, frozen=True):
    """What a process keeps. Paths that do not exist are passed over."""

    write: tuple[str, ...]
    """What may be read and written, with all below."""
    read: tuple[str, ...] | None = None
    """What may be read; None leaves reading as it is."""
    ports: tuple[int, ...] | None = None
    """TCP ports, of any machine, to which it may connect; None leaves the network as it is."""


class RightsHeld(msgspec.Struct, frozen=True):
    """What holds on this machine from now on."""

    abi: int = 0
    """The version of the kernel's interface; 0 where there is none."""
    writes: bool = False
    reads: bool = False
    network: bool = False
    why_not: str = ""
    """In words, what does not hold and why."""


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("fs", ctypes.c_uint64),
        ("net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Port(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64))


def landlock_version() -> int:
    """The version of the kernel's interface, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    found = _libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(int(found), 0)


def restrict(rules: Rights) -> RightsHeld:
    """Keep to `rules` from now on, this thread and what it starts. Call it before other threads.

    Raises `Refused` where the kernel has Landlock and will not take the rules: then nothing holds,
    and whoever relies on it must not go on.
    """
    version = landlock_version()
    if version == 0:
        return RightsHeld(why_not=_why_none())
    handled = _handled(rules, version)
    libc = _libc()
    size = 8 if version < 4 else 16 if version < 6 else 24
    made = libc.syscall(_CREATE, ctypes.byref(handled), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if made < 0:
        raise _refused("make a set of rules")
    try:
        _allow_paths(libc, made, rules.write, handled.fs & ~_SPECIAL, handled.fs)
        _allow_paths(libc, made, rules.read or (), _READ, handled.fs)
        for port in rules.ports or ():
            if handled.net:
                rule = _Port(_CONNECT, port)
                _add(libc, made, _PORT, rule, f"allow port {port}")
        if libc.prctl(_NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))) != 0:
            raise _refused("give up new privileges")
        if libc.syscall(_RESTRICT, ctypes.c_int(made), ctypes.c_uint32(0)) != 0:
            raise _refused("take the rules")
    finally:
        os.close(made)
    return _held(rules, version)


# For a program of which nothing of ours need be in sight. What the kernel lacks is passed over.
_SCOPED = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None)
made = libc.syscall({_CREATE}, (ctypes.c_uint64 * 3)(0, 0, {_ABSTRACT_SOCKETS}), 24, 0)
libc.prctl({_NO_NEW_PRIVILEGES}, 1, 0, 0, 0)
libc.syscall({_RESTRICT}, made, 0)
os.close(made) if made >= 0 else None
os.execv(sys.argv[1], sys.argv[1:])
"""


def apart_from_sockets(words: list[str]) -> list[str]:
    """The call `words` as one whose processes cannot connect to abstract sockets of others, which
    lie on no disk and belong to the network. Linux 6.12 and later."""
    if landlock_version() < 6 or not sys.executable:
        return words
    return [os.path.realpath(sys.executable), "-I", "-S", "-c", _SCOPED, *words]


def _handled(rules: Rights, version: int) -> _Ruleset:
    """What is forbidden unless a rule allows it: only what this kernel knows may be named."""
    files = _WRITE_FILE | _MAKE
    if rules.read is not None:
        files |= _READ
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL)):
        files |= right if version >= since else 0
    network = _BIND | _CONNECT if rules.ports is not None and version >= 4 else 0
    # Without these a process could have another, outside, act for it.
    scoped = _ABSTRACT_SOCKETS | _SIGNALS if version >= 6 else 0
    return _Ruleset(files, network, scoped)


def _allow_paths(
    libc: ctypes.CDLL, ruleset: int, paths: Iterable[str], rights: int, handled: int
) -> None:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                continue
            raise
        try:
            is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
            allowed = rights & handled & (-1 if is_folder else _OF_FILES)
            if allowed:
                _add(libc, ruleset, _PATH, _Beneath(allowed, descriptor), f"allow {path}")
        finally:
            os.close(descriptor)


def _add(libc: ctypes.CDLL, ruleset: int, kind: int, rule: ctypes.Structure, what: str) -> None:
    done = libc.syscall(
        _ADD, ctypes.c_int(ruleset), ctypes.c_int(kind), ctypes.byref(rule), ctypes.c_uint32(0)
    )
    if done != 0:
        raise _refused(what)


def _held(rules: Rights, version: int) -> RightsHeld:
    network = rules.ports is not None and version >= 4
    missing = []
    if version < 3:
        missing.append("files elsewhere can be cut short")
    if rules.ports is not None and not network:
        missing.append("connections are not limited")
    why_not = f"this kernel has version {version} of Landlock: {', '.join(missing)}"
    return RightsHeld(
        abi=version,
        writes=True,
        reads=rules.read is not None,
        network=network,
        why_not=why_not if missing else "",
    )


def _why_none() -> str:
    if sys.platform != "linux":
        return f"there is no Landlock on {sys.platform}"
    return "this kernel has no Landlock, or it was not switched on at boot"


def _refused(what: str) -> Refused:
    cause = os.strerror(ctypes.get_errno())
    return Refused(f"Landlock did not {what}: {cause}", "see which kernel this is: uname -r")


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


# Machine -> its mark in a filter, and which of a pair of numbers is its own.
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_NOT_THERE = -1
# Calls that are refused, by their numbers on either machine.
_REFUSED_CALLS = {
    # leaving the group, so that ending the group ends all of it
    "setsid": (112, 157), "setpgid": (109, 154),
    # other programs and processes: nothing but our own code runs here
    "execve": (59, 221), "execveat": (322, 281),
    "fork": (57, _NOT_THERE), "vfork": (58, _NOT_THERE),
    # being called: a socket that listens takes a port without asking for one, past Landlock
    "listen": (50, 201), "bind": (49, 200),
    # what other processes are allowed, told and share
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190),
    "semctl": (66, 191), "msgget": (68, 186), "msgctl": (71, 187), "mq_open": (240, 180),
    "inotify_init": (253, _NOT_THERE), "inotify_init1": (294, 26), "fanotify_init": (300, 262),
    # whose a file is, who may read or run it, when it changed: Landlock knows nothing of that
    "utime": (132, _NOT_THERE), "utimes": (235, _NOT_THERE), "futimesat": (261, _NOT_THERE),
    "utimensat": (280, 88),
    "chmod": (90, _NOT_THERE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, _NOT_THERE), "fchown": (93, 55), "lchown": (94, _NOT_THERE),
    "fchownat": (260, 54), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466),
    # ways around this filter, and into other processes
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "open_by_handle_at": (304, 265), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "unshare": (272, 97), "setns": (308, 268),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsmount": (432, 432), "mount_setattr": (442, 442), "init_module": (175, 105),
    "finit_module": (313, 273), "kexec_load": (246, 104), "reboot": (169, 142),
}  # fmt: skip
_SOCKET, _SOCKETPAIR, _LIMITS = (41, 198), (53, 199), (302, 261)
_KILL, _KILL_THREAD = (62, 129), (234, 131)
_CLONE, _CLONE_BY_STRUCT, _CONTROL = (56, 220), (435, 435), (157, 167)
_IS_THREAD = 0x10000
# Sending that connects on its way, past Landlock: where each call has its flags.
_SENDING = {(44, 206): 3, (46, 211): 2, (307, 269): 3}
_FAST_OPEN = 0x20000000
# What names the process that a file or socket sends signals to, any of them: by `fcntl`, `ioctl`.
_SIGNALLING = {(72, 25): (8, 10, 15), (16, 29): (0x8901, 0x8902)}
_INET, _INET6, _STREAM, _TCP = 2, 10, 1, 6
_KIND = 0xF
"""The part of a socket's type that is not a flag."""
_PR_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _DEATH_SIGNAL = 38, 22, 2, 1
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _MASK, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _REFUSE, _LACK = 0x7FFF0000, 0x00050001, 0x00050026  # with EPERM, and with ENOSYS
_KEPT_CAPABILITIES = 0b110
"""Of root's: reading and writing files whatever their modes; Landlock says which."""
_OTHER_NUMBERS = 0x40000000
"""From here on, x86_64 counts the calls of its 32-bit sister anew."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def filter_calls() -> bool:
    """Forbid calls that no rule of Landlock covers, to this thread and what it starts.

    From then on it opens no socket but TCP's, starts no program and no process, changes no owner,
    mode or time of a file and nothing of other processes. False where that cannot be. Call it
    before other threads.
    """
    known = _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if known is None or sys.maxsize < 2**32:
        return False
    prctl = _prctl()
    if prctl(_PR_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    _give_up_capabilities()
    code = _code(*known, os.getpid())
    program = _Program(len(code) // 8, code)
    return bool(prctl(_SECCOMP, _FILTER, ctypes.addressof(program), 0, 0) == 0)


def _give_up_capabilities() -> None:
    """Leave root what it needs for files; anybody else has none of it."""
    head = struct.pack("Ii", 0x20080522, 0)
    few = struct.pack("6I", _KEPT_CAPABILITIES, _KEPT_CAPABILITIES, 0, 0, 0, 0)
    ctypes.CDLL(None, use_errno=True).capset(head, few)


def end_with_parent(parent: int) -> None:
    """Be killed when the process `parent`, which started this one, is gone. Linux only."""
    if sys.platform == "linux":
        _prctl()(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it went before it could be watched
        os._exit(1)


def _prctl() -> Any:
    call = ctypes.CDLL(None, use_errno=True).prctl
    call.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
    return call


def _code(machine: int, which: int, own: int) -> bytes:
    """The filter for process `own`. Parts stand before the answers at its end, and jump to them.

    A step is (what, if so, if not, value), where a jump is a number of steps or an answer.
    """
    steps: list[tuple[int, int | str, int | str, int]] = [
        (_LOAD, 0, 0, 4),  # the machine
        (_EQUAL, 0, "refuse", machine),
        (_LOAD, 0, 0, 0),  # the call
        (_AT_LEAST, "refuse", 0, _OTHER_NUMBERS),
    ]
    refused = (numbers[which] for numbers in _REFUSED_CALLS.values())
    steps += [(_EQUAL, "refuse", 0, number) for number in refused if number != _NOT_THERE]
    for numbers, flags in _SENDING.items():
        steps += [
            (_EQUAL, 0, 2, numbers[which]),
            (_LOAD, 0, 0, _argument(flags)),
            (_ANY_BIT, "refuse", "allow", _FAST_OPEN),
        ]
    for numbers, asked in _SIGNALLING.items():
        steps += [(_EQUAL, 0, len(asked) + 2, numbers[which]), (_LOAD, 0, 0, _argument(1))]
        steps += [(_EQUAL, "refuse", 0, what) for what in asked]
        steps.append((_LOAD, 0, 0, 0))
    # Limits of its own it may set, not those of another process, which would end by them; signals
    # of its own it may raise; it stays tied to its parent, and what it clones is a thread. Where
    # the flags cannot be seen the call is not there, and the C library takes the other.
    for numbers, test in (
        (_LIMITS, (_EQUAL, "allow", "refuse", 0)),
        (_KILL, (_EQUAL, "allow", "refuse", own)),
        (_KILL_THREAD, (_EQUAL, "allow", "refuse", own)),
        (_CONTROL, (_EQUAL, "refuse", "allow", _DEATH_SIGNAL)),
        (_CLONE, (_ANY_BIT, "allow", "refuse", _IS_THREAD)),
    ):
        steps += [(_EQUAL, 0, 2, numbers[which]), (_LOAD, 0, 0, _argument(0)), test]
    steps.append((_EQUAL, "lack", 0, _CLONE_BY_STRUCT[which]))
    # A pair of datagram sockets could still send to a path.
    is_stream = [
        (_LOAD, 0, 0, _argument(1)),
        (_MASK, 0, 0, _KIND),
    ]
    steps += [(_EQUAL, 0, 3, _SOCKETPAIR[which]), *is_stream, (_EQUAL, "allow", "refuse", _STREAM)]
    steps += [
        (_EQUAL, 0, "allow", _SOCKET[which]),
        (_LOAD, 0, 0, _argument(0)),
        (_EQUAL, 1, 0, _INET),
        (_EQUAL, 0, "refuse", _INET6),
        *is_stream,
        (_EQUAL, 0, "refuse", _STREAM),
        (_LOAD, 0, 0, _argument(2)),
        (_EQUAL, "allow", 0, 0),
        (_EQUAL, "allow", "refuse", _TCP),
    ]
    answers = {name: len(steps) + at for at, name in enumerate(("allow", "refuse", "lack"))}
    packed = [
        struct.pack("HBBI", what, *(_jump(to, at, answers) for to in (yes, no)), value)
        for at, (what, yes, no, value) in enumerate(steps)
    ]
    packed += [struct.pack("HBBI", _RETURN, 0, 0, answer) for answer in (_ALLOW, _REFUSE, _LACK)]
    return b"".join(packed)


def _argument(number: int) -> int:
    """Where the lower half of a call's argument stands."""
    return 16 + 8 * number


def _jump(to: int | str, at: int, answers: dict[str, int]) -> int:
    return answers[to] - at - 1 if isinstance(to, str) else to
