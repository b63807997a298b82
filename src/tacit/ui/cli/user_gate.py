"""The gate as a person at the command line uses it.

Opens the gate over the folders in reach, finds the skill that a name means, proposes changes as
the user, prints verdicts and diffs, and opens the editor. What may be changed is decided in
`changes/`.
"""

import os
import shlex
import sys
from collections.abc import Callable
from typing import Any

import click

from tacit.base import database, paths
from tacit.base.display import plain
from tacit.base.errors import NotFound, Usage
from tacit.base.paths import with_tilde
from tacit.changes import git_exclude
from tacit.changes.change import (
    SKILL_FILE,
    Change,
    Files,
    Operation,
    Verdict,
    acting_as,
    make_change,
)
from tacit.changes.change_groups import find_group, undo_group
from tacit.changes.gate import Gate
from tacit.changes.history import Version
from tacit.changes.inbox import Inbox
from tacit.changes.journal import OpenPlace
from tacit.changes.neighbours import LibraryNeighbours
from tacit.changes.place import Place, all_places, place_of, project_place, user_place
from tacit.learn import notices
from tacit.learn.curate.curation_scope import known_places
from tacit.skills.fact import FACT_FILE
from tacit.skills.library import Entry, Library, library_here
from tacit.skills.skill_file import SKILL_FILE_NAMES
from tacit.ui.cli import output
from tacit.work import host_links

REFUSED = 5
_EDIT = {"skill": "tacit edit", "fact": "tacit memory edit"}
_MAIN_FILES = (*SKILL_FILE_NAMES, FACT_FILE)


class Target:
    """A skill that a command names: the place it lies in and its folder below that."""

    def __init__(self, opened: OpenPlace, skill: str, entry: Entry | None) -> None:
        self.opened = opened
        self.skill = skill
        self.entry = entry

    @property
    def root(self) -> str:
        return self.opened.place.root


def open_gate(*, everywhere: bool = False) -> tuple[Gate, Library]:
    """The gate over every folder of skills and of facts that can be reached from here.

    `everywhere` adds those that the inbox and the notices speak of: what was proposed or learned in
    another project can be read, answered and taken back from any folder.
    """
    library = library_here()
    host_links.listen()
    neighbours = LibraryNeighbours(library.cwd, library=library)
    places = all_places(library.cwd)
    if everywhere:
        spoken_of = {*Inbox().roots(), *notices.roots()}
        spoken_of.update(place.root for place in known_places(database.default_path()))
        places += [place for root in sorted(spoken_of) if (place := place_of(root))]
    return Gate(places, neighbours=neighbours), library


def find_target(gate: Gate, library: Library, name: str) -> Target:
    """The skill that `name` means: one that is there, or one that only history knows.

    Where no skill ever had that name, a fact that has a history.
    """
    entry = library.find(name)
    if entry is not None:
        opened = gate.open_place(entry.root)
        return Target(opened, os.path.relpath(entry.folder, entry.root), entry)
    for opened in gate.open_places.values():
        if opened.history.head(name) is not None:
            return Target(opened, name, None)
    library.get(name)  # raises, with what is near
    raise NotFound(f"there is no skill '{name}'", "see them: tacit list")


def find_live_target(gate: Gate, library: Library, name: str) -> Target:
    """The skill that `name` means, there now. Raises `NotFound`, with the way back."""
    target = find_target(gate, library, name)
    if target.entry is not None:
        return target
    if target.opened.place.kind == "facts":
        raise NotFound(f"'{name}' is a fact, not a skill", f"see it: tacit memory show {name}")
    head = target.opened.history.head(target.skill)
    record = head.record if head is not None else None
    if record is not None and record.state.startswith("archived:"):
        raise NotFound(f"'{name}' is archived", f"bring it back: tacit restore {name}")
    if record is not None and record.kind == "renamed" and record.partner:
        raise NotFound(f"'{name}' is called '{record.partner}' now", f"see: tacit log {name}")
    raise NotFound(f"'{name}' is not there any more", f"bring it back: tacit rollback {name}")


def find_target_version(target: Target, start: str) -> Version:
    """A version of the skill: by its id, or by its change's id or the end that the log shows."""
    history = target.opened.history
    try:
        return history.find_version(target.skill, start)
    except NotFound:
        ends = [v for v in history.log(target.skill) if start and v.record.change.endswith(start)]
        if not ends:
            raise
        return ends[0]  # of a rename, which is two versions, the later one


