"""The program `tacit`: its commands, typing errors, and how errors end it.

Owns the table of commands with their lines in `tacit --help`, exit codes and the printing of
errors. A command's module is imported when the command is called; `--help` imports none of them.
"""

import difflib
import errno
import os
import sys
from importlib import import_module

import click

from tacit import __version__
from tacit.base.display import can_colour, plain
from tacit.base.errors import NotFound, TacitError, Unwritable


class CommandEntry:
    """A command that can be called."""

    __slots__ = ("about", "module", "section")

    def __init__(self, module: str, section: str, about: str) -> None:
        self.module = f"tacit.ui.cli.{module}"
        self.section = section
        self.about = about


FIND = "Find and read skills"
CHANGE = "Change skills and facts"
BACK = "History and inbox"
SESSIONS = "Sessions of your agents"
CONNECT = "Connect your agents"
LEARN = "Learn"
TALK = "Work with the agent"
KEEP = "Set up and look after"
SECTIONS = (FIND, TALK, LEARN, CHANGE, BACK, SESSIONS, CONNECT, KEEP)

# Other words for a command.
ALIASES = {"ls": "list"}

COMMANDS: dict[str, CommandEntry] = {
    "list": CommandEntry("skills", FIND, "List the skills that can be used here."),
    "search": CommandEntry("search_results", FIND, "Find the skill that fits a task."),
    "show": CommandEntry("skills", FIND, "Read a skill, and see where it comes from."),
    "lint": CommandEntry("skills", FIND, "Say what is wrong with skills, and how to mend it."),
    "catalogue": CommandEntry(
        "skills", FIND, "Print the block that tells a model which skills there are."
    ),
    "chat": CommandEntry("chats", TALK, "Talk with the agent."),
    "run": CommandEntry("tasks", TALK, "Let the agent do one task, and print its answer."),
    "schedule": CommandEntry("schedules", TALK, "Run skills and tasks by the clock."),
    "setup": CommandEntry("model_setup", TALK, "Choose a model, and test it."),
    "learn": CommandEntry("reviews", LEARN, "Learn from what agents did: drafts go to the inbox."),
    "improve": CommandEntry("upkeep", LEARN, "Repair a skill by what failed when it was used."),
    "why": CommandEntry("job_reports", LEARN, "Say what came of a session, and why."),
    "cost": CommandEntry(
        "job_reports", LEARN, "Show what work in the background cost, and what it may."
    ),
    "prompt-status": CommandEntry(
        "user_shell", LEARN, "Print, once, what was learned; for a prompt."
    ),
    "new": CommandEntry("skill_changes", CHANGE, "Make a skill."),
    "edit": CommandEntry(
        "skill_changes", CHANGE, "Change a skill: its text, a support file, or its name."
    ),
    "archive": CommandEntry(
        "skill_changes", CHANGE, "Take a skill out of use; it can be brought back."
    ),
    "restore": CommandEntry("skill_changes", CHANGE, "Bring an archived skill back."),
    "rm": CommandEntry("skill_changes", CHANGE, "Delete a skill."),
    "pin": CommandEntry("skill_changes", CHANGE, "Let nobody but you change a skill."),
    "unpin": CommandEntry("skill_changes", CHANGE, "Let the usual rules hold for a skill again."),
    "curate": CommandEntry(
        "upkeep", CHANGE, "Put away what nobody uses, and see how the library ages."
    ),
    "share": CommandEntry("skill_changes", CHANGE, "Let git see a learned skill of this project."),
    "memory": CommandEntry("memory", CHANGE, "Show, note, change and forget facts."),
    "log": CommandEntry("versions", BACK, "Show the history of skills, the newest change first."),
    "history": CommandEntry(
        "versions", BACK, "Show the life of a skill: made, used, failed, repaired."
    ),
    "diff": CommandEntry("versions", BACK, "Show what a change did, or how a skill differs."),
    "undo": CommandEntry("versions", BACK, "Take one change back, and nothing else."),
    "rollback": CommandEntry("versions", BACK, "Make one skill what it was in an earlier version."),
    "inbox": CommandEntry("proposals", BACK, "Show the changes that wait for you."),
    "accept": CommandEntry("proposals", BACK, "Let changes from the inbox happen."),
    "reject": CommandEntry("proposals", BACK, "Turn a change from the inbox down."),
    "import": CommandEntry(
        "sessions", SESSIONS, "Take sessions in: of all agents, of one, from a file."
    ),
    "sessions": CommandEntry("sessions", SESSIONS, "List the sessions that are in the store."),
    "session": CommandEntry("sessions", SESSIONS, "Show one session as a timeline."),
    "forget": CommandEntry("sessions", SESSIONS, "Forget sessions for good."),
    "watch": CommandEntry("workers", SESSIONS, "Follow the agents' folders, without hooks."),
    "worker": CommandEntry("workers", SESSIONS, "Take in the sessions that hooks reported."),
    "daemon": CommandEntry(
        "workers", SESSIONS, "Keep a worker running, and start it with the machine."
    ),
    "jobs": CommandEntry(
        "job_reports", LEARN, "Show the work in the background: what came of it, and why."
    ),
    "connect": CommandEntry("agents", CONNECT, "Have your agents tell Tacit when a session ends."),
    "disconnect": CommandEntry("agents", CONNECT, "Take back what `tacit connect` wrote."),
    "plugin": CommandEntry(
        "agents", CONNECT, "Write the folder that agents can install as a plugin."
    ),
    "trust": CommandEntry("config", KEEP, "Allow a project's own skills and settings to count."),
    "config": CommandEntry(
        "config", KEEP, "Show the settings and where each comes from, or set one."
    ),
    "doctor": CommandEntry("checkup", KEEP, "Find damage to Tacit's own data, and mend it."),
    "completion": CommandEntry(
        "user_shell", KEEP, "Print the script that completes commands in a shell."
    ),
}


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
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = COMMANDS.get(cmd_name)
        if known is None:
            return None
        command = getattr(
            import_module(known.module), cmd_name.replace("-", "_") + "_command", None
        )
        assert isinstance(command, click.Command), known.module
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = [ALIASES.get(args[0], args[0]), *args[1:]]
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
        result = tacit.main(arguments, prog_name="tacit", standalone_mode=False, color=can_colour())
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
        what = f"{type(error).__name__}: {error}"
        hint = "this is a fault in tacit; run it again with TACIT_DEBUG=1 and report what it prints"
        return _report(what, hint, 70, arguments, "internal")


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
