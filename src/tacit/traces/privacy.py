"""Names of people and their home folders, taken out of what leaves the machine, and counted.

Works on encoded JSON, in one pass a name: a home folder becomes `/home/user`, the name of its owner
`user`. A name that is also a common word (`dev`, `admin`) is taken out of paths alone. Secrets are
`redaction.py`'s.
"""

import getpass
import re
from collections.abc import Iterable

from tacit.base.paths import user_home

# One pattern each: what begins with plain letters is found twenty times faster.
_HOMES = tuple(
    re.compile(rb"(" + folder + rb")([A-Za-z0-9._-]+)")
    for folder in (rb"/home/", rb"/Users/", rb"\\Users\\{1,4}")
)
_OF_PATH = re.compile(r"(?:/home/|/Users/|\\Users\\)([^/\\]+)")
_EVERYDAY = frozenset({
    "admin", "app", "build", "builder", "ci", "code", "coder", "data", "debian", "demo", "dev",
    "developer", "docker", "git", "guest", "home", "jenkins", "local", "me", "node", "nobody",
    "runner", "root", "server", "shared", "test", "tests", "tmp", "ubuntu", "user", "vagrant",
    "vscode", "web", "work", "worker", "www",
    # What the forms themselves say: who speaks, what kind a thing is, how it ended.
    "agent", "aside", "assistant", "atif", "cancelled", "claude", "codex", "compaction", "copilot",
    "cursor", "failed", "false", "file", "function", "gemini", "given", "gpt", "hermes", "hidden",
    "hook", "human", "message", "model", "none", "null", "opencode", "output", "plan", "prompt",
    "qwen", "refusal", "refused", "session", "sibling", "skill", "subagent", "summary", "system",
    "tacit", "teammate", "tool", "true", "unclear", "unfinished", "unknown", "verdict", "worked",
})  # fmt: skip
"""Names of accounts that are also words: they tell of nobody, and stand everywhere."""
_NEUTRAL = b"user"
_BEFORE = re.compile(rb"(?:[^A-Za-z0-9_]|\\[nrtbf]|\\u001b\[[0-9;]*m|^)\Z")
_REACH = 24
"""Bytes before a name in which it is seen whether a word begins there."""


class Privacy:
    """Takes this user's name and home out, and those of whoever a session's project belongs to."""

    def __init__(self, names: Iterable[str] = (), home: str | None = None) -> None:
        """`names` beside that of the user who runs this."""
        self._home = (user_home() if home is None else home).rstrip("/")
        self._own = {self._home.rpartition("/")[2], _login(), *names}

    def clean(self, data: bytes, project: str = "") -> tuple[bytes, dict[str, int]]:
        """`data`, encoded JSON, without private names, and how many were taken out, by kind."""
        counts: dict[str, int] = {}

        def home(found: re.Match[bytes]) -> bytes:
            if found[2] != _NEUTRAL:
                counts["home folder"] = counts.get("home folder", 0) + 1
            return found[1] + _NEUTRAL

        own = self._home.encode()
        if len(own) > 5 and not any(homes.match(own) for homes in _HOMES) and own in data:
            counts["home folder"] = data.count(own)
            data = data.replace(own, b"/home/" + _NEUTRAL)
        for homes in _HOMES:
            data = homes.sub(home, data)
        owner = _OF_PATH.match(project)
        for name in sorted(self._own | ({owner[1]} if owner else set()), key=len, reverse=True):
            data = _without_name(data, name, counts)
        return data, counts


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def _without_name(data: bytes, name: str, counts: dict[str, int]) -> bytes:
    wanted = name.encode()
    if len(name) < 3 or name.lower() in _EVERYDAY or wanted not in data:
        return data

    def strike(found: re.Match[bytes]) -> bytes:
        # In encoded text a letter before a name may be the end of a line break, or of a colour.
        before = found.string[max(0, found.start() - _REACH) : found.start()]
        if not _BEFORE.search(before):
            return found[0]
        counts["user name"] = counts.get("user name", 0) + 1
        return _NEUTRAL

    # What is followed by a colon, behind its quotes, is a key.
    return re.sub(re.escape(wanted) + rb'(?![A-Za-z0-9_])(?!\\*":)', strike, data)
