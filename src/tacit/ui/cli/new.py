"""`tacit new`: make a skill."""

import os
import re

import click

from tacit.base import trust
from tacit.base.errors import Refused, Usage
from tacit.base.paths import shorten
from tacit.changes.change import SKILL_FILE, Create
from tacit.skills.naming import MAX_NAME, faults, suggest
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
_SAFE = re.compile(r"[A-Za-z][^:#\\\"'`&*!|>%@{}\[\],=<~]*")
"""Texts that YAML takes for themselves; all others are put in quotes."""


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
    if "name-form" not in override:
        _check_name(name)
    gate, library = gating.open_gate()
    place = gating.place_for(project)
    folder = os.path.join(place.root, name)
    if not (body or source) and os.path.lexists(folder):  # said before a text is written
        raise Refused(f"there is already a '{name}' in {place.root}", f"tacit edit {name}")
    files = _files(name, description, body, source)
    with indexing_progress() as progress:
        if progress is not None:  # a new skill is compared with all others: the first time takes
            Search(library, progress)
    verdict = gating.propose(
        gate, place.root, name, Create(files), reason=reason, overrides=override
    )
    code = gating.tell(verdict, f"Made {name} in {shorten(folder)}", as_json, can_override=True)
    if verdict.applied and project and not as_json and not trust.is_trusted(place.project):
        click.echo("This project is not trusted yet, so its skills are not loaded: tacit trust")
    if verdict.refused and not (source and source != "-"):  # a file is still where it was
        kept = gating.keep_text(files[SKILL_FILE], name)
        where = " --project" if project else ""
        click.echo(f"Your text is kept: tacit new {name}{where} --from {kept}", err=True)
    return code


def _check_name(name: str) -> None:
    """Said at once, so that nobody writes a text for a name that cannot be."""
    wrong = faults(name) if name else ["is empty"]
    if len(name) > MAX_NAME:
        wrong.append(f"has {len(name)} characters, {MAX_NAME} at most")
    if wrong:
        shown = name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
        raise Refused(
            f"'{shown}' cannot name a skill [name-form]: it {', and '.join(wrong)}",
            f"tacit new {suggest(name)}",
        )


def _files(name: str, description: str, body: str, source: str | None) -> dict[str, bytes]:
    if source and os.path.isdir(source):
        return _folder(source)
    if source:
        text = gating.as_text(gating.read_source(source), source)
        whole = re.match(r"---[ \t]*\r?\n", text)
        return {SKILL_FILE: (text if whole else _whole(name, description, text)).encode()}
    if body:
        return {SKILL_FILE: _bytes(_whole(name, description, body))}
    about = scalar(description or "What it does. Use when …")
    if not gating.can_edit():
        raise Usage("a skill needs a text", f"tacit new {name} --description … --body …")
    edited = gating.edit_text(_TEMPLATE.format(name=name, description=about, body=_BODY))
    if edited is None:
        raise Usage("nothing was written, so nothing was made", "save a text in the editor")
    return {SKILL_FILE: edited.encode()}


def _whole(name: str, description: str, body: str) -> str:
    if not description.strip():
        raise Usage("a skill needs a description", 'say when to use it: --description "…"')
    return _TEMPLATE.format(name=name, description=scalar(description), body=body.strip("\n"))


def scalar(text: str) -> str:
    """`text` on one line, as YAML reads it back word for word."""
    text = " ".join(text.split())
    word = text.lower() in ("yes", "no", "on", "off", "true", "false", "null", "y", "n")
    if _SAFE.fullmatch(text) and not word and "---" not in text:
        return text
    if "---" in text:  # some readers look for the end of the head before they read YAML
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + text.replace("---", "\\x2d\\x2d\\x2d") + '"'
    return "'" + text.replace("'", "''") + "'"


def _bytes(text: str) -> bytes:
    """What came from the command line; bytes that are no text are shown as such, not kept."""
    return text.encode("utf-8", "replace")


def _folder(source: str) -> dict[str, bytes]:
    files = {}
    for here, folders, names in os.walk(source):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for file in sorted(names):
            path = os.path.join(here, file)
            if os.path.isfile(path) and not os.path.islink(path):
                files[os.path.relpath(path, source)] = gating.read_source(path)
    if SKILL_FILE not in files:
        raise Usage(f"there is no {SKILL_FILE} in {source}", "name a folder with one")
    return files
