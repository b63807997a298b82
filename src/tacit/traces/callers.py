"""Which agent really called the hook.

The settings that held the hook do not always tell: one plugin folder serves five agents, and
Copilot CLI also runs the hooks of Claude Code. What the agent wrote tells: the place of its
transcript first, then the way it spells its fields, then the variables that it sets.
"""

import re
from collections.abc import Mapping
from typing import Any

ANY = "plugin"
"""The host that the plugin's hooks name, as one file serves all."""

# The shape of a transcript's path, also where a variable moved the agent's home.
_TRANSCRIPTS = (
    ("copilot", re.compile(r"/session-state/[^/]+/events\.jsonl$")),
    ("codex", re.compile(r"/sessions/\d{4}/\d\d/\d\d/rollout-[^/]+\.jsonl(\.zst)?$")),
    ("gemini", re.compile(r"/tmp/[^/]+/chats/session-[^/]+\.jsonl?$")),  # noqa: S108
    ("qwen", re.compile(r"/projects/[^/]+/chats/[^/]+\.jsonl$")),
    ("pi", re.compile(r"/sessions/--[^/]*--/[^/]+\.jsonl$")),
    ("claude-code", re.compile(r"/projects/[^/]+/[^/]+\.jsonl$")),
)
_SIGNS = (
    ("copilot", "COPILOT_CLI"),
    ("qwen", "QWEN_CODE_SESSION_ID"),
    ("gemini", "GEMINI_SESSION_ID"),
    ("claude-code", "CLAUDE_CODE_SESSION_ID"),
    ("codex", "CODEX_MANAGED_BY_NPM"),
)
# Hosts whose hooks others run too.
_SHARED = ("", ANY, "claude-code")


def caller(
    stated: str, payload: Mapping[str, Any], transcript: str, signs: Mapping[str, str]
) -> str:
    """The host that called, where the hook itself says `stated`."""
    if stated not in _SHARED:
        return stated
    for host, shape in _TRANSCRIPTS:
        if shape.search(transcript):
            return host
    if transcript:
        return stated
    if "sessionId" in payload and "session_id" not in payload:
        return "copilot"
    session = payload.get("session_id")
    named = [host for host, sign in _SIGNS if session is not None and signs.get(sign) == session]
    present = [host for host, sign in _SIGNS if sign in signs]
    return next(iter([*named, *present]), stated)