def place_for_new(project: bool) -> Place:
    """Where a new skill goes."""
    if not project:
        return user_place()
    place = project_place()
    if place.scope != "project":
        raise NotFound("this is not a project", "go to one, or leave --project out")
    return place


def propose(
    gate: Gate, target_root: str, skill: str, *operations: Operation, **about: object
) -> Verdict:
    """Put a change of the user's through the gate."""
    with acting_as("user"):
        change: Change = make_change(skill, *operations, root=target_root, **about)  # type: ignore[arg-type]
        return gate.propose(change)


def undo_any(gate: Gate, start: str, reason: str = "") -> tuple[str, list[Verdict]]:
    """Take back the change or the whole group that `start` names; the group's id, or nothing."""
    with acting_as("user"):
        try:
            return "", [gate.undo(start, reason=reason)]
        except NotFound:
            if not (group := find_group(gate, start)):
                raise
            return group, undo_group(gate, group, reason=reason)


def latest_versions(gate: Gate, most: int) -> list[Version]:
    """The latest changes in all places, the newest first."""
    found = [
        version for opened in gate.open_places.values() for version in opened.history.latest(most)
    ]
    found.sort(key=lambda version: (version.at, version.record.change), reverse=True)
    return found[:most]


def write_verdict(
    verdict: Verdict,
    done: str,
    as_json: bool,
    *,
    can_override: bool = False,
    back: str = "undo",
    noun: str = "skill",
) -> int:
    """Print how a change ended; the exit code. `can_override`: the command has --override."""
    if as_json:
        output.write_json(verdict)
        return 0 if not verdict.refused else REFUSED
    if verdict.applied:
        click.echo(done)
        for note in verdict.notes:
            click.echo(click.style(f"note: {plain(note)}", fg="yellow"))
        output.write_hint(f"{back}: tacit undo {verdict.change[-8:]}")
        return 0
    refusal = verdict.refusal
    assert refusal is not None
    if verdict.outcome == "proposed":
        click.echo(f"Waits in the inbox: {plain(refusal.reason)}")
        output.write_hint(f"see it: tacit inbox {verdict.change[-8:]}")
        return 0
    click.echo(
        f"{click.style('refused', fg='red')} [{refusal.rule}] {plain(refusal.reason)}", err=True
    )
    if refusal.hint:
        click.echo(f"        {plain(refusal.hint)}", err=True)
    for name in refusal.alternatives:
        click.echo(f"        instead: {_EDIT[noun]} {plain(name)}", err=True)
    if refusal.overridable and can_override:
        click.echo(
            f"        your own {noun}: --override {refusal.rule} lets it through, on record",
            err=True,
        )
    return REFUSED


def edit_text(text: str) -> str | None:
    """`text` as the user's editor leaves it; None when it was left as it was.

    Line ends stay as they were: the editor is given `\\n`, and what it returns is put back.
    """
    given = text.replace("\r\n", "\n")
    shown = given if given.endswith("\n") or not given else given + "\n"
    changed = click.edit(shown, editor=_editor(), extension=".md", require_save=False)
    if changed is None or changed in (given, shown):
        return None
    windows = text.count("\r\n") * 2 > text.count("\n")
    return changed.replace("\n", "\r\n") if windows else changed


def _editor() -> str:
    for variable in ("VISUAL", "EDITOR"):
        if value := os.environ.get(variable):
            return value
    import shutil

    found = next((name for name in ("nano", "vim", "vi") if shutil.which(name)), None)
    if found is None or not sys.stdin.isatty():
        raise NotFound("no editor is set", "set EDITOR, or give the text: --from FILE")
    return found


def can_edit() -> bool:
    """Whether an editor can be opened here."""
    return sys.stdin.isatty() or bool(os.environ.get("VISUAL") or os.environ.get("EDITOR"))


def keep_refused_text(data: bytes, name: str) -> str:
    """Where a text that was refused is kept, so that nothing is lost; as a shell takes it."""
    from tacit.base.atomic_files import write_atomic
    from tacit.skills.skill import suggest_name

    path = os.path.join(paths.folders().data, "drafts", f"{suggest_name(name)}.md")
    write_atomic(path, data)
    return quote_for_shell(path)


