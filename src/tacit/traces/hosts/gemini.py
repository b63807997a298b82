"""Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.jsonl`, `.json` in older versions.

A message is written again under its id when more is known of it: the last one counts. On resume
the whole history is written again, poorer, in one record (`$set.messages`): it is passed over,
unless the file holds nothing else. The folder of the project stands in `~/.gemini/projects.json`,
and in what the program tells the model first; older versions name theirs for its SHA-256, by which
it is known again among the paths of calls.
A helper's own session lies in a folder that is named for its parent. What the user typed is told
from files, hooks' texts and output that the program added to it. Qwen Code reads messages made of
parts with the functions here.

Connected by `hooks` in `~/.gemini/settings.json`, timeouts in milliseconds.
"""

import hashlib
import ntpath
import os
import posixpath
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tacit.base.patterns import late_pattern
from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.connector import Connector, JsonHooks
from tacit.traces.host import (
    Hooks,
    JsonlHost,
    Passed,
    Signs,
    SkillFolders,
    Source,
    first_object,
    ignore,
    plain_files,
    read_document,
)
from tacit.traces.host_folders import UserPath
from tacit.traces.program import (
    DO,
    GO,
    INSTRUCTIONS,
    Program,
    Question,
    Said,
    Start,
    one_object,
    reported,
    total,
)
from tacit.traces.server_entry import ServerEntry

# "Output: … \nExit Code: 1\n…": the labels that may follow the output itself.
_OUTPUT = late_pattern(
    r"(?:\A|\n)Output: (?P<out>.*?)(?=\n(?:Error|Exit Code|Signal|Background PIDs|"
    r"Process Group PGID): |\n</untrusted_context>|\Z)",
    re.DOTALL,
)
_CODE = late_pattern(r"^Exit Code: (-?\d{1,9})$", re.MULTILINE)


def parts_text(parts: Any) -> str:
    """The texts among `parts`, without the model's thoughts."""
    if isinstance(parts, str):
        return parts
    texts = []
    for part in values.items(parts):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and not part.get("thought"):
            texts.append(values.string(part.get("text")))
            if "inlineData" in part or "fileData" in part:
                texts.append("[file]")
    return "\n".join(text for text in texts if text)


_ATTACHED = late_pattern(
    r"\n?--- Content from referenced files ---.*?(?:--- End of content ---|\Z)"
    r"|<hook_context>.*?(?:</hook_context>|\Z)",
    re.DOTALL,
)
_RAN = "I ran the following shell command:"


def tell_prompt(text: str, at: Any, into: Assembler) -> None:
    """Tell what the user typed, and apart from it what the program put beside it."""
    if text.startswith(_RAN):
        into.told(text, "output", at)
        return
    into.prompt(_ATTACHED.sub("", text), at)
    for attached in _ATTACHED.findall(text):
        into.told(attached, "hook" if attached.startswith("<hook_context>") else "file", at)


def function_calls(parts: Any) -> list[dict[str, Any]]:
    """The function calls among `parts`."""
    found = (values.mapping(part).get("functionCall") for part in values.items(parts))
    return [call for call in found if isinstance(call, dict)]


def function_responses(parts: Any) -> list[dict[str, Any]]:
    """The function responses among `parts`."""
    found = (values.mapping(part).get("functionResponse") for part in values.items(parts))
    return [response for response in found if isinstance(response, dict)]


def response_outcome(response: dict[str, Any]) -> tuple[str, bool]:
    """The result that a function response holds, unwrapped, and whether it says that it failed.

    A command that ends with an exit code other than 0 counts as a success there: the code in the
    text tells.
    """
    inner = values.mapping(response.get("response"))
    error = values.text(inner.get("error"))
    result = error or values.text(inner.get("output", inner.get("content")))
    envelope = _OUTPUT.search(result) if "Output: " in result else None
    if envelope is None:
        return result, bool(error)
    code = _CODE.search(result, envelope.end())
    return envelope["out"], bool(error) or (code is not None and code.group(1) != "0")


_TOKENS = ("input", "output", "cached", "", "thoughts")
_MOST = 64 * 1024 * 1024
_HOOKED = late_pattern(r"\A<hook_context>.*?</hook_context>\s*", re.DOTALL)
"""What hooks told the model, which stands before the user's words in one message."""
_CONTEXT = ("<session_context>", "This is the Gemini CLI. We are setting up")
_WORKSPACE = late_pattern(
    r"(?:Workspace Directories:\*\*\s*-|working in the directory:) *([^\n]{2,1000})"
)


class _Line(msgspec.Struct, gc=False):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    content: Any = None
    toolCalls: Any = None  # noqa: N815
    tokens: Any = None
    model: Any = None
    sessionId: Any = None  # noqa: N815
    summary: Any = None
    set: Any = msgspec.field(name="$set", default=None)
    rewind: Any = msgspec.field(name="$rewindTo", default=None)


