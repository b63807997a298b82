"""What the commands that change skills share: the gate of this place, finding a skill, verdicts."""

import os
import sys

import click

from tacit.base import paths
from tacit.base.errors import NotFound
from tacit.base.paths import shorten
from tacit.base.terminal import plain
from tacit.changes.actor import acting_as
from tacit.changes.change import Change, Operation, Verdict, make_change
from tacit.changes.files import File
from tacit.changes.gate import Gate
from tacit.changes.history import Version
from tacit.changes.place import Place, places_here, project_place, user_place
from tacit.changes.site import Site
from tacit.skills.library import Entry, Library
from tacit.ui.cli import output
from tacit.work import linking

REFUSED = 5


class Target:
    """A skill that a command names: the place it lies in and its folder below that."""

    def __init__(self, site: Site, skill: str, entry: Entry | None) -> None:
        self.site = site
        self.skill = skill
        self.entry = entry

    @property
    def root(self) -> str:
        return self.site.place.root


def open_gate(library: Library | None = None) -> tuple[Gate, Library]:
    """The gate over every skills folder that can be reached from here."""
    library = library or Library()
    linking.listen()
    return Gate(places_here(library.cwd)), library


def find(gate: Gate, library: Library, name: str) -> Target:
    """The skill that `name` means: one that is there, or one that only history knows."""
    entry = library.find(name)
    if entry is not None:
        site = gate.site(entry.root)
        return Target(site, os.path.relpath(entry.folder, entry.root), entry)
    for site in gate.sites.values():
        if site.history.head(name) is not None:
            return Target(site, name, None)
    library.get(name)  # raises, with what is near
    raise NotFound(f"there is no skill '{name}'", "see them: tacit list")


def place_for(project: bool) -> Place:
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


def tell(verdict: Verdict, done: str, as_json: bool, *, undoable: bool = True) -> int:
    """Print what became of a change; the exit code."""
    if as_json:
        output.write_json(verdict)
        return 0 if not verdict.refused else REFUSED
    if verdict.applied:
        click.echo(done)
        for note in verdict.notes:
            click.echo(click.style(f"note: {plain(note)}", fg="yellow"))
        if undoable:
            click.echo(click.style(f"undo: tacit undo {verdict.change[-8:]}", dim=True))
        return 0
    refusal = verdict.refusal
    assert refusal is not None
    if verdict.outcome == "proposed":
        click.echo(f"Waits in the inbox: {plain(refusal.reason)}")
        click.echo(click.style(f"see it: tacit inbox {verdict.change[-8:]}", dim=True))
        return 0
    click.echo(
        f"{click.style('refused', fg='red')} [{refusal.rule}] {plain(refusal.reason)}", err=True
    )
    if refusal.hint:
        click.echo(f"        {plain(refusal.hint)}", err=True)
    for name in refusal.alternatives:
        click.echo(f"        instead: tacit edit {plain(name)}", err=True)
    if refusal.overridable:
        click.echo(
            f"        your own skill: --override {refusal.rule} lets it through, on record",
            err=True,
        )
    return REFUSED


def write_diff(text: str) -> None:
    """A diff in colour."""
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in text.splitlines():
        shown = plain(line)
        if line.startswith(("+++", "---")):
            click.echo(click.style(shown, bold=True))
        else:
            click.echo(click.style(shown, fg=colours.get(line[:1])))


def files_of(site: Site, version: Version | None) -> dict[str, File]:
    return site.history.files(version) if version is not None else {}


def edit_text(text: str, name: str) -> str | None:
    """`text` as the user's editor leaves it; None when it was left as it was."""
    changed = click.edit(text, editor=_editor(), extension=".md", require_save=False)
    if changed is None or changed == text:
        return None
    return changed


def _editor() -> str:
    for variable in ("VISUAL", "EDITOR"):
        if value := os.environ.get(variable):
            return value
    import shutil

    found = next((name for name in ("nano", "vim", "vi") if shutil.which(name)), None)
    if found is None or not sys.stdin.isatty():
        raise NotFound("no editor is set", "set EDITOR, or give the text: --from FILE")
    return found


def keep_text(text: str, name: str) -> str:
    """Where a text that was refused is kept, so that nothing is lost."""
    from tacit.base.files import write_atomic

    folder = os.path.join(paths.folders().data, "drafts")
    path = os.path.join(folder, f"{os.path.basename(name)}.md")
    write_atomic(path, text.encode("utf-8", "surrogateescape"))
    return path


def shown_place(site: Site) -> str:
    return shorten(site.place.root)
