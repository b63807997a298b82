"""`tacit export`: sessions as data for training and evaluation.

The forms and their files are `traces/`'s and `work/`'s; here is what is asked for and what a person
is told of it.
"""

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tacit.base import settings
from tacit.base.clock import parse_since
from tacit.base.display import counted, dollars, plain
from tacit.base.errors import BadConfig, MissingExtra, NotFound, Usage
from tacit.traces.store import Store
from tacit.ui.cli import output
from tacit.ui.cli.command import command
from tacit.ui.cli.user_shell import complete_host, complete_session

if TYPE_CHECKING:
    from tacit.learn.step_summaries import StepSummaries
    from tacit.traces.token_limit import Summarise
    from tacit.traces.trajectory_source import Choice
    from tacit.work.export import ExportReport

_FORMS = ("atif", "openai", "sharegpt", "tinker", "sts")
_STATES = ("worked", "failed", "refused", "cancelled", "timed out", "unfinished", "unclear")
_ONLY = {"succeeded": "worked", "failed": "failed"}
_SHOWN = 5
_FEW = 3


@command(
    "export",
    "sessions",
    "Write sessions out as data for training.",
    "tacit export --form atif -o sessions.jsonl",
    "tacit export b4a27079 --form openai -o one.jsonl",
    "tacit export --only succeeded --since 30d --form tinker --tokens 15250 -o train.jsonl",
    "tacit export --skill release --form atif -o trajectories/   a file a session",
    note="Forms: atif (Harbor's ATIF), openai (chat fine-tuning), sharegpt, tinker, sts (Hugging "
    "Face's viewer). Secrets, home folders and your name are taken out. See docs/trajectories.md.",
)
@click.argument("names", metavar="[SESSION]...", nargs=-1, shell_complete=complete_session)
@click.option("--form", type=click.Choice(_FORMS), required=True, help="The form of the data.")
@click.option("-o", "--output", "path", default="", help="A file, or a folder for a file each.")
@click.option("--host", default="", shell_complete=complete_host, help="Only this agent's.")
@click.option("--project", default="", help="Only those in this folder and below it.")
@click.option("--since", help="Only those since: 7d, 12h, a date.")
@click.option("--skill", default="", help="Only those in which this skill was loaded.")
@click.option("--outcome", type=click.Choice(_STATES), help="Only those that ended so.")
@click.option("--only", type=click.Choice(tuple(_ONLY)), help="The same in one word.")
@click.option("--tokens", type=click.IntRange(100), help="Cut each to so many, by whole steps.")
@click.option("--no-model", is_flag=True, help="Have no model sum up what is cut.")
def export_command(
    names: tuple[str, ...],
    form: str,
    path: str,
    tokens: int | None,
    no_model: bool,
    as_json: bool,
    **wishes: Any,
) -> int:
    """Write sessions out as data for training and evaluation, one row each.

    Without -o the rows are printed. Beside a file lies FILE.report.json, which says what was
    written, taken out, cut and left out, and what the form cannot say.

    Cut steps are summed up by the model that you chose for learning, if you chose one, within its
    daily budget.
    """
    if as_json and not path:
        raise Usage("--json prints the report, so the rows need a place", "add -o FILE")
    choice = _choice(**wishes)
    store = click.get_current_context().with_resource(Store.open())
    wanted = _wanted(store, names, choice)
    summaries = None if no_model or not tokens else _summaries()
    report = _run(store, wanted, form, os.path.expanduser(path), tokens or 0, summaries)
    if as_json:
        output.write_json(report)
    else:
        for line in _lines(report, path):
            click.echo(line, err=not path)
    return 1 if report.failed else 0


def _choice(
    host: str, project: str, since: str | None, skill: str, outcome: str | None, only: str | None
) -> "Choice":
    """Which sessions the options ask for."""
    from tacit.traces.trajectory_source import Choice

    if outcome and only:
        raise Usage("--outcome and --only say the same", "give one of them")
    folder = os.path.abspath(os.path.expanduser(project)) if project else ""
    moment = parse_since(since) if since else None
    return Choice(host, folder, moment, skill, outcome or _ONLY.get(only or "", ""))


def _wanted(store: Store, names: tuple[str, ...], choice: "Choice") -> list[str]:
    """The sessions to write: those that are named, or all that fit."""
    from tacit.learn.use_records import catch_up
    from tacit.traces.trajectory_source import Choice, chosen_sessions

    if names and choice != Choice():
        raise Usage("sessions are named, and chosen by options too", "do one or the other")
    catch_up(store)  # which version of a skill was loaded is known once a session is recorded
    found = list(dict.fromkeys(store.find(name).id for name in names))
    found = found or chosen_sessions(store, choice)
    if not found:
        some = "no session fits" if choice != Choice() else "there are no sessions yet"
        raise NotFound(some, "see what there is: tacit sessions")
    return found


