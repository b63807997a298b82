"""The line that the shell's prompt shows once, and the one that an agent shows as a session begins,
each in a small file of its own.

The first line of a file is the text; the lines after it are for whoever writes the file
(`learn/`). `tacit prompt-status` runs before every prompt, so this module imports os alone, and no
fault may ever disturb a prompt.
"""

import os

FILE_NAME = "prompt-status"
AGENT_FILE = "agent-status"


def take(data: str, name: str = FILE_NAME) -> str:
    """The line that waits, which is gone then; empty where there is none.

    Of two shells that ask at once, one gets it: the file is renamed before it is read.
    """
    path = os.path.join(data, name)
    mine = f"{path}.{os.getpid()}"
    try:
        os.rename(path, mine)
    except OSError:
        return ""
    try:
        with open(mine, encoding="utf-8", errors="replace") as file:
            return file.readline().rstrip("\n")
    except OSError:
        return ""
    finally:
        try:
            os.unlink(mine)
        except OSError:
            pass


def peek(data: str, name: str = FILE_NAME) -> list[str]:
    """All lines of the file that waits; none where there is none."""
    try:
        with open(os.path.join(data, name), encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def put(data: str, lines: list[str], name: str = FILE_NAME) -> None:
    """Let `lines` wait, in place of what waited; none takes it away.

    Raises `Unwritable` and `OSError`.
    """
    path = os.path.join(data, name)
    if not lines:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        return
    from tacit.base.atomic_files import write_atomic

    text = "\n".join(lines) + "\n"
    write_atomic(path, text.encode("utf-8", "backslashreplace"), durable=False)
