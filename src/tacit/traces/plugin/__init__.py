"""The plugin folder: one folder that Claude Code, Codex, Copilot CLI, Qwen Code, Gemini CLI, pi,
opencode and Hermes can install, and the small programs in it for agents whose hooks are code.

The files lie in `assets/`; names between two `@` in them are filled in when they are used.
Which skills go with them is for the caller to say.
"""

import json
import os
import shlex
from collections.abc import Mapping, Sequence

from tacit.base import paths

ASSETS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "assets")


_SHIMS = {"pi/tacit.ts": "pi", "opencode/tacit.js": "opencode"}


def files(version: str) -> dict[str, bytes]:
    """Every file of the plugin by its path in it; the hook is found by the user's PATH."""
    from tacit.traces import host_registry
    from tacit.traces.connector import Hook

    found = {}
    for folder, _, names in paths.walk_folders(ASSETS):
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), ASSETS)
            if host := _SHIMS.get(path):
                calls = Hook(("tacit-hook",)).calls(host_registry.get(host), {})
                found[path] = shim(path, calls).encode()
            else:
                text = _asset(path).replace("@VERSION@", version)
                # A Python file of an agent's is none of our modules, so it lies here as a text.
                found[path.removesuffix(".txt")] = text.replace("@HOOK@", "tacit-hook").encode()
    return dict(sorted(found.items()))


def shim(path: str, calls: Mapping[str, str], shown: Sequence[str] = ()) -> str:
    """The program for an agent whose hooks are code, with the commands that it runs by event.

    `shown`: what stands before and behind a project's path in the path of its `shown_folder`.
    """
    words = {event: shlex.split(command) for event, command in calls.items()}
    text = _asset(path).replace("@HOOKS@", json.dumps(words, ensure_ascii=False))
    return text.replace("@SHOWN@", json.dumps(shown, ensure_ascii=False))


def shim_calls(text: str) -> dict[str, str]:
    """The commands that such a program runs, by event."""
    begin = text.find(_CALLS)
    if begin < 0:
        return {}
    try:
        found = json.loads(text[begin + len(_CALLS) :].partition("\n")[0].rstrip("; \r"))
        return {event: shlex.join(words) for event, words in found.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def shown_folder(project: str) -> str:
    """Where the skills of a project are linked for agents that pass over its own folders.

    The last part keeps apart what belongs to a project and to one that lies in it. A `project` may
    also be what an agent puts one in for.
    """
    return os.path.join(paths.folders().data, "shown") + project + "/@skills"


_CALLS = "const HOOKS = "


def _asset(path: str) -> str:
    with open(os.path.join(ASSETS, path), encoding="utf-8") as file:
        return file.read()
