"""What a tool is: a name, its arguments, whether it needs approval, and what it does.

Owns the contract between the loop and a tool: the context a tool works with, the result it gives,
and the error it may raise. The tools themselves are in `file_tools.py`, `skill_tools.py`,
`fact_tools.py` and `session_tools.py`; those of the background agents are in `learn/`.
"""

import os
import tempfile
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tacit.agent.activation import Active
from tacit.agent.agent_events import Changed
from tacit.agent.off_limits import CommandLimits, CommandRules
from tacit.base.display import shorten_middle
from tacit.base.paths import is_inside
from tacit.skills.scopes import extra_folders

if TYPE_CHECKING:
    from tacit.agent.sandbox import Sandbox
    from tacit.skills.library import Library

Power = Literal["read", "write", "command", "ask"]
"""`read` runs at once; `write` and `command` need approval; `ask` talks to the user."""

MOST_TEXT = 30_000
"""Characters of a result that a model gets; the rest is kept in a file."""


class Result(msgspec.Struct, frozen=True):
    """What a call gave. `text` is what the model reads."""

    text: str
    failed: bool = False
    diff: str = ""
    """For people: what was changed."""
    activated: Active | None = None
    """The skill that this call loaded, in the version that was read."""
    changed: Changed = ""
    """What the call changed beyond the project: a skill, or a fact."""


class Question(msgspec.Struct, frozen=True):
    """A question to the user, with answers to choose from."""

    question: str
    options: tuple[str, ...] = ()


class Context:
    """What tools work with: the project, the library, a folder for this session, the user."""

    def __init__(
        self,
        project: str,
        temporary: str,
        *,
        library: "Library",
        sandbox: "Callable[[], Sandbox]",
        ask: Callable[[Question], Awaitable[str | None]],
        options: "ToolOptions",
    ) -> None:
        self.project = os.path.realpath(project)
        self.temporary = os.path.realpath(temporary)
        self.library = library
        self.sandbox = sandbox
        self.ask = ask
        self.options = options
        self.active: dict[str, Active] = {}
        """The conversation's own table; the conversation writes it."""
        self.user_words: list[str] = []
        """What the user said so far; the conversation's own list too."""
        self.facts_changed: set[str] = set()
        """Marks of facts that this conversation's own calls noted or forgot."""
        self.session = ""
        self.approved_by_person = False
        """Whether a person, and not a rule, has allowed the call that is being made."""
        self.folders_below: tuple[str, ...] = ()
        """The folders from the project down to where the user is."""

    def rules(self) -> CommandRules:
        """What a command may do."""
        options = self.options
        return CommandRules(
            project=self.project,
            temporary=self.temporary,
            network=options.network,
            read_only_project=options.read_only_project,
            show_secrets=options.show_secrets,
            working_folders=self.folders_below,
            writable=options.write_paths,
            show=(*options.show_paths, *self._skill_folders()),
            skills=extra_folders(self.library.settings.skills.paths),
            allow_write=options.allow_write,
            limits=options.limits,
        )

    def _skill_folders(self) -> list[str]:
        """The folders of the skills that can be loaded, and those that they only link to."""
        active = self.library.active()
        roots = {entry.root: os.path.realpath(entry.root) for entry in active}
        linked = (e.real for e in active if not is_inside(e.real, roots[e.root]))
        return [*roots, *dict.fromkeys(linked)]

    def shorten(self, text: str) -> str:
        """`text` cut in the middle if it is long, with how to see the rest."""
        if len(text) <= MOST_TEXT:
            return text
        # Commands write there too, and what leads elsewhere must not be written through.
        descriptor, path = tempfile.mkstemp(".txt", "output-", self.temporary)
        with open(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "replace"))
        line = text.count("\n", 0, MOST_TEXT // 2) + 1
        more = f"; see them: read_file path={path} offset={line}"
        return shorten_middle(text, MOST_TEXT, tail=0.5, more=more)


class ToolOptions(msgspec.Struct, frozen=True):
    """How tools behave in this session."""

    network: bool = False
    seconds: float = 120.0
    show_secrets: bool = False
    read_only_project: bool = False
    search_seconds: float = 20.0
    show_paths: tuple[str, ...] = ()
    write_paths: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    limits: CommandLimits = CommandLimits()


class Tool(msgspec.Struct, frozen=True):
    """A tool. `run` gets its arguments, checked, and the context; it may raise `Failed`."""

    name: str
    description: str
    arguments: type[msgspec.Struct]
    run: Callable[[Any, Context], Awaitable[Result]]
    power: Power = "read"
    refuse: Callable[[Any, Context], Awaitable[None]] | None = None
    """Raises `Failed` for a call that cannot work, before anybody is asked to allow it."""

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, self-contained."""
        whole = msgspec.json.schema(self.arguments)
        schema = dict(whole["$defs"][self.arguments.__name__])
        schema.pop("title", None)
        schema.pop("description", None)
        return schema

    def takes(self) -> frozenset[str] | None:
        """The names of its arguments, all others being left aside; None: another program knows."""
        return frozenset(self.arguments.__struct_fields__)

    def check(self, arguments: dict[str, Any]) -> Any:
        """The arguments as a struct. Raises `Failed` with what is wrong."""
        try:
            return msgspec.convert(arguments, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            known = ", ".join(self.arguments.__struct_fields__)
            raise Failed(f"{self.name}: {error}. It takes: {known}.") from None


class Failed(Exception):
    """A call that did not work; the model reads why."""


def text_of(data: bytes) -> str:
    """`data` as text; raises `Failed` where it is none."""
    if b"\x00" in data[:8192]:
        raise Failed("this is a binary file")
    return data.decode("utf-8", "replace")


def numbered(lines: list[str], first: int) -> str:
    """Lines with their numbers, as `read_file` shows them."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, first))
