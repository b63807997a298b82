"""`tacit doctor`, `backup` and `restore-backup`: Tacit's own data is checked, mended, kept safe."""

import os
from datetime import datetime
from typing import TYPE_CHECKING

import click
import msgspec

from tacit.base import doctor
from tacit.base.display import counted, plain
from tacit.base.doctor import Check, Finding
from tacit.base.errors import BadConfig, Usage
from tacit.base.settings import load_settings
from tacit.learn import use_records
from tacit.skills.library_checks import LIBRARY_CHECKS
from tacit.traces.deafness import DEAFNESS_CHECKS
from tacit.ui.cli import output
from tacit.ui.cli.command import command
from tacit.work.rescue import DATABASE_CHECKS
from tacit.work.work_checks import JOB_CHECKS, SCHEDULE_CHECKS

if TYPE_CHECKING:
    from tacit.learn.background.confinement import Confinement


def check_changes() -> list[Finding]:
    """Journal, history, inbox and what is hidden from git, of every folder of skills or facts."""
    from tacit.changes.change_checks import check_changes as check
    from tacit.changes.gate import Gate
    from tacit.changes.place import all_places

    try:
        return check(Gate(all_places()))
    except BadConfig:
        return []  # said by its own check


CHECKS: tuple[Check, ...] = (
    # Before the database as a whole, which is made again only if this does not mend it.
    *use_records.CHECKS,
    *doctor.BASE_CHECKS,
    *DATABASE_CHECKS,
    *LIBRARY_CHECKS,
    check_changes,
    *DEAFNESS_CHECKS,
    *JOB_CHECKS,
    *SCHEDULE_CHECKS,
)


@command(
    "doctor",
    "setup",
    "Find damage to Tacit's own data, and mend it.",
    "tacit doctor                       say what is wrong and what would be done",
    "tacit doctor --fix                 do it",
    note="Exit code 6 while something is wrong.",
)
@click.option("--fix", is_flag=True, help="Mend what can be mended.")
def doctor_command(fix: bool, as_json: bool) -> int:
    """Find damage to Tacit's own data, and mend it.

    Nothing is changed without --fix. Indexes are made again; a change that was interrupted is
    finished or taken back; a database or a history that is damaged is put aside and made again of
    what can be read, of the last daily backup and of the agents' own files, and what is lost is
    said in numbers. Said as well is what keeps an agent in the background in, on this machine.
    """
    from tacit.agent import process_rights
    from tacit.learn.background import confinement
    from tacit.learn.background.confinement import Confinement

    findings, said = _mend() if fix else (doctor.run_checks(CHECKS), {})
    mended = [finding for finding in findings if finding.what in said]
    left = [finding for finding in findings if finding not in mended]
    abi = process_rights.landlock_version()
    try:
        held = confinement.probe_confinement()
    except OSError:  # no folder for temporary files: then no agent runs in the background either
        held = Confinement()
    if as_json:
        rows = [
            {"code": f.code, "what": f.what, "fix": f.fix, "can_mend": f.repair is not None,
             "mended": f in mended, "said": said.get(f.what, "")}
            for f in findings
        ]  # fmt: skip
        room = {"landlock": abi, **msgspec.to_builtins(held)}
        output.write_json({"checks": len(CHECKS), "findings": rows, "room": room})
        return 6 if left else 0
    for finding in findings:
        done = finding in mended
        mark = click.style("mended", fg="green") if done else click.style("wrong ", fg="red")
        click.echo(f"{mark}  {plain(finding.what)}")
        if said.get(finding.what):
            click.echo(f"        {plain(said[finding.what])}")
        if not done:
            would = "would be mended: " if finding.repair else "please "
            click.echo(f"        {would}{plain(finding.fix)}")
    if not findings:
        click.echo(f"{counted(len(CHECKS), 'check')}, nothing wrong")
    elif not fix and any(finding.repair for finding in left):
        click.echo("\nMend it with: tacit doctor --fix")
    _write_confinement(held, abi)
    _write_holdback()
    return 6 if left else 0


