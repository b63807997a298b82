"""Taking sessions in from the hosts: finding them, storing what is new, watching without hooks.

Reads transcripts, writes the store, and publishes `SessionStored` for whoever wants to learn
from a session. `watch` follows the transcript folders and takes a session for ended when it has
been quiet.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import BinaryIO

import msgspec

from tacit.base.atomic_files import TemporaryFolder
from tacit.base.errors import Damaged, MissingExtra, NotFound, TacitError
from tacit.base.event_bus import bus
from tacit.base.setting_sections import TraceSettings
from tacit.traces import host_registry
from tacit.traces.assembler import read_trace
from tacit.traces.conversation_files import first_records
from tacit.traces.host import ZSTD, Host, Source, open_as_it_is, unpacking_program
from tacit.traces.hosts.tacit import redact_session_files
from tacit.traces.session_rows import Written
from tacit.traces.store import Forgotten, Store, prune_sessions
from tacit.traces.trace import Trace
from tacit.traces.trajectory_source import keep_given, redact_given

NEWS = ("new", "grown")
"""The words for a session of which something was stored that was not there before."""
_MOST_HELPERS = 1000
_BATCH_BYTES = 4_000_000
"""Of sessions that are stored together: the full text is put together once for each batch, and
nobody else can write meanwhile."""


class SessionStored(msgspec.Struct, frozen=True):
    """Event: a session is in the store, new or grown."""

    id: str
    status: str
    ended: bool = False
    """The host said that it is over, or it has been quiet for long enough."""
    path: str = ""
    """Where the host keeps it."""


class Taken(msgspec.Struct, frozen=True):
    """The result of taking in the sessions of one host."""

    host: str
    title: str
    found: int = 0
    counts: dict[str, int] = {}
    """By status: new, grown, unchanged, empty, forgotten, poorer."""
    redacted: dict[str, int] = {}
    skipped: dict[str, int] = {}


def open_store(settings: TraceSettings) -> Store:
    """The store, with redaction as it is set."""
    return Store.open(redact=None if settings.redact else _as_it_is)


def keep_to_limits(store: Store, settings: TraceSettings) -> Forgotten:
    """Drop what is older, or more, than the settings keep."""
    older = timedelta(days=settings.keep_days) if settings.keep_days else None
    most = settings.keep_megabytes * 1_000_000 if settings.keep_megabytes else None
    return prune_sessions(store, older=older, most=most)


def redact_again(store: Store, settings: TraceSettings, most: int | None = None) -> bool:
    """Redact what was stored, `most` sessions of it, and our own chat's files, by today's rules.

    Whether all is done. Once for each version of the rules; costs next to nothing afterwards.
    """
    if not settings.redact:
        return True
    redact_session_files()
    redact_given(store)
    return store.redact_again(most)


def sources(
    what: str = "",
    since: datetime | None = None,
    unknown: Callable[[str], None] = lambda file: None,
) -> list[Source]:
    """The sessions to take in: of all hosts, of one, or in a file or folder; newest first.

    `unknown` is told of files there that look like sessions and are of no known form.
    """
    if what and (os.sep in what or os.path.exists(what)) and what not in host_registry.names():
        found = host_registry.recognise(os.path.abspath(os.path.expanduser(what)), unknown)
        if not found:
            why, hint = _why_unknown(what)
            raise NotFound(f"no session of a known form in {what}: {why}", hint)
    elif what:
        found = list(host_registry.get(what).find())
    else:
        found = [source for host in host_registry.each() for source in host.find()]
    if since is not None:
        found = [source for source in found if source.modified >= since.timestamp()]
    return sorted(found, key=lambda source: source.modified, reverse=True)


def _why_unknown(path: str) -> tuple[str, str]:
    """Why no session was found in a file or a folder, and what to do."""
    forms = "; ".join(host_registry.problems()) or "see the forms: tacit import --help"
    if os.path.isdir(path):
        return "no file there has one", forms
    if program := unpacking_program(path):
        return "it is compressed", f"unpack it: {program} {path} | tacit import -"
    try:
        with open_as_it_is(path) as file:
            head = file.read(4096).strip(b"\xef\xbb\xbf \t\r\n\0")[:1]
    except OSError as error:
        return f"it cannot be read ({error.strerror})", "check who may read it: ls -l"
    if head not in (b"{", b"["):
        return "it is not JSON" if head else "it is empty", forms
    if not first_records(path):
        return "its JSON is broken, or larger than is read at once", "check it, or write JSON lines"
    return "its records are of another form", forms


def is_pipe(what: str) -> bool:
    """Whether `what` is standard input, or a pipe by name as a shell's `<(…)` gives it."""
    try:
        return what == "-" or stat.S_ISFIFO(os.stat(what).st_mode)
    except OSError:
        return False


