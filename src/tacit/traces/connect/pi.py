"""pi: an extension of ours in `~/.pi/agent/extensions/`."""

from tacit.traces.connect.connector import Agent
from tacit.traces.connect.own_file import OwnFile
from tacit.traces.plugin import shim, shim_calls

EVENTS = ("agent_end", "session_shutdown")

CONNECTOR = OwnFile(
    Agent("pi", "pi", ("pi",), ".pi/agent", "PI_CODING_AGENT_DIR"),
    "extensions/tacit.ts",
    EVENTS,
    lambda hook: shim("pi/tacit.ts", hook.words),
    lambda text: shim_calls(text, "pi", EVENTS),
)
