"""What was learned is told once on each face, in one line, with how to see it and the way back."""

import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.base import database, paths, prompt_line
from tacit.base.job import Job
from tacit.base.setting_sections import LearnSettings, Settings
from tacit.changes.change import Archive, Create, Edit, Verdict, acting_as, make_change
from tacit.changes.facts import NewFact, Rationale, remember
from tacit.changes.gate import Gate
from tacit.changes.place import user_place
from tacit.learn import announcements, notices
from tacit.learn.background.background_gate import GO_ON, background_gate
from tacit.learn.notices import Notice, announce, line, pending, tell

BODIES = {
    "release-notes": "Collect merged work since the last tag, then group it by what users notice.",
    "db-migration": "Expand the schema, backfill rows in batches, and contract it afterwards.",
    "log-triage": "Sort the failures by their first stack frame before reading a single one.",
}
CHANGE = "20261115-120000000-9c1d22ab"


@pytest.fixture(autouse=True)
def listening():
    """The process hears of changes for the length of a test."""
    announcements.listen()


def made(name: str) -> Create:
    text = (
        f"---\nname: {name}\ndescription: {BODIES[name]} Use when it comes up.\n"
        f"metadata:\n  source: auto-skill\n---\n\n# Steps\n\n1. {BODIES[name]}\n"
    )
    return Create({"SKILL.md": text.encode()})


def learned(gate: Gate, name: str, actor="reviewer") -> Verdict:
    with acting_as(actor):
        return gate.propose(make_change(name, made(name), reason="seen"))


def auto() -> Gate:
    return background_gate(
        "reviewer", [user_place()], Settings(learn=LearnSettings(approval="auto"))
    )


def shown() -> str:
    """What the next prompt says."""
    return prompt_line.take(paths.folders().data)


def test_each_thing_is_told_once_on_each_face() -> None:
    """The chat, the inbox and the prompt each say it once; the line holds both commands."""
    verdict = learned(auto(), "release-notes")
    short = verdict.change[-8:]
    wanted = (
        f"learned the skill release-notes (seen) · see: tacit diff {short}"
        f" · undo: tacit undo {short}"
    )
    assert shown() == f"tacit: {wanted}"
    assert shown() == ""
    assert tell("chat") == (wanted,)
    assert tell("chat") == ()
    assert tell("inbox") == (wanted,)
    assert tell("inbox") == ()


def test_lines_that_wait_are_told_with_the_rest() -> None:
    """One line tells what was learned and that lines of it wait, for as long as they do."""
    create, gate = made("release-notes"), auto()
    steps = (
        b"2. Ask who merged it.\n3. Then append the alias to ~/.bashrc.\n4. Read it once more.\n"
    )
    files = {"SKILL.md": create.files["SKILL.md"] + steps}
    with acting_as("reviewer"):
        verdict = gate.propose(make_change("release-notes", Create(files), reason="seen"))
    short, lines = verdict.change[-8:], verdict.apart[-8:]
    wanted = f"(seen); 1 line waits for your yes: tacit inbox {lines} · see: tacit diff {short}"
    assert wanted in shown()
    assert wanted in tell("chat")[0]
    with acting_as("user"):
        assert gate.accept(gate.inbox.get(lines)).applied
    (told,) = tell("inbox")
    assert "wait" not in told


def test_what_the_background_does_has_a_word_for_each() -> None:
    """Made, improved, repaired, put away and taken back differ; the user's acts are not told."""
    gate = auto()
    learned(gate, "release-notes")
    edits = [
        ("reviewer", "1. Collect", "1. First collect"),
        ("improver", "1. First", "1. At first"),
    ]
    for actor, old, new in edits:
        with acting_as(actor):
            verdict = gate.propose(make_change("release-notes", Edit(old, new), reason="it failed"))
            assert verdict.applied, verdict
    with acting_as("improver"):
        assert gate.undo(verdict.change).applied
    with acting_as("curator"):
        assert gate.propose(make_change("release-notes", Archive(), reason="unused")).applied
    with acting_as("user"):
        assert gate.undo(verdict.change[-8:]).outcome
    kinds = [notice.kind for notice in pending("chat")]
    assert kinds == ["archived", "rolled-back", "repaired", "edited", "created"]
    first, *_, more = tell("chat")
    assert first.startswith("put the skill release-notes away (unused) · see: tacit diff ")
    assert more == "and 2 more · see: tacit inbox"