@contextlib.contextmanager
def piped_file(stream: BinaryIO) -> Iterator[str]:
    """What `stream` holds, as a file for the block, named by its content: the same again is the
    same session."""
    with TemporaryFolder("import") as folder:
        path, digest = os.path.join(folder, "stdin"), hashlib.sha256()
        with open(path, "wb") as file:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
                file.write(chunk)
        named = os.path.join(folder, f"stdin-{digest.hexdigest()[:12]}.json")
        os.rename(path, named)
        yield named


def read_sessions(what: str = "", since: datetime | None = None) -> Iterator[Trace]:
    """The sessions of all agents, of one, or in a file or folder, newest first; nothing is stored.

    Secrets are not taken out, as they are when a session is stored. Raises `NotFound`.
    """
    for source in sources(what, since):
        yield read_trace(host_registry.get(source.host), source)


def store_session(
    store: Store,
    source: Source,
    tell: Callable[[SessionStored], None] = bus.publish,
    *,
    ended: bool = False,
) -> Written:
    """Store what is new of one session and `tell` of it, if something is or it has `ended`.

    With one that has ended, its helpers' sessions are stored, and told of first: no hook speaks of
    them. Raises `TacitError`, and what `tell` raises.
    """
    host = host_registry.get(source.host)
    written = store.take_in(host, source)
    is_new = written.status in NEWS
    if is_new and source.handed:
        keep_given(store, source, written.id)
    if written.id and (is_new or (ended and written.status != "forgotten")):
        for helper in _helpers(host, source) if ended else ():
            part = store.take_in(host, helper)
            if part.status in NEWS:
                tell(SessionStored(part.id, part.status, path=helper.path))
        tell(SessionStored(written.id, written.status, ended, source.path))
    return written


def _helpers(host: Host, source: Source) -> Iterator[Source]:
    """The helpers' sessions of one, and theirs."""
    known = {(source.path, source.key)}
    found = [source]
    while found and len(known) < _MOST_HELPERS:
        for helper in host.helpers(found.pop()):
            if (helper.path, helper.key) not in known:
                known.add((helper.path, helper.key))
                found.append(helper)
                yield helper


def take_in(
    store: Store,
    chosen: Iterable[Source],
    tell: Callable[[Source], None] | None = None,
    *,
    ended: bool = False,
) -> list[Taken]:
    """Store what is new in `chosen`; one result a host, in the order in which they came.

    The oldest is stored first, so that what was stored last is what happened last. With `ended`
    they are known to be over, and may be learned from.
    """
    chosen = list(chosen)
    counts: dict[str, Counter[str]] = {source.host: Counter() for source in chosen}
    redacted: dict[str, Counter[str]] = {}
    skipped: dict[str, Counter[str]] = {}
    for batch in _batches(sorted(chosen, key=lambda source: source.modified)):
        stored: list[SessionStored] = []
        with store.writes.together():
            for source in batch:
                written = store_session(store, source, stored.append, ended=ended)
                counts[source.host][written.status] += 1
                redacted.setdefault(source.host, Counter()).update(written.redacted)
                if written.status in NEWS:
                    skipped.setdefault(source.host, Counter()).update(written.skipped)
                if tell is not None:
                    tell(source)
        for event in stored:  # who hears of it finds it in the store
            bus.publish(event)
    return [
        Taken(
            host,
            host_registry.get(host).title,
            sum(count.values()),
            dict(count),
            dict(redacted.get(host, {})),
            dict(skipped.get(host, {})),
        )
        for host, count in counts.items()
    ]


