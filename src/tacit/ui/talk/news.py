"""What happened in the background, told in a conversation at the next quiet moment, and once.

What there is to tell is `learn/notices.py`'s. Here it is looked for cheaply, because a chat looks
often, and its commands are named as they are typed in a chat.
"""

import os
import re

_COMMANDS = (
    (re.compile(r"\btacit (undo|inbox|memory)\b"), r"/\1"),
    (re.compile(r"\btacit (accept|reject)\b"), r"/inbox \1"),
)


class News:
    """The news of one chat."""

    def __init__(self) -> None:
        self._seen: object = None

    @property
    def is_due(self) -> bool:
        """Whether something was written since the last look; two calls of stat."""
        mark = _mark()
        return mark is not None and mark != self._seen

    def look(self) -> tuple[str, ...]:
        """The lines to show, which count as told. Blocks for a moment; raises nothing."""
        if not self.is_due:
            return ()
        from tacit.learn import notices

        self._seen = _mark()
        if not notices.pending("chat"):
            return ()
        return tuple(here(line) for line in notices.tell("chat"))


def here(line: str) -> str:
    """A line of the shell's as it is for a chat."""
    for shell, chat in _COMMANDS:
        line = shell.sub(chat, line)
    return line


def _mark() -> object:
    """What is different once somebody has written to the database; None where there is none."""
    from tacit.base import database  # late: the first frame does not wait for it

    path = database.default_path()
    try:
        whole = os.stat(path)
    except OSError:
        return None
    try:
        log = os.stat(f"{path}-wal")
    except OSError:
        return whole.st_mtime_ns, whole.st_size
    return whole.st_mtime_ns, whole.st_size, log.st_mtime_ns, log.st_size
