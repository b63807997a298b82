"""Hermes Agent: SQLite at `$HERMES_HOME/state.db`, tables sessions and messages.

Rows that the user took back (inactive, not compacted) are left out. A compaction keeps the old
rows, marked, and writes those that stay once more behind a summary: the copies are left out.
A parent is named by helpers, by branches and by what goes on after a compaction; only a helper is
part of it. The program's own notes and attached files are told from what the user typed.

Connected by `hooks` in its `config.yaml`, and by two folders among those that it reads, since it
reads skills only in its own folder and in `skills.external_dirs`: the shared one, and the one in
which Tacit links what counts in the project that it is started in.
"""

import re
import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any

from tacit.base.errors import BadConfig
from tacit.base.paths import SHARED_SKILLS
from tacit.traces import settings_yaml, values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import Connector, HookedFile, SettingsFormat, SettingsPath
from tacit.traces.host import Hooks, SkillFolders, Source, ignore, stated_outcome
from tacit.traces.host_folders import UserPath
from tacit.traces.plugin import shown_folder
from tacit.traces.program import Program, Question, Said, Start, named_model
from tacit.traces.server_entry import ServerEntry
from tacit.traces.settings_json import Unfit
from tacit.traces.sqlite_host import MAX_VALUE, SqliteHost, columns_of, open_foreign
from tacit.traces.trace import REFUSED, Given

_SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]")
_TOKENS = (
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens",
)  # fmt: skip
# Notes of the program's own, in the user's place.
_NOTES = ("[System:", "[System note:", "[IMPORTANT:", "[USER INITIATED SKILLS RELOAD")
_INVOKED = re.compile(r'\A\[IMPORTANT: The user has invoked the "?([^"\s]{1,200})"? skill')
_INSTRUCTION = "The user has provided the following instruction alongside the skill invocation: "
_ATTACHED = re.compile(r"\n\n--- (?:Context Warnings|Attached Context) ---\n.*\Z", re.DOTALL)
_DENIED = "BLOCKED: User denied"
_FIRST = 3  # a compaction leaves this many rows at the beginning as they are


_HELPERS = "SELECT id, started_at FROM sessions WHERE parent_session_id = ? ORDER BY id"


class HermesProgram(Program):
    """It prints its answer and nothing else: what it took is in the session that it leaves."""

    word = "hermes"
    login = "hermes setup"
    paid = "the login or key that Hermes has for its provider"

    def work(self, question: Question) -> Start:
        words = ("chat", "-Q", "--yolo", *named_model("-m", question), "-q", question.text)
        config = "security:\n  tirith_enabled: false\n"  # it warns where that program is missing
        if question.server:
            config += (
                f"model:\n  provider: custom\n  base_url: {question.server}\n"
                "  api_key: ${OPENAI_API_KEY}\n"
            )
        # Without the marker it copies its own skills into a home that is new.
        return Start(
            words, "", files={".hermes/config.yaml": config, ".hermes/.no-bundled-skills": ""}
        )

    def said(self, output: str, question: Question) -> Said:
        lines = [line for line in output.splitlines() if not line.startswith("session_id:")]
        return Said("\n".join(lines).strip(), error="" if lines else "it said nothing")


