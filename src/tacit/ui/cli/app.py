"""The program `tacit`: its commands, typing errors, and how errors end it.

Owns the order of commands in `tacit --help`, exit codes and the printing of errors. What commands
there are is read by `command`; a command's module is imported when the command is called.
"""

import errno
import os
import sys
from importlib import import_module
from typing import Any

import click

from tacit import __version__
from tacit.base.display import can_colour, plain
from tacit.base.errors import Damaged, NotFound, TacitError, Unwritable, Usage, did_you_mean
from tacit.ui.cli.command import SECTIONS, Declaration, declarations, registered

_FIRST = {
    "learn": "Learn from the sessions that your agents left; nothing needs to be set up.",
    "inbox": "See what was learned, and accept it.",
    "connect": "From now on your agents' sessions teach when they end.",
    "setup": "Choose a model that reviews sessions; without one, Tacit counts.",
    "chat": "Talk with an agent of Tacit's own, with these skills.",
}
"""The first hour, in the help."""
_PAGED = frozenset({
    "list", "ls", "search", "show", "lint", "catalogue", "why", "cost", "memory", "log", "history",
    "diff", "sessions", "session", "jobs", "config",
})  # fmt: skip
"""Commands that only show: on a terminal, what does not fit goes to a pager."""
_LASTING = frozenset({"watch", "worker", "daemon", "chat"})
"""Commands that go on until they are stopped; they end with their reader."""

# Other words for a command.
ALIASES = {"ls": "list"}

# The order in `tacit --help` and in docs/cli.md. A command that is not named here comes last.
_ORDER = (
    "list", "search", "show", "lint", "catalogue", "chat", "run", "schedule", "setup", "learn",
    "distil", "improve", "why", "cost", "prompt-status", "new", "edit", "archive", "restore", "rm",
    "pin", "unpin", "curate", "share", "memory", "log", "history", "diff", "undo", "rollback",
    "inbox", "accept", "reject", "import", "sessions", "session", "forget", "watch", "worker",
    "daemon", "jobs", "connect", "disconnect", "plugin", "trust", "config", "doctor", "backup",
    "restore-backup", "completion",
)  # fmt: skip


def commands() -> dict[str, Declaration]:
    """Every command by its name, in the order of the help."""
    known = {found.name: found for found in declarations()}
    return {name: known[name] for name in dict.fromkeys((*_ORDER, *known)) if name in known}


_EPILOG = """\b
Examples:
  tacit list                        what skills are there
  tacit search "rebase a branch"    find the right one
  tacit show NAME                   read it
  tacit lint NAME                   what is wrong with it, and how to mend it

Every command takes --json and --help.
"""


class _ReaderGone(Exception):
    """The other end of the pipe was closed. Click would end the program with 1."""


