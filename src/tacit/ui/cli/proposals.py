"""`tacit inbox`, `accept` and `reject`: changes that wait for a person, and the answers to them."""

import click

from tacit.base.display import one_line, plain
from tacit.base.errors import Usage
from tacit.base.paths import with_tilde
from tacit.base.settings import load_settings
from tacit.changes.change import Verdict, acting_as
from tacit.changes.gate import Gate
from tacit.changes.inbox import Inbox, Proposal
from tacit.learn import notices
from tacit.learn.announcements import ask_to_go_unasked
from tacit.learn.background.background_gate import approval_question, current_approval
from tacit.ui.cli import output, user_gate
from tacit.ui.cli.command import command
from tacit.ui.cli.user_shell import complete_proposal
from tacit.work import host_links

_MOST_NEWS = 20


@command(
    "inbox",
    "history",
    "Show the changes that wait for you.",
    "tacit inbox                        what waits",
    "tacit inbox 7be0                   one of them, with its diff",
    "tacit accept 7be0",
    'tacit reject 7be0 --reason "too special"',
)
@click.argument("proposal", required=False, shell_complete=complete_proposal)
@click.option("--all", "everything", is_flag=True, help="Answered ones too.")
@click.option("-n", "--limit", type=click.IntRange(1), default=100, help="How many.")
@click.option("--skip", type=click.IntRange(0), default=0, help="Leave out so many at the start.")
def inbox_command(
    proposal: str | None, everything: bool, limit: int, skip: int, as_json: bool
) -> int:
    """Show the changes that wait for you, or one of them with its diff.

    Below them stands what was learned since you last looked here, each with the command that shows
    it and the command that takes it back.
    """
    inbox = Inbox()
    if proposal or inbox.begun():  # the list alone needs neither the gate nor the library
        gate, _ = user_gate.open_gate(everywhere=True)
        if proposal:
            return _write_proposal(gate, inbox.get(proposal), as_json)
        gate.waiting()  # closes what has landed
    found = (inbox.all if everything else inbox.waiting)(most=limit, skip=skip)
    waiting = inbox.waiting_ids()
    if as_json:
        marks = {p.id: _marks(p) for p in found if p.why.marks}
        news = notices.pending("inbox")
        shown = {"marks": marks, "proposals": found, "notices": news, "waiting": waiting}
        return output.write_json(shown)
    _write_proposals(found)
    if not everything and len(waiting) > skip + limit:
        output.write_hint(f"{len(waiting) - skip - limit:,} more: tacit inbox -n {len(waiting)}")
    _write_news()
    return 0


def _write_proposals(found: list[Proposal]) -> None:
    if not found:
        click.echo("The inbox is empty.")
        return
    rows = [
        (
            p.id[-8:],
            p.state,
            one_line(p.change.skill),
            p.change.actor,
            _why(p),
        )
        for p in found
    ]
    click.echo(output.table(("id", "state", "skill", "by", "why"), rows, ("state", "by")))
    if any(p.state == "waiting" for p in found):
        click.echo("\nSee one: tacit inbox ID · then: tacit accept ID, tacit reject ID")


def _why(proposal: Proposal) -> str:
    """Why a change waits, in one line: a marked line of it before its own reason."""
    if not proposal.why.marks:
        return one_line(proposal.change.reason or proposal.why.reason)
    first = proposal.why.marks[0]
    return one_line(f'marked: "{first.text}" · {first.reason}')


def _marks(proposal: Proposal) -> list[dict[str, object]]:
    """The marked lines, for JSON."""
    return [
        {"file": m.file, "line": m.line, "text": m.text, "rule": m.rule, "reason": m.reason}
        for m in proposal.why.marks
    ]


def _write_news() -> None:
    """Print what happened since the inbox was last opened, and the question that is open."""
    news = notices.tell("inbox", most=_MOST_NEWS)
    if news:
        click.echo("\nSince you last looked here:")
    for text in news:
        click.echo(output.wrapped(f"- {text}"))
    found = current_approval(load_settings().settings.learn)
    if found.question:
        click.echo("\n" + output.wrapped(approval_question(found.accepted)))


