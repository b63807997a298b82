"""The plugin folder: one folder that Claude Code, Codex, Copilot CLI, Qwen Code, Gemini CLI, pi
and opencode can install, and the small programs in it for agents whose hooks are code.

The files lie in `assets/`; `@VERSION@` and `@HOOK@` in them are filled in when they are used.
Which skills go with them is for the caller to say.
"""

import json
import os
import shlex
from collections.abc import Sequence

ASSETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "assets")


def files(version: str) -> dict[str, bytes]:
    """Every file of the plugin by its path in it; the hook is found by the user's PATH."""
    found = {}
    for folder, _, names in os.walk(ASSETS):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), ASSETS)
            text = _asset(path).replace("@VERSION@", version)
            hook = shlex.quote("tacit-hook") if path.endswith(".json") else '["tacit-hook"]'
            found[path] = text.replace("@HOOK@", hook).encode()
    return dict(sorted(found.items()))


def shim(path: str, words: Sequence[str]) -> str:
    """The program for an agent whose hooks are code, calling the hook by `words`."""
    return _asset(path).replace("@HOOK@", json.dumps(list(words), ensure_ascii=False))


def shim_calls(text: str, host: str, events: Sequence[str]) -> dict[str, str]:
    """The commands that such a program runs, by event."""
    begin = text.find("const HOOK = ")
    if begin < 0:
        return {}
    try:
        words = json.loads(text[begin + 13 :].partition("\n")[0].rstrip("; \r"))
        return {event: shlex.join([*words, host, event]) for event in events}
    except (ValueError, TypeError):
        return {}


def _asset(path: str) -> str:
    with open(os.path.join(ASSETS, path), encoding="utf-8") as file:
        return file.read()
