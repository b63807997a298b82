"""`tacit memory`: facts, as a person lists, reads, adds, changes, shares and forgets them."""

import sys
from typing import Any

import click

from tacit.base.display import one_line, plain
from tacit.base.errors import NotFound, Refused, Usage
from tacit.base.paths import with_tilde
from tacit.changes import git_exclude
from tacit.changes.change import Rewrite, acting_as, make_change
from tacit.changes.facts import (
    KnownFact,
    NewFact,
    Rationale,
    fact_place_for,
    forget,
    known_facts,
    remember,
)
from tacit.changes.gate import Gate
from tacit.changes.place import Place, fact_places
from tacit.skills.fact import FACT_FILE, FACT_KINDS, FactKind
from tacit.ui.cli import output, user_gate
from tacit.ui.cli.user_shell import complete_fact

_MEMORY_EPILOG = """\b
Examples:
  tacit memory                                     what was noted
  tacit memory show package-manager                one of them, and where it is from
  tacit memory add package-manager "The project uses pnpm; npm breaks the lock file."
  tacit memory edit package-manager                in your editor
  tacit memory forget package-manager

Take any of it back: tacit undo CHANGE. What happened to one: tacit log NAME.
"""
_DROP = ("noted", "by", "where", "state")

F = Any


def _scoped(function: F) -> F:
    """`--project` and `--user`, to say which of two facts of one name is meant."""
    for scope in ("user", "project"):
        about = "your own" if scope == "user" else "this project's"
        function = click.option(
            f"--{scope}", "scope", flag_value=scope, help=f"Only {about} facts."
        )(function)
    return function


def _for_history(function: F) -> F:
    return click.option("--reason", default="", help="Why, for the history.")(function)


@click.group(epilog=_MEMORY_EPILOG, invoke_without_command=True)
@output.json_option
@click.pass_context
def memory_command(ctx: click.Context, as_json: bool) -> int:
    """Show, note, change and forget facts: what is so, where skills say how.

    Facts are small files in .agents/memory of your home and of a project. They pass the same checks
    as skills, every change is on record, and `tacit undo` takes one back. Chat recalls them.
    """
    if ctx.invoked_subcommand is not None:
        if as_json:  # said before the subcommand, it means that one
            ctx.default_map = {ctx.invoked_subcommand: {"as_json": True}}
        return 0
    return int(ctx.invoke(list_facts, scope=None, kind=None, as_json=as_json))


@memory_command.command("list", epilog=output.example("tacit memory list --user"))
@_scoped
@click.option("--kind", type=click.Choice(FACT_KINDS), help="Only facts of this kind.")
@output.json_option
def list_facts(scope: str | None, kind: FactKind | None, as_json: bool) -> int:
    """List the facts that can be reached from here."""
    found = [
        known
        for known in known_facts()
        if scope in (None, known.fact.scope) and kind in (None, known.fact.kind)
    ]
    if as_json:
        output.write_json({"facts": [_fact_as_json(known) for known in found]})
        return 0
    if not found:
        click.echo("Nothing has been noted yet. Note something: tacit memory add NAME TEXT")
        return 0
    rows = [
        (
            one_line(known.fact.name),
            known.fact.kind,
            known.fact.scope,
            known.fact.state,
            known.recorded_by or "the project",
            known.fact.noted,
            one_line(known.fact.says) or one_line(known.fact.why),
        )
        for known in found
    ]
    head = ("name", "kind", "where", "state", "by", "noted", "says")
    click.echo(output.table(head, rows, _DROP))
    for why in dict.fromkeys(k.fact.why for k in found if k.fact.state == "untrusted"):
        click.echo(click.style(f"not recalled: {why}", fg="yellow"))
    return 0


@memory_command.command(epilog=output.example("tacit memory show package-manager"))
@click.argument("name", shell_complete=complete_fact)
@_scoped
@output.json_option
def show(name: str, scope: str | None, as_json: bool) -> int:
    """Read a fact, and see who noted it, where and when."""
    known = _find_fact(name, scope)
    fact = known.fact
    if as_json:
        output.write_json(_fact_as_json(known) | {"detail": fact.detail, "metadata": fact.metadata})
        return 0
    click.echo(f"{click.style(plain(fact.name), bold=True)}  {plain(fact.says)}")
    if fact.detail:
        click.echo(f"\n{plain(fact.detail)}")
    rows = {
        "kind": fact.kind,
        "from": known.provenance,
        "where": with_tilde(fact.folder),
        "sessions": fact.metadata.get("sessions", ""),
        "state": fact.state if not fact.why else f"{fact.state}: {fact.why}",
    }
    click.echo()
    for label, value in rows.items():
        if value:
            click.echo(f"{click.style(f'{label:<9}', dim=True)} {one_line(value)}")
    return 0


@memory_command.command(
    epilog=output.example('tacit memory add package-manager "The project uses pnpm."')
)
@click.argument("name")
@click.argument("text")
@click.option(
    "--kind",
    type=click.Choice(FACT_KINDS),
    help="What it is about; with --user, user, else project, unless you say.",
)
@click.option("--detail", default="", help="More, where one line is not enough.")
@_scoped
@_for_history
@click.option("--override", multiple=True, help="Set a rule aside, on record.")
@output.json_option
def add(
    name: str,
    text: str,
    kind: FactKind | None,
    detail: str,
    scope: str | None,
    reason: str,
    override: tuple[str, ...],
    as_json: bool,
) -> int:
    """Note a fact, or replace the one of that name.

    What is about you (user, feedback) goes into your own folder, the rest into the project's,
    unless you say --user or --project.
    """
    kind = kind or ("user" if scope == "user" else "project")
    place = _fact_place(scope) if scope else fact_place_for(fact_places(), kind)
    note = NewFact(name=name, says=text, kind=kind, detail=detail)
    with acting_as("user"):
        verdict = remember(
            _fact_gate(), place.root, note, Rationale(reason=reason, overrides=override)
        )
    done = f"Noted {name} in {with_tilde(place.root)}"
    return user_gate.write_verdict(verdict, done, as_json, can_override=True, noun="fact")


