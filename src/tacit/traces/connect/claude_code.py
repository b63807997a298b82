"""Claude Code: `hooks` in `~/.claude/settings.json`, timeouts in seconds."""

from tacit.traces.connect.connector import Agent
from tacit.traces.connect.json_hooks import JsonHooks

CONNECTOR = JsonHooks(
    Agent("claude-code", "Claude Code", ("claude",), ".claude", "CLAUDE_CONFIG_DIR"),
    "settings.json",
    ("Stop", "SessionEnd"),
)
