"""`tacit edit`: change a skill in an editor, through the gate."""

import re
import shlex

import click

from tacit.base.errors import Refused, Usage
from tacit.changes.change import SKILL_FILE, RemoveFile, Rename, Rewrite, Verdict, WriteFile
from tacit.changes.files import Files, programs, to_bytes
from tacit.skills.reading import FILE_NAMES
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill

_EPILOG = """\b
Examples:
  tacit edit db-migration                          SKILL.md in your editor
  tacit edit db-migration --file references/checklist.md
  tacit edit db-migration --from better.md         the new text from a file, or '-'
  tacit edit db-migration --file old.txt --remove
  tacit edit db-migration --rename schema-change
"""

_MARKS = re.compile(rb"^<{7} as it is now\r?$[\s\S]*^>{7} ", re.MULTILINE)
"""A conflict as Tacit writes it; other marks may be what a skill speaks of."""


@click.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_skill)
@click.option("--file", "path", default=SKILL_FILE, help="The file in the skill's folder.")
@click.option("--from", "source", help="Take the text from this file ('-': standard input).")
@click.option("--remove", is_flag=True, help="Remove the support file named by --file.")
@click.option("--rename", "new_name", help="Give the skill another name.")
@click.option("--reason", default="", help="Why, for the history.")
@click.option("--override", multiple=True, help="Set a rule of the scan aside, on record.")
@output.json_option
def command(
    name: str,
    path: str,
    source: str | None,
    remove: bool,
    new_name: str | None,
    reason: str,
    override: tuple[str, ...],
    as_json: bool,
) -> int:
    """Change a skill: its text, a support file, or its name.

    Your editor opens ($VISUAL, $EDITOR); what you save passes the checks that every change passes.
    A text that is refused is kept, and the message says where. Editing a skill that ships with
    Tacit makes a copy of your own.
    """
    if bool(new_name) + remove + bool(source) > 1:
        raise Usage("one thing at a time", "--from, --remove or --rename")
    gate, library = gating.open_gate()
    target = gating.find_here(gate, library, name)
    about = {"reason": reason, "overrides": override}
    if new_name:
        verdict = gating.propose(gate, target.root, target.skill, Rename(new_name), **about)
        return gating.tell(verdict, f"Renamed {name} to {new_name}", as_json)
    if remove:
        if path == SKILL_FILE:
            raise Usage("SKILL.md cannot be removed by itself", f"the whole skill: tacit rm {name}")
        verdict = gating.propose(gate, target.root, target.skill, RemoveFile(path), **about)
        return gating.tell(verdict, f"Removed {path} from {name}", as_json)
    standing = gate.look(target.skill, target.root)
    files = standing.contents.files
    if path == SKILL_FILE:
        path = next((known for known in FILE_NAMES if known in files), path)
    after = _after(files, path, source)
    if after is None:
        if as_json:
            output.write_json({"outcome": "unchanged", "skill": target.skill})
        else:
            click.echo("Nothing was changed.", err=True)
        return 0
    if _MARKS.search(after):
        raise Refused("the text still has the marks of a conflict", "choose a side, take them out")
    base = standing.head.id if standing.head else ""
    operation: Rewrite | WriteFile = WriteFile(path, after, path in programs(files))
    if path in FILE_NAMES:
        operation = Rewrite(to_bytes(files) | {path: after}, programs(files))
    verdict = gating.propose(gate, target.root, target.skill, operation, base=base, **about)
    code = gating.tell(verdict, f"Changed {name}", as_json, can_override=True)
    if verdict.refused:
        _keep(verdict, after, name, path, source, as_json)
    return code


def _after(files: Files, path: str, source: str | None) -> bytes | None:
    """What the file is to be; None where that is what it is."""
    if path in files and files[path].kind == "link":
        raise Usage(f"{path} is a link", "edit the file that it leads to")
    before = files[path].data if path in files else b""
    if source:
        after = gating.read_source(source)
        if path in FILE_NAMES:
            gating.as_text(after, source)  # raises where it is none
        return after if after != before or path not in files else None
    edited = gating.edit_text(gating.as_text(before, path))
    return edited.encode() if edited is not None else None


def _keep(
    verdict: Verdict, after: bytes, name: str, path: str, source: str | None, as_json: bool
) -> None:
    """Lose nothing of what was refused: neither the user's text nor the merged one."""
    if verdict.offer and not as_json:
        gating.write_offer(verdict)
    if source and source != "-":
        return  # the file is still where it was
    own = "" if path in FILE_NAMES else f" --file {shlex.quote(path)}"
    kept = gating.keep_text(after, name if not own else f"{name} {path}")
    click.echo(f"Your text is kept: tacit edit {name}{own} --from {kept}", err=True)
