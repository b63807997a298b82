"""`tacit config`: the settings as they stand, and setting one in the user's file."""

import difflib
import os
from typing import Any

import click
from click.shell_completion import CompletionItem

from tacit.base import config_file, paths, settings
from tacit.base.errors import NotFound, Usage
from tacit.base.sections import Settings
from tacit.base.terminal import one_line
from tacit.ui.cli import output

_EPILOG = """\b
Examples:
  tacit config                       all settings and where each comes from
  tacit config search.limit          one value
  tacit config set learn.approval auto
  tacit config set agent.allow "run_command:git *" "run_command:make *"
  tacit config unset learn.approval  back to the default
  tacit config --path                the file to edit

Later sources win: defaults, the user's file, <project>/.tacit/config.toml (when the project is
trusted), TACIT_SECTION_KEY variables, flags. `set` and `unset` write the user's file, and leave all
other text in it as it is.
"""
_VERBS = ("set", "unset")


def complete_words(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What can follow: a setting, or after `set KEY` one of its values. Disturbs no prompt."""
    try:
        before: tuple[str, ...] = tuple(ctx.params.get("words") or ())
        if len(before) == 2 and before[0] == "set":
            return [
                CompletionItem(v) for v in settings.choices(before[1]) if v.startswith(incomplete)
            ]
        known = [CompletionItem(v.key, help=v.about) for v in settings.load().values()]
        known += [CompletionItem(verb) for verb in _VERBS if not before]
    except Exception:
        return []
    return [item for item in known if item.value.startswith(incomplete)]


@click.command(epilog=_EPILOG, context_settings={"ignore_unknown_options": True})
@click.argument(
    "words",
    nargs=-1,
    metavar="[KEY | set KEY VALUE... | unset KEY]",
    shell_complete=complete_words,
)
@click.option("--path", "only_path", is_flag=True, help="Print the path of the user's file.")
@output.json_option
def command(words: tuple[str, ...], only_path: bool, as_json: bool) -> int:
    """Show the settings and where each comes from, or set one."""
    file = paths.folders().config_file
    if only_path:
        if as_json:
            output.write_json({"path": file})
        else:
            click.echo(file)
        return 0
    match words:
        case ():
            return _all(file, as_json)
        case ("set", key, value, *more):
            return _change(key, (value, *more), as_json)
        case ("unset", key):
            return _change(key, None, as_json)
        case ("set" | "unset", *_):
            raise Usage(
                f"say what to {words[0]}", "tacit config set KEY VALUE, or: tacit config unset KEY"
            )
        case (key,):
            return _one(key, as_json)
    raise Usage(
        f"'{words[0]}' is not to be set to anything", f"to set it: tacit config set {words[0]} …"
    )


def _all(file: str, as_json: bool) -> int:
    loaded = settings.load()
    values = loaded.values()
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
        meant = f" (did you mean {stray.near}?)" if stray.near else ""
        click.echo(f"Sets nothing: {one_line(stray.name)}{meant}")
    state = "" if os.path.exists(file) else " (does not exist yet)"
    click.echo(f"Your file: {paths.shorten(file)}{state}")
    return 0


def _one(key: str, as_json: bool) -> int:
    value = _find(key)
    if as_json:
        output.write_json(value)
    else:
        click.echo(_shown(value.value))
    return 0


def _change(key: str, given: tuple[str, ...] | None, as_json: bool) -> int:
    """Write one setting, or take it out of the file; then say what holds here."""
    default = _default(key)
    if given is None:
        path = config_file.put({key: None})
    else:
        if isinstance(default, dict):
            raise Usage(f"'{key}' is a table", f"write it in {paths.folders().config_file}")
        if not isinstance(default, tuple) and len(given) > 1:
            raise Usage(f"'{key}' takes one value", f'write it in quotes: "{" ".join(given)}"')
        wanted: Any = given if isinstance(default, tuple) else given[0]
        # Read as a flag is: it stands in for a bad value in the file, is checked against its type,
        # and turned into it.
        value = _find(key, {key: wanted}).value
        path = config_file.put({key: list(value) if isinstance(value, tuple) else value})
    now = _find(key)
    if as_json:
        output.write_json(now)
        return 0
    click.echo(f"{key} is {_shown(now.value) or 'empty'}, from {_source(now.source, path)}")
    return 0


def _default(key: str) -> Any:
    values = settings.Loaded(Settings(), {}).values()
    return _named(key, values).value


def _source(source: str, path: str) -> str:
    if source in (path, "default"):
        return paths.shorten(path) if source == path else "the defaults"
    return f"{one_line(paths.shorten(source))}, which wins over your file"


def _find(key: str, flags: dict[str, Any] | None = None) -> settings.Value:
    loaded = settings.load(flags=flags, given="what was given to tacit config set")
    return _named(key, loaded.values())


def _named(key: str, values: list[settings.Value]) -> settings.Value:
    chosen = next((value for value in values if value.key == key), None)
    if chosen is None:
        near = difflib.get_close_matches(key, [value.key for value in values], 1)
        hint = f"did you mean '{near[0]}'?" if near else "see all of them: tacit config"
        raise NotFound(f"there is no setting '{key}'", hint)
    return chosen


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(str(part) for part in value) + "]"
    return str(value)
