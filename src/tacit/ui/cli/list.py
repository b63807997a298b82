"""`tacit list`. Without options it is answered by `fast.py`, with the same table."""

import click
import msgspec

from tacit.skills.library import Entry, Library
from tacit.skills.scopes import SCOPES
from tacit.traces.hosts.places import PLACES
from tacit.ui.cli import listing, output

_EPILOG = """\b
Examples:
  tacit list
  tacit list --scope project
  tacit list git review              only skills whose name has one of these words
  tacit list --origin learned --json

In a pipe, each line is: name, scope, state, description, separated by tabs.
"""


class Listing(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    skills: list[Entry]


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1)
@click.option("--scope", type=click.Choice(SCOPES), help="Only this scope.")
@click.option(
    "--origin",
    type=click.Choice(["user", "learned", "bundled", "installed"]),
    help="Only skills of this origin.",
)
@click.option(
    "--host", type=click.Choice([p.host for p in PLACES]), help="Only the folder of this agent."
)
@click.option("--problems", is_flag=True, help="Only skills with errors or warnings.")
@output.json_option
def command(
    words: tuple[str, ...],
    scope: str | None,
    origin: str | None,
    host: str | None,
    problems: bool,
    as_json: bool,
) -> int:
    """List the skills that can be used here.

    The project's come first, then yours, then those that Tacit ships. Where two share a name the
    first wins, and the other is marked as shadowed. Skills of a project that you have not trusted
    are marked, and not loaded.
    """
    chosen = [
        entry
        for entry in Library().entries
        if (scope is None or entry.scope == scope)
        and (origin is None or entry.origin == origin)
        and (host is None or entry.host == host)
        and (not problems or entry.worst in ("error", "warning"))
        and (not words or any(word.lower() in entry.name.lower() for word in words))
    ]
    if as_json:
        output.write_json(Listing(chosen))
        return 0
    return listing.write([(e.name, e.scope, e.description, e.state, e.worst or "") for e in chosen])
