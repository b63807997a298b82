"""`tacit rm`."""

import sys

import click

from tacit.base.errors import Refused
from tacit.changes.change import Delete
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill

_EPILOG = """\b
Examples:
  tacit rm old-release
  tacit rm old-release --yes         without being asked

To take it out of use and keep the folder: tacit archive old-release
"""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--reason", default="", help="Why, for the history.")
@output.json_option
def command(name: str, yes: bool, reason: str, as_json: bool) -> int:
    """Delete a skill. Its history stays, so that `tacit undo` brings it back."""
    gate, library = gating.open_gate()
    target = gating.find_here(gate, library, name)
    if not yes:
        if not sys.stdin.isatty():
            raise Refused(f"deleting '{name}' needs a yes", f"tacit rm {name} --yes")
        click.confirm(f"Delete {name} from {gating.shown_place(target.site)}?", abort=True)
    verdict = gating.propose(gate, target.root, target.skill, Delete(), reason=reason)
    return gating.tell(verdict, f"Deleted {name}", as_json)
