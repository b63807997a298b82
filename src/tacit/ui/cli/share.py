"""`tacit share`."""

import click

from tacit.base.errors import Usage
from tacit.changes import private
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill

_EPILOG = """\b
Examples:
  tacit share db-migration           git sees it, so that you can commit it
  tacit share db-migration --private hide it again
"""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.option("--private", "hide", is_flag=True, help="Hide it from git again.")
@output.json_option
def command(name: str, hide: bool, as_json: bool) -> int:
    """Let git see a learned skill of this project.

    Learned skills of a project are private at first: the repository's own exclude file, which is
    never committed, keeps them out of `git status`. Nothing else of the repository is touched.
    """
    gate, library = gating.open_gate()
    target = gating.find_here(gate, library, name)
    place = target.site.place
    if place.scope != "project":
        raise Usage(f"'{name}' is not a project's skill", "only those can be shared by git")
    change = private.hide if hide else private.show
    changed = change(place, target.skill, gate.data)
    if as_json:
        output.write_json({"skill": name, "shared": not hide, "changed": changed})
    elif not changed:
        click.echo(f"{name} was {'private' if hide else 'visible to git'} already")
    elif hide:
        click.echo(f"{name} is private again")
    else:
        click.echo(f"git sees {name} now: git add {place.root}/{target.skill}")
    return 0