def _write_holdback() -> None:
    """Where `learn.holdback` does not reach. It is no damage either."""
    from tacit.traces.connection import connectors

    try:
        share = load_settings().settings.learn.holdback
    except BadConfig:
        return  # said by its own check
    connected = [one.host for one in connectors().values() if one.calls()] if share else []
    if others := [host.title for host in connected if not host.hooks.draws]:
        able = ", ".join(
            ["tacit chat", "tacit run", *(h.title for h in connected if h.hooks.draws)]
        )
        what = f"learn.holdback: skills are left out of sessions of {able}"
        rest = f"sessions of {', '.join(others)} have them all, and count on neither side"
        click.echo(output.wrapped(f"{what}; {rest}"))


def _write_confinement(held: "Confinement", abi: int) -> None:
    """What keeps an agent in the background in. It is no damage, so it stands by itself."""
    from tacit.learn.background.confinement import describe_confinement

    by = f"Landlock {abi}" if abi else "no Landlock"
    click.echo(
        output.wrapped(f"An agent in the background ({by}): {plain(describe_confinement(held))}")
    )


_ROUNDS = 4
"""How often it is looked again: what was mended may have hidden something else."""


def _mend() -> tuple[list[Finding], dict[str, str]]:
    """Mend what can be mended: all that was found, and what was said of each that is mended now."""
    found: dict[str, Finding] = {}
    said: dict[str, str] = {}
    tried: set[str] = set()
    for _ in range(_ROUNDS):
        seen = doctor.run_checks(CHECKS)
        new = [finding for finding in seen if finding.what not in tried and finding.repair]
        found |= {finding.what: finding for finding in seen}
        tried |= {finding.what for finding in new}
        for finding in new:
            if (text := _repair(finding)) is not None:
                said[finding.what] = text
        if not new:
            break
    still = {finding.what for finding in seen}
    return list(found.values()), {what: said.get(what, "") for what in found if what not in still}


def _repair(finding: Finding) -> str | None:
    """Repair it; what is to be said of that, or None where it could not be done."""
    assert finding.repair is not None
    try:
        done = finding.repair()
    except Exception as error:  # the others are mended all the same
        why = doctor.could_not(error)
        click.echo(f"tacit: could not mend: {plain(finding.what)}: {plain(why)}", err=True)
        return None
    return done if isinstance(done, str) else ""


@command(
    "backup",
    "setup",
    "Save skills, history, memory, settings and sessions in a file.",
    "tacit backup ~/tacit.tar.gz",
    note="A small backup, without sessions and history, is made every day by itself.",
)
@click.argument("file", type=click.Path(dir_okay=False))
def backup_command(file: str, as_json: bool) -> int:
    """Save all that Tacit keeps in one file.

    Skills, their history, memory, settings, schedules and the databases with your sessions. It can
    be made while everything runs, and is read again and checked before it counts. Of projects it
    holds the one that you are in and those that you trust.
    """
    from tacit.work.backup import make_backup

    contents = make_backup(os.path.expanduser(file))
    size = os.path.getsize(os.path.expanduser(file))
    if as_json:
        return output.write_json({"file": file, "bytes": size, "files": len(contents.sums)})
    click.echo(
        f"Saved {counted(len(contents.sums), 'file')}, {size / 1e6:,.1f} MB, in {plain(file)}"
    )
    for saved in contents.places:
        output.write_hint(plain(saved.root))
    return 0


@command(
    "restore-backup",
    "setup",
    "Put back what a backup holds.",
    "tacit restore-backup ~/tacit.tar.gz",
    note="What stood there is put aside, not deleted.",
)
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore_backup_command(file: str, yes: bool, as_json: bool) -> int:
    """Put back what a backup holds, in the place of what is there now.

    The file is checked first, every byte of it. What stands there now is put aside, beside it.
    """
    from tacit.work.backup import check_backup, restore_backup

    path = os.path.expanduser(file)
    contents = check_backup(path)
    when = datetime.fromtimestamp(contents.made).astimezone()
    if not as_json:
        for saved in contents.places:
            output.write_hint(plain(saved.root))
        output.write_hint("and its settings and trusted projects: only if you made this file")
    output.confirm(
        f"Put back what was saved on {when:%Y-%m-%d %H:%M}?",
        yes,
        Usage("what is there now would be replaced", "say that it may be: --yes"),
    )
    contents, aside = restore_backup(path)
    if as_json:
        return output.write_json({"files": len(contents.sums), "aside": aside})
    click.echo(f"Put back {counted(len(contents.sums), 'file')}.")
    for before in aside:
        output.write_hint(f"what was there: {plain(before)}")
    return 0
