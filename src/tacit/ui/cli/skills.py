"""`tacit list`, `show`, `lint` and `catalogue`: skills as they are read and checked.

Nothing is changed here. `fast` answers plain calls of `list` and `catalogue` with the same
table.
"""

import os
import sys
from collections import Counter
from contextlib import suppress
from typing import Any

import click
import msgspec

from tacit.base.display import can_colour, columns, counted, one_line, plain
from tacit.base.errors import NotFound
from tacit.base.paths import walk_folders, with_tilde
from tacit.skills.library import (
    Entry,
    Library,
    archive_snapshots,
    archived_entries,
    archived_named,
    library_here,
)
from tacit.skills.scopes import SCOPES
from tacit.skills.skill import Problem, Skill
from tacit.skills.standing import UNTRIED, read_standings, standing_of
from tacit.traces.host_folders import host_folders
from tacit.ui.cli import fast, output
from tacit.ui.cli.command import command
from tacit.ui.cli.user_shell import complete_skill


@command(
    "list",
    "find",
    "List the skills that can be used here.",
    "tacit list",
    "tacit list --scope project",
    "tacit list git review              only skills whose name has one of these words",
    "tacit list --origin learned --json",
    "tacit list --used -n 10            the ten that were used most",
    "tacit list --archived              what is out of use, and what trials said of it",
    note="In a pipe, each line is: name, scope, state, description, separated by tabs.",
)
@click.argument("words", nargs=-1)
@click.option("--scope", type=click.Choice(SCOPES), help="Only this scope.")
@click.option(
    "--origin",
    type=click.Choice(["user", "learned", "bundled", "installed"]),
    help="Only skills of this origin.",
)
@click.option(
    "--host",
    type=click.Choice([place.host for place in host_folders() if place.user]),
    help="Only the folder of this agent.",
)
@click.option("--problems", is_flag=True, help="Only skills with errors or warnings.")
@click.option("--used", is_flag=True, help="Only skills that were used, most often first.")
@click.option("--archived", is_flag=True, help="Those that are out of use instead.")
@click.option("-n", "--limit", type=click.IntRange(1), help="How many; all, if left out.")
@click.option("--skip", type=click.IntRange(0), default=0, help="Leave out so many at the start.")
def list_command(
    words: tuple[str, ...],
    problems: bool,
    used: bool,
    archived: bool,
    limit: int | None,
    skip: int,
    as_json: bool,
    **same: str | None,
) -> int:
    """List the skills that can be used here.

    The project's come first, then yours, then those that Tacit ships. Where two share a name the
    first wins, and the other is marked as shadowed. Skills of a project that you have not trusted
    are marked, and not loaded.
    """
    library = library_here()
    fit = [
        entry
        for entry in (archived_entries(archive_snapshots(library)) if archived else library.entries)
        if (not problems or entry.worst in ("error", "warning"))
        and (not words or any(word.lower() in entry.name.lower() for word in words))
    ]
    for field, value in same.items():  # scope, origin, host
        if value is not None:
            fit = [entry for entry in fit if getattr(entry, field) == value]
    unused, sums = 0, None
    if used:
        from tacit.traces.skill_uses import use_totals

        uses, every = use_totals(), len(fit)
        fit = sorted((e for e in fit if e.name in uses), key=lambda e: -uses[e.name].uses)
        unused, counts = every - len(fit), [uses[e.name] for e in fit]
        sums = {key: sum(getattr(n, key) for n in counts) for key in ("uses", "calls", "failed")}
    chosen = fit[skip : skip + limit if limit else None]
    if as_json:
        listed = {"skills": rows_with_use(chosen), "total": len(fit)}
        return output.write_json(listed | {"unused": unused, "uses": sums})
    tried = read_standings()
    standings = {e.name: tried[e.name, e.digest][0] for e in chosen if (e.name, e.digest) in tried}
    return fast.write_skills(
        [(e.name, e.scope, e.description, e.state, e.worst or "") for e in chosen], standings
    )


