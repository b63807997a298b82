"""The input: lists after / and @, history, many lines, paste."""

from pathlib import Path

from driving import opened, play

from tacit.testing import Turns


def test_the_list_after_a_slash_narrows() -> None:
    """Skills with their descriptions come first, then commands; letters in order find a skill."""

    async def scenario() -> None:
        async with opened(["unused"]) as chat:
            await chat.press("/")
            screen = await chat.until("/ship-it")
            assert "Release a version." in screen
            assert screen.index("/ship-it") < screen.index("/tidy-up") < screen.rindex("/help")
            await chat.press("ty")
            await chat.until(lambda: "/ship-it" not in chat.screen)
            assert "/tidy-up" in chat.screen
            await chat.pilot.press("enter")
            assert chat.app.prompt.text == "/tidy-up "
            assert not chat.app.picker.is_open
            assert not chat.server.requests

    play(scenario())


def test_escape_closes_the_list_and_keeps_the_text() -> None:
    """Escape shuts the list until the text changes."""

    async def scenario() -> None:
        async with opened(["unused"]) as chat:
            await chat.press("/s")
            await chat.until("/ship-it")
            await chat.pilot.press("escape")
            assert not chat.app.picker.is_open
            assert chat.app.prompt.text == "/s"
            await chat.press("h")
            assert chat.app.picker.is_open

    play(scenario())


def test_a_command_is_run_from_the_list() -> None:
    """Enter on a command runs it; no model is asked."""

    async def scenario() -> None:
        async with opened(["unused"]) as chat:
            await chat.press("/cos")
            await chat.until("tokens and money so far")
            await chat.pilot.press("enter")
            await chat.until("Nothing has been asked yet.")
            assert not chat.server.requests

    play(scenario())


def test_two_skills_stack_in_their_order() -> None:
    """`/a /b text` activates both, and the model gets both bodies and the text."""

    async def scenario() -> None:
        async with opened(["Both are on."]) as chat:
            await chat.press("/tidy")
            await chat.pilot.press("tab")
            await chat.press("/shi")
            await chat.pilot.press("tab")
            assert chat.app.prompt.text == "/tidy-up /ship-it "
            await chat.type("now")
            await chat.pilot.press("enter")
            screen = await chat.until("Both are on.")
            assert screen.index("◆ tidy-up, called by you") < screen.index("◆ ship-it")
            [request] = chat.server.requests
            results = [result.text for result in request.tool_results]
            assert "The steps of tidy-up." in results[0]
            assert "The steps of ship-it." in results[1]
            assert [m.text for m in request.messages if m.role == "user"] == ["now"]

    play(scenario())


def test_an_unknown_name_sends_nothing() -> None:
    """`/shipit` names the skill that was meant, and the model is not asked."""

    async def scenario() -> None:
        async with opened(["unused"]) as chat:
            await chat.send("/shipit now")
            await chat.until("did you mean /ship-it?")
            assert not chat.server.requests

    play(scenario())


def test_files_are_completed_after_an_at(project: Path) -> None:
    """`@read` finds README.md; files of secrets are not offered."""
    (project / ".env").write_text("KEY=1\n")
    (project / "src").mkdir()
    (project / "src" / "reader.py").write_text("")

    async def scenario() -> None:
        async with opened(["unused"]) as chat:
            await chat.press("see @")
            await chat.until("@README.md")
            assert ".env" not in chat.screen
            await chat.press("rdr")
            await chat.until(lambda: "@README.md" not in chat.screen)
            await chat.pilot.press("tab")
            assert chat.app.prompt.text == "see @src/reader.py "

    play(scenario())


def test_many_lines_by_keys_and_by_paste() -> None:
    """Ctrl-J and a backslash make new lines, a paste keeps its own, and all is sent as one."""

    async def scenario() -> None:
        async with opened(["Seen."]) as chat:
            await chat.press("a\nb\\")
            await chat.pilot.press("enter")
            await chat.type("c\r\nd\x1b[31m")
            assert chat.app.prompt.size.height == 4
            await chat.pilot.press("enter")
            await chat.until("Seen.")
            assert chat.server.requests[0].messages[-1].text == "a\nb\nc\nd�[31m"

    play(scenario())


def test_letters_and_editing_keys_keep_their_order() -> None:
    """Keys that come in one burst act in the order in which they were pressed."""

    async def scenario() -> None:
        async with opened(["unused"]) as chat:
            await chat.pilot.press("x", "backspace", "a", "b", "left", "c", "home", "d")
            assert chat.app.prompt.text == "dacb"

    play(scenario())


def test_what_was_typed_is_there_next_time(home: Path) -> None:
    """Up brings back earlier messages, also in the next session; Down the unfinished one."""

    async def scenario() -> None:
        async with opened(Turns(["One.", "Two."])) as chat:
            await chat.send("first")
            await chat.until("One.")
            await chat.idle()
            await chat.send("second")
            await chat.until("Two.")
        async with opened(["unused"]) as chat:
            await chat.press("new")
            await chat.pilot.press("up")
            assert chat.app.prompt.text == "second"
            await chat.pilot.press("up")
            assert chat.app.prompt.text == "first"
            await chat.pilot.press("down", "down")
            assert chat.app.prompt.text == "new"

    play(scenario())
    [file] = (home / ".local/share/tacit").glob("chat-history.jsonl")
    assert file.stat().st_mode & 0o777 == 0o600
