"""`tacit improve` and `tacit curate`: learned skills are repaired, archived and joined.

Owns what is printed. The repair and the curation are `learn/`'s.
"""

import secrets
import sys
from typing import TYPE_CHECKING

import click

from tacit.base.clock import ago
from tacit.base.display import columns, counted, dollars, fit, one_line, plain
from tacit.base.errors import NotFound, Refused
from tacit.base.paths import with_tilde
from tacit.base.setting_sections import Settings
from tacit.base.settings import load_settings
from tacit.learn.curate.curation import (
    CurationReport,
    JoinedSkills,
    MovedSkill,
    curate,
    rehearse_curation,
    report_markdown,
    report_path,
)
from tacit.learn.curate.curation_scope import CurationScope, default_scope
from tacit.learn.curate.curation_status import CurationStatus, SkillRow, curation_status
from tacit.traces.trace import OWN_HOST
from tacit.ui.cli import output, user_gate
from tacit.ui.cli.command import command, group
from tacit.ui.cli.output import share_bar, sparkline
from tacit.work import host_links

if TYPE_CHECKING:
    from tacit.learn.improve.repair_broker import Repaired
    from tacit.learn.improve.repair_triggers import FailedUse
    from tacit.traces.store import Store

_MOST_SESSIONS = 1_000


@command(
    "improve",
    "learn",
    "Repair a skill by what failed when it was used.",
    "tacit improve release-notes                     its last use that failed",
    "tacit improve release-notes --session b4a27079  in this session",
)
@click.argument("skill")
@click.option("--session", default="", help="The session in which it failed: its id, or a part.")
def improve_command(skill: str, session: str, as_json: bool) -> int:
    """Repair a skill by what failed when it was used.

    A model reads the skill and what the agent did with it, and mends what led to the failure. The
    result is checked, the commands that failed are run again in the sandbox, and the gate decides:
    a learned skill is changed, one of your own waits in the inbox. Repairs also happen by
    themselves after a failed use; see the settings under [improve].
    """
    from tacit.learn.improve.repair_triggers import find_failed_use
    from tacit.skills.library import Library
    from tacit.traces.store import Store
    from tacit.work.intake import sources, take_in

    settings = load_settings().settings
    name = Library(settings=settings).get(skill).name
    store = click.get_current_context().with_resource(Store.open())
    take_in(store, sources(OWN_HOST))
    use = find_failed_use(store, store.find(session).id, skill, settings) if session else None
    use = use or _last_failed(store, name, settings)
    if use.never:
        raise Refused(f"no repair: {use.why_not}", f"see whose it is: tacit show {name}")
    if not as_json:
        _write_failed_use(use)
    from tacit.learn.improve.repair_job import repair

    done = repair(store, use, settings, f"improve-asked-{secrets.token_hex(6)}")
    if as_json:
        output.write_json(done)
    else:
        _write_repair(done)
    return 0 if done.outcome in ("repaired", "proposed", "nothing") else 1


def _last_failed(store: "Store", name: str, settings: Settings) -> "FailedUse":
    """The newest use of the skill that failed; one that never failed cannot be repaired."""
    from tacit.learn.improve.repair_triggers import find_failed_use, why_not_counted

    why = "it was not used in any session that is known"
    for stored in store.sessions(limit=_MOST_SESSIONS):
        if name not in stored.skills:
            continue
        use = find_failed_use(store, stored.id, name, settings)
        if use.failures:
            return use
        why = f"in {stored.id}, {why_not_counted(use.run)}"
    raise NotFound(
        f"there is no failed use of '{name}' to learn from: {why}",
        f"name a session: tacit improve {name} --session ID",
    )


def _write_failed_use(use: "FailedUse") -> None:
    """Say on standard error which failed use is being repaired."""
    failed = counted(len(use.failures), "failed step")
    text = f"looking at {use.entry.name} in {use.run.session}, {failed}"
    click.echo(click.style(one_line(text), dim=True), file=sys.stderr)


