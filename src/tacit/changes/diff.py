"""What differs between two versions of a skill, as text that git, patch and people read."""

import difflib
from collections.abc import Iterator

from tacit.changes.files import File, Files


def diff(old: Files, new: Files) -> str:
    """A unified diff, file by file; of what is no text, only that it differs."""
    return "".join(
        line
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
        for line in _diff_file(path, old.get(path), new.get(path))
    )


def _diff_file(path: str, old: File | None, new: File | None) -> Iterator[str]:
    before, after = _lines(old), _lines(new)
    if old is not None and new is not None and old.kind != new.kind:
        yield f"# {path}: {old.kind} becomes {new.kind}\n"
    if before is None or after is None:
        yield f"# {path}: {_size(old)} becomes {_size(new)}\n"
        return
    from_file = f"a/{path}" if old is not None else "/dev/null"
    to_file = f"b/{path}" if new is not None else "/dev/null"
    for line in difflib.unified_diff(before, after, from_file, to_file):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(file: File | None) -> list[str] | None:
    """The lines with their ends; None where it is no text. (`splitlines` would cut at more.)"""
    if file is None:
        return []
    if b"\0" in file.data:
        return None
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _size(file: File | None) -> str:
    return f"{len(file.data):,} bytes" if file is not None else "nothing"