def rows_with_use(entries: list[Entry]) -> list[dict[str, Any]]:
    """Entries for --json, each with its standing and how often it was used."""
    from tacit.traces.skill_uses import use_totals

    tried, uses = read_standings(), use_totals({entry.name for entry in entries})
    return [
        msgspec.to_builtins(entry)
        | {
            "standing": tried.get((entry.name, entry.digest), (UNTRIED,))[0],
            "used": uses.get(entry.name),
        }
        for entry in entries
    ]


@command(
    "catalogue",
    "find",
    "Print the block that tells a model which skills there are.",
    "tacit catalogue",
    "tacit catalogue --budget 2000",
    "tacit catalogue --touched src/app.ts   with skills that wait for such a file",
)
@click.option("--budget", type=click.IntRange(0), help="Most characters; the default is a setting.")
@click.option("--touched", multiple=True, help="A file that is being worked on; may be repeated.")
def catalogue_command(budget: int | None, touched: tuple[str, ...], as_json: bool) -> int:
    """Print the block that tells a model which skills there are.

    Pinned skills first, then the project's, those that trials found to help, those used last, and
    those that speak of what the project is made of: its languages, tools and libraries. A
    conversation gets it once, and keeps it to the byte. Skills that do not fit the budget are
    counted in its last line.
    """
    from tacit.changes.pins import pinned_skills
    from tacit.traces.skill_uses import recently_used

    made = library_here().catalogue(
        budget=budget, touched=touched, pinned=pinned_skills(), recent=recently_used()
    )
    if as_json:
        output.write_json(made.as_dict())
    else:
        click.echo(made.text, nl=False)
    return 0


_MOST_FILES = 200
_LEARNED_KEYS = ("learned", "learned-by", "revised", "revised-by", "sessions")
"""What the review writes under `metadata` of a skill that it made or revised."""


@command(
    "show",
    "find",
    "Read a skill, and see where it comes from.",
    "tacit show code-review",
    "tacit show code-review --raw       SKILL.md as it stands in the file",
    "tacit show ./my-skill              a folder that is not in the library",
)
@click.argument("name", shell_complete=complete_skill)
@click.option("--raw", is_flag=True, help="Only the text of SKILL.md, as it is.")
def show_command(name: str, raw: bool, as_json: bool) -> int:
    """Read a skill, and see where it comes from.

    NAME is the skill's name, the name of its folder, or a path. Shown are the text, the files, the
    scope, what it shadows or is shadowed by, and its problems.
    """
    from tacit.skills.skill_file import read_skill
    from tacit.skills.skill_lint import lint

    library = library_here()
    entry = library.find(name)
    if entry is None and os.path.exists(os.path.expanduser(name)):
        skill = read_skill(os.path.expanduser(name))
    else:
        entry = entry or next(iter(archived_named(library, name)), None) or library.get(name)
        skill = read_skill(entry.checked_file)
    folder = str(skill.folder)
    if raw:
        with open(os.path.join(folder, skill.file), "rb") as file:
            data = file.read()
        on_terminal = sys.stdout.isatty()
        click.echo(plain(data.decode("utf-8", "replace")) if on_terminal else data, nl=False)
        return 0
    problems = lint(folder)
    files = _skill_files(folder)
    if as_json:
        return output.write_json(_skill_as_json(library, entry, skill, files, problems))
    _write_skill(library, entry, skill, files, problems)
    if entry is not None:
        _count_view(entry.name)
    return 0


def _count_view(name: str) -> None:
    """Count that a person read it; where there is no database that can be written, do not."""
    import sqlite3

    from tacit.base import database

    if os.path.exists(database.default_path()):
        from tacit.base.errors import TacitError

        with suppress(TacitError, sqlite3.Error):
            from tacit.traces.skill_uses import record_view

            record_view(name)


