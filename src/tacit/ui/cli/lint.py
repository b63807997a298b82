"""`tacit lint`: what is wrong with skills, and how to mend it."""

import os
import sys
from collections import Counter

import click
import msgspec

from tacit.base.amounts import counted
from tacit.base.errors import NotFound
from tacit.base.paths import shorten
from tacit.base.terminal import plain
from tacit.skills.library import Library
from tacit.skills.lint import lint
from tacit.skills.skill import Problem
from tacit.skills.walk import walk
from tacit.ui.cli import output
from tacit.ui.cli.names import complete_skill

_MOST = 40

_EPILOG = """\b
Examples:
  tacit lint                         every skill that can be used here
  tacit lint code-review             one skill, by name
  tacit lint ./skills --strict       a folder of skills, by the open standard to the letter
  tacit lint --json | jq '.skills[].problems[].code'

Exit code 1 when there is an error. With --strict, no error means that the standard's own
validator accepts the skill. docs/problems.md explains every code.
"""


class Linted(msgspec.Struct, frozen=True):
    """One skill in `--json`."""

    folder: str
    problems: list[Problem]


class Report(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    checked: int
    errors: int
    warnings: int
    notes: int
    skills: list[Linted]


@click.command(epilog=_EPILOG)
@click.argument("names", nargs=-1, shell_complete=complete_skill)
@click.option("--strict", is_flag=True, help="Hold skills to the open standard to the letter.")
@click.option("--all", "everything", is_flag=True, help="Print every problem, however many.")
@output.json_option
def command(names: tuple[str, ...], strict: bool, everything: bool, as_json: bool) -> int:
    """Say what is wrong with skills, and how to mend it.

    NAMES are skills, folders of skills, or SKILL.md files; without any, all skills are checked.
    """
    folders = _folders(names)
    found: list[Linted] = []
    with click.progressbar(
        folders, label="checking", file=sys.stderr, hidden=len(folders) < 500 or as_json
    ) as progress:
        found.extend(Linted(folder, lint(folder, strict=strict)) for folder in progress)
    severities = Counter(p.severity for linted in found for p in linted.problems)
    errors = severities["error"]
    if as_json:
        bad = [linted for linted in found if linted.problems]
        counts = (errors, severities["warning"], severities["note"])
        output.write_json(Report(len(found), *counts, bad))
        return 1 if errors else 0
    _write(found, everything or not sys.stdout.isatty())
    return 1 if errors else 0


def _folders(names: tuple[str, ...]) -> list[str]:
    library = Library()
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


def _write(found: list[Linted], everything: bool) -> None:
    bad = [linted for linted in found if linted.problems]
    bad.sort(key=lambda linted: min(_weight(p) for p in linted.problems))
    written = 0
    for linted in bad:
        if written >= _MOST and not everything:
            break
        folder = os.path.abspath(linted.folder)
        click.echo(click.style(shorten(plain(folder)), bold=True))
        for found_problem in linted.problems:
            written += 1
            output.write_problem(found_problem)
    total = sum(len(linted.problems) for linted in bad)
    if written < total:
        click.echo(f"… and {counted(total - written, 'more problem')}; all: tacit lint --all")
    if total > 20:
        _write_summary(bad)
    clean = len(found) - len(bad)
    counts = Counter(p.severity for linted in bad for p in linted.problems)
    parts = [counted(counts[s], s) for s in ("error", "warning", "note") if counts[s]]
    verdict = ", ".join(parts) or "no problems"
    click.echo(f"\n{counted(len(found), 'skill')} checked, {clean:,} clean: {verdict}")


def _write_summary(bad: list[Linted]) -> None:
    by_code = Counter((p.code, p.severity) for linted in bad for p in linted.problems)
    rows = [(f"{count:,}", severity, code) for (code, severity), count in by_code.most_common()]
    click.echo()
    click.echo(output.table(("count", "severity", "problem"), rows))


def _weight(found: Problem) -> int:
    return ("error", "warning", "note").index(found.severity)
