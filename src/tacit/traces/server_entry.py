"""How an agent is told of `tacit mcp`: an entry among the MCP servers of its settings.

Planned and taken back like the hooks; see `Connector`. Where a host keeps both in one file, each is
planned on what the other leaves (`connection.py`).
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tacit.base.errors import BadConfig, NotFound, Refused, TacitError
from tacit.traces import settings_toml, values
from tacit.traces.connector import (
    OWN_MARK,
    FileChange,
    Hook,
    SettingsFormat,
    read_settings,
    settings_folder,
)
from tacit.traces.host import Host
from tacit.traces.settings_json import (
    Malformed,
    Unfit,
    add_to_jsonc,
    apply_splices,
    parse_jsonc,
    remove_from_jsonc,
)

SERVER = "tacit"
JSON = SettingsFormat("JSON", parse_jsonc, add_to_jsonc, remove_from_jsonc)
TOML = SettingsFormat(
    "TOML", settings_toml.parse_toml, settings_toml.add_table, settings_toml.remove_table
)


def command_and_args(words: Sequence[str]) -> dict[str, Any]:
    """The entry as most agents have it."""
    return {"command": words[0], "args": list(words[1:])}


class ServerEntry(msgspec.Struct, frozen=True):
    """A connector for the MCP servers in an agent's settings; see `Connector`."""

    host: Host
    name: str
    """The file, from the agent's folder."""
    section: str = "mcpServers"
    entry: Callable[[Sequence[str]], dict[str, Any]] = command_and_args
    form: SettingsFormat = JSON
    todo: str = ""

    @property
    def key(self) -> str:
        return f"{self.host.name} mcp"

    def file(self) -> str:
        return os.path.normpath(os.path.join(settings_folder(self.host), self.name))

    def events(self) -> tuple[str, ...]:
        return ()

    def connecting(self, hook: Hook) -> FileChange | None:
        before = read_settings(self.file())
        wanted = self.entry(server_words())
        known = self._entry(before or "")
        if known == wanted:
            return None
        if known is not None and not _is_ours(known):
            raise Refused(
                f"{self.file()} has an MCP server '{SERVER}' that is not Tacit's",
                "rename it there and try again",
            )
        try:
            clean = self._without(before or "") if known is not None else before or ""
            splices = self.form.add(clean, {self.section: {SERVER: wanted}})
        except Unfit as error:
            raise self._unfit(error) from error
        after = apply_splices(clean, splices)
        pristine = known is None and OWN_MARK not in (before or "")  # hooks of ours may be there
        return FileChange(self.file(), before, after, splices, pristine=pristine)

    def disconnecting(self) -> FileChange | None:
        before = read_settings(self.file())
        known = self._entry(before or "")
        if before is None or known is None or not _is_ours(known):
            return None
        try:
            return FileChange(self.file(), before, self._without(before), pristine=False)
        except Unfit as error:
            raise self._unfit(error) from error

    def calls(self) -> Mapping[str, str]:
        try:
            known = self._entry(read_settings(self.file()) or "")
        except TacitError:
            return {}
        return {SERVER: " ".join(_words(known))} if known is not None and _is_ours(known) else {}

    def _entry(self, text: str) -> Any:
        try:
            said = self.form.parse(text)
        except Malformed as error:
            raise BadConfig(
                f"{self.file()} is not valid {self.form.name}, {error}",
                f"nothing was changed; mend it, then: tacit connect {self.host.name} --mcp",
            ) from error
        return values.mapping(values.mapping(said).get(self.section)).get(SERVER)

    def _without(self, text: str) -> str:
        section = values.mapping(self.form.parse(text).get(self.section))
        whole = len(section) == 1 and self.form.name != "TOML"
        path = (self.section,) if whole else (self.section, SERVER)
        return self.form.remove(text, path)

    def _unfit(self, error: Unfit) -> BadConfig:
        return BadConfig(
            f"{self.file()} cannot be edited safely: {error}",
            f"edit the MCP server '{SERVER}' there by hand: {' '.join(server_words())}",
        )


def server_words() -> tuple[str, ...]:
    """How the server of this installation is started."""
    if importlib.util.find_spec("mcp") is None:
        raise NotFound("MCP needs more to be installed", "install it: pip install 'tacit[mcp]'")
    for folder in (os.path.dirname(sys.executable), os.path.dirname(os.path.abspath(sys.argv[0]))):
        path = os.path.join(folder, "tacit")
        if os.access(path, os.X_OK):
            return path, "mcp"
    return sys.executable, "-P", "-m", "tacit", "mcp"


def _words(entry: Any) -> list[str]:
    command, args = values.mapping(entry).get("command"), values.mapping(entry).get("args")
    first = command if isinstance(command, list) else [command]
    return [word for word in (*first, *values.items(args)) if isinstance(word, str)]


def _is_ours(entry: Any) -> bool:
    words = _words(entry)
    return words[-1:] == ["mcp"] and any(os.path.basename(word) == "tacit" for word in words[:-1])
