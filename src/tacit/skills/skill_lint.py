"""Everything that is wrong with a skill folder: its SKILL.md, the files beside it, and, when asked
strictly, what breaks the open Agent Skills standard (`open_standard.py`).
"""

import os
import re
from collections.abc import Iterator

import msgspec

from tacit.base.errors import NotFound, Unwritable
from tacit.base.paths import walk_folders
from tacit.base.patterns import late_pattern
from tacit.skills.skill import Problem, Skill, problem
from tacit.skills.skill_file import (
    SKILL_FILE_NAMES,
    parse_skill,
    read_skill,
    read_skill_bytes,
)

# Bounded, so that a body full of brackets takes no longer than any other.
_LINK = late_pattern(r"\]\(\s{0,20}<?([^)\s>]{1,500}+)>?(?:\s{1,20}\"[^\"\n]{0,500}\")?\s{0,20}\)")
_CODE = late_pattern(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)|`[^`\n]*`", re.S | re.M)
_SCHEME = late_pattern(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_MOST_FILES = 2000


def lint(folder: str | os.PathLike[str], *, strict: bool = False) -> list[Problem]:
    """The problems of the skill in `folder`, by line. `strict` adds the open standard's rules.

    With `strict`, a skill without an error is valid for the standard's reference validator.
    """
    path = os.fspath(folder)
    try:
        skill = read_skill(path)
    except Unwritable as error:  # a pipe, a folder, somebody else's file: one bad skill of many
        why = str(getattr(error.__cause__, "strerror", None) or error.message)
        return [problem("unreadable", 1, why=why)]
    except NotFound:
        if not any(os.path.islink(os.path.join(path, name)) for name in SKILL_FILE_NAMES):
            raise
        return [problem("unreadable", 1, why="it is a link to nothing")]
    if os.path.basename(path) in SKILL_FILE_NAMES and os.path.isfile(path):
        path = os.path.dirname(path) or "."
    problems = list(skill.problems)
    if strict:
        problems = _merge(problems, _standard_problems(skill, path))
    problems.extend(_links(skill, path))
    problems.extend(_files(path, skill.file))
    return sorted(set(problems))


def lint_text(data: bytes | str, folder_name: str, *, strict: bool = False) -> list[Problem]:
    """The problems of a SKILL.md that is not on the disk."""
    skill = parse_skill(data, folder_name)
    problems = list(skill.problems)
    if strict:
        from tacit.skills.open_standard import check_standard

        problems = _merge(problems, check_standard(_text(data), folder_name))
    return sorted(set(problems))


def _standard_problems(skill: Skill, path: str) -> list[Problem]:
    from tacit.skills.open_standard import check_standard

    try:
        data, _ = read_skill_bytes(os.path.join(path, skill.file))
    except OSError as error:
        raise Unwritable(f"cannot read {path}: {error.strerror}", "check its kind") from error
    return check_standard(_text(data), os.path.basename(os.path.abspath(path)))


def _text(data: bytes | str) -> str:
    # A byte order mark stays: to the standard's reader it is something before the first fence.
    if isinstance(data, str):
        return data
    return data.decode("utf-8", "replace")


def meets_standard(problems: list[Problem]) -> bool:
    """Whether none of `problems` breaks the standard."""
    return not any(found.severity == "error" for found in problems)


def _merge(lenient: list[Problem], strict: list[Problem]) -> list[Problem]:
    """Both, without saying the same twice: on one line and of one kind, the strict word stands.

    What only the lenient reading calls an error is a warning here, so that "no error" means valid.
    """
    said = {found.code for found in strict}
    kept = [found for found in lenient if found.code not in said]
    if meets_standard(strict):
        kept = [
            msgspec.structs.replace(found, severity="warning")
            if _is_lenient_error(found)
            else found
            for found in kept
        ]
    return [*strict, *kept]


def _is_lenient_error(found: Problem) -> bool:
    """Bytes that are not text stay an error: the standard's validator crashes on them."""
    return found.severity == "error" and found.code not in ("not-utf8", "unreadable")


def _links(skill: Skill, path: str) -> Iterator[Problem]:
    """Links in the body to files that are not there, or not in the folder."""
    body = _CODE.sub(lambda match: "\n" * match[0].count("\n"), skill.body)
    for match in _LINK.finditer(body):
        from urllib.parse import unquote

        target = unquote(match[1].split("#")[0].split("?")[0])
        if not target or _SCHEME.match(target) or target.startswith(("//", "/", "~")):
            continue
        if any(c in target for c in "{}<>$*|\x00") or "." not in os.path.basename(target):
            continue  # a template, or a word in brackets and not a file
        line = skill.body_line + body.count("\n", 0, match.start())
        inside = os.path.normpath(target)
        if inside.startswith(".."):
            yield problem("link-outside", line, path=target)
        elif not os.path.exists(os.path.join(path, inside)):
            yield problem("missing-file", line, path=target)


def _files(path: str, skill_file: str) -> Iterator[Problem]:
    """Trouble among the support files: links to nothing, a skill inside the skill."""
    seen = 0
    for here, folders, files in walk_folders(path):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(files):
            seen += 1
            if seen > _MOST_FILES:
                return
            file = os.path.join(here, name)
            inside = os.path.relpath(file, path)
            if name in SKILL_FILE_NAMES and here != path:
                yield problem("nested-skill", 1, path=inside, file=inside)
            elif os.path.islink(file) and not os.path.exists(file):
                yield problem("broken-link", 1, path=inside, file=inside)
