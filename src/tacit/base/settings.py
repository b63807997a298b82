"""Settings: defaults, then the user's file, the project's file, TACIT_ variables, then flags.

Merged once, validated, frozen. This is the one place that reads configuration from the
environment. Each value remembers where it came from; `tacit config` shows that. A project's file
counts only when the user trusts the project: it arrives with a clone, so it is somebody else's.
"""

import difflib
import itertools
import os
import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, cast

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


class AgentSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agent of `tacit chat` and `tacit run`, and of work in the background."""

    model: str = ""
    """`provider:model`; empty takes what a key in the environment or a local server offers."""
    background: str = ""
    """A second, cheaper model for reviews and repairs; empty takes the provider's small one."""
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
    """MCP servers whose tools the agent gets."""

    servers: dict[str, McpServer] = {}
    """By name, each as [mcp.servers.NAME] with command and args, or url."""


class WorkerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The worker that hooks start."""

    quiet: Annotated[float, msgspec.Meta(ge=0, le=86400)] = 120.0
    """Seconds without an event after which a session counts as over."""
    idle: Annotated[float, msgspec.Meta(ge=0, le=86400)] = 30.0
    """Seconds without work after which the worker goes."""


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set."""

    skills: SkillSettings = SkillSettings()
    catalogue: CatalogueSettings = CatalogueSettings()
    search: SearchSettings = SearchSettings()
    traces: TraceSettings = TraceSettings()
    agent: AgentSettings = AgentSettings()
    mcp: McpSettings = McpSettings()
    worker: WorkerSettings = WorkerSettings()


class Value(msgspec.Struct, frozen=True):
    """One setting as it stands: its key, its value, where that came from, what it means."""

    key: str
    value: Any
    source: str
    about: str


class Loaded(msgspec.Struct, frozen=True):
    """The settings, the source of each value that is not a default, and files passed over."""

    settings: Settings
    sources: dict[str, str]
    ignored: tuple[str, ...] = ()

    def values(self) -> list[Value]:
        """Every setting, in the order of the sections."""
        found = []
        for section in Settings.__struct_fields__:
            part = getattr(self.settings, section)
            about = _field_docs(type(part))
            for field in part.__struct_fields__:
                key = f"{section}.{field}"
                found.append(
                    Value(
                        key,
                        getattr(part, field),
                        self.sources.get(key, "default"),
                        about.get(field, ""),
                    )
                )
        return found


def load(cwd: str | None = None, flags: Mapping[str, Any] | None = None) -> Loaded:
    """Read every source, in order, and validate the result. Raises `BadConfig`."""
    cwd = cwd or os.getcwd()
    merged: dict[str, dict[str, Any]] = {}
    sources: dict[str, str] = {}
    ignored: list[str] = []
    user_file = paths.folders().config_file
    for path in paths.config_files(cwd):
        if path != user_file and not trust.is_trusted(paths.project_root(cwd)):
            ignored.append(path)
            continue
        _merge(merged, sources, _read(path), path)
    _merge(merged, sources, _environment(), "")
    for key, value in (flags or {}).items():
        section, _, field = key.partition(".")
        _merge(merged, sources, {section: {field: value}}, "flag")
    try:
        return Loaded(msgspec.convert(merged, Settings, strict=False), sources, tuple(ignored))
    except msgspec.ValidationError as error:
        raise _explain(error, sources) from error


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
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


def _environment() -> dict[str, Any]:
    """`TACIT_SEARCH_LIMIT=5` as `{"search": {"limit": "5"}}`; lists are separated like PATH."""
    found: dict[str, Any] = {}
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
    return found


def _merge(
    into: dict[str, dict[str, Any]], sources: dict[str, str], layer: Mapping[str, Any], source: str
) -> None:
    for section, part in layer.items():
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
    near = difflib.get_close_matches(word, among, 1)
    known = ", ".join(prefix + name for name in among)
    return f"did you mean '{prefix}{near[0]}'?" if near else f"known here: {known}"


def _explain(error: msgspec.ValidationError, sources: Mapping[str, str]) -> BadConfig:
    text, _, where = str(error).partition(" - at `$.")
    key = where.rstrip("`").split("[")[0]
    return BadConfig(
        f"setting '{key}' from {sources.get(key, 'the configuration')}: {text}",
        "see all of them: tacit config",
    )


def _editor() -> str:
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or "nano"


def _field_docs(part: type) -> dict[str, str]:
    """The text that stands under each field in the source of `part`."""
    import ast
    import inspect

    docs: dict[str, str] = {}
    body = cast("ast.ClassDef", ast.parse(inspect.getsource(part)).body[0]).body
    for node, after in itertools.pairwise(body):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            docs[cast("ast.Name", node.target).id] = str(after.value.value)
    return docs
