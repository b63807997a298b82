"""The public test kit: a scripted model, its server on loopback, real agents, a fake clock.

Nothing here is used by the product itself. Importing this package only defines names; each is
loaded when it is first used, so `python -m tacit.testing.server` runs clean.
"""

# Public name -> the module that defines it.
_PUBLIC = {
    "AGENTS": "tacit.testing.agents",
    "Agent": "tacit.testing.agents",
    "Cut": "tacit.testing.replies",
    "Exchange": "tacit.testing.server",
    "FakeClock": "tacit.testing.clock",
    "Garbage": "tacit.testing.replies",
    "Message": "tacit.testing.request",
    "ModelServer": "tacit.testing.server",
    "Other": "tacit.testing.server",
    "Replies": "tacit.testing.script",
    "Reply": "tacit.testing.replies",
    "Request": "tacit.testing.request",
    "Rules": "tacit.testing.script",
    "Stall": "tacit.testing.replies",
    "Status": "tacit.testing.replies",
    "Text": "tacit.testing.replies",
    "Tool": "tacit.testing.request",
    "ToolResult": "tacit.testing.request",
    "ToolUse": "tacit.testing.replies",
    "Turns": "tacit.testing.script",
    "Usage": "tacit.testing.replies",
    "marked": "tacit.testing.script",
    "reply": "tacit.testing.replies",
    "toolless": "tacit.testing.script",
}

__all__ = [
    "AGENTS",
    "Agent",
    "Cut",
    "Exchange",
    "FakeClock",
    "Garbage",
    "Message",
    "ModelServer",
    "Other",
    "Replies",
    "Reply",
    "Request",
    "Rules",
    "Stall",
    "Status",
    "Text",
    "Tool",
    "ToolResult",
    "ToolUse",
    "Turns",
    "Usage",
    "marked",
    "reply",
    "toolless",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tacit.testing.agents import AGENTS, Agent
    from tacit.testing.clock import FakeClock
    from tacit.testing.replies import (
        Cut,
        Garbage,
        Reply,
        Stall,
        Status,
        Text,
        ToolUse,
        Usage,
        reply,
    )
    from tacit.testing.request import Message, Request, Tool, ToolResult
    from tacit.testing.script import Replies, Rules, Turns, marked, toolless
    from tacit.testing.server import Exchange, ModelServer, Other


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        from importlib import import_module

        value: object = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tacit.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
