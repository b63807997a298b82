"""opencode: a plugin of ours in `~/.config/opencode/plugins/`."""

from tacit.traces.connect.connector import Agent
from tacit.traces.connect.own_file import OwnFile
from tacit.traces.plugin import shim, shim_calls

EVENTS = ("session.idle",)


class _OpencodeAgent(Agent, frozen=True):
    """Its folder hangs on the folder for all settings, or on a variable of its own."""

    def folder(self) -> str:
        import os

        base = os.environ.get("XDG_CONFIG_HOME", "").strip()
        if base and not os.environ.get(self.variable):
            return os.path.join(base, "opencode")
        return super().folder()


CONNECTOR = OwnFile(
    _OpencodeAgent(
        "opencode", "opencode", ("opencode",), ".config/opencode", "OPENCODE_CONFIG_DIR"
    ),
    "plugins/tacit.js",
    EVENTS,
    lambda hook: shim("opencode/tacit.js", hook.words),
    lambda text: shim_calls(text, "opencode", EVENTS),
)
