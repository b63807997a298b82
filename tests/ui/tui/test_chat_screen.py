"""The chat on a whole screen: messages, approvals, questions, interrupts."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest
from driving import opened, play

from tacit.testing import Request, Rules, Stall, Status, Text, ToolUse, Turns, Usage, reply
from tacit.ui.tui import questions
from tacit.ui.tui.questions import Choices
from tacit.work import schedule_runs, schedule_store
from tacit.work.schedule_store import Binding, Draft
from tacit.work.written_times import understand

EDIT = ToolUse("edit_file", {"path": "README.md", "old": "hello", "new": "good morning"})
COMMAND = ToolUse("run_command", {"command": "echo first; echo 2nd > made.txt"})


def test_an_answer_is_shown_as_markdown() -> None:
    """A message is answered, the Markdown drawn, and the footer counts what was reported."""

    async def scenario() -> None:
        answer = reply("# Title\n\nSome **bold** words.", usage=Usage(12_000, 300))
        async with opened([answer]) as chat:
            await chat.send("what is this?")
            screen = await chat.until("Some bold words.")
            assert "what is this?" in screen
            assert "**" not in screen
            assert "openai:mock-model · 12.3k tokens · $?" in screen
            assert chat.server.requests[0].messages[-1].text == "what is this?"

    play(scenario())


def test_text_of_a_model_steers_nothing() -> None:
    """Escapes and markup in an answer, a call and a result are shown as text, not obeyed."""

    async def scenario() -> None:
        evil = "[bold red]loud[/] \x1b[31mred \x1b]0;title\x07 [link=http://x]y[/link]"
        call = ToolUse("run_command", {"command": f"printf '{evil}'"})
        async with opened([call, f"so: {evil}"], yes=True, size=(120, 40)) as chat:
            await chat.send(f"say {'[b]'}this[/b]")
            await chat.until("so:")
            await chat.pilot.press("ctrl+o")
            screen = await chat.idle()
            assert "say [b]this[/b]" in screen
            assert screen.count("[bold red]loud[/]") >= 3
            assert "\x1b" not in screen
            assert "\x07" not in screen

    play(scenario())


@pytest.mark.parametrize(("key", "runs"), [("y", True), ("n", False)])
def test_a_command_waits_for_the_answer(key: str, runs: bool, project: Path) -> None:
    """With y the command runs, with n it does not, and the model is told which."""

    async def scenario() -> None:
        async with opened([COMMAND, "Well."], cwd=str(project)) as chat:
            await chat.send("do it")
            screen = await chat.asked("Run this command?")
            assert "$ echo first; echo 2nd > made.txt" in screen
            assert not (project / "made.txt").exists()
            await chat.pilot.press(key)
            screen = await chat.until("Well.")
            assert (project / "made.txt").exists() == runs
            assert ("✓ run_command" in screen) == runs
            result = chat.server.requests[1].tool_results[0].text
            assert ("first" in result) if runs else ("did not allow" in result)

    play(scenario())


def test_for_the_session_asks_once() -> None:
    """After s, the same program runs again without a question."""

    async def scenario() -> None:
        again = ToolUse("run_command", {"command": "echo two"})
        first = ToolUse("run_command", {"command": "echo one"})
        async with opened([first, again, "Both done."]) as chat:
            await chat.send("do both")
            screen = await chat.asked("Run this command?")
            assert "run_command:echo *" in screen
            await chat.pilot.press("s")
            screen = await chat.until("Both done.")
            assert screen.count("✓ run_command") == 2

    play(scenario())


def test_always_is_kept_in_the_settings() -> None:
    """After a, the pattern is in the user's settings, and the user is told."""

    async def scenario() -> None:
        async with opened([ToolUse("run_command", {"command": "echo one"}), "Done."]) as chat:
            await chat.send("do it")
            await chat.asked("Run this command?")
            await chat.pilot.press("a")
            await chat.until("Done.")
            await chat.idle()

    play(scenario())
    from tacit.base import settings

    assert settings.load_settings().settings.agent.allow == ("run_command:echo *",)


def test_an_edit_shows_its_diff_before_and_after(project: Path) -> None:
    """The question about an edit shows the diff, and so does the row of the call."""

    async def scenario() -> None:
        async with opened([EDIT, "Changed."]) as chat:
            await chat.send("greet better")
            screen = await chat.asked("Allow edit_file README.md?")
            assert "-hello" in screen
            assert "+good morning" in screen
            await chat.pilot.press("down", "up", "enter")
            screen = await chat.until("Changed.")
            assert "Allow edit_file" not in screen
            assert "✓ edit_file README.md" in screen
            assert "+good morning" in screen

    play(scenario())
    assert (project / "README.md").read_text() == "good morning\n"


