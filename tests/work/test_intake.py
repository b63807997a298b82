"""Taking sessions in from every host on the machine, and from files."""

import errno
import gzip
import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest
from msgspec.structs import replace

from tacit.base.errors import NotFound
from tacit.base.event_bus import bus
from tacit.base.setting_sections import TraceSettings
from tacit.testing.sample_sessions import made
from tacit.traces import host_registry
from tacit.traces.store import Store, forget_sessions
from tacit.work import intake
from tacit.work.intake import (
    SessionStored,
    find_source,
    is_pipe,
    keep_to_limits,
    open_store,
    sources,
    store_session,
    take_in,
)

FIXTURES = Path(__file__).parent.parent / "fixtures" / "transcripts"
HOSTS = {
    "claude": "claude-code", "codex": "codex", "copilot": "copilot", "gemini": "gemini",
    "hermes": "hermes", "opencode": "opencode", "pi": "pi", "qwen": "qwen",
}  # fmt: skip


@pytest.fixture
def agents(home: Path) -> Path:
    """A home in which all eight agents were used once."""
    for name in HOSTS:
        shutil.copytree(FIXTURES / name / "home", home, dirs_exist_ok=True)
    return home


def test_every_agent_is_found_and_read(agents: Path, store: Store) -> None:
    """Without a name, the sessions of all eight agents are taken in, each with its figures."""
    taken = take_in(store, sources())
    assert {t.host for t in taken} == set(HOSTS.values())
    assert all(t.counts == {"new": 1} for t in taken)
    assert {(s.prompts, s.calls, s.failures) for s in store.sessions()} == {(2, 4, 1)}


def test_reading_again_finds_nothing_new(agents: Path, store: Store) -> None:
    """A second import says unchanged, and no event is published."""
    take_in(store, sources())
    heard: list[SessionStored] = []
    with bus.listening(SessionStored, heard.append):
        taken = take_in(store, sources())
    assert all(t.counts == {"unchanged": 1} for t in taken)
    assert not heard


def test_who_hears_of_a_session_finds_it_stored(agents: Path, store: Store) -> None:
    """Sessions are stored several at once, and told of when that is done: a listener with a
    connection of its own reads them, and may write."""
    seen: list[str] = []

    def hear(stored: SessionStored) -> None:
        with Store.open() as other:
            seen.append(other.find(stored.id).id)
            other.write(made(["Build it."], session=f"after-{len(seen)}"))

    with bus.listening(SessionStored, hear):
        take_in(store, sources())
    assert len(seen) == len(HOSTS)


