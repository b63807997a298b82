"""`tacit accept`."""

import click

from tacit.base.errors import Usage
from tacit.changes.actor import acting_as
from tacit.learn import notices
from tacit.learn.noticing import ask_to_go_on
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_proposal

_EPILOG = """\b
Examples:
  tacit accept 7be0
  tacit accept 7be0 91aa
  tacit accept --all
"""


@click.command(epilog=_EPILOG)
@click.argument("proposals", nargs=-1, shell_complete=complete_proposal)
@click.option("--all", "everything", is_flag=True, help="All that wait.")
@output.json_option
def command(proposals: tuple[str, ...], everything: bool, as_json: bool) -> int:
    """Let changes from the inbox happen.

    Each is checked again against what stands there now, and keeps who made it and why.
    """
    if bool(proposals) == everything:
        raise Usage("say which to accept", "name proposals (see: tacit inbox), or --all")
    gate, _ = gating.open_gate(everywhere=True)
    chosen = gate.inbox.waiting() if everything else [gate.inbox.get(start) for start in proposals]
    if not chosen and not as_json:
        click.echo("The inbox is empty.")
    worst = 0
    verdicts = []
    for proposal in chosen:
        with acting_as("user"):
            verdict = gate.accept(proposal)
        verdicts.append(verdict)
        if not as_json:
            skill = proposal.change.skill
            worst = max(worst, gating.tell(verdict, f"Accepted: {skill}", as_json))
            if verdict.offer:
                gating.write_offer(verdict)
        elif verdict.refused:
            worst = gating.REFUSED
    notices.refresh()
    if as_json:
        output.write_json({"verdicts": verdicts})
    elif asked := ask_to_go_on():
        click.echo("\n" + output.wrapped(asked))
    return worst