def _write_proposal(gate: Gate, proposal: Proposal, as_json: bool) -> int:
    text = proposal_diff(gate, proposal)
    if as_json:
        shown = {"marks": _marks(proposal), "proposal": proposal, "diff": text}
        return output.write_json(shown | {"waiting": gate.inbox.waiting_ids()})
    change = proposal.change
    click.echo(click.style(plain(change.skill), bold=True))
    for mark in proposal.why.marks:
        click.echo(click.style(f"! {mark.file}:{mark.line}  {one_line(mark.text)}", fg="yellow"))
        click.echo(output.wrapped(f"  {one_line(mark.reason)}"))
    rows = {
        "id": proposal.id,
        "state": proposal.state,
        "where": with_tilde(change.root),
        "by": change.actor,
        "why": one_line(change.reason),
        "waits": one_line(proposal.why.reason),
        "evidence": ", ".join(change.evidence),
        "answer": one_line(proposal.answer),
    }
    output.write_rows(rows.items(), 10)
    click.echo()
    output.write_diff(text)
    if change.actor == "distiller":
        from tacit.ui.cli.distillations import write_counts

        write_counts(change)
    if proposal.state == "waiting":
        click.echo(f"\ntacit accept {proposal.id[-8:]} · tacit reject {proposal.id[-8:]}")
    return 0


def proposal_diff(gate: Gate, proposal: Proposal) -> str:
    """What accepting would change, against what stands there now."""
    preview = gate.preview(proposal.change)
    if preview.refusal is None:
        return preview.diff
    return f"(it no longer fits: {preview.refusal.reason})\n{preview.diff}"


@command(
    "accept",
    "history",
    "Let changes from the inbox happen.",
    "tacit accept 7be0",
    "tacit accept 7be0 91aa",
    "tacit accept --all",
)
@click.argument("proposals", nargs=-1, shell_complete=complete_proposal)
@click.option("--all", "everything", is_flag=True, help="All that wait.")
def accept_command(proposals: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Let changes from the inbox happen.

    Each is checked again against what stands there now, and keeps who made it and why.
    """
    if bool(proposals) == everything:
        raise Usage("say which to accept", "name proposals (see: tacit inbox), or --all")
    gate, _ = user_gate.open_gate(everywhere=True)
    chosen = gate.waiting() if everything else [gate.inbox.get(start) for start in proposals]
    if not chosen and not as_json:
        click.echo("The inbox is empty.")
    verdicts: list[Verdict] = []
    try:
        worst = max((_accept(gate, one, as_json, verdicts) for one in chosen), default=0)
    finally:  # what landed is said, whatever came after it
        if as_json:
            output.write_json({"verdicts": verdicts})
        notices.refresh()
    landed = any(verdict.applied for verdict in verdicts)
    if not as_json and landed and not host_links.connected_hosts():
        click.echo("None of your agents is connected, so only tacit chat sees it: tacit connect")
    if not as_json and (asked := ask_to_go_unasked()):
        click.echo("\n" + output.wrapped(asked))
    return worst


def _accept(gate: Gate, proposal: Proposal, as_json: bool, verdicts: list[Verdict]) -> int:
    with acting_as("user"):
        verdict = gate.accept(proposal)
    verdicts.append(verdict)
    if as_json:
        return user_gate.REFUSED if verdict.refused else 0
    code = user_gate.write_verdict(verdict, f"Accepted: {proposal.change.skill}", as_json)
    if verdict.offer:
        user_gate.write_merged_offer(verdict)
    return code


@command(
    "reject",
    "history",
    "Turn a change from the inbox down.",
    'tacit reject 7be0 --reason "we do this in CI"',
    "tacit reject 7be0 --forget         it may be proposed again",
    "tacit reject 7be0 --undo           it waits again",
)
@click.argument("proposal", shell_complete=complete_proposal)
@click.option("--reason", default="", help="Why; it is remembered.")
@click.option("--forget", is_flag=True, help="Let the same idea be proposed again.")
@click.option("--undo", is_flag=True, help="Let what was turned down wait again.")
def reject_command(proposal: str, reason: str, forget: bool, undo: bool, as_json: bool) -> int:
    """Turn a change from the inbox down. The same idea does not come back.

    With --forget, a proposal that was turned down earlier is struck from memory.
    """
    gate, _ = user_gate.open_gate()
    found = gate.inbox.get(proposal)
    if undo:
        if not gate.inbox.reopen(found):
            raise Usage(f"{found.id} was not turned down", "see: tacit inbox --all")
    elif forget:
        from tacit.learn.distil.support import open_lessons

        gate.inbox.remove(found.id)
        notices.strike(found.id)
        with open_lessons() as lessons:
            lessons.forget_change(found.id)
    elif found.state != "waiting":
        raise Usage(f"{found.id} was {found.state} already", "see: tacit inbox --all")
    else:
        gate.reject(found, reason)
    notices.refresh()
    state = "waiting" if undo else "forgotten" if forget else "rejected"
    if as_json:
        output.write_json({"proposal": found.id, "state": state})
    else:
        click.echo(f"{state.capitalize()}: {found.change.skill}")
    return 0