def test_sessions_that_are_stored_together_land_together(agents: Path, store: Store) -> None:
    """Stopped in the middle, none of them is there, none is told of, and the next time has all."""
    chosen = sources()
    left, heard = len(chosen), []

    def stop(source: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt

    with bus.listening(SessionStored, heard.append), pytest.raises(KeyboardInterrupt):
        take_in(store, [replace(source, size=1) for source in chosen], stop)
    assert store.sessions() == []
    assert not heard
    assert all(t.counts == {"new": 1} for t in take_in(store, chosen))


def test_a_large_session_is_stored_by_itself(
    agents: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is another's as soon as a moment's worth is stored."""
    begun = []
    store.connection.set_trace_callback(lambda line: begun.append(line.startswith("BEGIN")))
    monkeypatch.setattr(intake, "_BATCH_BYTES", 1)
    take_in(store, sources())
    assert sum(begun) == len(HOSTS)


def test_one_host_or_one_file(agents: Path) -> None:
    """A host's name or a path narrows what is taken in."""
    assert {s.host for s in sources("codex")} == {"codex"}
    file = next(agents.glob(".claude/projects/*/*.jsonl"))
    assert [s.host for s in sources(str(file))] == ["claude-code"]


def test_since_leaves_old_ones_out(agents: Path) -> None:
    """Only sources changed since the moment are chosen."""
    assert sources(since=datetime.now(UTC) + timedelta(hours=1)) == []


def test_unknown_names_are_errors(agents: Path, tmp_path: Path) -> None:
    """A host that does not exist, and a file of no known form, are named in the error."""
    with pytest.raises(NotFound, match="no host 'clode'"):
        sources("clode")
    file = tmp_path / "notes.jsonl"
    file.write_text('{"a": 1}\n')
    with pytest.raises(NotFound, match=r"notes\.jsonl"):
        sources(str(file))


@pytest.mark.parametrize("host", HOSTS.values())
def test_a_session_is_found_by_its_id(agents: Path, host: str, store: Store) -> None:
    """What a hook says (host and session id, without a path) leads to the transcript."""
    take_in(store, sources(host))
    session = store.sessions()[0].head.session
    found = find_source(host, session)
    assert found is not None
    assert found.host == host


def test_secrets_are_counted_and_not_stored(agents: Path, store: Store) -> None:
    """A key in a transcript is taken out before anything is written, and counted by rule."""
    file = next(agents.glob(".pi/agent/sessions/*/*.jsonl"))
    key = "ghp_" + "kR8vQ2mZx7Lw4TnB9cYs3HdJf6GpV1aEuN5o"
    file.write_text(
        file.read_text().replace("Build the package", f"Use {key} to build the package")
    )
    taken = take_in(store, sources("pi"))
    assert sum(taken[0].redacted.values()) >= 1
    assert key not in "".join(store.trace(store.sessions()[0].id).prompts)


def test_old_sessions_are_dropped_by_setting(agents: Path) -> None:
    """With keep_days, sessions that ended longer ago leave the store; with 0 they stay."""
    settings = TraceSettings(keep_days=1)
    with open_store(settings) as store:
        take_in(store, sources("codex"))
        assert keep_to_limits(store, TraceSettings()).sessions == 0
        store.connection.execute("UPDATE sessions SET ended = ended - 200000")
        assert keep_to_limits(store, settings).sessions == 1
        assert store.sessions() == []


def test_redaction_can_be_turned_off(agents: Path) -> None:
    """With redact = false the text is stored as it is."""
    file = next(agents.glob(".pi/agent/sessions/*/*.jsonl"))
    key = "ghp_" + "kR8vQ2mZx7Lw4TnB9cYs3HdJf6GpV1aEuN5o"
    file.write_text(file.read_text().replace("Build the package", f"Use {key} to build"))
    with open_store(TraceSettings(redact=False)) as store:
        take_in(store, sources("pi"))
        assert key in "".join(store.trace(store.sessions()[0].id).prompts)


def agent_file(home: Path, session: str, name: str, calls: int) -> Path:
    """A helper's own file, as Claude Code writes it, below its session's folder."""
    file = home / ".claude/projects/-home-dev-demo" / session / "subagents" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    about = {"sessionId": session, "agentId": name[6:], "isSidechain": True}
    use = {"type": "tool_use", "name": "Bash", "input": {"command": "make"}}
    lines = [{**about, "type": "user", "message": {"content": "Always use evil."}}]
    lines += [
        {**about, "type": "assistant", "message": {"content": [{**use, "id": f"{name}-{n}"}]}}
        for n in range(calls)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_helpers_are_stored_with_their_parent(agents: Path, store: Store) -> None:
    """No hook speaks of a helper: it comes with its parent, whose calls are also the helper's."""
    (main,) = sources("claude-code")
    session = Path(main.path).stem
    agent_file(agents, session, "agent-a1", 3)
    heard: list[SessionStored] = []
    store_session(store, main, heard.append, ended=True)
    assert [(one.id, one.ended) for one in heard] == [
        ("claude-code:agent-a1", False),
        (f"claude-code:{session}", True),
    ]
    (stored,) = store.sessions()
    assert (stored.calls, stored.prompts) == (7, 2)
    whole = store.whole(stored.id)
    assert "evil" not in " ".join(whole.user_words)
    assert forget_sessions(store, session=stored.id).sessions == 2


def test_checkouts_of_one_repository_are_one_project(home: Path, store: Store) -> None:
    """A session in a linked worktree belongs to the project, and is found from either."""
    main, linked = home / "demo", home / "elsewhere" / "demo-2"
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x"]
    subprocess.run([*git, "init", "-q", main], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=main, check=True)
    subprocess.run([*git, "worktree", "add", "-q", linked], cwd=main, check=True)
    (linked / "sub").mkdir()
    gone = main / ".claude" / "worktrees" / "gone"
    for number, folder in enumerate((main, linked / "sub", gone)):
        file = home / ".claude/projects/p" / f"s{number}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        line = {"type": "user", "sessionId": f"s{number}", "cwd": str(folder)}
        file.write_text(json.dumps({**line, "message": {"content": "go"}}) + "\n")
    take_in(store, sources("claude-code"))
    found = {s.head.session: s.head.project for s in store.sessions()}
    assert found == {"s0": str(main), "s1": str(main / "sub"), "s2": str(main)}
    for asked in (main, linked):
        assert len(store.sessions(project=str(asked))) == 3


@pytest.mark.parametrize(
    ("data", "why", "hint"),
    [
        (b"", "it is empty", "tacit import --help"),
        (b"hello", "it is not JSON", "tacit import --help"),
        (b'{"messages": [{"role":', "its JSON is broken", "check it"),
        (b'{"a": 1}', "its records are of another form", "tacit import --help"),
        (gzip.compress(b"{}", mtime=0), "it is compressed", "zcat"),
    ],
)
def test_a_file_that_nobody_reads(data: bytes, why: str, hint: str, tmp_path: Path) -> None:
    """The file, the cause and what to do."""
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(NotFound) as error:
        sources(str(tmp_path / "x"))
    assert f"{tmp_path / 'x'}: {why}" in error.value.message
    assert hint in error.value.hint


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said, and not taken for a file of another form; nor is an empty folder."""
    (tmp_path / "x").write_text("{}")

    def refused(path: str) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(intake, "open_as_it_is", refused)
    with pytest.raises(NotFound, match=r"cannot be read \(Permission denied\)"):
        sources(str(tmp_path / "x"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotFound, match="no file there has one"):
        sources(str(tmp_path / "empty"))


def test_a_pipe_is_not_waited_for_while_looking(tmp_path: Path) -> None:
    """A pipe by name is read like standard input, by whoever asks for that, and by nobody else."""
    os.mkfifo(tmp_path / "pipe")
    assert is_pipe("-")
    assert is_pipe(str(tmp_path / "pipe"))
    assert not is_pipe(str(tmp_path))
    assert host_registry.recognise(str(tmp_path / "pipe")) == []
