"""Three-way merges of a skill's files: what was, what is now, and what somebody wants.

Lines are merged by git. Where both sides changed the same thing differently there is a conflict,
and the merged text carries git's marks; nobody's line is dropped in silence.
"""

import os
import subprocess
import tempfile

import msgspec

from tacit.base.errors import TacitError
from tacit.changes.files import File, Files
from tacit.changes.objects import git_environment


class Merged(msgspec.Struct, frozen=True):
    """The outcome: the files, and the paths on which the two sides disagree."""

    files: dict[str, File]
    conflicts: tuple[str, ...] = ()


def merge(base: Files, ours: Files, theirs: Files, *, labels: tuple[str, str]) -> Merged:
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
    with tempfile.TemporaryDirectory(prefix="tacit-merge-") as folder:
        names = []
        for name, data in (("ours", ours), ("base", base), ("theirs", theirs)):
            names.append(os.path.join(folder, name))
            with open(names[-1], "wb") as file:
                file.write(data)
        marks = ["-L", labels[0], "-L", "before", "-L", labels[1]]
        try:
            done = subprocess.run(
                ["git", "merge-file", "-p", "--diff3", *marks, *names],
                capture_output=True,
                check=False,
                env=git_environment(),
                cwd=folder,
            )
        except FileNotFoundError:
            raise TacitError("merging needs the git program", "install git") from None
    if done.returncode > 127:
        text = done.stderr.decode(errors="replace").strip()
        raise TacitError(f"git merge-file failed: {text}")
    return done.stdout, done.returncode == 0
