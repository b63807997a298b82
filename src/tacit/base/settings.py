"""Settings: defaults, then the user's file, the project's file, TACIT_ variables, then flags.

Merged once, validated, frozen. This is the one place that reads configuration from the
environment. Each value remembers where it came from; `tacit config` shows that. A project's file
counts only when the user trusts the project: it arrives with a clone, so it is somebody else's.
"""

import difflib
import itertools
import os
import tomllib
import typing
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from tacit.base import paths, trust
from tacit.base.errors import BadConfig
from tacit.base.sections import Settings


class Value(msgspec.Struct, frozen=True):
    """One setting as it stands: its key, its value, where that came from, what it means."""

    key: str
    value: Any
    source: str
    about: str


class Stray(msgspec.Struct, frozen=True):
    """A TACIT_ variable that sets nothing, and the one that may have been meant."""

    name: str
    near: str = ""


class Loaded(msgspec.Struct, frozen=True):
    """The settings, the source of each value that is not a default, and what was passed over."""

    settings: Settings
    sources: dict[str, str]
    ignored: tuple[str, ...] = ()
    """Files of projects that the user does not trust."""
    strays: tuple[Stray, ...] = ()

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


def load(
    cwd: str | None = None, flags: Mapping[str, Any] | None = None, given: str = "flag"
) -> Loaded:
    """Read every source, in order, and validate the result. Raises `BadConfig`.

    `given` says where the `flags` came from.
    """
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
    found, strays = _environment()
    _merge(merged, sources, found, "")
    for key, value in (flags or {}).items():
        section, _, field = key.partition(".")
        _merge(merged, sources, {section: {field: value}}, given)
    try:
        made = msgspec.convert(merged, Settings, strict=False)
        return Loaded(made, sources, tuple(ignored), strays)
    except msgspec.ValidationError as error:
        raise _explain(error, sources, merged) from error


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


def _environment() -> tuple[dict[str, Any], tuple[Stray, ...]]:
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
            strays.append(Stray(name, _nearest_variable(name)))
    return found, tuple(strays)


def _nearest_variable(name: str) -> str:
    known = [
        f"TACIT_{section}_{field}".upper()
        for section in Settings.__struct_fields__
        for field in _fields(section)
    ]
    near = difflib.get_close_matches(name, [*known, *paths.RESERVED], 1, 0.75)
    return near[0] if near else ""


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
