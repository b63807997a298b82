"""`tacit config` and `tacit trust`: settings and their sources, and projects whose own count."""

import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from tacit.base import paths, trust
from tacit.base.display import one_line, plain
from tacit.base.errors import NotFound, Usage, near_names
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
    from msgspec import to_builtins

    from tacit.base import settings

    loaded = settings.load_settings()
    values = [_concealed(value) for value in loaded.values()]
    if as_json:
        rows = [to_builtins(v) | {"choices": settings.choices(v.key)} for v in values]
        return output.write_json(
            {
                "file": file,
                "settings": rows,
                "ignored": loaded.ignored,
                "strays": loaded.strays,
                "refused": loaded.refused,
                "proposed": sorted(loaded.proposed),
            }
        )
    rows = [
        (v.key, one_line(_shown_value(v.value)), one_line(paths.with_tilde(v.source)), v.about)
        for v in values
    ]
    click.echo(output.table(("setting", "value", "from", "what it is"), rows))
    aside = not sys.stdout.isatty() and not os.environ.get("COLUMNS")
    if not aside:  # a list in a pipe holds its rows alone
        click.echo()
    for path in loaded.ignored:
        shown = one_line(paths.with_tilde(path))
        click.echo(f"Not used, as the project is not trusted: {shown} (tacit trust)", err=aside)
    if loaded.refused:
        names = ", ".join(map(one_line, loaded.refused))
        click.echo(f"Not used, as no project may set it: {names}", err=aside)
    for name in loaded.proposed:
        shown = one_line(name)
        click.echo(f"Not started, as you did not allow it: the MCP server {shown}", err=aside)
    for stray in loaded.strays:
        meant = f" (did you mean {stray.near}?)" if stray.near else ""
        click.echo(f"Sets nothing: {one_line(stray.name)}{meant}", err=aside)
    state = "" if os.path.exists(file) else " (does not exist yet)"
    if not aside:
        click.echo(f"Your file: {paths.with_tilde(file)}{state}")
    return 0


def _write_setting(key: str, as_json: bool) -> int:
    value = _concealed(_find_setting(key))
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
    if key == "learn.holdback":  # the programs of ours in agents draw by what is prepared for them
        from tacit.work.host_briefings import follow

        follow(paths.user_home())
    now = _concealed(_find_setting(key))
    if as_json:
        return output.write_json(now)
    click.echo(
        f"{key} is {_shown_value(now.value) or 'empty'}, from {_shown_source(now.source, path)}"
    )
    return 0


def _default_value(key: str) -> Any:
    from tacit.base import settings
    from tacit.base.setting_sections import Settings

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
        near = near_names(key, [value.key for value in values], 1)
        hint = f"did you mean '{near[0]}'?" if near else "see all of them: tacit config"
        raise NotFound(f"there is no setting '{key}'", hint)
    return chosen


_TELLING = re.compile(r"(?i)token|key|secret|passw|pwd|auth|credential|cookie")
_HIDDEN = "…"


def _concealed(setting: "settings.Setting") -> "settings.Setting":
    """The setting without tokens of MCP servers and passwords in addresses."""
    import msgspec

    return msgspec.structs.replace(setting, value=_without_secrets(setting.value))


def _without_secrets(value: Any) -> Any:
    import msgspec

    from tacit.base.setting_sections import McpServer

    if isinstance(value, str):
        return _without_password(value)
    if isinstance(value, tuple):
        return tuple(map(_without_secrets, value))
    if isinstance(value, dict):
        return {name: _without_secrets(part) for name, part in value.items()}
    if isinstance(value, McpServer):
        return msgspec.structs.replace(
            value,
            args=_without_tokens(value.args),
            env=dict.fromkeys(value.env, _HIDDEN),
            url=_without_password(value.url),
        )
    return value


def _without_tokens(words: tuple[str, ...]) -> tuple[str, ...]:
    """Arguments without the values of options that sound like keys."""
    found = []
    before = ""
    for word in words:
        name, equals, _ = word.partition("=")
        if before.startswith("-") and "=" not in before and _TELLING.search(before):
            found.append(_HIDDEN)
        else:
            hidden = equals and _TELLING.search(name)
            shown = _without_password(name if hidden else word)
            found.append(f"{shown}={_HIDDEN}" if hidden else shown)
        before = word
    return tuple(found)