def quote_for_shell(path: str) -> str:
    """`path` as it can be pasted into a shell; `~` where that needs no quotes."""
    short = with_tilde(path)
    return short if shlex.quote(short[1:]) == short[1:] else shlex.quote(path)


def read_text_source(source: str) -> bytes:
    """What --from names: a file, or '-' for standard input."""
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        with open(source, "rb") as file:
            return file.read()
    except (OSError, ValueError) as error:
        cause = getattr(error, "strerror", None) or str(error)
        raise Usage(f"cannot read {source}: {cause}", "name a file, or '-'") from error


def decode_text(data: bytes, what: str) -> str:
    """`data` as text; raises `Usage` where it is not in UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Usage(
            f"{what} is not text in UTF-8 (byte {error.start})", "save it in UTF-8"
        ) from error


def edit_through_gate(
    gate: Gate,
    target: Target,
    name: str,
    path: str,
    source: str | None,
    operation: Callable[[Files, str, bytes], Operation],
    about: dict[str, Any],
    as_json: bool,
) -> int:
    """Change a file of a skill or a fact by what `source` holds, or in the editor; the exit code.

    Nothing of what was refused is lost: neither the user's text nor the merged one.
    """
    now = gate.state_of(target.skill, target.root)
    files = now.contents.files
    if path == SKILL_FILE:
        path = next((known for known in SKILL_FILE_NAMES if known in files), path)
    after = _edited_data(files, path, source)
    if after is None:
        if as_json:
            output.write_json({"outcome": "unchanged", "skill": target.skill})
        else:
            click.echo("Nothing was changed.", err=True)
        return 0
    base = now.head.id if now.head else ""
    change = operation(files, path, after)
    verdict = propose(gate, target.root, target.skill, change, base=base, **about)
    noun = "fact" if path == FACT_FILE else "skill"
    code = write_verdict(verdict, f"Changed {name}", as_json, can_override=True, noun=noun)
    if verdict.offer and not as_json:
        write_merged_offer(verdict)
    if verdict.refused and source in (None, "-"):  # else the file is still where it was
        own = "" if path in _MAIN_FILES else f" --file {shlex.quote(path)}"
        kept = keep_refused_text(after, name if not own else f"{name} {path}")
        click.echo(f"Your text is kept: {_EDIT[noun]} {name}{own} --from {kept}", err=True)
    return code


def _edited_data(files: Files, path: str, source: str | None) -> bytes | None:
    """What the file is to be; None where that is what it is."""
    if path in files and files[path].kind == "link":
        raise Usage(f"{path} is a link", "edit the file that it leads to")
    before = files[path].data if path in files else b""
    if source:
        after = read_text_source(source)
        if path in _MAIN_FILES:
            decode_text(after, source)  # raises where it is none
        return after if after != before or path not in files else None
    edited = edit_text(decode_text(before, path))
    return edited.encode() if edited is not None else None


def share_with_git(
    thing: str, name: str, place: Place, folder: str, hide: bool, as_json: bool
) -> int:
    """Let git see a skill or a fact of a project, or hide it again; the exit code."""
    change = git_exclude.hide if hide else git_exclude.show
    changed = change(place, folder, paths.folders().data)
    if as_json:
        output.write_json({thing: name, "shared": not hide, "changed": changed})
    elif not changed:
        click.echo(f"{name} was {'private' if hide else 'visible to git'} already")
    elif hide:
        click.echo(f"{name} is private again")
    else:
        seen = name if thing == "skill" else "it"
        click.echo(f"git sees {seen} now: git add {os.path.join(place.root, folder)}")
    return 0


def write_merged_offer(verdict: Verdict) -> None:
    """Put the merged files of a conflict where the user can take them up."""
    from tacit.base.atomic_files import write_atomic
    from tacit.skills.skill import suggest_name

    folder = os.path.join(paths.folders().data, "drafts", f"{suggest_name(verdict.skill)}-merged")
    for path, data in verdict.offer.items():
        write_atomic(os.path.join(folder, path), data)
    is_fact = FACT_FILE in verdict.offer
    shown = quote_for_shell(os.path.join(folder, FACT_FILE if is_fact else "SKILL.md"))
    edit = _EDIT["fact" if is_fact else "skill"]
    click.echo(f"The merged text, with both sides marked, is in {shown}", err=True)
    click.echo(f"Mend it, then: {edit} {verdict.skill} --from {shown}", err=True)
