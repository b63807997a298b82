"""`tacit show`: a skill as a person wants to read it."""

import os
import sqlite3
import sys
from contextlib import suppress
from typing import Any

import click

from tacit.base.paths import shorten
from tacit.base.terminal import can_colour, one_line, plain
from tacit.skills import archive
from tacit.skills.library import Entry, Library
from tacit.skills.lint import lint
from tacit.skills.reading import read_skill
from tacit.skills.skill import Problem, Skill
from tacit.ui.cli import output
from tacit.ui.cli.names import complete_skill

_MOST_FILES = 200
_MARKS = ("learned", "learned-by", "revised", "sessions")
"""What the review writes under `metadata` of a skill that it made."""

_EPILOG = """\b
Examples:
  tacit show code-review
  tacit show code-review --raw       SKILL.md as it stands in the file
  tacit show ./my-skill              a folder that is not in the library
"""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.option("--raw", is_flag=True, help="Only the text of SKILL.md, as it is.")
@output.json_option
def command(name: str, raw: bool, as_json: bool) -> int:
    """Read a skill, and see where it comes from.

    NAME is the skill's name, the name of its folder, or a path. Shown are the text, the files, the
    scope, what it shadows or is shadowed by, and its problems.
    """
    library = Library()
    entry = library.find(name)
    if entry is None and os.path.exists(os.path.expanduser(name)):
        skill = read_skill(os.path.expanduser(name))
    else:
        entry = entry or next(iter(archive.find(library, name)), None) or library.get(name)
        skill = read_skill(os.path.join(entry.folder, entry.file))
    folder = str(skill.folder)
    if raw:
        with open(os.path.join(folder, skill.file), "rb") as file:
            data = file.read()
        on_terminal = sys.stdout.isatty()
        click.echo(plain(data.decode("utf-8", "replace")) if on_terminal else data, nl=False)
        return 0
    problems = lint(folder)
    files = _files(folder)
    if as_json:
        output.write_json(_as_json(library, entry, skill, files, problems))
        return 0
    _write(library, entry, skill, files, problems)
    if entry is not None:
        _viewed(entry.name)
    return 0


def _viewed(name: str) -> None:
    """Count that a person looked at it; where nothing is kept yet, or can be, so be it."""
    from tacit.base import database

    if os.path.exists(database.default_path()):
        from tacit.base.errors import TacitError
        from tacit.learn.recording import viewed

        with suppress(TacitError, sqlite3.Error):
            viewed(name)


def _as_json(
    library: Library, entry: Entry | None, skill: Skill, files: list[str], problems: list[Problem]
) -> dict[str, Any]:
    winner = library.shadowing(entry) if entry else None
    return {
        "skill": {
            name: getattr(skill, name) for name in skill.__struct_fields__ if name != "problems"
        }
        | {"folder": str(skill.folder)},
        "entry": entry,
        "files": files,
        "shadows": [e.folder for e in library.shadowed(entry)] if entry else [],
        "shadowed_by": winner.folder if winner else None,
        "problems": problems,
    }


def _write(
    library: Library, entry: Entry | None, skill: Skill, files: list[str], problems: list[Problem]
) -> None:
    name = plain(skill.name)
    version = f" {plain(skill.version)}" if skill.version else ""
    click.echo(f"{click.style(name, bold=True)}{click.style(version, dim=True)}")
    for label, value in _facts(library, entry, skill):
        shown = plain(value)
        if label == "state":
            shown = click.style(shown, fg="yellow")
        click.echo(f"{click.style(f'{label:<12}', dim=True)} {shown}")
    click.echo()
    click.echo(output.wrapped(plain(skill.description)) or click.style("(none)", dim=True))
    click.echo()
    _write_body(skill.body)
    if len(files) > 1:
        click.echo(f"\n{click.style('Files', bold=True)}")
        for file in files[:_MOST_FILES]:
            click.echo(f"  {plain(file)}")
        if len(files) > _MOST_FILES:
            click.echo(f"  … and {len(files) - _MOST_FILES:,} more in {plain(str(skill.folder))}")
    if problems:
        click.echo(f"\n{click.style('Problems', bold=True)}")
        for found in problems:
            output.write_problem(found)


def _facts(library: Library, entry: Entry | None, skill: Skill) -> list[tuple[str, str]]:
    facts = []
    if entry is None:
        facts.append(("folder", f"{shorten(str(skill.folder))} (not in the library)"))
    else:
        host = "" if entry.host in ("agents", "tacit", "settings") else f", {entry.host}"
        facts.append(("scope", f"{entry.scope}{host}"))
        facts.append(("origin", entry.origin))
        if entry.origin == "learned":
            facts.extend(_learned(skill))
        facts.append(("folder", shorten(entry.folder)))
        if entry.also:
            facts.append(("also", ", ".join(shorten(path) for path in entry.also)))
        if entry.state == "archived":
            facts.append(("state", f"archived: tacit restore {skill.name}"))
        if entry.state == "untrusted":
            facts.append(("state", "not trusted, not loaded: tacit trust"))
        if winner := (library.shadowing(entry) if entry.state == "shadowed" else None):
            place = shorten(winner.folder)
            facts.append(("state", f"shadowed by {place}"))
        facts.extend(("shadows", shorten(other.folder)) for other in library.shadowed(entry))
    optional = {
        "alias": ", ".join(skill.aliases),
        "license": skill.license,
        "needs": skill.compatibility,
        "tools": " ".join(skill.allowed_tools),
        "when": skill.when_to_use,
        "arguments": skill.argument_hint,
        "paths": ", ".join(skill.paths),
        "model": "may not call it" if skill.disable_model_invocation else "",
        "user": "" if skill.user_invocable else "may not call it",
    }
    facts.extend((label, value) for label, value in optional.items() if value)
    return facts


def _learned(skill: Skill) -> list[tuple[str, str]]:
    """When, by which model and from which sessions, as far as the skill itself says so."""
    said = {key: one_line(str(skill.metadata.get(key, ""))) for key in _MARKS}
    by = f" by {said['learned-by']}" if said["learned-by"] else ""
    revised = f", revised {said['revised']}" if said["revised"] else ""
    if not said["learned"]:
        return []
    facts = [("learned", f"{said['learned']}{by}{revised}")]
    if said["sessions"]:
        facts.append(("from", said["sessions"]))
    return facts


def _write_body(body: str) -> None:
    text = plain(body).strip("\n")
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(no_color=not can_colour(), width=min(output.columns(), 100))
    console.print(Markdown(text, hyperlinks=False))


def _files(folder: str) -> list[str]:
    """The files of the skill, SKILL.md first, relative to its folder."""
    found: list[str] = []
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        found.extend(os.path.relpath(os.path.join(here, name), folder) for name in sorted(names))
    return sorted(found, key=lambda path: (path.lower() != "skill.md", path))
