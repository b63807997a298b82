"""`tacit pin`."""

import click

from tacit.changes.change import Pin
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill

_EPILOG = """\b
Examples:
  tacit pin db-migration
"""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.option("--reason", default="", help="Why, for the history.")
@output.json_option
def command(name: str, reason: str, as_json: bool) -> int:
    """Let nobody but you change a skill.

    Agents and background work leave a pinned skill alone; it also comes first in the catalogue.
    """
    gate, library = gating.open_gate()
    target = gating.find_here(gate, library, name)
    verdict = gating.propose(gate, target.root, target.skill, Pin(), reason=reason)
    return gating.tell(verdict, f"Pinned {name}", as_json)
