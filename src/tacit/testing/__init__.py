"""The public test kit: a scripted model and its server, a fake clock, the host contract.

Nothing here is used by the product itself. Importing this package only defines names; each is
loaded when it is first used, so `python -m tacit.testing.server` runs clean.
"""

# Public name -> the module that defines it.
_PUBLIC = {
    "Cut": "tacit.testing.script",
    "Exchange": "tacit.testing.server",
    "FakeClock": "tacit.testing.fake_clock",
    "Garbage": "tacit.testing.script",
    "Message": "tacit.testing.script",
    "ModelServer": "tacit.testing.server",
    "Other": "tacit.testing.server",
    "Replies": "tacit.testing.script",
    "Reply": "tacit.testing.script",
    "Request": "tacit.testing.script",
    "Rules": "tacit.testing.script",
    "Stall": "tacit.testing.script",
    "Status": "tacit.testing.script",
    "Text": "tacit.testing.script",
    "Tool": "tacit.testing.script",
    "ToolResult": "tacit.testing.script",
    "ToolUse": "tacit.testing.script",
    "Turns": "tacit.testing.script",
    "Usage": "tacit.testing.script",
    "marked": "tacit.testing.script",
    "reply": "tacit.testing.script",
    "toolless": "tacit.testing.script",
}

__all__ = [
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
    from tacit.testing.fake_clock import FakeClock
    from tacit.testing.script import (
        Cut,
        Garbage,
        Message,
        Replies,
        Reply,
        Request,
        Rules,
        Stall,
        Status,
        Text,
        Tool,
        ToolResult,
        ToolUse,
        Turns,
        Usage,
        marked,
        reply,
        toolless,
    )
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
