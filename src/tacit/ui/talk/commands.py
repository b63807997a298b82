"""The commands inside a conversation: `/help`, `/skills` and so on. Each returns text to show.

They block and may raise `TacitError`; a face runs them in a thread. A command's name wins over a
skill of the same name: a skill that came from elsewhere must not take `/undo` away.
"""

from collections.abc import Callable

import msgspec

from tacit.base.paths import shorten
from tacit.base.terminal import one_line
from tacit.ui.talk import facts, gated, past
from tacit.ui.talk.shown import Shown, table
from tacit.ui.talk.talk import Talk, full_id


class Command(msgspec.Struct, frozen=True):
    """A command by its name without the slash."""

    name: str
    about: str
    run: Callable[[Talk, str], Shown]
    takes: str = ""


def parse(text: str) -> tuple[Command, str] | None:
    """The command that a message is, with the rest of its line."""
    if not text.startswith("/"):
        return None
    name, _, rest = text[1:].partition(" ")
    command = COMMANDS.get(name.strip())
    return (command, rest.strip()) if command is not None else None


def _help(talk: Talk, rest: str) -> Shown:
    rows = [(f"/{c.name} {c.takes}".rstrip(), c.about) for c in COMMANDS.values()]
    keys = [
        ("/name text", "use a skill; /a /b text uses two"),
        ("/sched-name", "run a schedule now, by hand"),
        ("@path", "name a file of the project"),
        ("Enter", "send; Ctrl-J, Shift-Enter or \\ at the end: a new line"),
        ("Up, Down", "what you typed before"),
        ("Tab", "complete, or move between the input and what can be opened"),
        ("PgUp, PgDn", "scroll"),
        ("Ctrl-O", "open or close all tool calls"),
        ("Ctrl-C", "stop the answer; twice, or Ctrl-D: quit"),
    ]
    return Shown(f"{table(rows)}\n\n{table(keys)}")


def _skills(talk: Talk, rest: str) -> Shown:
    library = talk.library
    library.refresh()
    active = set(talk.session.conversation.active) if talk.session is not None else set()
    words = rest.casefold().split()
    rows = []
    for entry in library.active():
        if all(w in f"{entry.name} {entry.description}".casefold() for w in words):
            mark = "* " if entry.name in active else "  "
            rows.append((mark + entry.name, one_line(entry.description)))
    waiting = sum(entry.state == "untrusted" for entry in library.entries)
    if not rows:
        text = f"No skill has '{rest}' in it." if rest else "There are no skills yet."
    else:
        text = table(rows, 32)
    if active & {row[0][2:] for row in rows}:
        text += "\n\n* active in this conversation"
    if waiting and not rest:
        text += f"\n\n{waiting} more came with the project and are not trusted: tacit trust"
    return Shown(text)


def _model(talk: Talk, rest: str) -> Shown:
    if rest:
        talk.use_model(rest)
    else:
        talk.open()
    assert talk.session is not None
    choice = talk.session.choice
    at = f" at {choice.base_url}" if choice.base_url else ""
    if rest:
        return Shown(one_line(f"From now on: {choice.name}{at}"))
    why = f" ({choice.why})" if choice.why else ""
    return Shown(f"{one_line(choice.name + at + why)}\nchange it: /model provider:name [address]")


def _cost(talk: Talk, rest: str) -> Shown:
    return Shown(f"{talk.tally.report()}\n{_background()}")


def _background() -> str:
    """What learning took today, which is no part of this conversation."""
    from tacit.agent import spending
    from tacit.base.amounts import dollars
    from tacit.base.settings import load

    spent, budget = spending.today(), load().settings.learn.daily_money
    most = f" of {dollars(budget)} a day" if budget else ""
    took = f"{spent.shown()} today{most}" if spent.requests else f"nothing today{most}"
    return f"\nlearning   {took}; see: tacit cost"


def _sessions(talk: Talk, rest: str) -> Shown:
    if rest:
        talk.reopen(resuming=full_id(rest))
        return Shown(f"Back in {talk.id}", then="reopened")
    found = past.sessions(talk.project)
    if not found:
        return Shown(f"No sessions in {shorten(talk.project)} yet.")
    rows = []
    for one in found:
        mark = "* " if one.id == talk.id else "  "
        when = one.at.astimezone().strftime("%d %b %H:%M") if one.at else ""
        rows.append((mark + one.id, f"{when}  {one.title}"))
    return Shown(f"{table(rows, 40)}\n\ngo on in one: /sessions ID")


def _new(talk: Talk, rest: str) -> Shown:
    talk.reopen()
    return Shown("A new conversation.", then="reopened")


def _quit(talk: Talk, rest: str) -> Shown:
    return Shown("", then="quit")


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("help", "commands and keys", _help),
        Command("skills", "the skills that can be used here", _skills, "[words]"),
        Command("inbox", "changes to skills that wait for you", gated.inbox, "[ID]"),
        Command("undo", "take a change to a skill back", gated.undo, "[ID]"),
        Command("memory", "facts that were noted", facts.memory, "[name]"),
        Command("model", "show or change the model", _model, "[name] [address]"),
        Command("cost", "tokens and money so far", _cost),
        Command("sessions", "earlier conversations here", _sessions, "[ID]"),
        Command("new", "begin a new conversation", _new),
        Command("quit", "leave", _quit),
    )
}
