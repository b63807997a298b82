"""Settings: what can be set, and the value that holds here.

One struct a section, each field with its meaning below it. Values come from the defaults, the
user's file, the project's file, TACIT_ variables and flags, in that order; they are merged once,
validated and frozen, and each remembers where it came from. This is the one place that reads
configuration from the environment. A project's file counts only where the user trusts the project:
it arrives with a clone, so somebody else wrote it. Even then it sets only what `PROJECT_MAY_SET`
lists; MCP servers it can propose, and the user allows each. Changing the user's file is
`config_file.py`'s.
"""

import itertools
import os
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

import msgspec

from tacit.base import paths, trust
from tacit.base.errors import BadConfig


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
    """The chance, by the exact test, below which a repair counts as worse and is taken back."""


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
_PROPOSED = "mcp.servers"
"""What such a file may propose: each by itself needs a yes, to the file as it is now."""


class Setting(msgspec.Struct, frozen=True):
    """One setting as it stands: its key, its value, where that came from, what it means."""

    key: str
    value: Any
    source: str
    about: str


class UnknownVariable(msgspec.Struct, frozen=True):
    """A TACIT_ variable that sets nothing, and the one that may have been meant."""

    name: str
    near: str = ""


class LoadedSettings(msgspec.Struct, frozen=True):
    """The settings, the source of each value that is not a default, and what was passed over."""

    settings: Settings
    sources: dict[str, str]
    ignored: tuple[str, ...] = ()
    """Files of projects that the user does not trust."""
    strays: tuple[UnknownVariable, ...] = ()
    refused: tuple[str, ...] = ()
    """What the project's file sets that is not a project's to set."""
    proposed: dict[str, McpServer] = {}
    """The MCP servers that the project's file proposes and the user has not allowed."""

    def values(self) -> list[Setting]:
        """Every setting, in the order of the sections."""
        found = []
        docs = _field_docs()
        for section in Settings.__struct_fields__:
            part = getattr(self.settings, section)
            about = docs.get(type(part).__name__, {})
            for field in part.__struct_fields__:
                key = f"{section}.{field}"
                found.append(
                    Setting(
                        key,
                        getattr(part, field),
                        self.sources.get(key, "default"),
                        about.get(field, ""),
                    )
                )
        return found


def load_settings(
    cwd: str | None = None, flags: Mapping[str, Any] | None = None, given: str = "flag"
) -> LoadedSettings:
    """Read every source, in order, and validate the result. Raises `BadConfig`.

    `given` says where the `flags` came from.
    """
    cwd = cwd or os.getcwd()
    merged: dict[str, dict[str, Any]] = {}
    sources: dict[str, str] = {}
    ignored: list[str] = []
    project = ProjectFile({})
    user_file = paths.folders().config_file
    for path in paths.config_files(cwd):
        if path == user_file:
            _merge(merged, sources, read_toml(path)[1], path)
        elif not trust.is_trusted(paths.project_root(cwd)):
            ignored.append(path)
        else:
            project = read_project_file(path)
            _merge(merged, sources, project.values, path)
            _add_servers(merged, sources, project.servers, path)
    found, strays = _environment()
    _merge(merged, sources, found, "")
    for key, value in (flags or {}).items():
        section, _, field = key.partition(".")
        _merge(merged, sources, {section: {field: value}}, given)
    try:
        made = msgspec.convert(merged, Settings, strict=False)
        return LoadedSettings(
            made, sources, tuple(ignored), strays, project.refused, project.proposed
        )
    except msgspec.ValidationError as error:
        raise _explain(error, sources, merged) from error


class ProjectFile(msgspec.Struct, frozen=True):
    """What a project's file of settings says, sorted by what it may."""

    values: dict[str, dict[str, Any]]
    refused: tuple[str, ...] = ()
    servers: dict[str, Any] = {}
    """The MCP servers that the user has allowed."""
    proposed: dict[str, McpServer] = {}
    digest: str = ""
    """Of the bytes of the file: what is allowed holds for these."""


def read_project_file(path: str) -> ProjectFile:
    """Read the settings file of a project, whether or not it is trusted. Raises `BadConfig`."""
    import hashlib

    text, said = read_toml(path)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    _merge({}, {}, said, path)  # a mistake in it is one, whatever it may set
    keys = [f"{section}.{field}" for section, part in said.items() for field in part]
    values: dict[str, dict[str, Any]] = {}
    for key in keys:
        section, _, field = key.partition(".")
        if key in PROJECT_MAY_SET:
            values.setdefault(section, {})[field] = said[section][field]
    listed = said.get("mcp", {}).get("servers", {})
    try:
        servers = msgspec.convert(listed, dict[str, McpServer])
    except msgspec.ValidationError as error:
        raise _explain(error, {_PROPOSED: path}, said) from error
    allowed = trust.allowed_servers(path, digest) if servers else frozenset()
    return ProjectFile(
        values,
        tuple(key for key in keys if key not in PROJECT_MAY_SET and key != _PROPOSED),
        {name: listed[name] for name in servers if name in allowed},
        {name: server for name, server in servers.items() if name not in allowed},
        digest,
    )


def _add_servers(
    merged: dict[str, dict[str, Any]], sources: dict[str, str], servers: dict[str, Any], path: str
) -> None:
    """Put a project's servers beside the user's own, whose names win."""
    if servers:
        own = merged.setdefault("mcp", {}).get("servers", {})
        merged["mcp"]["servers"] = servers | own
        known = sources.get(_PROPOSED)
        sources[_PROPOSED] = f"{known}, {path}" if known else path


