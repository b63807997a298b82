"""Gemini CLI: `hooks` in `~/.gemini/settings.json`, timeouts in milliseconds."""

from tacit.traces.connect.connector import Agent
from tacit.traces.connect.json_hooks import JsonHooks

CONNECTOR = JsonHooks(
    Agent("gemini", "Gemini CLI", ("gemini",), ".gemini"),
    "settings.json",
    ("AfterAgent", "SessionEnd"),
    milliseconds=True,
)
