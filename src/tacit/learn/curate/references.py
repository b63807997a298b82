"""Where other skills speak of a skill by name, and the same text with another name.

Only ways of naming that mean a skill count (`/name`, `` `name` ``, a call of run_skill, "the skill
name", a path to its SKILL.md): a word that happens to be a skill's name is left alone.
"""

import re
from collections.abc import Iterable, Mapping

from tacit.changes.files import File
from tacit.skills.search import Search

_TEXT = (".md", ".txt")
_MOST = 50
"""Skills that are opened for one name; the index says which."""
# What stands before the name and after it.
_WAYS = (
    (r"`/?", r"`"),
    (r"(?:^|(?<=[\s(\"'“]))/", r"(?![\w/-])"),
    (r"run_skill\([^)\n]{0,40}[\"']", r"[\"']"),
    (r"(?:skills?|\.\.)/", r"/"),
    (r"\[\[", r"\]\]"),
    (r"(?<![\w-])skill:? ", r"(?![\w-])"),
    (r"(?<![\w/-])", r" skill(?![\w-])"),
)


def candidates(search: Search, names: Iterable[str]) -> set[str]:
    """The folders of skills that may name one of `names`, by the index."""
    return {entry.folder for name in names for _, entry in search.scores(name, _MOST)}


def renamed(
    files: Mapping[str, File], names: Mapping[str, str]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files that change when skills get the names that `names` says; which were named."""
    changed: dict[str, bytes] = {}
    met: dict[str, None] = {}
    for path, file in files.items():
        if file.kind == "link" or not path.lower().endswith(_TEXT):
            continue
        try:
            text = file.data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        new = text
        for old, instead in names.items():
            before = new
            for pattern in _patterns(old):
                new = pattern.sub(rf"\g<1>{instead}\g<2>", new)
            if new != before:
                met[old] = None
        if new != text:
            changed[path] = new.encode("utf-8")
    return changed, tuple(met)


def _patterns(name: str) -> "list[re.Pattern[str]]":
    word = re.escape(name)
    return [re.compile(f"({a}){word}({b})", re.MULTILINE) for a, b in _WAYS]