class Hermes(SqliteHost):
    name = "hermes"
    title = "Hermes"
    asks = ("clarify",)
    precedence = 8
    home = UserPath(".hermes", "HERMES_HOME")
    programs = ("hermes",)
    program = HermesProgram()
    # The first after each turn. What `pre_llm_call` answers is told with that turn only.
    hooks = Hooks(
        ("on_session_end",), ("on_session_finalize",), opening="pre_llm_call", form="context each"
    )
    skills = SkillFolders((), ("skills",), shared="set", apart=True)
    secrets = (".env",)
    obeys = (".hermes", ".hermes.md", "HERMES.md", "agents.md", "claude.md")
    remark = "It sees a project's skills when it is started in the project's top folder."
    file = "state.db"
    listing = """
      SELECT s.id, coalesce((SELECT max(timestamp) FROM messages WHERE session_id = s.id),
        s.started_at) AS changed FROM sessions s ORDER BY changed
    """
    needs = {  # noqa: RUF012
        "sessions": ("id", "started_at", "cwd", "parent_session_id", "output_tokens"),
        "messages": (
            "id", "session_id", "role", "content", "tool_call_id", "tool_calls", "timestamp",
            "active",
        ),
    }  # fmt: skip
    version = """
      SELECT count(*), max(id), sum(active), (SELECT output_tokens FROM sessions
        WHERE id = :session) FROM messages WHERE session_id = :session
    """

    def connector(self) -> Connector:
        return HermesSettings(
            self,
            "config.yaml",
            todo="Start hermes once in a terminal and allow the three hooks when it asks; runs "
            "without a terminal need --accept-hooks.",
        )

    def server_entry(self) -> Connector:
        return ServerEntry(self, "config.yaml", "mcp_servers", form=HermesSettings.form)

    def helpers(self, source: Source) -> Iterator[Source]:
        return self._listed(source.path, _HELPERS, source.key)

    def given(self, source: Source) -> Given:
        with open_foreign(source.path, ignore) as connection:
            found = connection.execute("SELECT * FROM sessions WHERE id = ?", (source.key,))
            return Given(values.string(dict(found.fetchone() or {}).get("system_prompt")))

    def rows(self, connection: sqlite3.Connection, session: str, into: Assembler) -> Iterator[None]:
        found = connection.execute("SELECT * FROM sessions WHERE id = ?", (session,)).fetchone()
        if found is None:
            return
        self._session(dict(found), into)
        kept = "active = 1 OR compacted = 1"
        if "compacted" not in columns_of(connection, "messages"):
            kept = "active = 1"
        query = f"""
          SELECT role, tool_call_id, tool_calls, timestamp,
            CASE WHEN length(content) <= {MAX_VALUE} THEN content END AS content, length(content)
          FROM messages WHERE session_id = ? AND ({kept}) ORDER BY id
        """  # noqa: S608
        rows = connection.execute(query, (session,))
        for number, row in enumerate(_without_copies(rows)):
            into.begin(number)
            if row["content"] is None and row["length(content)"]:
                into.passed("too-long")
            self._message(row, into)
            yield

    def _session(self, row: dict[str, Any], into: Assembler) -> None:
        into.about(
            session=values.string(row.get("id")),
            model=values.string(row.get("model")),
            project=values.string(row.get("cwd")),
            branch=values.string(row.get("git_branch")),
            title=values.string(row.get("title")),
            parent=_delegated_by(row),
        )
        into.at(values.when(row.get("started_at")))
        known = row.get("cost_status") not in (None, "unknown")
        cost = row.get("actual_cost_usd") or (row.get("estimated_cost_usd") if known else None)
        into.used_in_all(values.usage(row, *_TOKENS, cost=cost))

    def _message(self, row: sqlite3.Row, into: Assembler) -> None:
        at, content = values.when(row["timestamp"]), values.string(row["content"])
        if content.startswith(_SUMMARY):
            into.compacted(content, at)
        elif row["role"] == "user":
            self._user(content, at, into)
        elif row["role"] == "assistant":
            into.said(content, at)
            for call in _calls(row):
                function = values.mapping(call.get("function"))
                name = values.string(function.get("name"))
                into.called(values.string(call.get("id")), name, function.get("arguments"), at)
        elif row["role"] == "tool":
            result, failed, error = stated_outcome(content)
            if (error or result).startswith(_DENIED):
                failed, error = True, REFUSED
            call_id = values.string(row["tool_call_id"])
            into.returned(call_id, result, failed=failed, error=error, at=at)
        elif row["role"] not in ("system", "session_meta"):
            into.passed("unknown-record")

    def _user(self, content: str, at: Any, into: Assembler) -> None:
        if invoked := _INVOKED.match(content):
            _, _, said = (
                content.rpartition(_INSTRUCTION) if _INSTRUCTION in content else ("", "", "")
            )
            said = said.partition("\n\n[Runtime note:")[0]
            into.prompt(f"/{invoked.group(1)} {said}".strip(), at)
            into.activated(invoked.group(1), at)
        elif content.startswith(_NOTES):
            into.told(content, "hook", at)
        else:
            attached = _ATTACHED.search(content)
            into.prompt(content[: attached.start()] if attached else content, at)
            into.told(attached.group() if attached else "", "file", at)


