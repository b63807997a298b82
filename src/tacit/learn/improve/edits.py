"""From a skill's files before and after to the operations that lead from one to the other.

Small ones: of a text only the stretch that changed, so that a person's edits elsewhere merge, and
so that a rejected idea is known again by what it was about and not by the whole skill.
"""

from collections.abc import Mapping
from difflib import unified_diff

from tacit.changes.change import SKILL_FILE, Edit, FileOperation, RemoveFile, Rewrite, WriteFile
from tacit.changes.files import File, programs, to_bytes


def operations(old: Mapping[str, File], new: Mapping[str, File]) -> tuple[FileOperation, ...]:
    """What turns `old` into `new`."""
    found: list[FileOperation] = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        if after is None:
            found.append(RemoveFile(path))
        elif before is not None and (edit := _edit(path, before, after)) is not None:
            found.append(edit)
        elif path == SKILL_FILE:  # not text: only the whole skill can be said anew
            return (Rewrite(to_bytes(new), programs(new)),)
        else:
            found.append(WriteFile(path, after.data, executable=after.kind == "program"))
    return tuple(found)


def told(old: Mapping[str, File], new: Mapping[str, File]) -> str:
    """The difference as text, for people, for models and for comparing."""
    parts: list[str] = []
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before is None or after is None:
            parts.append(f"{path} is {'new' if before is None else 'removed'}")
        if before != after:
            parts += unified_diff(_lines(before), _lines(after), path, path, n=1, lineterm="")
    return "\n".join(line.rstrip("\n") for line in parts)


def _edit(path: str, before: File, after: File) -> Edit | None:
    """The one stretch that changed; None where it cannot be said that way."""
    if before.kind != after.kind and path != SKILL_FILE:
        return None
    try:
        one, two = before.data.decode("utf-8"), after.data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    mine, theirs = one.splitlines(keepends=True), two.splitlines(keepends=True)
    start, end = _common(mine, theirs)
    first, last = start, len(mine) - end
    while True:
        wanted = "".join(mine[first:last])
        # In a file with Windows line ends, one without any would be taken to mean them.
        plain = "\r\n" not in one or "\r" in wanted
        # Not by counting: where it overlaps itself, the first place is not the only one.
        if wanted and plain and one.find(wanted) == one.rfind(wanted):
            with_ = "".join(theirs[first : len(theirs) - (len(mine) - last)])
            return Edit(wanted, with_, path)
        if first == 0 and last == len(mine):
            return None
        first, last = max(first - 1, 0), min(last + 1, len(mine))


def _common(one: list[str], two: list[str]) -> tuple[int, int]:
    """How many lines they share at the beginning and at the end."""
    most = min(len(one), len(two))
    start = 0
    while start < most and one[start] == two[start]:
        start += 1
    end = 0
    while end < most - start and one[-1 - end] == two[-1 - end]:
        end += 1
    return start, end


def _lines(file: File | None) -> list[str]:
    if file is None:
        return []
    return file.data.decode("utf-8", "replace").splitlines(keepends=True)