class Commands(click.Group):
    """The commands by name, loaded late, listed by section."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGone from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in registered:
            found = next((known for known in declarations() if known.name == cmd_name), None)
            if found is None:
                return None
            import_module(f"tacit.ui.cli.{found.noun}")
        return registered[cmd_name][1]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = [ALIASES.get(args[0], args[0]), *args[1:]]
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            hint = did_you_mean(name, commands(), "see all of them: tacit --help")
            raise click.UsageError(f"there is no command '{name}'; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = commands().values()
        with formatter.section("Begin here"):
            formatter.write_dl(list(_FIRST.items()))
        for section, title in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(c.name, c.about) for c in known if c.section == section])


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
    if arguments is None:
        arguments = sys.argv[1:]
        if arguments[:1] and arguments[0] not in _LASTING:
            _outlive_reader()
        if arguments[:1] and arguments[0] in _PAGED and sys.stdout.isatty() and sys.stdin.isatty():
            return _run_paged(arguments)
    return _run(arguments)


def _outlive_reader() -> None:
    """What is being done is done to its end, also when nobody reads on: `tacit accept … | head`."""
    import io

    class Unread(io.FileIO):
        def write(self, data: Any) -> int:
            try:
                return super().write(data) or 0
            except BrokenPipeError:
                os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
                return len(data)

    if not sys.stdout.isatty():
        raw = Unread(sys.stdout.fileno(), "wb", closefd=False)
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), encoding=sys.stdout.encoding)


def _run_paged(arguments: list[str]) -> int:
    import io

    class Screen(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:  # for its width
            return real.fileno()

    written, real = io.BytesIO(), sys.stdout
    sys.stdout = screen = Screen(written, encoding=real.encoding, write_through=True)
    try:
        code = _run(arguments)
    finally:
        sys.stdout = real
    from tacit.ui.cli.output import page

    page(written.getvalue().decode(real.encoding))
    screen.detach()
    return code


def _run(arguments: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")
    try:
        _check_encoding(arguments)
        result = tacit.main(arguments, prog_name="tacit", standalone_mode=False, color=can_colour())
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        said = " ".join(error.format_message().split()).removesuffix(".")  # choices have lines
        message = said[:1].lower() + said[1:]
        return _report(message, _usage_hint(error), error.exit_code, arguments)
    except (click.Abort, KeyboardInterrupt):
        click.echo("\nstopped", err=True)
        return 130
    except (BrokenPipeError, _ReaderGone):
        # As with `head`: no fault of anybody. Nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except TacitError as error:
        return _report(error.message, error.hint, error.exit_code, arguments, error.code)
    except Exception as error:  # the last line of defence
        if os.environ.get("TACIT_DEBUG"):
            raise
        if isinstance(error, OSError):
            return report_system(error, arguments)
        if damage := _as_damage(error):
            return _report(damage.message, damage.hint, damage.exit_code, arguments, damage.code)
        what = f"{type(error).__name__}: {error}"
        hint = "this is a fault in tacit; run it again with TACIT_DEBUG=1 and report what it prints"
        return _report(what, hint, 70, arguments, "internal")


def _check_encoding(arguments: list[str]) -> None:
    """Refuse a word that is not UTF-8, unless it is a path. Raises `Usage`."""
    for argument in arguments:
        if argument.isascii() or os.path.lexists(argument.rpartition("=")[2]):
            continue
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = os.fsencode(argument).decode("utf-8", "backslashreplace")
            raise Usage(f"'{shown}' is not UTF-8", "write it again, in a UTF-8 terminal") from None


def _as_damage(error: Exception) -> TacitError | None:
    """What stored data that cannot be read, or a database that fails, means to a person."""
    known = sys.modules
    if "sqlite3" in known and isinstance(error, known["sqlite3"].Error):
        from tacit.base import database

        return database.explain(error, database.default_path())
    unreadable: tuple[type[Exception], ...] = (UnicodeDecodeError,)
    if "msgspec" in known:
        unreadable += (known["msgspec"].DecodeError,)
    if "zlib" in known:
        unreadable += (known["zlib"].error,)
    if isinstance(error, unreadable):
        what = f"something that is stored cannot be read: {error}"
        return Damaged(what, "run: tacit doctor --fix")
    return None


def report_system(error: OSError, arguments: list[str]) -> int:
    """The system refused something: a full disk, a folder that was deleted, no permission."""
    try:
        os.getcwd()
    except OSError:
        what, hint = "the working directory does not exist any more", "go to another: cd ~"
        return _report(what, hint, NotFound.exit_code, arguments, "not-found")
    if error.errno in (errno.ENOSPC, errno.EIO):  # nothing may be written at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    place = f" {os.fsdecode(error.filename)}" if error.filename else ""
    what = f"the system refused{place}: {error.strerror or error}"
    hint = "check the free space and the permissions there"
    return _report(what, hint, Unwritable.exit_code, arguments, "unwritable")


def _usage_hint(error: click.ClickException) -> str:
    ctx = getattr(error, "ctx", None)
    return f"see: {ctx.command_path} --help" if ctx is not None else ""


def _report(
    message: str, hint: str, exit_code: int, arguments: list[str], code: str = "usage"
) -> int:
    if "--json" in arguments:
        import json

        report = {"error": {"code": code, "message": message, "hint": hint}}
        click.echo(json.dumps(report), err=True)
        return exit_code
    colour = can_colour(sys.stderr)
    click.echo(f"{click.style('tacit:', fg='red')} {plain(message)}", err=True, color=colour)
    if hint:
        click.echo(f"       {plain(hint)}", err=True)
    return exit_code
