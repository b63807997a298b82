"""`tacit plugin`: the folder that agents can install, written out."""

import os

import click

from tacit import __version__
from tacit.base import paths
from tacit.base.amounts import counted
from tacit.base.errors import Refused, Usage
from tacit.base.files import write_atomic
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  tacit plugin ~/tacit-plugin
  claude plugin marketplace add ~/tacit-plugin && claude plugin install tacit@tacit
  gemini extensions install ~/tacit-plugin
  pi install ~/tacit-plugin
"""


@click.command(epilog=_EPILOG)
@click.argument("path", type=click.Path())
@click.option("--force", is_flag=True, help="Write into a folder that is not empty.")
@output.json_option
def command(path: str, force: bool, as_json: bool) -> int:
    """Write the folder that agents can install as a plugin.

    One folder for Claude Code, Codex, Copilot CLI, Qwen Code, Gemini CLI, pi and opencode: hooks
    that call tacit-hook, which has to be on the PATH, and the skill that explains Tacit. It is for
    sharing with a team; on your own machine `tacit connect` is surer. Both at once do no harm.
    """
    target = os.path.abspath(os.path.expanduser(path))
    if os.path.lexists(target) and not os.path.isdir(target):
        raise Usage(f"{target} is not a folder", "name a new folder")
    if os.path.isdir(target) and os.listdir(target) and not force:
        raise Refused(f"{target} is not empty", "name a new folder, or add --force")
    written = _files()
    for name, data in written.items():
        write_atomic(os.path.join(target, name), data, durable=False, mode=0o644)
    if as_json:
        output.write_json({"path": target, "files": list(written)})
        return 0
    click.echo(f"Wrote {counted(len(written), 'file')} to {paths.shorten(target)}")
    click.echo("How each agent installs it: tacit plugin --help, or docs/hosts.md")
    return 0


def _files() -> dict[str, bytes]:
    """The plugin's files, with the skills that Tacit ships."""
    from tacit.skills.scopes import BUNDLED
    from tacit.traces.plugin import files

    found = files(__version__)
    for folder, _, names in os.walk(BUNDLED):
        for name in sorted(names):
            full = os.path.join(folder, name)
            with open(full, "rb") as file:
                found[os.path.join("skills", os.path.relpath(full, BUNDLED))] = file.read()
    return found
