"""`tacit config`: the settings as they stand."""

import difflib
import os
from typing import Any

import click

from tacit.base import paths, settings
from tacit.base.errors import NotFound
from tacit.base.terminal import one_line
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  tacit config                       all settings and where each comes from
  tacit config search.limit          one value
  tacit config --path                the file to edit

Later sources win: defaults, the user's file, <project>/.tacit/config.toml (when the project is
trusted), TACIT_SECTION_KEY variables, flags.
"""


@click.command(epilog=_EPILOG)
@click.argument("key", required=False)
@click.option("--path", "only_path", is_flag=True, help="Print the path of the user's file.")
@output.json_option
def command(key: str | None, only_path: bool, as_json: bool) -> int:
    """Show the settings and where each comes from."""
    file = paths.folders().config_file
    if only_path:
        if as_json:
            output.write_json({"path": file})
        else:
            click.echo(file)
        return 0
    loaded = settings.load()
    values = loaded.values()
    if key is not None:
        chosen = [value for value in values if value.key == key]
        if not chosen:
            near = difflib.get_close_matches(key, [value.key for value in values], 1)
            hint = f"did you mean '{near[0]}'?" if near else "see all of them: tacit config"
            raise NotFound(f"there is no setting '{key}'", hint)
        if as_json:
            output.write_json(chosen[0])
        else:
            click.echo(_shown(chosen[0].value))
        return 0
    if as_json:
        output.write_json({"settings": values, "ignored": loaded.ignored, "strays": loaded.strays})
        return 0
    rows = [
        (v.key, one_line(_shown(v.value)), one_line(paths.shorten(v.source)), v.about)
        for v in values
    ]
    click.echo(output.table(("setting", "value", "from", "what it is"), rows))
    click.echo()
    for path in loaded.ignored:
        shown = one_line(paths.shorten(path))
        click.echo(f"Not used, as the project is not trusted: {shown} (tacit trust)")
    for stray in loaded.strays:
        click.echo(f"Sets nothing: {one_line(stray.name)} ({stray.hint})")
    state = "" if os.path.exists(file) else " (does not exist yet)"
    click.echo(f"Your file: {paths.shorten(file)}{state}")
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(str(part) for part in value) + "]"
    return str(value)
