"""Settings: the value of each that holds here, and where it came from.

What can be set is declared in `setting_sections.py`. Values come from the defaults, the
user's file, the project's file, TACIT_ variables and flags, in that order; they are merged once,
validated and frozen, and each remembers where it came from. This is the one place that reads
configuration from the environment. A project's file counts only where the user trusts the project:
it arrives with a clone, so somebody else wrote it. Even then it sets only what `PROJECT_MAY_SET`
lists; MCP servers it can propose, and the user allows each. Changing the user's file is
`config_file.py`'s.
"""

import os
import re
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, cast

import msgspec

from tacit.base import paths, trust
from tacit.base.errors import BadConfig
from tacit.base.setting_sections import PROJECT_MAY_SET, McpServer, Settings, field_docs

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
        docs = field_docs()
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
    """Of the bytes of the file, and of the files of the project that its servers are started with:
    what is allowed holds for these."""


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
    for file in sorted({file for one in servers.values() for file in files_of(one, path)}):
        digest = hashlib.sha256(f"{digest} {trust.file_digest(file)}".encode()).hexdigest()
    allowed = trust.allowed_servers(path, digest) if servers else frozenset()
    return ProjectFile(
        values,
        tuple(key for key in keys if key not in PROJECT_MAY_SET and key != _PROPOSED),
        {name: {**listed[name], "file": path} for name in servers if name in allowed},
        {name: server for name, server in servers.items() if name not in allowed},
        digest,
    )


def may_start(name: str, server: McpServer) -> bool:
    """Whether a server is the user's, or a project's that is as the user allowed it, now: what it
    is started with may have been changed since the settings were read."""
    if not server.file:
        return True
    now = read_project_file(server.file).servers.get(name)
    return now is not None and msgspec.convert(now, McpServer) == server


# What a program that is named without a file is told by, in the project.
_TOLD_BY = {
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun", "bunx"), ("package.json", ".npmrc")),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "pipenv"), ("pyproject.toml", "Pipfile")),
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    "just": ("justfile", ".justfile"), "task": ("Taskfile.yml",), "deno": ("deno.json",),
    "mise": ("mise.toml", ".mise.toml"), "cargo": ("Cargo.toml",), "go": ("go.mod",),
    "docker": ("compose.yaml", "compose.yml", "docker-compose.yml", "Dockerfile"),
}  # fmt: skip


_WORDS = re.compile(r"[\s=:;&|<>()'\"]+")


def project_of(path: str) -> str:
    """The project whose file of settings lies at `path`."""
    return os.path.dirname(os.path.dirname(path))


def files_of(server: McpServer, path: str) -> list[str]:
    """The files of the project with the settings file `path` that a server is started with."""
    project = os.path.realpath(project_of(path))
    given = [server.command, *server.args, *server.env.values()]
    words = [part for word in given for part in (word, *_WORDS.split(word))]  # sh -c 'node a.js'
    # Found by a PATH of its own, or by that of the user.
    folders = [*words, *os.environ.get("PATH", os.defpath).split(os.pathsep)]
    words += [f"{folder}/{server.command}" for folder in folders]
    words += [file for word in words for file in _TOLD_BY.get(os.path.basename(word), ())]
    modules = [word.replace(".", os.sep) for word in words]  # python -m tools.server
    words += [f"{m}{end}" for m in modules for end in (".py", "/__init__.py", "/__main__.py")]
    named = (os.path.join(project, word) for word in dict.fromkeys(words))
    real = (os.path.realpath(file) for file in named if "\0" not in file)
    inside = (file for file in real if paths.is_inside(file, project) and os.path.isfile(file))
    return list(dict.fromkeys(inside))


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
    hint = _hints(section)[field]
    if hint is bool:
        return ("true", "false")
    return tuple(value for value in typing.get_args(hint) if isinstance(value, str) and value)


@cache
def _hints(section: str) -> dict[str, Any]:
    return typing.get_type_hints(type(getattr(Settings(), section)))


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
