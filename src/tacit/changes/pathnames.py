"""Which names a file or a folder inside a skill may have.

A name is judged as a name, before any disk is touched: it must mean the same on every system,
look like what it is, and be a place inside the skill. Where it really leads, once links and races
come in, is `contain.py`'s business.
"""

import re
import unicodedata
from collections.abc import Iterable

from tacit.changes.change import SKILL_FILE, Refusal

CARRIED = frozenset({".git", ".hg", ".jj", "node_modules", ".venv", "__pycache__", ".DS_Store"})
"""Left as they are: neither read, versioned nor written, but kept with the skill."""

MAX_DEPTH = 8
MAX_BYTES = 200
_RESERVED = re.compile(r"(?i)^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?$")
_UNSAFE = frozenset('<>:"|?*\\/')
_MIXING = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE")


def check_path(path: str) -> Refusal | None:
    """What is wrong with `path` as the place of a file inside a skill."""
    if not path:
        return _refuse("empty-path", path, "is empty", "name a file, e.g. references/notes.md")
    if path.startswith(("/", "\\", "~")) or re.match(r"^[A-Za-z]:", path):
        return _refuse("absolute-path", path, "is absolute", "name it from the skill's folder")
    parts = path.split("/")
    if len(parts) > MAX_DEPTH:
        return _refuse("deep-path", path, f"has more than {MAX_DEPTH} levels", "use fewer folders")
    for part in parts:
        if found := check_name(part, path):
            return found
    if parts[-1].casefold() == SKILL_FILE.casefold() and path != SKILL_FILE:
        nested = len(parts) > 1
        return _refuse(
            "nested-skill" if nested else "skill-file",
            path,
            "would plant a second skill inside this one"
            if nested
            else "is another spelling of SKILL.md",
            "make a skill of its own, or call the file something else",
        )
    return None


def check_name(part: str, path: str = "") -> Refusal | None:
    """What is wrong with one component of a path, or with the name of a skill's folder."""
    path = path or part
    if part in ("", ".", ".."):
        return _refuse("dots", path, "has an empty, '.' or '..' part", "name the file directly")
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") for c in part):
        return _refuse("unseen-character", path, "has characters that cannot be seen", "leave out")
    if bad := sorted(_UNSAFE.intersection(part)):  # a '/' too: this is one component
        return _refuse("unsafe-character", path, f"has '{bad[0]}' in it", "use letters and digits")
    if part != part.strip() or part.endswith("."):
        return _refuse("loose-ends", path, "begins or ends with a space or ends with a dot", "trim")
    if _RESERVED.match(part):
        return _refuse("windows-name", path, f"holds '{part}', a device on Windows", "rename it")
    if unicodedata.normalize("NFKC", part) != part:
        near = unicodedata.normalize("NFKC", part)
        return _refuse("look-alike", path, "is not in its plain spelling", f"write '{near}'")
    if _mixes_scripts(part):
        return _refuse("look-alike", path, "mixes letters of look-alike alphabets", "use one")
    if len(part.encode()) > MAX_BYTES:
        return _refuse("long-name", path, f"has a part over {MAX_BYTES} bytes", "shorten it")
    if part.casefold() in CARRIED or part.casefold().startswith(".tacit"):
        return _refuse("kept-out", path, f"'{part}' is not a place for a skill's files", "rename")
    return None


def check_set(paths: Iterable[str]) -> Refusal | None:
    """Whether two of `paths` are one file somewhere: by case, or a file that is also a folder."""
    seen: dict[str, str] = {}
    for path in sorted(paths):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            here = "/".join(parts[:depth])
            folded = unicodedata.normalize("NFKC", here).casefold()
            kind = here if depth == len(parts) else here + "/"
            other = seen.setdefault(folded, kind)
            if other != kind:
                return _refuse(
                    "name-clash",
                    path,
                    f"is the same as '{other}' on some systems",
                    "give them names that differ by more than case",
                )
    return None


def _mixes_scripts(part: str) -> bool:
    if part.isascii():
        return False
    scripts = {unicodedata.name(c, "").split(" ")[0] for c in part if c.isalpha()}
    return len(scripts.intersection(_MIXING)) > 1


def _refuse(rule: str, path: str, wrong: str, hint: str) -> Refusal:
    return Refusal("containment", rule, f"the path {path!r} {wrong}", hint)
