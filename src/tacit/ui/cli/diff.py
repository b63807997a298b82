"""`tacit diff`: what a change did, or what happened to a skill since a version."""

import click

from tacit.base.errors import NotFound
from tacit.changes.change import is_id
from tacit.changes.contain import open_root
from tacit.changes.diff import diff
from tacit.changes.files import File
from tacit.changes.gate import Gate
from tacit.changes.standing import look
from tacit.ui.cli import gating, output

_EPILOG = """\b
Examples:
  tacit diff db-migration            hand edits since the last change; else the last change
  tacit diff db-migration 3f2a91c0   since that version
  tacit diff 9c1d22ab                what that change did
"""


@click.command(epilog=_EPILOG)
@click.argument("what")
@click.argument("version", required=False)
@output.json_option
def command(what: str, version: str | None, as_json: bool) -> int:
    """Show what a change did, or how a skill differs from an earlier version.

    WHAT is a change (its id, or the end of it as `tacit log` shows it) or a skill.
    """
    gate, library = gating.open_gate(everywhere=True)
    found = None if library.find(what) or version else _of_change(gate, what)
    text = found if found is not None else _of_skill(what, version)
    if as_json:
        output.write_json({"diff": text})
    elif text:
        gating.write_diff(text)
    else:
        click.echo("No difference.")
    return 0


def _of_change(gate: Gate, start: str) -> str | None:
    for site in gate.sites.values():
        try:
            change = site.history.find_change(start)
        except NotFound:
            continue
        parts = []
        for made in site.history.of_change(change):
            before = site.history.version(made.parent) if made.parent else None
            old = gating.files_of(site, before) if made.record.was == "live" else {}
            new = gating.files_of(site, made) if made.record.state == "live" else {}
            parts.append(diff(old, new))
        return "".join(parts)
    if is_id(start):
        raise NotFound(f"there is no change '{start}'", "see them: tacit log")
    return None


def _of_skill(name: str, start: str | None) -> str:
    gate, library = gating.open_gate()
    target = gating.find(gate, library, name)
    history = target.site.history
    now: dict[str, File] = {}
    if target.entry is not None:
        with open_root(target.site.place) as root:
            now = dict(look(root, history, target.skill).contents.files)
    if start:
        return diff(history.files(gating.find_version(target, start)), now)
    head = history.head(target.skill)
    if head is None:
        raise NotFound(f"'{name}' has no history yet", "it begins with the first change")
    by_hand = diff(history.files(head), now) if target.entry is not None else ""
    if by_hand or not head.parent:
        return by_hand
    return diff(history.files(history.version(head.parent)), history.files(head))
