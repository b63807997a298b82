"""`tacit config` and `tacit trust`: settings and their sources, and projects whose own count."""

import difflib
import os
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from tacit.base import paths, trust
from tacit.base.display import one_line, plain
from tacit.base.errors import NotFound, Usage
from tacit.ui.cli import output
from tacit.ui.cli.command import command

if TYPE_CHECKING:
    from tacit.base import settings

_VERBS = ("set", "unset")


def complete_setting(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What can follow: a setting, or after `set KEY` one of its values. Disturbs no prompt."""
    from tacit.base import settings

    try:
        before: tuple[str, ...] = tuple(ctx.params.get("words") or ())
        if len(before) == 2 and before[0] == "set":
            return [
                CompletionItem(v) for v in settings.choices(before[1]) if v.startswith(incomplete)
            ]
        known = [CompletionItem(v.key, help=v.about) for v in settings.load_settings().values()]
        known += [CompletionItem(verb) for verb in _VERBS if not before]
    except Exception:
        return []
    return [item for item in known if item.value.startswith(incomplete)]


@command(
    "config",
    "setup",
    "Show the settings and where each comes from, or set one.",
    "tacit config                       all settings and where each comes from",
    "tacit config search.limit          one value",
    "tacit config set learn.approval auto",
    'tacit config set agent.allow "run_command:git *" "run_command:make *"',
    "tacit config unset learn.approval  back to the default",
    "tacit config --path                the file to edit",
    note="Later sources win: defaults, the user's file, <project>/.tacit/config.toml (when the "
    "project is trusted), TACIT_SECTION_KEY variables, flags. `set` and `unset` write the "
    "user's file, and leave all other text in it as it is.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument(
    "words",
    nargs=-1,
    metavar="[KEY | set KEY VALUE... | unset KEY]",
    shell_complete=complete_setting,
)
@click.option("--path", "only_path", is_flag=True, help="Print the path of the user's file.")
def config_command(words: tuple[str, ...], only_path: bool, as_json: bool) -> int:
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
            return _write_settings(file, as_json)
        case ("set", key, value, *more):
            return _change_setting(key, (value, *more), as_json)
        case ("unset", key):
            return _change_setting(key, None, as_json)
        case ("set" | "unset", *_):
            raise Usage(
                f"say what to {words[0]}", "tacit config set KEY VALUE, or: tacit config unset KEY"
            )
        case (key,):
            return _write_setting(key, as_json)
    raise Usage(
        f"'{words[0]}' is not to be set to anything", f"to set it: tacit config set {words[0]} …"
    )


def _write_settings(file: str, as_json: bool) -> int:
    from tacit.base import settings

    loaded = settings.load_settings()
    values = loaded.values()
    if as_json:
        return output.write_json(
            {"settings": values, "ignored": loaded.ignored, "strays": loaded.strays}
        )
    rows = [
        (v.key, one_line(_shown_value(v.value)), one_line(paths.with_tilde(v.source)), v.about)
        for v in values
    ]
    click.echo(output.table(("setting", "value", "from", "what it is"), rows))
    click.echo()
    for path in loaded.ignored:
        shown = one_line(paths.with_tilde(path))
        click.echo(f"Not used, as the project is not trusted: {shown} (tacit trust)")
    for stray in loaded.strays:
        meant = f" (did you mean {stray.near}?)" if stray.near else ""
        click.echo(f"Sets nothing: {one_line(stray.name)}{meant}")
    state = "" if os.path.exists(file) else " (does not exist yet)"
    click.echo(f"Your file: {paths.with_tilde(file)}{state}")
    return 0


def _write_setting(key: str, as_json: bool) -> int:
    value = _find_setting(key)
    if as_json:
        output.write_json(value)
    else:
        click.echo(_shown_value(value.value))
    return 0


def _change_setting(key: str, given: tuple[str, ...] | None, as_json: bool) -> int:
    """Write one setting, or take it out of the file; then say what holds here."""
    from tacit.base import config_file

    default = _default_value(key)
    if given is None:
        path = config_file.set_values({key: None})
    else:
        if isinstance(default, dict):
            raise Usage(f"'{key}' is a table", f"write it in {paths.folders().config_file}")
        if not isinstance(default, tuple) and len(given) > 1:
            raise Usage(f"'{key}' takes one value", f'write it in quotes: "{" ".join(given)}"')
        wanted: Any = given if isinstance(default, tuple) else given[0]
        # Read as a flag is: it stands in for a bad value in the file, is checked against its type,
        # and turned into it.
        value = _find_setting(key, {key: wanted}).value
        path = config_file.set_values({key: list(value) if isinstance(value, tuple) else value})
    now = _find_setting(key)
    if as_json:
        return output.write_json(now)
    click.echo(
        f"{key} is {_shown_value(now.value) or 'empty'}, from {_shown_source(now.source, path)}"
    )
    return 0


def _default_value(key: str) -> Any:
    from tacit.base import settings
    from tacit.base.settings import Settings

    values = settings.LoadedSettings(Settings(), {}).values()
    return _setting_named(key, values).value


def _shown_source(source: str, path: str) -> str:
    if source in (path, "default"):
        return paths.with_tilde(path) if source == path else "the defaults"
    return f"{one_line(paths.with_tilde(source))}, which wins over your file"


def _find_setting(key: str, flags: dict[str, Any] | None = None) -> "settings.Setting":
    from tacit.base import settings

    loaded = settings.load_settings(flags=flags, given="what was given to tacit config set")
    return _setting_named(key, loaded.values())


def _setting_named(key: str, values: "list[settings.Setting]") -> "settings.Setting":
    chosen = next((value for value in values if value.key == key), None)
    if chosen is None:
        near = difflib.get_close_matches(key, [value.key for value in values], 1)
        hint = f"did you mean '{near[0]}'?" if near else "see all of them: tacit config"
        raise NotFound(f"there is no setting '{key}'", hint)
    return chosen


def _shown_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(str(part) for part in value) + "]"
    return str(value)


@command(
    "trust",
    "setup",
    "Allow a project's own skills and settings to count.",
    "tacit trust                        the project that you are in",
    "tacit trust ~/work                 a folder and all below it",
    "tacit trust --list",
    "tacit trust --remove ~/work/old",
)
@click.argument("folder", required=False, type=click.Path())
@click.option("--list", "listing", is_flag=True, help="List the trusted folders.")
@click.option("--remove", is_flag=True, help="Take the trust back.")
def trust_command(folder: str | None, listing: bool, remove: bool, as_json: bool) -> int:
    """Allow a project's own skills and settings to count.

    Skills that come with a clone are somebody else's instructions to your agent. They are listed,
    but not loaded, until you trust the project. Trust holds for a folder and what lies below it.
    """
    if listing:
        return _list_trusted(as_json)
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
    _show_to_agents(target)
    if as_json:
        return output.write_json(
            {"folder": target, "trusted": trust.is_trusted(target), "changed": changed}
        )
    shown = plain(paths.with_tilde(target))
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


def _show_to_agents(folder: str) -> None:
    """Have connected agents find what counts in a project by now."""
    from tacit.work.host_links import keep_up

    if os.path.isdir(folder):
        keep_up(folder)


def _list_trusted(as_json: bool) -> int:
    known = trust.trusted()
    if as_json:
        output.write_json({"trusted": known})
    elif known:
        for path in known:
            gone = "" if os.path.isdir(path) else click.style("  (does not exist)", dim=True)
            click.echo(f"{plain(paths.with_tilde(path))}{gone}")
    else:
        click.echo("No folder is trusted yet. Trust the project you are in: tacit trust")
    return 0