def _summaries() -> "StepSummaries | None":
    """The user's model, where one was chosen."""
    from tacit.learn.step_summaries import StepSummaries

    try:
        made = StepSummaries(settings.load_settings().settings)
    except (BadConfig, MissingExtra) as error:
        click.echo(f"cut steps are not summed up: {error.explain()}", err=True)
        return None
    click.echo(f"cut steps are summed up by {made.model}", err=True)
    return made


def _run(
    store: Store,
    names: list[str],
    form_name: str,
    path: str,
    tokens: int,
    summaries: "StepSummaries | None",
) -> "ExportReport":
    from tacit.traces.token_limit import no_summary
    from tacit.traces.trajectory_forms import FORMS
    from tacit.work.export import Exporter, StreamSink, is_folder, open_sink, write_report

    form = FORMS[form_name]
    one_file = not path or not is_folder(path)
    if one_file and not form.several and len(names) > 1:
        hint = f"give a folder: -o {path or 'sessions'}/"
        raise Usage(f"a file in the form {form.name} holds one session, not {len(names)}", hint)
    ask: Summarise = summaries or no_summary
    exporter = Exporter(store, form, tokens=tokens, summarise=ask, one_file=one_file)
    hidden = not sys.stderr.isatty()
    with click.progressbar(
        length=len(names), label="writing sessions", file=sys.stderr, hidden=hidden
    ) as bar:
        if path:
            with open_sink(path, form) as sink:
                report = exporter.run(names, sink, lambda name: bar.update(1))
        else:
            printed = StreamSink(sys.stdout.buffer)
            report = exporter.run(names, printed, lambda name: bar.update(1))
    if summaries is not None:
        report.summaries = summaries.told()
    if path:
        write_report(path, report)
    return report


def _lines(report: "ExportReport", path: str) -> Iterator[str]:
    """The report for a person."""
    head = f"Wrote {counted(report.sessions, 'session')} in {counted(report.rows, 'row')}"
    inside = f", {counted(report.helpers, 'helper')} among them" if report.helpers else ""
    yield f"{head}{inside}: {report.steps:,} steps, about {report.tokens:,} tokens"
    unknown = f" ({report.without_cost:,} without)" if report.without_cost else ""
    copied = counted(report.copied_turns, "turn")
    rows = {
        "ended": _counts(report.outcomes),
        "models": _counts(report.models),
        "cost": f"{dollars(report.cost)}{unknown}" if report.cost else "",
        "corrected": counted(report.corrections, "time") if report.corrections else "",
        "skills": _counts(report.skills),
        "copied": f"{copied} of earlier sessions" if report.copied_turns else "",
        "taken out": _counts(report.redacted),
        "compressed": _compressed(report),
    }
    for label, value in rows.items():
        if value:
            yield f"{click.style(f'{label:<11}', dim=True)} {plain(value)}"
    unsaid = list(report.cannot_say.items())
    for text, number in unsaid[: _FEW if path else None]:
        yield click.style(f"not said: {number:,} {text}", dim=True)
    if path and len(unsaid) > _FEW:
        yield click.style(
            f"not said: {len(unsaid) - _FEW} more things; the report lists them", dim=True
        )
    for word, missing in (("left out", report.left_out), ("failed", report.failed)):
        for one in missing[:_SHOWN]:
            yield f"{word}: {plain(one.id)}: {plain(one.reason)}"
        if len(missing) > _SHOWN:
            yield f"{word}: {len(missing) - _SHOWN:,} more; the report names them"
    for why, number in report.summaries.get("missing", {}).items():
        yield f"not summed up: {number:,}, {plain(why)}"
    if path:
        yield f"\n{plain(path)}, and beside it {plain(path.rstrip('/'))}.report.json"


def _counts(counts: dict[str, int]) -> str:
    common = sorted(counts.items(), key=lambda item: -item[1])
    rest = f" and {len(common) - _SHOWN} more" if len(common) > _SHOWN else ""
    return ", ".join(f"{number:,} {what}" for what, number in common[:_SHOWN]) + rest


def _compressed(report: "ExportReport") -> str:
    if not report.compressed:
        return ""
    steps = sum(c.stands_for.steps[1] - c.stands_for.steps[0] + 1 for c in report.compressed)
    tokens = sum(c.stands_for.tokens for c in report.compressed)
    made = report.summaries.get("made", 0)
    by = f", {made:,} summed up" if made else ""
    what = counted(len(report.compressed), "session")
    return f"{what}, by {steps:,} steps of about {tokens:,} tokens{by}"
