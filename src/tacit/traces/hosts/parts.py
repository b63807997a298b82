"""What Gemini CLI and Qwen Code share: messages made of parts, and shell results in an envelope."""

import re
from typing import Any

from tacit.traces import values
from tacit.traces.trace import Usage

# "Output: … \nExit Code: 1\n…": the labels that may follow the output itself.
_OUTPUT = re.compile(
    r"(?:\A|\n)Output: (?P<out>.*?)(?=\n(?:Error|Exit Code|Signal|Background PIDs|"
    r"Process Group PGID): |\n</untrusted_context>|\Z)",
    re.DOTALL,
)
_CODE = re.compile(r"^Exit Code: (-?\d{1,9})$", re.MULTILINE)


def said(parts: Any) -> str:
    """The texts among `parts`, without the model's thoughts."""
    if isinstance(parts, str):
        return parts
    texts = []
    for part in values.items(parts):
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and not part.get("thought"):
            texts.append(values.string(part.get("text")))
            if "inlineData" in part or "fileData" in part:
                texts.append("[file]")
    return "\n".join(text for text in texts if text)


def calls(parts: Any) -> list[dict[str, Any]]:
    """The function calls among `parts`."""
    found = (values.mapping(part).get("functionCall") for part in values.items(parts))
    return [call for call in found if isinstance(call, dict)]


def responses(parts: Any) -> list[dict[str, Any]]:
    """The function responses among `parts`."""
    found = (values.mapping(part).get("functionResponse") for part in values.items(parts))
    return [response for response in found if isinstance(response, dict)]


def outcome(response: dict[str, Any]) -> tuple[str, bool]:
    """The result that a function response holds, unwrapped, and whether it says that it failed.

    A command that ends with an exit code other than 0 counts as a success there: the code in the
    text tells.
    """
    inner = values.mapping(response.get("response"))
    error = values.text(inner.get("error"))
    result = error or values.text(inner.get("output", inner.get("content")))
    envelope = _OUTPUT.search(result) if "Output: " in result else None
    if envelope is None:
        return result, bool(error)
    code = _CODE.search(result, envelope.end())
    return envelope["out"], bool(error) or (code is not None and code.group(1) != "0")


def usage(tokens: dict[str, Any], names: tuple[str, str, str, str]) -> Usage:
    """Tokens under their four names: prompt (with the cached ones), answer, cached, thoughts."""
    prompt, answer, cached, thoughts = (values.count(tokens.get(name)) for name in names)
    return Usage(max(0, prompt - cached), answer, cached, 0, thoughts)
