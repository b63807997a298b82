"""Copilot CLI: a file of ours in `~/.copilot/hooks/`, with its own names for events."""

import json

from tacit.traces.connect.connector import SECONDS, Agent, Hook, is_ours
from tacit.traces.connect.jsonc import Malformed, parse
from tacit.traces.connect.own_file import OwnFile

EVENTS = ("agentStop", "sessionEnd")


def _content(hook: Hook) -> str:
    hooks = {
        event: [{"type": "command", "bash": hook.command("copilot", event), "timeoutSec": SECONDS}]
        for event in EVENTS
    }
    return json.dumps({"version": 1, "hooks": hooks}, indent=2, ensure_ascii=False) + "\n"


def _calls(text: str) -> dict[str, str]:
    try:
        hooks = parse(text)["hooks"]
        found = {event: hooks[event][0]["bash"] for event in EVENTS if event in hooks}
    except (Malformed, LookupError, TypeError):
        return {}
    return {event: command for event, command in found.items() if is_ours(command)}


CONNECTOR = OwnFile(
    Agent("copilot", "Copilot CLI", ("copilot",), ".copilot", "COPILOT_HOME"),
    "hooks/tacit.json",
    EVENTS,
    _content,
    _calls,
)
