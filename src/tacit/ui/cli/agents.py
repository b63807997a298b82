"""`tacit connect`, `disconnect` and `plugin`: the agents of this machine and their hooks.

What is written for each agent is planned in `traces/`. Here the plan is shown, asked about and
reported.
"""

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tacit import __version__
from tacit.base import paths
from tacit.base.atomic_files import write_atomic
from tacit.base.clock import ago
from tacit.base.display import counted, plain
from tacit.base.errors import NotFound, Refused, TacitError, Usage
from tacit.base.settings import load_settings
from tacit.ui.cli import output
from tacit.ui.cli.command import command

if TYPE_CHECKING:
    from tacit.traces.connection import ConnectionStatus, Plan
    from tacit.traces.connector import Connector


def write_plan(plan: "Plan") -> None:
    """The change as a diff, with added and removed lines in colour."""
    assert plan.change is not None
    path = paths.with_tilde(plan.change.path)
    click.secho(f"{_title(plan)}: {path}", bold=True)
    output.write_diff(plan.change.diff(path), "  ")
    click.echo()


def _title(plan: "Plan") -> str:
    title = plan.connector.host.title
    return f"{title} (MCP)" if plan.connector.key != plan.host else title


def confirm_write(question: str, yes: bool, as_json: bool) -> bool:
    """Ask, unless that was answered on the command line; nobody there to ask is an error."""
    if yes:
        return True
    if as_json or not sys.stdin.isatty():
        raise Usage(
            "there is nobody to ask here", "add --yes to write it, or --dry-run to only look"
        )
    return click.confirm(question, default=False)


def write_plan_errors(plans: "list[Plan]") -> int:
    """Say what could not be done; the exit code of the first error, or 0."""
    failed = [plan.error for plan in plans if plan.error is not None]
    for error in failed:
        click.echo(f"{click.style('tacit:', fg='red')} {plain(error.message)}", err=True)
        click.echo(f"       {plain(error.hint)}", err=True)
    return failed[0].exit_code if failed else 0


def agent_row(plan: "Plan", done: str, **more: Any) -> dict[str, Any]:
    """One agent, for JSON."""
    agent, error = plan.connector.host, plan.error
    return {
        "host": agent.name,
        "title": _title(plan),
        "file": plan.connector.file(),
        "state": "failed" if error else done,
        "diff": plan.change.diff() if plan.change else "",
        "error": error and {"code": error.code, "message": error.message, "hint": error.hint},
        **more,
    }


