"""`tacit edit`: change a skill in an editor, through the gate."""

import click

from tacit.base.errors import NotFound, Usage
from tacit.base.paths import shorten
from tacit.changes.change import SKILL_FILE, RemoveFile, Rename, Rewrite, WriteFile
from tacit.changes.files import programs, to_bytes
from tacit.ui.cli import gating, output
from tacit.ui.cli.names import complete_skill
from tacit.ui.cli.new import _text

_EPILOG = """\b
Examples:
  tacit edit db-migration                          SKILL.md in your editor
  tacit edit db-migration --file references/checklist.md
  tacit edit db-migration --from better.md         the new text from a file, or '-'
  tacit edit db-migration --file old.txt --remove
  tacit edit db-migration --rename schema-change
"""


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
    gate, library = gating.open_gate()
    target = gating.find(gate, library, name)
    if target.entry is None:
        raise NotFound(f"'{name}' is not there any more", f"bring it back: tacit rollback {name}")
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
    before = files[path].data.decode("utf-8", "replace") if path in files else ""
    after = _text(source) if source else gating.edit_text(before, name)
    if after is None or after == before:
        click.echo("Nothing was changed.", err=True)
        return 0
    base = standing.head.id if standing.head else ""
    if path == SKILL_FILE:
        rewritten = to_bytes(files) | {SKILL_FILE: after.encode()}
        operation: Rewrite | WriteFile = Rewrite(rewritten, programs(files))
    else:
        operation = WriteFile(path, after.encode())
    verdict = gating.propose(gate, target.root, target.skill, operation, base=base, **about)
    code = gating.tell(verdict, f"Changed {name}", as_json)
    if verdict.refused and not as_json:
        kept = gating.keep_text(after, name)
        click.echo(f"Your text is kept: tacit edit {name} --from {shorten(kept)}", err=True)
    return code
