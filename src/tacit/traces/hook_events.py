"""The spool of events from hooks, as the worker reads it: what ended, where, when, and who called.

`tacit.hook` writes one file an event; here they are read into structs, grouped by session, and
removed when they are done. A file stays until then, so a kill loses nothing. What to do with a
session that ended is left to the worker. Only the worker sweeps; anybody may read.

The settings that held the hook do not always tell which agent called: one plugin folder serves five
agents, and Copilot CLI also runs the hooks of Claude Code. What the agent wrote tells: the place of
its transcript first, then the way it spells its fields, then the variables that it sets.
"""

import errno
import math
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal

import msgspec

from tacit import hook
from tacit.base import paths
from tacit.base.atomic_files import open_private
from tacit.base.paths import make_private
from tacit.traces.host import Host

ANY_HOST = "plugin"
"""The host that the plugin's hooks name, as one file serves all."""

EventKind = Literal["turn-ended", "session-ended", "other"]


class Callers:
    """The hosts that may have called; they are loaded when the first event asks for them."""

    @cached_property
    def hosts(self) -> dict[str, Host]:
        """By name. One whose hooks others run too is asked last."""
        from tacit.traces import host_registry

        hosts = sorted(host_registry.each(), key=lambda host: (host.hooks.shared, -host.precedence))
        return {host.name: host for host in hosts}

    def calling_host(
        self, stated: str, payload: Mapping[str, Any], transcript: str, signs: Mapping[str, str]
    ) -> str:
        """The host that called, where the hook itself says `stated`."""
        if stated not in ("", ANY_HOST, *(h.name for h in self.hosts.values() if h.hooks.shared)):
            return stated
        known = [(host.name, host.signs) for host in self.hosts.values()]
        for name, sign in known:
            if sign.transcript and re.search(f"{sign.transcript}$", transcript):
                return name
        if transcript:
            return stated
        session = payload.get("session_id")
        if session is None:
            found = [name for name, sign in known if sign.key and sign.key in payload]
        else:
            found = [name for name, sign in known if signs.get(sign.session) == session]
        found += [name for name, sign in known if sign.variable and sign.variable in signs]
        return next(iter(found), stated)

    def session(
        self, host: str, payload: dict[str, Any], transcript: str, signs: Mapping[str, str]
    ) -> str:
        """The session's id: as it was sent, else as the transcript or the environment names it."""
        known = self.hosts.get(host, Host())
        sent = _text(payload, "session_id", "sessionId", "sessionID")
        if not sent and transcript:
            sent = known.session_of(transcript)
        sent = sent or signs.get(known.signs.session, "")
        return sent if _SESSION.fullmatch(sent) else ""

    def may_name(self, event: str, host: str, transcript: str) -> bool:
        """Whether the file that the event at this path names can be the session of `host`'s user:
        anybody may have written both, unless one of them lies where only we or the agent write."""
        from tacit.traces import host_registry

        if os.path.dirname(event) == _own_spool() or not transcript:
            return True
        return host in self.hosts and host_registry.is_kept(self.hosts[host], transcript)

    def kind(self, host: str, name: str) -> EventKind:
        """What the event `name` says has ended, by the words of `host` or of any other."""
        word = _word(name)
        own = [self.hosts[host]] if host in self.hosts else []
        for known in (*own, *self.hosts.values()):
            if word in map(_word, known.hooks.turn):
                return "turn-ended"
            if word in map(_word, known.hooks.session):
                return "session-ended"
        return "other"


def _word(name: str) -> str:
    """An event's name without case and separators, which the plugin's hooks spell in one way."""
    return re.sub(r"[^a-z]", "", name.lower())


QUIET = 120.0
"""Seconds without an event after which a session counts as over."""
_STALE = 60.0
"""Seconds after which a temporary file has no writer any more."""
_KEPT = 20
"""How many unusable files are kept for inspection."""