@command(
    "connect",
    "connect",
    "Have your agents tell Tacit when a session ends.",
    "tacit connect                      every agent that is found here",
    "tacit connect claude-code codex    only these",
    "tacit connect --dry-run            show what would be written",
    "tacit connect --facts              also let them be told what was noted",
    "tacit connect --mcp                also give them the library over MCP",
    "tacit connect --status             how each agent stands",
    "tacit connect --fix                mend what broke, such as a moved program",
    note="With --status or --fix, exit code 6 while an agent cannot be heard.",
)
@click.argument("hosts", nargs=-1, metavar="[HOST]...")
@click.option(
    "--facts/--no-facts",
    default=None,
    help="Whether they are told the noted facts as a session begins.",
)
@click.option(
    "--mcp/--no-mcp", default=None, help="Whether they start `tacit mcp`, to search and propose."
)
@click.option("--status", is_flag=True, help="Say how each agent stands; write nothing.")
@click.option("--fix", is_flag=True, help="Connect again what is connected but broken.")
@click.option("--yes", "-y", is_flag=True, help="Write without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
def connect_command(
    hosts: tuple[str, ...],
    facts: bool | None,
    mcp: bool | None,
    status: bool,
    fix: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Have your agents tell Tacit when a session ends.

    Adds hooks to the settings of each agent, after showing you the change. What you wrote there,
    comments too, stays as it is, and a backup is put beside it. Skills that were learned are
    linked to where the agent looks for them, and as a session begins the agent says in one line
    what was learned since. With --facts it is also told what was noted of you and the project, at
    most memory.agent_characters, and with --mcp it can search the library and propose to it by
    itself. No model is asked before you choose one. `tacit disconnect` takes
    all of it back.
    """
    if status or fix:
        if yes or dry_run or facts is not None or mcp is not None:
            raise Usage("--status and --fix stand alone", "leave the other options out")
        return _report_status(hosts, fix, as_json)
    asking = sys.stdin.isatty() and not (yes or dry_run or as_json)
    chosen = _chosen_agents(hosts)
    if facts is None and asking:
        facts = _ask_for_facts(chosen)
    plans = _connect_plans(chosen, facts, mcp)
    changed = [plan for plan in plans if plan.change is not None]
    if not as_json:
        for plan in plans:
            if plan.change is not None:
                write_plan(plan)
            elif plan.error is None:
                click.echo(f"{_title(plan)} is connected already.")
    if changed and not dry_run:
        if not confirm_write("Write this?", yes, as_json):
            click.echo("Nothing was written.")
            return 1
        plans = [_write_plan(plan, remove=mcp is False and _is_server(plan)) for plan in plans]
    rows = [_connected_row(plan, dry_run) for plan in plans]
    if not dry_run:
        _prepare_briefings()
    if as_json:
        output.write_json({"agents": rows})
        return next((plan.error.exit_code for plan in plans if plan.error), 0)
    if not dry_run:
        _write_connected(plans, rows)
        _write_learning(asking)
    return write_plan_errors(plans)


def _connect_plans(
    chosen: "list[Connector]", facts: bool | None = None, mcp: bool | None = None
) -> "list[Plan]":
    """What is to be written for the hooks and, where that was said, for the MCP servers."""
    from tacit.traces.connection import plan_connecting, plan_disconnecting
    from tacit.traces.connector import find_hook, planning

    hook = msgspec.structs.replace(find_hook(), facts=facts)
    servers = _servers_of(chosen) if mcp is not None else []
    if mcp is False:
        with planning():
            return [*plan_disconnecting(servers), *plan_connecting(chosen, hook)]
    return plan_connecting([*chosen, *servers], hook)


def _servers_of(chosen: "list[Connector]") -> "list[Connector]":
    from tacit.traces.connection import server_entries

    known = server_entries()
    return [known[one.host.name] for one in chosen if one.host.name in known]


def _is_server(plan: "Plan") -> bool:
    return plan.connector.key != plan.host


def _write_plan(plan: "Plan", *, remove: bool) -> "Plan":
    return _disconnect_agent(plan)[0] if remove else _connect_agent(plan)


def _ask_for_facts(chosen: "list[Connector]") -> bool | None:
    """Whether agents that are new here are told facts; None where none is new."""
    if all(connector.calls() for connector in chosen):
        return None
    most = load_settings().settings.memory.agent_characters
    asked = "Shall your agents be told, as a session begins, the facts that were noted of you and"
    return click.confirm(f"{asked} the project ({most:,} characters at most)?", default=False)


def _prepare_briefings() -> None:
    from tacit.work.host_briefings import prepare

    prepare(paths.user_home())
    prepare(os.getcwd())


def _write_learning(asking: bool) -> None:
    """Say which model learns and what that may cost; at a terminal, ask whether one found may."""
    from tacit.ui.cli.model_setup import daily_limit, keep_model, learning_lines, offered_model

    settings = load_settings().settings
    said, change = learning_lines(settings)
    if asking and (offered := offered_model(settings)):
        limit = daily_limit(settings.learn)
        click.echo(f"No model learns from your sessions yet. {offered.name} could ({offered.why}).")
        if click.confirm(f"Learn with it, {limit}?", default=False):
            keep_model(offered)
            said, change = learning_lines(load_settings().settings)
    click.echo(output.wrapped(said))
    click.echo(output.wrapped(change))
    click.echo("Hear of it at your shell's prompt too: tacit prompt-status --help")


def _chosen_agents(hosts: tuple[str, ...]) -> "list[Connector]":
    """The named agents, or those that are on this machine."""
    from tacit.traces.connection import connectors, find_connector
    from tacit.traces.connector import is_installed

    if hosts:
        return list(
            {find_connector(name).host.name: find_connector(name) for name in hosts}.values()
        )
    found = [one for one in connectors().values() if is_installed(one.host)]
    if not found:
        raise NotFound(
            "no agent was found: neither a program on your PATH nor a folder in your home",
            f"name one of {', '.join(connectors())}",
        )
    return found


def _connect_agent(plan: "Plan") -> "Plan":
    from tacit.traces.connection import connect

    if plan.change is None:
        return plan
    try:
        connect(plan)
    except TacitError as error:
        return msgspec.structs.replace(plan, error=error)
    return plan


def _connected_row(plan: "Plan", dry_run: bool) -> dict[str, Any]:
    """What was done for an agent; links are made here, also for one that was connected before."""
    from tacit.traces.connector import BACKUP, is_installed, tells_facts

    linked: dict[str, Any] = {"made": [], "removed": [], "in_the_way": []}
    if plan.error is None and not dry_run and not _is_server(plan):
        from tacit.work.host_links import link

        linked = msgspec.to_builtins(link(plan.host))
    backup = plan.connector.file() + BACKUP
    done = "already" if plan.change is None else "planned" if dry_run else "connected"
    return agent_row(
        plan,
        done,
        installed=is_installed(plan.connector.host),
        backup=backup if os.path.exists(backup) else "",
        links=linked,
        todo=plan.connector.todo,
        remark="" if _is_server(plan) else plan.connector.host.remark,
        facts=tells_facts(plan.connector.host, plan.connector.calls()),
    )


def _write_connected(plans: "list[Plan]", rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["state"] == "connected":
            saved = f"; as it was: {paths.with_tilde(row['backup'])}" if row["backup"] else ""
            click.echo(f"Connected {row['title']}{saved}")
            if not row["installed"]:
                click.echo("  It was not found on this machine; it counts once it is installed.")
        links = row["links"]
        if links["made"]:
            click.echo(f"  {counted(len(links['made']), 'learned skill')} linked for it")
        if links["removed"]:
            click.echo(f"  {counted(len(links['removed']), 'dead link')} removed")
        for path in links["in_the_way"]:
            click.echo(f"  not linked, since you have your own: {paths.with_tilde(path)}")
        if row["state"] == "connected" and row["remark"]:
            click.echo(f"  {row['remark']}")
    fresh = [row for row in rows if row["state"] == "connected"]
    for row in fresh:
        if row["todo"]:
            click.echo(f"{click.style('To do for ' + row['title'], bold=True)}: {row['todo']}")
    if fresh:
        click.echo("Undo with: tacit disconnect")


def _report_status(hosts: tuple[str, ...], fix: bool, as_json: bool) -> int:
    from tacit.traces.connection import find_connector, statuses

    wanted = {find_connector(name).host.name for name in hosts}
    mended = _reconnect_broken(wanted) if fix else []
    found = [status for status in statuses() if not wanted or status.host in wanted]
    if as_json:
        rows = [{**msgspec.to_builtins(s), "mended": s.host in mended} for s in found]
        output.write_json({"agents": rows})
    else:
        _write_status(found, mended)
    return 6 if any(status.trouble for status in found) else 0


def _reconnect_broken(wanted: set[str]) -> list[str]:
    """Connect again what is connected and cannot be heard; link again what is connected."""
    from tacit.traces.connection import statuses
    from tacit.work.host_links import link

    connected = [s for s in statuses() if s.connected and (not wanted or s.host in wanted)]
    broken = tuple(status.host for status in connected if status.trouble)
    plans = [_connect_agent(p) for p in _connect_plans(_chosen_agents(broken))] if broken else []
    for status in connected:
        link(status.host)
    write_plan_errors(plans)
    return [plan.host for plan in plans if plan.error is None and plan.change is not None]


def _write_status(found: "list[ConnectionStatus]", mended: list[str]) -> None:
    rows = []
    for status in found:
        version = status.version or "yes"
        connected = "broken" if status.trouble else "yes" if status.connected else "no"
        rows.append(
            [
                status.title,
                version if status.installed else "no",
                connected,
                "yes" if status.mcp else "no",
                _heard_ago(status.heard),
                "?" if status.sessions is None else str(status.sessions),
                paths.with_tilde(status.file) if status.connected or status.trouble else "",
            ]
        )
    head = ["AGENT", "INSTALLED", "CONNECTED", "MCP", "LAST HEARD", "SESSIONS", "FILE"]
    click.echo(output.table(head, rows))
    for status in found:
        if status.host in mended:
            click.echo(f"\n{click.style('mended', fg='green')}  {status.title}")
            if status.todo:
                click.echo(f"  {status.todo}")
        if status.trouble:
            click.echo(f"\n{click.style('broken', fg='red')}  {status.title}: {status.trouble}")
            if status.connected:
                click.echo("  Mend it with: tacit connect --fix")
    if not any(status.connected for status in found):
        click.echo("\nConnect what is installed with: tacit connect")


def _heard_ago(when: float | None) -> str:
    return "never" if when is None else ago(datetime.fromtimestamp(when, UTC))


@command(
    "disconnect",
    "connect",
    "Take back what `tacit connect` wrote.",
    "tacit disconnect                   every agent that is connected",
    "tacit disconnect codex             only this one",
    "tacit disconnect --dry-run         show what would be changed",
)
@click.argument("hosts", nargs=-1, metavar="[HOST]...")
@click.option("--yes", "-y", is_flag=True, help="Write without asking.")
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
def disconnect_command(hosts: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> int:
    """Take back what `tacit connect` wrote.

    A file that nobody changed since is restored to the byte. Otherwise exactly the entries that
    call tacit-hook or tacit mcp are taken out, and everything else stays. Links to skills are
    removed too.
    """
    from tacit.traces.connection import connectors, find_connector, plan_disconnecting
    from tacit.traces.connector import BACKUP

    chosen = [find_connector(name) for name in hosts] or list(connectors().values())
    plans = plan_disconnecting([*_servers_of(chosen), *chosen])
    plans = [plan for plan in plans if plan.change or plan.error or not _is_server(plan)]
    if not hosts:  # a broken file matters only if it is meant
        plans = [plan for plan in plans if plan.change is not None]
    changed = [plan for plan in plans if plan.change is not None]
    if not as_json:
        for plan in changed:
            write_plan(plan)
    if changed and not dry_run and not confirm_write("Write this?", yes, as_json):
        click.echo("Nothing was written.")
        return 1
    outcomes = [(plan, False) if dry_run else _disconnect_agent(plan) for plan in plans]
    plans = [plan for plan, _ in outcomes]
    rows = []
    for plan, left in outcomes:
        links = () if dry_run or plan.error or _is_server(plan) else _unlink_skills(plan.host)
        later = {other.connector.file() for other in plans if not _is_server(other)}
        is_left = left and not (_is_server(plan) and plan.connector.file() in later)
        state = "not-connected" if plan.change is None else "planned" if dry_run else "disconnected"
        rows.append(agent_row(plan, state, backup_left=is_left, unlinked=links))
    if as_json:
        output.write_json({"agents": rows})
        return next((plan.error.exit_code for plan in plans if plan.error), 0)
    for row in rows:
        if row["state"] == "disconnected":
            click.echo(f"Disconnected {row['title']}")
        elif row["state"] == "not-connected":
            click.echo(f"{row['title']} is not connected.")
        if row["unlinked"]:
            click.echo(f"  {counted(len(row['unlinked']), 'link')} to skills removed")
        if row["backup_left"]:
            kept = paths.with_tilde(row["file"]) + BACKUP
            click.echo(f"  it was changed since it was connected; kept: {kept}")
    if not rows:
        click.echo("No agent is connected.")
    return write_plan_errors(plans)


def _disconnect_agent(plan: "Plan") -> "tuple[Plan, bool]":
    from tacit.traces.connection import disconnect

    if plan.change is None:
        return plan, False
    try:
        return plan, disconnect(plan)
    except TacitError as error:
        return msgspec.structs.replace(plan, error=error), False


def _unlink_skills(host: str) -> tuple[str, ...]:
    from tacit.work.host_links import unlink

    return unlink(host)


@command(
    "plugin",
    "connect",
    "Write the folder that agents can install as a plugin.",
    "tacit plugin ~/tacit-plugin",
    "claude plugin marketplace add ~/tacit-plugin && claude plugin install tacit@tacit",
    "gemini extensions install ~/tacit-plugin",
    "pi install ~/tacit-plugin",
)
@click.argument("path", type=click.Path())
@click.option("--force", is_flag=True, help="Write into a folder that is not empty.")
def plugin_command(path: str, force: bool, as_json: bool) -> int:
    """Write the folder that agents can install as a plugin.

    One folder for Claude Code, Codex, Copilot CLI, Qwen Code, Gemini CLI, pi and opencode: hooks
    that call tacit-hook, which has to be on the PATH, the skill that explains Tacit, and /tacit
    (for Hermes too). It is for
    sharing with a team; on your own machine `tacit connect` is surer. Both at once do no harm.
    """
    target = os.path.abspath(os.path.expanduser(path))
    if os.path.lexists(target) and not os.path.isdir(target):
        raise Usage(f"{target} is not a folder", "name a new folder")
    if os.path.isdir(target) and os.listdir(target) and not force:
        raise Refused(f"{target} is not empty", "name a new folder, or add --force")
    written = _plugin_files()
    for name, data in written.items():
        write_atomic(os.path.join(target, name), data, durable=False, mode=0o644)
    if as_json:
        return output.write_json({"path": target, "files": list(written)})
    click.echo(f"Wrote {counted(len(written), 'file')} to {paths.with_tilde(target)}")
    click.echo("How each agent installs it: tacit plugin --help, or docs/hosts.md")
    return 0


def _plugin_files() -> dict[str, bytes]:
    """The plugin's files, with the skills that Tacit ships."""
    from tacit.skills.scopes import BUNDLED_SKILLS
    from tacit.traces.plugin import files

    found = files(__version__)
    for folder, _, names in paths.walk_folders(BUNDLED_SKILLS):
        for name in sorted(names):
            full = os.path.join(folder, name)
            with open(full, "rb") as file:
                found[os.path.join("skills", os.path.relpath(full, BUNDLED_SKILLS))] = file.read()
    return found
