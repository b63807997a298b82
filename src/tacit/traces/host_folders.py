"""The skill folders of each host, and the variables that move a host's home.

A table, and nothing that costs time to import: `tacit list` reads it. The order is the order of
precedence inside one scope, after Tacit's own `.agents/skills`.
"""

import os


class HostFolders:
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
        return [moved_folder(folder, home) for folder in self.user]


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


def moved_folder(folder: str, home: str) -> str:
    """A host's `folder` below `home`, or where a variable of the host has moved it."""
    for prefix, variable in _MOVES:
        if folder.startswith(prefix) and (base := os.environ.get(variable)):
            return os.path.join(os.path.expanduser(base), folder[len(prefix) :])
    return os.path.join(home, folder)


SHARED_FOLDERS = HostFolders("agents", "any agent", (".agents/skills",), (".agents/skills",))

HOST_FOLDERS = (
    SHARED_FOLDERS,
    HostFolders("claude-code", "Claude Code", (".claude/skills",), (".claude/skills",)),
    HostFolders("codex", "Codex", (".codex/skills",), (".codex/skills",)),
    HostFolders("gemini", "Gemini CLI", (".gemini/skills",), (".gemini/skills",)),
    HostFolders("qwen", "Qwen Code", (".qwen/skills",), (".qwen/skills",)),
    HostFolders("copilot", "Copilot CLI", (".github/skills",), (".copilot/skills",)),
    HostFolders(
        "opencode",
        "opencode",
        (".opencode/skills", ".opencode/skill"),
        (".config/opencode/skills", ".config/opencode/skill"),
    ),
    HostFolders("pi", "pi", (".pi/skills",), (".pi/agent/skills",)),
    HostFolders("hermes", "Hermes", (), (".hermes/skills",)),
)