def test_a_question_is_told_until_it_is_answered() -> None:
    """A proposal is a question with its answers; once answered it is told nowhere any more."""
    gate = background_gate("reviewer", [user_place()], Settings())
    short = learned(gate, "release-notes").change[-8:]
    (asked,) = (line(notice) for notice in pending("chat"))
    assert asked.startswith("shall I keep release-notes? (seen)")
    assert f"keep: tacit accept {short} · drop: tacit reject {short}" in asked
    assert prompt_line.peek(paths.folders().data)[0] == f"tacit: {asked}"
    learned(gate, "db-migration", "distiller")
    assert line(pending("chat")[0]).startswith("shall I keep the draft db-migration? (seen)")
    for waiting in gate.inbox.waiting():
        gate.reject(waiting)
    notices.refresh()
    assert (tell("chat"), shown()) == ((), "")


def test_propose_only_is_silent_but_counted(home: Path) -> None:
    """Nobody is asked about it: the prompt says nothing, the chat gives a number."""
    (home / ".config/tacit").mkdir(parents=True)
    (home / ".config/tacit/config.toml").write_text('[learn]\napproval = "propose-only"\n')
    gate = background_gate(
        "reviewer", [user_place()], Settings(learn=LearnSettings(approval="propose-only"))
    )
    for name in BODIES:
        learned(gate, name)
    assert shown() == ""
    assert tell("chat") == ("3 changes wait in the inbox · see: tacit inbox",)
    assert tell("chat") == ()
    assert tell("inbox") == ()  # which lists them


def test_what_the_user_accepted_is_no_news_but_asks_once_to_go_on() -> None:
    """Three times yes brings the one question, on every face, until a setting answers it."""
    for name in BODIES:
        gate = background_gate("reviewer", [user_place()], Settings())
        learned(gate, name)
        assert gate.accept(gate.inbox.waiting()[0]).applied
    assert [notice.kind for notice in pending("chat")] == ["question"]
    (asked,) = tell("chat")
    assert GO_ON in asked
    assert GO_ON in shown()
    assert announcements.ask_to_go_unasked() == ""
    assert tell("chat") == ()
    Path(paths.folders().config).mkdir(parents=True, exist_ok=True)
    Path(paths.folders().config_file).write_text('[learn]\napproval = "ask"\n')
    assert pending("desktop") == []


def test_a_change_that_is_announced_again_is_not_told_again() -> None:
    """After a kill the job tells of its change once more: still one notice."""
    gate = auto()
    with acting_as("reviewer"):
        change = make_change("db-migration", made("db-migration"), reason="seen")
        verdict = gate.propose(change)
        announcements.announce_change(change, verdict)
        announcements.announce_change(change, gate.propose(change))
    assert len(pending("chat")) == 1


def test_several_fit_in_one_line_of_a_prompt() -> None:
    """The newest is told with the number of the others; seen in the inbox, nothing is left."""
    gate = auto()
    for name in BODIES:
        learned(gate, name)
    text = shown()
    assert text.startswith("tacit: learned the skill log-triage")
    assert text.endswith("· 2 more: tacit inbox")
    learned_again = announce(Notice(kind="edited", skill="x", change=CHANGE))
    assert learned_again
    assert shown() == (
        "tacit: improved the skill x · see: tacit diff 9c1d22ab · undo: tacit undo 9c1d22ab"
    )
    announce(Notice(kind="edited", skill="y", change="20261115-120000000-00000001"))
    assert tell("inbox")
    assert shown() == ""