def read_toml(path: str) -> tuple[str, dict[str, Any]]:
    """The text of a file of settings and what it says; nothing where there is none."""
    if not os.path.lexists(path):
        return "", {}
    import tomllib

    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        return text, tomllib.loads(text)
    except FileNotFoundError:
        return "", {}
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(
            f"{path} is not valid TOML: {error}", f"mend that line: {_editor()} {path}"
        ) from error
    except RecursionError as error:
        raise BadConfig(
            f"{path} is nested too deep", f"mend that value: {_editor()} {path}"
        ) from error
    except UnicodeDecodeError as error:
        raise BadConfig(
            f"{path} is not UTF-8: {error.reason}", f"save it as UTF-8: {_editor()} {path}"
        ) from error
    except OSError as error:
        raise BadConfig(f"cannot read {path}: {error.strerror}", "check its permissions") from error


def _environment() -> tuple[dict[str, Any], tuple[UnknownVariable, ...]]:
    """`TACIT_SEARCH_LIMIT=5` as `{"search": {"limit": "5"}}`; lists are separated like PATH.

    A variable that sets nothing is no error: it may be another program's.
    """
    found: dict[str, Any] = {}
    strays = []
    for name in paths.config_variables():
        section, _, field = name.removeprefix("TACIT_").lower().partition("_")
        if field in _fields(section):
            text = os.environ[name]
            default = getattr(getattr(Settings(), section), field)
            value: Any = (
                tuple(p for p in text.split(os.pathsep) if p)
                if isinstance(default, tuple)
                else text
            )
            found.setdefault(section, {})[field] = value
        else:
            strays.append(UnknownVariable(name, _nearest_variable(name)))
    return found, tuple(strays)


def _nearest_variable(name: str) -> str:
    known = [
        f"TACIT_{section}_{field}".upper()
        for section in Settings.__struct_fields__
        for field in _fields(section)
    ]
    import difflib

    near = difflib.get_close_matches(name, [*known, *paths.RESERVED], 1, 0.75)
    return near[0] if near else ""


_RENAMED = {("agent", "background"): ("learn", "model")}
"""Settings that were called otherwise, and are still read by that name."""


def _renamed(layer: "Mapping[str, Any]") -> "Mapping[str, Any]":
    """`layer` with the names that settings have now; what is set by its new name wins."""
    for (section, field), (new_section, new_field) in _RENAMED.items():
        part = layer.get(section)
        if isinstance(part, Mapping) and field in part:
            left = {key: value for key, value in part.items() if key != field}
            there = layer.get(new_section) or {}
            moved = {new_field: part[field], **there} if isinstance(there, Mapping) else there
            layer = {**layer, section: left, new_section: moved}
    return layer


def _merge(
    into: dict[str, dict[str, Any]], sources: dict[str, str], layer: Mapping[str, Any], source: str
) -> None:
    for section, part in _renamed(layer).items():
        if not _fields(section):
            raise BadConfig(
                f"unknown section '{section}' in {source}",
                _nearest(section, Settings.__struct_fields__),
            )
        if not isinstance(part, Mapping):
            raise BadConfig(f"'{section}' in {source} must be a table", f"write it as [{section}]")
        for field, value in part.items():
            key = f"{section}.{field}"
            if field not in _fields(section):
                raise BadConfig(
                    f"unknown setting '{key}' in {source}",
                    _nearest(field, _fields(section), f"{section}."),
                )
            into.setdefault(section, {})[field] = value
            sources[key] = source or f"TACIT_{section}_{field}".upper()


def _fields(section: str) -> tuple[str, ...]:
    part = getattr(Settings(), section, None) if section in Settings.__struct_fields__ else None
    return cast("tuple[str, ...]", part.__struct_fields__) if part is not None else ()


def _nearest(word: str, among: tuple[str, ...], prefix: str = "") -> str:
    import difflib

    near = difflib.get_close_matches(word, among, 1)
    known = ", ".join(prefix + name for name in among)
    return f"did you mean '{prefix}{near[0]}'?" if near else f"known here: {known}"


def choices(key: str) -> tuple[str, ...]:
    """The words that a setting can be, where they can be counted; none for the rest."""
    section, _, field = key.partition(".")
    if field not in _fields(section):
        return ()
    hint = typing.get_type_hints(type(getattr(Settings(), section)))[field]
    if hint is bool:
        return ("true", "false")
    return tuple(value for value in typing.get_args(hint) if isinstance(value, str) and value)


def _explain(
    error: msgspec.ValidationError, sources: Mapping[str, str], merged: Mapping[str, Any]
) -> BadConfig:
    text, _, where = str(error).partition(" - at `$.")
    key = where.rstrip("`").split("[")[0]
    if allowed := choices(key):
        section, _, field = key.partition(".")
        return BadConfig(
            f"setting '{key}' from {sources.get(key, 'the configuration')}:"
            f" '{merged[section][field]}' is none of its values",
            f"choose one of: {', '.join(allowed)}; all settings: tacit config",
        )
    return BadConfig(
        f"setting '{key}' from {sources.get(key, 'the configuration')}: {text}",
        "see all of them: tacit config",
    )


def _editor() -> str:
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or "nano"


def _field_docs() -> dict[str, dict[str, str]]:
    """The text that stands under each field in the source of this module, by its class."""
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
