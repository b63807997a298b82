"""The scrolling middle: resuming, narrow terminals, no colour, small pictures of the screen."""

import os
import re
import threading
from pathlib import Path

import pytest
from driving import Chat, opened, play

from tacit.testing import ModelServer, ToolUse, Turns, Usage, reply
from tacit.ui.chat.live_chat import Chat as LiveChat
from tacit.ui.chat.live_chat import ChatOptions
from tacit.ui.tui.chat_screen import ChatApp
from waiting import FOREVER

COMMAND = ToolUse("run_command", {"command": "echo a rather long command line that does not fit"})


def test_resuming_says_what_was_said() -> None:
    """A resumed session shows its last messages briefly, and its skills are still active."""

    async def scenario() -> None:
        script = ["Many lines:\n\n" + "\n\n".join("abcdefghij")]
        async with opened(script, size=(80, 40)) as chat:
            await chat.send("/tidy-up the desk")
            await chat.until("Many lines:")
            session = chat.app.chat.id
        async with opened(["Here."], resuming=session, size=(80, 40)) as chat:
            screen = await chat.until(f"resumed {session}")
            assert "the desk" in screen
            assert "Many lines:" in screen
            assert "skills active: tidy-up" in screen
            assert "◆ tidy-up" in screen
            assert "run_skill" not in screen
            assert "j" not in [line.strip() for line in screen.splitlines()]
            await chat.send("go on")
            await chat.until("Here.")
            request = chat.server.requests[0]
            assert "The steps of tidy-up." in request.tool_results[0].text
            await chat.send("/skills tidy")
            await chat.until("* tidy-up")

    play(scenario())


def test_a_message_sent_before_a_resume_is_ready_stands_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was said before is shown first, then the message that waited for it."""
    may_open = threading.Event()
    opening = LiveChat.open

    def slowly(chat: LiveChat) -> None:
        assert may_open.wait(FOREVER)
        opening(chat)

    async def scenario() -> None:
        async with opened(["Earlier."]) as chat:
            await chat.send("the first words")
            await chat.until("Earlier.")
            session = chat.app.chat.id
        monkeypatch.setattr(LiveChat, "open", slowly)
        with ModelServer(["Here."]) as server:
            os.environ["TACIT_AGENT_BASE_URL"] = server.url + "/v1"
            app = ChatApp(ChatOptions(resuming=session))
            async with app.run_test(size=(80, 40)) as pilot:
                chat = Chat(app, pilot, server)
                await chat.send("the later words")
                await chat.until("next: the later words")
                may_open.set()
                screen = await chat.until("Here.")
            app.chat.close()
        assert screen.index("the first words") < screen.index("the later words")
        assert server.requests[0].user_texts == ("the first words", "the later words")

    play(scenario())


def test_sessions_are_listed_and_opened() -> None:
    """/sessions lists this project's, and /sessions ID goes back to one."""

    async def scenario() -> None:
        async with opened(Turns(["Good."])) as chat:
            await chat.send("the first talk")
            await chat.until("Good.")
            first = chat.app.chat.id
            await chat.idle()
            await chat.send("/new")
            await chat.until("A new conversation.")
            assert chat.app.chat.id != first
            await chat.idle()
            await chat.send("/sessions")
            screen = await chat.until("the first talk")
            assert first in screen
            await chat.send(f"/sessions {first}")
            await chat.until(f"resumed {first}")
            assert chat.app.chat.id == first

    play(scenario())


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_every_width_shows_what_matters(columns: int) -> None:
    """At 40, 80 and 120 columns no line is too wide, and question, answer and footer are there."""

    async def scenario() -> None:
        done = reply("Finished, as asked.", usage=Usage(1500, 100))
        async with opened([COMMAND, done], size=(columns, 24)) as chat:
            await chat.send("do it please")
            screen = await chat.asked("y yes, once")
            assert "n no" in screen
            await chat.pilot.press("y")
            screen = await chat.until("Finished, as asked.")
            await chat.press("/")
            screen = await chat.until("/tidy-up")
            assert max(len(line) for line in screen.splitlines()) <= columns
            assert "✓ run_command" in screen
            assert "mock-model · 1.6k tokens · $?" in screen

    play(scenario())


def test_the_screen_of_a_small_talk() -> None:
    """The whole screen after a short talk at 60 columns, character by character."""

    async def scenario() -> None:
        call = reply("I look.", ToolUse("list_files", {"path": "."}))
        async with opened([call, reply("One file: `README.md`.")], size=(60, 18)) as chat:
            await chat.send("what is here?")
            await chat.until("One file")
            screen = await chat.idle()
            screen = re.sub(r"\d\.\d s", "0.0 s", screen)
            assert screen.lstrip("\n") == EXPECTED

    play(scenario())


EXPECTED = """\
 tacit 0.1.0 · ~/work
 / skills and commands · @ files · /help

 █ what is here?

 I look.

 ✓ list_files .                                    0.0 s ▸

 One file: README.md.

╭──────────────────────────────────────────────────────────╮
│ › Ask, or / for skills                                   │
╰──────────────────────────────────────────────────────────╯
 openai:mock-model · 120 tokens · $?"""


def test_what_is_far_back_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long talk keeps a bounded number of rows, and says where the rest is."""
    from tacit.ui.tui import conversation_view

    monkeypatch.setattr(conversation_view, "_MOST_ROWS", 5)

    async def scenario() -> None:
        async with opened("Yes.", size=(80, 50)) as chat:
            for number in range(4):
                await chat.send(f"message {number}")
                await chat.until(f"message {number}")
                await chat.idle()
            assert len(chat.app.conversation.children) <= 6
            assert "what came before" in await chat.until("message 3")

    play(scenario())


def test_a_long_change_can_be_seen_whole(project: Path) -> None:
    """A diff longer than the screen is cut so that the answers stay, and v shows all of it."""
    content = "\n".join([*(f"line {number}" for number in range(60)), "++ the end"])

    async def scenario() -> None:
        async with opened(
            [ToolUse("write_file", {"path": "long.txt", "content": content}), "Ok."]
        ) as chat:
            await chat.send("write")
            screen = await chat.asked("more lines; v shows all")
            assert "n no" in screen
            assert "+line 59" not in screen
            await chat.pilot.press("v")
            await chat.until("+line 59")
            await chat.until("+++ the end")
            await chat.pilot.press("n")
            await chat.until("Ok.")

    play(scenario())
    assert not os.path.exists(project / "long.txt")


def test_what_was_learned_is_told_while_nothing_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, at the next quiet moment, without a word from the user; the footer counts."""
    from tacit.learn import notices
    from tacit.learn.notices import Notice
    from tacit.ui.tui import chat_screen

    monkeypatch.setattr(chat_screen, "_LOOK", 0.05)

    async def scenario() -> None:
        async with opened(["Fine."]) as chat:
            await chat.send("hello")
            await chat.until("Fine.")
            await chat.idle()
            notices.announce(Notice(kind="created", skill="backup", change="1-abcd1234"))
            screen = await chat.until("learned the skill backup")
            assert "/undo abcd1234" in screen
            await chat.pilot.pause(0.3)
            assert chat.screen.count("learned the skill backup") == 1

    play(scenario())
