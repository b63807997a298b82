"""What the user's shell asks for: completion of names, its script, and the line of the prompt.

A fault while completing must not disturb a prompt, so whatever goes wrong completes nothing.
"""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from tacit.base import paths
from tacit.base.display import one_line, shorten
from tacit.base.errors import Usage
from tacit.ui.cli import output
from tacit.ui.cli.command import command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_MOST_NAMES = 200
Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _complete_from(names: Callable[[], Iterable[tuple[str, str]]]) -> Complete:
    """A completion from `names`, which gives each name with a word about it."""

    def complete(
        ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        from click.shell_completion import CompletionItem

        try:
            found = [(name, about) for name, about in names() if name.startswith(incomplete)]
        except Exception:
            return []
        return [
            CompletionItem(name, help=shorten(about, 80)) for name, about in found[:_MOST_NAMES]
        ]

    return complete


def _skills() -> Iterable[tuple[str, str]]:
    from tacit.skills.library import Library

    return [(e.name, e.description) for e in Library().entries if e.state != "shadowed"]


def _facts() -> Iterable[tuple[str, str]]:
    from tacit.skills.fact import facts_here

    found = {fact.name: fact.says for fact in reversed(facts_here())}
    return sorted(found.items())


def _sessions() -> Iterable[tuple[str, str]]:
    from tacit.base.clock import ago
    from tacit.traces.store import Store

    with Store.open() as store:
        return [
            (s.head.session, one_line(f"{s.head.host}, {ago(s.head.ended)}: {s.head.title}"))
            for s in store.sessions(limit=_MOST_NAMES)
        ]


def _hosts() -> Iterable[tuple[str, str]]:
    from tacit.traces import host_registry

    return [(name, host_registry.get(name).title) for name in host_registry.names()]


def _proposals() -> Iterable[tuple[str, str]]:
    from tacit.changes.inbox import Inbox

    return [(p.id[-8:], f"{p.change.skill}: {p.change.reason}") for p in Inbox().waiting()]


def _schedules() -> Iterable[tuple[str, str]]:
    from tacit.work.schedule_store import listing

    return [(schedule.name, schedule.description) for schedule in listing()[0]]


def _runs() -> Iterable[tuple[str, str]]:
    from tacit.work.schedule_runs import run_history

    return [(row.id, row.state) for row in run_history(most=_MOST_NAMES)]


complete_skill = _complete_from(_skills)
complete_fact = _complete_from(_facts)
complete_session = _complete_from(_sessions)
complete_host = _complete_from(_hosts)
complete_proposal = _complete_from(_proposals)
complete_schedule = _complete_from(_schedules)
complete_run = _complete_from(_runs)


@command(
    "completion",
    "setup",
    "Print the script that completes commands in a shell.",
    "tacit completion bash > ~/.local/share/bash-completion/completions/tacit",
    'tacit completion zsh > "${fpath[1]}/_tacit"',
    "tacit completion fish > ~/.config/fish/completions/tacit.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), required=False)
def completion_command(shell: str | None, as_json: bool) -> int:
    """Print the script that completes commands in a shell.

    Commands, options and names of skills are completed. Without SHELL, the one in $SHELL is taken.
    """
    from click.shell_completion import get_completion_class

    shell = shell or os.path.basename(os.environ.get("SHELL", ""))
    kind = get_completion_class(shell)
    if kind is None or shell not in ("bash", "zsh", "fish"):
        raise Usage(f"the shell '{shell}' is not known", "name one of: bash, zsh, fish")
    from tacit.ui.cli.app import tacit

    script = kind(tacit, {}, "tacit", "_TACIT_COMPLETE").source()
    if as_json:
        output.write_json({"shell": shell, "script": script})
    else:
        click.echo(script)
    return 0


@command(
    "prompt-status",
    "learn",
    "Print, once, what was learned; for a prompt.",
    "PROMPT_COMMAND='tacit prompt-status'           bash: in ~/.bashrc",
    "precmd() { tacit prompt-status }               zsh: in ~/.zshrc",
    "function tacit_news --on-event fish_prompt     fish: in config.fish",
    "  tacit prompt-status; end",
    "[custom.tacit]                                 starship: in ~/.config/starship.toml",
    'command = "tacit prompt-status"',
    "when = true",
)
def prompt_status_command(as_json: bool) -> int:
    """Print what was learned since the last prompt in one line, or nothing.

    Each thing is told once: what happened, the command that shows it, the command that takes it
    back. Meant to be called before every prompt; it only looks whether a small file is there.
    """
    from tacit.base import prompt_line

    text = prompt_line.take(paths.folders().data)
    if as_json:
        output.write_json({"line": text})
    elif text:
        click.echo(text)
    return 0