def _without_password(text: str) -> str:
    """`text` without what looks like a secret, and without user and query of an address."""
    from tacit.base import secrets

    text = re.sub(r"(?<=://)[^/\s@]*@", f"{_HIDDEN}@", text)
    text = re.sub(r"(?<=[?&])([^=&\s#]+)=[^&\s#]+", rf"\1={_HIDDEN}", text)
    return secrets.redact(text).text


def _shown_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(str(part) for part in value) + "]"
    return str(value)


@command(
    "trust",
    "setup",
    "Allow a project's own skills, instructions and harmless settings to count.",
    "tacit trust                        the project that you are in, and what that gives",
    "tacit trust ~/work/app             another project",
    "tacit trust --server NAME          also start an MCP server that it proposes",
    "tacit trust --list",
    "tacit trust --remove ~/work/old",
    note="A project's .tacit/config.toml may set agent.command_seconds, catalogue.budget, "
    "improve.use, learn.after_calls, learn.after_messages, learn.chat_iterations, "
    "memory.chat_turns, memory.kilobytes, memory.lines, memory.use, schedule.catch_up, "
    "schedule.overlap, schedule.zone, search.limit and skills.hosts, and nothing else. MCP "
    "servers that it proposes start only when you allow each of them, for that file as it is.",
)
@click.argument("folder", required=False, type=click.Path())
@click.option("--list", "listing", is_flag=True, help="List the trusted folders.")
@click.option("--remove", is_flag=True, help="Take the trust back.")
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME",
    help="Let this MCP server of the project's settings start, outside the sandbox.",
)
def trust_command(
    folder: str | None, listing: bool, remove: bool, servers: tuple[str, ...], as_json: bool
) -> int:
    """Allow a project's own skills, instructions and harmless settings to count.

    Skills that come with a clone are somebody else's instructions to your agent. They are listed,
    but not loaded, until you trust the project. Trust holds for that project alone: not for
    another one below it, nor for what is cloned there later.
    """
    if listing:
        return _list_trusted(as_json)
    target = os.path.abspath(os.path.expanduser(folder)) if folder else paths.project_root(".")
    if not folder and paths.is_home(target):
        raise Usage(
            "this is your home folder, not a project", "go to the project, or name a folder"
        )
    if remove:
        return _take_back(target, as_json)
    if not os.path.isdir(target):
        raise NotFound(f"there is no folder {target}", "name an existing folder")
    if os.path.realpath(target) == os.path.realpath(os.sep):
        raise Usage("the whole disk cannot be trusted", "name the folder of your project")
    target = paths.project_root(target)
    gives = _what_it_gives(target)
    unknown = [name for name in servers if name not in gives.file.proposed]
    if unknown and not set(unknown) <= gives.file.servers.keys():
        raise NotFound(
            f"the project proposes no MCP server '{one_line(unknown[0])}'", "see them: tacit trust"
        )
    changed = trust.add(target)
    _show_to_agents(target)
    allowed = [name for name in servers if name in gives.file.proposed]
    if not as_json:
        _tell_what_it_gives(target, gives, changed)
        allowed += [n for n in gives.file.proposed if n not in allowed and _asked(n, gives, target)]
    for name in allowed:
        trust.allow_server(gives.path, gives.file.digest, name)
    waiting = [name for name in gives.file.proposed if name not in allowed]
    if as_json:
        return output.write_json(_given_as_json(target, gives, changed, waiting))
    for name in waiting:
        click.echo(
            f"Not started: {one_line(name)}. Allow it: tacit trust --server {one_line(name)}"
        )
    click.echo(f"Undo with: tacit trust --remove {plain(paths.with_tilde(target))}")
    return 0


class _Gives(NamedTuple):
    """What trust in a project gives to it."""

    skills: list[str]
    instructions: list[str]
    facts: int
    path: str
    """Its file of settings."""
    file: "settings.ProjectFile"


