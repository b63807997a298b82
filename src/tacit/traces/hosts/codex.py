"""Codex: `$CODEX_HOME/sessions/YYYY/MM/DD/rollout-*.jsonl`, or `.jsonl.zst`.

Where it is told to (`local_thread_store_compression`), it compresses sessions that are a week old,
and unpacks one that goes on; while there are both, the plain one counts.
Prompts are taken from events, not from the messages with role user: those also carry what the
program itself tells the model. Whether a command failed stands in an event before its output, or
in the words of the output. Newer versions let the model write a script that calls tools (`exec`);
what is told are the commands and patches in it. A command that goes on is asked after by later
calls, and the end that these see is told of the command.

Connected by a `hooks.json` of its own. A hook that the user did not trust is skipped in silence.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import structs

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import Connector, JsonHooks
from tacit.traces.host import (
    ZSTD,
    Hooks,
    JsonlHost,
    Signs,
    SkillFolders,
    Source,
    first_object,
)
from tacit.traces.host_folders import UserPath
from tacit.traces.program import (
    GO,
    INSTRUCTIONS,
    Program,
    Question,
    Said,
    Start,
    each_of,
    last,
    named_model,
    objects,
    reported,
)
from tacit.traces.server_entry import TOML, ServerEntry
from tacit.traces.tool_calls import tools_of
from tacit.traces.trace import REFUSED, Given

_QUIET = (
    "world_state", "token_usage_record", "ghost_snapshot", "inter_agent_message",
    "inter_agent_communication_metadata", "dynamic_tools_updated", "security_risk_score",
)  # fmt: skip
_PLAN = "A previous agent produced the plan below"
_REQUEST = "## My request for Codex:"
"""Behind it stand the user's words, before it what their editor put there."""
_NO_SUCH_TOOL = "unsupported call: "
_REFUSED = ("exec command rejected by user", "patch rejected by user")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
_BARE = ("message", "reasoning", *_CALLS, "function_call_output", "custom_tool_call_output")
_AT_WORK = re.compile(r"(?:<cwd>|^Current working directory: )([^<\n]+)", re.MULTILINE)
_TOKENS = (
    "input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens",
    "reasoning_output_tokens",
)  # fmt: skip
_ENVELOPE = re.compile(r"\A(?P<head>(?:[A-Z][^\n]{0,200}\n){1,12}?)Output:\n", re.DOTALL)


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    timestamp: Any = None
    payload: Any = None
    ordinal: Any = None
    # What stood there by itself before there was a payload.
    record_type: Any = None
    id: Any = None
    cwd: Any = None
    git: Any = None
    role: Any = None
    content: Any = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None
    input: Any = None
    action: Any = None
    output: Any = None

    def bare(self) -> dict[str, Any]:
        """What of a payload stands in the line itself."""
        return {name: value for name, value in structs.asdict(self).items() if value is not None}


