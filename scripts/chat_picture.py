"""Writes docs/images/chat.svg: the real chat, with a scripted model, in a made-up project.

.venv/bin/python scripts/chat_picture.py
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
_SKILL = """---
name: release-checklist
description: Steps for a release of this project, from changelog to tag.
---

1. Run the tests. 2. Put a date on the changelog. 3. Tag.
"""
_ANSWER = """The tests pass, and the changelog has its date. What is left:

1. **Tag** `v1.4.0` on `main`
2. Push the tag; CI publishes it
"""


async def picture(project: Path) -> str:
    """Play a short talk and return the screen as SVG."""
    from tacit.testing import ModelServer, ToolUse, Usage, reply
    from tacit.ui.chat.live_chat import ChatOptions
    from tacit.ui.tui.chat_screen import ChatApp

    script = [
        reply(
            "I run the tests first.",
            ToolUse("run_command", {"command": "python -m unittest -q"}),
            usage=Usage(9_800, 60, 9_000),
        ),
        ToolUse(
            "edit_file",
            {"path": "CHANGELOG.md", "old": "## Unreleased", "new": "## 1.4.0 (15 November 2026)"},
        ),
        reply(
            _ANSWER, ToolUse("run_command", {"command": "git tag v1.4.0"}), usage=Usage(12_400, 90)
        ),
        "Tagged.",
    ]
    with ModelServer(script) as server:
        os.environ["TACIT_AGENT_BASE_URL"] = server.url + "/v1"
        os.environ["TACIT_AGENT_MODEL"] = "openai:gpt-5.1"
        app = ChatApp(ChatOptions(cwd=str(project)))
        async with app.run_test(size=(84, 39)) as pilot:

            async def until(text: str) -> None:
                for _ in range(1500):
                    strips = app.screen._compositor.render_strips()
                    if text in "\n".join(strip.text for strip in strips):
                        return
                    await pilot.pause(0.02)
                raise SystemExit(f"{text!r} did not come")

            await until("openai:gpt-5.1")
            app.prompt.take("/release-checklist get 1.4.0 out")
            await pilot.press("enter")
            await until("unittest")
            await until("yes, once")
            await pilot.press("y")
            await until("Allow edit_file")
            await pilot.press("y")
            await until("git tag v1.4.0")
            await until("yes, once")
            await pilot.pause(0.3)
            svg = app.export_screenshot(title="tacit chat")
            await pilot.press("n")
            await until("Tagged.")
        app.chat.close()
    return svg


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        project = Path(folder) / "notes-api"
        project.mkdir()
        (project / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n- Faster search\n")
        (project / "test_api.py").write_text(
            "import unittest\nclass T(unittest.TestCase):\n    def test_one(self):\n        pass\n"
        )
        subprocess.run(["git", "init", "-q", str(project)], check=True)
        skill = Path(folder) / ".agents" / "skills" / "release-checklist"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(_SKILL)
        svg = asyncio.run(picture(project))
    target = ROOT / "docs" / "images" / "chat.svg"
    target.write_text(svg, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
