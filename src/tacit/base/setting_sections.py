"""The settings themselves: one struct a section, each field with its meaning below it.

Also what the file of a trusted project may set. Where values come from, and which one holds, is
`settings.py`'s.
"""

import itertools
from typing import Annotated, Literal, cast

import msgspec


class SkillSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where skills are looked for."""

    paths: tuple[str, ...] = ()
    """More folders with skills, read after the user's own."""
    hosts: bool = True
    """Also read the skill folders of other agents (.claude/skills and the like)."""


class CatalogueSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The block that tells a model which skills there are."""

    budget: Annotated[int, msgspec.Meta(ge=0)] = 8000
    """Characters that the catalogue may take in a prompt."""


class SearchSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Search over the library."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    """How many results `tacit search` shows."""


class TraceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of sessions."""

    redact: bool = True
    """Take secrets out before a session is stored."""
    keep_days: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Drop sessions that ended longer ago; 0 keeps them all."""
    keep_megabytes: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Drop the oldest sessions when the store is larger; 0 is no limit."""
    save: Literal["", "atif"] = ""
    """`atif` also writes each session, as it ends, to trajectories/ in the data folder."""
    otlp_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Port of this machine at which `tacit daemon` takes OpenTelemetry traces; 0 takes none."""


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agent of `tacit chat` and `tacit run`, and of work in the background."""

    model: str = ""
    """`provider:model`; empty takes what a key in the environment or a local server offers."""
    fallback: tuple[str, ...] = ()
    """Models to turn to when the first one fails."""
    base_url: str = ""
    """The address of a server of your own, e.g. http://127.0.0.1:11434/v1."""
    sandbox: str = "auto"
    """`auto`, or `none` to run commands bare where there is no sandbox."""
    network: bool = False
    """Whether commands may use the network."""
    allow: tuple[str, ...] = ()
    """Calls that need no approval, e.g. run_command:git *."""
    show_secrets: bool = False
    """Whether the agent may read .env files, keys and credentials."""
    command_seconds: float = 120.0
    """How long one command may take."""
    command_memory: Annotated[int, msgspec.Meta(ge=-1)] = 0
    """Megabytes of memory for one command; 0 is three quarters of the machine's, -1 no limit."""
    command_disk: Annotated[int, msgspec.Meta(ge=-1)] = 20_000
    """Megabytes that one command may write; -1 is no limit."""
    command_processes: Annotated[int, msgspec.Meta(ge=-1)] = 4096
    """Processes that one command may have at a time; -1 is no limit."""
    show_paths: tuple[str, ...] = ()
    """More files and folders outside the project that commands may see, e.g. ~/data."""
    write_paths: tuple[str, ...] = ()
    """Folders outside the project that commands may write, e.g. ~/.cargo/registry."""
    allow_write: tuple[str, ...] = ()
    """Files that other programs obey and commands may change all the same, e.g. AGENTS.md."""
    turns: int = 100
    """Requests to the model for one message; 0 is no limit."""
    seconds: float = 0.0
    """Seconds for one message; 0 is no limit."""
    tokens: int = 0
    """Tokens for one message; 0 is no limit."""
    money: float = 0.0
    """Dollars for one message; 0 is no limit."""
    retries: int = 4
    """How often a request that failed on its way is made again."""
    window: int = 0
    """Tokens that the model can read; 0 takes what is known of it, else 128,000."""


class McpServer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One MCP server: a program to start, or an address."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    seconds: float = 60.0
    """How long it may take to start, or to answer."""
    file: str = ""
    """The file of the project that proposed it, which is not for a file to say."""


class McpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """MCP servers whose tools the agent gets, and what clients of `tacit mcp` may do."""

    land: bool = False
    """Whether what clients of `tacit mcp` propose lands by itself, if nothing has to be asked."""

    servers: dict[str, McpServer] = {}
    """By name, each as [mcp.servers.NAME] with command and args, or url."""


class WorkerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The worker that hooks start."""

    quiet: Annotated[float, msgspec.Meta(ge=0, le=86400)] = 120.0
    """Seconds without an event after which a session counts as over."""
    idle: Annotated[float, msgspec.Meta(ge=0, le=86400)] = 30.0
    """Seconds without work after which the worker goes."""
    pages: bool = False
    """Whether `tacit daemon` also serves the pages; `tacit web` opens them."""


class LearnSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When sessions are looked at, by how much of a model, and what may come of it unasked."""

    model: str = ""
    """`provider:model` for reviews and repairs, or `none`; empty takes the small one of yours."""
    after_calls: Annotated[int, msgspec.Meta(ge=0)] = 20
    """Tool calls from which a session is looked at when it is over; 0 never looks."""
    after_messages: Annotated[int, msgspec.Meta(ge=0)] = 3
    """Messages of yours from which a finished session is looked at for facts; 0 never looks."""
    chat_iterations: Annotated[int, msgspec.Meta(ge=0)] = 10
    """Requests of a chat since the last change of a skill before it is looked at; 0 is off."""
    approval: Literal["", "auto", "ask", "propose-only"] = ""
    """`auto`, `ask` or `propose-only`; empty asks for the first three skills, then asks you."""
    turns: Annotated[int, msgspec.Meta(ge=1, le=100)] = 8
    """Requests that a look at a finished session may take."""
    chat_turns: Annotated[int, msgspec.Meta(ge=1, le=100)] = 16
    """Requests that a look at a running chat may take."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 120.0
    """Seconds that one look may take."""
    tokens: Annotated[int, msgspec.Meta(ge=0)] = 200_000
    """Tokens that one look may take; 0 is no limit."""
    money: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    """Dollars that one look may take; 0 is no limit."""
    form: Literal["", "conversation", "short"] = ""
    """`conversation`, or `short`: one request a look; empty goes by what the model can."""
    most_skills: Annotated[int, msgspec.Meta(ge=0, le=100)] = 3
    """Skills that one look may make or change unasked; more of them wait in the inbox."""
    daily_money: Annotated[float, msgspec.Meta(ge=0)] = 2.0
    """Dollars that all work in the background may take a day; 0 is no limit."""
    daily_tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Tokens that all work in the background may take a day; 0 is no limit."""
    confirm_above: Annotated[float, msgspec.Meta(ge=0)] = 0.25
    """Dollars of an estimate above which `tacit learn` asks before it begins."""
    holdback: Annotated[float, msgspec.Meta(ge=0, le=0.5)] = 0.0
    """The part of our chat's sessions in which a learned skill is left out, as a trial."""
    require_trial: bool = False
    """Whether a learned skill waits until a trial has shown that it does no harm."""
    notify: bool = False
    """Also tell by a desktop notification what was learned."""


class MemorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts that are kept beside skills."""

    use: bool = True
    """Whether facts are learned, and recalled in our chat."""
    chat_turns: Annotated[int, msgspec.Meta(ge=0)] = 10
    """Messages of yours in a chat before it is looked at for facts; 0 is off."""
    lines: Annotated[int, msgspec.Meta(ge=1, le=200)] = 200
    """Lines of the index of facts that a prompt carries."""
    kilobytes: Annotated[int, msgspec.Meta(ge=1, le=25)] = 25
    """Kilobytes of the index of facts that a prompt carries."""
    agent_characters: Annotated[int, msgspec.Meta(ge=0, le=20_000)] = 3_000
    """Characters of facts that connected agents are told where you let them; 0 is none."""


class ImproveSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The repair of skills that failed."""

    use: bool = True
    """Whether a skill that failed is repaired in the background."""
    failures: Annotated[int, msgspec.Meta(ge=1)] = 1
    """Failed steps in one use of a skill from which it is looked at."""
    recovered_calls: Annotated[int, msgspec.Meta(ge=0)] = 3
    """Calls that a failure must have cost to count when it was got over; 0 never counts those."""
    cooldown_hours: Annotated[float, msgspec.Meta(ge=0)] = 24.0
    """Hours after a repair of a skill before the next."""
    own: bool = False
    """Also apply repairs of skills that you wrote; else they wait in the inbox."""
    turns: Annotated[int, msgspec.Meta(ge=1, le=100)] = 16
    """Requests that one repair may take."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 120.0
    """Seconds that one repair may take."""
    tokens: Annotated[int, msgspec.Meta(ge=0)] = 300_000
    """Tokens that one repair may take; 0 is no limit."""
    money: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    """Dollars that one repair may take; 0 is no limit."""
    probation_uses: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5
    """Uses of a repaired skill that are compared with those before the repair."""
    worse: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.05
    """The chance of error with which a repair may be found worse, and is taken back."""


class CurateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How unused skills are put away."""

    use: bool = True
    """Whether unused learned skills are put away in idle time."""
    stale_days: Annotated[float, msgspec.Meta(gt=0, le=3650)] = 30.0
    """Days without use or edit after which a learned skill counts as stale."""
    archive_days: Annotated[float, msgspec.Meta(gt=0, le=3650)] = 90.0
    """Days without use or edit after which a stale skill is archived."""
    every_days: Annotated[float, msgspec.Meta(gt=0, le=365)] = 7.0
    """Days from one look at the library to the next."""
    idle_hours: Annotated[float, msgspec.Meta(ge=0, le=168)] = 2.0
    """Hours in which no agent wrote anything before the library is looked at."""
    consolidate: Literal["off", "propose", "auto"] = "off"
    """Whether a model joins look-alikes: `propose` waits for your word, `auto` does not."""
    clusters: Annotated[int, msgspec.Meta(ge=1, le=50)] = 3
    """Groups of look-alikes that one look hands to a model."""
    turns: Annotated[int, msgspec.Meta(ge=1, le=100)] = 12
    """Requests that one group of look-alikes may take."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 180.0
    """Seconds that one group of look-alikes may take."""


class JobSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The durable queues that work in the background runs on."""

    at_once: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    """Jobs of one kind that one worker does at a time."""
    per_hour: Annotated[int, msgspec.Meta(ge=-1)] = 60
    """Jobs of one kind that ask a model and may begin within an hour; -1 is no limit."""
    keep_days: Annotated[int, msgspec.Meta(ge=1)] = 30
    """Days for which jobs that are over stay in the list."""


class ScheduleSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Skills on a clock."""

    zone: str = ""
    """The time zone of new schedules, e.g. Europe/Paris; empty takes this machine's."""
    catch_up: Literal["latest", "all", "none"] = "latest"
    """What new schedules do about runs that were missed: the `latest`, `all` of them, or `none`."""
    overlap: Literal["skip", "queue"] = "skip"
    """What new schedules do when a run is due while the last one still goes on."""
    seconds: Annotated[float, msgspec.Meta(gt=0, le=86400)] = 600.0
    """Seconds that a run of a new schedule may take."""
    money: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    """Dollars that a run may take; 0 is no limit."""
    tokens: Annotated[int, msgspec.Meta(ge=0)] = 500_000
    """Tokens that a run may take; 0 is no limit."""
    webhook_hosts: tuple[str, ...] = ()
    """Hosts that output may be sent to, e.g. hooks.example.com or *.example.com."""
    trash_days: Annotated[int, msgspec.Meta(ge=1)] = 30
    """Days for which a removed schedule can be brought back."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set."""

    skills: SkillSettings = SkillSettings()
    catalogue: CatalogueSettings = CatalogueSettings()
    search: SearchSettings = SearchSettings()
    traces: TraceSettings = TraceSettings()
    agent: AgentSettings = AgentSettings()
    mcp: McpSettings = McpSettings()
    worker: WorkerSettings = WorkerSettings()
    learn: LearnSettings = LearnSettings()
    memory: MemorySettings = MemorySettings()
    improve: ImproveSettings = ImproveSettings()
    curate: CurateSettings = CurateSettings()
    jobs: JobSettings = JobSettings()
    schedule: ScheduleSettings = ScheduleSettings()


PROJECT_MAY_SET = frozenset({
    "agent.command_seconds", "catalogue.budget", "improve.use", "learn.after_calls",
    "learn.after_messages", "learn.chat_iterations", "memory.chat_turns", "memory.kilobytes",
    "memory.lines", "memory.use", "schedule.catch_up", "schedule.overlap", "schedule.zone",
    "search.limit", "skills.hosts",
})  # fmt: skip
"""What the file of a trusted project may set. Never where the model is and by which key, what runs
without asking, what is sent out, hidden, kept or paid: those are the user's."""


def field_docs() -> dict[str, dict[str, str]]:
    """The text that stands under each field here, by its class."""
    import ast

    source = __loader__.get_data(__file__)  # type: ignore[name-defined]  # also from a zip
    docs: dict[str, dict[str, str]] = {}
    for part in ast.parse(source).body:
        for node, after in itertools.pairwise(part.body if isinstance(part, ast.ClassDef) else ()):
            if (
                isinstance(node, ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                field = cast("ast.Name", node.target).id
                docs.setdefault(cast("ast.ClassDef", part).name, {})[field] = str(after.value.value)
    return docs
