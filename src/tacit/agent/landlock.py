"""Landlock: a process gives up rights for good, itself and all that it starts. No root is needed.

Owns the three system calls, by ctypes, and which rights each version of the kernel's interface
knows. It says what holds and never pretends: on another system, or a kernel without it, the answer
is a `Held` in which nothing does. Who locks itself in, and why, is for others to decide.

A folder that may be read or written may be so with all that is below it; what is not named may not
be opened at all. Rights taken once stay taken, and a file that was open before stays usable.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Iterable

import msgspec

from tacit.base.errors import Refused

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every machine that has them
_VERSION = 1
_PATH, _PORT = 1, 2
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE = 0b1_1111_1111 << 4
"""Removing files and folders, and making anything: bits 4 to 12."""
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_BIND, _CONNECT = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
"""What can be said of a path that is no folder."""


class Rules(msgspec.Struct, frozen=True):
    """What a process keeps. Paths that do not exist are passed over."""

    write: tuple[str, ...]
    """What may be read and written, with all below."""
    read: tuple[str, ...] | None = None
    """What may be read; None leaves reading as it is."""
    ports: tuple[int, ...] | None = None
    """TCP ports, of any machine, to which it may connect; None leaves the network as it is."""


class Held(msgspec.Struct, frozen=True):
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


def abi() -> int:
    """The version of the kernel's interface, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    found = _libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(int(found), 0)


def restrict(rules: Rules) -> Held:
    """Keep to `rules` from now on, this thread and what it starts. Call it before other threads.

    Raises `Refused` where the kernel has Landlock and will not take the rules: then nothing holds,
    and whoever relies on it must not go on.
    """
    version = abi()
    if version == 0:
        return Held(why_not=_why_none())
    handled = _handled(rules, version)
    libc = _libc()
    size = 8 if version < 4 else 16 if version < 6 else 24
    made = libc.syscall(_CREATE, ctypes.byref(handled), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if made < 0:
        raise _refused("make a set of rules")
    try:
        _allow_paths(libc, made, rules.write, handled.fs, handled.fs)
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


def _handled(rules: Rules, version: int) -> _Ruleset:
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


def _held(rules: Rules, version: int) -> Held:
    network = rules.ports is not None and version >= 4
    missing = []
    if version < 3:
        missing.append("files elsewhere can be cut short")
    if rules.ports is not None and not network:
        missing.append("connections are not limited")
    told = f"this kernel has version {version} of Landlock: {', '.join(missing)}"
    return Held(
        abi=version,
        writes=True,
        reads=rules.read is not None,
        network=network,
        why_not=told if missing else "",
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
