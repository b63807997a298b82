"""The tools that a model can call: one module a family, a struct and a function each."""

from tacit.agent.tools import changing, files, memory, sessions, shell, skills
from tacit.agent.tools.tool import Tool

TOOLS: tuple[Tool, ...] = (
    *files.TOOLS,
    *shell.TOOLS,
    *skills.TOOLS,
    *changing.TOOLS,
    *sessions.TOOLS,
    *memory.TOOLS,
)
"""All of a foreground session's own."""

__all__ = ["TOOLS", "Tool"]
