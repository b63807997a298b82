"""What the pages show: the answers of the command line, asked inside this process.

A command gives a page the very value that it prints with --json, so both faces say the same. What
no command tells by itself (the text that a proposal leads to) is read from the layers below.
Nothing here knows HTML.
"""

import base64
import os
import subprocess
import sys
from typing import Any

import click
import msgspec

from tacit.base.errors import Unwritable, Usage
from tacit.ui.cli import output


def ask(command: str | list[str], *arguments: str) -> Any:
    """What `tacit COMMAND --json -- ARGUMENTS` answers, as plain values. Raises `TacitError`.

    COMMAND is ours and may hold options; the arguments come from a page and are never taken for
    any.
    """
    from tacit.ui.cli.app import tacit

    words = command.split(" ") if isinstance(command, str) else command
    with output.taking() as taken:
        try:
            more = ["--", *arguments] if arguments else []
            tacit.main([*words, "--json", *more], prog_name="tacit", standalone_mode=False)
        except click.ClickException as error:
            raise Usage(error.format_message()) from None
        except click.Abort:
            raise Usage("nobody can be asked here") from None
        except OSError as error:
            raise Unwritable(f"the system refused: {error.strerror or error}") from None
    return _plain_values(taken[-1]) if taken else {}


def _plain_values(value: Any) -> Any:
    return msgspec.json.decode(output.as_json(value))


def proposed_text(proposal: dict[str, Any]) -> str | None:
    """SKILL.md as a proposal would leave it; None where that cannot be told beforehand."""
    change = proposal["change"]
    if len(change["operations"]) != 1:
        return None
    operation = change["operations"][0]
    if operation["type"] in ("create", "rewrite"):
        data = operation["files"].get("SKILL.md")
        return base64.b64decode(data).decode("utf-8", "replace") if data else None
    if operation["type"] == "edit" and operation["path"] == "SKILL.md":
        now = _file_now(change)
        if now is not None and now.count(operation["old"]) == 1:
            return now.replace(operation["old"], operation["new"])
    return None


def read_text(text: str) -> tuple[str, str]:
    """What a SKILL.md says that it is for, and its text below the frontmatter."""
    from tacit.skills.skill_file import parse_skill

    found = parse_skill(text.encode(), "")
    return found.description, found.body


def _file_now(change: dict[str, Any]) -> str | None:
    path = os.path.join(change["root"], change["skill"], "SKILL.md")
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(1_000_000)
    except (OSError, UnicodeDecodeError):
        return None


def accept_edited(proposal: str, text: str) -> list[Any]:
    """Accept a proposal, then put the user's own text in its place; both can be taken back."""
    from tacit.changes.change import Rewrite, bytes_of, executable_paths
    from tacit.skills.skill_file import SKILL_FILE_NAMES
    from tacit.ui.cli import user_gate

    gate, _ = user_gate.open_gate(everywhere=True)
    change = gate.inbox.get(proposal).change
    verdicts = list(ask("accept", proposal)["verdicts"])
    if verdicts[0]["outcome"] != "applied":
        return verdicts
    now = gate.state_of(change.skill, change.root)
    files, wanted = now.contents.files, text.replace("\r\n", "\n").encode()
    name = next(known for known in SKILL_FILE_NAMES if known in files)
    if files[name].data == wanted:
        return verdicts
    edit = Rewrite(bytes_of(files) | {name: wanted}, executable_paths(files))
    base = now.head.id if now.head else ""
    edited = user_gate.propose(gate, change.root, change.skill, edit, base=base)
    return [*verdicts, _plain_values(edited)]


def run_schedule(name: str) -> None:
    """Start a run of a schedule by hand, in a process of its own."""
    ask("schedule show", name)  # raises where there is none
    subprocess.Popen(
        [sys.executable, "-P", "-m", "tacit", "schedule", "run", "--json", "--", name],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def change_mark() -> str:
    """A text that changes when there is something new to see: the databases' last writes."""
    from tacit.base import paths

    data = paths.folders().data
    marks = []
    for name in ("tacit.db", "tacit.db-wal", "jobs.db", "jobs.db-wal", "notices"):
        try:
            found = os.stat(os.path.join(data, name))
            marks.append(f"{found.st_mtime_ns}.{found.st_size}")
        except OSError:
            marks.append("-")
    return " ".join(marks)
