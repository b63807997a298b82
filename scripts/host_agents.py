"""The eight real agents as data: where each comes from, and how it runs headless on loopback.

`host_programs.py` fetches and runs one. Every value here was found by running the version that is
named; what Tacit itself knows of an agent stands in its host. In commands, files and variables,
`${url}` is the model server, `${home}` the agent's home, `${project}` the folder it works in,
`${prompt}` what the user says.
"""

from typing import Any, Literal

import msgspec

from tacit.base.paths import SHARED_SKILLS
from tacit.testing.script import ToolUse
from tacit.traces.connection import find_connector
from tacit.traces.host import Host

_OPENAI = "${url}/v1"


class ToolShape(msgspec.Struct, frozen=True):
    """How one tool of an agent is called: its name, its main argument, and what else it wants."""

    name: str
    argument: str
    extra: dict[str, Any] = {}

    def use(self, value: str) -> ToolUse:
        return ToolUse(self.name, {self.argument: value, **self.extra})


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent. Paths are relative to its home."""

    name: str
    """What `tacit connect` knows it by."""
    registry: Literal["npm", "pypi"]
    package: str
    version: str
    """The version that all this was tried with, and that is installed unless told otherwise."""
    command: tuple[str, ...]
    resume: tuple[str, ...]
    """The command that goes on with the last session in the project."""
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    transcripts: tuple[str, ...]
    """Patterns of the files in which it keeps its sessions."""
    shell: ToolShape
    read: ToolShape
    helper: ToolShape | None = None
    """The tool by which it has a helper work; None where that was not tried."""

    @property
    def host(self) -> Host:
        """All else that is known of it."""
        return find_connector(self.name).host

    @property
    def title(self) -> str:
        return self.host.title

    @property
    def program(self) -> str:
        return self.host.programs[0]

    @property
    def home_skills(self) -> str:
        """The folder in which it looks for the user's skills without being told of it."""
        own = self.host.folders().user[0].path
        return SHARED_SKILLS if self.host.skills.shared == "read" else own


CLAUDE_CODE = Agent(
    name="claude-code",
    registry="npm",
    package="@anthropic-ai/claude-code",
    version="2.1.325",
    command=(
        *("-p", "${prompt}", "--model", "claude-sonnet-4-5", "--allowedTools", "Bash Read"),
        *("--output-format", "json", "--max-turns", "30"),
    ),
    resume=(
        *("--continue", "-p", "${prompt}", "--model", "claude-sonnet-4-5"),
        *("--allowedTools", "Bash Read", "--output-format", "json", "--max-turns", "30"),
    ),
    environment={
        "ANTHROPIC_BASE_URL": "${url}",
        "ANTHROPIC_API_KEY": "test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
    },
    transcripts=(".claude/projects/*/*.jsonl",),
    shell=ToolShape("Bash", "command", {"description": "Run a command"}),
    read=ToolShape("Read", "file_path"),
    helper=ToolShape("Agent", "prompt", {"description": "Count it"}),
)

CODEX = Agent(
    name="codex",
    registry="npm",
    package="@openai/codex",
    version="0.166.0",
    command=(
        *("exec", "--json", "--skip-git-repo-check"),
        *("--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"),
        "${prompt}",
    ),
    resume=(
        *("exec", "--json", "--skip-git-repo-check"),
        *("--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"),
        *("resume", "--last", "${prompt}"),
    ),
    environment={"MOCK_KEY": "test"},
    files={
        ".codex/config.toml": f"""\
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false

[model_providers.mock]
name = "mock"
base_url = "{_OPENAI}"
env_key = "MOCK_KEY"
wire_api = "responses"

[analytics]
enabled = false

[features]
apps = false
plugins = false
remote_plugin = false
plugin_discovery_prefetch = false
""",
    },
    transcripts=(".codex/sessions/*/*/*/rollout-*.jsonl",),
    shell=ToolShape("exec_command", "cmd"),
    # It has no tool for reading: it uses the shell, as its instructions tell it to.
    read=ToolShape("exec_command", "cmd"),
)

GEMINI_CLI = Agent(
    name="gemini-cli",
    registry="npm",
    package="@google/gemini-cli",
    version="0.61.0",
    command=(
        *("-p", "${prompt}", "-m", "gemini-2.5-flash", "--yolo", "--skip-trust"),
        *("-o", "stream-json"),
    ),
    resume=(
        *("--resume", "latest", "-p", "${prompt}", "-m", "gemini-2.5-flash", "--yolo"),
        *("--skip-trust", "-o", "stream-json"),
    ),
    environment={"GEMINI_API_KEY": "test", "GOOGLE_GEMINI_BASE_URL": "${url}"},
    files={
        ".gemini/settings.json": """\
{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "general": {"enableAutoUpdate": false}
}
""",
    },
    transcripts=(".gemini/tmp/*/chats/session-*.jsonl",),
    shell=ToolShape("run_shell_command", "command", {"description": "Run a command"}),
    read=ToolShape("read_file", "file_path"),
)

