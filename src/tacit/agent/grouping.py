"""A process that cannot leave its group, nor outlive who started it.

Who ends a group of processes ends all in it at once, also while they multiply; what makes itself a
session or a group of its own is missed. On Linux a filter on system calls (seccomp) forbids that,
to the process and to all that it starts. Elsewhere, and on machines whose numbers are not here,
nothing holds and the answer says so.
"""

import ctypes
import os
import platform
import signal
import struct
import sys
from typing import Any

# Machine -> its mark in a filter, and the numbers of setsid and setpgid.
_MACHINES = {
    "x86_64": (0xC000003E, 112, 109),
    "aarch64": (0xC00000B7, 157, 154),
}
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER, _DEATH_SIGNAL = 38, 22, 2, 1
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # the latter with EPERM
_OTHER_NUMBERS = 0x40000000
"""From here on, x86_64 counts the calls of its 32-bit sister anew."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def stay_in_group() -> bool:
    """Forbid leaving the group from now on, to this thread and what it starts; False if it cannot.

    Call it before other threads.
    """
    known = _MACHINES.get(platform.machine()) if sys.platform == "linux" else None
    if known is None or sys.maxsize < 2**32:
        return False
    prctl = _prctl()
    if prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        return False
    code = _code(*known)
    program = _Program(len(code) // 8, code)
    return bool(prctl(_SECCOMP, _FILTER, ctypes.addressof(program), 0, 0) == 0)


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


def _code(machine: int, setsid: int, setpgid: int) -> bytes:
    """The filter: calls of another machine's kind, and the two calls, are refused."""
    steps = (
        (_LOAD, 0, 0, 4),  # the machine
        (_EQUAL, 0, 5, machine),  # another one: refuse
        (_LOAD, 0, 0, 0),  # the call
        (_AT_LEAST, 3, 0, _OTHER_NUMBERS),
        (_EQUAL, 2, 0, setsid),
        (_EQUAL, 1, 0, setpgid),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    )
    return b"".join(struct.pack("HBBI", *step) for step in steps)
