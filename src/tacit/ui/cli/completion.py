"""`tacit completion`: the script for a shell."""

import os

import click
from click.shell_completion import get_completion_class

from tacit.base.errors import Usage
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  tacit completion bash > ~/.local/share/bash-completion/completions/tacit
  tacit completion zsh > "${fpath[1]}/_tacit"
  tacit completion fish > ~/.config/fish/completions/tacit.fish
"""


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), required=False)
@output.json_option
def command(shell: str | None, as_json: bool) -> int:
    """Print the script that completes commands in a shell.

    Commands, options and names of skills are completed. Without SHELL, the one in $SHELL is taken.
    """
    shell = shell or os.path.basename(os.environ.get("SHELL", ""))
    kind = get_completion_class(shell)
    if kind is None or shell not in ("bash", "zsh", "fish"):
        raise Usage(f"the shell '{shell}' is not known", "name one of: bash, zsh, fish")
    from tacit.ui.cli.app import tacit

    script = kind(tacit, {}, "tacit", "_TACIT_COMPLETE").source()
    if as_json:
        output.write_json({"shell": shell, "script": script})
    else:
        click.echo(script)
    return 0
