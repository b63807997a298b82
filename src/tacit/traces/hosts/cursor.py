"""Cursor: `~/.cursor/projects/<folder>/agent-transcripts/**.jsonl`. From documents; untested.

The transcripts hold no times, no token counts and few results.
"""

import os
import re
from typing import Any

import msgspec

from tacit.traces import values
from tacit.traces.assembler import Assembler
from tacit.traces.host import JsonlHost, SkillFolders, Source
from tacit.traces.host_folders import UserPath

_QUERY = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)


class _Line(msgspec.Struct, gc=False):
    role: Any = None
    message: Any = None
    timestamp: Any = None


class Cursor(JsonlHost):
    name = "cursor"
    title = "Cursor"
    asks = ("AskQuestion",)
    tested = False
    precedence = 80
    home = UserPath(".cursor")
    skills = SkillFolders((".cursor/skills",), ("skills",))
    obeys = (".cursor", ".cursorrules")
    folder = "projects"
    files = r"[^/]+/agent-transcripts/(?:.+/)?[^/]+\.jsonl"
    form = _Line

    def recognises(self, line: dict[str, Any]) -> bool:
        return "role" in line and "content" in values.mapping(line.get("message"))

    def start(self, source: Source, into: Assembler) -> None:
        before, _, after = source.path.replace("\\", "/").partition("/agent-transcripts/")
        into.about(session=os.path.splitext(os.path.basename(source.path))[0])
        # The folder's name is the project's path with - for /: only a guess, so it must exist.
        guess = "/" + os.path.basename(before).replace("-", "/")
        if after and os.path.isdir(guess):
            into.about(project=guess)

    def tell(self, line: _Line, into: Assembler) -> None:
        content = values.mapping(line.message).get("content")
        at = values.when(line.timestamp)
        if line.role == "user":
            text = values.text(content)
            query = _QUERY.search(text)
            into.prompt(query.group(1) if query else text, at)
        elif line.role == "assistant":
            blocks = [content] if isinstance(content, str) else values.items(content)
            for block in blocks:
                self._block(block, at, into)
        elif line.role == "tool":
            into.returned("", values.text(content), at=at)
        elif line.role != "system":
            into.passed("unknown-record")

    def _block(self, block: Any, at: Any, into: Assembler) -> None:
        part = values.mapping(block)
        if part.get("type") == "tool_use":
            name = values.string(part.get("name"))
            into.called(values.string(part.get("id")), name, part.get("input"), at)
        elif part.get("type") == "tool_result":
            call_id = values.string(part.get("tool_use_id"))
            result = values.text(part.get("content"))
            into.returned(call_id, result, failed=part.get("is_error") is True, at=at)
        else:
            into.said(values.text(block) if isinstance(block, str) else values.text([block]), at)


HOSTS = (Cursor(),)
