"""The command line as a whole: finding a command, typing errors, and how errors end the program.

Commands are modules that are imported when they are called; `--help` needs none of them.
"""

import difflib
import os
import sys
from importlib import import_module

import click

from tacit import __version__
from tacit.base.errors import TacitError
from tacit.ui.cli.commands import COMMANDS, SECTIONS

_EPILOG = """\b
Examples:
  tacit list                        what skills are there
  tacit search "rebase a branch"    find the right one
  tacit show NAME                   read it
  tacit lint NAME                   what is wrong with it, and how to mend it

Every command takes --json and --help.
"""


class Commands(click.Group):
    """The commands by name, loaded late, listed by section."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = COMMANDS.get(cmd_name)
        if known is None:
            return None
        command = getattr(import_module(known.module), "command", None)
        assert isinstance(command, click.Command), known.module
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, COMMANDS, 3)
            hint = f"did you mean {' or '.join(near)}?" if near else "see all of them: tacit --help"
            raise click.UsageError(f"there is no command '{name}'; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section in SECTIONS:
            rows = [
                (name, known.about) for name, known in COMMANDS.items() if known.section == section
            ]
            with formatter.section(section):
                formatter.write_dl(rows)


@click.group(
    cls=Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=False,
)
@click.version_option(__version__, "-V", "--version", message="tacit %(version)s")
def tacit() -> None:
    """Skills that AI agents learn from their sessions: found, checked, versioned, given back."""


def run(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit code. Every error a person can cause ends here."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")
    try:
        result = tacit.main(arguments, prog_name="tacit", standalone_mode=False, color=_colour())
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _report(error.format_message(), _usage_hint(error), error.exit_code, arguments)
    except (click.Abort, KeyboardInterrupt):
        click.echo("\nstopped", err=True)
        return 130
    except BrokenPipeError:
        # The reader went away, as `head` does. Nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except TacitError as error:
        return _report(error.message, error.hint, error.exit_code, arguments, error.code)
    except Exception as error:  # the last line of defence
        if os.environ.get("TACIT_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        hint = "this is a fault in tacit; run it again with TACIT_DEBUG=1 and report what it prints"
        return _report(what, hint, 70, arguments, "internal")


def _colour() -> bool | None:
    """Whether to colour, where the environment says so; None leaves it to the terminal."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def _usage_hint(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    return f"see: {ctx.command_path} --help" if ctx is not None else ""


def _report(
    message: str, hint: str, exit_code: int, arguments: list[str], code: str = "usage"
) -> int:
    if "--json" in arguments:
        import json

        report = {"error": {"code": code, "message": message, "hint": hint}}
        click.echo(json.dumps(report, ensure_ascii=False), err=True)
        return exit_code
    click.echo(f"{click.style('tacit:', fg='red')} {message}", err=True, color=_colour())
    if hint:
        click.echo(f"       {hint}", err=True)
    return exit_code
