"""What stands around a place in a text: quotes, warnings, comments and hidden markup.

A guide that quotes an attack or warns of it is no attack; an order in a comment is worse than one
in the open. The text is folded, as everywhere in the scan.
"""

import re
from bisect import bisect_right

# Words by which a sentence warns of what it names, rather than asking for it.
_WARNING = re.compile(
    r"\b(?:attack|attacks|attacker|attackers|malicious|suspicious|red flags?|refuse|reject|detect"
    r"|detects|detection|prevent|prevents|vulnerab\w{0,8}|exploit\w{0,4}|injection|injections"
    r"|jailbreak\w{0,5}|threat|threats|indicators?|warning|unsafe|dangerous|harmful|adversarial"
    r"|red.?team\w{0,4}|sanitiz\w{0,4}|look for|watch for|e\.g\.|such as|for example|phrases?"
    r"|payloads?|bad practice|anti-?pattern|not acceptable|exfiltration|disposable|throwaway"
    r"|sandboxed|container|containers|compromise\w{0,2}|scan for|risk|risks|risky|untrusted"
    r"|defen[cs]e|guardrails?|test cases?)\b"
)
# A ban, right before what it bans. Farther off it may be part of the attack: "do not tell".
_BAN = re.compile(
    r"\b(?:never|avoid|do not|don't|must not|cannot|refuse to|not to)\b[^.;:,!?\n]{0,24}$"
)
# `key: "value"` is a value, not a quotation.
_VALUE = re.compile(r"[\s{,\[-]{0,40}[\"']?[\w -]{1,40}[\"']?\s{0,3}[:=]\s{0,3}[\"']")
_FENCE = re.compile(r"^[ \t>]{0,8}(?:```|~~~)", re.M)
_HIDDEN = re.compile(
    r"^\[[^\]\n]{0,60}\]: ?(?:#|<#?>|https?://\S{1,200}) [(\"'][^\n]{0,2000}"
    r"|\[\]\([^\s)]{1,200}\s[\"'][^\"'\n]{0,600}"
    r"|<[a-z]{1,10}[^<>\n]{0,200}(?:\bhidden\b(?!:)|display:\s?none|font-size:\s?0"
    r"|visibility:\s?hidden|opacity:\s?0|color:\s?(?:white|#fff(?:fff)?|transparent))\b[^<>\n]{0,200}>[^<]{0,2000}",
    re.M,
)
_PAIRS = (('"', '"'), ("`", "`"), ("“", "”"), ("«", "»"))
_QUOTES = '"`“”«»'


def _comments(text: str) -> list[tuple[int, int]]:
    """HTML comments; one that is never closed hides the rest of the text."""
    spans = []
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start + 4)
        end = len(text) if end < 0 else end + 3
        spans.append((start, end))
        start = text.find("<!--", end)
    return spans


class Context:
    """What stands around a match: quotes, warnings, comments."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences = [match.start() for match in _FENCE.finditer(text)]
        spans = sorted([*_comments(text), *(match.span() for match in _HIDDEN.finditer(text))])
        self._hidden_starts = [span[0] for span in spans]
        self._hidden_ends = [span[1] for span in spans]

    def is_hidden(self, at: int) -> bool:
        index = bisect_right(self._hidden_starts, at) - 1
        return index >= 0 and at < self._hidden_ends[index]

    def _line(self, start: int, end: int) -> tuple[int, int]:
        first = self._text.rfind("\n", max(0, start - 600), start) + 1 or max(0, start - 600)
        last = self._text.find("\n", end, end + 600)
        return first, last if last >= 0 else min(len(self._text), end + 600)

    def is_quoted(self, start: int, end: int) -> bool:
        """Within quotes or backticks on its line, in a quotation, a table, or a fenced block."""
        first, last = self._line(start, end)
        line = self._text[first:last]
        if line.lstrip()[:1] in (">", "|") or bisect_right(self._fences, start) % 2 == 1:
            return True
        before, after = self._text[first:start], self._text[end:last]
        match = self._text[start:end]
        if match[:1] in _QUOTES:
            before, match = before + match[0], match[1:]
        if match[-1:] in _QUOTES:
            match, after = match[:-1], match[-1] + after
        if _VALUE.match(line) and before.count('"') + before.count("'") <= 3:
            return False
        return any(
            before.rfind(opening) > before.rfind(closing) and closing in after
            if opening != closing
            else before.count(opening) % 2 == 1 and closing in after and closing not in match
            for opening, closing in _PAIRS
        )

    def is_warned(self, start: int, end: int) -> bool:
        """Whether its line, the line above or the heading of the list warns of such things."""
        first, last = self._line(start, end)
        above = self._text.rfind("\n", max(0, first - 300), max(0, first - 1)) + 1
        around = self._text[max(above, first - 300) : start] + " " + self._text[end:last]
        return bool(_WARNING.search(around) or _BAN.search(self._text, max(0, start - 60), start))
