"""`tacit restore`: bring an archived skill back, or see what is archived."""

import difflib
import os

import click

from tacit.base.errors import NotFound
from tacit.base.paths import shorten
from tacit.base.terminal import one_line
from tacit.changes.change import Restore
from tacit.changes.gate import Gate
from tacit.changes.site import Site
from tacit.changes.stage import ARCHIVE
from tacit.ui.cli import gating, output

_EPILOG = """\b
Examples:
  tacit restore                      what is archived
  tacit restore old-release
"""


@click.command(epilog=_EPILOG)
@click.argument("name", required=False)
@click.option("--reason", default="", help="Why, for the history.")
@output.json_option
def command(name: str | None, reason: str, as_json: bool) -> int:
    """Bring an archived skill back; without a name, list what is archived.

    NAME is the name that it had when it was archived.
    """
    gate, _ = gating.open_gate()
    archived = _archived(gate)
    if not name:
        return _list(archived, as_json)
    for site, key in archived:
        if name in (key, key.split("~", 1)[0].replace("%2f", "/")):
            verdict = gating.propose(gate, site.place.root, name, Restore(), reason=reason)
            return gating.tell(verdict, f"Restored {name}", as_json)
    near = difflib.get_close_matches(name, [key for _, key in archived], 3)
    hint = f"did you mean {' or '.join(near)}?" if near else "see what is: tacit restore"
    raise NotFound(f"no archived skill is called '{name}'", hint)


def _archived(gate: Gate) -> list[tuple[Site, str]]:
    """Every archived folder that can be reached from here."""
    found = []
    for site in gate.sites.values():
        try:
            names = os.listdir(os.path.join(site.real, ARCHIVE))
        except OSError:
            continue
        found += [(site, name) for name in sorted(names) if not name.startswith(".")]
    return found


def _list(archived: list[tuple[Site, str]], as_json: bool) -> int:
    if as_json:
        rows = [{"name": key, "root": site.place.root} for site, key in archived]
        output.write_json({"archived": rows})
    elif not archived:
        click.echo("Nothing is archived.")
    else:
        rows_shown = [(one_line(key), shorten(site.place.root)) for site, key in archived]
        click.echo(output.table(("archived", "where"), rows_shown))
    return 0