def _batches(chosen: Iterable[Source]) -> Iterator[list[Source]]:
    """The sessions that are stored together: as many as take a moment, so that nobody else has to
    wait long for the database. What is of a size that nobody knows is stored alone."""
    batch: list[Source] = []
    size = 0
    for source in chosen:
        weight = source.size or _BATCH_BYTES
        if batch and size + weight > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += weight
    if batch:
        yield batch


def find_source(host: str, session: str, transcript: str = "") -> Source | None:
    """Where the session that a hook spoke of lies."""
    try:
        reader = host_registry.get(host)
    except NotFound:
        return None
    if transcript and os.path.exists(transcript):
        found = next(iter(reader.inside(transcript)), None)
        if found is not None:
            return found
    known = _newest(reader.find())
    exact = next((s for s in known if session in (s.key, _stem(s.path))), None)
    if exact is not None or len(session) < 8:
        return exact
    # Some name the file by the beginning of the id only.
    return next((s for s in known if session[:8] in os.path.basename(s.path)), None)


def missing_session(host: str) -> TacitError:
    """Why a session that a hook spoke of is not found: `NotFound`, or that nothing can be read."""
    try:
        fault = host_registry.get(host).fault()
    except NotFound:
        return NotFound(f"no agent is known as '{host}'", "see: tacit connect")
    if fault:
        return Damaged(f"its sessions cannot be read: {fault}", "see: tacit doctor")
    return NotFound("no transcript was found", "one that has no messages yet has none")


def _as_it_is(text: str) -> tuple[str, dict[str, int]]:
    return text, {}


def _newest(found: Iterator[Source]) -> list[Source]:
    return sorted(found, key=lambda source: source.modified, reverse=True)


def _stem(path: str) -> str:
    """The session's id, where a file or its folder is named for it."""
    name = os.path.basename(path)
    stem = name.removesuffix(ZSTD).rpartition(".")[0] or name
    if stem in ("events", "state"):
        return os.path.basename(os.path.dirname(path))
    # rollout-2026-11-15T06-43-32-<uuid>, session-…-<id>
    return stem[-36:] if len(stem) > 36 and stem[-36:].count("-") == 4 else stem


def host_homes() -> list[str]:
    """The homes of the hosts that are here."""
    return sorted({home for host in host_registry.each() for home in host.homes()})


def watch(
    store: Store, quiet: float, tell: Callable[[Taken], None], stop: Callable[[], bool]
) -> None:
    """Take in each session that has been quiet for `quiet` seconds, until `stop` says so."""
    seen: dict[tuple[str, str], float] = {}
    started = time.time()
    for _ in _beats(host_homes(), quiet, stop):
        now = time.time()
        due: list[Source] = []
        for source in sources():
            key = (source.path, source.key)
            fresh = source.modified > seen.get(key, started)
            if fresh and now - source.modified >= quiet:
                seen[key] = source.modified
                due.append(source)
        for taken in take_in(store, due, ended=True):
            tell(taken)


def _beats(watched: list[str], quiet: float, stop: Callable[[], bool]) -> Iterator[None]:
    """A moment to look: soon after a change, and when a quiet time may be over."""
    try:
        from watchfiles import watch as follow
    except ImportError:
        raise MissingExtra("work", "tacit watch") from None
    yield None
    existing = [folder for folder in watched if os.path.isdir(folder)]
    wait = max(int(min(quiet, 5.0) * 1000), 200)
    for _ in follow(*existing, yield_on_timeout=True, rust_timeout=wait, raise_interrupt=True):
        if stop():
            return
        yield None
