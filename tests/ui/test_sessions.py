"""`tacit import`, `sessions`, `session`, `forget` and `why`, on real transcripts."""

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from inside import answer, error, tacit

from tacit.agent import budget
from tacit.agent.agent_events import Usage
from tacit.base import database, paths
from tacit.base.setting_sections import Settings
from tacit.learn.review.review_triggers import decide_after_session
from tacit.testing.sample_sessions import made, ran
from tacit.traces.session_rows import unpacked
from tacit.traces.store import Store

BIN = Path(sys.executable).parent
FIXTURES = Path(__file__).parents[1] / "fixtures" / "transcripts"
CLAUDE = "b4a27079-b3f0-4aac-a79c-04d4f81b280f"
TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
ROW = {
    "id", "host", "session", "project", "model", "title", "started", "ended", "turns", "prompts",
    "calls", "failures", "skills", "input_tokens", "output_tokens", "cost", "redacted", "outcome",
    "learned", "decided",
}  # fmt: skip


def install(home: Path, *hosts: str) -> None:
    """Put the real transcripts of `hosts` where those agents wrote them."""
    for host in hosts or [path.name for path in FIXTURES.iterdir() if path.is_dir()]:
        shutil.copytree(FIXTURES / host / "home", home, dirs_exist_ok=True)


def database_bytes(home: Path) -> bytes:
    """All that stands in the database, the turns also as they were before they were packed."""
    data = home / ".local/share/tacit"
    with database.opened() as connection:
        turns = [unpacked(row[0]) for row in connection.execute("SELECT body FROM turns")]
    return b"".join([*turns, *(path.read_bytes() for path in data.glob("tacit.db*"))])


def chat(folder: Path, *messages: tuple[str, str], name: str = "chat.jsonl") -> Path:
    """A session as a list of messages, which any tool can write."""
    path = folder / name
    rows = [{"role": role, "content": text} for role, text in messages]
    path.write_text(json.dumps({"messages": rows}) + "\n")
    return path


