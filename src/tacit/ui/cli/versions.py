"""`tacit log`, `history`, `diff`, `undo`, `rollback`: what happened to skills, and undoing it."""

import os
import sqlite3
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import click

from tacit.base.display import columns, counted, fit, one_line, plain
from tacit.base.errors import NotFound, TacitError
from tacit.base.settings import load_settings
from tacit.changes.change import BACKGROUND, File, Verdict, acting_as, is_change_id
from tacit.changes.containment import open_root
from tacit.changes.file_edits import diff_files
from tacit.changes.gate import Gate
from tacit.changes.history import Version
from tacit.changes.inbox import Inbox
from tacit.changes.left_out import waits_note
from tacit.changes.skill_state import read_state
from tacit.skills.library import archived_named
from tacit.skills.standing import standing_of
from tacit.ui.cli import output, user_gate
from tacit.ui.cli.command import command
from tacit.ui.cli.output import sparkline
from tacit.ui.cli.user_shell import complete_skill

if TYPE_CHECKING:  # the life of a skill is told by `history` alone
    from tacit.learn.improve.probation import Probation
    from tacit.learn.skill_timeline import Figures, SkillEvent
    from tacit.traces.skill_uses import RecordedViews, Use

_LOG_DROPS = ("by", "when", "why", "what")


@command(
    "log",
    "history",
    "Show the history of skills, the newest change first.",
    "tacit log                          the last changes to any skill",
    "tacit log db-migration             everything that happened to one",
    "tacit log -n 100 --json",
    note="Take one back: tacit undo CHANGE. See what it did: tacit diff CHANGE.",
)
@click.argument("name", required=False, shell_complete=complete_skill)
@click.option("-n", "--limit", type=click.IntRange(1), default=20, help="How many.")
def log_command(name: str | None, limit: int, as_json: bool) -> int:
    """Show the history of skills, the newest change first.

    A name alone stands for the skill that it means now, or for one that is gone.
    """
    gate, library = user_gate.open_gate()
    if name:
        target = user_gate.find_target(gate, library, name)
        found = [
            v for v, _ in zip(target.opened.history.log(target.skill), range(limit), strict=False)
        ]
    else:
        found = user_gate.latest_versions(gate, limit)
    if as_json:
        return output.write_json({"versions": [_version_as_json(version) for version in found]})
    if not found:
        click.echo("Nothing has been changed through tacit yet.")
        return 0
    rows = [_log_row(version, gate.inbox) for version in found]
    click.echo(output.table(("when", "change", "skill", "what", "by", "why"), rows, _LOG_DROPS))
    return 0


def _log_row(version: Version, inbox: Inbox) -> tuple[str, ...]:
    record = version.record
    lines = inbox.lines_of(record.change) if record.actor in BACKGROUND else None
    waits = f"{waits_note(lines.change)} · " if lines else ""
    what = f"undo of {record.undoes[-8:]}" if record.undoes else record.kind
    return (
        _when(version.at),
        record.change[-8:],
        one_line(record.skill),
        what,
        record.actor,
        waits + one_line(record.reason),
    )


def _when(at: datetime) -> str:
    return f"{at.astimezone():%Y-%m-%d %H:%M}"


_LOG_KEYS = (
    "change", "skill", "kind", "actor", "reason", "session", "evidence", "overrides",
    "approved_by", "undoes", "partner", "state",
)  # fmt: skip


def _version_as_json(version: Version) -> dict[str, object]:
    record = {key: getattr(version.record, key) for key in _LOG_KEYS}
    return {"version": version.id, "at": version.at, **record}


_EVENT_COLOURS = {
    "failed": "red", "repaired": "green", "kept": "green", "rolled back": "yellow",
    "archived": "yellow", "absorbed": "yellow", "made": "green", "restored": "green",
}  # fmt: skip
_WEEKS = 26
_MOST_VERSIONS = 100