class CodexProgram(Program):
    """The user's settings are left out, because the MCP servers in them cannot be otherwise.

    So are a model and a provider that stand there. A tool for asking the user and, by model, one
    for patches stay, which cannot act here; so does the AGENTS.md of the user's own folder.
    """

    word = "codex"
    login = "codex login"
    status = ("login", "status")
    paid = "the limits of the ChatGPT plan that it is logged in with, or its key"

    def start(self, question: Question) -> Start:
        off = (word for feature in _FEATURES for word in ("--disable", feature))
        file = os.path.join(question.folder, INSTRUCTIONS)
        settings = (
            'web_search="disabled"', "project_doc_max_bytes=0", "skills.include_instructions=false",
            "include_environment_context=false", "include_permissions_instructions=false",
            f"model_instructions_file={msgspec.json.encode(file).decode()}",
        )  # fmt: skip
        words = (
            *("exec", "--json", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config"),
            *("--ignore-rules", "-s", "read-only", *off),
            *(word for setting in settings for word in ("-c", setting)),
            *named_model("-m", question),
            "-",
        )
        return Start(words, question.text, files={INSTRUCTIONS: question.instructions or GO})

    def work(self, question: Question) -> Start:
        own: tuple[str, ...] = ()
        if question.server:
            address = msgspec.json.encode(question.server).decode()
            own = (
                *("-c", 'model_provider="server"', "-c", 'model_providers.server.name="server"'),
                *("-c", f"model_providers.server.base_url={address}"),
                *("-c", 'model_providers.server.env_key="OPENAI_API_KEY"'),
            )
        # Its own sandbox would be one in another; ours holds.
        words = (
            *("exec", "--json", "--skip-git-repo-check", *own),
            *("--dangerously-bypass-approvals-and-sandbox", *named_model("-m", question), "-"),
        )
        return Start(words, question.text)

    def said(self, output: str, question: Question) -> Said:
        events = objects(output)
        texts = [
            values.string(item.get("text"))
            for item in each_of(events, "item.completed", "item")
            if item.get("type") == "agent_message"
        ]
        ended, failed = last(events, "turn.completed"), last(events, "turn.failed")
        if not ended and not failed:
            failed = last(events, "error")
        if not ended and not failed:
            raise ValueError("its turn has no end")
        usage = values.mapping(ended.get("usage"))
        why = values.mapping(failed.get("error")).get("message") or failed.get("message")
        return Said(
            texts[-1] if texts and ended else "",
            error="" if ended else values.string(why) or "its turn failed",
            input_tokens=reported(usage.get("input_tokens")),
            output_tokens=reported(usage.get("output_tokens")),
            cached_tokens=reported(usage.get("cached_input_tokens")) or 0,
        )


_FEATURES = (
    "hooks", "shell_tool", "unified_exec", "view_image", "goals", "tool_suggest", "apps", "plugins",
    "multi_agent", "image_generation", "skill_search",
)  # fmt: skip


def _is_packed(source: Source) -> bool:
    return source.path.endswith(ZSTD)


class Codex(JsonlHost):
    name = "codex"
    title = "Codex"
    asks = ("request_user_input",)
    precedence = 2
    home = UserPath(".codex", "CODEX_HOME")
    programs = ("codex",)
    program = CodexProgram()
    hooks = Hooks(("Stop",), ("SessionEnd",), opening="SessionStart", form="hook")
    signs = Signs(
        variable="CODEX_MANAGED_BY_NPM",
        transcript=r"/sessions/\d{4}/\d\d/\d\d/rollout-[^/]+\.jsonl(\.zst)?",
    )
    skills = SkillFolders((".codex/skills",), ("skills",))
    secrets = ("auth.json",)
    obeys = (".codex",)
    folder = "sessions"
    files = r"(?:.+/)?rollout-[^/]*\.jsonl(?:\.zst)?"
    form = _Line

    def connector(self) -> Connector:
        return JsonHooks(
            self,
            "hooks.json",
            todo="Start codex once, type /hooks and trust the three hooks: until then Codex skips"
            " them.",
            seconds=3,  # it cuts SessionEnd down to this, and warns at every start of more
        )

    def server_entry(self) -> Connector:
        return ServerEntry(self, "config.toml", "mcp_servers", form=TOML)

    def _matching(self, root: str) -> Iterator[Source]:
        found = list(super()._matching(root))
        plain = {source.path for source in found if not _is_packed(source)}
        return (s for s in found if not _is_packed(s) or s.path.removesuffix(ZSTD) not in plain)

    def recognises(self, line: dict[str, Any]) -> bool:
        if "type" not in line and "record_type" not in line:
            return {"id", "timestamp", "instructions"} <= line.keys()  # as in the middle of 2025
        return line.get("type") == "session_meta" and isinstance(line.get("payload"), dict)

    def helpers(self, source: Source) -> Iterator[Source]:
        """Those begun on the same day or later: folders are named for days."""
        session = self.session_of(source.path)[-36:]
        day = os.path.dirname(source.path)
        for other in self._matching(os.path.dirname(os.path.dirname(os.path.dirname(day)))):
            if os.path.dirname(other.path) >= day and other.path != source.path:
                first = values.mapping((first_object(other.path) or {}).get("payload"))
                if _parent(first) == session:
                    yield other

    def given(self, source: Source) -> Given:
        meta = values.mapping((first_object(source.path) or {}).get("payload"))
        told = values.mapping(meta.get("base_instructions")).get("text")
        system = values.string(told) or values.string(meta.get("instructions"))
        return Given(system, tuple(tools_of(meta.get("dynamic_tools"))))

    def tell(self, line: _Line, into: Assembler) -> None:
        payload = values.mapping(line.payload)
        at = values.when(line.timestamp)
        if isinstance(line.ordinal, int) and line.ordinal < into.state.get("own_from", 0):
            into.passed("copied")  # what a helper was given of the session that started it
        elif line.payload is None and (line.id if line.type is None else line.type in _BARE):
            self._bare(line.bare(), at, into)
        elif line.type == "response_item":
            self._item(payload, at, into)
        elif line.type == "event_msg":
            self._event(payload, at, into)
        elif line.type == "session_meta":
            self._meta(payload, into)
        elif line.type == "turn_context":
            into.about(
                model=values.string(payload.get("model")), project=values.string(payload.get("cwd"))
            )
        elif line.type == "inter_agent_communication":
            into.told(values.text(payload.get("content")), "teammate", at)
        elif line.type == "compacted":
            into.compacted(values.text(payload.get("message")), at)
        elif line.type not in _QUIET and line.record_type is None:
            into.passed("unknown-record")

    def _bare(self, line: dict[str, Any], at: Any, into: Assembler) -> None:
        """A line of the middle of 2025: the first is the head, what was typed is a message."""
        if "type" not in line:
            self._meta(line, into)
        elif line.get("role") != "user":
            self._item(line, at, into)
        elif (text := values.text(line.get("content"))).lstrip().startswith("<"):
            folder = _AT_WORK.search(text)  # what the program itself tells the model
            into.about(project=folder[1].strip() if folder else "")
        else:
            self._prompt(text, at, into)

    def _meta(self, payload: dict[str, Any], into: Assembler) -> None:
        session = values.string(payload.get("id"))
        if into.state.setdefault("session", session) != session:
            return  # another's, copied with its history
        git = values.mapping(payload.get("git"))
        into.about(
            session=session,
            version=values.string(payload.get("cli_version")),
            project=values.string(payload.get("cwd")),
            repository=values.repository(git.get("repository_url")),
            branch=values.string(git.get("branch")),
            parent=_parent(payload),
            copied_from=values.string(payload.get("forked_from_id")),
        )
        if own := values.count(payload.get("subagent_history_start_ordinal")):
            into.state["own_from"] = own

    def _event(self, payload: dict[str, Any], at: Any, into: Assembler) -> None:
        kind = payload.get("type")
        if kind == "token_count":
            info = values.mapping(payload.get("info"))
            total = values.mapping(info.get("total_token_usage"))
            if total:
                into.used_in_all(values.usage(total, *_TOKENS, cached_in_input=True))
                last = values.mapping(info.get("last_token_usage"))  # told again with the limits
                used = values.usage(last, *_TOKENS, cached_in_input=True)
                into.used(used, str(values.count(total.get("total_tokens"))))
        elif kind == "user_message":
            self._prompt(values.text(payload.get("message")), at, into)
        elif kind == "item_completed":
            item = values.mapping(payload.get("item"))
            if item.get("type") == "UserMessage":
                self._prompt(values.text(item.get("content")), at, into)
            elif "status" in item:
                self._outcome(item, at, into)

    def _prompt(self, text: str, at: Any, into: Assembler) -> None:
        # Some versions write both kinds of event for one prompt.
        asked = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
        if into.state.get("asked") != asked:
            if text.startswith(_PLAN):
                into.told(text, "plan", at)
            else:
                beside, asks, own = text.rpartition(_REQUEST)
                into.prompt(own, at)
                into.told(beside + asks, "file", at)
            into.state["asked"] = asked  # not the text itself: bookmarks are stored as they are

    def _outcome(self, item: dict[str, Any], at: Any, into: Assembler) -> None:
        code = item.get("exit_code")
        failed = item.get("status") in ("failed", "declined") or (
            isinstance(code, int) and code != 0
        )
        result = values.text(item.get("aggregated_output"))
        error = values.text(item.get("error")) if failed else ""
        if item.get("status") == "declined":
            error = REFUSED
        if result or failed:
            into.returned(
                values.string(item.get("id")),
                result,
                failed=failed,
                error=error,
                at=at,
            )

    def _item(self, payload: dict[str, Any], at: Any, into: Assembler) -> None:
        kind = payload.get("type")
        call = values.string(payload.get("call_id")) or values.string(payload.get("id"))
        if kind == "message":
            if payload.get("role") == "assistant":
                into.state.pop("asked", None)
                into.said(values.text(payload.get("content")), at, values.string(payload.get("id")))
        elif kind in _CALLS:
            into.state.pop("asked", None)
            name = values.string(payload.get("name")) or str(kind)
            given = payload.get("arguments", payload.get("input", payload.get("action")))
            if name == "exec" and isinstance(given, str):
                name, given = _scripted(given)
            elif patch := _patch_in_shell(given):
                name, given = "apply_patch", {"input": patch}
            into.called(call, name, given, at)
            asks = values.arguments(given)
            if first := into.state.get("running", {}).get(
                str(asks.get("session_id") or f"cell {asks.get('cell_id')}")
            ):
                into.state.setdefault("asks", {})[call] = first
        elif kind in ("function_call_output", "custom_tool_call_output"):
            result, failed = _output(payload.get("output"))
            failed = failed or result.startswith(_NO_SUCH_TOOL)
            refused = result.strip().startswith(_REFUSED)
            error = REFUSED if refused else ""
            into.returned(call, result, failed=failed or refused, error=error, at=at)
            self._goes_on(call, result, failed, at, into)
        elif kind == "web_search_call":
            into.called(call, "web_search", payload.get("action"), at)
            into.returned(call, at=at)
        elif kind not in ("reasoning", "ghost_snapshot", "compaction", "tool_search_output"):
            into.passed("unknown-record")

    def _goes_on(self, call: str, result: str, failed: bool, at: Any, into: Assembler) -> None:
        """Keep in mind which command goes on, and tell of it what a later call saw of its end."""
        running, asks = into.state.setdefault("running", {}), into.state.setdefault("asks", {})
        first = asks.pop(call, call)
        if found := _RUNNING.match(result):
            running[found[1] or f"cell {found[2]}"] = first
            while len(running) > _MOST_RUNNING:
                running.pop(next(iter(running)))
        elif first != call and into.tool_of(first):
            into.returned(first, result, failed=failed, at=at)


_MOST_RUNNING = 20
_RUNNING = re.compile(r"Process running with session ID (\d+)|Script running with cell ID (\d+)")
_TEXT = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`"
_TOOL = re.compile(r"\btools\.(\w+)\(")
_COMMAND = re.compile(rf"""["']?\bcmd["']?\s*:\s*({_TEXT})""")
_FOLDER = re.compile(rf"""["']?\bworkdir["']?\s*:\s*(?:({_TEXT})|(\w+))""")
_ASKED = re.compile(r"""["']?\bsession_id["']?\s*:\s*(\d+)""")
_NAMED = re.compile(rf"\b(?:const|let|var)\s+(\w+)\s*=\s*({_TEXT})")
_PATCH = re.compile(r"\*\*\* Begin Patch.*\*\*\* End Patch", re.DOTALL)


def _scripted(script: str) -> tuple[str, dict[str, Any]]:
    """The tool that a script calls, and with what: its commands as one command line, or a patch; of
    a script that does something else, itself."""
    named = {name: _decoded(text) for name, text in _NAMED.findall(script)}
    tools = set(_TOOL.findall(script))
    commands = [_decoded(text, named) for text in _COMMAND.findall(script)]
    commands = commands or [named["cmd"]] if "cmd" in named else commands
    if "exec_command" in tools and commands:
        joined = "\n" if any("\n" in command for command in commands) else " && "
        folder = {"workdir": _decoded(f[1]) if f[1] else named[f[2]]} if (
            (f := _FOLDER.search(script)) and (f[1] or f[2] in named)
        ) else {}  # fmt: skip
        return "exec_command", {"cmd": joined.join(commands), **folder}
    if "apply_patch" in tools:
        texts = [*named.values(), *map(_decoded, re.findall(_TEXT, script))]
        if patch := next((text for text in texts if _PATCH.search(text)), ""):
            return "apply_patch", {"input": patch}
    if "write_stdin" in tools and (asked := _ASKED.search(script)):
        return "write_stdin", {"session_id": int(asked[1])}
    return "exec", {"input": script}


_APPLIES = re.compile(
    r"(?:(?:ba|z|da)?sh -l?c )?\s*(?:cd \S+ && )?apply_patch\s.*?(?=\*\*\* Begin Patch)", re.DOTALL
)


def _patch_in_shell(given: Any) -> str:
    """The patch that a command applies: Codex takes that out of the shell's hands."""
    command = values.arguments(given).get("command")
    text = " ".join(map(str, command)) if isinstance(command, list) else str(command or "")
    found = _APPLIES.match(text)
    return text[found.end() :] if found else ""


def _decoded(text: str, named: dict[str, str] | None = None) -> str:
    """A string of a script as it is meant, with the values of `named` put in."""
    inside = text[1:-1].replace("\\`", "`").replace("\\'", "'")
    if text[0] != '"':
        inside = re.sub(r'(?<!\\)"', '\\\\"', inside).replace("\n", "\\n").replace("\t", "\\t")
    found = values.decoded_json(f'"{inside}"')
    plain = found if isinstance(found, str) else text[1:-1]
    return re.sub(r"\$\{(\w+)\}", lambda m: (named or {}).get(m[1], m[0]), plain)


def _parent(meta: dict[str, Any]) -> str:
    """The session that handed work to one with this head. A branch of a session has none.

    A helper may be another agent, a review or a judge of approvals; older heads do not say whose.
    """
    spawned = values.mapping(meta.get("source")).get("subagent")
    if not spawned:
        return ""
    given = values.mapping(values.mapping(spawned).get("thread_spawn")).get("parent_thread_id")
    return values.string(given) or values.string(meta.get("parent_thread_id")) or "unknown"


def _output(output: Any) -> tuple[str, bool]:
    """The result and whether it failed, from the forms that versions have given it."""
    if isinstance(output, dict):
        return values.text(output.get("content")), output.get("success") is False
    result = values.text(output)
    code, head = None, ""
    if envelope := _ENVELOPE.match(result):
        code, result = values.exit_code(envelope["head"]), result[envelope.end() :]
        result = result.removeprefix("\n") if isinstance(output, list) else result  # its own block
        head = "".join(_UNKNOWN.findall(envelope["head"])[:1])
    elif ended := _BY_SANDBOX.match(result):
        return result[ended.end() :], True
    if result.startswith('{"'):
        parts = [values.mapping(values.decoded_json(line)) for line in result.splitlines()]
        if all("output" in part for part in parts):
            result = "\n".join(values.text(part["output"]) for part in parts)
            codes = [values.mapping(part.get("metadata", part)).get("exit_code") for part in parts]
            code = next((c for c in codes if c != 0), 0)
            goes_on = parts[-1].get("session_id")
            head = f"Process running with session ID {goes_on}" if goes_on else ""
    if not isinstance(code, int) and head:
        return f"{head}\n{result}", False
    return result, isinstance(code, int) and code != 0


_UNKNOWN = re.compile(r"^(?:Process running with session ID \d+|Script \w+\b.*)$", re.MULTILINE)
"""By which Codex says that it does not know how a command ended; it stays before the output."""


_BY_SANDBOX = re.compile(
    r"failed in sandbox \w+ with execution error: (?:sandbox denied exec error, exit code:"
    r" [1-9]\d*, stdout: (?:, stderr: )?)?"
)
"""How older versions begin what a command printed that ended with another code than 0."""


HOSTS = (Codex(),)
