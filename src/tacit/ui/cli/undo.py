"""`tacit undo`."""

import click

from tacit.changes.actor import acting_as
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
    gate, _ = gating.open_gate(everywhere=True)
    with acting_as("user"):
        verdict = gate.undo(change, reason=reason)
    code = gating.tell(verdict, f"Undone, in {verdict.skill}", as_json, back="redo")
    if verdict.offer and not as_json:
        gating.write_offer(verdict)
    return code
