"""Whether a tool's result says of itself that it failed, where the host has no field for that.

Only explicit statements count: a JSON result with an error or an exit code, an exit code in
words at either end, or a text that begins with "Error:".
"""

import re
from typing import Any

from tacit.traces import values

_CODES = ("exit_code", "exitCode", "returncode", "return_code")
_OUTPUTS = ("output", "content", "stdout", "result", "text")
_TAGGED = re.compile(r"<returncode>(-?\d{1,9})</returncode>")
_BEGINS = ("Error:", "ERROR:", "error:", "Traceback (most recent call last)")


def outcome(content: Any) -> tuple[str, bool, str]:
    """The readable part of a result, whether it failed, and the error that it names."""
    result = values.text(content)
    if result.lstrip().startswith("{"):
        inner = values.decoded_json(result)
        if isinstance(inner, dict):
            return _object(inner, result)
    if tagged := _TAGGED.search(result):
        return result, tagged.group(1) != "0", ""
    code = values.exit_code(result[:200]) or values.exit_code(result[-200:])
    return result, code not in (None, 0) or result.startswith(_BEGINS), ""


def _object(inner: dict[str, Any], whole: str) -> tuple[str, bool, str]:
    code = next((inner[key] for key in _CODES if isinstance(inner.get(key), int)), 0)
    error = values.text(inner.get("error")) if inner.get("error") not in (None, False) else ""
    failed = bool(error) or code != 0 or inner.get("success") is False
    shown = next((inner[key] for key in _OUTPUTS if isinstance(inner.get(key), str)), "")
    return shown or error or whole, failed, error
