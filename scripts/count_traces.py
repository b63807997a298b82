"""Files of sessions from elsewhere, as the readers count them and as a plain walk over them does.

    python scripts/count_traces.py FOLDER        FOLDER/<form>/<source>/<files>

Prints a row a form for docs/traces.md, and every file in which the counts of prompts or of calls
differ. The walk knows where a form puts them and nothing else; of spans, which repeat what was said
in every call, it counts nothing.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.traces import host_registry
from tacit.traces.assembler import read_trace
from tacit.traces.trace import Trace

SPANS = ("otel", "openinference", "langfuse", "langsmith")
RUNS = (
    "run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "mcp",
    "call_tool_mcp", "task_tracking",
)  # fmt: skip
AGAIN = ("extra", "raw_data", "rejected_messages")
"""Where a file holds once more what it says elsewhere, or what was not chosen."""


def objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = [part for name, part in value.items() if name not in AGAIN]
    for part in value if isinstance(value, list) else ():
        yield from objects(part)


def documents(file: Path) -> Iterator[Any]:
    text = file.read_text("utf-8", "replace")
    try:
        yield json.loads(text)
    except ValueError:
        yield from map(json.loads, filter(str.strip, text.splitlines()))


def walked(form: str, found: dict[str, Any]) -> tuple[bool, int]:
    """Whether an object of a file is a prompt, and how many calls it is or holds."""
    calls = found.get("tool_calls") or ()
    if form == "atif":
        own = "step_id" in found and not found.get("is_copied_context")
        return own and found["source"] == "user", len(calls) if own else 0
    if form == "openhands":
        asked = found.get("action") == "message" or found.get("kind") == "MessageEvent"
        run = found.get("action") in RUNS or found.get("kind") == "ActionEvent"
        return asked and found.get("source") == "user", int(run and "source" in found)
    tagged = str(found.get("value", "")).count("<tool_call>") if found.get("from") == "gpt" else 0
    asked = found.get("role") == "user" or found.get("from") in ("human", "user")
    by_agent = found.get("role") in ("assistant", None)
    said = found.get("content") or found.get("value") or ""
    parts = [part for part in said if isinstance(part, dict)] if isinstance(said, list) else []
    asked = asked and bool(said) and any(not is_part(part, RESULTS) for part in parts or [{}])
    calls_in = by_agent * len(calls) + tagged + (found.get("from") == "function_call")
    calls_in += by_agent * sum(is_part(part, CALLS) for part in parts)
    if form == "tau-bench" and isinstance(said, str):  # agents that write their calls in words
        calls_in += by_agent * acts(said)
        asked = asked and not said.startswith("API output: ")
    return asked and str(said).strip() != "", calls_in


def acts(said: str) -> bool:
    """Whether an answer in words ends in a call that tau-bench carries out."""
    try:
        action = json.loads(said.rsplit("Action:", maxsplit=1)[-1]) if "Action:" in said else {}
    except ValueError:  # taken as words to the user
        return False
    return isinstance(action, dict) and action.get("name") not in (None, "respond")


CALLS = ("tool_use", "function_call", "toolUse")
RESULTS = ("tool_result", "function_response", "toolResult")


def is_part(part: dict[str, Any], kinds: tuple[str, ...]) -> bool:
    return part.get("type") in kinds or any(kind in part for kind in kinds)


def counted(form: str, document: Any) -> tuple[int, int]:
    """The prompts and the calls of one document."""
    if form == "swe-agent":  # one task; a step each, or an answer each where there are no steps
        steps = document.get("trajectory") if isinstance(document, dict) else None
        said = [one for one in objects(document) if one.get("role") == "assistant"]
        return 1, sum(bool(step["action"].strip()) for step in steps) if steps else len(said)
    helpers = document.pop("subagent_trajectories", []) if isinstance(document, dict) else []
    pairs = [walked(form, one) for one in objects(document)]
    handed_on = [walked(form, one) for one in objects(helpers)]  # whose prompts are no user's
    return sum(asked for asked, _ in pairs), sum(calls for _, calls in pairs + handed_on)


def walked_counts(form: str, file: Path) -> tuple[int, int]:
    """The prompts and the calls of a file, by the walk."""
    each = [counted(form, document) for document in documents(file)]
    return sum(asked for asked, _ in each), sum(calls for _, calls in each)


def read_counts(traces: list[Trace]) -> tuple[int, int]:
    """The prompts and the calls of a file's sessions, as they were read."""
    main_ones = [trace for trace in traces if not trace.head.parent]
    return sum(len(t.prompts) for t in main_ones), sum(len(t.calls) for t in traces)


def main() -> int:
    different = 0
    for form in sorted(path.name for path in Path(sys.argv[1]).iterdir()):
        total: Counter[str] = Counter()
        lost: Counter[str] = Counter()
        for file in sorted(p for p in Path(sys.argv[1], form).rglob("*") if p.is_file()):
            found = host_registry.recognise(str(file))
            traces = [read_trace(host_registry.get(source.host), source) for source in found]
            read = read_counts(traces)
            total.update(files=1, sessions=len(traces), prompts=read[0], calls=read[1])
            total[f"source {file.parent.name}"] += bool(traces)
            total["unknown"] += not traces
            for trace in traces:
                lost.update(trace.skipped)
            if form in SPANS or not traces:
                continue
            if (other := walked_counts(form, file)) != read:
                different += 1
                print(f"{file}: read {read}, walked {other}", file=sys.stderr)
        sources = sum(1 for name, times in total.items() if name.startswith("source ") and times)
        said = ", ".join(f"{times:,} {reason}" for reason, times in sorted(lost.items()))
        print(
            f"| `{form}` | {sources} | {total['files']} | {total['unknown']} | "
            f"{total['sessions']:,} | {total['prompts']:,} | {total['calls']:,} | "
            f"{said or 'nothing'} |"
        )
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
