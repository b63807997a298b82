"""`tacit memory`: facts, as a person lists, reads, adds, changes, shares and forgets them."""

from typing import TYPE_CHECKING, Any

import click

from tacit.base.display import one_line, plain
from tacit.base.errors import Refused, Usage
from tacit.base.paths import with_tilde
from tacit.changes.change import Rewrite, acting_as
from tacit.changes.facts import (
    KnownFact,
    NewFact,
    Rationale,
    fact_place_for,
    find_fact,
    forget,
    known_facts,
    remember,
)
from tacit.changes.place import Place, fact_places
from tacit.skills.fact import FACT_FILE, FACT_KINDS, FactKind
from tacit.ui.cli import output
from tacit.ui.cli.command import group
from tacit.ui.cli.user_shell import complete_fact

if TYPE_CHECKING:  # facts are listed and read without it
    from tacit.changes.gate import Gate

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


@group(
    "memory",
    "change",
    "Show, note, change and forget facts.",
    "tacit memory                                     what was noted",
    "tacit memory show package-manager                one of them, and where it is from",
    'tacit memory add package-manager "The project uses pnpm; npm breaks the lock file."',
    "tacit memory edit package-manager                in your editor",
    "tacit memory forget package-manager",
    note="Take any of it back: tacit undo CHANGE. What happened to one: tacit log NAME.",
)
@click.pass_context
def memory_command(ctx: click.Context, as_json: bool) -> int:
    """Show, note, change and forget facts: what is so, where skills say how.

    Facts are small files in .agents/memory of your home and of a project. They pass the same checks
    as skills, every change is on record, and `tacit undo` takes one back. Chat recalls them.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    return int(ctx.invoke(list_facts, scope=None, kind=None, as_json=as_json))


@memory_command.verb("list", "tacit memory list --user")
@_scoped
@click.option("--kind", type=click.Choice(FACT_KINDS), help="Only facts of this kind.")
def list_facts(scope: str | None, kind: FactKind | None, as_json: bool) -> int:
    """List the facts that can be reached from here."""
    found = [
        known
        for known in known_facts()
        if scope in (None, known.fact.scope) and kind in (None, known.fact.kind)
    ]
    if as_json:
        return output.write_json({"facts": [_fact_as_json(known) for known in found]})
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


@memory_command.verb("show", "tacit memory show package-manager")
@click.argument("name", shell_complete=complete_fact)
@_scoped
def show(name: str, scope: str | None, as_json: bool) -> int:
    """Read a fact, and see who noted it, where and when."""
    known = _find_fact(name, scope)
    fact = known.fact
    if as_json:
        return output.write_json(
            _fact_as_json(known) | {"detail": fact.detail, "metadata": fact.metadata}
        )
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
    output.write_rows(((label, one_line(value)) for label, value in rows.items()), 9)
    return 0


@memory_command.verb("add", 'tacit memory add package-manager "The project uses pnpm."')
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
    from tacit.ui.cli import user_gate

    kind = kind or ("user" if scope == "user" else "project")
    place = _fact_place(scope) if scope else fact_place_for(fact_places(), kind)
    new = NewFact(name=name, says=text, kind=kind, detail=detail)
    with acting_as("user"):
        verdict = remember(
            _fact_gate(), place.root, new, Rationale(reason=reason, overrides=override)
        )
    done = f"Noted {name} in {with_tilde(place.root)}"
    return user_gate.write_verdict(verdict, done, as_json, can_override=True, noun="fact")


@memory_command.verb("edit", "tacit memory edit package-manager")
@click.argument("name", shell_complete=complete_fact)
@click.option("--from", "source", help="Take the text from this file ('-': standard input).")
@_scoped
@_for_history
@click.option("--override", multiple=True, help="Set a rule aside, on record.")
def edit(
    name: str,
    source: str | None,
    scope: str | None,
    reason: str,
    override: tuple[str, ...],
    as_json: bool,
) -> int:
    """Change a fact in your editor. A text that is refused is kept, and the message says where."""
    from tacit.ui.cli import user_gate

    fact = _find_fact(name, scope).fact
    gate = _fact_gate()
    return user_gate.edit_through_gate(
        gate,
        user_gate.Target(gate.open_place(fact.root), fact.name, None),
        name,
        FACT_FILE,
        source,
        lambda files, path, after: Rewrite({path: after}),
        {"reason": reason, "overrides": override},
        as_json,
    )


@memory_command.verb("forget", "tacit memory forget package-manager")
@click.argument("name", shell_complete=complete_fact)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_scoped
@_for_history
def forget_fact(name: str, yes: bool, scope: str | None, reason: str, as_json: bool) -> int:
    """Forget a fact. Its history stays, so that `tacit undo` brings it back.

    No machine notes a fact of that name again.
    """
    from tacit.ui.cli import user_gate

    fact = _find_fact(name, scope).fact
    needs = Refused(f"forgetting '{name}' needs a yes", f"tacit memory forget {name} --yes")
    output.confirm(f"Forget {name} ({one_line(fact.says)})?", yes, needs)
    with acting_as("user"):
        verdict = forget(_fact_gate(), fact.root, fact.name, Rationale(reason=reason))
    return user_gate.write_verdict(verdict, f"Forgot {name}", as_json, noun="fact")


@memory_command.verb("share", "tacit memory share package-manager")
@click.argument("name", shell_complete=complete_fact)
@click.option("--private", "hide", is_flag=True, help="Hide it from git again.")
def share(name: str, hide: bool, as_json: bool) -> int:
    """Let git see a fact of this project; at first each is private."""
    from tacit.ui.cli import user_gate

    fact = _find_fact(name, "project").fact
    return user_gate.share_with_git("fact", name, _fact_place("project"), fact.name, hide, as_json)


@memory_command.verb("index", "tacit memory index")
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
                "facts": len(found.keys),
            }
        )
    else:
        click.echo(found.text, nl=False)
    return 0


def _fact_gate() -> "Gate":
    from tacit.changes.gate import Gate
    from tacit.work import host_links

    host_links.listen()
    return Gate(fact_places())


def _fact_place(scope: str) -> Place:
    found = next((place for place in fact_places() if place.scope == scope), None)
    if found is None:
        raise Usage("this is not a project", "go to one, or leave --project out")
    return found


def _find_fact(name: str, scope: str | None) -> KnownFact:
    return find_fact(known_facts(), name, "see them: tacit memory", scope)


def _fact_as_json(known: KnownFact) -> dict[str, object]:
    keys = ("name", "says", "kind", "scope", "state", "why", "by", "noted", "learned", "folder")
    return {key: known.recorded_by if key == "by" else getattr(known.fact, key) for key in keys}
