"""What operations do to the files of a skill, and how two versions of them are compared and merged.

Works on files in memory; only a merge of lines runs git, in a temporary folder. An operation that
cannot be carried out raises `Unfit`. Whether the outcome is a good skill is judged by the gate's
later steps. Where both sides of a three-way merge changed the same thing differently there is a
conflict, and the merged text carries git's marks; nobody's line is dropped in silence.
"""

import os
import re
from collections.abc import Iterable, Iterator

import msgspec

from tacit.base.atomic_files import TemporaryFolder
from tacit.base.display import unified_diff
from tacit.base.errors import TacitError
from tacit.base.git_program import run_git
from tacit.changes.change import (
    SKILL_FILE,
    Create,
    Edit,
    File,
    FileOperation,
    Files,
    Refusal,
    RemoveFile,
    Rewrite,
    Unfit,
    WriteFile,
    files_of,
    unfit,
)
from tacit.changes.containment import check_path, check_paths


def diff_files(old: Files, new: Files) -> str:
    """A unified diff, file by file; of what is no text, only that it differs."""
    return "".join(
        line
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
        for line in _diff_file(path, old.get(path), new.get(path))
    )


def _diff_file(path: str, old: File | None, new: File | None) -> Iterator[str]:
    before, after = _text(old), _text(new)
    if old is not None and new is not None and old.kind != new.kind:
        yield f"# {path}: {old.kind} becomes {new.kind}\n"
    if before is None or after is None:
        yield f"# {path}: {_size(old)} becomes {_size(new)}\n"
        return
    from_file = f"a/{path}" if old is not None else "/dev/null"
    to_file = f"b/{path}" if new is not None else "/dev/null"
    yield unified_diff(before, after, from_file, to_file)


def _text(file: File | None) -> str | None:
    """What stands in it; None where it is no text."""
    try:
        text = file.data.decode() if file is not None else ""
    except UnicodeDecodeError:
        return None
    return text if "\0" not in text else None


def _size(file: File | None) -> str:
    return f"{len(file.data):,} bytes" if file is not None else "nothing"


class Merged(msgspec.Struct, frozen=True):
    """The outcome: the files, and the paths on which the two sides disagree."""

    files: dict[str, File]
    conflicts: tuple[str, ...] = ()


def merge_files(base: Files, ours: Files, theirs: Files, *, labels: tuple[str, str]) -> Merged:
    """`theirs`, made from `base`, brought onto `ours`. `labels` name the two in conflict marks."""
    files: dict[str, File] = {}
    conflicts: list[str] = []
    for path in sorted({*base, *ours, *theirs}):
        was, our, their = base.get(path), ours.get(path), theirs.get(path)
        if our in (their, was):
            kept = their
        elif their == was:
            kept = our
        else:
            kept, clean = _merge_file(was, our, their, labels)
            if not clean:
                conflicts.append(path)
        if kept is not None:
            files[path] = kept
    return Merged(files, tuple(conflicts))


def _merge_file(
    was: File | None, our: File | None, their: File | None, labels: tuple[str, str]
) -> tuple[File | None, bool]:
    if our is None or their is None:  # one side removed what the other changed: keep the change
        return our or their, False
    kind = their.kind if was is None or our.kind == was.kind else our.kind
    if our.data == their.data:
        return File(our.data, kind), True
    texts = [file.data if file else b"" for file in (was, our, their)]
    if "link" in (our.kind, their.kind) or any(b"\0" in text for text in texts):
        return our, False
    data, clean = merge_text(texts[0], texts[1], texts[2], labels)
    return File(data, kind), clean


def merge_text(
    base: bytes, ours: bytes, theirs: bytes, labels: tuple[str, str]
) -> tuple[bytes, bool]:
    """The merged bytes, and whether that went without a conflict."""
    with TemporaryFolder("merge") as folder:
        names = []
        for name, data in (("ours", ours), ("base", base), ("theirs", theirs)):
            names.append(os.path.join(folder, name))
            with open(names[-1], "wb") as file:
                file.write(data)
        marks = ["-L", labels[0], "-L", "before", "-L", labels[1]]
        done = run_git("merge-file", "-p", "--diff3", *marks, *names, cwd=folder)
    if done.returncode > 127:
        text = done.stderr.decode(errors="replace").strip()
        raise TacitError(f"git merge-file failed: {text}")
    return done.stdout, done.returncode == 0


_NAME_LINE = re.compile(r"^name[ \t]*:[^\n]*$", re.M)


def apply_operations(
    files: Files, operations: Iterable[FileOperation | Create], *, file: str = SKILL_FILE
) -> dict[str, File]:
    """The files after `operations`, in order; `file` is the one that must be there.

    Raises `Unfit`.
    """
    now = dict(files)
    for operation in operations:
        match operation:
            case Edit():
                now[operation.path] = edit_file(now, operation)
            case WriteFile():
                _check_support(operation.path, "written")
                kept = now.get(operation.path)
                runs = operation.executable or (kept is not None and kept.kind == "program")
                _refuse_link(kept, operation.path)
                now[operation.path] = File(operation.data, "program" if runs else "file")
            case RemoveFile():
                _check_support(operation.path, "removed")
                if operation.path not in now:
                    raise _no_such_file(now, operation.path)
                del now[operation.path]
            case Create() | Rewrite():
                now = _whole(now, operation, file)
    _check_new_paths(files, now)
    return now


