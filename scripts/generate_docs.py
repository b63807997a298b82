"""Generates docs/cli.md and docs/problems.md from the program itself.

With --check, says which page is out of date and exits 1; a test calls it so.
"""

import os
import sys
from pathlib import Path

os.environ["COLUMNS"] = "100"

DOCS = Path(__file__).parent.parent / "docs"


def cli_page() -> str:
    """Every command's --help."""
    import click

    from tacit.ui.cli.app import commands, tacit

    parts = [
        "# The command line\n",
        "This page is made from `tacit --help` by `scripts/docs`.\n",
        _help(click.Context(tacit, info_name="tacit", terminal_width=90)),
    ]
    root = click.Context(tacit, info_name="tacit", terminal_width=90)
    for name in commands():
        command = tacit.get_command(root, name)
        assert command is not None
        parts += _command(command, root, name, 2)
    return "\n".join(parts)


def _command(command: object, parent: object, name: str, level: int) -> list[str]:
    import click

    assert isinstance(command, click.Command)
    assert isinstance(parent, click.Context)
    context = click.Context(command, parent=parent, info_name=name, terminal_width=90)
    parts = [f"{'#' * level} {context.command_path}\n", _help(context)]
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            parts += _command(found, context, below, level + 1)
    return parts


def _help(context: object) -> str:
    import click

    assert isinstance(context, click.Context)
    lines = [line.rstrip() for line in context.command.get_help(context).split("\n")]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def problems_page() -> str:
    """The table of what `tacit lint` can say."""
    from tacit.skills.skill import PROBLEM_RULES

    rows = [
        f"| `{code}` | {rule.severity} | {_cell(rule.message)} | {_cell(rule.fix)} |"
        for code, rule in PROBLEM_RULES.items()
    ]
    return "\n".join(
        [
            "# Problems\n",
            "What `tacit lint` can say of a skill, made from the program by `scripts/docs`. An",
            "**error** keeps the skill from being used as it was meant; a **warning** does not; a",
            "**note** is good to know. With `--strict` the rules of the open standard apply to the",
            "letter, and some warnings become errors.\n",
            "| code | severity | what is said | how to mend it |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _cell(text: str) -> str:
    import re

    text = text.replace("{{", "\x01").replace("}}", "\x02")
    text = re.sub(r"\{(\w+?)_?(?::[^}]*)?\}", r"…", text)
    return text.replace("\x01", "{").replace("\x02", "}").replace("|", "\\|")


PAGES = {"cli.md": cli_page, "problems.md": problems_page}


def main() -> int:
    """Write or check every page."""
    stale = []
    for name, make in PAGES.items():
        path = DOCS / name
        text = make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    for name in stale:
        verb = "is out of date; run scripts/docs" if "--check" in sys.argv else "written"
        print(f"docs/{name} {verb}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
