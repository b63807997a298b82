"""`tacit learn`: from sessions to skills, with a model or by counting."""

import os
import sys
from contextlib import nullcontext
from typing import Any

import click
import msgspec

from tacit.base.errors import TacitError, Usage
from tacit.base.moments import parse_since
from tacit.base.sections import Settings
from tacit.base.settings import load
from tacit.learn import noticing
from tacit.learn.distil import METHOD, distil
from tacit.learn.ledger import Ledger
from tacit.traces.store import Store, Stored
from tacit.ui.cli import learning, output
from tacit.ui.cli.names import complete_host, complete_session
from tacit.work import linking
from tacit.work.intake import sources, take_in

_EPILOG = """\b
Examples:
  tacit learn                        new sessions of all agents, the newest 20
  tacit learn b4a27079               one session
  tacit learn ~/transcripts/         sessions in a file or a folder
  tacit learn --host codex --since 30d
  tacit learn --dry-run              show what would be done; nothing is changed
  tacit learn --no-model             by counting only, which costs nothing
"""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for."""

    what: str
    host: str
    since: str
    most: int
    again: bool
    model: str
    no_model: bool
    dry_run: bool
    yes: bool
    as_json: bool

    @property
    def is_path(self) -> bool:
        return bool(self.what) and (os.sep in self.what or os.path.exists(self.what))

    @property
    def names_sessions(self) -> bool:
        """Whether sessions are named, by id or by file, rather than a folder to look through."""
        return bool(self.what) and (not self.is_path or os.path.isfile(self.what))


@click.command(epilog=_EPILOG)
@click.argument("what", default="", metavar="[SESSION|PATH]", shell_complete=complete_session)
@click.option("--host", default="", shell_complete=complete_host, help="Only this agent's.")
@click.option("--since", default="", help="Only sessions since: 30d, a date.")
@click.option("-n", "--most", type=click.IntRange(1), default=20, help="Sessions at most.")
@click.option("--again", is_flag=True, help="Also sessions that were looked at before.")
@click.option("--model", default="", help="Another model for this run, as provider:model.")
@click.option("--no-model", is_flag=True, help="By counting only: drafts for the inbox.")
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would be done.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask, whatever it may cost.")
@output.json_option
def command(**given: Any) -> int:
    """Learn from what agents did.

    With a model, a reviewer of its own reads each session in short form; what it makes passes the
    gate and, by `learn.approval`, lands or waits for you. Before, it is said what that is likely to
    cost; after, what it cost. Ctrl-C keeps what is done.

    Without a model, by counting: a command that failed and then worked, what you put right,
    commands that recur in the same order. That makes drafts, which wait in the inbox.
    """
    options = Options(**given)
    if options.model and options.no_model:
        raise Usage("--model and --no-model exclude each other", "leave one of them out")
    flags = {"agent.background": options.model} if options.model else {}
    settings = load(flags=flags).settings
    linking.listen()
    # Where nobody may be watching, what lands is told later as well.
    watched = sys.stdout.isatty()
    with Store.open() as store, nullcontext() if watched else noticing.listening():
        found = _sessions(store, options)
        model, why = ("", "") if options.no_model else _model(settings)
        if model:
            return learning.with_model(store, found, settings, model, options)
        return _by_counting(store, found, options, why)


def _model(settings: Settings) -> tuple[str, str]:
    """The model for reviews, or why there is none."""
    from importlib.util import find_spec

    from tacit.learn.background.model import choose

    if find_spec("pydantic_ai") is None:
        return "", "no model can be asked: pip install 'tacit[agent]'"
    try:
        return choose(settings.agent).name, ""
    except TacitError as error:
        return "", f"{error.message}; {error.hint}"


def _sessions(store: Store, options: Options) -> list[Stored]:
    """What was asked for, newest first; sessions that are new are taken in before."""
    if options.is_path:
        return _in_path(store, options)
    if options.what:
        return [store.find(options.what)]
    _take_in(store, options.host, options.as_json)
    moment = parse_since(options.since) if options.since else None
    return store.sessions(host=options.host, since=moment, limit=10_000)


def _in_path(store: Store, options: Options) -> list[Stored]:
    found = _take_in(store, options.what, options.as_json)
    moment = parse_since(options.since) if options.since else None
    every = store.sessions(host=options.host, since=moment, limit=100_000)
    return [stored for stored in every if stored.head.source in found]


def _take_in(store: Store, what: str, quiet: bool) -> set[str]:
    found = sources(what)
    hidden = quiet or not sys.stderr.isatty()
    with click.progressbar(
        length=len(found), label="reading sessions", file=sys.stderr, hidden=hidden
    ) as bar:
        take_in(store, found, lambda source: bar.update(1))
    return {source.path for source in found}


def _by_counting(store: Store, found: list[Stored], options: Options, why: str) -> int:
    ledger = Ledger(store.connection)
    named = bool(options.what)
    chosen = [s for s in found if named or options.again or ledger.is_new(s, METHOD)]
    done = distil(store, ledger, chosen, dry_run=options.dry_run)
    if options.as_json:
        output.write_json({"sessions": len(chosen), "drafts": done, "model": ""})
        return 0
    learning.write_drafts(done, len(chosen), options.dry_run, why)
    return 0
