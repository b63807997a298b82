"""`tacit reject`."""

import click

from tacit.base.errors import Usage
from tacit.learn import notices
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_proposal

_EPILOG = """\b
Examples:
  tacit reject 7be0 --reason "we do this in CI"
  tacit reject 7be0 --forget         it may be proposed again
"""


@click.command(epilog=_EPILOG)
@click.argument("proposal", shell_complete=complete_proposal)
@click.option("--reason", default="", help="Why; it is remembered.")
@click.option("--forget", is_flag=True, help="Let the same idea be proposed again.")
@output.json_option
def command(proposal: str, reason: str, forget: bool, as_json: bool) -> int:
    """Turn a change from the inbox down. The same idea does not come back.

    With --forget, a proposal that was turned down earlier is struck from memory.
    """
    gate, _ = gating.open_gate()
    found = gate.inbox.get(proposal)
    if forget:
        gate.inbox.forget(found)
    elif found.state != "waiting":
        raise Usage(f"{found.id} was {found.state} already", "see: tacit inbox --all")
    else:
        gate.reject(found, reason)
    notices.refresh()
    state = "forgotten" if forget else "rejected"
    if as_json:
        output.write_json({"proposal": found.id, "state": state})
    else:
        click.echo(f"{state.capitalize()}: {found.change.skill}")
    return 0
