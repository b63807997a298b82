"""The real sessions of the eight agents, and what stands in each of them."""

from pathlib import Path

from tacit.testing.host_contract import Expected

FOLDER = Path(__file__).parents[1] / "fixtures" / "transcripts"
PROMPTS = (
    "Build the package of this project.",
    "No, do not invent a version: always read it from the VERSION file.",
)

# Host -> its folder among the fixtures, the session's file below home, its id, the model.
REAL = {
    "claude-code": (
        "claude",
        ".claude/projects/-home-dev-demo/b4a27079-b3f0-4aac-a79c-04d4f81b280f.jsonl",
        "b4a27079-b3f0-4aac-a79c-04d4f81b280f",
        "claude-sonnet-4-5",
    ),
    "codex": (
        "codex",
        (
            ".codex/sessions/2026/11/15/"
            "rollout-2026-11-15T06-43-32-01a1ddf2-64a3-74f1-92ab-0ebd1877ed24.jsonl"
        ),
        "01a1ddf2-64a3-74f1-92ab-0ebd1877ed24",
        "mock-model",
    ),
    "gemini": (
        "gemini",
        ".gemini/tmp/demo/chats/session-2026-11-15T06-43-5f585c4a.jsonl",
        "5f585c4a-5fdd-464b-8d63-547f3f9967eb",
        "gemini-2.5-flash",
    ),
    "qwen": (
        "qwen",
        ".qwen/projects/-home-dev-demo/chats/6f6c9154-463b-48ac-998d-269ea877bea2.jsonl",
        "6f6c9154-463b-48ac-998d-269ea877bea2",
        "mock-model",
    ),
    "copilot": (
        "copilot",
        ".copilot/session-state/891b20a2-8e73-42de-ac68-1cfa9dbad896/events.jsonl",
        "891b20a2-8e73-42de-ac68-1cfa9dbad896",
        "mock-model",
    ),
    "opencode": (
        "opencode",
        ".local/share/opencode/opencode.db",
        "ses_e220bf150ffecaDkA5G8MGvsSE",
        "mock-model",
    ),
    "pi": (
        "pi",
        (
            ".pi/agent/sessions/--home-dev-demo--/"
            "2026-11-15T06-44-00-305Z_01a1ddf2-d0b0-77d1-b9e6-8efee60932b5.jsonl"
        ),
        "01a1ddf2-d0b0-77d1-b9e6-8efee60932b5",
        "mock-model",
    ),
    "hermes": ("hermes", ".hermes/state.db", "20261115_064952_e1d894", "mock-model"),
}
LINES = tuple(host for host in REAL if host not in ("opencode", "hermes"))


def file_of(host: str) -> Path:
    """The real session file, or database, of `host`."""
    folder, path, _, _ = REAL[host]
    return FOLDER / folder / "home" / path


def expected(host: str) -> Expected:
    """What every reading of that session must give."""
    return Expected(
        session=REAL[host][2],
        project="/home/dev/demo",
        prompts=PROMPTS,
        # Codex reads a file by `cat`.
        kinds=("shell" if host == "codex" else "read", "shell", "shell", "shell"),
        failures=1,
        texts=6,
        output_tokens=120,
        model=REAL[host][3],
        error="KeyError: 'VERSION'",
    )
