"""All connectors, by the name of their host."""

import difflib

from tacit.base.errors import Usage
from tacit.traces.connect import claude_code, codex, copilot, gemini, hermes, opencode, pi, qwen
from tacit.traces.connect.connector import Connector

CONNECTORS: dict[str, Connector] = {
    connector.agent.host: connector
    for connector in (
        claude_code.CONNECTOR,
        codex.CONNECTOR,
        gemini.CONNECTOR,
        qwen.CONNECTOR,
        copilot.CONNECTOR,
        opencode.CONNECTOR,
        pi.CONNECTOR,
        hermes.CONNECTOR,
    )
}
_ALIASES = {
    "claude": "claude-code", "gemini-cli": "gemini", "qwen-code": "qwen", "copilot-cli": "copilot"
}  # fmt: skip


def find(name: str) -> Connector:
    """The connector that a person means by `name`."""
    known = name.lower()
    found = CONNECTORS.get(_ALIASES.get(known, known))
    if found is None:
        near = difflib.get_close_matches(known, [*CONNECTORS, *_ALIASES], 1)
        hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(CONNECTORS)}"
        raise Usage(f"there is no agent '{name}' that Tacit can connect", hint)
    return found
