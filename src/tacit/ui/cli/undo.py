"""`tacit undo`."""

import click

from tacit.base.amounts import counted
from tacit.base.errors import NotFound
from tacit.base.terminal import plain
from tacit.changes.actor import acting_as
from tacit.changes.gate import Gate
from tacit.changes.grouping import find_group, undo_group
from tacit.ui.cli import gating, output

_EPILOG = """\b
Examples:
  tacit undo 9c1d22ab                the end of a change's id, as tacit log shows it
  tacit undo 9c1d22ab                once more: the change is back
  tacit undo 51f0a7c3                a whole run of tacit curate, as its report says
"""


@click.command(epilog=_EPILOG)
@click.argument("change")
@click.option("--reason", default="", help="Why, for the history.")
@output.json_option
def command(change: str, reason: str, as_json: bool) -> int:
    """Take one change back, and nothing else.

    What came after it is kept. Where later changes touch the same lines, nothing is done, and the
    merged text is put where you can mend it. Undoing twice brings the change back. The id of a
    whole run of curation takes back all that it did.
    """
    gate, _ = gating.open_gate(everywhere=True)
    with acting_as("user"):
        try:
            verdict = gate.undo(change, reason=reason)
        except NotFound:
            if not (group := find_group(gate, change)):
                raise
            return _undo_group(gate, group, reason, as_json)
    code = gating.tell(verdict, f"Undone, in {verdict.skill}", as_json, back="redo")
    if verdict.offer and not as_json:
        gating.write_offer(verdict)
    return code


def _undo_group(gate: Gate, group: str, reason: str, as_json: bool) -> int:
    verdicts = undo_group(gate, group, reason=reason)
    refused = [verdict for verdict in verdicts if not verdict.applied]
    if as_json:
        output.write_json({"group": group, "verdicts": verdicts})
        return gating.REFUSED if refused else 0
    done = counted(len(verdicts) - len(refused), "change")
    skills = ", ".join(dict.fromkeys(plain(v.skill) for v in verdicts if v.applied))
    if skills:
        click.echo(f"Undone: {done}, in {skills}")
        click.echo(click.style(f"redo: tacit undo {group[-8:]}", dim=True))
    else:
        click.echo("Nothing was undone.")
    for verdict in refused:
        click.echo(f"{plain(verdict.skill)}: {plain(verdict.explain())}", err=True)
    return gating.REFUSED if refused else 0
