"""How much of a long text is kept, and how deep an argument may nest."""

from typing import Any

from tacit.traces import values

MAX_TEXT = 24_000
"""Characters kept of one text, result or argument: its beginning and its end."""
_MAX_DEPTH = 8
_MAX_ITEMS = 1000
_REACH = 2000  # how far from the limit a space is looked for


def shorten(text: str, most: int = MAX_TEXT) -> str:
    """`text` itself, or when it is long its beginning and end, cut where a word ends.

    A word is not cut in two: half of a key would no longer look like one to the redaction.
    """
    if len(text) <= most:
        return text
    start, end = most * 3 // 4, len(text) - most // 4
    cut = max(text.rfind(space, start - _REACH, start) for space in " \n\t")
    start = cut if cut > 0 else start
    cuts = [at for space in " \n\t" if (at := text.find(space, end, end + _REACH)) > 0]
    end = min(cuts, default=end)
    return f"{text[:start]}\n[… {end - start:,} characters left out …]\n{text[end:]}"


def trim(arguments: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """`arguments` with long texts shortened and deep parts as text, and how many were cut."""
    cuts = 0

    def trimmed(value: Any, depth: int) -> Any:
        nonlocal cuts
        if isinstance(value, dict | list | tuple) and depth >= _MAX_DEPTH:
            value = values.text(list(value) if isinstance(value, tuple) else value)
        if isinstance(value, dict):
            cuts += max(0, len(value) - _MAX_ITEMS)
            kept = list(value.items())[:_MAX_ITEMS]
            return {str(key)[:200]: trimmed(part, depth + 1) for key, part in kept}
        if isinstance(value, list | tuple):
            cuts += max(0, len(value) - _MAX_ITEMS)
            return [trimmed(part, depth + 1) for part in value[:_MAX_ITEMS]]
        if value is None or isinstance(value, bool | int | float):
            return value
        short = shorten(str(value))
        cuts += short != value
        return short

    return {str(k)[:200]: trimmed(v, 1) for k, v in list(arguments.items())[:_MAX_ITEMS]}, cuts