def test_a_key_typed_in_one_breath_allows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a word that was being typed when the question came is no answer to it."""
    monkeypatch.setattr(Choices, "BREATH", 3600.0)
    monkeypatch.setattr(questions, "_TYPING_SECONDS", 3600.0)

    async def scenario() -> None:
        stalled = reply(COMMAND, fault=Stall(0.3))
        async with opened([stalled, "Well."]) as chat:
            await chat.send("do it")
            await chat.type("m")  # the user goes on typing while the model thinks
            await chat.asked("Run this command?")
            await chat.pilot.press("y", "a", "s")
            assert "Run this command?" in chat.screen
            monkeypatch.setattr(chat.app.questions.panel, "_armed", 0.0)
            await chat.pilot.press("n")
            await chat.until("Well.")

    play(scenario())


def test_a_question_is_answered_by_number_or_in_words() -> None:
    """A number picks an option; 0 and a typed text give any other answer."""

    async def scenario() -> None:
        asked = ToolUse("ask_user", {"question": "Which branch?", "options": ["main", "next"]})
        async with opened([asked, asked, "Thanks."]) as chat:
            await chat.send("release")
            screen = await chat.asked("2 next")
            assert "Which branch?" in screen
            await chat.pilot.press("2")
            await chat.until(lambda: len(chat.server.requests) == 2)
            assert chat.server.requests[1].tool_results[-1].text == "next"
            await chat.asked("2 next")
            await chat.pilot.press("0")
            await chat.until("Your answer")
            await chat.type("a third one")
            await chat.pilot.press("enter")
            screen = await chat.until("Thanks.")
            assert chat.server.requests[2].tool_results[-1].text == "a third one"
            assert "Which branch? → next" in screen

    play(scenario())


def test_an_interrupt_keeps_what_was_done() -> None:
    """Ctrl-C stops a stalled answer; what was said stays, and the conversation goes on."""

    async def scenario() -> None:
        words = "One two three four five six seven eight."
        stalled = reply(words, fault=Stall(3600, after_chunks=4))
        script = Rules((lambda r: r.messages[-1].text == "again", "Here again."), default=stalled)
        async with opened(script) as chat:
            await chat.send("count")
            await chat.until("One")
            await chat.pilot.press("ctrl+c")
            screen = await chat.until("interrupted; what was done is kept")
            assert "One" in screen
            await chat.idle()
            chat.app._stopped_at = 0.0
            await chat.send("again")
            await chat.until("Here again.")
            assert "count" in [m.text for m in chat.server.requests[-1].messages]

    play(scenario())


def test_a_command_that_runs_is_stopped(project: Path) -> None:
    """Ctrl-C in the middle of a command marks its row, and the next message is answered."""

    async def scenario() -> None:
        slow = ToolUse("run_command", {"command": "sleep 30; touch late"})
        script = Rules((lambda r: r.messages[-1].text == "again", "Here again."), default=slow)
        async with opened(script, yes=True) as chat:
            await chat.send("wait")
            await chat.until("running run_command")
            await chat.pilot.press("ctrl+c")
            await chat.until("(interrupted)")
            await chat.idle()
            chat.app._stopped_at = 0.0
            await chat.send("again")
            await chat.until("Here again.")

    play(scenario())
    assert not (project / "late").exists()


def test_ctrl_c_twice_quits() -> None:
    """The first Ctrl-C says what the second does."""

    async def scenario() -> None:
        async with opened(["unused"]) as chat:
            await chat.type("half a thought")
            await chat.pilot.press("ctrl+c")
            assert chat.app.prompt.text == ""
            chat.app._stopped_at = 0.0
            await chat.pilot.press("ctrl+c")
            await chat.until("Ctrl-C again quits")
            await chat.pilot.press("ctrl+c")
            assert chat.app.return_value == 0

    play(scenario())


def test_what_is_sent_meanwhile_waits() -> None:
    """A message sent during an answer is sent after it."""

    async def scenario() -> None:
        go_on = Event()

        def script(request: Request) -> str:
            if request.turn:
                return "Second answer."
            assert go_on.wait(120)
            return "First answer."

        async with opened(script) as chat:
            await chat.send("one")
            await chat.send("two")
            await chat.until("next: two")
            go_on.set()
            screen = await chat.until("Second answer.")
            assert screen.index("First answer.") < screen.index("Second answer.")
            assert "next: two" not in screen

    play(scenario())


def test_a_failed_try_is_taken_back() -> None:
    """Text of a request that failed half-way is removed when it is made again."""
    from tacit.testing import Cut

    async def scenario() -> None:
        from tacit.agent import model_client

        retry_first, model_client._FIRST = model_client._FIRST, 0.05
        try:
            half = reply("Half of an answer that breaks off", fault=Cut(after_chunks=4))
            async with opened([half, "The whole answer."]) as chat:
                await chat.send("go")
                screen = await chat.until("The whole answer.")
                assert "Half of" not in screen
                assert "again in" in screen
        finally:
            model_client._FIRST = retry_first

    play(scenario())


def test_an_error_says_what_to_do() -> None:
    """A refused key is told with the next step, and the chat stays open."""

    async def scenario() -> None:
        async with opened([Status(401, message="no such key")]) as chat:
            await chat.send("go")
            screen = await chat.until("tacit setup")
            assert "refused the key" in screen

    play(scenario())


def test_calls_open_and_close() -> None:
    """Enter on a row shows arguments and result; Ctrl-O opens and closes all."""

    async def scenario() -> None:
        call = ToolUse("read_file", {"path": "README.md"})
        async with opened([call, "Read."]) as chat:
            await chat.send("read it")
            screen = await chat.until("Read.")
            assert "path: README.md" not in screen
            await chat.pilot.press("shift+tab", "enter")
            screen = await chat.until("path: README.md")
            assert "1\thello" in screen or "1       hello" in screen or "hello" in screen
            await chat.pilot.press("ctrl+o", "ctrl+o")
            await chat.until(lambda: "path: README.md" not in chat.screen)

    play(scenario())


def test_no_model_is_said_and_the_commands_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any model the chat opens, says what to do, and /help works."""
    from tacit.agent import models

    monkeypatch.setattr(models, "LOCAL", ())

    async def scenario() -> None:
        async with opened(["unused"]) as chat:
            pass
        os.environ.pop("TACIT_AGENT_BASE_URL")
        os.environ.pop("TACIT_AGENT_MODEL")
        from tacit.ui.chat.live_chat import ChatOptions
        from tacit.ui.tui.chat_screen import ChatApp

        app = ChatApp(ChatOptions())
        async with app.run_test() as pilot:
            from driving import Chat

            chat = Chat(app, pilot, chat.server)
            await chat.until("tacit setup")
            await chat.send("/help")
            await chat.until("tokens and money so far")

    play(scenario())


