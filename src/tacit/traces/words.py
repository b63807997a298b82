"""Full text: what of a turn is searched, how a query is understood, how a find is shown.

Languages without spaces between words (Chinese, Japanese) are indexed by character; a word of
such a query becomes a phrase of characters. Everything else is matched by words and by their
beginnings.
"""

import re

import msgspec

from tacit.traces.trace import Compaction, Subagent, Text, ToolCall, Turn

_WIDE = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
    "\U00020000-\U0003134f"
)  # fmt: skip
_WIDE_CHARACTER = re.compile(f"([{_WIDE}])")
_PIECE = re.compile(f"[{_WIDE}]+|[^{_WIDE}]+")
_QUERY = re.compile(r'"([^"]+)"|(\S+)')
_MAX_RESULT = 6000  # of a tool's result; its beginning and end say most
_AROUND = 70


class Snippet(msgspec.Struct, frozen=True):
    """A piece of text around what was found, and where in it the words stand."""

    text: str
    marks: tuple[tuple[int, int], ...]


def spaced(text: str) -> str:
    """`text` with spaces around each character of a language that has none between words."""
    return text if text.isascii() else _WIDE_CHARACTER.sub(r" \1 ", text)


def columns(turn: Turn) -> tuple[str, str, str]:
    """The three texts under which a turn is indexed: asked, said, done.

    Depends on the turn alone: to take a turn out of the index, the same texts are needed again.
    """
    asked, said, done = texts(turn)
    return spaced(asked), spaced(said), spaced(done)


def texts(turn: Turn) -> tuple[str, str, str]:
    """The same as a person would read them."""
    said: list[str] = []
    done: list[str] = []
    for step in turn.steps:
        if isinstance(step, Text):
            said.append(step.text)
        elif isinstance(step, Compaction):
            said.append(step.summary)
        elif isinstance(step, Subagent):
            said.append(f"{step.name} {step.task}")
        elif isinstance(step, ToolCall):
            given = [part for part in step.arguments.values() if isinstance(part, str)]
            result = step.result
            if len(result) > _MAX_RESULT:
                result = f"{result[: _MAX_RESULT // 2]} {result[-_MAX_RESULT // 2 :]}"
            done += (step.name, *given, step.error, result)
    return turn.prompt, "\n".join(said), "\n".join(done)


def match_query(query: str) -> str:
    """`query` in FTS5's own language: all words, in any order; quoted ones as a phrase.

    Empty when it holds no word.
    """
    terms = []
    for phrase, word in _QUERY.findall(query):
        for piece in [phrase] if phrase else _PIECE.findall(word):
            if not any(c.isalnum() for c in piece):
                continue
            quoted = '"' + spaced(piece).strip().replace('"', '""') + '"'
            wide = bool(_WIDE_CHARACTER.match(piece))
            terms.append(quoted if phrase or wide else quoted + "*")
    return " AND ".join(terms)


def snippet(turn: Turn, query: str) -> Snippet:
    """The first place in `turn` where a word of `query` stands, with its surroundings."""
    words = [
        piece
        for phrase, word in _QUERY.findall(query)
        for piece in ([phrase] if phrase else _PIECE.findall(word))
        if any(c.isalnum() for c in piece)
    ]
    wanted = re.compile("|".join(re.escape(word) for word in words) or r"\Z", re.IGNORECASE)
    for text in texts(turn):
        if found := wanted.search(text):
            start, end = max(0, found.start() - _AROUND), found.end() + _AROUND
            piece = " ".join(text[start:end].split())
            marks = tuple(match.span() for match in wanted.finditer(piece) if match.group())
            return Snippet(piece, marks)
    return Snippet(" ".join(turn.prompt[: 2 * _AROUND].split()), ())
