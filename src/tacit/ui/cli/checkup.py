"""`tacit doctor`: runs the checks of every layer over Tacit's own data, and mends damage."""

from typing import TYPE_CHECKING

import click
import msgspec

from tacit.base import doctor
from tacit.base.display import counted, plain
from tacit.base.doctor import Check, Finding
from tacit.base.errors import BadConfig
from tacit.learn import use_records
from tacit.skills.library_checks import LIBRARY_CHECKS
from tacit.traces.deafness import DEAFNESS_CHECKS
from tacit.ui.cli import output
from tacit.ui.cli.command import command
from tacit.work.work_checks import JOB_CHECKS, SCHEDULE_CHECKS

if TYPE_CHECKING:
    from tacit.learn.background.task import Confinement


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
    # Before the database as a whole, which is put aside only if this does not mend it.
    *use_records.CHECKS,
    *doctor.BASE_CHECKS,
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

    Nothing is changed without --fix. Indexes are made again; a change that a kill interrupted is
    finished or taken back. What you wrote yourself is never touched. Said as well is what keeps an
    agent in the background in, on this machine.
    """
    from tacit.agent import process_rights
    from tacit.learn.background import confinement

    findings = [finding for check in CHECKS for finding in check()]
    mended = [finding for finding in findings if fix and _repair(finding)]
    left = [finding for finding in findings if finding not in mended]
    held, abi = confinement.probe_confinement(), process_rights.landlock_version()
    if as_json:
        rows = [
            {"code": f.code, "what": f.what, "fix": f.fix, "can_mend": f.repair is not None,
             "mended": f in mended}
            for f in findings
        ]  # fmt: skip
        room = {"landlock": abi, **msgspec.to_builtins(held)}
        output.write_json({"checks": len(CHECKS), "findings": rows, "room": room})
        return 6 if left else 0
    for finding in findings:
        done = finding in mended
        mark = click.style("mended", fg="green") if done else click.style("wrong ", fg="red")
        click.echo(f"{mark}  {plain(finding.what)}")
        if not done:
            would = "would be mended: " if finding.repair else "please "
            click.echo(f"        {would}{plain(finding.fix)}")
    if not findings:
        click.echo(f"{counted(len(CHECKS), 'check')}, nothing wrong")
    elif not fix and any(finding.repair for finding in left):
        click.echo("\nMend it with: tacit doctor --fix")
    _write_confinement(held, abi)
    return 6 if left else 0


def _write_confinement(held: "Confinement", abi: int) -> None:
    """What keeps an agent in the background in. It is no damage, so it stands by itself."""
    from tacit.learn.background.confinement import describe_confinement

    by = f"Landlock {abi}" if abi else "no Landlock"
    click.echo(
        output.wrapped(f"An agent in the background ({by}): {plain(describe_confinement(held))}")
    )


def _repair(finding: Finding) -> bool:
    if finding.repair is None:
        return False
    try:
        finding.repair()
    except OSError as error:
        click.echo(f"tacit: could not mend: {plain(finding.what)}: {error.strerror}", err=True)
        return False
    return True