def _skill_as_json(
    library: Library, entry: Entry | None, skill: Skill, files: list[str], problems: list[Problem]
) -> dict[str, Any]:
    from tacit.changes.pins import pinned_skills

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
        "pinned": entry is not None and os.path.basename(entry.folder) in pinned_skills(),
        "standing": standing_of(entry.name, entry.digest)[0] if entry else UNTRIED,
        "figures": standing_of(entry.name, entry.digest)[1] if entry else "",
    }


def _write_skill(
    library: Library, entry: Entry | None, skill: Skill, files: list[str], problems: list[Problem]
) -> None:
    name = plain(skill.name)
    version = f" {plain(skill.version)}" if skill.version else ""
    click.echo(f"{click.style(name, bold=True)}{click.style(version, dim=True)}")
    output.write_rows(_skill_rows(library, entry, skill), 12, {"state": "yellow"})
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


def _skill_rows(library: Library, entry: Entry | None, skill: Skill) -> list[tuple[str, str]]:
    facts = []
    if entry is None:
        facts.append(("folder", f"{with_tilde(str(skill.folder))} (not in the library)"))
    else:
        host = "" if entry.host in ("agents", "tacit", "settings") else f", {entry.host}"
        facts.append(("scope", f"{entry.scope}{host}"))
        facts.append(("origin", entry.origin))
        if entry.origin == "learned":
            facts.extend(_learned_rows(skill))
        standing, figures = standing_of(entry.name, entry.digest)
        if standing != UNTRIED or entry.origin == "learned":
            hint = figures or f"find out: tacit trial {entry.name}"
            facts.append(("standing", f"{standing}; {hint}"))
        facts.append(("folder", with_tilde(entry.folder)))
        if entry.also:
            facts.append(("also", ", ".join(with_tilde(path) for path in entry.also)))
        if entry.state == "archived":
            facts.append(("state", f"archived: tacit restore {skill.name}"))
        if entry.state == "untrusted":
            facts.append(("state", "not trusted, not loaded: tacit trust"))
        if winner := (library.shadowing(entry) if entry.state == "shadowed" else None):
            place = with_tilde(winner.folder)
            facts.append(("state", f"shadowed by {place}"))
        facts.extend(("shadows", with_tilde(other.folder)) for other in library.shadowed(entry))
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


def _learned_rows(skill: Skill) -> list[tuple[str, str]]:
    """When, by which model and from which sessions, as far as the skill itself says so."""
    said = {key: one_line(str(skill.metadata.get(key, ""))) for key in _LEARNED_KEYS}
    facts = []
    for key in ("learned", "revised"):
        by = f" by {said[f'{key}-by']}" if said[f"{key}-by"] else ""
        if said[key]:
            facts.append((key, f"{said[key]}{by}"))
    if facts and said["sessions"]:
        facts.append(("from", said["sessions"]))
    return facts


