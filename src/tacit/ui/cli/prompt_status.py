"""`tacit prompt-status`: the line for the shell's prompt. `fast.py` answers the plain call."""

import click

from tacit.base import paths, prompt_line
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  PROMPT_COMMAND='tacit prompt-status'           bash: in ~/.bashrc
  precmd() { tacit prompt-status }               zsh: in ~/.zshrc
  function tacit_news --on-event fish_prompt     fish: in config.fish
    tacit prompt-status; end
  [custom.tacit]                                 starship: in ~/.config/starship.toml
  command = "tacit prompt-status"
  when = true
"""


@click.command(epilog=_EPILOG)
@output.json_option
def command(as_json: bool) -> int:
    """Print what was learned since the last prompt in one line, or nothing.

    Each thing is told once: what happened, the command that shows it, the command that takes it
    back. Meant to be called before every prompt; it only looks whether a small file is there.
    """
    text = prompt_line.take(paths.folders().data)
    if as_json:
        output.write_json({"line": text})
    elif text:
        click.echo(text)
    return 0
