"""Commands that change a skill: `new`, `edit`, `archive`, `restore`, `rm`, `pin`, `share`.

Each builds one change and hands it to the gate by `user_gate`, which also prints the
verdict.
"""

import os
import re
from collections.abc import Callable
from typing import Any

import click

from tacit.base.display import one_line, shorten
from tacit.base.errors import NotFound, Refused, Usage, did_you_mean
from tacit.base.paths import walk_folders, with_tilde
from tacit.changes.change import (
    SKILL_FILE,
    Archive,
    Create,
    Delete,
    Files,
    Operation,
    Pin,
    RemoveFile,
    Rename,
    Restore,
    Rewrite,
    Unpin,
    WriteFile,
    bytes_of,
    executable_paths,
    make_change,
)
from tacit.changes.gate import Gate
from tacit.changes.journal import OpenPlace
from tacit.changes.stage import ARCHIVE
from tacit.skills.skill import MAX_NAME, name_faults, suggest_name
from tacit.skills.skill_file import SKILL_FILE_NAMES
from tacit.ui.cli import output, user_gate
from tacit.ui.cli.command import command
from tacit.ui.cli.user_shell import complete_skill

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


@command(
    "new",
    "change",
    "Make a skill.",
    "tacit new standup-notes                        opens your editor on a template",
    'tacit new standup-notes -d "Notes for the daily stand-up. Use in the morning." --body "1. …"',
    "tacit new release --project --from draft.md    a whole SKILL.md, or only its body",
    "tacit new release --from ./folder              a folder with support files",
)
@click.argument("name")
@click.option("-d", "--description", default="", help="What it does and when to use it.")
@click.option("--body", default="", help="The instructions.")
@click.option("--from", "source", help="A SKILL.md, a body, a folder, or '-' for standard input.")
@click.option("--project", is_flag=True, help="In this project, not in your own skills.")
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--override", multiple=True, help="Set a rule of the scan aside, on record.")
def new_command(
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
    from tacit.skills.skill_search import Search
    from tacit.ui.cli.search_results import indexing_progress

    if "name-form" not in override:
        _check_name(name)
    gate, library = user_gate.open_gate()
    place = user_gate.place_for_new(project)
    folder = os.path.join(place.root, name)
    if not (body or source) and os.path.lexists(folder):  # said before a text is written
        raise Refused(f"there is already a '{name}' in {place.root}", f"tacit edit {name}")
    files = _new_files(name, description, body, source)
    with indexing_progress() as progress:
        if progress is not None:  # a new skill is compared with all others: the first time takes
            Search(library, progress)
    verdict = user_gate.propose(
        gate, place.root, name, Create(files), reason=reason, overrides=override
    )
    code = user_gate.write_verdict(
        verdict, f"Made {name} in {with_tilde(folder)}", as_json, can_override=True
    )
    if verdict.refused and not (source and source != "-"):  # a file is still where it was
        kept = user_gate.keep_refused_text(files[SKILL_FILE], name)
        where = " --project" if project else ""
        click.echo(f"Your text is kept: tacit new {name}{where} --from {kept}", err=True)
    return code


def _check_name(name: str) -> None:
    """Refuse a name that cannot be used before its text is written."""
    wrong = name_faults(name) if name else ["is empty"]
    if len(name) > MAX_NAME:
        wrong.append(f"has {len(name)} characters, {MAX_NAME} at most")
    if wrong:
        shown = shorten(name, MAX_NAME)
        raise Refused(
            f"'{shown}' cannot name a skill [name-form]: it {', and '.join(wrong)}",
            f"tacit new {suggest_name(name)}",
        )


def _new_files(name: str, description: str, body: str, source: str | None) -> dict[str, bytes]:
    if source and os.path.isdir(source):
        return _files_in(source)
    if source:
        text = user_gate.decode_text(user_gate.read_text_source(source), source)
        whole = re.match(r"---[ \t]*\r?\n", text)
        return {SKILL_FILE: (text if whole else _skill_text(name, description, text)).encode()}
    if body:
        return {SKILL_FILE: _encoded(_skill_text(name, description, body))}
    about = yaml_scalar(description or "What it does. Use when …")
    if not user_gate.can_edit():
        raise Usage("a skill needs a text", f"tacit new {name} --description … --body …")
    edited = user_gate.edit_text(_TEMPLATE.format(name=name, description=about, body=_BODY))
    if edited is None:
        raise Usage("nothing was written, so nothing was made", "save a text in the editor")
    return {SKILL_FILE: edited.encode()}


def _skill_text(name: str, description: str, body: str) -> str:
    if not description.strip():
        raise Usage("a skill needs a description", 'say when to use it: --description "…"')
    return _TEMPLATE.format(name=name, description=yaml_scalar(description), body=body.strip("\n"))


def yaml_scalar(text: str) -> str:
    """`text` on one line, as YAML reads it back word for word."""
    text = " ".join(text.split())
    word = text.lower() in ("yes", "no", "on", "off", "true", "false", "null", "y", "n")
    if _SAFE.fullmatch(text) and not word and "---" not in text:
        return text
    if "---" in text:  # some readers look for the end of the head before they read YAML
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + text.replace("---", "\\x2d\\x2d\\x2d") + '"'
    return "'" + text.replace("'", "''") + "'"


def _encoded(text: str) -> bytes:
    """What came from the command line; bytes that are no text are shown as such, not kept."""
    return text.encode("utf-8", "replace")


def _files_in(source: str) -> dict[str, bytes]:
    files = {}
    for here, folders, names in walk_folders(source):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for file in sorted(names):
            path = os.path.join(here, file)
            if os.path.isfile(path) and not os.path.islink(path):
                files[os.path.relpath(path, source)] = user_gate.read_text_source(path)
    if SKILL_FILE not in files:
        raise Usage(f"there is no {SKILL_FILE} in {source}", "name a folder with one")
    return files


_CONFLICT_MARKS = re.compile(rb"^<{7} as it is now\r?$[\s\S]*^>{7} ", re.MULTILINE)
"""A conflict as Tacit writes it; other marks may be part of a skill's text."""


@command(
    "edit",
    "change",
    "Change a skill: its text, a support file, or its name.",
    "tacit edit db-migration                          SKILL.md in your editor",
    "tacit edit db-migration --file references/checklist.md",
    "tacit edit db-migration --from better.md         the new text from a file, or '-'",
    "tacit edit db-migration --file old.txt --remove",
    "tacit edit db-migration --rename schema-change",
)
@click.argument("name", shell_complete=complete_skill)
@click.option("--file", "path", default=SKILL_FILE, help="The file in the skill's folder.")
@click.option("--from", "source", help="Take the text from this file ('-': standard input).")
@click.option("--remove", is_flag=True, help="Remove the support file named by --file.")
@click.option("--rename", "new_name", help="Give the skill another name.")
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--override", multiple=True, help="Set a rule of the scan aside, on record.")
def edit_command(
    name: str,
    path: str,
    source: str | None,
    remove: bool,
    new_name: str | None,
    reason: str,
    override: tuple[str, ...],
    as_json: bool,
) -> int:
    """Change a skill: its text, a support file, or its name.

    Your editor opens ($VISUAL, $EDITOR); what you save passes the checks that every change passes.
    A text that is refused is kept, and the message says where. Editing a skill that ships with
    Tacit makes a copy of your own.
    """
    if bool(new_name) + remove + bool(source) > 1:
        raise Usage("one thing at a time", "--from, --remove or --rename")
    gate, library = user_gate.open_gate()
    target = user_gate.find_live_target(gate, library, name)
    about = {"reason": reason, "overrides": override}
    if new_name:
        verdict = user_gate.propose(gate, target.root, target.skill, Rename(new_name), **about)
        return user_gate.write_verdict(verdict, f"Renamed {name} to {new_name}", as_json)
    if remove:
        if path == SKILL_FILE:
            raise Usage("SKILL.md cannot be removed by itself", f"the whole skill: tacit rm {name}")
        verdict = user_gate.propose(gate, target.root, target.skill, RemoveFile(path), **about)
        return user_gate.write_verdict(verdict, f"Removed {path} from {name}", as_json)
    return user_gate.edit_through_gate(
        gate, target, name, path, source, _skill_edit, about, as_json
    )


def _skill_edit(files: Files, path: str, after: bytes) -> Operation:
    """The change that makes `after` the text of a file."""
    if _CONFLICT_MARKS.search(after):
        raise Refused("the text still has the marks of a conflict", "choose a side, take them out")
    if path in SKILL_FILE_NAMES:
        return Rewrite(bytes_of(files) | {path: after}, executable_paths(files))
    return WriteFile(path, after, path in executable_paths(files))


def change_verb(
    name: str,
    section: str,
    about: str,
    operation: Callable[[], Operation],
    done: str,
    *examples: str,
    **options: Any,
) -> click.Command:
    """A command that makes one change to one skill; with `asks`, only after a question."""
    asks = options.pop("asks", "")

    def change(skill: str, reason: str, as_json: bool, yes: bool = True) -> int:
        gate, library = user_gate.open_gate()
        target = user_gate.find_live_target(gate, library, skill)
        question = f"{asks} {skill} from {with_tilde(target.root)}?"
        needs = Refused(f"deleting '{skill}' needs a yes", f"tacit {name} {skill} --yes")
        output.confirm(question, yes, needs)
        verdict = user_gate.propose(gate, target.root, target.skill, operation(), reason=reason)
        return user_gate.write_verdict(verdict, f"{done} {skill}", as_json)

    change = click.option("--reason", default="", help="Why, for the history.")(change)
    if asks:
        change = click.option("--yes", is_flag=True, help="Do not ask.")(change)
    change = click.argument("skill", metavar="NAME", shell_complete=complete_skill)(change)
    return command(name, section, about, *examples, **options)(change)


archive_command = change_verb(
    "archive",
    "change",
    "Take a skill out of use; it can be brought back.",
    Archive,
    "Archived",
    "tacit archive old-release",
    'tacit archive old-release --reason "replaced by release"',
    help="""Take a skill out of use; it can be brought back.

    The folder moves to `.archive`, where no agent looks. Its history stays.
    """,
)
rm_command = change_verb(
    "rm",
    "change",
    "Delete a skill.",
    Delete,
    "Deleted",
    "tacit rm old-release",
    "tacit rm old-release --yes         without being asked",
    note="To take it out of use and keep the folder: tacit archive old-release",
    help="Delete a skill. Its history stays, so that `tacit undo` brings it back.",
    asks="Delete",
)
pin_command = change_verb(
    "pin",
    "change",
    "Let nobody but you change a skill.",
    Pin,
    "Pinned",
    "tacit pin db-migration",
    help="""Let nobody but you change a skill.

    Agents and background work leave a pinned skill alone; it also comes first in the catalogue.
    """,
)
unpin_command = change_verb(
    "unpin",
    "change",
    "Let the usual rules hold for a skill again.",
    Unpin,
    "Unpinned",
    "tacit unpin db-migration",
    help="""Let the usual rules hold for a skill again.

    The opposite of `tacit pin`.
    """,
)


@command(
    "restore",
    "change",
    "Bring an archived skill back.",
    "tacit restore                      what is archived",
    "tacit restore old-release",
)
@click.argument("name", required=False)
@click.option("--reason", default="", help="Why, for the history.")
def restore_command(name: str | None, reason: str, as_json: bool) -> int:
    """Bring an archived skill back; without a name, list what is archived.

    NAME is the name that it had when it was archived.
    """
    gate, _ = user_gate.open_gate()
    archived = _archived(gate)
    if not name:
        return _list_archived(archived, as_json)
    for opened, key in archived:
        if name in (key, key.split("~", 1)[0].replace("%2f", "/")):
            verdict = user_gate.propose(gate, opened.place.root, name, Restore(), reason=reason)
            return user_gate.write_verdict(verdict, f"Restored {name}", as_json)
    hint = did_you_mean(name, (key for _, key in archived), "see what is: tacit restore")
    raise NotFound(f"no archived skill is called '{name}'", hint)


def _archived(gate: Gate) -> list[tuple[OpenPlace, str]]:
    """Every archived folder that can be reached from here."""
    found = []
    for opened in gate.open_places.values():
        try:
            names = os.listdir(os.path.join(opened.real, ARCHIVE))
        except OSError:
            continue
        found += [(opened, name) for name in sorted(names) if not name.startswith(".")]
    return found


def _list_archived(archived: list[tuple[OpenPlace, str]], as_json: bool) -> int:
    if as_json:
        rows = [{"name": key, "root": opened.place.root} for opened, key in archived]
        output.write_json({"archived": rows})
    elif not archived:
        click.echo("Nothing is archived.")
    else:
        rows_shown = [(one_line(key), with_tilde(opened.place.root)) for opened, key in archived]
        click.echo(output.table(("archived", "where"), rows_shown))
    return 0


@command(
    "share",
    "change",
    "Let git see a learned skill of this project.",
    "tacit share db-migration           git sees it, so that you can commit it",
    "tacit share db-migration --private hide it again",
)
@click.argument("name", shell_complete=complete_skill)
@click.option("--private", "hide", is_flag=True, help="Hide it from git again.")
def share_command(name: str, hide: bool, as_json: bool) -> int:
    """Let git see a learned skill of this project.

    Learned skills of a project are private at first: the repository's own exclude file, which is
    never committed, keeps them out of `git status`. Nothing else of the repository is touched.
    One that was distilled gets `references/evidence.md`: how many sessions support each line.
    """
    gate, library = user_gate.open_gate()
    target = user_gate.find_live_target(gate, library, name)
    place = target.opened.place
    if place.scope != "project":
        raise Usage(f"'{name}' is not a project's skill", "only those can be shared by git")
    if not hide:
        _write_evidence(gate, target)
    return user_gate.share_with_git("skill", name, place, target.skill, hide, as_json)


def _write_evidence(gate: Gate, target: user_gate.Target) -> None:
    """Put the counts behind a distilled skill beside it, for those who get it without sessions."""
    from tacit.learn.distil.distilled_skill import EVIDENCE
    from tacit.learn.distil.evidence import evidence_file
    from tacit.learn.distil.support import open_lessons

    root = target.opened.place.root
    with open_lessons() as lessons:
        data = evidence_file(lessons, os.path.basename(target.skill), root)
    if data:
        why = "how many sessions support each line"
        write = WriteFile(EVIDENCE, data)
        gate.propose(make_change(target.skill, write, actor="user", reason=why, root=root))