class GeminiProgram(Program):
    """What keeps it quiet are settings of the folder that it runs in, which it must trust."""

    word = "gemini"
    login = "gemini, and choose how to sign in"
    paid = "the Google account or key that it is logged in with"
    by_hand = (
        "Google's terms forbid third-party tools on its login and have not said whether this is one"
    )
    leaves = True

    def start(self, question: Question) -> Start:
        words = (
            *("-p", GO, "-o", "json", "-e", "none", "--allowed-mcp-server-names", "none"),
            *("-m", question.model or _MODEL),
        )
        variables = {
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_SYSTEM_MD": os.path.join(question.folder, INSTRUCTIONS),
        }
        files = {
            ".gemini/settings.json": msgspec.json.encode(_ALONE).decode(),
            INSTRUCTIONS: question.instructions or GO,
        }
        return Start(words, question.text, variables, files)

    def work(self, question: Question) -> Start:
        words = ("-p", DO, "-o", "json", "--yolo", "--skip-trust", "-m", question.model or _MODEL)
        files = {".gemini/settings.json": msgspec.json.encode(_BY_KEY).decode()}
        return Start(words, question.text, files=files)

    def said(self, output: str, question: Question) -> Said:
        found = one_object(output)
        if "response" not in found and "error" not in found:
            raise ValueError("it has no response")
        error = found.get("error")
        models = values.mapping(values.mapping(found.get("stats")).get("models"))
        tokens = [values.mapping(values.mapping(one).get("tokens")) for one in models.values()]
        sent = [total(one.get("prompt")) for one in tokens]
        came = [total(one.get("candidates"), one.get("thoughts")) for one in tokens]
        return Said(
            "" if error else values.string(found.get("response")),
            error=values.string(values.mapping(error).get("message")) or "it failed"
            if error
            else "",
            input_tokens=total(*sent) if sent else None,
            output_tokens=total(*came) if came else None,
            cached_tokens=sum(reported(one.get("cached")) or 0 for one in tokens),
            model=next(iter(models)) if len(models) == 1 else "",
        )


_MODEL = "flash"
"""Without a name it asks a model first which model to ask."""
_BY_KEY = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
_ALONE = {
    "hooksConfig": {"enabled": False},
    "tools": {"core": ["none"]},
    "skills": {"enabled": False},
    "context": {"fileName": ["no-such-file.md"]},
}