def test_events_are_kept_on_disk(home: Path) -> None:
    """What was said is in the session's file as soon as it was said."""

    async def scenario() -> None:
        async with opened([reply(Text("Kept."))]) as chat:
            await chat.send("keep this")
            await chat.until("Kept.")
            [file] = (home / ".local/share/tacit/sessions").glob("*.jsonl")
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            assert "keep this" in [line.get("text") for line in lines]
            assert "Kept." in [line.get("text") for line in lines]

    play(scenario())


def test_the_model_can_be_changed_on_the_way() -> None:
    """/model NAME goes on in the same conversation with another model."""

    async def scenario() -> None:
        async with opened(Turns(["First.", "Second."])) as chat:
            await chat.send("one")
            await chat.until("First.")
            await chat.idle()
            before = chat.app.chat.id
            await chat.send("/model openai:other")
            await chat.until("From now on: openai:other at http")
            await chat.send("two")
            await chat.until("Second.")
            assert chat.app.chat.id == before
            assert chat.server.requests[-1].model == "other"
            assert [m.text for m in chat.server.requests[-1].messages if m.role == "user"] == [
                "one",
                "two",
            ]

    play(scenario())


def test_a_model_that_cannot_be_is_refused() -> None:
    """/model with an unknown provider says so; the conversation goes on with the present one."""

    async def scenario() -> None:
        async with opened(Turns(["First.", "Second."])) as chat:
            await chat.send("one")
            await chat.until("First.")
            await chat.idle()
            before = chat.app.chat.id
            await chat.send("/model nosuch:thing")
            await chat.until("the model 'nosuch:thing'")
            await chat.idle()
            assert chat.app.chat.model == "openai:mock-model"
            await chat.send("two")
            await chat.until("Second.")
            assert chat.app.chat.id == before

    play(scenario())


pytest.importorskip("cronsim", reason="the extra 'work' is not installed")


def test_a_schedule_is_picked_and_run_by_hand(home: object) -> None:
    """`/sched-NAME` stands last, in another colour; sent, it runs in a session of its own."""
    now = datetime.now(UTC)
    found = understand("every day 9:00", now, "UTC")
    bound = Binding(
        when=found.text, timing=found.timing, zone="UTC", made=now, since=now, project=str(home)
    )
    schedule, _ = schedule_store.make(
        Draft(binding=bound, task="Look at the weather.", short="weather")
    )

    async def scenario() -> None:
        async with opened(["It rains."]) as chat:
            await chat.press("/")
            await chat.until("/ship-it")
            last = chat.app.picker.candidates[-1]
            assert (last.kind, last.inserted) == ("scheduled", schedule.command)
            await chat.press("sched-w")
            await chat.until(schedule.command)
            row = chat.app.picker._rows()[-1]
            assert any("accent" in str(span.style) for span in row.spans)
            await chat.pilot.press("enter")
            assert chat.app.prompt.text.strip() == schedule.command
            await chat.pilot.press("enter")
            await chat.until("It rains.")
            (done,) = schedule_runs.run_history(schedule.name)
            assert (done.why, done.state) == ("hand", "done")
            assert chat.app.chat.session is not None
            assert done.session != chat.app.chat.id
            assert not chat.app.chat.session.conversation.messages

    play(scenario())
