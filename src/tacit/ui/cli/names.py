"""Completion of names in the shell: skills, facts, sessions, agents, proposals.

A fault here must not disturb a prompt, so whatever goes wrong completes nothing.
"""

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

_MOST = 200
Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completing(names: Callable[[], Iterable[tuple[str, str]]]) -> Complete:
    """A completion from `names`, which gives each name with a word about it."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        try:
            found = [(name, about) for name, about in names() if name.startswith(incomplete)]
        except Exception:
            return []
        return [CompletionItem(name, help=about[:80]) for name, about in found[:_MOST]]

    return complete


def _skills() -> Iterable[tuple[str, str]]:
    from tacit.skills.library import Library

    return [(e.name, e.description) for e in Library().entries if e.state != "shadowed"]


def _facts() -> Iterable[tuple[str, str]]:
    from tacit.skills.memory import facts_here

    found = {fact.name: fact.says for fact in reversed(facts_here())}
    return sorted(found.items())


def _sessions() -> Iterable[tuple[str, str]]:
    from tacit.base.moments import ago
    from tacit.base.terminal import one_line
    from tacit.traces.store import Store

    with Store.open() as store:
        return [
            (s.head.session, one_line(f"{s.head.host}, {ago(s.head.ended)}: {s.head.title}"))
            for s in store.sessions(limit=_MOST)
        ]


def _hosts() -> Iterable[tuple[str, str]]:
    from tacit.traces.hosts import registry

    return [(name, registry.get(name).title) for name in registry.names()]


def _proposals() -> Iterable[tuple[str, str]]:
    import os

    from tacit.base import paths
    from tacit.base.clock import SystemClock
    from tacit.base.database import FILE_NAME
    from tacit.changes.inbox import Inbox

    inbox = Inbox(os.path.join(paths.folders().data, FILE_NAME), SystemClock())
    return [(p.id[-8:], f"{p.change.skill}: {p.change.reason}") for p in inbox.waiting()]


complete_skill = _completing(_skills)
complete_fact = _completing(_facts)
complete_session = _completing(_sessions)
complete_host = _completing(_hosts)
complete_proposal = _completing(_proposals)
