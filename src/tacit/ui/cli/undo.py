"""`tacit undo`."""

import os

import click

from tacit.base import paths
from tacit.base.files import write_atomic
from tacit.changes.actor import acting_as
from tacit.changes.change import Verdict
from tacit.ui.cli import gating, output

_EPILOG = """\b
Examples:
  tacit undo 9c1d22ab                the end of a change's id, as tacit log shows it
  tacit undo 9c1d22ab                once more: the change is back
"""


@click.command(epilog=_EPILOG)
@click.argument("change")
@click.option("--reason", default="", help="Why, for the history.")
@output.json_option
def command(change: str, reason: str, as_json: bool) -> int:
    """Take one change back, and nothing else.

    What came after it is kept. Where later changes touch the same lines, nothing is done, and the
    merged text is put where you can mend it. Undoing twice brings the change back.
    """
    gate, _ = gating.open_gate()
    with acting_as("user"):
        verdict = gate.undo(change, reason=reason)
    if verdict.offer and not as_json:
        tell_offer(verdict)
    return gating.tell(verdict, f"Undone, in {verdict.skill}", as_json, back="redo")


def tell_offer(verdict: Verdict) -> None:
    """Put the merged files of a conflict where the user can take them up."""
    folder = os.path.join(paths.folders().data, "drafts", f"{verdict.skill}-merged")
    for path, data in verdict.offer.items():
        write_atomic(os.path.join(folder, path), data)
    shown = paths.shorten(os.path.join(folder, "SKILL.md"))
    click.echo(f"The merged text, with both sides marked, is in {shown}", err=True)
    click.echo(f"Mend it, then: tacit edit {verdict.skill} --from {shown}", err=True)
