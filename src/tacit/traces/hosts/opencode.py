"""opencode: SQLite at `~/.local/share/opencode/opencode.db`; messages and parts hold JSON.

Connected by a plugin of ours in `~/.config/opencode/plugins/`.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import Connector, OwnFile
from tacit.traces.host import Hooks, SkillFolders, Source
from tacit.traces.host_folders import UserPath
from tacit.traces.plugin import shim, shim_calls
from tacit.traces.program import (
    GO,
    Program,
    Question,
    Said,
    Start,
    each_of,
    last,
    money,
    named_model,
    objects,
    reported,
    total,
)
from tacit.traces.server_entry import ServerEntry
from tacit.traces.sqlite_host import MAX_VALUE, SqliteHost
from tacit.traces.tool_calls import kind_of
from tacit.traces.trace import REFUSED

_QUIET = (
    "step-start", "step-finish", "snapshot", "patch", "reasoning", "file", "agent", "retry",
)  # fmt: skip
# Notes of the program's own.
_NOTES = ("<system-reminder>", "The following tool was executed by the user", "Summarize the task")
_REJECTED = "The user rejected permission to use this specific tool call"
_FEEDBACK = " with the following feedback: "
_ROWS = f"""
  SELECT m.id AS message, m.time_created AS created,
    CASE WHEN length(m.data) <= {MAX_VALUE} THEN m.data END AS said,
    p.id AS part, CASE WHEN length(p.data) <= {MAX_VALUE} THEN p.data END AS data
  FROM message m LEFT JOIN part p ON p.message_id = m.id
  WHERE m.session_id = :session ORDER BY m.time_created, m.id, p.id
"""  # noqa: S608


_HELPERS = "SELECT id, time_updated / 1000.0 FROM session WHERE parent_id = ? ORDER BY id"


def _server(words: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", "command": list(words), "enabled": True}


class OpencodeProgram(Program):
    """The user's settings are left out, with the MCP servers and instructions; the login is not."""

    word = "opencode"
    login = "opencode auth login"
    paid = "the login or key that opencode has for its provider"
    leaves = True

    def start(self, question: Question) -> Start:
        answering = {
            "mode": "primary",
            "prompt": question.instructions or GO,
            "tools": {"*": False},
            "permission": {"*": "deny"},
        }
        settings = {"agent": {_AGENT: answering}, "share": "disabled", "autoupdate": False}
        words = (
            *("run", "--format", "json", "--pure", "--agent", _AGENT, "--title", _AGENT),
            *named_model("-m", question),
        )
        variables = {
            "OPENCODE_CONFIG_CONTENT": msgspec.json.encode(settings).decode(),
            "XDG_CONFIG_HOME": os.path.join(question.folder, "config"),
            "OPENCODE_DISABLE_CLAUDE_CODE": "1",
            "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        }
        return Start(words, question.text, variables)

    def work(self, question: Question) -> Start:
        settings: dict[str, Any] = {"share": "disabled", "autoupdate": False}
        model = question.model
        if question.server and model:
            options = {"baseURL": question.server, "apiKey": "{env:OPENAI_API_KEY}"}
            named = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {model: {}}}
            settings["provider"] = {_SERVER: named}
            model = f"{_SERVER}/{model}"
        words = ("run", "--format", "json", "--auto", *(("-m", model) if model else ()))
        variables = {"OPENCODE_CONFIG_CONTENT": msgspec.json.encode(settings).decode()}
        return Start(words, question.text, variables)

    def said(self, output: str, question: Question) -> Said:
        events = objects(output)
        failed = last(events, "error")
        texts = [values.string(part.get("text")) for part in each_of(events, "text", "part")]
        steps = list(each_of(events, "step_finish", "part"))
        if not failed and not steps:
            raise ValueError("its answer has no end")
        tokens = values.mapping(steps[-1].get("tokens")) if steps else {}
        cache = values.mapping(tokens.get("cache"))
        error = values.mapping(failed.get("error"))
        why = values.mapping(error.get("data")).get("message") or error.get("message")
        return Said(
            "" if failed else "".join(texts),
            error=(values.string(why) or values.string(error.get("name")) or "it failed")
            if failed
            else "",
            input_tokens=total(tokens.get("input"), cache.get("read"), cache.get("write")),
            output_tokens=total(tokens.get("output"), tokens.get("reasoning")),
            cached_tokens=reported(cache.get("read")) or 0,
            cost=(money(steps[-1].get("cost")) or None) if steps else None,  # 0: not known
        )


_AGENT = "tacit"
_SERVER = "server"


