"""The commands inside a conversation, such as `/help` and `/inbox`. Each returns text to show.

They block and may raise `TacitError`; a face runs them in a thread. A command's name wins over a
skill of the same name: a skill that came from elsewhere must not take `/undo` away. Loaded with
the first command.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from tacit.agent.activation import slash_words
from tacit.base import database
from tacit.base.display import one_line
from tacit.base.errors import NotFound, TacitError, Usage
from tacit.base.paths import with_tilde
from tacit.ui.chat import past_sessions
from tacit.ui.chat.event_text import CommandAnswer, two_columns
from tacit.ui.chat.live_chat import Chat, full_session_id

if TYPE_CHECKING:
    from tacit.changes.change import Verdict
    from tacit.changes.facts import KnownFact
    from tacit.changes.gate import Gate
    from tacit.changes.inbox import Proposal


_MOST_CHANGES = 10


def _inbox(chat: Chat, rest: str) -> CommandAnswer:
    """What waits; one proposal with its diff; or the answer to one."""
    gate = _open_gate()
    verb, _, words = rest.partition(" ")
    if verb in ("accept", "reject"):
        return _answer_proposal(chat, gate, verb, words.strip())
    if rest:
        return _one_proposal(gate, gate.inbox.get(rest))
    waiting = gate.waiting()
    if not waiting:
        return CommandAnswer("The inbox is empty." + _open_question())
    rows = [
        (f"{p.id[-8:]}  {one_line(p.change.skill)}", one_line(p.change.reason or p.why.reason))
        for p in waiting
    ]
    return CommandAnswer(f"{two_columns(rows, 40)}\n\nsee one: /inbox ID{_open_question()}")


def _one_proposal(gate: "Gate", proposal: "Proposal") -> CommandAnswer:
    from tacit.ui.cli.proposals import proposal_diff

    change, short = proposal.change, proposal.id[-8:]
    head = one_line(f"{change.skill}, by {change.actor}: {change.reason or proposal.why.reason}")
    if proposal.state != "waiting":
        return CommandAnswer(f"{head}\nanswered: {proposal.state}", proposal_diff(gate, proposal))
    return CommandAnswer(
        f"{head}\n/inbox accept {short} · /inbox reject {short} [why]",
        proposal_diff(gate, proposal),
    )


def _answer_proposal(chat: Chat, gate: "Gate", verb: str, words: str) -> CommandAnswer:
    from tacit.changes.change import acting_as

    name, _, why = words.partition(" ")
    if not name:
        raise Usage(f"{verb} which?", f"name it: /inbox {verb} ID")
    from tacit.learn import announcements, notices

    proposal = gate.inbox.get(name)
    if proposal.state != "waiting":
        raise Usage(f"{proposal.id[-8:]} was {proposal.state} already", "see what waits: /inbox")
    if verb == "reject":
        gate.reject(proposal, why.strip())
        notices.refresh()
        return CommandAnswer(
            f"Rejected: {one_line(proposal.change.skill)}. It is not proposed again."
        )
    with acting_as("user"):
        verdict = gate.accept(proposal)
    chat.library.refresh()
    notices.refresh()
    asked = announcements.ask_to_go_unasked()
    return CommandAnswer(
        _verdict_text(verdict, "Accepted", "take it back") + (f"\n\n{asked}" if asked else "")
    )


def _undo(chat: Chat, rest: str) -> CommandAnswer:
    """The latest changes, or taking one of them back."""
    from tacit.ui.cli.user_gate import latest_versions

    gate = _open_gate()
    if rest:
        text = _undo_any(gate, rest)
        chat.library.refresh()
        return CommandAnswer(text)
    found = latest_versions(gate, _MOST_CHANGES)
    if not found:
        return CommandAnswer("Nothing has been changed through Tacit yet.")
    rows = [
        (
            f"{v.record.change[-8:]}  {one_line(v.record.skill)}",
            one_line(f"{v.record.kind} by {v.record.actor}: {v.record.reason}").rstrip(": "),
        )
        for v in found
    ]
    return CommandAnswer(f"{two_columns(rows, 40)}\n\ntake one back: /undo ID")


def _undo_any(gate: "Gate", start: str) -> str:
    """Take a change, or a whole run of curation, back. Raises `NotFound`."""
    from tacit.ui.cli.user_gate import undo_any

    try:
        group, verdicts = undo_any(gate, start)
    except NotFound as error:
        hint = "see the latest: /undo"
        raise NotFound(f"no change ends with '{start}'", hint) from error
    if not group:
        return _verdict_text(verdicts[0], "Undone", "bring it back")
    lines = [f"Undone: {sum(verdict.applied for verdict in verdicts)} of {len(verdicts)} changes"]
    lines += [f"{one_line(v.skill)}: {v.explain()}" for v in verdicts if not v.applied]
    return "\n".join(lines)


def _open_question() -> str:
    """The question whether learned changes may land unasked, where it is open."""
    from tacit.base.settings import load_settings
    from tacit.learn.background.background_gate import approval_question, current_approval

    found = current_approval(load_settings().settings.learn)
    return f"\n\n{approval_question(found.accepted)}" if found.question else ""


def _verdict_text(verdict: "Verdict", done: str, back: str) -> str:
    """How a change ended, in a line or two."""
    if verdict.applied:
        return f"{done}: {one_line(verdict.skill)} ({back}: /undo {verdict.change[-8:]})"
    text = verdict.explain()
    if verdict.refusal is not None and verdict.refusal.hint:
        text += f"\n{verdict.refusal.hint}"
    return text


def waiting_count() -> int | None:
    """How many changes wait in the inbox; None where there is no inbox, or none to be read."""
    if not os.path.exists(database.default_path()):
        return None
    from tacit.changes.inbox import Inbox

    try:
        return len(Inbox().waiting())
    except TacitError:
        return None


def _open_gate() -> "Gate":
    from tacit.ui.cli.user_gate import open_gate

    return open_gate(everywhere=True)[0]


def _memory(chat: Chat, rest: str) -> CommandAnswer:
    """All of them; one in full; or forgetting one."""
    from tacit.changes.facts import find_fact, known_facts

    found = known_facts(chat.cwd)
    verb, _, name = rest.partition(" ")
    if verb == "forget" and name.strip():
        return _forget_fact(find_fact(found, name.strip(), "see them: /memory"))
    if rest:
        return _one_fact(find_fact(found, rest, "see them: /memory"))
    if not found:
        return CommandAnswer(
            "Nothing has been noted yet. Say what is to be remembered, or: tacit memory"
        )
    rows = [
        (
            one_line(known.fact.name),
            one_line(known.fact.says) + ("" if known.fact.state == "active" else " (not recalled)"),
        )
        for known in found
    ]
    return CommandAnswer(
        f"{two_columns(rows, 32)}\n\nsee one: /memory NAME · forget one: /memory forget NAME"
    )


def _one_fact(known: "KnownFact") -> CommandAnswer:
    fact = known.fact
    lines = [one_line(fact.says), fact.detail, f"{known.provenance}, {fact.scope}"]
    if fact.why:
        lines.append(f"not recalled: {one_line(fact.why)}")
    return CommandAnswer("\n\n".join(part for part in lines if part))


def _forget_fact(known: "KnownFact") -> CommandAnswer:
    from tacit.changes.change import acting_as
    from tacit.changes.facts import Rationale, forget
    from tacit.changes.gate import Gate
    from tacit.changes.place import fact_places

    fact = known.fact
    with acting_as("user"):
        verdict = forget(Gate(fact_places()), fact.root, fact.name, Rationale())
    return CommandAnswer(_verdict_text(verdict, "Forgotten", "bring it back"))


class SlashCommand(msgspec.Struct, frozen=True):
    """A command by its name without the slash."""

    name: str
    about: str
    run: Callable[[Chat, str], CommandAnswer]
    takes: str = ""


def parse_slash_command(text: str) -> tuple[SlashCommand, str] | None:
    """The command that a message is, with the text after it.

    To be asked first: what is no command may be a schedule, and then a skill (`Chat.say`).
    """
    for word in slash_words(text)[:1]:
        if command := SLASH_COMMANDS.get(word.name):
            return command, text[word.end :].strip()
    return None


def _help(chat: Chat, rest: str) -> CommandAnswer:
    rows = [(f"/{c.name} {c.takes}".rstrip(), c.about) for c in SLASH_COMMANDS.values()]
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
    return CommandAnswer(f"{two_columns(rows)}\n\n{two_columns(keys)}")


def _skills(chat: Chat, rest: str) -> CommandAnswer:
    library = chat.library
    library.refresh()
    active = set(chat.session.conversation.active) if chat.session is not None else set()
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
        text = two_columns(rows, 32)
    if active & {row[0][2:] for row in rows}:
        text += "\n\n* active in this conversation"
    if waiting and not rest:
        text += f"\n\n{waiting} more came with the project and are not trusted: tacit trust"
    return CommandAnswer(text)


def _model(chat: Chat, rest: str) -> CommandAnswer:
    if rest:
        chat.use_model(rest)
    else:
        chat.open()
    assert chat.session is not None
    choice = chat.session.choice
    at = f" at {choice.base_url}" if choice.base_url else ""
    if rest:
        return CommandAnswer(one_line(f"From now on: {choice.name}{at}"))
    why = f" ({choice.why})" if choice.why else ""
    return CommandAnswer(
        f"{one_line(choice.name + at + why)}\nchange it: /model provider:name [address]"
    )


def _cost(chat: Chat, rest: str) -> CommandAnswer:
    return CommandAnswer(f"{chat.usage.report()}\n{_background_cost()}")


def _background_cost() -> str:
    """What learning took today, which is no part of this conversation."""
    from tacit.agent.budget import today
    from tacit.base.display import dollars
    from tacit.base.settings import load_settings

    spent, budget = today(), load_settings().settings.learn.daily_money
    most = f" of {dollars(budget)} a day" if budget else ""
    took = f"{spent.shown()} today{most}" if spent.requests else f"nothing today{most}"
    return f"\nlearning   {took}; see: tacit cost"


def _list_sessions(chat: Chat, rest: str) -> CommandAnswer:
    if rest:
        chat.reopen(resuming=full_session_id(rest))
        return CommandAnswer(f"Back in {chat.id}", next_step="reopened")
    found = past_sessions.past_sessions(chat.project)
    if not found:
        return CommandAnswer(f"No sessions in {with_tilde(chat.project)} yet.")
    rows = []
    for one in found:
        mark = "* " if one.id == chat.id else "  "
        when = one.at.astimezone().strftime("%d %b %H:%M") if one.at else ""
        rows.append((mark + one.id, f"{when}  {one.title}"))
    return CommandAnswer(f"{two_columns(rows, 40)}\n\ngo on in one: /sessions ID")


def _new(chat: Chat, rest: str) -> CommandAnswer:
    chat.reopen()
    return CommandAnswer("A new conversation.", next_step="reopened")


def _quit(chat: Chat, rest: str) -> CommandAnswer:
    return CommandAnswer("", next_step="quit")


SLASH_COMMANDS: dict[str, SlashCommand] = {
    command.name: command
    for command in (
        SlashCommand("help", "commands and keys", _help),
        SlashCommand("skills", "the skills that can be used here", _skills, "[words]"),
        SlashCommand("inbox", "changes to skills that wait for you", _inbox, "[ID]"),
        SlashCommand("undo", "take a change to a skill back", _undo, "[ID]"),
        SlashCommand("memory", "facts that were noted", _memory, "[name]"),
        SlashCommand("model", "show or change the model", _model, "[name] [address]"),
        SlashCommand("cost", "tokens and money so far", _cost),
        SlashCommand("sessions", "earlier conversations here", _list_sessions, "[ID]"),
        SlashCommand("new", "begin a new conversation", _new),
        SlashCommand("quit", "leave", _quit),
    )
}
