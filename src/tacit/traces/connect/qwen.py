"""Qwen Code: `hooks` in `~/.qwen/settings.json`, timeouts in milliseconds.

SessionEnd never fires without a terminal; the quiet after the last Stop ends such a session.
"""

from tacit.traces.connect.connector import Agent
from tacit.traces.connect.json_hooks import JsonHooks

CONNECTOR = JsonHooks(
    Agent("qwen", "Qwen Code", ("qwen",), ".qwen"),
    "settings.json",
    ("Stop", "SessionEnd"),
    milliseconds=True,
)
