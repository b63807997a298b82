"""`tacit session`: one session as a timeline."""

import click

from tacit.base.paths import shorten
from tacit.base.terminal import fit, one_line, plain
from tacit.learn.ledger import Ledger
from tacit.traces import derived
from tacit.traces.store import Store, Stored
from tacit.traces.trace import REASONS, Activation, Compaction, Subagent, Text, ToolCall, Trace
from tacit.ui.cli import output
from tacit.ui.cli.names import complete_session
from tacit.ui.cli.sessions import rows_of

_EPILOG = """\b
Examples:
  tacit session b4a27079             the first characters of its id will do
  tacit session claude-code:b4a27079-b3f0-4aac-a79c-04d4f81b280f --full
  tacit session b4a27079 --json
"""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_session)
@click.option("--full", is_flag=True, help="Whole texts and results.")
@output.json_option
def command(name: str, full: bool, as_json: bool) -> int:
    """Show one session as a timeline, with failures and corrections marked."""
    store = click.get_current_context().with_resource(Store.open())
    stored = store.find(name)
    trace = store.trace(stored.id)
    if as_json:
        output.write_json(
            {
                "session": rows_of([stored], Ledger(store.connection))[0],
                "turns": trace.turns,
                "corrections": derived.corrections(trace),
                "mended": derived.mended(trace),
                "commands": derived.commands(trace),
                "files": derived.files(trace),
                "skipped": trace.skipped,
            }
        )
        return 0
    _head(stored)
    _timeline(trace, full)
    _foot(trace)
    return 0


def _head(stored: Stored) -> None:
    head = stored.head
    click.echo(click.style(plain(head.title) or stored.id, bold=True))
    facts = {
        "id": stored.id,
        "agent": f"{head.host} {head.version}".strip(),
        "model": head.model,
        "project": shorten(head.project) + (f" ({head.branch})" if head.branch else ""),
        "when": f"{head.started.astimezone():%Y-%m-%d %H:%M}" if head.started else "",
        "calls": f"{stored.calls}, {stored.failures} failed",
        "tokens": f"{head.usage.input:,} in, {head.usage.output:,} out",
        "skills": ", ".join(stored.skills),
    }
    for label, value in facts.items():
        if value:
            click.echo(f"{click.style(f'{label:<8}', dim=True)} {plain(value)}")


def _timeline(trace: Trace, full: bool) -> None:
    corrected = {c.turn for c in derived.corrections(trace) if c.by == "prompt"}
    for turn in trace.turns:
        click.echo()
        if turn.prompt:
            mark = (
                click.style(" correction ", bg="yellow", fg="black") + " "
                if turn.number in corrected
                else ""
            )
            click.echo(f"{click.style('>', fg='cyan', bold=True)} {mark}{_cut(turn.prompt, full)}")
        for step in turn.steps:
            match step:
                case Text(text=text):
                    click.echo(f"  {_cut(text, full)}")
                case ToolCall():
                    _call(step, full)
                case Activation(name=name):
                    click.echo(click.style(f"  ◆ skill {plain(name)}", fg="magenta"))
                case Compaction():
                    click.echo(click.style("  ~ the history was summarised", dim=True))
                case Subagent(name=name, task=task):
                    click.echo(click.style(f"  → {plain(name)}: {_cut(task, full)}", dim=True))


def _call(call: ToolCall, full: bool) -> None:
    about = one_line(derived.command_of(call) or ", ".join(derived.paths_of(call)) or _short(call))
    seconds = f" {call.duration:.1f} s" if call.duration else ""
    mark = click.style("✗", fg="red") if call.failed else click.style("✓", fg="green")
    if not call.finished:
        mark = click.style("…", dim=True)
    width = output.columns() - len(call.name) - len(seconds) - 6
    click.echo(f"  {mark} {click.style(plain(call.name), bold=True)} {fit(about, width)}{seconds}")
    if call.failed:
        click.echo(click.style(f"      {_cut(call.error or call.result, full)}", fg="red"))
    elif full and call.result:
        click.echo(click.style(f"      {plain(call.result)}", dim=True))


def _short(call: ToolCall) -> str:
    return ", ".join(f"{key}={value}" for key, value in call.arguments.items())


def _foot(trace: Trace) -> None:
    for found in derived.mended(trace):
        click.echo(
            f"\n{click.style('mended', fg='green')}  {one_line(found.before)}\n"
            f"    →   {one_line(found.after)}"
        )
    if trace.skipped:
        parts = [
            f"{count:,} {REASONS.get(reason, reason)}" for reason, count in trace.skipped.items()
        ]
        click.echo(click.style(f"\npassed over: {'; '.join(parts)}", dim=True))


def _cut(text: str, full: bool) -> str:
    return plain(text) if full else fit(one_line(text), output.columns() - 4)