def _write_repair(done: "Repaired") -> None:
    title = {
        "repaired": "repaired",
        "proposed": "mended; it waits for you",
        "nothing": "left as it is",
        "refused": "not repaired",
        "failed": "not repaired",
        "put off": "not repaired",
    }.get(done.outcome, done.outcome)
    click.echo(f"{click.style(one_line(done.skill), bold=True)} {title}: {one_line(done.reason)}")
    if done.diff and done.change:
        click.echo(f"\n{plain(done.diff)}\n")
    for word, items in (("verified", done.verified), ("not verified", done.open)):
        for item in items:
            click.echo(f"  {word}: {one_line(item)}")
    short = done.change[-8:]
    if done.outcome == "repaired":
        click.echo(f"see: tacit diff {short} · undo: tacit undo {short}")
    elif done.outcome == "proposed":
        click.echo(f"keep: tacit accept {short} · drop: tacit reject {short}")
    if done.ran is not None and done.ran.turns:
        cost = dollars(done.ran.cost) if done.ran.cost is not None else "no price known"
        spent = f"{counted(done.ran.turns, 'request')}, {done.ran.seconds:.0f} s, {cost}"
        click.echo(click.style(spent, dim=True), file=sys.stderr)


_STATE_COLOURS = {"archived": "yellow", "stale": "yellow", "active": "green"}
_STATE_WORDS = {"active": "in use again"}


