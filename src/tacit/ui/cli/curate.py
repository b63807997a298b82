"""`tacit curate`: putting away what nobody uses, now; and how the library ages."""

import click

from tacit.base.errors import NotFound
from tacit.base.moments import ago
from tacit.base.paths import shorten
from tacit.base.sections import Settings
from tacit.base.settings import load
from tacit.base.terminal import fit, one_line, plain
from tacit.learn.curate.curating import curate, rehearse, report_path
from tacit.learn.curate.report import Joined, Moved, Report, markdown
from tacit.learn.curate.status import Row, Status
from tacit.learn.curate.status import status as look_at
from tacit.learn.curate.world import World, here
from tacit.ui.cli import gating, output
from tacit.ui.cli.sparks import bar, sparkline
from tacit.work import linking

_EPILOG = """\b
Examples:
  tacit curate --dry-run             what would be done, and why
  tacit curate                       do it; the last line takes all of it back
  tacit curate status                ages, uses, and when the next run is due
  tacit curate --consolidate         have a model join skills that are much alike
  tacit restore NAME                 bring one skill back
"""
_STATUS_EPILOG = """\b
Examples:
  tacit curate status
  tacit curate status --all          also those that are left alone
  tacit curate status --report       the last run, as Markdown
"""
_COLOUR = {"archived": "yellow", "stale": "yellow", "active": "green"}
_WORDS = {"active": "in use again"}


@click.group(epilog=_EPILOG, invoke_without_command=True)
@click.option("--dry-run", is_flag=True, help="Do it on a copy, and say what it came to.")
@click.option("--consolidate", "join", is_flag=True, help="Let a model join look-alikes instead.")
@click.option("--apply", "waiting", metavar="ID", help="Join what waits for your word.")
@output.json_option
@click.pass_context
def command(
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
    settings = load().settings
    world = here()
    linking.listen()
    if join or waiting:
        return _consolidate(world, settings, waiting, dry_run, as_json)
    report = rehearse(world, settings) if dry_run else curate(world, settings)
    if as_json:
        output.write_json(report)
        return 0
    write_report(report)
    if not dry_run:
        click.echo(click.style(f"as Markdown: {shorten(report_path(world, report.id))}", dim=True))
    return 0


def _consolidate(
    world: World, settings: Settings, waiting: str | None, dry_run: bool, as_json: bool
) -> int:
    from tacit.learn.curate.consolidating import accept, consolidate

    if waiting:
        done = accept(world, waiting)
        if done is None:
            hint = "see what does: tacit curate status"
            raise NotFound(f"no consolidation '{waiting}' waits for you", hint)
        reports = [done]
    else:
        reports = consolidate(world, settings, dry=dry_run, asked=True)
    if as_json:
        output.write_json({"reports": reports})
        return _code(reports)
    if not reports:
        click.echo("No learned skills are much alike.")
    for report in reports:
        write_joins(report)
    return _code(reports)


def _code(reports: list[Report]) -> int:
    """How it ends: 0, refused, or 1 where no model could be asked."""
    if any(joined.outcome == "refused" for report in reports for joined in report.joined):
        return gating.REFUSED
    return 1 if any(report.later for report in reports) else 0


def write_joins(report: Report) -> None:
    """What came of one cluster of look-alikes."""
    for joined in report.joined:
        _write_joined(joined)
    for note in report.notes:
        click.echo(plain(note))
    if any(joined.outcome == "waits for you" for joined in report.joined):
        click.echo(click.style(f"join them: tacit curate --apply {report.id[-8:]}", dim=True))
    if report.undo:
        click.echo(click.style(f"undo all of it: {report.undo}", dim=True))


@command.command(epilog=_STATUS_EPILOG)
@click.option("--all", "everything", is_flag=True, help="Also those that are left alone.")
@click.option("--report", "as_report", is_flag=True, help="Print the last run as Markdown.")
@output.json_option
@click.pass_context
def status(ctx: click.Context, everything: bool, as_report: bool, as_json: bool) -> int:
    """Show how the library ages: how long each learned skill has been without use."""
    above = ctx.parent.params if ctx.parent else {}
    as_json = as_json or bool(above.get("as_json"))
    found = look_at(here(), load().settings)
    if as_json:
        output.write_json(found)
    elif as_report:
        text = markdown(found.runs[0]) if found.runs else "No run yet.\n"
        click.echo(plain(text), nl=False)
    else:
        write_status(found, everything)
    return 0


def write_report(report: Report) -> None:
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
        click.echo(click.style(f"undo all of it: {report.undo}", dim=True))


def _write_moved(moved: Moved) -> None:
    word = click.style(f"{_WORDS.get(moved.after, moved.after):<12}", fg=_COLOUR[moved.after])
    outcome = "" if moved.outcome in ("done", "would") else f" [{moved.outcome}]"
    note = f": {moved.note}" if moved.note else ""
    text = one_line(f"{moved.skill}{outcome}: {moved.why}{note}")
    click.echo(f"  {word} {fit(text, max(output.columns() - 16, 30))}")
    if moved.change and moved.outcome == "done":
        click.echo(click.style(f"{'':<15} undo: tacit undo {moved.change[-8:]}", dim=True))
    elif moved.outcome == "proposed":
        click.echo(click.style(f"{'':<15} see it: tacit inbox {moved.change[-8:]}", dim=True))


def _write_joined(joined: Joined) -> None:
    new = " (new)" if joined.is_new else ""
    what = f"{plain(joined.umbrella)}{new} [{joined.outcome}]"
    click.echo(f"  joined       {what}: {one_line(joined.why)}")
    click.echo(f"               takes in {plain(', '.join(joined.absorbed))}")
    for name in joined.rewritten:
        click.echo(f"               {plain(name)} now names it")
    if joined.note:
        click.echo(f"               {one_line(joined.note)}")


def write_status(found: Status, everything: bool) -> None:
    """The picture: states as bars, uses by week, the skills by age."""
    most = max([1, *found.states.values()])
    for state, count in found.states.items():
        line = f"{state:<9} {count:>5}  {bar(count, most, 30)}"
        click.echo(click.style(line, fg=_COLOUR[state] if count else None))
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
        click.echo(output.table(head, [_row(row) for row in shown], ("last use", "uses")))
    else:
        click.echo("Nothing was learned yet.")
    last = f"last looked after {ago(found.last)}" if found.last else "never looked after yet"
    next_time = found.why or "the next run is due now"
    click.echo(click.style(f"{last}; {next_time}", dim=True))
    for waiting in found.waiting:
        names = ", ".join(joined.umbrella for joined in waiting.joined)
        click.echo(f"waits for you: {plain(names)}: tacit curate --apply {waiting.id[-8:]}")
    for run in found.runs[:3]:
        undo = f"  {run.undo}" if run.undo else ""
        click.echo(click.style(f"{run.at.astimezone():%Y-%m-%d}  {run.summary()}{undo}", dim=True))


def _row(row: Row) -> tuple[str, ...]:
    return (
        one_line(row.skill),
        row.kept or row.state,
        f"{row.idle:.0f}",
        str(row.uses),
        f"{row.last_use.astimezone():%Y-%m-%d}" if row.last_use else "never",
        sparkline(row.weeks),
    )
