"""`tacit rollback`."""

import click

from tacit.changes.actor import acting_as
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill

_EPILOG = """\b
Examples:
  tacit rollback db-migration            what it was before its last change
  tacit rollback db-migration 3f2a91c0   a version or change, as tacit log shows it
"""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.argument("version", required=False, default="")
@output.json_option
def command(name: str, version: str, as_json: bool) -> int:
    """Make one skill what it was in an earlier version. No other skill is touched.

    What stands there now is recorded first, so that the rollback can be undone.
    """
    gate, library = gating.open_gate()
    target = gating.find(gate, library, name)
    wanted = gating.find_version(target, version).id if version else ""
    with acting_as("user"):
        verdict = gate.rollback(target.skill, wanted, root=target.root)
    return gating.tell(verdict, f"Rolled {name} back", as_json)
