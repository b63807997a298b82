"""Codex: a `hooks.json` of its own. A hook that the user has not trusted is skipped in silence."""

from tacit.traces.connect.connector import Agent
from tacit.traces.connect.json_hooks import JsonHooks

CONNECTOR = JsonHooks(
    Agent("codex", "Codex", ("codex",), ".codex", "CODEX_HOME"),
    "hooks.json",
    ("Stop", "SessionEnd"),
    seconds=3,  # it cuts SessionEnd down to this, and prints a warning at every start for more
    todo="Start codex once, type /hooks and trust the two hooks: until then Codex skips them.",
)