_SESSION = re.compile(r"[^\s/\\\x00-\x1f]{1,200}")
_SIZE = re.compile(r"[0-9]{1,15}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One call of the hook."""

    path: str
    """The file in the spool."""
    host: str
    """The agent that called; not always the one whose settings held the hook."""
    kind: EventKind
    name: str
    """The event in the agent's own words."""
    session: str
    transcript: str = ""
    """Where the agent keeps the session, if it said so."""
    cwd: str = ""
    time: float
    """Seconds since 1970, by the clock of the hook."""
    drawn: Any = None
    """What the session drew lots for, as a program of ours in the agent tells it."""


class QuietSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session that ended, or has been quiet for long enough, with the events that said so."""

    host: str
    session: str
    transcript: str
    cwd: str
    ended: bool
    """The agent said that it ended; otherwise it fell silent."""
    last: float
    events: tuple[Event, ...]


def pending() -> list[Event]:
    """Every event that is not done, oldest first. Changes nothing."""
    callers = Callers()
    found = (_read(path, callers) for path in _files())
    return sorted((e for e in found if e is not None), key=lambda event: (event.time, event.path))


def remove(event: Event) -> None:
    """Take `event` out of the spool, and remember that its host was heard. May be repeated."""
    _record_heard(event.host, event.time)
    try:
        os.unlink(event.path)
    except FileNotFoundError:
        pass


def quiet_sessions(events: Iterable[Event], now: float, quiet: float = QUIET) -> list[QuietSession]:
    """Sessions ready to be reviewed: those that ended, or have been quiet for `quiet` seconds.

    A session seen by two roads, such as Copilot that also runs Claude Code's hooks, counts once.
    One that was taken up again after its end has to be quiet like any other. Longest quiet first.
    """
    groups: dict[tuple[str, str], list[Event]] = {}
    for event in sorted(events, key=lambda event: event.time):
        # A UUID is the same session whichever host reports it.
        host = "" if _UUID.fullmatch(event.session) else event.host
        groups.setdefault((host, event.session), []).append(event)
    sessions = [_session(group) for group in groups.values()]
    # A last event far in the future means that the clock was set back: waiting could take years.
    ready = [s for s in sessions if s.ended or abs(now - s.last) >= quiet]
    return sorted(ready, key=lambda session: session.last)


def last_heard() -> dict[str, float]:
    """When each host last called, in seconds since 1970."""
    found: dict[str, float] = {}
    folder = _heard_folder()
    for name in _names(folder):
        found[name] = os.stat(os.path.join(folder, name)).st_mtime
    for event in pending():
        found[event.host] = max(event.time, found.get(event.host, 0.0))
    return found


def first_heard() -> dict[str, float]:
    """When each host first called and was dealt with, in seconds since 1970."""
    found: dict[str, float] = {}
    for host in _names(_heard_folder()):
        mark = os.path.join(_heard_folder(), host)
        try:
            with open(mark, encoding="ascii") as file:
                found[host] = float(file.read(40))
        except ValueError:  # of an older version, which kept only when it was last
            found[host] = os.stat(mark).st_mtime
        except OSError:
            continue
    return found


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    except OSError:
        return []


def sweep(now: float | None = None) -> int:
    """Put aside what cannot be read, and save what lost its name with the power; how many aside.

    The newest few that cannot be read are kept in `unusable/` beside the others.
    """
    now = time.time() if now is None else now
    aside, callers = 0, Callers()
    for spool in _spools():
        for name in sorted(os.listdir(spool)):
            path = os.path.join(spool, name)
            with suppress(OSError):  # taken away meanwhile, or a folder that somebody planted
                if name.startswith(".") and name.endswith(".tmp"):
                    _adopt(path, now)
                elif name.endswith(".event") and _read(path, callers) is None:
                    _put_aside(spool, name)
                    aside += 1
    _remove_old(os.path.join(_own_spool(), "unusable"))
    return aside


def worker_started() -> None:
    """The worker has its lock: take the mark away that kept others from starting one."""
    try:
        os.unlink(os.path.join(paths.folders().data, "worker.starting"))
    except FileNotFoundError:
        pass


def _spools() -> list[str]:
    """The spools that exist and are nobody else's."""
    found = []
    for spool in hook.spools(paths.folders().data):
        try:
            if hook.is_private(spool):
                found.append(spool)
        except OSError:
            continue
    return found


def _own_spool() -> str:
    """The spool in the data folder. The others lie where a command in an agent's sandbox may be
    able to write: nothing there is kept, and what it says of files has to be true without it."""
    return hook.spools(paths.folders().data)[0]


def _files() -> Iterator[str]:
    for spool in _spools():
        for name in os.listdir(spool):
            if name.endswith(".event") and not name.startswith("."):
                yield os.path.join(spool, name)


def _read(path: str, callers: Callers) -> Event | None:
    """The event in the file, or None where there is none that could be used."""
    try:
        data = _content(path)
    except OSError:  # taken away meanwhile, or not readable
        return None
    head, separator, raw = data.partition(b"\n\n")
    fields = _fields(head)
    if not separator or fields.get("tacit-event") != "1":
        return None
    payload = _payload(raw)
    transcript = _text(payload, "transcript_path", "transcriptPath", "session_file", "sessionFile")
    signs = dict(sign.split("=", 1) for sign in fields.get("signs", "").split(" ") if "=" in sign)
    host = callers.calling_host(fields.get("host", ""), payload, transcript, signs)
    session = callers.session(host, payload, transcript, signs)
    if not session:
        return None
    name = fields.get("event") or _text(payload, "hook_event_name", "hookEventName", "type")
    return Event(
        path=path,
        host=host,
        kind=callers.kind(host, name),
        name=name,
        session=session,
        transcript=transcript if callers.may_name(path, host, transcript) else "",
        cwd=_text(payload, "cwd", "directory") or fields.get("cwd", ""),
        time=_when(fields.get("time", ""), path),
        drawn=payload.get("drawn"),
    )


def _content(path: str) -> bytes:
    """What the file at `path` holds, as much as an event can have. Raises OSError, for a link and
    for a pipe too, which would have to be waited for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return file.read(hook.KEEP + (1 << 16))


def _fields(head: bytes) -> dict[str, str]:
    found = {}
    for line in os.fsdecode(head).split("\n"):
        name, _, value = line.partition(" ")
        found[name] = re.sub(r"\\([n\\])", lambda m: "\n" if m[1] == "n" else "\\", value)
    return found


def _payload(raw: bytes) -> dict[str, Any]:
    """The payload as an object; from one that was cut off or is broken, what can be had."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        from tacit.traces.settings_json import salvage_members

        value = salvage_members(raw.decode("utf-8", "replace"))
    return value if isinstance(value, dict) else {}


def _text(payload: dict[str, Any], *names: str) -> str:
    for name in names:
        value = payload.get(name)
        if isinstance(value, str) and value and "\0" not in value:
            return value
    return ""


def _when(text: str, path: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and value > 0:
        return value
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _session(events: list[Event]) -> QuietSession:
    """One session out of its events, oldest first."""
    told = [event for event in events if event.transcript]
    best = told[-1] if told else events[-1]
    telling = [event.kind for event in events if event.kind != "other"]
    return QuietSession(
        host=best.host,
        session=best.session,
        transcript=best.transcript,
        cwd=next((event.cwd for event in reversed(events) if event.cwd), ""),
        ended=bool(telling) and telling[-1] == "session-ended" and events[-1].kind != "other",
        last=events[-1].time,
        events=tuple(events),
    )


def _heard_folder() -> str:
    return os.path.join(paths.folders().data, "heard")


def _record_heard(host: str, when: float) -> None:
    """Keep the time as that of a file, which says the first; a full disk does not matter here."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,60}", host):
        return
    mark = os.path.join(_heard_folder(), host)
    try:
        make_private(_heard_folder())
        known = os.stat(mark).st_mtime if os.path.exists(mark) else 0.0
        if when > known:
            with open(mark, "a", encoding="ascii", opener=open_private) as file:
                if not known:
                    file.write(f"{when:.6f}")
            os.utime(mark, (when, when))
    except (OSError, OverflowError):
        pass


def _adopt(path: str, now: float) -> None:
    """Give a whole event its name, remove a part of one; leave what is still being written."""
    if abs(now - os.lstat(path).st_mtime) < _STALE:
        return
    try:
        head, separator, payload = _content(path).partition(b"\n\n")
    except OSError:
        os.unlink(path)
        return
    size = _fields(head).get("size", "")
    if separator and _SIZE.fullmatch(size) and len(payload) == min(int(size), hook.KEEP):
        folder, name = os.path.split(path)
        os.rename(path, os.path.join(folder, name[1:].removesuffix(".tmp") + ".event"))
    else:
        os.unlink(path)


def _put_aside(spool: str, name: str) -> None:
    """Keep what nobody understands, for a look at it; of another spool than ours nothing stays."""
    path = os.path.join(spool, name)
    if spool != _own_spool():
        os.unlink(path)
        return
    make_private(os.path.join(spool, "unusable"))
    os.rename(path, os.path.join(spool, "unusable", name))


def _remove_old(folder: str) -> None:
    if os.path.isdir(folder):
        for name in sorted(os.listdir(folder))[:-_KEPT]:
            os.unlink(os.path.join(folder, name))
