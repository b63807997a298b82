"""`tacit unpin`."""

import click

from tacit.changes.change import Unpin
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill

_EPILOG = """\b
Examples:
  tacit unpin db-migration
"""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.option("--reason", default="", help="Why, for the history.")
@output.json_option
def command(name: str, reason: str, as_json: bool) -> int:
    """Let the usual rules hold for a skill again.

    The opposite of `tacit pin`.
    """
    gate, library = gating.open_gate()
    target = gating.find_here(gate, library, name)
    verdict = gating.propose(gate, target.root, target.skill, Unpin(), reason=reason)
    return gating.tell(verdict, f"Unpinned {name}", as_json)
