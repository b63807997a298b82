"""`tacit inbox`: changes that wait for a person."""

import click

from tacit.base.paths import shorten
from tacit.base.settings import load
from tacit.base.terminal import one_line, plain
from tacit.changes.gate import Gate
from tacit.changes.inbox import Proposal
from tacit.learn import notices
from tacit.learn.approving import approval, question
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_proposal

_EPILOG = """\b
Examples:
  tacit inbox                        what waits
  tacit inbox 7be0                   one of them, with its diff
  tacit accept 7be0
  tacit reject 7be0 --reason "too special"
"""


_MOST_NEWS = 20


@click.command(epilog=_EPILOG)
@click.argument("proposal", required=False, shell_complete=complete_proposal)
@click.option("--all", "everything", is_flag=True, help="Answered ones too.")
@output.json_option
def command(proposal: str | None, everything: bool, as_json: bool) -> int:
    """Show the changes that wait for you, or one of them with its diff.

    Below them stands what was learned since you last looked here, each with the command that shows
    it and the command that takes it back.
    """
    gate, _ = gating.open_gate(everywhere=True)
    if proposal:
        return _one(gate, gate.inbox.get(proposal), as_json)
    found = gate.inbox.all() if everything else gate.inbox.waiting()
    if as_json:
        output.write_json({"proposals": found, "notices": notices.pending("inbox")})
        return 0
    _list(found)
    _news()
    return 0


def _list(found: list[Proposal]) -> None:
    if not found:
        click.echo("The inbox is empty.")
        return
    rows = [
        (
            p.id[-8:],
            p.state,
            one_line(p.change.skill),
            p.change.actor,
            one_line(p.change.reason or p.why.reason),
        )
        for p in found
    ]
    click.echo(output.table(("id", "state", "skill", "by", "why"), rows, ("state", "by")))
    if any(p.state == "waiting" for p in found):
        click.echo("\nSee one: tacit inbox ID · then: tacit accept ID, tacit reject ID")


def _news() -> None:
    """What happened since the inbox was looked at last, and the question that is open."""
    told = notices.tell("inbox", most=_MOST_NEWS)
    if told:
        click.echo("\nSince you last looked here:")
    for text in told:
        click.echo(output.wrapped(f"- {text}"))
    found = approval(load().settings.learn)
    if found.question:
        click.echo("\n" + output.wrapped(question(found.accepted)))


def _one(gate: Gate, proposal: Proposal, as_json: bool) -> int:
    text = diff_of(gate, proposal)
    if as_json:
        output.write_json({"proposal": proposal, "diff": text})
        return 0
    change = proposal.change
    click.echo(click.style(plain(change.skill), bold=True))
    facts = {
        "id": proposal.id,
        "state": proposal.state,
        "where": shorten(change.root),
        "by": change.actor,
        "why": one_line(change.reason),
        "waits": one_line(proposal.why.reason),
        "evidence": ", ".join(change.evidence),
        "answer": one_line(proposal.answer),
    }
    for label, value in facts.items():
        if value:
            click.echo(f"{click.style(f'{label:<10}', dim=True)} {value}")
    click.echo()
    gating.write_diff(text)
    if proposal.state == "waiting":
        click.echo(f"\ntacit accept {proposal.id[-8:]} · tacit reject {proposal.id[-8:]}")
    return 0


def diff_of(gate: Gate, proposal: Proposal) -> str:
    """What accepting would change, against what stands there now."""
    preview = gate.preview(proposal.change)
    if preview.refusal is None:
        return preview.diff
    return f"(it no longer fits: {preview.refusal.reason})\n{preview.diff}"
