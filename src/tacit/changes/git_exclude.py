"""The exclude file of a project's repository, by which learned skills stay private until shared.

It is never committed. Nothing else of the repository is touched: not its index, its settings, its
commits, and no file that it tracks.
"""

import os

from tacit.base.atomic_files import locked, open_plain, write_atomic
from tacit.base.errors import TacitError
from tacit.base.git_program import run_git
from tacit.base.paths import is_inside
from tacit.changes.place import Place

_HEADING = "# Learned skills, kept private by tacit; 'tacit share NAME' shows one to git"


def hide(place: Place, skill: str, data: str) -> bool:
    """Hide `skill` from git; False where there is no repository, or nothing to be done."""
    return _change(place, skill, data, add=True)


def show(place: Place, skill: str, data: str) -> bool:
    """Let git see `skill` again; False where it was not hidden."""
    return _change(place, skill, data, add=False)


def hide_link(path: str, data: str) -> bool:
    """Hide the link at `path`, by which an agent finds a hidden skill."""
    folder, name = os.path.split(path)
    return _change(Place(folder), name, data, add=True, end="")


def show_link(path: str, data: str) -> bool:
    """Let git see what is at `path` again."""
    folder, name = os.path.split(path)
    return _change(Place(folder), name, data, add=False, end="")


def is_hidden(place: Place, skill: str) -> bool:
    found = _repository(place)
    return found is not None and _line(found[1], place, skill) in _read(found[0])


def is_shared(place: Place, skill: str) -> bool:
    """Whether git sees `skill`: it lies in a repository and is not hidden from it."""
    found = _repository(place)
    return found is not None and _line(found[1], place, skill) not in _read(found[0])


def hidden(place: Place) -> list[str]:
    """The skills of `place` that are hidden."""
    found = _repository(place)
    if found is None:
        return []
    start, end = _line(found[1], place, "\0").split("\0")
    return [
        _unescape(line.removeprefix(start).removesuffix(end))
        for line in _own(_read(found[0]))
        if line.startswith(start) and line.endswith(end)
    ]


def _change(place: Place, skill: str, data: str, *, add: bool, end: str = "/") -> bool:
    found = _repository(place)
    if found is None:
        return False
    file, top = found
    wanted = _line(top, place, skill, end)
    with locked(os.path.join(data, "locks", "exclude.lock"), what=file):
        lines = _read(file)
        if (wanted in lines) == add:
            return False
        if add:
            if _HEADING not in lines:
                lines = [*lines, _HEADING]
            at = lines.index(_HEADING) + 1
            lines = [*lines[:at], wanted, *lines[at:]]
        else:
            lines = [line for line in lines if line != wanted]
            if not _own(lines):
                lines = [line for line in lines if line != _HEADING]
        text = "\n".join(lines).lstrip("\n")
        mode = os.stat(file).st_mode & 0o777 if os.path.exists(file) else 0o644
        encoded = (text + "\n" if text else "").encode("utf-8", "surrogateescape")
        write_atomic(file, encoded, mode=mode)
    return True


def _repository(place: Place) -> tuple[str, str] | None:
    """The exclude file and the top folder of the repository that the place lies in."""
    start = place.real
    while not os.path.isdir(start):  # the skills folder may not be there yet
        start = os.path.dirname(start)
    try:
        found = run_git(
            "rev-parse", "--git-path", "info/exclude", "--show-toplevel", "--git-common-dir",
            cwd=start,
        )  # fmt: skip
    except TacitError:  # no git that answers, so no status to be hidden from
        return None
    lines = os.fsdecode(found.stdout).split("\n")
    if found.returncode != 0 or len(lines) < 3:
        return None
    file, top, own = (os.path.realpath(os.path.join(start, line)) for line in lines[:3])
    return (file, top) if is_inside(file, own) else None  # a link may lead to any file


def _line(top: str, place: Place, skill: str, end: str = "/") -> str:
    """The pattern for a skill's folder, and for nothing else; a link is no folder to git."""
    path = os.path.relpath(place.real, top)
    return f"/{_escape(path)}/{_escape(skill)}{end}".replace("/./", "/")


def _escape(text: str) -> str:
    return "".join(f"\\{c}" if c in "*?[]\\ !#" else c for c in text)


def _unescape(text: str) -> str:
    chars = iter(text)
    return "".join(next(chars, "") if c == "\\" else c for c in chars)


def _read(file: str) -> list[str]:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape", opener=open_plain) as stream:
            return stream.read().removesuffix("\n").split("\n")
    except FileNotFoundError:
        return []


def _own(lines: list[str]) -> list[str]:
    """The lines below the heading, up to the next comment or empty line."""
    if _HEADING not in lines:
        return []
    rest = lines[lines.index(_HEADING) + 1 :]
    end = next((i for i, line in enumerate(rest) if not line.startswith("/")), len(rest))
    return rest[:end]