def _write_body(body: str) -> None:
    text = plain(body).strip("\n")
    if not sys.stdout.isatty():
        click.echo(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(no_color=not can_colour(), width=min(columns(), 100))
    console.print(Markdown(text, hyperlinks=False))


def _skill_files(folder: str) -> list[str]:
    """The files of the skill, SKILL.md first, relative to its folder."""
    found: list[str] = []
    for here, folders, names in walk_folders(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        found.extend(os.path.relpath(os.path.join(here, name), folder) for name in sorted(names))
    return sorted(found, key=lambda path: (path.lower() != "skill.md", path))


_MOST_PROBLEMS = 40


class Linted(msgspec.Struct, frozen=True):
    """One skill in `--json`."""

    folder: str
    problems: list[Problem]


@command(
    "lint",
    "find",
    "Say what is wrong with skills, and how to mend it.",
    "tacit lint                         every skill that can be used here",
    "tacit lint code-review             one skill, by name",
    "tacit lint ./skills --strict       a folder of skills, by the open standard to the letter",
    "tacit lint --json | jq '.skills[].problems[].code'",
    note="Exit code 1 when there is an error. With --strict, no error means that the standard's "
    "own validator accepts the skill. docs/problems.md explains every code.",
)
@click.argument("names", nargs=-1, shell_complete=complete_skill)
@click.option("--strict", is_flag=True, help="Hold skills to the open standard to the letter.")
@click.option("--all", "everything", is_flag=True, help="Print every problem, however many.")
def lint_command(names: tuple[str, ...], strict: bool, everything: bool, as_json: bool) -> int:
    """Say what is wrong with skills, and how to mend it.

    NAMES are skills, folders of skills, or SKILL.md files; without any, all skills are checked.
    """
    from tacit.skills.skill_lint import lint

    folders = _folders_to_lint(names)
    found: list[Linted] = []
    with click.progressbar(
        folders, label="checking", file=sys.stderr, hidden=len(folders) < 500 or as_json
    ) as progress:
        found.extend(Linted(folder, lint(folder, strict=strict)) for folder in progress)
    severities = Counter(p.severity for linted in found for p in linted.problems)
    errors = severities["error"]
    if as_json:
        counts = {f"{word}s": severities[word] for word in ("error", "warning", "note")}
        bad = [linted for linted in found if linted.problems]
        output.write_json({"checked": len(found), **counts, "skills": bad})
        return 1 if errors else 0
    _write_linted(found, everything or not sys.stdout.isatty())
    return 1 if errors else 0


def _folders_to_lint(names: tuple[str, ...]) -> list[str]:
    from tacit.skills.index_builder import walk

    library = library_here()
    if not names:
        return [entry.folder for entry in library.entries if entry.scope != "bundled"]
    folders = []
    for name in names:
        path = os.path.expanduser(name)
        entry = library.find(name)
        if entry is not None:
            folders.append(entry.folder)
        elif os.path.isfile(path):
            folders.append(path)
        elif os.path.isdir(path):
            if any(os.path.lexists(os.path.join(path, f)) for f in ("SKILL.md", "skill.md")):
                folders.append(path)
                continue
            below = [os.path.join(path, folder) for folder in walk(path).skills]
            if not below:
                raise NotFound(f"no SKILL.md in {name} or below it", "name a folder with skills")
            folders.extend(below)
        else:
            library.get(name)  # raises, with what is near
    return folders


def _write_linted(found: list[Linted], everything: bool) -> None:
    bad = [linted for linted in found if linted.problems]
    bad.sort(key=lambda linted: min(_severity_rank(p) for p in linted.problems))
    written = 0
    for linted in bad:
        if written >= _MOST_PROBLEMS and not everything:
            break
        folder = os.path.abspath(linted.folder)
        click.echo(click.style(with_tilde(plain(folder)), bold=True))
        for found_problem in linted.problems:
            written += 1
            output.write_problem(found_problem)
    total = sum(len(linted.problems) for linted in bad)
    if written < total:
        click.echo(f"… and {counted(total - written, 'more problem')}; all: tacit lint --all")
    if total > 20:
        _write_counts(bad)
    clean = len(found) - len(bad)
    counts = Counter(p.severity for linted in bad for p in linted.problems)
    parts = [counted(counts[s], s) for s in ("error", "warning", "note") if counts[s]]
    verdict = ", ".join(parts) or "no problems"
    click.echo(f"\n{counted(len(found), 'skill')} checked, {clean:,} clean: {verdict}")


def _write_counts(bad: list[Linted]) -> None:
    by_code = Counter((p.code, p.severity) for linted in bad for p in linted.problems)
    rows = [(f"{count:,}", severity, code) for (code, severity), count in by_code.most_common()]
    click.echo()
    click.echo(output.table(("count", "severity", "problem"), rows))


def _severity_rank(found: Problem) -> int:
    return ("error", "warning", "note").index(found.severity)