@group(
    "curate",
    "change",
    "Put away what nobody uses, and see how the library ages.",
    "tacit curate --dry-run             what would be done, and why",
    "tacit curate                       do it; the last line takes all of it back",
    "tacit curate status                ages, uses, and when the next run is due",
    "tacit curate --consolidate         have a model join skills that are much alike",
    "tacit restore NAME                 bring one skill back",
)
@click.option("--dry-run", is_flag=True, help="Do it on a copy, and say what it came to.")
@click.option("--consolidate", "join", is_flag=True, help="Let a model join look-alikes instead.")
@click.option("--apply", "waiting", metavar="ID", help="Join what waits for your word.")
@click.pass_context
def curate_command(
    ctx: click.Context, dry_run: bool, join: bool, waiting: str | None, as_json: bool
) -> int:
    """Put away learned skills that nobody uses.

    After 30 days without use or edit a skill is stale, after 90 it is archived; used or edited, it
    is active again. Pinned and scheduled skills and your own are left alone, nothing is deleted,
    and what is archived comes back when it is called by its name. This happens by itself every
    seven days when no agent is at work; [curate] in the settings says when, and whether a model
    joins look-alikes as well.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    settings = load_settings().settings
    scope = default_scope()
    host_links.listen()
    if join or waiting:
        return _consolidate(scope, settings, waiting, dry_run, as_json)
    report = rehearse_curation(scope, settings) if dry_run else curate(scope, settings)
    if as_json:
        return output.write_json(report)
    write_curation(report)
    if not dry_run:
        output.write_hint(f"as Markdown: {with_tilde(report_path(scope, report.id))}")
    return 0


def _consolidate(
    scope: CurationScope, settings: Settings, waiting: str | None, dry_run: bool, as_json: bool
) -> int:
    from tacit.learn.curate.curator import accept_consolidation, consolidate

    if waiting:
        done = accept_consolidation(scope, waiting)
        if done is None:
            hint = "see what does: tacit curate status"
            raise NotFound(f"no consolidation '{waiting}' waits for you", hint)
        reports = [done]
    else:
        reports = consolidate(scope, settings, dry=dry_run, asked=True)
    if as_json:
        output.write_json({"reports": reports})
        return _consolidation_code(reports)
    if not reports:
        click.echo("No learned skills are much alike.")
    for report in reports:
        write_joins(report)
    return _consolidation_code(reports)


def _consolidation_code(reports: list[CurationReport]) -> int:
    """How it ends: 0, refused, or 1 where no model could be asked."""
    if any(joined.outcome == "refused" for report in reports for joined in report.joined):
        return user_gate.REFUSED
    return 1 if any(report.later for report in reports) else 0


def write_joins(report: CurationReport) -> None:
    """Print how one cluster of look-alikes was joined."""
    for joined in report.joined:
        _write_joined(joined)
    for note in report.notes:
        click.echo(plain(note))
    if any(joined.outcome == "waits for you" for joined in report.joined):
        output.write_hint(f"join them: tacit curate --apply {report.id[-8:]}")
    if report.undo:
        output.write_hint(f"undo all of it: {report.undo}")


@curate_command.verb(
    "status",
    "tacit curate status",
    "tacit curate status --all          also those that are left alone",
    "tacit curate status --report       the last run, as Markdown",
)
@click.option("--all", "everything", is_flag=True, help="Also those that are left alone.")
@click.option("--report", "as_report", is_flag=True, help="Print the last run as Markdown.")
def status(everything: bool, as_report: bool, as_json: bool) -> int:
    """Show how the library ages: how long each learned skill has been without use."""
    found = curation_status(default_scope(), load_settings().settings)
    if as_json:
        output.write_json(found)
    elif as_report:
        text = report_markdown(found.runs[0]) if found.runs else "No run yet.\n"
        click.echo(plain(text), nl=False)
    else:
        write_aging(found, everything)
    return 0


def write_curation(report: CurationReport) -> None:
    """A run in the terminal: what changed, why, how to undo."""
    head = f"on a copy: {report.summary()}" if report.dry else report.summary()
    click.echo(click.style(head[0].upper() + head[1:], bold=True))
    for moved in report.moved:
        _write_moved(moved)
    for joined in report.joined:
        _write_joined(joined)
    counts = [f"{count} {state}" for state, count in report.states.items()]
    left = [f"{count} {why}" for why, count in report.kept.items()]
    alone = f"; left alone: {', '.join(left)}" if left else ""
    click.echo(f"learned skills: {', '.join(counts)}{alone}")
    for note in report.notes:
        click.echo(click.style(f"note: {plain(note)}", fg="yellow"))
    if report.undo:
        output.write_hint(f"undo all of it: {report.undo}")


def _write_moved(moved: MovedSkill) -> None:
    word = click.style(
        f"{_STATE_WORDS.get(moved.after, moved.after):<12}", fg=_STATE_COLOURS[moved.after]
    )
    outcome = "" if moved.outcome in ("done", "would") else f" [{moved.outcome}]"
    note = f": {moved.note}" if moved.note else ""
    text = one_line(f"{moved.skill}{outcome}: {moved.why}{note}")
    click.echo(f"  {word} {fit(text, max(columns() - 16, 30))}")
    if moved.change and moved.outcome == "done":
        output.write_hint(f"{'':<15} undo: tacit undo {moved.change[-8:]}")
    elif moved.outcome == "proposed":
        output.write_hint(f"{'':<15} see it: tacit inbox {moved.change[-8:]}")


def _write_joined(joined: JoinedSkills) -> None:
    new = " (new)" if joined.is_new else ""
    what = f"{plain(joined.umbrella)}{new} [{joined.outcome}]"
    click.echo(f"  joined       {what}: {one_line(joined.why)}")
    click.echo(f"               takes in {plain(', '.join(joined.absorbed))}")
    for name in joined.rewritten:
        click.echo(f"               {plain(name)} now names it")
    if joined.note:
        click.echo(f"               {one_line(joined.note)}")


def write_aging(found: CurationStatus, everything: bool) -> None:
    """The picture: states as bars, uses by week, the skills by age."""
    most = max([1, *found.states.values()])
    for state, count in found.states.items():
        line = f"{state:<9} {count:>5}  {share_bar(count / most, 30)}"
        click.echo(click.style(line, fg=_STATE_COLOURS[state] if count else None))
    if found.kept:
        left = ", ".join(f"{count} {why}" for why, count in sorted(found.kept.items()))
        click.echo(f"left alone: {left}")
    if any(found.weeks):
        click.echo(f"uses in the last 26 weeks  |{sparkline(found.weeks)}|  {sum(found.weeks)}")
    click.echo()
    shown = sorted(
        (row for row in found.rows if everything or not row.kept),
        key=lambda row: (-row.idle, row.skill),
    )
    if shown:
        head = ("skill", "state", "days", "uses", "last use", "26 weeks")
        click.echo(output.table(head, [_aging_row(row) for row in shown], ("last use", "uses")))
    else:
        click.echo("Nothing was learned yet.")
    last = f"last looked after {ago(found.last)}" if found.last else "never looked after yet"
    next_time = found.why or "the next run is due now"
    output.write_hint(f"{last}; {next_time}")
    for waiting in found.waiting:
        names = ", ".join(joined.umbrella for joined in waiting.joined)
        click.echo(f"waits for you: {plain(names)}: tacit curate --apply {waiting.id[-8:]}")
    for run in found.runs[:3]:
        undo = f"  {run.undo}" if run.undo else ""
        output.write_hint(f"{run.at.astimezone():%Y-%m-%d}  {run.summary()}{undo}")


def _aging_row(row: SkillRow) -> tuple[str, ...]:
    return (
        one_line(row.skill),
        row.kept or row.state,
        f"{row.idle:.0f}",
        str(row.uses),
        f"{row.last_use.astimezone():%Y-%m-%d}" if row.last_use else "never",
        sparkline(row.weeks),
    )
