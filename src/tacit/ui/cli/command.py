"""How a command is declared, and how `tacit` knows all of them without importing one.

Owns the decorators `command` and `group`, the option `--json` and the sections of `tacit --help`.
A decorator gives the name, the section, the line in the help and the examples. The first three are
also read from the source text of the modules in `NOUNS`: that takes about a millisecond, where
importing the modules takes a second.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import click

SECTIONS = {
    "find": "Find and read skills",
    "work": "Work with the agent",
    "learn": "Learn",
    "change": "Change skills and facts",
    "history": "History and inbox",
    "sessions": "Sessions of your agents",
    "connect": "Connect your agents",
    "setup": "Set up and look after",
}
NOUNS = (
    "skills", "search_results", "chats", "tasks", "schedules", "model_setup", "reviews",
    "distillations", "handoffs",
    "upkeep", "job_reports", "user_shell", "skill_changes", "memory", "versions", "proposals",
    "sessions", "exports", "workers", "agents", "servers", "config", "checkup", "trials",
)  # fmt: skip
_DECLARATION = re.compile(  # begins with a line break, which is found faster than `^`
    rb"\n(?:@(?:command|group)|\w+_command = \w+)\("
    rb'\s*"([\w-]+)",\s*"(\w+)",\s*"([^"\\]*)"'
)
_JSON_WANTED = "tacit.json"

Function = Callable[..., Any]


class Declaration(NamedTuple):
    """A command as its decorator declares it."""

    noun: str
    """The module, below `tacit.ui.cli`."""
    name: str
    section: str
    about: str


registered: dict[str, tuple[Declaration, click.Command]] = {}
"""The commands of the modules that are imported."""


@cache
def declarations_in(noun: str) -> tuple[Declaration, ...]:
    """The commands that the source of a module declares, in its order."""
    path = os.path.join(os.path.dirname(__file__), f"{noun}.py")
    source: bytes = __loader__.get_data(path)  # type: ignore[name-defined]  # also from a zip
    found = _DECLARATION.findall(source)
    return tuple(Declaration(noun, *(part.decode() for part in parts)) for parts in found)


def declarations() -> Iterator[Declaration]:
    """The commands of all modules; a module is read when it is its turn."""
    for noun in NOUNS:
        yield from declarations_in(noun)


def command(
    name: str, section: str, about: str, *examples: str, note: str = "", **options: Any
) -> Callable[[Function], click.Command]:
    """A command of `tacit`, with `--json`; `note` stands below its examples."""

    def declare(function: Function) -> click.Command:
        noun = function.__module__.rpartition(".")[2]
        make: Callable[[Function], click.Command] = click.command(
            name, **_help(examples, note), **options
        )
        made = _with_json(make(function))
        registered[name] = Declaration(noun, name, section, about), made
        return made

    return declare


class Group(click.Group):
    """A command with commands of its own, which also does something by itself."""

    def verb(
        self, name: str, *examples: str, note: str = "", **options: Any
    ) -> Callable[[Function], click.Command]:
        """A command of the group, with `--json`, which may also stand before its name."""

        def declare(function: Function) -> click.Command:
            texts = _help(examples, note, one="Example:") | options
            return _with_json(self.command(name, **texts)(function))

        return declare


def group(
    name: str, section: str, about: str, *examples: str, note: str = "", cls: type[Group] = Group
) -> Callable[[Function], Group]:
    """A command of `tacit` that is a group."""
    return command(  # type: ignore[return-value]
        name, section, about, *examples, note=note, cls=cls, invoke_without_command=True
    )


def _help(examples: tuple[str, ...], note: str, one: str = "Examples:") -> dict[str, Any]:
    head = one if len(examples) == 1 else "Examples:"
    lines = "".join(f"\n  {example}" for example in examples)
    return {"epilog": f"\b\n{head}{lines}\n" + (f"\n{note}\n" if note else "")}


def _with_json(made: click.Command) -> click.Command:
    if not any(parameter.name == "as_json" for parameter in made.params):
        text = "Print JSON, for scripts."
        made.params.append(
            click.Option(["--json", "as_json"], is_flag=True, help=text, callback=_json_wanted)
        )
    return made


def _json_wanted(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool:
    """Whether `--json` was given, to this command or to the group before it."""
    ctx.meta[_JSON_WANTED] = value or ctx.meta.get(_JSON_WANTED, False)
    return bool(ctx.meta[_JSON_WANTED])


@contextmanager
def leaving_in_order() -> Iterator[None]:
    """In the block a closed terminal, or a request to end, ends the program as its own end does:
    what was begun is put away. Only in the main thread, which alone hears of them."""
    import signal
    import threading

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    heard = (
        (signal.SIGTERM, signal.SIGHUP)
        if threading.current_thread() is threading.main_thread()
        else ()
    )
    # `nohup` has one of them ignored, and stays right.
    before = {n: signal.signal(n, leave) for n in heard if signal.getsignal(n) is signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