QWEN_CODE = Agent(
    name="qwen-code",
    registry="npm",
    package="@qwen-code/qwen-code",
    version="0.24.4",
    command=(
        *("-p", "${prompt}", "--auth-type", "openai", "--approval-mode", "yolo"),
        *("-o", "stream-json", "--chat-recording"),
    ),
    resume=(
        *("--continue", "-p", "${prompt}", "--auth-type", "openai", "--approval-mode", "yolo"),
        *("-o", "stream-json", "--chat-recording"),
    ),
    environment={
        "OPENAI_API_KEY": "test",
        "OPENAI_BASE_URL": _OPENAI,
        "OPENAI_MODEL": "mock-model",
    },
    files={
        ".qwen/settings.json": """\
{
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "general": {"enableAutoUpdate": false}
}
""",
    },
    transcripts=(".qwen/projects/*/chats/*.jsonl",),
    shell=ToolShape(
        "run_shell_command", "command", {"description": "Run a command", "is_background": False}
    ),
    read=ToolShape("read_file", "file_path"),
    helper=ToolShape(
        "agent", "prompt", {"description": "Count it", "subagent_type": "general-purpose"}
    ),
)

COPILOT_CLI = Agent(
    name="copilot-cli",
    registry="npm",
    package="@github/copilot",
    version="1.0.102",
    command=(
        *("-p", "${prompt}", "--allow-all-tools", "--allow-all-paths"),
        *("--output-format", "json"),
    ),
    resume=(
        *("--continue", "-p", "${prompt}", "--allow-all-tools", "--allow-all-paths"),
        *("--output-format", "json"),
    ),
    environment={
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_PROVIDER_BASE_URL": _OPENAI,
        "COPILOT_PROVIDER_API_KEY": "test",
        "COPILOT_MODEL": "mock-model",
    },
    transcripts=(".copilot/session-state/*/events.jsonl",),
    shell=ToolShape("bash", "command", {"description": "Run a command"}),
    read=ToolShape("view", "path"),
    helper=ToolShape(
        "task",
        "prompt",
        {
            "description": "Count it",
            "name": "count",
            "agent_type": "general-purpose",
            "mode": "sync",
        },
    ),
)

OPENCODE = Agent(
    name="opencode",
    registry="npm",
    package="opencode-ai",
    version="1.18.33",
    command=("run", "--format", "json", "--auto", "-m", "mock/mock-model", "${prompt}"),
    resume=(
        *("run", "--continue", "--format", "json", "--auto", "-m", "mock/mock-model"),
        "${prompt}",
    ),
    files={
        ".config/opencode/opencode.json": f"""\
{{
  "autoupdate": false,
  "share": "disabled",
  "provider": {{
    "mock": {{
      "npm": "@ai-sdk/openai-compatible",
      "options": {{"baseURL": "{_OPENAI}", "apiKey": "test"}},
      "models": {{"mock-model": {{"name": "mock-model"}}}}
    }}
  }}
}}
""",
    },
    environment={
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
    },
    transcripts=(".local/share/opencode/opencode.db",),
    shell=ToolShape("bash", "command", {"description": "Run a command"}),
    read=ToolShape("read", "filePath"),
    helper=ToolShape("task", "prompt", {"description": "Count it", "subagent_type": "general"}),
)

PI = Agent(
    name="pi",
    registry="npm",
    package="@earendil-works/pi-coding-agent",
    version="0.87.1",
    command=(
        *("-p", "--mode", "json", "--provider", "mock", "--model", "mock-model"),
        "${prompt}",
    ),
    resume=(
        *("--continue", "-p", "--mode", "json", "--provider", "mock"),
        *("--model", "mock-model", "${prompt}"),
    ),
    environment={"PI_OFFLINE": "1", "PI_TELEMETRY": "0"},
    files={
        ".pi/agent/models.json": f"""\
{{
  "providers": {{
    "mock": {{
      "baseUrl": "{_OPENAI}",
      "api": "openai-completions",
      "apiKey": "test",
      "models": [{{"id": "mock-model"}}]
    }}
  }}
}}
""",
    },
    transcripts=(".pi/agent/sessions/*/*.jsonl",),
    shell=ToolShape("bash", "command"),
    read=ToolShape("read", "path"),
)

HERMES = Agent(
    name="hermes",
    registry="pypi",
    package="hermes-agent",
    version="0.19.0",
    command=(
        *(
            "chat",
            "-Q",
            "--yolo",
            "--accept-hooks",
            "--max-turns",
            "30",
            "-t",
            "terminal,file,skills",
        ),
        *("-q", "${prompt}"),
    ),
    resume=(
        *("chat", "--continue", "-Q", "--yolo", "--accept-hooks", "--max-turns", "30"),
        *("-t", "terminal,file,skills", "-q", "${prompt}"),
    ),
    files={
        ".hermes/config.yaml": f"""\
model:
  default: mock-model
  provider: custom
  base_url: {_OPENAI}
  api_key: test
""",
    },
    transcripts=(".hermes/state.db",),
    shell=ToolShape("terminal", "command"),
    read=ToolShape("read_file", "path"),
)

AGENTS: tuple[Agent, ...] = (
    CLAUDE_CODE,
    CODEX,
    GEMINI_CLI,
    QWEN_CODE,
    COPILOT_CLI,
    OPENCODE,
    PI,
    HERMES,
)