def edit_file(files: Files, operation: Edit) -> File:
    """The file with `old` replaced by `new`, where `old` stands exactly once."""
    file = files.get(operation.path)
    if file is None:
        raise _no_such_file(files, operation.path)
    _refuse_link(file, operation.path)
    try:
        text = file.data.decode("utf-8")
    except UnicodeDecodeError:
        raise unfit(
            "not-text", f"'{operation.path}' is not UTF-8 text", "write the whole file"
        ) from None
    old, new = operation.old, operation.new
    if not old:
        raise unfit("empty-old", "the text to replace is empty", "quote what stands there")
    if "\r\n" in text and "\r" not in old:  # a file with Windows line ends keeps them
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = text.count(old)
    if count == 1:
        return File(text.replace(old, new).encode(), file.kind)
    if count:
        raise _not_unique(text, old, operation.path, count)
    raise _not_found(text, operation.old, operation.path)


def rename_in_head(files: Files, to: str) -> dict[str, File]:
    """The files with the frontmatter's name set to `to`."""
    text = files[SKILL_FILE].data.decode("utf-8", "surrogateescape")
    head_end = text.find("\n---", 3)
    found = _NAME_LINE.search(text, 0, head_end if head_end > 0 else len(text))
    if found is None or not text.startswith("---"):
        raise unfit("no-name-line", "SKILL.md has no 'name:' line", "add one, then rename it")
    ending = "\r" if found.group().endswith("\r") else ""
    text = f"{text[: found.start()]}name: {to}{ending}{text[found.end() :]}"
    changed = File(text.encode("utf-8", "surrogateescape"), files[SKILL_FILE].kind)
    return {**files, SKILL_FILE: changed}


def _whole(now: Files, operation: Create | Rewrite, file: str) -> dict[str, File]:
    """The files of a create or a rewrite. Links stay as they are: bytes cannot say them."""
    if file not in operation.files:
        noun = file.removesuffix(".md").lower()
        raise unfit(f"no-{noun}-file", f"{file} is not among the files", f"a {noun} needs a {file}")
    programs = {path for path, file in now.items() if file.kind == "program"}
    links = {path: file for path, file in now.items() if file.kind == "link"}
    if clash := sorted(links.keys() & operation.files.keys()):
        _refuse_link(links[clash[0]], clash[0])
    return links | files_of(operation.files, programs | set(operation.executable))


def _check_support(path: str, verb: str) -> None:
    if path.casefold() == SKILL_FILE.casefold():
        raise unfit(
            "skill-file",
            f"SKILL.md cannot be {verb} as a support file",
            "edit it instead, or archive the skill",
        )
    if found := check_path(path):
        raise Unfit(found)


def _check_new_paths(before: Files, after: Files) -> None:
    """New paths must be sound; those that a person put there already are left alone."""
    new = [path for path in after if path not in before]
    for path in new:
        if found := check_path(path):
            raise Unfit(found)
    if new and (found := check_paths(after)):
        raise Unfit(found)


def _refuse_link(file: File | None, path: str) -> None:
    if file is not None and file.kind == "link":
        to = file.data.decode("utf-8", "replace")
        raise Unfit(
            Refusal(
                "containment",
                "linked-file",
                f"'{path}' is a link to '{to}'; nothing is written through a link",
                "change what it points to, or replace the link by a file",
            )
        )


def _no_such_file(files: Files, path: str) -> Unfit:
    import difflib

    near = difflib.get_close_matches(path, list(files), 3) or sorted(files)[:5]
    return unfit("no-such-file", f"there is no file '{path}'", f"there are: {', '.join(near)}")


def _not_unique(text: str, old: str, path: str, count: int) -> Unfit:
    lines: list[str] = []
    at = text.find(old)
    while at >= 0 and len(lines) < 5:
        lines.append(str(text.count("\n", 0, at) + 1))
        at = text.find(old, at + 1)
    return unfit(
        "not-unique",
        f"the text to replace stands {count} times in '{path}' (lines {', '.join(lines)})",
        "quote more of the lines around it, so that it stands there once",
    )


def _not_found(text: str, old: str, path: str) -> Unfit:
    """Say what is near: the stretch of as many lines that is most like `old`."""
    import difflib

    lines, size = text.splitlines(), max(1, len(old.splitlines()))
    first = next((line for line in old.splitlines() if line.strip()), "")
    wanted = first.strip()
    best, at = 0.0, -1
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    for number, line in enumerate(lines[:5000]):
        matcher.set_seq1(line.strip())
        # How much of the wanted line stands here, in runs of at least three characters: the
        # line may go on for long before and after it.
        runs = [block.size for block in matcher.get_matching_blocks() if block.size >= 3]
        share = sum(runs) / max(1, len(wanted)) - len(runs) / 100
        if share > best:
            best, at = share, number
    if best < 0.5:
        return unfit("not-found", f"the text to replace is not in '{path}'", "read the file again")
    offset = next(i for i, line in enumerate(old.splitlines()) if line.strip())
    start = max(0, at - offset)
    near = "\n".join(lines[start : start + min(size, 8)])
    return unfit(
        "not-found",
        f"the text to replace is not in '{path}'; nearest is line {start + 1}:\n{near}",
        "quote that exactly, spaces and all",
    )