class Gemini(JsonlHost):
    name = "gemini"
    title = "Gemini CLI"
    asks = ("ask_user",)
    aliases = ("gemini-cli",)
    precedence = 3
    home = UserPath(".gemini")
    programs = ("gemini",)
    program = GeminiProgram()
    hooks = Hooks(("AfterAgent",), ("SessionEnd",), opening="SessionStart", form="hook")
    signs = Signs(
        variable="GEMINI_SESSION_ID",
        session="GEMINI_SESSION_ID",
        transcript=r"/tmp/[^/]+/chats/session-[^/]+\.jsonl?",  # noqa: S108
    )
    skills = SkillFolders((".gemini/skills",), ("skills",))
    secrets = ("oauth_creds.json",)
    obeys = (".gemini", "GEMINI.md")
    folder = "tmp"
    files = r"[^/]+/chats/(?:session-[^/]*\.jsonl?|[^/]+/[^/]+\.jsonl)"
    form = _Line

    def connector(self) -> Connector:
        return JsonHooks(self, "settings.json", milliseconds=True)

    def server_entry(self) -> Connector:
        return ServerEntry(self, "settings.json")

    def recognises(self, line: dict[str, Any]) -> bool:
        return "projectHash" in line and "sessionId" in line

    def inside(self, path: str) -> Iterator[Source]:
        if os.path.isdir(path):
            for file in plain_files(path):
                if file.endswith((".json", ".jsonl")):
                    yield from self.inside(file)
        elif not path.endswith(".json"):
            yield from super().inside(path)
        elif self._own(_document(path, ignore)):
            yield from self._sources([path])

    def fingerprint(self, source: Source, position: int) -> str:
        return "" if source.path.endswith(".json") else super().fingerprint(source, position)

    def read(self, source: Source, start: int, into: Assembler) -> Iterator[None]:
        """Older versions wrote one document a session, anew each time."""
        if not source.path.endswith(".json"):
            yield from super().read(source, start, into)
            return
        self.start(source, into)
        found = _document(source.path, into.passed)
        session, title = (values.string(found.get(key)) for key in ("sessionId", "summary"))
        into.about(session=session, title=title)
        for number, message in enumerate(values.objects(found.get("messages"))):
            into.begin(number)
            self._message(msgspec.convert(message, _Line), into)
            yield

    def helpers(self, source: Source) -> Iterator[Source]:
        first = first_object(source.path) or {}
        session = os.path.basename(values.string(first.get("sessionId")))
        folder = os.path.join(os.path.dirname(source.path), session)
        if session:
            yield from self._sources([p for p in plain_files(folder, 0) if p.endswith(".jsonl")])

    def start(self, source: Source, into: Assembler) -> None:
        chats = os.path.dirname(os.path.abspath(source.path))
        above, name = os.path.split(chats)
        if os.path.basename(above) == "chats":  # a helper's, in a folder with its parent's name
            into.about(parent=name)
            chats = above
        folder = os.path.dirname(chats)
        if project := _project(folder):
            into.about(project=project)
        elif _HASHED.fullmatch(os.path.basename(folder)):
            into.state.setdefault("hash", os.path.basename(folder))

    def tell(self, line: _Line, into: Assembler) -> None:
        if line.type is not None:
            self._message(line, into)
        elif line.set is not None:
            changed = values.mapping(line.set)
            into.about(title=values.string(changed.get("summary")))
            if not into.state.get("seen"):
                for message in values.items(changed.get("messages")):
                    if isinstance(message, dict):
                        self._message(msgspec.convert(message, _Line), into)
        elif line.sessionId is not None:
            into.about(session=values.string(line.sessionId), title=values.string(line.summary))
        elif line.rewind is None:
            into.passed("unknown-record")

    def _message(self, line: _Line, into: Assembler) -> None:
        at = values.when(line.timestamp)
        message = values.string(line.id)
        if line.type == "user":
            for response in function_responses(line.content):
                if values.string(response.get("id")) not in into.state.get("told", ""):
                    result, failed = response_outcome(response)
                    into.returned(values.string(response.get("id")), result, failed=failed, at=at)
            text = _HOOKED.sub("", parts_text(line.content))
            if text.startswith(_CONTEXT) and (folder := _WORKSPACE.search(text)):
                into.about(project=folder[1].strip())  # where the host's own list is gone
            if text.strip() and not text.startswith(_CONTEXT) and into.state.get("last") != message:
                tell_prompt(text, at, into)
                into.state.update(seen=True, last=message, told="")
        elif line.type == "gemini":
            into.state["seen"] = True
            into.about(model=values.string(line.model))
            into.said(parts_text(line.content), at, message)
            for call in function_calls(line.content):
                name = values.string(call.get("name"))
                into.called(values.string(call.get("id")), name, call.get("args"), at)
            for call in values.items(line.toolCalls):
                self._call(values.mapping(call), at, into)
            if tokens := values.mapping(line.tokens):
                into.used(values.usage(tokens, *_TOKENS, cached_in_input=True), message)
        elif line.type not in ("info", "error", "warning"):
            into.passed("unknown-record")

    def _call(self, call: dict[str, Any], at: Any, into: Assembler) -> None:
        call_id = values.string(call.get("id"))
        into.called(call_id, values.string(call.get("name")), call.get("args"), at)
        if project := _hashed(into.state.get("hash"), values.mapping(call.get("args"))):
            into.about(project=project)
            into.state["hash"] = ""
        status = call.get("status")
        if status not in ("success", "error", "cancelled"):
            return
        result, failed = "", False
        for response in function_responses(call.get("result")):
            result, failed = response_outcome(response)
        into.returned(
            call_id,
            result or values.text(call.get("resultDisplay")),
            failed=failed or status == "error",
            error="cancelled" if status == "cancelled" else "",
            at=values.when(call.get("timestamp")),
        )
        # The same results follow once more as a message of the user's; those add nothing.
        into.state["told"] = f"{into.state.get('told', '')} {call_id}"[-4000:]


def _document(path: str, passed: Passed) -> dict[str, Any]:
    """The one document in a file; empty where there is none."""
    try:
        return values.mapping(read_document(path, _MOST, passed, dict))
    except OSError:
        passed("unreadable")
        return {}


def _project(folder: str) -> str:
    """The project whose sessions lie below `folder`, from the host's own list."""
    try:
        with open(os.path.join(folder, ".project_root"), encoding="utf-8") as file:
            return file.read(4000).strip()
    except (OSError, ValueError):
        pass
    known = os.path.join(os.path.dirname(os.path.dirname(folder)), "projects.json")
    try:
        with open(known, "rb") as file:
            listed = values.mapping(values.decoded_json(file.read(8 * 1024 * 1024)))
    except OSError:
        return ""
    for project, slug in values.mapping(listed.get("projects")).items():
        if slug == os.path.basename(folder):
            return project
    return ""


_HASHED = late_pattern(r"[0-9a-f]{64}")


def _hashed(name: str | None, arguments: dict[str, Any]) -> str:
    """The folder with the hash `name` among those that the paths in `arguments` lie in."""
    for path in map(values.string, arguments.values() if name else ()):
        paths = ntpath if path[1:3] == ":\\" else posixpath
        folder = path if paths.isabs(path) and len(path) < _PATH else ""
        while folder and folder != (above := paths.dirname(folder)):
            if hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest() == name:
                return folder
            folder = above
    return ""


_PATH = 1000


HOSTS = (Gemini(),)