def test_all_agents_are_found(home: Path) -> None:
    """Eight agents in a home: the real program takes all in, says so, and reads nothing twice."""
    install(home)
    done = subprocess.run([BIN / "tacit", "import"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 9
    assert "See them: tacit sessions" in done.stdout
    assert done.stderr == ""
    hosts = answer("import")["hosts"]
    assert {row["host"] for row in hosts} == {
        "claude-code", "codex", "gemini", "qwen", "copilot", "opencode", "pi", "hermes"
    }  # fmt: skip
    assert set(hosts[0]) == {"host", "title", "found", "counts", "redacted", "skipped"}
    assert all(row["counts"] == {"unchanged": 1} for row in hosts)
    rows = answer("sessions")["sessions"]
    assert [set(row) for row in rows] == [ROW] * 8
    for row in rows:
        figures = (row["prompts"], row["calls"], row["failures"], row["output_tokens"])
        assert figures == (2, 4, 1, 120)
        assert row["project"] == "/home/dev/demo"
    shown = tacit("sessions").stdout
    assert shown.count("/home/dev/demo") == 8
    assert "\x1b[" not in shown


FORMS = FIXTURES.parent / "trace-forms"


def test_a_folder_of_many_forms_and_what_was_lost(home: Path) -> None:
    """Each form by its reader; attachments, copied steps and unknown files are said and counted."""
    shown = tacit("import", str(FORMS)).stdout
    assert "ATIF: passed over 4 steps copied from an earlier session" in shown
    assert "; 1 attachments" in shown
    assert "left alone 1 file of no known form: report.json" in shown
    again = answer("import", str(FORMS))
    assert [Path(file).name for file in again["not_recognised"]] == ["report.json"]
    assert {row["host"] for row in again["hosts"]} == {
        "atif", "openai", "sharegpt", "tau-bench", "swe-agent", "openhands", "otel",
        "openinference", "langfuse", "langsmith",
    }  # fmt: skip
    assert "reward: 1" in tacit("session", "sim-1").stdout


def test_sessions_come_in_on_standard_input(home: Path) -> None:
    """What another program writes, once however often; what is none is said, with no file named."""
    data = (FORMS / "openai.jsonl").read_bytes()
    for status, lost in (("new", {"attachment": 1}), ("unchanged", {})):
        (row,) = answer("import", "-", given=data)["hosts"]
        assert (row["host"], row["counts"], row["skipped"]) == ("openai", {status: 1}, lost)
    assert len(answer("sessions")["sessions"]) == 1
    for data, said in (
        (b"{}", "standard input: its records"),
        (b"", "standard input: it is empty"),
    ):
        done = tacit("import", "-", given=data)
        assert (done.returncode, said in done.stderr) == (3, True)


@pytest.mark.parametrize("width", ["100", "80", "40"])
def test_the_table_fits(home: Path, width: str) -> None:
    """No line of the sessions or of an import is wider than the terminal."""
    install(home, "claude", "pi")
    lines = tacit("import", COLUMNS=width).stdout.splitlines()
    lines += tacit("sessions", COLUMNS=width).stdout.splitlines()
    assert sum("claude-code" in line for line in lines) == 1
    assert max(len(line) for line in lines) <= int(width)


def test_choosing_sessions(home: Path) -> None:
    """By agent, by folder and those below it, by time, by number."""
    install(home, "claude", "codex", "pi")
    assert len(answer("import", "codex")["hosts"]) == 1
    assert len(answer("sessions")["sessions"]) == 1
    answer("import")
    assert [r["host"] for r in answer("sessions", "--host", "pi")["sessions"]] == ["pi"]
    assert len(answer("sessions", "--project", "/home/dev")["sessions"]) == 3
    assert answer("sessions", "--project", "/home/de")["sessions"] == []
    assert answer("sessions", "--since", "2100-01-01")["sessions"] == []
    assert len(answer("sessions", "-n", "2")["sessions"]) == 2
    assert tacit("sessions", "--host", "nobody").stdout.startswith("No session fits")
    assert answer("import", "--since", "2100-01-01")["hosts"] == []


def test_an_empty_home_says_so(home: Path) -> None:
    """Without agents: what was looked for, what to do, exit 0."""
    assert tacit("import").stdout == "No sessions were found.\n"
    assert tacit("sessions").stdout.startswith("No sessions yet.")
    assert answer("sessions")["sessions"] == []
    assert answer("import")["hosts"] == []


def test_wrong_names(home: Path) -> None:
    """Unknown agents, files, sessions and times: exit 3 or 2, with what there is."""
    assert "claude-code" in error(3, "import", "nosuch")["hint"]
    assert "nosuch.jsonl" in error(3, "import", "./nosuch.jsonl")["message"]
    (home / "notes.txt").write_text("no session\n")
    assert "notes.txt" in error(3, "import", str(home / "notes.txt"))["message"]
    assert error(3, "session", "nope")["hint"] == "see what there is: tacit sessions"
    assert error(3, "why", "nope")["hint"] == "see: tacit sessions, tacit list"
    error(2, "sessions", "--since", "yesterday-ish")
    error(2, "sessions", "-n", "0")
    error(2, "import", "--since", "soon")


def test_one_session_as_a_timeline(home: Path) -> None:
    """Prompts, calls, the failure and its reason, the correction, and what mended it."""
    install(home, "claude")
    answer("import")
    shown = tacit("session", CLAUDE[:8]).stdout
    for words in (
        "Build the package of this project.",
        "✗ Bash python3 build.py",
        "KeyError: 'VERSION'",
        "correction  No, do not invent a version",
        "mended  python3 build.py",
        "VERSION=1.2.3 python3 build.py",
    ):
        assert words in shown
    value = answer("session", f"claude-code:{CLAUDE}")
    assert set(value) == {
        "session", "turns", "tasks", "corrections", "mended", "commands", "files", "skipped"
    }  # fmt: skip
    assert set(value["session"]) == ROW
    assert [c["failed"] for c in value["commands"]] == [True, False, False]
    assert len(tacit("session", CLAUDE, "--full").stdout) > len(shown)
    narrow = tacit("session", CLAUDE[:8], COLUMNS="60").stdout
    assert "✗ Bash python3 build.py" in narrow


def test_two_sessions_that_begin_alike(home: Path) -> None:
    """A beginning that fits two sessions is no name: exit 2, and both are named."""
    install(home, "codex", "pi")
    answer("import")
    found = error(2, "session", "01a1ddf2")
    assert "codex:01a1ddf2-64a3" in found["message"]
    assert "pi:01a1ddf2-d0b0" in found["message"]


def test_search_in_sessions(home: Path) -> None:
    """The words of a session find its turn; words that are nowhere end with exit 1."""
    install(home, "claude")
    answer("import")
    found = answer("search", "--sessions", "invent version")
    assert set(found) == {"query", "turns"}
    assert set(found["turns"][0]) == {
        "id", "turn", "step", "project", "at", "snippet",
    }  # fmt: skip
    assert found["turns"][0]["id"] == f"claude-code:{CLAUDE}"
    assert "KeyError" in tacit("search", "--sessions", "KeyError").stdout
    assert tacit("search", "--sessions", "zebra").returncode == 1


def test_steps_are_found_and_shown_whole(home: Path) -> None:
    """By words, by what failed, by a file, by a skill; what is found is a step that can be read."""
    install(home, "claude")
    answer("import")
    (found,) = answer("sessions", "--failed", "build.py")["steps"]
    assert (found["id"], found["place"]) == (f"claude-code:{CLAUDE}", "0.4")
    assert "step 0.4" in tacit("sessions", "--search", "KeyError VERSION").stdout
    assert "step 0.2" in tacit("sessions", "--file", "demo/README.md").stdout
    assert tacit("sessions", "--file", "EADME.md").returncode == 1
    assert "No session fits" in tacit("sessions", "--skill", "none").stdout
    shown = tacit("session", CLAUDE, "--step", "0.4").stdout
    assert 'v = os.environ["VERSION"]' in shown
    assert "Build the package" not in shown
    assert "Build the package" in tacit("session", CLAUDE, "--step", "0").stdout
    (step,) = answer("session", CLAUDE, "--step", "0.0")["steps"]
    assert step == {"place": "0.0", "step": "Build the package of this project."}
    for wrong in ("0.99", "7", "x", "0.x"):
        assert "there is no step" in error(3, "session", CLAUDE, "--step", wrong)["message"]


def test_secrets_are_counted_and_not_stored(home: Path) -> None:
    """A token in a session: the import counts it by rule, and the database never holds it."""
    path = chat(home, ("user", f"Push with {TOKEN}, please."), ("assistant", "Done."))
    (host,) = answer("import", str(path))["hosts"]
    assert host["counts"] == {"new": 1}
    assert host["redacted"] == {"github-token": 1}
    assert TOKEN.encode() not in database_bytes(home)
    (row,) = answer("sessions")["sessions"]
    assert row["redacted"] == {"github-token": 1}
    assert TOKEN not in tacit("session", row["id"], "--full").stdout


def test_a_file_that_grew_and_one_that_is_broken(home: Path) -> None:
    """Only what is new is read; a cut-off last line is counted and said."""
    install(home, "claude")
    path = home / f".claude/projects/-home-dev-demo/{CLAUDE}.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[: len(whole) // 2]) + b'{"type": "assis')
    first = answer("import")["hosts"][0]
    assert first["counts"] == {"new": 1}
    path.write_bytes(b"".join(whole))
    assert answer("import")["hosts"][0]["counts"] == {"grown": 1}
    assert answer("sessions")["sessions"][0]["calls"] == 4
    with path.open("ab") as file:
        file.write(b"not json at all\n")
    answer("import")
    assert answer("session", CLAUDE)["skipped"] == {"not-json": 1}


def test_hostile_text_stays_text(home: Path) -> None:
    """Escape sequences in a session's words are shown, not obeyed."""
    path = chat(
        home, ("user", "\x1b[2J\x1b]0;owned\x07 hello\r\nthere"), ("assistant", "\x9b31mHi")
    )
    answer("import", str(path))
    (row,) = answer("sessions")["sessions"]
    for arguments in (("sessions",), ("session", row["id"]), ("session", row["id"], "--full"),
                      ("search", "--sessions", "hello")):  # fmt: skip
        out = tacit(*arguments).stdout
        assert out
        assert not {"\x1b", "\x07", "\x9b", "\r"} & set(out)


def test_no_id_of_a_session_steers_a_terminal(home: Path) -> None:
    """An id is whatever a file says; shown, it is one line, and the session is found by that."""
    install(home, "claude")
    (path,) = (home / ".claude").rglob("*.jsonl")
    evil = json.dumps("a\x1b]0;evil\x07\u202e\x9b2J\nb")[1:-1]
    path.write_text(path.read_text().replace(CLAUDE, evil))
    tacit("import", str(path))
    (row,) = answer("sessions")["sessions"]
    for command in ("session", "why", "session --digest"):
        done = tacit(*command.split(), row["id"])
        assert done.returncode == 0, done.stderr
        assert "a�]0;evil" in done.stdout
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(done.stdout)


def test_forgetting_is_for_good(home: Path) -> None:
    """It needs a yes; then no byte of the text is left, and it is not taken in again."""
    install(home, "claude", "pi")
    path = chat(home, ("user", "The zanzibar password is marzipan."), ("assistant", "Noted."))
    answer("import")
    answer("import", str(path))
    (row,) = [r for r in answer("sessions")["sessions"] if r["host"] == "openai"]
    assert b"marzipan" in database_bytes(home)
    assert "--yes" in error(5, "forget", row["id"])["hint"]
    assert b"marzipan" in database_bytes(home)
    done = answer("forget", row["id"], "--yes")
    assert set(done) == {"sessions", "freed", "in_log", "quoted_in"}
    assert done["sessions"] == 1
    assert b"marzipan" not in database_bytes(home)
    assert b"zanzibar" not in database_bytes(home)
    assert path.exists()
    assert "as you forgot them" in tacit("import", str(path)).stdout
    assert answer("import", str(path))["hosts"][0]["counts"] == {"unchanged": 1}
    assert len(answer("sessions")["sessions"]) == 2
    error(3, "session", row["id"])


def test_forgetting_a_folder_and_old_ones(home: Path) -> None:
    """All sessions of a folder and below it, or all before a time; nothing else."""
    install(home, "claude", "codex")
    answer("import")
    assert answer("forget", "--before", "2020-01-01", "--yes")["sessions"] == 0
    assert "no session in" in error(3, "forget", "/home/dev/demo2/", "--yes")["message"]
    assert "no session in" in error(3, "forget", ".", "--yes")["message"]
    assert len(answer("sessions")["sessions"]) == 2
    assert answer("forget", "/home/dev/demo", "--yes")["sessions"] == 2
    assert answer("sessions")["sessions"] == []
    for arguments in ((), ("x", "--before", "1d")):
        error(2, "forget", *arguments, "--yes")
    error(2, "forget", "--before", "whenever", "--yes")
    error(3, "forget", "nothing-like-it", "--yes")


def test_forgetting_names_the_drafts_that_quote(home: Path) -> None:
    """A draft in the inbox stands on a session that is forgotten: the way to drop it is said."""
    install(home, "claude")
    answer("learn")
    (proposal,) = answer("inbox")["proposals"]
    done = tacit("forget", CLAUDE[:8], "--yes")
    assert f"tacit reject {proposal['id'][-8:]} --forget" in done.stdout


def test_what_came_of_a_session_that_is_gone_stays_explained(home: Path) -> None:
    """Too old by the settings: `import` says so, and what it taught names it without an error."""
    wish = "No, always read the version from the VERSION file."
    with Store.open() as store:
        store.write(made(["Build it.", ran("make", "ok")], [wish], session="old-1", project="/p"))
    assert answer("learn", "--no-model")["drafts"]
    found = answer("import", TACIT_TRACES_KEEP_DAYS="1")
    assert found["dropped"] == 1
    assert "old-1" not in tacit("sessions").stdout
    told = answer("why", "claude-code:old-1")
    assert told["reviews"][0]["outcome"] == "proposed"
    assert "traces.keep_days" in told["gone"]
    assert "What came of it stays:" in tacit("why", "old-1").stdout
    assert "tacit why claude-code:old-1" in error(3, "session", "old-1")["hint"]
    (waiting,) = answer("inbox")["proposals"]
    assert "claude-code:old-1" in tacit("inbox", waiting["id"]).stdout
    accepted = tacit("accept", waiting["id"])
    assert accepted.returncode == 0, accepted.stderr
    assert tacit("log").returncode == 0
    assert "claude-code:old-1" in tacit("history", waiting["change"]["skill"]).stdout


def test_why(home: Path) -> None:
    """Before: how to have it looked at. After: what came of it, by which method, and where."""
    install(home, "claude")
    answer("import")
    assert f"tacit learn {CLAUDE[-8:]}\n" in tacit("why", CLAUDE[:8]).stdout
    assert tacit("session", CLAUDE[-8:]).returncode == 0
    found = answer("why", CLAUDE)
    assert set(found) == {"session", "reviews", "decisions", "repairs", "spent", "gone"}
    assert (found["session"], found["reviews"]) == (f"claude-code:{CLAUDE}", [])
    answer("learn", CLAUDE)
    (review,) = answer("why", CLAUDE)["reviews"]
    assert set(review) == {"session", "method", "at", "turns", "outcome", "reason", "changes"}
    assert (review["method"], review["outcome"]) == ("counting", "proposed")
    assert "tacit inbox " + review["changes"][0][-8:] in tacit("why", CLAUDE).stdout
    (verdict,) = answer("accept", review["changes"][0])["verdicts"]
    short = verdict["change"][-8:]
    assert f"accepted; see it: tacit diff {short} · undo: tacit undo {short}" in (
        tacit("why", CLAUDE).stdout
    )
    assert answer("sessions")["sessions"][0]["learned"] == "proposed"


def test_worker_and_watch(home: Path) -> None:
    """The worker with nothing to do goes at once; watch says what it follows, until it is told."""
    assert answer("worker", "--idle", "0") == {"taken": 0}
    install(home, "claude")
    process = subprocess.Popen(
        [BIN / "tacit", "watch", "--quiet", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"Watching ~/.claude")
        path = home / f".claude/projects/-home-dev-demo/{CLAUDE}.jsonl"
        heard = False
        for _ in range(12):  # it may not have begun to look when the file is first touched
            os.utime(path)
            if heard := bool(select.select([process.stdout], [], [], 3.0)[0]):
                break
        assert heard
        assert process.stdout.readline() == b"Claude Code: 1 new\n"
    finally:
        process.send_signal(2)
        _, stderr = process.communicate(timeout=120)
    assert process.returncode in (0, 130), stderr
    assert b"Traceback" not in stderr


def test_what_was_decided_is_shown(home: Path) -> None:
    """Not looked at, and why: in the table, in JSON, and in full by `tacit why`, with the cost."""
    store = Store.open()
    store.write(made(["go", *[ran(f"make {n}") for n in range(5)]], session="small-1"))
    store.write(made(["go", *[ran(f"make {n}") for n in range(25)]], session="large-1"))
    for name in ("small-1", "large-1"):
        decide_after_session(store, f"claude-code:{name}", Settings())
    store.close()
    rows = {row["session"]: row for row in answer("sessions")["sessions"]}
    assert rows["small-1"]["decided"]["word"] == "few calls"
    assert rows["large-1"]["decided"]["skills"] is True
    shown = tacit("sessions").stdout
    assert "no: few calls" in shown
    said = tacit("why", "small-1").stdout
    assert "claude-code:small-1 has not been looked at; by hand: tacit learn small-1" in said
    assert "after the session: not looked at" in said
    assert "5 tool calls, fewer than 20 (learn.after_calls)" in said
    usage = Usage(1000, 50, 0, 0.25, "openai:m")
    budget.record_spending("review", "claude-code:large-1", usage)
    said = tacit("why", "large-1").stdout
    assert "is to be looked at (see: tacit jobs)" in said
    assert "after the session: to be looked at for skills and facts" in said
    assert "It cost $0.25: 1 request, 1,050 tokens." in said


def test_a_session_as_a_reviewer_is_shown_it(home: Path) -> None:
    """`--digest` prints the digest; the timeline says how the session ended."""
    install(home, "claude")
    tacit("import")
    told = tacit("session", CLAUDE, "--digest").stdout
    assert told.startswith(f"# Session claude-code:{CLAUDE}")
    assert "## What happened" in told
    assert answer("session", CLAUDE, "--digest")["text"].strip() == told.strip()
    assert "ended" in tacit("session", CLAUDE).stdout


def test_a_forgotten_session_leaves_no_word_behind(project: Path) -> None:
    """Neither in what was counted, distilled, contradicted, proposed or told of it."""
    said = "always use `zebra check` for the tests, from now on"
    fails = ran("zebra go", "zebra: unknown option: stripes is required", failed=True)
    turns = ["Start with zebra", fails, ran("zebra go --on", "ok")], [said, ran("ls")]
    against = ["Start with zebra", ran("ls")], ["never use `zebra check` for the tests", ran("ls")]
    with Store.open() as store:
        for number, one in enumerate((turns, turns, against)):
            store.write(made(*one, session=f"z{number}", project=str(project)))
    for words in (("learn", "--no-model"), ("distil", "--no-model", "--yes")):
        assert tacit(*words).returncode == 0
    data = Path(paths.folders().data)
    assert b"zebra" in (data / "tacit.db").read_bytes()
    quoted = answer("forget", str(project), "--yes")["quoted_in"]
    assert quoted
    for proposal in quoted:
        assert tacit("reject", proposal, "--forget").returncode == 0
    left = [f for f in data.rglob("*") if f.is_file()]
    assert [f.name for f in left if b"zebra" in f.read_bytes().lower()] == []
