"""`tacit chat`: chooses between the full screen and plain lines, and which session to resume.

Imports little, because the first frame waits for it; the conversation is `chat/`'s.
"""

import os
import sys

import click

from tacit.base.errors import Usage
from tacit.ui.chat.live_chat import ChatOptions, full_session_id
from tacit.ui.cli.command import command, leaving_in_order


@command(
    "chat",
    "work",
    "Talk with the agent.",
    "tacit chat",
    "tacit chat --continue              where you left off in this project",
    "tacit chat --resume 20261115       a session by the beginning of its id",
    "tacit chat --model openai:gpt-5.1",
    "tacit chat --plain < questions.txt",
    note="Inside: /help. Without a terminal, or with TERM=dumb, --plain is chosen by itself.",
)
@click.option("-c", "--continue", "again", is_flag=True, help="Go on with the last session here.")
@click.option("-r", "--resume", "session", default="", help="Go on with this session.")
@click.option("--model", default="", help="provider:model, instead of the setting.")
@click.option("--plain", "plainly", is_flag=True, help="Lines only: for screen readers and pipes.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.option("--yes", is_flag=True, help="Allow writes and commands without asking.")
@click.option(
    "--json", "as_json", is_flag=True, help="Messages as lines in, events as JSON lines out."
)
def chat_command(
    again: bool,
    session: str,
    model: str,
    plainly: bool,
    no_mouse: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Talk with the agent.

    It reads and changes the project that you are in, asks before it writes or runs something, and
    uses your skills. What was said is kept as it happens; a session can be resumed at any time.
    """
    if again and session:
        raise Usage("--continue and --resume exclude each other", "take one of them")
    options = ChatOptions(os.getcwd(), model, _session_to_resume(again, session), yes, learns=True)
    try:
        return _open_face(options, plainly, no_mouse, as_json)
    finally:
        from tacit.work import reactions  # late: the first frame does not wait for it

        reactions.end_chats()


def _open_face(options: ChatOptions, plainly: bool, no_mouse: bool, as_json: bool) -> int:
    if plainly or as_json or not _is_capable():
        return _open_plain(options, as_json)
    if not _has_textual():
        click.echo("tacit: plain mode; for the full one: pip install 'tacit[tui]'", err=True)
        return _open_plain(options, as_json)
    from tacit.ui.tui.chat_screen import ChatApp

    app = ChatApp(options)
    with leaving_in_order():
        code = app.run(mouse=not no_mouse)
    app.chat.close()
    if app.chat.resume_hint:
        click.echo(app.chat.resume_hint)
    return code if code is not None else app.return_code or 0


def _open_plain(options: ChatOptions, as_json: bool) -> int:
    from tacit.ui.plain import run

    with leaving_in_order():
        return run(options, as_json=as_json)


def _session_to_resume(again: bool, session: str) -> str:
    if session:
        return full_session_id(session)
    if again:
        from tacit.base.paths import project_root
        from tacit.traces.hosts.tacit import latest_session

        return latest_session(project_root(os.getcwd()))
    return ""


def _is_capable() -> bool:
    """Whether a whole screen can be drawn and keys can be read."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _has_textual() -> bool:
    from importlib.util import find_spec

    return find_spec("textual") is not None