@memory_command.command(epilog=output.example("tacit memory edit package-manager"))
@click.argument("name", shell_complete=complete_fact)
@click.option("--from", "source", help="Take the text from this file ('-': standard input).")
@_scoped
@_for_history
@click.option("--override", multiple=True, help="Set a rule aside, on record.")
@output.json_option
def edit(
    name: str,
    source: str | None,
    scope: str | None,
    reason: str,
    override: tuple[str, ...],
    as_json: bool,
) -> int:
    """Change a fact in your editor. A text that is refused is kept, and the message says where."""
    fact = _find_fact(name, scope).fact
    gate = _fact_gate()
    standing = gate.look(fact.name, fact.root)
    file = standing.contents.files.get(FACT_FILE)
    before = file.data if file is not None and file.kind != "link" else b""
    if source:
        after = user_gate.read_text_source(source)
        user_gate.decode_text(after, source)
    else:
        edited = user_gate.edit_text(user_gate.decode_text(before, FACT_FILE))
        after = edited.encode() if edited is not None else before
    if after == before:
        if as_json:
            output.write_json({"outcome": "unchanged", "skill": fact.name})
        else:
            click.echo("Nothing was changed.", err=True)
        return 0
    with acting_as("user"):
        change = make_change(
            fact.name,
            Rewrite({FACT_FILE: after}),
            reason=reason,
            root=fact.root,
            base=standing.head.id if standing.head else "",
            overrides=override,
        )
        verdict = gate.propose(change)
    code = user_gate.write_verdict(
        verdict, f"Changed {name}", as_json, can_override=True, noun="fact"
    )
    if verdict.offer and not as_json:
        user_gate.write_merged_offer(verdict)
    if verdict.refused and source in (None, "-"):
        kept = user_gate.keep_refused_text(after, name)
        click.echo(f"Your text is kept: tacit memory edit {name} --from {kept}", err=True)
    return code


@memory_command.command("forget", epilog=output.example("tacit memory forget package-manager"))
@click.argument("name", shell_complete=complete_fact)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_scoped
@_for_history
@output.json_option
def forget_fact(name: str, yes: bool, scope: str | None, reason: str, as_json: bool) -> int:
    """Forget a fact. Its history stays, so that `tacit undo` brings it back.

    No machine notes a fact of that name again.
    """
    fact = _find_fact(name, scope).fact
    if not yes:
        if not sys.stdin.isatty():
            raise Refused(f"forgetting '{name}' needs a yes", f"tacit memory forget {name} --yes")
        click.confirm(f"Forget {name} ({one_line(fact.says)})?", abort=True)
    with acting_as("user"):
        verdict = forget(_fact_gate(), fact.root, fact.name, Rationale(reason=reason))
    return user_gate.write_verdict(verdict, f"Forgot {name}", as_json, noun="fact")


@memory_command.command(epilog=output.example("tacit memory share package-manager"))
@click.argument("name", shell_complete=complete_fact)
@click.option("--private", "hide", is_flag=True, help="Hide it from git again.")
@output.json_option
def share(name: str, hide: bool, as_json: bool) -> int:
    """Let git see a fact of this project; at first each is private."""
    fact = _find_fact(name, "project").fact
    place, gate = _fact_place("project"), _fact_gate()
    change = git_exclude.hide if hide else git_exclude.show
    changed = change(place, fact.name, gate.data)
    if as_json:
        output.write_json({"fact": name, "shared": not hide, "changed": changed})
    elif not changed:
        click.echo(f"{name} was {'private' if hide else 'visible to git'} already")
    else:
        click.echo(
            f"{name} is private again" if hide else f"git sees it now: git add {fact.folder}"
        )
    return 0


@memory_command.command(epilog=output.example("tacit memory index"))
@output.json_option
def index(as_json: bool) -> int:
    """Print the facts as chat puts them before a model, within the budget of the settings."""
    import os

    from tacit.agent.instructions import recall_facts
    from tacit.base.settings import load_settings

    found = recall_facts(os.getcwd(), load_settings().settings.memory)
    if as_json:
        output.write_json(
            {
                "text": found.text,
                "lines": found.text.count("\n"),
                "bytes": len(found.text.encode()),
                "facts": len(found.marks),
            }
        )
    else:
        click.echo(found.text, nl=False)
    return 0


def _fact_gate() -> Gate:
    return Gate(fact_places())


def _fact_place(scope: str) -> Place:
    found = next((place for place in fact_places() if place.scope == scope), None)
    if found is None:
        raise Usage("this is not a project", "go to one, or leave --project out")
    return found


def _find_fact(name: str, scope: str | None) -> KnownFact:
    """The fact that `name` means: the project's before the user's."""
    facts = known_facts()
    for known in facts:
        if known.fact.name == name and scope in (None, known.fact.scope):
            return known
    import difflib

    near = difflib.get_close_matches(name, {known.fact.name for known in facts}, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else "see them: tacit memory"
    raise NotFound(f"there is no fact '{name}'", hint)


def _fact_as_json(known: KnownFact) -> dict[str, object]:
    fact = known.fact
    return {
        "name": fact.name,
        "says": fact.says,
        "kind": fact.kind,
        "scope": fact.scope,
        "state": fact.state,
        "why": fact.why,
        "by": known.recorded_by,
        "noted": fact.noted,
        "learned": fact.learned,
        "folder": fact.folder,
    }