def _what_it_gives(project: str) -> _Gives:
    from tacit.agent.instructions import INSTRUCTION_FILES
    from tacit.base import settings
    from tacit.skills.fact import MEMORY_FOLDER
    from tacit.skills.index_builder import walk
    from tacit.skills.scopes import skill_roots
    from tacit.skills.skill_file import SKILL_FILE_NAMES

    path = os.path.join(project, ".tacit", "config.toml")
    file = settings.read_project_file(path) if os.path.isfile(path) else settings.ProjectFile({})
    roots = [root for root in skill_roots(project) if root.scope == "project"]
    skills = {
        os.path.basename(folder)
        for root in roots
        for folder in walk(root.path).skills
        if any(_is_own(project, root.path, folder, name) for name in SKILL_FILE_NAMES)
    }
    facts = os.path.join(project, MEMORY_FOLDER)
    noted = os.listdir(facts) if os.path.isdir(facts) else []
    return _Gives(
        sorted(skills),
        [name for name in INSTRUCTION_FILES if _is_own(project, name)],
        sum(_is_own(project, facts, name) for name in noted),
        path,
        file,
    )


def _is_own(project: str, *parts: str) -> bool:
    """Whether what lies there in the project is no link out of it, which is not followed."""
    real = os.path.realpath(os.path.join(project, *parts))
    return os.path.exists(real) and paths.is_inside(real, os.path.realpath(project))


def _tell_what_it_gives(project: str, gives: _Gives, changed: bool) -> None:
    shown = plain(paths.with_tilde(project))
    click.echo(f"{'Trusted' if changed else 'Already trusted'}: {shown}, and no project below it")
    rows = []
    if gives.skills:
        more = f" and {len(gives.skills) - 8} more" if len(gives.skills) > 8 else ""
        names = ", ".join(map(one_line, gives.skills[:8]))
        rows.append(("skills are loaded", f"{names}{more}"))
    if gives.instructions:
        rows.append(("read to the model", ", ".join(gives.instructions)))
    if gives.facts:
        rows.append(("facts are recalled", f"{gives.facts:,}"))
    for section, part in gives.file.values.items():
        for field, value in part.items():
            key = f"{section}.{field}"
            rows.append(("set by the project", f"{key} = {one_line(_shown_value(value))}"))
    if gives.file.refused:
        rows.append(("not its to set, left out", ", ".join(map(one_line, gives.file.refused))))
    rows += [("MCP server, allowed", one_line(name)) for name in gives.file.servers]
    for what, value in rows:
        click.echo(f"  {what}: {value}")
    if not rows:
        click.echo("  It has no skills, instructions, facts or settings of its own yet.")


def _asked(name: str, gives: _Gives, project: str) -> bool:
    """Show an MCP server that the project proposes, and ask whether it may start."""
    from tacit.base import settings

    server = gives.file.proposed[name]
    words = [server.command, *server.args] if not server.url else [server.url]
    click.echo(f"It proposes the MCP server '{one_line(name)}', outside the sandbox and as you:")
    click.echo(f"  {one_line(' '.join(words))}")
    for variable, value in server.env.items():
        click.echo(f"  with {one_line(f'{variable}={value}')}")
    for file in settings.files_of(server, gives.path):
        name = one_line(os.path.relpath(file, os.path.realpath(project)))
        click.echo(f"  {name} is a file of the project: you are asked again when it changes,")
        click.echo("  and not when another does that it makes use of")
    return sys.stdin.isatty() and click.confirm("Let it start?", default=False)


def _given_as_json(
    project: str, gives: _Gives, changed: bool, waiting: list[str]
) -> dict[str, object]:
    return {
        "folder": project,
        "trusted": trust.is_trusted(project),
        "changed": changed,
        "skills": gives.skills,
        "instructions": gives.instructions,
        "facts": gives.facts,
        "settings": gives.file.values,
        "refused": gives.file.refused,
        "proposed": waiting,
    }


def _take_back(target: str, as_json: bool) -> int:
    if not trust.remove(target):
        raise NotFound(f"{target} is not in the list", "see it: tacit trust --list")
    _show_to_agents(target)
    if as_json:
        return output.write_json({"folder": target, "trusted": False, "changed": True})
    click.echo(f"No longer trusted: {plain(paths.with_tilde(target))}.")
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