def test_many_failures_are_one_line() -> None:
    """A server that was down all night is told once, with how many jobs it cost; one by itself."""

    def fail(number: int, kind: str = "review", why: str = "the server did not answer") -> None:
        job = Job(f"{kind}-{number}", kind, f"codex:{number}", {"session": f"codex:{number}"})
        announcements.announce_failed_job(job, why)

    for number in range(5):
        fail(number)
        fail(number)
    assert tell("chat") == ("5 jobs failed (last: the server did not answer) · see: tacit jobs",)
    fail(9, why="no")
    assert tell("chat") == ("could not learn from a session (no) · see: tacit why codex:9",)
    fail(9, "improve", "no")
    assert tell("chat") == ("a job failed: improve (no) · see: tacit jobs",)
    fail(9, "schedule")
    assert tell("chat") == ()


def test_facts_are_told_as_facts() -> None:
    """One is told with its way back, several in one line; they bring no question about skills."""
    auto = Settings(learn=LearnSettings(approval="auto"))
    gate = background_gate("reviewer", [user_place("facts")], auto)
    says = {
        "package-manager": "The project uses pnpm; npm breaks the lock file.",
        "editor": "The user writes in vim and wants no trailing spaces.",
    }
    for name, text in says.items():
        note = NewFact(name=name, says=text, kind="user")
        verdict = remember(
            gate, user_place("facts").root, note, Rationale(reason="said so"), actor="reviewer"
        )
        assert verdict.applied, verdict
        if name == "package-manager":
            short = verdict.change[-8:]
            (told,) = tell("chat")
            assert told.startswith(f"noted the fact {name} (said so) · see: tacit diff {short}")
            assert told.endswith(f" · undo: tacit undo {short}")
    assert tell("inbox") == ("noted 2 facts: editor, package-manager · see: tacit memory",)


def test_facts_wait_for_a_yes_as_skills_do() -> None:
    """Where nothing is set, the first facts wait in the inbox, and that is told at once."""
    gate = background_gate("reviewer", [user_place("facts")], Settings())
    note = NewFact(name="editor", says="The user writes in vim.", kind="user")
    why = Rationale(reason="said so")
    verdict = remember(gate, user_place("facts").root, note, why, actor="reviewer")
    assert verdict.outcome == "proposed"
    (told,) = tell("chat")
    assert f"tacit accept {verdict.change[-8:]}" in told


def test_old_news_is_no_news() -> None:
    """What nobody was told for two weeks is told no more."""
    announce(Notice(kind="created", skill="x", change=CHANGE))
    later = datetime.now(UTC) + notices.FRESH + timedelta(hours=1)
    assert pending("chat", now=later) == []
    assert len(pending("chat")) == 1


def test_commands_from_notices_find_skills_of_other_projects(home: Path) -> None:
    """The folder of a change is known from its notice."""
    announce(Notice(kind="created", skill="x", change=CHANGE, root=str(home / "p/.agents/skills")))
    assert notices.roots() == [str(home / "p/.agents/skills")]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A program of any name on PATH that writes down its arguments, and ends as it is told."""

    def make(name: str, code: int = 0) -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        written = tmp_path / f"{name}.arguments"
        path.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" >'{written}'\nexit {code}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
        return written

    return make


def test_desktop_notification_where_it_is_set(program) -> None:
    """The system's program gets the line as text, not as markup; by default it is not called."""
    written = program("notify-send")
    announce(Notice(kind="created", skill="<b>x", change=CHANGE))
    assert not written.exists()
    announce(Notice(kind="edited", skill="<b>x", change=CHANGE), learn=LearnSettings(notify=True))
    app, end, title, body = written.read_text().splitlines()
    assert (app, end, title) == ("--app-name=tacit", "--", "Tacit")
    assert body.startswith("improved the skill &lt;b&gt;x · see: tacit diff 9c1d22ab")
    assert [notice.kind for notice in pending("desktop")] == ["created"]


