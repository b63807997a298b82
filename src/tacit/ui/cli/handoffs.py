"""`tacit handoff`: reviews for the agent that the user is talking to.

Owns how an agent is given a review, how its answer is read, and what it is told. The reviews are
recorded by `tacit learn --handoff` and judged in `learn/review/handoff.py`.
"""

import sys
from contextlib import AbstractContextManager, nullcontext

import click

from tacit.base.display import counted, one_line, plain
from tacit.base.errors import NotFound, Refused, Unwritable, Usage
from tacit.learn import announcements
from tacit.learn.ledger import Ledger
from tacit.learn.review.review_answer import MOST_ANSWER
from tacit.traces.store import Store
from tacit.ui.cli import output
from tacit.ui.cli.command import group
from tacit.work import host_links

_MOST_BYTES = 4 * MOST_ANSWER
_NONE = "No review waits for an agent. Prepare some: tacit learn --handoff"


@group(
    "handoff",
    "learn",
    "Reviews for the agent you are talking to.",
    "tacit learn --handoff              have reviews wait",
    "tacit handoff next                 take one, with an id",
    "tacit handoff answer ID < answer.json",
    "tacit handoff drop                 let them all go",
    note="An agent is told how by the skill learn-from-sessions.",
)
@click.pass_context
def handoff_command(ctx: click.Context, as_json: bool) -> int:
    """Show the reviews that wait for an agent.

    No model is asked by Tacit: an agent takes a review, reads the digest of a session, and answers
    with what is worth keeping. Its answer is judged as a reviewer's, never as yours.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from tacit.learn.review.handoff import waiting

    with Store.open() as store:
        jobs = waiting(Ledger(store.connection))
    rows = [(one_line(job.session), job.at[:16], job.claimed_at[:16]) for job in jobs]
    if as_json:
        keys = ("session", "at", "taken")
        return output.write_json({"waiting": [dict(zip(keys, row, strict=True)) for row in rows]})
    click.echo(output.table(("session", "since", "taken"), rows) if rows else _NONE)
    return 0


@handoff_command.verb("next", "tacit handoff next")
def next_command(as_json: bool) -> int:
    """Take the next review: what to look at, what to answer, and the id to answer under.

    It is nobody else's for 30 minutes.
    """
    from tacit.learn.review.handoff import CLAIM_MINUTES, take_next
    from tacit.learn.review.review_answer import answer_schema

    with Store.open() as store, _told_later():
        taken = take_next(store)
    if as_json:
        if taken is None:
            return output.write_json({"id": "", "left": 0})
        values = {name: getattr(taken, name) for name in taken.__struct_fields__}
        return output.write_json(values | {"schema": answer_schema()})
    if taken is None:
        click.echo(_NONE)
        return 0
    click.echo(plain(taken.prompt))
    click.echo(
        f"\n# How to answer\n\nThis is the review {taken.id}. Within {CLAIM_MINUTES} minutes, give"
        f" the JSON object on standard input, or the name of a file with it, to:\n\n"
        f"    tacit handoff answer {taken.id}\n"
        f"\nMore that wait after it: {taken.left}."
    )
    return 0


@handoff_command.verb(
    "answer", "tacit handoff answer 3f9c0a51 < answer.json", "tacit handoff answer 3f9c0a51 a.json"
)
@click.argument("review", metavar="ID")
@click.argument("file", default="-", metavar="[FILE]")
@click.option("--by", default="", help="Which agent or model answers, for the record.")
def answer_command(review: str, file: str, by: str, as_json: bool) -> int:
    """Answer a review that was taken, with JSON from FILE or standard input.

    What is refused comes back once: then the whole answer is given again under the same ID. The
    exit code is 5 where something is to be mended or nothing could be kept.
    """
    from tacit.learn.review.handoff import answer_review

    text = _read(file)
    host_links.listen()
    with Store.open() as store, _told_later():
        done = answer_review(store, review, text, by=by)
    if as_json:
        output.write_json(done)
    else:
        click.echo(f"{done.outcome}: {plain(done.reason)}")
        if done.outcome != "sent back":
            more = f"{counted(done.left, 'more review')} to do: tacit handoff next"
            click.echo(more if done.left else "No more reviews wait.")
    return Refused.exit_code if done.outcome in ("sent back", "refused") else 0


@handoff_command.verb("drop", "tacit handoff drop")
def drop_command(as_json: bool) -> int:
    """Let all go that wait. Their sessions can be handed over again."""
    from tacit.learn.review.handoff import drop_all

    with Store.open() as store:
        dropped = drop_all(store)
    if as_json:
        return output.write_json({"dropped": dropped})
    click.echo(f"{counted(dropped, 'review')} dropped.")
    return 0


def _told_later() -> AbstractContextManager[object]:
    """Where an agent answers, the user is told later what landed."""
    return nullcontext() if sys.stdout.isatty() else announcements.listening()


def _read(file: str) -> str:
    """The answer, as much of it as is allowed."""
    if file == "-" and sys.stdin.isatty():
        raise Usage("the answer is awaited on standard input", "name a file, or pipe it in")
    try:
        if file == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with open(file, "rb") as opened:
                data = opened.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}", "name the file with the answer") from None
    except OSError as error:
        raise Unwritable(f"cannot read {file}: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise Usage(f"the answer has more than {_MOST_BYTES:,} bytes", "keep what matters")
    return data.decode("utf-8", "replace")
