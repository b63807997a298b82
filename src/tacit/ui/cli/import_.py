"""`tacit import`: take sessions in from the agents on this machine, or from files."""

import sys

import click

from tacit.base import settings
from tacit.base.amounts import counted
from tacit.base.moments import parse_since
from tacit.traces.hosts import registry
from tacit.traces.trace import REASONS
from tacit.ui.cli import output
from tacit.work.intake import Taken, keep_to_limits, open_store, sources, take_in

_EPILOG = """\b
Examples:
  tacit import                       every agent that is found here
  tacit import codex --since 30d
  tacit import ./trajectories.jsonl  a file or folder of a known form

Forms: the transcripts of Claude Code, Codex, Gemini CLI, Qwen Code, Copilot CLI, opencode, pi and
Hermes; OpenAI-style message lists, ShareGPT, SWE-agent .traj; OpenHands and Cursor by their docs.
"""


@click.command("import", epilog=_EPILOG)
@click.argument("what", required=False, default="")
@click.option("--since", help="Only those changed since: 7d, 12h, a date.")
@output.json_option
def command(what: str, since: str | None, as_json: bool) -> int:
    """Take sessions in: of all agents, of one, or from a file.

    Secrets are taken out before anything is stored. Reading again costs little: only what is new is
    read. The agents' own files are never changed.
    """
    chosen = sources(what, parse_since(since) if since else None)
    chosen_settings = settings.load().settings.traces
    store = click.get_current_context().with_resource(open_store(chosen_settings))
    hidden = as_json or not sys.stderr.isatty()
    with click.progressbar(
        length=len(chosen), label="reading sessions", file=sys.stderr, hidden=hidden
    ) as bar:
        taken = take_in(store, chosen, lambda source: bar.update(1))
    keep_to_limits(store, chosen_settings)
    if as_json:
        output.write_json({"hosts": taken})
        return 0
    if not taken:
        where = f" of {what}" if what else ""
        click.echo(f"No sessions{where} were found.")
        for line in registry.problems():
            click.echo(f"tacit: {line}", err=True)
        return 0
    _write(taken)
    return 0


def _write(taken: list[Taken]) -> None:
    head = ("agent", "found", "new", "grown", "unchanged", "empty", "secrets taken out")
    rows = [
        (
            t.title,
            f"{t.found:,}",
            *(f"{t.counts.get(s, 0):,}" for s in ("new", "grown", "unchanged", "empty")),
            ", ".join(f"{count} {rule}" for rule, count in t.redacted.items()),
        )
        for t in taken
    ]
    click.echo(output.table(head, rows, ("empty", "grown", "unchanged", "found")))
    for t in taken:
        if left := t.counts.get("forgotten"):
            click.echo(f"{t.title}: {counted(left, 'session')} left out, as you forgot them")
    passed = [(t.title, r, n) for t in taken for r, n in t.skipped.items()]
    for title, reason, count in passed:
        click.echo(
            click.style(f"{title}: passed over {count:,} {REASONS.get(reason, reason)}", dim=True)
        )
    if any(t.counts.get("new") or t.counts.get("grown") for t in taken):
        click.echo("\nSee them: tacit sessions")
