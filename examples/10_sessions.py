"""Sessions: read from an agent nobody heard of, searched, and drafted into skills by counting."""

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from tacit import Assembler, JsonlHost, Store, draft_skills, read_sessions, register_host


class Line(msgspec.Struct):
    session: Any = None
    folder: Any = None
    you: Any = None
    bot: Any = None
    ran: Any = None
    gave: Any = None
    code: Any = None


@register_host
class Pebble(JsonlHost):
    """`~/.pebble/*.jsonl`. A package brings a host by the entry point `tacit.hosts` instead."""

    name = "pebble"
    title = "Pebble"
    folder = ".pebble"
    files = r"[^/]+\.jsonl"
    form = Line

    def recognises(self, line: dict[str, Any]) -> bool:
        return {"session", "folder"} <= line.keys()

    def tell(self, line: Line, into: Assembler) -> None:
        if isinstance(line.session, str):
            into.about(session=line.session, project=str(line.folder))
        elif isinstance(line.you, str):
            into.prompt(line.you)
        elif isinstance(line.ran, str):
            into.called("", "bash", {"command": line.ran})
        elif line.code is not None:
            into.returned("", str(line.gave), failed=line.code != 0)
        elif isinstance(line.bot, str):
            into.said(line.bot)


def session(number: int) -> str:
    lines: list[dict[str, object]] = [
        {"session": f"s{number}", "folder": "/srv/shop"},
        {"you": "Build the package."},
        {"ran": "make package"},
        {"gave": "VERSION is not set", "code": 2},
        {"ran": "make package VERSION=1.2"},
        {"gave": "built", "code": 0},
        {"bot": "It is built."},
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


with tempfile.TemporaryDirectory() as folder:
    for number in (1, 2):
        (Path(folder) / f"{number}.jsonl").write_text(session(number))
    traces = list(read_sessions(folder))
    for trace in traces:
        failed = sum(call.failed for turn in trace.turns for call in turn.calls)
        print(f"{trace.id}: {len(trace.turns)} turn, {failed} call failed")
    with Store.open(str(Path(folder) / "tacit.db")) as store:
        for trace in traces:
            store.write(trace)
        for hit in store.search("VERSION is not set"):
            print("found in", hit.id)
    for draft in draft_skills(traces):
        print(f"{draft.name}: {draft.reason}")
        print(draft.text)
