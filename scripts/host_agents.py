"""The eight real agents as data: where each comes from, and how it runs headless on loopback.

`host_programs.py` fetches and runs one. Every value here was found by running the version that is
named. In commands, files and variables, `${url}` is the model server, `${home}` the agent's home,
`${project}` the folder it works in, `${prompt}` what the user says.
"""

from typing import Any, Literal

import msgspec

from tacit.testing.script import ToolUse

_OPENAI = "${url}/v1"


class ToolShape(msgspec.Struct, frozen=True):
    """How one tool of an agent is called: its name, its main argument, and what else it wants."""

    name: str
    argument: str
    extra: dict[str, Any] = {}

    def use(self, value: str) -> ToolUse:
        return ToolUse(self.name, {self.argument: value, **self.extra})


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent. Paths are relative to its home, skill folders in the project to the project."""

    name: str
    title: str
    registry: Literal["npm", "pypi"]
    package: str
    version: str
    """The version that all this was tried with, and that is installed unless told otherwise."""
    program: str
    command: tuple[str, ...]
    resume: tuple[str, ...]
    """The command that goes on with the last session in the project."""
    environment: dict[str, str] = {}
    files: dict[str, str] = {}
    transcripts: tuple[str, ...]
    """Patterns of the files in which it keeps its sessions."""
    project_skills: str = ""
    """The folder in a project in which it looks for skills; empty where it looks in none."""
    home_skills: str = ".agents/skills"
    shell: ToolShape
    read: ToolShape


CLAUDE_CODE = Agent(
    name="claude-code",
    title="Claude Code",
    registry="npm",
    package="@anthropic-ai/claude-code",
    version="2.1.325",
    program="claude",
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
    project_skills=".claude/skills",
    home_skills=".claude/skills",
    shell=ToolShape("Bash", "command", {"description": "Run a command"}),
    read=ToolShape("Read", "file_path"),
)

CODEX = Agent(
    name="codex",
    title="Codex",
    registry="npm",
    package="@openai/codex",
    version="0.166.0",
    program="codex",
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
    project_skills=".agents/skills",
    shell=ToolShape("exec_command", "cmd"),
    # It has no tool for reading: it uses the shell, as its instructions tell it to.
    read=ToolShape("exec_command", "cmd"),
)

GEMINI_CLI = Agent(
    name="gemini-cli",
    title="Gemini CLI",
    registry="npm",
    package="@google/gemini-cli",
    version="0.61.0",
    program="gemini",
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
    project_skills=".agents/skills",
    shell=ToolShape("run_shell_command", "command", {"description": "Run a command"}),
    read=ToolShape("read_file", "file_path"),
)

QWEN_CODE = Agent(
    name="qwen-code",
    title="Qwen Code",
    registry="npm",
    package="@qwen-code/qwen-code",
    version="0.24.4",
    program="qwen",
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
    project_skills=".agents/skills",
    shell=ToolShape(
        "run_shell_command", "command", {"description": "Run a command", "is_background": False}
    ),
    read=ToolShape("read_file", "file_path"),
)

COPILOT_CLI = Agent(
    name="copilot-cli",
    title="Copilot CLI",
    registry="npm",
    package="@github/copilot",
    version="1.0.102",
    program="copilot",
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
    project_skills=".agents/skills",
    shell=ToolShape("bash", "command", {"description": "Run a command"}),
    read=ToolShape("view", "path"),
)

OPENCODE = Agent(
    name="opencode",
    title="opencode",
    registry="npm",
    package="opencode-ai",
    version="1.18.33",
    program="opencode",
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
    project_skills=".agents/skills",
    shell=ToolShape("bash", "command", {"description": "Run a command"}),
    read=ToolShape("read", "filePath"),
)

PI = Agent(
    name="pi",
    title="pi",
    registry="npm",
    package="@earendil-works/pi-coding-agent",
    version="0.87.1",
    program="pi",
    # Without --approve it passes over a project's skills and extensions.
    command=(
        *("--approve", "-p", "--mode", "json", "--provider", "mock", "--model", "mock-model"),
        "${prompt}",
    ),
    resume=(
        *("--continue", "--approve", "-p", "--mode", "json", "--provider", "mock"),
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
    project_skills=".agents/skills",
    shell=ToolShape("bash", "command"),
    read=ToolShape("read", "path"),
)

HERMES = Agent(
    name="hermes",
    title="Hermes",
    registry="pypi",
    package="hermes-agent",
    version="0.19.0",
    program="hermes",
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
    home_skills=".hermes/skills",
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