class Opencode(SqliteHost):
    name = "opencode"
    title = "opencode"
    asks = ("question",)
    precedence = 6
    home = UserPath(".local/share/opencode", "XDG_DATA_HOME/opencode")
    settings_home = UserPath(".config/opencode", "OPENCODE_CONFIG_DIR", "XDG_CONFIG_HOME/opencode")
    programs = ("opencode",)
    program = OpencodeProgram()
    hooks = Hooks(("session.idle",), (), opening="session.created", form="pair each")
    # OPENCODE_CONFIG_DIR adds a folder of settings and does not move the user's skills.
    skills = SkillFolders(
        (".opencode/skills", ".opencode/skill"),
        ("skills", "skill"),
        UserPath(".config/opencode", "XDG_CONFIG_HOME/opencode"),
    )
    secrets = ("auth.json",)
    obeys = (".opencode", "opencode.json", "opencode.jsonc")
    file = "opencode.db"
    listing = "SELECT id, time_updated / 1000.0 FROM session ORDER BY time_updated"
    needs = {  # noqa: RUF012
        "session": ("id", "parent_id", "directory", "time_updated"),
        "message": ("id", "session_id", "time_created", "data"),
        "part": ("id", "message_id", "session_id", "time_updated", "data"),
    }
    version = """
      SELECT time_updated, (SELECT count(*) FROM message WHERE session_id = :session),
        (SELECT max(time_updated) FROM part WHERE session_id = :session)
      FROM session WHERE id = :session
    """

    def connector(self) -> Connector:
        return OwnFile(
            self,
            "plugins/tacit.js",
            lambda calls: shim("opencode/tacit.js", calls),
            shim_calls,
        )

    def server_entry(self) -> Connector:
        return ServerEntry(self, "opencode.json", "mcp", entry=_server)

    def helpers(self, source: Source) -> Iterator[Source]:
        return self._listed(source.path, _HELPERS, source.key)

    def rows(self, connection: sqlite3.Connection, session: str, into: Assembler) -> Iterator[None]:
        found = connection.execute("SELECT * FROM session WHERE id = ?", (session,)).fetchone()
        if found is None:
            return
        about = dict(found)
        into.about(
            session=session,
            version=values.string(about.get("version")),
            project=values.string(about.get("directory")),
            title=values.string(about.get("title")),
            parent=values.string(about.get("parent_id")),
        )
        current, message = "", {}
        for number, row in enumerate(connection.execute(_ROWS, {"session": session})):
            into.begin(number)
            if row["message"] != current:
                current = row["message"]
                message = self._message(row, into)
            if row["part"] is not None:
                self._part(row, message, into)
            yield

    def _message(self, row: sqlite3.Row, into: Assembler) -> dict[str, Any]:
        message = values.mapping(values.decoded_json(row["said"]))
        if not message:
            into.passed("too-long" if row["said"] is None else "bad-record")
        if message.get("role") == "assistant":
            tokens = values.mapping(message.get("tokens"))
            into.about(model=values.string(message.get("modelID")))
            tokens |= values.mapping(tokens.get("cache"))
            names = ("input", "output", "read", "write", "reasoning")
            into.used(values.usage(tokens, *names, cost=message.get("cost")), row["message"])
        return message

    def _part(self, row: sqlite3.Row, message: dict[str, Any], into: Assembler) -> None:
        part = values.mapping(values.decoded_json(row["data"]))
        kind = part.get("type")
        at = values.when(row["created"])
        if kind == "text":
            if part.get("ignored"):
                return
            if part.get("synthetic"):
                self._added(values.string(part.get("text")), message, at, into)
                return
            self._text(values.string(part.get("text")), message, part, at, into)
        elif kind == "tool":
            self._tool(part, at, into)
        elif kind == "compaction":
            into.compacted("", at)
        elif kind == "subtask":
            who = values.string(part.get("agent"))
            into.delegated(who, values.string(part.get("prompt")), at=at)
        elif not part:
            into.passed("too-long" if row["data"] is None else "bad-record")
        elif kind not in _QUIET:
            into.passed("unknown-record")

    def _added(self, text: str, message: dict[str, Any], at: Any, into: Assembler) -> None:
        """A text that the program put beside what the user typed: the files that it names."""
        if message.get("role") == "user" and not text.lstrip().startswith(_NOTES):
            into.told(text, "file", at)

    def _text(
        self, text: str, message: dict[str, Any], part: dict[str, Any], at: Any, into: Assembler
    ) -> None:
        if message.get("role") == "user":
            # `opencode run` puts a prompt with spaces in quotes.
            if len(text) > 2 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
                text = text[1:-1]
            into.prompt(text, at)
        elif message.get("role") == "assistant":
            if message.get("summary") is True:
                into.compacted(text, at)
            else:
                into.said(text, values.when(values.mapping(part.get("time")).get("start")) or at)

    def _tool(self, part: dict[str, Any], at: Any, into: Assembler) -> None:
        call_id, state = values.string(part.get("callID")), values.mapping(part.get("state"))
        time = values.mapping(state.get("time"))
        begun = values.when(time.get("start")) or at
        into.called(call_id, values.string(part.get("tool")), state.get("input"), begun)
        status = state.get("status")
        if status not in ("completed", "error"):
            return
        code = values.mapping(state.get("metadata")).get("exit")
        error = values.text(state.get("error")) if status == "error" else ""
        reply = ""
        # A tool of somebody else's may say so too; ours are known by their names.
        if error.startswith(_REJECTED) and kind_of(values.string(part.get("tool"))) != "other":
            reply, error = error.partition(_FEEDBACK)[2], REFUSED
        into.returned(
            call_id,
            values.text(state.get("output")) or values.text(state.get("error")),
            failed=status == "error" or (isinstance(code, int) and code != 0),
            error=error,
            reply=reply,
            at=values.when(time.get("end")),
        )


HOSTS = (Opencode(),)