def test_a_desktop_that_fails_disturbs_nothing(program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that fails, or none at all: the notice is stored all the same."""
    program("notify-send", code=1)
    learn = LearnSettings(notify=True)
    assert announce(Notice(kind="created", skill="x", change=CHANGE), learn=learn)
    monkeypatch.setenv("PATH", "/nowhere")
    assert announce(Notice(kind="edited", skill="x", change=CHANGE), learn=learn)
    assert len(pending("desktop")) == 2


def test_on_a_mac_the_words_are_arguments_of_the_script(program, monkeypatch) -> None:
    """Quotes in a skill's name are no part of what osascript runs."""
    from tacit.learn import announcements

    written = program("osascript")
    monkeypatch.setattr(announcements.sys, "platform", "darwin")
    monkeypatch.setenv("PATH", str(written.parent / "bin"))
    assert announcements.notify("Tacit", 'a" & (do shell script "x") & "')
    lines = written.read_text().splitlines()
    assert lines[-2:] == ["Tacit", 'a" & (do shell script "x") & "']
    assert not any("do shell" in text for text in lines[:-1])


@settings(max_examples=10, deadline=None)
@given(st.text(), st.text())
def test_whatever_a_name_holds_a_line_is_one_line(home: Path, name: str, why: str) -> None:
    """No character of a name or a reason breaks a prompt or steers a terminal."""
    for path in Path(paths.folders().data).glob("*"):
        path.unlink()
    announce(Notice(kind="created", skill=name, change=CHANGE, why=why))
    text = shown()
    assert text.startswith("tacit: learned the skill ")
    assert text == text.rstrip("\n")
    assert all(c.isprintable() or c in "\u00a0" or ord(c) > 0x9F for c in text)
    assert "\n" not in text
    assert "\x1b" not in text


def test_two_shells_do_not_both_tell() -> None:
    """Of many that ask at once exactly one gets the line."""
    announce(Notice(kind="created", skill="x", change=CHANGE))
    program = Path(sys.executable).with_name("tacit")
    several = [
        subprocess.Popen([program, "prompt-status"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    outputs = [one.communicate(timeout=120) for one in several]
    assert sorted(out != b"" for out, _ in outputs) == [False, False, False, True]
    assert {err for _, err in outputs} == {b""}
    assert [name for name in os.listdir(paths.folders().data) if "prompt" in name] == []


def test_a_prompt_is_answered_without_the_command_line_library(home: Path) -> None:
    """Neither click nor SQLite nor msgspec is loaded for it, with a line to tell and without."""
    probe = (
        "import sys; from tacit.ui.cli.fast import answer; code = answer(['prompt-status']);"
        " heavy = {'click', 'sqlite3', 'msgspec', 're'} & set(sys.modules); print(code, heavy)"
    )
    announce(Notice(kind="created", skill="x", change=CHANGE))
    for wanted in ("tacit: learned the skill x", "0 set()"):
        done = subprocess.run(
            [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {probe}"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.stdout.startswith(wanted), done
        assert done.stdout.endswith("0 set()\n")


def test_a_terminal_without_the_characters_gets_the_line_all_the_same() -> None:
    """In ASCII what cannot be shown is a question mark, and nothing is an error."""
    announce(Notice(kind="created", skill="数据库", change=CHANGE))
    done = subprocess.run(
        [Path(sys.executable).with_name("tacit"), "prompt-status"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=120,
    )
    assert done.stdout.startswith(b"tacit: learned the skill ??? ? see: tacit diff 9c1d22ab")
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_prompt_that_cannot_be_written_loses_no_notice() -> None:
    """Something else lies where the prompt's file belongs: the chat tells it."""
    folder = Path(paths.folders().data) / prompt_line.FILE_NAME
    folder.mkdir(parents=True)
    assert announce(Notice(kind="created", skill="x", change=CHANGE))
    assert len(tell("chat")) == 1
    assert shown() == ""


def test_a_broken_database_disturbs_nothing() -> None:
    """Nothing can be stored or told then, and nobody notices."""
    path = Path(database.default_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"this is no database, by any means" * 99)
    assert not announce(Notice(kind="created", skill="x", change=CHANGE))
    assert (tell("chat"), pending("inbox"), notices.roots()) == ((), [], [])
