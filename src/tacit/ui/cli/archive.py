"""`tacit archive`."""

import click

from tacit.changes.change import Archive
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill

_EPILOG = """\b
Examples:
  tacit archive old-release
  tacit archive old-release --reason "replaced by release"
"""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.option("--reason", default="", help="Why, for the history.")
@output.json_option
def command(name: str, reason: str, as_json: bool) -> int:
    """Take a skill out of use; it can be brought back.

    The folder moves to `.archive`, where no agent looks. Its history stays.
    """
    gate, library = gating.open_gate()
    target = gating.find_here(gate, library, name)
    verdict = gating.propose(gate, target.root, target.skill, Archive(), reason=reason)
    return gating.tell(verdict, f"Archived {name}", as_json)
