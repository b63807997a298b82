"""Renames that the os module does not have: two names change places, or nothing is replaced.

Linux has renameat2, macOS renameatx_np. Where neither is there, or the filesystem does not know
them, `exchange` says so by returning False and the caller takes two plain renames under its
journal. Names are single components, relative to folders that are held open.
"""

import ctypes
import errno
import os
import sys
from functools import cache
from typing import Any

_UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def exchange(folder: int, name: str, other: int, other_name: str) -> bool:
    """Let two names change places in one step. False where the system cannot; OSError else."""
    return _rename(folder, name, other, other_name, 2)


def move(folder: int, name: str, other: int, other_name: str) -> None:
    """Rename, never replacing anything: FileExistsError where the new name is taken."""
    flag = 4 if sys.platform == "darwin" else 1
    if _rename(folder, name, other, other_name, flag):
        return
    # Without the flag a rename still replaces neither a file nor a folder with something in it,
    # as what is moved here is always a folder; an empty one is looked for first.
    try:
        os.stat(other_name, dir_fd=other, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(name, other_name, src_dir_fd=folder, dst_dir_fd=other)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), other_name)


def _rename(folder: int, name: str, other: int, other_name: str, flag: int) -> bool:
    call = _system_call()
    if call is None:
        return False
    if call(folder, os.fsencode(name), other, os.fsencode(other_name), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), name, None, other_name)


@cache
def _system_call() -> Any:
    try:
        library = ctypes.CDLL(None, use_errno=True)
        call = library.renameatx_np if sys.platform == "darwin" else library.renameat2
    except (AttributeError, OSError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call
