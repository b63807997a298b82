"""A desktop notification, by the program that the system has for it."""

import html
import shutil
import subprocess
import sys

_SECONDS = 5.0
# The words are arguments, not part of the script: nothing in them can be run.
_APPLESCRIPT = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)


def notify(title: str, text: str) -> bool:
    """Show it, where there is a desktop to show it on; whether that was done. Never raises."""
    command = _command(title, text)
    if not command:
        return False
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _command(title: str, text: str) -> list[str]:
    if program := shutil.which("notify-send"):
        # The body may hold markup, so what is meant as text must not read as markup.
        body = html.escape(text, quote=False)
        return [program, "--app-name=tacit", "--", title, body]
    if sys.platform == "darwin" and (program := shutil.which("osascript")):
        script = [part for line in _APPLESCRIPT for part in ("-e", line)]
        return [program, *script, "--", title, text]
    return []
