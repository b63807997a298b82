"""The public test kit: a scripted model and its server, a fake clock, the host contract.

Nothing here is used by the product itself. Importing this package only defines names; each is
loaded when it is first used, so `python -m tacit.testing.server` runs clean.
"""

__all__ = [
    "HOST_CHECKS",
    "Cut",
    "Endless",
    "Exchange",
    "Expected",
    "FakeClock",
    "Garbage",
    "HostCase",
    "Message",
    "ModelServer",
    "Other",
    "Page",
    "Replies",
    "Reply",
    "Request",
    "Rules",
    "ScriptFailed",
    "Stall",
    "Status",
    "Terms",
    "Text",
    "Tool",
    "ToolResult",
    "ToolUse",
    "Turns",
    "Usage",
    "called",
    "load_script",
    "made",
    "marked",
    "ran",
    "reply",
    "toolless",
    "used",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tacit.testing.fake_clock import FakeClock
    from tacit.testing.host_contract import HOST_CHECKS, Expected, HostCase
    from tacit.testing.sample_sessions import called, made, ran, used
    from tacit.testing.script import (
        Cut,
        Endless,
        Garbage,
        Message,
        Page,
        Replies,
        Reply,
        Request,
        Rules,
        ScriptFailed,
        Stall,
        Status,
        Text,
        Tool,
        ToolResult,
        ToolUse,
        Turns,
        Usage,
        load_script,
        marked,
        reply,
        toolless,
    )
    from tacit.testing.server import Exchange, ModelServer, Other
    from tacit.testing.wires import Terms

# The module of each public name.
_PUBLIC = {
    "Cut": "script",
    "Endless": "script",
    "Exchange": "server",
    "Expected": "host_contract",
    "FakeClock": "fake_clock",
    "Garbage": "script",
    "HOST_CHECKS": "host_contract",
    "HostCase": "host_contract",
    "Message": "script",
    "ModelServer": "server",
    "Other": "server",
    "Page": "script",
    "Replies": "script",
    "Reply": "script",
    "Request": "script",
    "Rules": "script",
    "ScriptFailed": "script",
    "Stall": "script",
    "Status": "script",
    "Terms": "wires",
    "Text": "script",
    "Tool": "script",
    "ToolResult": "script",
    "ToolUse": "script",
    "Turns": "script",
    "Usage": "script",
    "called": "sample_sessions",
    "load_script": "script",
    "made": "sample_sessions",
    "marked": "script",
    "ran": "sample_sessions",
    "reply": "script",
    "toolless": "script",
    "used": "sample_sessions",
}


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        from importlib import import_module

        value: object = getattr(import_module(f"tacit.testing.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tacit.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
