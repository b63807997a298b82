"""`tacit schedule`: skills on a clock. The group; its commands are in modules of their own."""

import click

from tacit.ui.cli import output, schedule_add, schedule_change, schedule_look, schedule_run

_EPILOG = """\b
Examples:
  tacit schedule add "every weekday 9:00" "Summarise the commits since yesterday"
  tacit schedule add "每天 9 點" --skill standup --zone Asia/Taipei
  tacit schedule list
  tacit schedule run NAME

Times: +30m, 18:00, tomorrow 9am, 2026-12-24 18:00, every 2 hours, 每 30 分鐘, 0 9 * * 1-5.
Schedules fire while a worker runs: tacit daemon install keeps one running.
"""


@click.group(epilog=_EPILOG, invoke_without_command=True)
@output.json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> int:
    """Run skills and tasks by the clock; without a command, list the schedules.

    A schedule fires once for each due time, also after a kill or a restart. What it was due for
    while nothing ran is made up for by its rule (--catch-up), and you are told.
    """
    return 0 if ctx.invoked_subcommand else schedule_look.listed(as_json)


for each in (
    schedule_add.add,
    schedule_look.list_,
    schedule_look.show,
    schedule_change.pause,
    schedule_change.resume,
    schedule_run.run,
    schedule_change.edit,
    schedule_change.rm,
    schedule_look.history,
    schedule_look.logs,
):
    command.add_command(each)
