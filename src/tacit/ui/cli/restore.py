"""`tacit restore`."""

import click

from tacit.changes.change import Restore
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill

_EPILOG = """\b
Examples:
  tacit restore old-release
"""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.option("--reason", default="", help="Why, for the history.")
@output.json_option
def command(name: str, reason: str, as_json: bool) -> int:
    """Bring an archived skill back.

    NAME is the name that it had when it was archived.
    """
    gate, library = gating.open_gate()
    target = gating.find(gate, library, name)
    verdict = gating.propose(gate, target.root, target.skill, Restore(), reason=reason)
    return gating.tell(verdict, f"Restored {name}", as_json)
