"""Completion of the names of skills and facts in the shell."""

import click
from click.shell_completion import CompletionItem


def complete_skill(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The skills whose name begins with what was typed. A fault here must not disturb a prompt."""
    try:
        from tacit.skills.library import Library

        found = [e for e in Library().entries if e.state != "shadowed"]
    except Exception:
        return []
    return [
        CompletionItem(entry.name, help=entry.description[:80])
        for entry in found
        if entry.name.startswith(incomplete)
    ][:200]


def complete_fact(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The facts whose name begins with what was typed."""
    try:
        from tacit.skills.memory import facts_here

        found = {fact.name: fact for fact in reversed(facts_here())}
    except Exception:
        return []
    return [
        CompletionItem(name, help=found[name].says[:80])
        for name in sorted(found)
        if name.startswith(incomplete)
    ][:200]