def _delegated_by(row: dict[str, Any]) -> str:
    """The session that handed work to this one, as the program marks it."""
    config = values.mapping(values.decoded_json(row.get("model_config")))
    by = values.string(config.get("_delegate_from"))
    if by == "__orphaned__":  # its parent was deleted
        return "unknown"
    return by


def _without_copies(rows: Iterable[sqlite3.Row]) -> Iterator[sqlite3.Row]:
    """`rows` without those that a compaction wrote again.

    It writes the first few rows, a summary, and the last rows in their order. The same words said
    again later by the user are no copy: they do not continue that order.
    """
    told: list[int] = []
    held: list[
        tuple[int, sqlite3.Row]
    ] = []  # like the session's first rows: copies, if a summary follows
    places: list[int] = []  # where among `told` the row before may have been copied from
    behind_summary = False
    for row in rows:
        key = hash(row["tool_call_id"] or row["tool_calls"] or (row["role"], row["content"]))
        if str(row["content"]).startswith(_SUMMARY):
            held, places, behind_summary = [], [], True
            yield row
            continue
        if behind_summary:
            places = [place for place, other in enumerate(told) if other == key]
            behind_summary = False
        else:
            places = [at + 1 for at in places if at + 1 < len(told) and told[at + 1] == key]
        if places:
            continue
        if len(told) >= _FIRST and len(held) < _FIRST and key == told[len(held)]:
            held.append((key, row))
            continue
        for _, before in held:
            yield before
        told += (*(other for other, _ in held), key)
        held = []
        yield row
    for _, before in held:
        yield before


def _calls(row: sqlite3.Row) -> list[dict[str, Any]]:
    decoded = values.items(values.decoded_json(row["tool_calls"]))
    return [call for call in decoded if isinstance(call, dict)]


class HermesSettings(HookedFile, frozen=True):
    """Its hooks, and the shared skills folder among those that it reads."""

    form = SettingsFormat("YAML", settings_yaml.parse, settings_yaml.add, settings_yaml.remove)

    def entry(self, command: str) -> dict[str, Any]:
        return {"command": command, "timeout": self.seconds}

    def besides(self, clean: str) -> dict[str, Any]:
        known = _skill_folders(self.form.parse(clean))
        missing = [folder for folder in _our_folders() if folder not in known]
        return {"skills": {"external_dirs": missing}} if missing else {}

    def unfit(self, error: Unfit, addition: dict[str, Any]) -> BadConfig:
        by_hand = settings_yaml.lines(addition).rstrip().replace("\n", "\n  ")
        return BadConfig(
            f"{self.file()} cannot be edited safely: {error}",
            f"nothing was changed; add these lines by hand:\n  {by_hand}",
        )

    def without_ours(self, text: str) -> str:
        text = super().without_ours(text)
        while path := self._our_folder(text):
            text = self.form.remove(text, self.widened(self.form.parse(text), path))
        return text

    def _our_folder(self, text: str) -> SettingsPath:
        """Where the first of our folders stands in `text`; empty where none does."""
        for i, folder in enumerate(_skill_folders(self.form.parse(text))):
            path = ("skills", "external_dirs", i)
            if folder in _our_folders() and settings_yaml.MARK in settings_yaml.source(text, path):
                return path
        return ()


def _our_folders() -> tuple[str, str]:
    """The user's shared skills, and, by the folder that it is started in, the project's."""
    return f"~/{SHARED_SKILLS}", shown_folder("${PWD}")


def _skill_folders(value: Any) -> list[Any]:
    skills = values.mapping(values.mapping(value).get("skills"))
    return values.items(skills.get("external_dirs"))


HOSTS = (Hermes(),)
