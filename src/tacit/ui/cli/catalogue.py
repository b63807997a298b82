"""`tacit catalogue`: the block for a prompt, as the model gets it."""

import click

from tacit.agent.uses import recently_used
from tacit.changes.pins import pinned_skills
from tacit.skills.library import Library
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  tacit catalogue
  tacit catalogue --budget 2000
  tacit catalogue --touched src/app.ts   with skills that wait for such a file
"""


@click.command(epilog=_EPILOG)
@click.option("--budget", type=click.IntRange(0), help="Most characters; the default is a setting.")
@click.option("--touched", multiple=True, help="A file that is being worked on; may be repeated.")
@output.json_option
def command(budget: int | None, touched: tuple[str, ...], as_json: bool) -> int:
    """Print the block that tells a model which skills there are.

    Pinned skills first, then the project's, then those used last. A conversation gets it once, and
    keeps it to the byte. Skills that do not fit the budget are counted in its last line.
    """
    made = Library().catalogue(
        budget=budget, touched=touched, pinned=pinned_skills(), recent=recently_used()
    )
    if as_json:
        output.write_json(made)
    else:
        click.echo(made.text, nl=False)
    return 0
