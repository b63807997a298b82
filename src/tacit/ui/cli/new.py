"""`tacit new`: make a skill."""

import os
import sys

import click

from tacit.base import trust
from tacit.base.errors import Usage
from tacit.base.paths import shorten
from tacit.changes.change import Create
from tacit.skills.naming import suggest
from tacit.skills.search import Search
from tacit.ui.cli import gating, output
from tacit.ui.cli.search import indexing_progress

_EPILOG = """\b
Examples:
  tacit new standup-notes                        opens your editor on a template
  tacit new standup-notes -d "Notes for the daily stand-up. Use in the morning." --body "1. …"
  tacit new release --project --from draft.md    a whole SKILL.md, or only its body
  tacit new release --from ./folder              a folder with support files
"""
_TEMPLATE = """---
name: {name}
description: {description}
---

{body}
"""
_BODY = """1. The first step, as a command to the agent.
2. The next one.
"""


@click.command(epilog=_EPILOG)
@click.argument("name")
@click.option("-d", "--description", default="", help="What it does and when to use it.")
@click.option("--body", default="", help="The instructions.")
@click.option("--from", "source", help="A SKILL.md, a body, a folder, or '-' for standard input.")
@click.option("--project", is_flag=True, help="In this project, not in your own skills.")
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--override", multiple=True, help="Set a rule of the scan aside, on record.")
@output.json_option
def command(
    name: str,
    description: str,
    body: str,
    source: str | None,
    project: bool,
    reason: str,
    override: tuple[str, ...],
    as_json: bool,
) -> int:
    """Make a skill.

    Without --body or --from, your editor opens on a template. The skill passes the same checks as
    every change: the open standard, a scan for secrets and planted instructions, size, and whether
    it repeats a skill that is there.
    """
    gate, library = gating.open_gate()
    place = gating.place_for(project)
    files = _files(name, description, body, source)
    if files is None:
        click.echo("Nothing was written, so nothing was made.", err=True)
        return 1
    with indexing_progress() as progress:
        if progress is not None:  # a new skill is compared with all others: the first time takes
            Search(library, progress)
    verdict = gating.propose(
        gate, place.root, name, Create(files), reason=reason, overrides=override
    )
    done = f"Made {name} in {shorten(os.path.join(place.root, name))}"
    code = gating.tell(verdict, done, as_json)
    if verdict.applied and project and not as_json and not trust.is_trusted(place.project):
        click.echo("This project is not trusted yet, so its skills are not loaded: tacit trust")
    if verdict.refused and not as_json:
        kept = gating.keep_text(files["SKILL.md"].decode("utf-8", "replace"), name)
        click.echo(f"Your text is kept: tacit new {name} --from {shorten(kept)}", err=True)
    return code


def _files(name: str, description: str, body: str, source: str | None) -> dict[str, bytes] | None:
    if source and os.path.isdir(source):
        return _folder(source)
    if source:
        text = _text(source)
        whole = text.startswith("---")
        return {"SKILL.md": (text if whole else _whole(name, description, text)).encode()}
    if body:
        return {"SKILL.md": _whole(name, description, body).encode()}
    about = description or "What it does. Use when …"
    if not sys.stdin.isatty() and not os.environ.get("EDITOR"):
        raise Usage("a skill needs a text", f"tacit new {suggest(name)} --description … --body …")
    edited = gating.edit_text(_TEMPLATE.format(name=name, description=about, body=_BODY), name)
    return {"SKILL.md": edited.encode()} if edited else None


def _whole(name: str, description: str, body: str) -> str:
    if not description:
        raise Usage("a skill needs a description", 'say when to use it: --description "…"')
    quoted = description
    if (
        any(mark in description for mark in (": ", " #", '"', "'"))
        or description[0] in "[{&*!|>%@`-?"
    ):
        quoted = "'" + description.replace("'", "''") + "'"
    return _TEMPLATE.format(name=name, description=quoted, body=body.strip("\n"))


def _text(source: str) -> str:
    if source == "-":
        return sys.stdin.read()
    try:
        with open(source, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"cannot read {source}: {error}", "name a text file in UTF-8") from error


def _folder(source: str) -> dict[str, bytes]:
    files = {}
    for here, folders, names in os.walk(source):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for file in sorted(names):
            path = os.path.join(here, file)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as stream:
                    files[os.path.relpath(path, source)] = stream.read()
    if "SKILL.md" not in files:
        raise Usage(f"there is no SKILL.md in {source}", "name a folder with one")
    return files