@command(
    "history",
    "history",
    "Show the life of a skill: made, used, failed, repaired.",
    "tacit history db-migration",
    "tacit history db-migration -n 0    from the beginning",
    "tacit session claude-code:b4a2…    a session that it names",
)
@click.argument("name", shell_complete=complete_skill)
@click.option("-n", "--limit", type=click.IntRange(0), default=40, help="How many; 0 is all.")
def history_command(name: str, limit: int, as_json: bool) -> int:
    """Show the life of a skill: made, used, failed, repaired, rolled back, archived.

    Uses are those in our chat and in every connected agent; each names its session.
    """
    from tacit.learn.improve.probation import probation_verdicts
    from tacit.learn.skill_timeline import figures, timeline, weekly_uses
    from tacit.learn.use_records import catch_up
    from tacit.traces.skill_uses import reports_of
    from tacit.traces.store import Store

    gate, library = user_gate.open_gate(everywhere=True)
    target = user_gate.find_target(gate, library, name)
    log = list(target.opened.history.log(target.skill))
    with Store.open() as store:
        catch_up(store)
        uses, views = _uses_and_views(store.connection, target)
        verdicts = probation_verdicts(store.connection, target.skill)
        reports = [
            report
            for known in sorted(_names_of(target))
            for report in reports_of(store.connection, known)
        ]
        events = timeline(log, uses, store, verdicts, reports)
        repaired = bool(log) and log[0].record.actor == "improver"
        watched = _on_probation(store.connection, target) if repaired else None
    found = figures(uses, views, log)
    weeks = weekly_uses(uses, gate.clock.now(), _WEEKS)
    shown = events[-limit:] if limit else events
    entry = target.entry or next(iter(archived_named(library, target.skill)), None)
    standing = standing_of(entry.name, entry.digest) if entry is not None else ("", "")
    if as_json:
        return output.write_json(
            {
                "skill": target.skill,
                "standing": standing[0],
                "figures": found,
                "weeks": weeks,
                "events": shown,
                "probation": watched,
                "versions": [_version_as_json(version) for version in log[:_MOST_VERSIONS]],
            }
        )
    _write_figures(plain(name), found, weeks)
    if standing[1]:
        click.echo(output.wrapped(plain(f"{standing[0]}; {standing[1]}")))
    if watched is not None:
        click.echo(output.wrapped(f"repair {watched.change[-8:]} on probation: {watched.numbers}"))
    click.echo()
    if len(shown) < len(events):
        output.write_hint(f"… {len(events) - len(shown)} earlier: -n 0")
    for event in shown:
        _write_event(event)
    return 0


def _uses_and_views(
    connection: sqlite3.Connection, target: user_gate.Target
) -> "tuple[list[Use], list[RecordedViews]]":
    """The uses and views of a skill: by its own name or its folder's, of a project in it."""
    from tacit.traces.skill_uses import uses_of, views_of

    names = _names_of(target)
    inside = target.opened.place.project.rstrip("/")
    uses = [
        use
        for use in uses_of(connection, names)
        if not inside or f"{use.project}/".startswith(inside + "/")
    ]
    return uses, [view for view in views_of(connection) if view.skill in names]


def _names_of(target: user_gate.Target) -> set[str]:
    """What a skill is called in the records: its folder's name, and its own."""
    own = {target.entry.name} if target.entry is not None else set()
    return {os.path.basename(target.skill), *own}


def _on_probation(connection: sqlite3.Connection, target: user_gate.Target) -> "Probation | None":
    """The repair that is on probation; one that cannot be read is a matter for `tacit doctor`."""
    if target.entry is None:
        return None
    from tacit.learn.improve.probation import current_probation

    with suppress(TacitError):
        return current_probation(connection, target.root, target.skill, load_settings().settings)
    return None


def _write_figures(name: str, found: "Figures", weeks: list[int]) -> None:
    last = f", last {found.last_use.astimezone():%Y-%m-%d}" if found.last_use else ""
    click.echo(click.style(name, bold=True))
    click.echo(
        f"used {counted(found.uses, 'time')}{last}"
        f" ({found.by_people} by you, {found.by_models} by models),"
        f" looked at {found.seen_by_people + found.seen_by_models},"
        f" changed {found.edits}"
    )
    if found.uses:
        click.echo(f"last {_WEEKS} weeks  |{sparkline(weeks)}|  most in one: {max(weeks)}")
    for version in found.versions[:5]:
        share = f"{version.failed} of {version.calls} calls failed"
        label = version.digest[:8] or "unknown"
        click.echo(f"version {label:<8}  {counted(version.uses, 'use')}, {share}")


def _write_event(event: "SkillEvent") -> None:
    when = f"{event.at.astimezone():%Y-%m-%d %H:%M}"
    what = click.style(f"{event.what:<11}", fg=_EVENT_COLOURS.get(event.what))
    parts = []
    if event.what == "failed":
        parts.append(f"{event.failed} of {event.calls} calls")
    elif event.what == "used":
        parts.append(counted(event.times, "time"))
    if event.change:
        parts.append(event.change[-8:])
    whole = event.what in ("kept", "rolled back")  # figures: half of them would mislead
    if event.detail and not whole:
        parts.append(one_line(event.detail))
    text = fit(f"by {plain(event.by)}: {' · '.join(parts)}", max(columns() - 30, 30))
    click.echo(f"{when}  {what} {text.rstrip(': ')}")
    if event.detail and whole:
        click.echo(f"{'':<18}{one_line(event.detail)}")
    for session in event.sessions[:3]:
        output.write_hint(f"{'':<18}tacit session {plain(session)}")
    if len(event.sessions) > 3:
        output.write_hint(f"{'':<18}and {len(event.sessions) - 3} more")


