"""`tacit improve`: have a skill repaired now."""

import secrets
import sys

import click

from tacit.base.amounts import counted, dollars
from tacit.base.errors import NotFound, Refused
from tacit.base.sections import Settings
from tacit.base.settings import load
from tacit.base.terminal import one_line, plain
from tacit.learn.improve.broker import Repaired
from tacit.learn.improve.triggers import Case, aside, find_case
from tacit.skills.library import Library
from tacit.traces.store import Store
from tacit.ui.cli import output
from tacit.work.intake import sources, take_in

_MOST = 1_000
_EPILOG = """\b
Examples:
  tacit improve release-notes                     its last use that failed
  tacit improve release-notes --session b4a27079  in this session
"""


@click.command(epilog=_EPILOG)
@click.argument("skill")
@click.option("--session", default="", help="The session in which it failed: its id, or a part.")
@output.json_option
def command(skill: str, session: str, as_json: bool) -> int:
    """Repair a skill by what failed when it was used.

    A model reads the skill and what the agent did with it, and mends what led to the failure. The
    result is checked, the commands that failed are run again in the sandbox, and the gate decides:
    a learned skill is changed, one of your own waits in the inbox. Repairs also happen by
    themselves after a failed use; see the settings under [improve].
    """
    settings = load().settings
    name = Library(settings=settings).get(skill).name
    store = click.get_current_context().with_resource(Store.open())
    take_in(store, sources("tacit"))
    case = find_case(store, store.find(session).id, skill, settings) if session else None
    case = case or _last_failed(store, name, settings)
    if case.never:
        raise Refused(f"no repair: {case.why_not}", f"see whose it is: tacit show {name}")
    if not as_json:
        _tell(case)
    from tacit.learn.improve.repair import repair

    done = repair(store, case, settings, f"improve-asked-{secrets.token_hex(6)}")
    if as_json:
        output.write_json(done)
    else:
        _write(done)
    return 0 if done.outcome in ("repaired", "proposed", "nothing") else 1


def _last_failed(store: Store, name: str, settings: Settings) -> Case:
    """The newest use of the skill that failed; of one that never did, nothing can be mended."""
    why = "it was not used in any session that is known"
    for stored in store.sessions(limit=_MOST):
        if name not in stored.skills:
            continue
        case = find_case(store, stored.id, name, settings)
        if case.failures:
            return case
        why = f"in {stored.id}, {aside(case.run)}"
    raise NotFound(
        f"there is no failed use of '{name}' to learn from: {why}",
        f"name a session: tacit improve {name} --session ID",
    )


def _tell(case: Case) -> None:
    """What is being looked at, on the side: the answer is what is printed."""
    failed = counted(len(case.failures), "failed step")
    said = f"looking at {case.entry.name} in {case.run.session}, {failed}"
    click.echo(click.style(one_line(said), dim=True), file=sys.stderr)


def _write(done: Repaired) -> None:
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
