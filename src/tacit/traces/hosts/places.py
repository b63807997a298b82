"""Where each agent looks for skills: a table, and nothing that costs time to import.

The order is the order of precedence inside one scope, after Tacit's own `.agents/skills`.
"""

import os


class Place:
    """The skill folders of one host: below a project, and below the user's home."""

    __slots__ = ("host", "project", "title", "user")

    def __init__(
        self, host: str, title: str, project: tuple[str, ...], user: tuple[str, ...]
    ) -> None:
        self.host = host
        self.title = title
        self.project = project
        self.user = user

    def user_folders(self, home: str) -> list[str]:
        """The user's folders as absolute paths; a host's own variable moves its home."""
        return [moved(folder, home) for folder in self.user]


# A variable that moves a host's home, and the prefix that it stands for.
_MOVES = (
    (".codex/", "CODEX_HOME"),
    (".hermes/", "HERMES_HOME"),
    (".claude/", "CLAUDE_CONFIG_DIR"),
    (".copilot/", "COPILOT_HOME"),
    (".pi/agent/", "PI_CODING_AGENT_DIR"),
    (".config/", "XDG_CONFIG_HOME"),
    (".local/share/", "XDG_DATA_HOME"),
)


def moved(folder: str, home: str) -> str:
    """A host's `folder` below `home`, or where a variable of the host has moved it."""
    for prefix, variable in _MOVES:
        if folder.startswith(prefix) and (base := os.environ.get(variable)):
            return os.path.join(os.path.expanduser(base), folder[len(prefix) :])
    return os.path.join(home, folder)


SHARED = Place("agents", "any agent", (".agents/skills",), (".agents/skills",))

PLACES = (
    SHARED,
    Place("claude-code", "Claude Code", (".claude/skills",), (".claude/skills",)),
    Place("codex", "Codex", (".codex/skills",), (".codex/skills",)),
    Place("gemini", "Gemini CLI", (".gemini/skills",), (".gemini/skills",)),
    Place("qwen", "Qwen Code", (".qwen/skills",), (".qwen/skills",)),
    Place("copilot", "Copilot CLI", (".github/skills",), (".copilot/skills",)),
    Place(
        "opencode",
        "opencode",
        (".opencode/skills", ".opencode/skill"),
        (".config/opencode/skills", ".config/opencode/skill"),
    ),
    Place("pi", "pi", (".pi/skills",), (".pi/agent/skills",)),
    Place("hermes", "Hermes", (), (".hermes/skills",)),
)
