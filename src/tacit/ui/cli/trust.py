"""`tacit trust`: which projects may bring their own skills and settings."""

import os

import click

from tacit.base import paths, trust
from tacit.base.errors import NotFound, Usage
from tacit.base.terminal import plain
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  tacit trust                        the project that you are in
  tacit trust ~/work                 a folder and all below it
  tacit trust --list
  tacit trust --remove ~/work/old
"""


@click.command(epilog=_EPILOG)
@click.argument("folder", required=False, type=click.Path())
@click.option("--list", "listing", is_flag=True, help="List the trusted folders.")
@click.option("--remove", is_flag=True, help="Take the trust back.")
@output.json_option
def command(folder: str | None, listing: bool, remove: bool, as_json: bool) -> int:
    """Allow a project's own skills and settings to count.

    Skills that come with a clone are somebody else's instructions to your agent. They are listed,
    but not loaded, until you trust the project. Trust holds for a folder and what lies below it.
    """
    if listing:
        return _list(as_json)
    target = os.path.abspath(os.path.expanduser(folder)) if folder else paths.project_root(".")
    if not folder and paths.is_home(target):
        raise Usage(
            "this is your home folder, not a project", "go to the project, or name a folder"
        )
    if remove:
        changed = trust.remove(target)
        if not changed:
            raise NotFound(f"{target} is not in the list", "see it: tacit trust --list")
    else:
        if not os.path.isdir(target):
            raise NotFound(f"there is no folder {target}", "name an existing folder")
        if os.path.realpath(target) == os.path.realpath(os.sep):
            raise Usage("the whole disk cannot be trusted", "name the folder of your projects")
        changed = trust.add(target)
    if as_json:
        output.write_json(
            {"folder": target, "trusted": trust.is_trusted(target), "changed": changed}
        )
        return 0
    shown = plain(paths.shorten(target))
    if remove:
        still = trust.is_trusted(target)
        tail = " It is still trusted by a folder above it." if still else ""
        click.echo(f"No longer trusted: {shown}.{tail}")
    elif changed:
        click.echo(f"Trusted: {shown}")
        click.echo(f"Undo with: tacit trust --remove {shown}")
    else:
        click.echo(f"Already trusted: {shown}")
    return 0


def _list(as_json: bool) -> int:
    known = trust.trusted()
    if as_json:
        output.write_json({"trusted": known})
    elif known:
        for path in known:
            gone = "" if os.path.isdir(path) else click.style("  (does not exist)", dim=True)
            click.echo(f"{plain(paths.shorten(path))}{gone}")
    else:
        click.echo("No folder is trusted yet. Trust the project you are in: tacit trust")
    return 0