@command(
    "diff",
    "history",
    "Show what a change did, or how a skill differs.",
    "tacit diff db-migration            hand edits since the last change; else the last change",
    "tacit diff db-migration 3f2a91c0   since that version",
    "tacit diff db-migration 3f2a91c0 9c1d22ab   from one version to another",
    "tacit diff 9c1d22ab                what that change did",
)
@click.argument("what")
@click.argument("version", required=False)
@click.argument("later", required=False)
def diff_command(what: str, version: str | None, later: str | None, as_json: bool) -> int:
    """Show what a change did, or how a skill differs from an earlier version.

    WHAT is a change (its id, or the end of it as `tacit log` shows it) or a skill.
    """
    gate, library = user_gate.open_gate(everywhere=True)
    found = None if library.find(what) or version else _diff_of_change(gate, what)
    if found is None:
        target = user_gate.find_target(gate, library, what)
        found = _diff_of_skill(target, version, later)
    if as_json:
        output.write_json({"diff": found})
    elif found:
        output.write_diff(found)
    else:
        click.echo("No difference.")
    return 0


def _diff_of_change(gate: Gate, start: str) -> str | None:
    for opened in gate.open_places.values():
        try:
            change = opened.history.find_change(start)
        except NotFound:
            continue
        parts = []
        for made in opened.history.of_change(change):
            before = opened.history.version(made.parent) if made.parent else None
            old = opened.history.files(before) if before and made.record.was == "live" else {}
            new = opened.history.files(made) if made.record.state == "live" else {}
            parts.append(diff_files(old, new))
        return "".join(parts)
    if is_change_id(start):
        raise NotFound(f"there is no change '{start}'", "see them: tacit log")
    return None


def _diff_of_skill(target: user_gate.Target, start: str | None, end: str | None) -> str:
    history = target.opened.history
    now: dict[str, File] = {}
    if end:
        now = dict(history.files(user_gate.find_target_version(target, end)))
    elif target.entry is not None:
        with open_root(target.opened.place) as root:
            now = dict(read_state(root, history, target.skill).contents.files)
    if start:
        return diff_files(history.files(user_gate.find_target_version(target, start)), now)
    head = history.head(target.skill)
    if head is None:
        raise NotFound(f"'{target.skill}' has no history yet", "it begins with the first change")
    by_hand = diff_files(history.files(head), now) if target.entry is not None else ""
    if by_hand or not head.parent:
        return by_hand
    return diff_files(history.files(history.version(head.parent)), history.files(head))


@command(
    "undo",
    "history",
    "Take one change back, and nothing else.",
    "tacit undo 9c1d22ab                the end of a change's id, as tacit log shows it",
    "tacit undo 9c1d22ab                once more: the change is back",
    "tacit undo 51f0a7c3                a whole run of tacit curate, as its report says",
)
@click.argument("change")
@click.option("--reason", default="", help="Why, for the history.")
def undo_command(change: str, reason: str, as_json: bool) -> int:
    """Take one change back, and nothing else.

    What came after it is kept. Where later changes touch the same lines, nothing is done, and the
    merged text is put where you can mend it. Undoing twice brings the change back. The id of a
    whole run of curation takes back all that it did.
    """
    gate, _ = user_gate.open_gate(everywhere=True)
    group, verdicts = user_gate.undo_any(gate, change, reason)
    if group:
        return _write_group_undone(group, verdicts, as_json)
    (verdict,) = verdicts
    code = user_gate.write_verdict(verdict, f"Undone, in {verdict.skill}", as_json, back="redo")
    if verdict.offer and not as_json:
        user_gate.write_merged_offer(verdict)
    return code


def _write_group_undone(group: str, verdicts: list[Verdict], as_json: bool) -> int:
    refused = [verdict for verdict in verdicts if not verdict.applied]
    if as_json:
        output.write_json({"group": group, "verdicts": verdicts})
        return user_gate.REFUSED if refused else 0
    done = counted(len(verdicts) - len(refused), "change")
    skills = ", ".join(dict.fromkeys(plain(v.skill) for v in verdicts if v.applied))
    if skills:
        click.echo(f"Undone: {done}, in {skills}")
        output.write_hint(f"redo: tacit undo {group[-8:]}")
    else:
        click.echo("Nothing was undone.")
    for verdict in refused:
        click.echo(f"{plain(verdict.skill)}: {plain(verdict.explain())}", err=True)
    return user_gate.REFUSED if refused else 0


@command(
    "rollback",
    "history",
    "Make one skill what it was in an earlier version.",
    "tacit rollback db-migration            what it was before its last change",
    "tacit rollback db-migration 3f2a91c0   a version or change, as tacit log shows it",
)
@click.argument("name", shell_complete=complete_skill)
@click.argument("version", required=False, default="")
def rollback_command(name: str, version: str, as_json: bool) -> int:
    """Make one skill what it was in an earlier version. No other skill is touched.

    What stands there now is recorded first, so that the rollback can be undone.
    """
    gate, library = user_gate.open_gate()
    target = user_gate.find_target(gate, library, name)
    wanted = user_gate.find_target_version(target, version).id if version else ""
    with acting_as("user"):
        verdict = gate.rollback(target.skill, wanted, root=target.root)
    return user_gate.write_verdict(verdict, f"Rolled {name} back", as_json)
